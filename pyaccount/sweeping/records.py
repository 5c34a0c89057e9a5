"""The records of a sweep's cells: a certificate in a row, or why there is none."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from pyaccount.certificate.compared import ComparedRecord, FailedRecord
from pyaccount.certificate.model import Record

_SETTINGS = "What varies, by its path, and its value in this cell."


class SweptRecord(ComparedRecord):
    """The certificate of a cell in a row."""

    place: int = Field(ge=0, description="The cell's place in the sweep, from 0.")
    settings: dict[str, JsonValue] = Field(description=_SETTINGS)
    solved: str | None = Field(description="The path of the blank that was filled; null for a claim.")
    value: float | None = Field(description="Its value.")


class FailedCell(FailedRecord):
    """A cell that gave no certificate."""

    settings: dict[str, JsonValue] = Field(description=_SETTINGS)


class SweptCells(Record):
    """The cells of a sweep, as data."""

    pyaccount: Literal[1] = Field(description="Format version.")
    kind: Literal["sweep-table"] = Field(description="What this is.")
    name: str | None = Field(description="What the sweep is called.")
    varied: list[str] = Field(description="The paths that vary.")
    rows: list[SweptRecord] = Field(description="Of each certificate, in the order of the cells.")
    failures: list[FailedCell] = Field(default_factory=list, description="Cells without one, and why.")
