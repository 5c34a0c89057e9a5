"""The content of a store as data, with one record for each run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pyaccount.certificate.record import OutputRecord, Record
from pyaccount.pages.page import Block, Content, Page, PageSection, PageTable, Paragraph, at_most
from pyaccount.pages.readable import Readable

if TYPE_CHECKING:
    from pyaccount.store.database import Run, Store


class RunRecord(Record):
    """One run of a store."""

    id: str = Field(
        description="The hash of everything from which its certificate is computed: document, files, versions, and "
        "the seed that was asked for."
    )
    name: str = Field(description="The name of the document.")
    finished: str = Field(description="When its certificate was issued.")
    damaged: bool = Field(
        description="Whether what is stored of the run is damaged, that is, not what was written. Then nothing else "
        "is stated about it."
    )
    holds: bool | None = Field(description="Whether the claim was certified; null if what is stored is damaged.")
    epsilon: float | None = Field(description="The ε of its certificate, an upper bound.")
    delta: float | None = Field(description="The δ of its certificate, an upper bound.")
    noise_multiplier: float | None = Field(description="The σ of its certificate, if all phases have the same.")
    versions: dict[str, str] = Field(description="The versions that compute it.")


class RunList(OutputRecord, Readable):
    """The runs of a store, in the order in which they were finished."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["runs"] = Field(description="The kind of this JSON: a list of runs.")
    runs: list[RunRecord] = Field(description="The runs of the store.")

    def page(self) -> Page:
        """Return the list as a page."""
        rows: tuple[tuple[Content, ...], ...] = tuple(
            (
                (run.id[:12],),
                (run.name,),
                (run.finished,),
                (_state(run),),
                *(
                    ("",) if value is None else (bound(value, unit, "kept", 5),)
                    for value, unit, bound in (
                        (run.epsilon, "nats", at_most),
                        (run.delta, "probability", at_most),
                        (run.noise_multiplier, "clip norms", at_most),
                    )
                ),
            )
            for run in self.runs
        )
        headings = ("run", "name", "finished", "state", "ε at most", "δ at most", "σ at most")
        table = PageTable((), headings, rows, words=headings[:4])
        blocks: tuple[Block, ...] = (table,) if rows else (Paragraph(("The store has no runs.",)),)
        number = f"{len(rows)} run{'' if len(rows) == 1 else 's'}"
        origins = {"kept": "Read from the certificate that the store keeps of the run."}
        return Page("Run store", number, (PageSection("runs", "Runs", blocks),), origins=origins)


def _state(run: RunRecord) -> str:
    if run.damaged:
        return "damaged: remove it"
    return "holds" if run.holds else "does not hold"


def run_list(store: Store) -> RunList:
    """Return all runs of a store. Raises `StoreError` if it cannot be read."""
    return RunList(pyaccount=1, kind="runs", runs=[_record(run) for run in store.runs()])


def _record(run: Run) -> RunRecord:
    certificate = {} if run.damaged else json.loads(run.certificate)
    guarantee = certificate.get("guarantee", {})
    return RunRecord(
        id=run.id,
        name=run.name,
        finished=run.finished,
        damaged=run.damaged,
        holds=certificate.get("holds"),
        epsilon=guarantee.get("epsilon"),
        delta=guarantee.get("delta"),
        noise_multiplier=certificate.get("noise_multiplier"),
        versions={} if run.damaged else json.loads(run.versions),
    )
