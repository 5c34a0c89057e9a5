"""Runs the cells of a sweep, and the public function `pyaccount.sweep`, which checks arguments and loads the grid."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pyaccount import _core
from pyaccount.arguments import threads_of
from pyaccount.certificate import Certificate
from pyaccount.certificate.compared import row_of
from pyaccount.document.document import Document
from pyaccount.document.sweeps import Cell, SweepGrid, load_grid
from pyaccount.errors import DomainError, PyaccountError, StoreError
from pyaccount.execute.progress import Report, reported
from pyaccount.files import write_atomically
from pyaccount.reading.overrides import Overrides
from pyaccount.reading.sources import Source
from pyaccount.running.plan import Plan, compile_document, why
from pyaccount.sweeping.records import FailedCell, SweptRecord
from pyaccount.sweeping.table import Sweep

if TYPE_CHECKING:
    from pyaccount.store import Store, Strictness

#: The number of submitted cells for each worker: enough that no thread waits, and few enough that a large grid is not
#: held in memory.
READY = 4


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """How the cells of a sweep are run."""

    threads: int = 0
    report: Report | None = None
    #: The file of a run store.
    store: Path | None = None
    store_errors: Strictness = "stop"
    #: The executor whose workers draw samples.
    executor: Executor | None = None
    #: The folder for the certificates.
    certificates: Path | None = None

    @property
    def workers(self) -> int:
        """The number of cells that run at the same time."""
        return self.threads or available()


def checked_size(grid: SweepGrid, most: int, option: str) -> None:
    """Raise `DomainError` if a grid has more than `most` cells. The message names the option that allows more."""
    if len(grid) > most:
        raise DomainError(f"this sweep has {len(grid):_} cells, more than {most:_}: {option} allows more")


def available() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def certified_cells(grid: SweepGrid, how: SweepOptions) -> Sweep:
    """Run every cell. A cell that fails is listed with the reason, and does not stop the others.

    Raises `StoreError` if the store fails and `store_errors` is "stop", `OSError` if a certificate cannot be written,
    and `KeyboardInterrupt`; cells that were certified by then are in the store.
    """
    if how.certificates is not None:
        _prepare(how.certificates)
    if how.store is not None and how.store_errors == "stop":
        from pyaccount.store import Store  # few sweeps have a store

        # An unusable store is reported before any work.
        Store(how.store).close()
    outcomes: dict[int, SweptRecord | FailedCell] = {}
    sampled: list[Cell] = []
    failed = 0

    def record(place: int, outcome: SweptRecord | FailedCell | None) -> None:
        nonlocal failed
        if outcome is None:
            sampled.append(grid.cell(place))
        else:
            outcomes[place] = outcome
            failed += isinstance(outcome, FailedCell)
        if how.report is not None:
            words = f"{len(outcomes)} of {len(grid)} cells" + (f", {failed} failed" if failed else "")
            how.report(words, len(outcomes), len(grid))

    _side_by_side(grid.cells(), lambda cell: _attempted(cell, how, None, later=True), how.workers, record)
    for cell in sorted(sampled, key=lambda cell: cell.place):
        record(cell.place, _run(cell, how, _reporting(cell, len(grid), how.report)))
    ordered = [outcomes[place] for place in sorted(outcomes)]
    return Sweep(
        pyaccount=1,
        kind="sweep-table",
        name=grid.name,
        varied=list(grid.varied),
        rows=[outcome for outcome in ordered if isinstance(outcome, SweptRecord)],
        failures=[outcome for outcome in ordered if isinstance(outcome, FailedCell)],
    )


def _prepare(folder: Path) -> None:
    """Create the folder for certificates. Raises `DomainError` if it is a file, or has certificates of a sweep."""
    if folder.exists() and not folder.is_dir():
        raise DomainError(f"{folder}: is a file, but `certificates` must be a folder")
    if any(folder.glob("cell-*.cert.json")):
        raise DomainError(f"{folder}: has the certificates of a sweep already; name another folder, or remove them")
    folder.mkdir(parents=True, exist_ok=True)


def _side_by_side(
    cells: Iterator[Cell],
    work: Callable[[Cell], SweptRecord | FailedCell | None],
    workers: int,
    record: Callable[[int, SweptRecord | FailedCell | None], None],
) -> None:
    """Do the work for each cell, `workers` at a time. An exception in one of them, or in this thread, stops all."""
    cancellation = _core.Cancellation()

    def cancellable(cell: Cell) -> SweptRecord | FailedCell | None:
        with cancellation:
            _core.Cancellation.check()
            return work(cell)

    places: dict[Future[SweptRecord | FailedCell | None], int] = {}
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(workers, thread_name_prefix="pyaccount-sweep"))
        # On an exception, cancel the threads before the pool waits for them.
        stack.callback(cancellation.cancel)
        for cell in cells:
            places[pool.submit(cancellable, cell)] = cell.place
            if len(places) >= READY * workers:
                _take(places, record)
        while places:
            _take(places, record)


def _take(
    places: dict[Future[SweptRecord | FailedCell | None], int],
    record: Callable[[int, SweptRecord | FailedCell | None], None],
) -> None:
    """Wait until at least one cell is finished, and record all that are."""
    done: Iterable[Future[SweptRecord | FailedCell | None]] = wait(places, return_when=FIRST_COMPLETED).done
    for future in done:
        place = places.pop(future)
        record(place, future.result())


def _run(cell: Cell, how: SweepOptions, report: Report | None) -> SweptRecord | FailedCell:
    """Run a cell that is sampled."""
    outcome = _attempted(cell, how, report, later=False)
    assert outcome is not None
    return outcome


def _attempted(cell: Cell, how: SweepOptions, report: Report | None, *, later: bool) -> SweptRecord | FailedCell | None:
    """Run a cell. With `later`, returns None for one that is sampled, which runs later."""
    began = time.monotonic()
    try:
        plan = compile_document(cell.document())
        if later and plan.sampled:
            return None
        certificate, finished = _certified(plan, how, report)
    except StoreError:
        raise
    except (PyaccountError, MemoryError) as error:
        return FailedCell(
            place=cell.place,
            name=cell.name,
            file=cell.file,
            why=why(error),
            message=str(error) or "no memory is left",
            seconds=time.monotonic() - began,
            settings=cell.settings,
        )
    if how.certificates is not None:
        write_atomically(how.certificates / f"cell-{cell.place:04d}.cert.json", certificate.to_json())
    return _row(cell, certificate, time.monotonic() - began, finished=finished)


def _certified(plan: Plan, how: SweepOptions, report: Report | None) -> tuple[Certificate, bool]:
    """Return the certificate of a plan, and whether it was in the store already."""
    if how.store is None:
        return plan.run(threads=how.threads, report=report, executor=how.executor), False
    from pyaccount.store import kept_in  # few sweeps have a store

    with kept_in(how.store, plan.asked or plan.document, None, how.store_errors) as kept:
        if kept is not None and kept.finished is not None:
            return kept.finished, True
    certificate = plan.run(
        threads=how.threads, report=report, executor=how.executor, store=how.store, store_errors=how.store_errors
    )
    return certificate, False


def _row(cell: Cell, certificate: Certificate, seconds: float, *, finished: bool) -> SweptRecord:
    data = certificate.data
    solved = data.solved
    return SweptRecord(
        **dict(row_of(data, seconds, finished=finished)),
        place=cell.place,
        settings=cell.settings,
        solved=None if solved is None else solved.path,
        value=None if solved is None else float(solved.value),
    )


def _reporting(cell: Cell, cells: int, report: Report | None) -> Report | None:
    """Return a report for one cell that names the cell, or None if there is no report."""
    if report is None:
        return None
    return lambda stage, done, total: report(f"cell {cell.place + 1} of {cells}: {stage}", done, total)


def sweep(  # noqa: PLR0913 - what is swept, and how
    source: Source | Document | Sequence[Source | Document],
    *,
    overrides: Overrides = (),
    threads: int = 0,
    progress: bool = False,
    most: int = 10_000,
    certificates: str | os.PathLike[str] | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    store_errors: Literal["stop", "continue"] = "stop",
    executor: Executor | None = None,
    folders: Sequence[str | os.PathLike[str]] = (),
) -> Sweep:
    """Certify a document for every combination of the values under `vary:`, or each of several documents (`docs/runs.md`).

    Args:
        source: A document with `vary:`, or a list of documents.
        overrides: As for `load`; they apply to every document.
        threads: As for `certify`.
        progress: As for `certify`.
        most: The maximum number of cells; more raise `DomainError`.
        certificates: A folder in which to write the certificates.
        store: As for `certify`; cells that are finished there are not computed again.
        store_errors: As for `certify`.
        executor: As for `certify`.
        folders: As for `load`; the documents that a sweep lists may lie there too.

    Returns a table of the cells. A cell that fails or is stopped is among its `failures`, and the others are certified all the
    same. Before any work, raises `DocumentError` for a wrong sweep, or if no cell is a valid document, `DomainError`
    and `StoreError`; Ctrl-C raises `KeyboardInterrupt`.

    ```python
    import pyaccount

    cells = pyaccount.sweep("examples/sweeps/epsilon-and-batch.yaml")
    print(cells.to_text())
    ```
    """
    threads, grid = threads_of(threads), load_grid(source, overrides=overrides, folders=folders)
    checked_size(grid, most, "most=")
    with reported(progress) as report:
        how = SweepOptions(
            threads=threads,
            report=report,
            store=None if store is None else Path(store),
            store_errors=store_errors,
            executor=executor,
            certificates=None if certificates is None else Path(certificates),
        )
        return certified_cells(grid, how)
