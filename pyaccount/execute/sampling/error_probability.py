"""When a test accepts a claim: which δ₀ is tested for the δ that is stated, and with which probability it may err.

A mechanism that is run only when an ε and δ₀ were accepted, where a false claim is with probability q at most, is
(ε, δ₀ + q(1 − δ₀))-differentially private (Wang et al. 2023, Theorem 9): q can be folded into δ, or stated beside the guarantee.
Where a search may start once more after a first rejection each start has its share of q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.execute.sampling.tests_of_claims import FixedSample, plan_fixed_sample

if TYPE_CHECKING:
    from pyaccount.document.document import Document

#: The probability of accepting a false claim, as a share of δ.
FAILURE_SHARE = 0.01
#: How often a search may start, each at the price of its own q.
STARTS = 2


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The claim δ₀ to be tested, and the wealth e^`log_target` that a test must reach: its q is the inverse of that."""

    delta: float
    log_target: float
    #: The tests that may end the search: the probability that any errs is so many times that of one.
    starts: int
    #: Instead of betting: the mean of a number of samples fixed beforehand.
    fixed: FixedSample | None = None

    @property
    def probability(self) -> float:
        """Of accepting a false claim, in one test."""
        return math.exp(-self.log_target)


def folded(delta: float, starts: int) -> Acceptance:
    """Of a claim δ₀ whose acceptance gives `delta`, with the probability to err folded in."""
    q = FAILURE_SHARE * delta
    return Acceptance((delta - q) / (1.0 - q), math.log(starts / q), starts)


def beside(delta: float, probability: float) -> Acceptance:
    """Of a claim with `delta` itself, the probability to err being stated beside it."""
    return Acceptance(delta, math.log(STARTS / probability), STARTS)


def by_a_fixed_sample(delta: float) -> Acceptance:
    """Of `delta`, by the mean of a number of plain samples. There is one start: its q is part of the plan."""
    plan = plan_fixed_sample(delta)
    return Acceptance(plan.bar, -math.log(plan.failure_probability), 1, plan)


def of_claim(document: Document, starts: int) -> Acceptance:
    """Of the document's claim, as it asks for it to be verified."""
    delta = document.privacy.delta
    assert delta != "solve"
    return by_a_fixed_sample(delta) if document.accounting.verification == "fixed-sample" else folded(delta, starts)
