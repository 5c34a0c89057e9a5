"""Compute the black-box bound for groups: the generic conversion of the guarantee for one record."""

from __future__ import annotations

import math
import sys

from pyaccount.document.document import Document
from pyaccount.document.stated import RATE_FIELDS
from pyaccount.execute.certified import contrast_record
from pyaccount.execute.engine import RESOLVED, Engine, Question, mass_at_infinity
from pyaccount.plan.common import number
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.rounds import losses_bounded
from pyaccount.records.certificate import Contrast

#: The relative width of intervals here. It suffices for a contrast, and the upper end is a valid bound at any width.
TOLERANCE = 0.1
#: The relative error of the probability of an infinite loss is far below this.
_ROUNDED = 1e-9
#: The relative width at which the bisection stops, and the ε below which it stops.
NEAR, SMALLEST = 5e-3, 1e-9


#: What the bound is, in words.
WORDS = "the black-box lemma for groups applied to the guarantee for one record"


def group_lemma(document: Document, engine: Engine, delta: float) -> Contrast | None:
    """Return an ε for the group at `delta`, from bounds for one record, by the lemma for black-box mechanisms.

    It is None if no ε for one record has the δ that the lemma needs, or if that δ is too small to be resolved. There is no
    contrast if one record is analysed by drawing samples.

    (ε, δ₁) for one record gives (kε, δ₁·(e^{kε} − 1)/(e^ε − 1)) for k (Vadhan 2017, Lemma 2.2, its sum kept). Any ε
    with
    δ₁(ε)·(e^{kε} − 1)/(e^ε − 1) ≤ δ is valid; bisection finds a small one. If losses are infinite with a probability a, δ₁ is at
    least a for every ε. The factor increases, so that no ε is valid beyond one at which a times the factor is above δ.
    """
    group, least = number(document.privacy.group_size), RESOLVED[0]
    plan = compile_document(_single(document, group))
    if plan.sampled:
        return None
    bounds = plan.at().composed()
    # If losses are bounded, δ₁ is 0 from the largest loss on, and so is δ for the group.
    pure = engine.ask(bounds, Question(None, 0.0, TOLERANCE)).upper if losses_bounded(bounds) else math.inf
    if delta == 0.0:
        return contrast_record(WORDS, math.nextafter(group * pure, math.inf), delta)

    floor = max(mass_at_infinity(side.upper) for side in bounds.values()) * (1.0 - _ROUNDED)

    def hopeless(epsilon: float) -> bool:
        """Return whether neither this ε nor a larger one is valid."""
        return floor > least and math.log(floor) + _log_factor(epsilon, group) > math.log(delta) + _ROUNDED

    def excess(epsilon: float) -> float:
        if epsilon >= pure:
            return -math.inf
        found = engine.ask(bounds, Question(epsilon, None, TOLERANCE)).upper
        terms = (math.log(max(found, least)), _log_factor(epsilon, group), -math.log(delta))
        # Each term has a rounding error of a few units in its last place; ε one more because kε is rounded up.
        rounding = 16.0 * sys.float_info.epsilon * (sum(map(abs, terms)) + group * epsilon + 1.0)
        over = math.fsum(terms) + rounding
        if found <= least:
            return -math.inf if over <= 0.0 else math.nan
        return over

    if excess(0.0) <= 0.0:
        return contrast_record(WORDS, 0.0, delta)
    low, high = 0.0, max(1e-3, engine.ask(bounds, Question(None, delta, TOLERANCE)).upper)
    while (value := excess(high)) > 0.0:
        if hopeless(high):
            return contrast_record(WORDS, math.inf, delta)
        low, high = high, min(1.3 * high, pure)
    if math.isnan(value):
        return contrast_record(WORDS, math.inf, delta)
    while high - low > NEAR * high and high > SMALLEST:
        middle = 0.5 * (low + high)
        if excess(middle) <= 0.0:
            high = middle
        else:
            low = middle
    return contrast_record(WORDS, math.nextafter(group * high, math.inf), delta)


def _single(document: Document, group: int) -> Document:
    """Return the document for one record, for the data set between the two neighbours at which its ε is largest."""
    single = document.with_value(("privacy", "group_size"), 1)
    if document.privacy.adjacency != "add-remove":
        return single
    # The chain of neighbours contains smaller data sets, in which a batch of the same size is a larger share.
    for run in document.runs():
        if run.sampler.fixed_draws and run.training.dataset_size is not None:
            sizes: dict[str, object] = {"dataset_size": run.training.dataset_size - group + 1}
            if not run.rates_scheduled:
                sizes["expected_batch_size"] = run.batch_size()
            # A stated rate would give a batch of another size, so the sizes replace it.
            stated = run.training.model_dump(exclude_none=True, exclude=set(RATE_FIELDS))
            single = single.with_value((*run.path, "training"), stated | sizes)
    return single


def _log_factor(epsilon: float, group: int) -> float:
    """Return ln Σ_{i<k} e^{iε}."""
    if epsilon <= 0.0:
        return math.log(group)
    return (group - 1) * epsilon + math.log(-math.expm1(-group * epsilon)) - math.log(-math.expm1(-epsilon))
