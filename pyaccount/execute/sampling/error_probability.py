"""Define when a test accepts a claim: which δ₀ is tested for the δ that is stated, and with which error probability.

Consider a mechanism that is run only if an ε and δ₀ were accepted, where a false claim is accepted with probability at
most q. It is (ε, δ₀ + q(1 − δ₀))-differentially private (Wang et al. 2023, Theorem 9). So q can be included in δ, or
stated beside the guarantee. If a search may start a second time after a first rejection, each start has its share of q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.execute.sampling.tests_of_claims import FixedSample, plan_fixed_sample
from pyaccount.plan.common import number

if TYPE_CHECKING:
    from pyaccount.document.document import Document

#: The probability of accepting a false claim, as a share of δ.
FAILURE_SHARE = 0.01
#: How often a search may start; each start has its own q.
STARTS = 2


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The claim δ₀ to be tested, and the wealth e^`log_target` that a test must reach; its q is e^−`log_target`."""

    delta: float
    log_target: float
    #: The δ that is stated if the test accepts.
    stated: float
    #: The number of tests that may end the search: the probability that any errs is at most that of one, times this.
    starts: int
    #: If set, the mean of a number of samples fixed beforehand is tested instead of betting.
    fixed: FixedSample | None = None

    @property
    def probability(self) -> float:
        """The probability of accepting a false claim in one test."""
        return math.exp(-self.log_target)


def folded(delta: float, starts: int) -> Acceptance:
    """Return the test of a claim δ₀ whose acceptance gives `delta`, with the error probability included in it."""
    q = FAILURE_SHARE * delta
    return Acceptance((delta - q) / (1.0 - q), math.log(starts / q), delta, starts)


def stated_separately(delta: float, probability: float) -> Acceptance:
    """Return the test of a claim with `delta` itself; the error probability is stated beside it."""
    return Acceptance(delta, math.log(STARTS / probability), delta, STARTS)


def _by_a_fixed_sample(delta: float) -> Acceptance:
    """Return the test of `delta` by the mean of a fixed number of plain samples. Its q is part of that plan."""
    plan = plan_fixed_sample(delta)
    return Acceptance(plan.bar, -math.log(plan.failure_probability), delta, 1, plan)


def of_claim(document: Document, starts: int) -> Acceptance:
    """Return the test of the document's claim, by the kind of verification that the document asks for."""
    delta = number(document.privacy.delta)
    return _by_a_fixed_sample(delta) if document.accounting.verification == "fixed-sample" else folded(delta, starts)
