"""The other contrast for groups: the black-box conversion of the guarantee for one record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.document import FIXED_DRAWS
from pyaccount.execute.engine import Engine, Question
from pyaccount.plan.common import whole
from pyaccount.plan.plan import compile_document

if TYPE_CHECKING:
    from pyaccount.document import Document

#: Intervals this wide are good enough for a contrast; the upper end is a bound all the same.
TOLERANCE = 0.1
#: Below this δ the core resolves nothing.
SMALLEST_DELTA = 1e-280


@dataclass(frozen=True, slots=True)
class GroupLemma:
    """What the black-box lemma gives for the group: `epsilon` at `delta`, from `record_epsilon` for one record.

    `epsilon` and `record_epsilon` are None when the lemma needs a δ for one record below what is resolved.
    """

    delta: float
    epsilon: float | None
    record_epsilon: float | None


def group_lemma(document: Document, engine: Engine, delta: float) -> GroupLemma:
    """(ε, δ₁) for one record gives (kε, δ₁·(e^{kε} − 1)/(e^ε − 1)) for k (Vadhan 2017, Lemma 2.2, its sum kept).

    Any ε with δ₁(ε)·(e^{kε} − 1)/(e^ε − 1) ≤ δ will do; a small one is looked for by bisection.
    """
    group = whole(document.privacy.group_size)
    single = document.with_value(("privacy", "group_size"), 1)
    if document.privacy.adjacency == "add-remove":
        # The chain of neighbours passes through smaller data sets, where a fixed batch is a larger share.
        for body in document.bodies:
            if isinstance(body.sampler, FIXED_DRAWS) and body.training.dataset_size is not None:
                path = (*body.path, "training", "dataset_size")
                single = single.with_value(path, body.training.dataset_size - group + 1)
    bounds = compile_document(single).bounds()

    def excess(epsilon: float) -> float:
        found = engine.ask(bounds, Question(epsilon, None, TOLERANCE)).upper
        if found <= SMALLEST_DELTA:
            return -math.inf if math.log(SMALLEST_DELTA) + _log_factor(epsilon, group) <= math.log(delta) else math.nan
        return math.log(found) + _log_factor(epsilon, group) - math.log(delta)

    low, high = 0.0, max(1e-3, engine.ask(bounds, Question(None, delta, TOLERANCE)).upper)
    while (value := excess(high)) > 0.0:
        low, high = high, 1.3 * high
    if math.isnan(value):
        return GroupLemma(delta, None, None)
    while high - low > 5e-3 * high:
        middle = 0.5 * (low + high)
        if excess(middle) <= 0.0:
            high = middle
        else:
            low = middle
    # Rounding of the logarithms is far below the tolerance; the last digits of kε are moved up all the same.
    return GroupLemma(delta, group * high * (1.0 + 1e-12), high)


def _log_factor(epsilon: float, group: int) -> float:
    """ln Σ_{i<k} e^{iε}."""
    if epsilon <= 0.0:
        return math.log(group)
    return (group - 1) * epsilon + math.log1p(-math.exp(-group * epsilon)) - math.log1p(-math.exp(-epsilon))
