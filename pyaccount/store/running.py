"""Finds the run of a document in a store, by everything that its certificate is computed from, and lists its content.

Of the files that a document names, the content belongs to that: a name does not identify it.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pyaccount.certificate.provenance import identity, versions
from pyaccount.document.schedules import ScheduleFile
from pyaccount.errors import StoreError
from pyaccount.pages.page import Block, Content, Page, PageSection, PageTable, Paragraph, at_most
from pyaccount.pages.readable import Readable
from pyaccount.plan.matrices import matrix_plan, strategy
from pyaccount.plan.protection import Protection
from pyaccount.plan.schedule_values import values_of
from pyaccount.records.fields import OutputRecord, Record
from pyaccount.store.database import Store

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from pyaccount.certificate import Certificate
    from pyaccount.document.document import Document
    from pyaccount.errors import Path
    from pyaccount.plan.protection import RunCase
    from pyaccount.store.database import Run


def contents_of(case: RunCase) -> dict[Path, str]:
    """Return the SHA-256 of what each file that a run names holds, by the file's document path.

    A matrix is hashed by its entries, row by row, and a schedule by its values, round by round; both as doubles. Raises
    `DocumentError` for files without a matrix or a schedule.
    """
    found: dict[Path, str] = {}
    if matrix_plan(case).from_file:
        found[case.node.at("matrix", "file")] = strategy(case).fingerprint or ""
    for path, scheduled in case.node.schedules().items():
        if isinstance(scheduled.schedule, ScheduleFile):
            found[*path, "schedule", "file"] = values_of(case, path).sha256
    return found


#: Whether a run stops when its store fails, or continues without it.
Strictness = Literal["stop", "continue"]


@dataclass(frozen=True, slots=True)
class KeptRun:
    """The place of a document's run in a store; `finished` is the certificate that is stored there, if there is one."""

    store: Store
    key: str
    finished: Certificate | None

    def finish(self, certificate: Certificate) -> None:
        """Store the certificate, unless a time limit left something out of it that can still be computed."""
        if certificate.data.not_computed:
            return
        try:
            self.store.keep(
                self.key,
                name=certificate.data.name,
                versions=json.dumps(versions(), sort_keys=True),
                certificate=certificate.to_json(),
            )
        except StoreError as error:
            # The certificate was computed, so the caller gets it even though it cannot be stored.
            _warn(error)


def certificate_of(run: Run) -> Certificate:
    """Return the certificate of a run. Raises `StoreError` or `CertificateError` if it was changed."""
    from pyaccount.certificate import Certificate  # imported here because only finished runs need it
    from pyaccount.certificate.reading import parse_certificate

    if run.damaged:
        raise StoreError(
            f"what the store has of run {run.id[:12]} is damaged; remove that run, by Store.remove or `pyaccount runs --remove`"
        )
    return Certificate(parse_certificate(run.certificate.encode(), f"run {run.id[:12]}").certificate())


@contextmanager
def kept_in(
    store: Store | str | os.PathLike[str], document: Document, seed: int | None, errors: Strictness
) -> Iterator[KeptRun | None]:
    """Open a store, given as such or as its file, and yield the run of a document in it.

    `seed` is the requested seed, if any. If the store fails and `errors` is "continue", this yields `None` with a
    warning; otherwise it raises `StoreError`.
    """
    with ExitStack() as stack:
        try:
            opened = store if isinstance(store, Store) else stack.enter_context(Store(store))
            key = _key(document, seed)
            run = opened.run(key)
            if run is None:
                opened.check_writable()
            kept: KeptRun | None = KeptRun(opened, key, None if run is None else certificate_of(run))
        except StoreError as error:
            if errors == "stop":
                raise
            _warn(error)
            kept = None
        yield kept


def _key(document: Document, seed: int | None) -> str:
    """Return the hash of a run's inputs: equal keys have the same certificate, or one of another fresh seed."""
    # Fingerprints of what was read for this plan, because the files may have changed since.
    files = [sha256 for case in Protection.of(document).runs() for sha256 in contents_of(case).values()]
    computed_from = {"document": document.sha256, "files": files, "versions": identity(), "seed": seed}
    return hashlib.sha256(json.dumps(computed_from, sort_keys=True).encode()).hexdigest()


def _warn(error: StoreError) -> None:
    """Warn that a store has failed and that the run continues without it."""
    warnings.warn(f"{error}; the run goes on without it", stacklevel=2)


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
