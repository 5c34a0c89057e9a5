"""The workload of a run, in the form that the strategies use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.strategies.measure import PREFIX_SUMS, Workload

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.tree import TrainingNode


def has_workload(document: Document) -> bool:
    """Whether the document states a workload, which it can do only with a single run."""
    return any(run.workload is not None for run in document.runs_among_phases())


def workload_of(run: TrainingNode) -> Workload:
    """Return the workload of a run: what its errors are of, and which of them is minimised; by default prefix sums."""
    stated = run.workload
    if stated is None:
        return PREFIX_SUMS
    rates = stated.learning_rates
    return Workload(
        momentum=float(stated.momentum),
        ema_decay=float(stated.ema_decay),
        learning_rates=None if rates is None else tuple(map(float, rates)),
        largest=stated.error == "largest",
    )
