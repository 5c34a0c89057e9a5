"""An entry as commands print it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pyaccount.certificate.record import NonNegative, OutputRecord, Probability, Record
from pyaccount.ledger.state import LedgerEntry


class PlaceRecord(Record):
    """A block of an entry."""

    block: str = Field(description="The name of the block.")
    filter: str | None = Field(description="The filter in which the entry counts; null if it is fixed.")
    cost: list[NonNegative] = Field(
        description="What it costs in the terms in which the filter counts, upper bounds (for μ: Σμ²). For a fixed entry: by how "
        "much the total grew when it was reserved, which is no bound."
    )
    counts: bool = Field(description="Whether it counts; false if it was given back.")


class EntryRecord(OutputRecord):
    """An entry of a ledger."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["ledger-entry"] = Field(description="The kind of this JSON: an entry of a ledger.")
    id: str = Field(description="Its identifier.")
    data_set: str = Field(description="The data set.")
    name: str = Field(description="The name of its document.")
    who: str = Field(description="Who runs it.")
    purpose: str = Field(description="What for.")
    state: Literal["reserved", "begun", "committed", "released"] = Field(description="Its state.")
    document_sha256: str = Field(description="The hash of its document.")
    rounds: int | None = Field(description="The number of planned rounds; null if its document is not only training.")
    places: list[PlaceRecord] = Field(description="Its blocks.")
    reserved: str = Field(description="When it was reserved.")
    begun: str | None = Field(description="When it began; null if it has not.")
    run: str | None = Field(
        description="The hash of the first line of the record of the run that began it, to which it belongs; null before, and if "
        "it was begun by hand."
    )
    ended: str | None = Field(description="When it was committed or released; null before.")
    certificate: str | None = Field(description="The hash of the committed certificate.")
    epsilon: NonNegative | None = Field(description="The ε of the committed certificate, an upper bound.")
    delta: Probability | None = Field(description="The δ of the committed certificate, an upper bound.")
    record: str | None = Field(description="The hash of the first line of the record, which identifies the run.")
    record_head: str | None = Field(description="The hash of the last line of the record.")
    released_rounds: int | None = Field(description="The number of rounds in the record.")

    @classmethod
    def of(cls, entry: LedgerEntry) -> EntryRecord:
        """Return an entry as data."""
        mapping = entry.to_mapping()
        mapping.pop("phases_sha256")
        return cls.model_validate({"pyaccount": 1, "kind": "ledger-entry", **mapping})

    def text(self) -> str:
        """Return the identifier, and where the entry counts."""
        where = ", ".join(
            f"{place.block}: {place.filter or 'fixed'}{'' if place.counts else ', given back'}" for place in self.places
        )
        return f"{self.id} {self.state} ({where})"
