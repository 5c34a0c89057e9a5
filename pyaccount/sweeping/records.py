"""The records of the cells of a sweep: a row with the certificate, or the reason why there is none."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from pyaccount.certificate.compared import ComparedRecord, FailedRecord
from pyaccount.records.fields import OutputRecord

_SETTINGS = "What varies, by its path, with its value in this cell."


class SweptRecord(ComparedRecord):
    """The certificate of a cell, in a row."""

    place: int = Field(ge=0, description="The place of the cell in the sweep, counted from 0.")
    settings: dict[str, JsonValue] = Field(description=_SETTINGS)
    solved: str | None = Field(description="The path of the blank; null for a claim.")
    value: float | None = Field(description="The computed value of the blank.")


class FailedCell(FailedRecord):
    """A cell without a certificate."""

    settings: dict[str, JsonValue] = Field(description=_SETTINGS)


class SweptCells(OutputRecord):
    """The cells of a sweep, as data."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["sweep-table"] = Field(description="The kind of this JSON: the table of a sweep.")
    name: str | None = Field(description="The name of the sweep.")
    varied: list[str] = Field(description="The paths that vary.")
    rows: list[SweptRecord] = Field(description="One row for each certificate, in the order of the cells.")
    failures: list[FailedCell] = Field(default_factory=list, description="The cells without a certificate, and why.")
