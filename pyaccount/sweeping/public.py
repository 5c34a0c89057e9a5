"""The public function `pyaccount.sweep`: it checks arguments and loads the grid."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pyaccount.arguments import threads_of
from pyaccount.document.sweeps import load_grid
from pyaccount.execute.progress import reported
from pyaccount.sweeping.run import SweepOptions, checked_size
from pyaccount.sweeping.run import sweep as compute

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pyaccount.document.document import Document
    from pyaccount.reading.overrides import Overrides
    from pyaccount.reading.sources import Source
    from pyaccount.store import Store
    from pyaccount.sweeping import Sweep


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
        return compute(grid, how)
