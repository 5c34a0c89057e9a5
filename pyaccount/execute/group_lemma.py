"""The other contrast for groups: the black-box conversion of the guarantee for one record."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.document.stated import RATE_FIELDS
from pyaccount.execute.engine import RESOLVED, Engine, Question
from pyaccount.plan.common import whole
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.largest_loss import bounded

if TYPE_CHECKING:
    from pyaccount.document.document import Document

#: Intervals this wide are good enough for a contrast; the upper end is a bound all the same.
TOLERANCE = 0.1
#: How near, relatively, the bisection comes, and below which ε it goes no further.
NEAR, SMALLEST = 5e-3, 1e-9


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
    group, least = whole(document.privacy.group_size), RESOLVED[0]
    bounds = compile_document(_single(document, group)).at().bounds()
    # Where losses are bounded δ₁ is 0 from the largest one on, and so is δ.
    pure = engine.ask(bounds, Question(None, 0.0, TOLERANCE)).upper if bounded(bounds) else math.inf
    if delta == 0.0:
        return GroupLemma(delta, math.nextafter(group * pure, math.inf), pure)

    def excess(epsilon: float) -> float:
        if epsilon >= pure:
            return -math.inf
        found = engine.ask(bounds, Question(epsilon, None, TOLERANCE)).upper
        terms = (math.log(max(found, least)), _log_factor(epsilon, group), -math.log(delta))
        # Each term is off by a few units in the last place of what it is made of, and ε by one more where kε is rounded up.
        rounding = 16.0 * sys.float_info.epsilon * (sum(map(abs, terms)) + group * epsilon + 1.0)
        over = math.fsum(terms) + rounding
        if found <= least:
            return -math.inf if over <= 0.0 else math.nan
        return over

    if excess(0.0) <= 0.0:
        return GroupLemma(delta, 0.0, 0.0)
    low, high = 0.0, max(1e-3, engine.ask(bounds, Question(None, delta, TOLERANCE)).upper)
    while (value := excess(high)) > 0.0:
        low, high = high, min(1.3 * high, pure)
    if math.isnan(value):
        return GroupLemma(delta, None, None)
    while high - low > NEAR * high and high > SMALLEST:
        middle = 0.5 * (low + high)
        if excess(middle) <= 0.0:
            high = middle
        else:
            low = middle
    return GroupLemma(delta, math.nextafter(group * high, math.inf), high)


def _single(document: Document, group: int) -> Document:
    """The document for one record, in the data set of the chain from one neighbour to the other where its ε is largest."""
    single = document.with_value(("privacy", "group_size"), 1)
    if document.privacy.adjacency != "add-remove":
        return single
    # The chain passes through smaller data sets, where a batch of the same size is a larger share.
    for body in document.bodies:
        if body.sampler.fixed_draws and body.training.dataset_size is not None:
            sizes = {"dataset_size": body.training.dataset_size - group + 1, "expected_batch_size": body.batch_size()}
            # A rate would give another batch.
            stated = body.training.model_dump(exclude_none=True, exclude=set(RATE_FIELDS))
            single = single.with_value((*body.path, "training"), stated | sizes)
    return single


def _log_factor(epsilon: float, group: int) -> float:
    """ln Σ_{i<k} e^{iε}."""
    if epsilon <= 0.0:
        return math.log(group)
    return (group - 1) * epsilon + math.log(-math.expm1(-group * epsilon)) - math.log(-math.expm1(-epsilon))
