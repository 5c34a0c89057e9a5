"""What a store has, as data: one record for each run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pyaccount.certificate.model import Record
from pyaccount.execute.sampling.jobs import SHARD
from pyaccount.pages.page import Block, Content, Page, PageSection, PageTable, Paragraph, at_most
from pyaccount.pages.readable import Readable

if TYPE_CHECKING:
    from pyaccount.store.database import Run, Store


class RunRecord(Record):
    """A run of a store."""

    id: str = Field(
        description="The hash of what its certificate is computed from: document, files, versions, seed asked for."
    )
    name: str = Field(description="The document's name.")
    seed: int = Field(description="Of everything that is sampled for it.")
    started: str = Field(description="When it was begun.")
    finished: str | None = Field(description="When its certificate was issued; null while it is unfinished.")
    damaged: bool = Field(
        description="Whether what is kept of it is not what was written; nothing else is told of it then."
    )
    samples: int = Field(description="Samples kept of it while it is unfinished.")
    holds: bool | None = Field(description="Whether the claim was certified; null while it is unfinished.")
    epsilon: float | None = Field(description="ε of its certificate, at most.")
    delta: float | None = Field(description="δ of its certificate, at most.")
    noise_multiplier: float | None = Field(description="σ of its certificate, where all phases have the same.")
    versions: dict[str, str] = Field(description="What computes it.")


class RunList(Record, Readable):
    """The runs of a store, as they were begun."""

    pyaccount: Literal[1] = Field(description="Format version.")
    kind: Literal["runs"] = Field(description="What this is.")
    runs: list[RunRecord] = Field(description="Each run.")

    def to_json(self) -> str:
        """As JSON text."""
        return self.model_dump_json(indent=2) + "\n"

    def page(self) -> Page:
        """The list as a page."""
        rows: tuple[tuple[Content, ...], ...] = tuple(
            (
                (one.id[:12],),
                (one.name,),
                (one.started,),
                (_state(one),),
                *(
                    ("",) if value is None else (bound(value, unit, "kept", 5),)
                    for value, unit, bound in (
                        (one.epsilon, "nats", at_most),
                        (one.delta, "probability", at_most),
                        (one.noise_multiplier, "clip norms", at_most),
                    )
                ),
            )
            for one in self.runs
        )
        headings = ("run", "name", "begun", "state", "ε at most", "δ at most", "σ at most")
        table = PageTable((), headings, rows, words=headings[:4])
        blocks: tuple[Block, ...] = (table,) if rows else (Paragraph(("The store has no runs.",)),)
        number = f"{len(rows)} run{'' if len(rows) == 1 else 's'}"
        origins = {"kept": "Read from the certificate that the store keeps of the run."}
        return Page("Run store", number, (PageSection("runs", "Runs", blocks),), origins=origins)


def _state(run: RunRecord) -> str:
    if run.damaged:
        return "damaged: remove it"
    state = f"unfinished, {run.samples:,} samples kept" if run.finished is None else "finished"
    return f"{state}, does not hold" if run.holds is False else state


def run_list(store: Store) -> RunList:
    """All runs of a store. Raises `StoreError`."""
    return RunList(pyaccount=1, kind="runs", runs=[_record(store, run) for run in store.runs()])


def _record(store: Store, run: Run) -> RunRecord:
    said = {} if run.certificate is None or run.damaged else json.loads(run.certificate)
    guarantee = said.get("guarantee", {})
    return RunRecord(
        id=run.id,
        name=run.name,
        seed=run.seed,
        started=run.started,
        finished=run.finished,
        damaged=run.damaged,
        samples=store.shards(run.id) * SHARD,
        holds=said.get("holds"),
        epsilon=guarantee.get("epsilon"),
        delta=guarantee.get("delta"),
        noise_multiplier=said.get("noise_multiplier"),
        versions={} if run.damaged else json.loads(run.versions),
    )
