"""A matrix with the σ that it needs, as proposals are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.plan.compiled import Proposed
from pyaccount.plan.matrices import strategy, workload_error
from pyaccount.plan.workload import workload_of

if TYPE_CHECKING:
    from pyaccount.document.document import Document


def proposed(document: Document, sigma: float) -> Proposed:
    """Return the errors of the document's only matrix at an estimated σ; they are estimates too.

    Raises as `workload_error` does.
    """
    body = document.bodies[0]
    mse = sigma * sigma * strategy(document, body).error.mean_square
    return Proposed(sigma, mse, sigma * sigma * workload_of(body).chosen(workload_error(document, body)))
