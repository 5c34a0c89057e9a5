"""The workload of a body, as the strategies know it, and the error of its matrix under it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.strategies.measure import PREFIX_SUMS, Workload

if TYPE_CHECKING:
    from pyaccount.document import Body, Document


def has_workload(document: Document) -> bool:
    """Whether the document says what its errors are of, which it has one body for."""
    return document.bodies[0].workload is not None


def workload_of(body: Body) -> Workload:
    """What the errors of a body are of, and which of them its matrix is to have the least of: prefix sums unless it says so."""
    stated = body.workload
    if stated is None:
        return PREFIX_SUMS
    rates = stated.learning_rates
    return Workload(
        momentum=float(stated.momentum),
        ema_decay=float(stated.ema_decay),
        learning_rates=None if rates is None else tuple(map(float, rates)),
        largest=stated.error == "largest",
    )
