"""Bounds for batches that are seldom truncated: how much δ may exceed that of the same run without truncation.

Of a batch with more than B records, B are kept at random (`samplers.truncated`). Notation: r the numbers of *other* records that
are drawn in each round, which do not depend on the record and are released first; S = {i : r_i ≥ B}, the rounds in which a batch
with the record would be truncated; x the rounds for which the record is drawn, with probability w_x, the same in both data sets
(zero-out); e = Pr[x hits S | r]; α = e^ε ≥ 1; P = Σ_x w_x N(Cx, σ²I) and R = N(0, σ²I) the pair without truncation.

Given r and an x that avoids S, the record displaces no other: which others are kept depends on r alone. So the run given r is
dominated by P_r = (1 − e)P⁰ + eP′ and Q_r = (1 − e)R + eQ′, with P⁰ the law of N(Cx, σ²I) given that x avoids S, and with
some P′ and Q′, of which nothing is used. By joint convexity H_α(P_r‖Q_r) ≤ (1 − e)H_α(P⁰‖R) + e, and likewise the other way
round. Averaged over r these are bounds for the run, and

    E e ≤ Σ_i Pr[r_i ≥ B]·Pr[x_i = 1],     r_i ~ Bin(N − 1, Pr[x_i = 1]),

since x and r are independent, and every other record is drawn for round i with the same probability as the sensitive one.

**Remove.** h(α) = H_α(P‖R) is convex in α and at most 1. As (1 − e)P⁰ ≤ P, (1 − e)H_α(P⁰‖R) ≤ min(1 − e, h((1 − e)α)). For any t
in (0, 1) and D ≥ h(tα) that is at most h(α) + c·e with c = max(D, t)/(1 − t): if e ≤ 1 − t, convexity between α and tα gives
h((1 − e)α) ≤ h(α) + eD/(1 − t); otherwise 1 − e < t < e·t/(1 − t). With t → 0 and D = 1, c = 1 is possible. So

    δ(ε) ≤ H_α(P‖R) + (1 + c)·E e,     c the least of 1 and the max(D, t)/(1 − t).

D is the bound from Hölder's inequality on every sample of a proposal, and so on their mean (the core's `proposal`).

**Add**, for a renewal process: while available the record joins with probability p, then it sits out b − 1 rounds. Let x∖S be x
without its rounds in S, and P~ = Σ_x w_x N(C(x∖S), σ²I), with weights w~ of the patterns y = x∖S.

1. *Losing one round changes the weight little*: for i in S, Pr[x∖S = y, x_i = 1] ≤ ρ·Pr[x∖S = y, x_i = 0], ρ = p(1 − p)^{−b}.
   The map x ↦ x∖{i} is injective and changes a weight by at most this factor. With neighbours l < i < m in x, the ratio is
   p(1 − p)^{(i−l−b) + (m−i−b)} over (1 − p)^{m−l−b}; at the end of the run the exponent is no less than −b. If i comes before
   the first participation m of what is left, let G(i) be the probability of being available in round i without having joined
   before; then G(m) ≥ (1 − p)^{m−i}G(i) whatever the start, and the ratio is p(1 − p)^{m−i−b}G(i)/G(m). If nothing is left, it is
   p(1 − p)^{max(0, n−i−b+1)}G(i) over the probability of no participation, which is at least (1 − p)^{n−i+1}G(i).
2. So Pr[x∖S = y, x hits S] ≤ z·w~_y with z = |S|·π, π = ρ/(1 + ρ), and w_y ≥ (1 − z)·w~_y for y that avoid S: (1 − e)P⁰ ≥ (1 −
   z)P~ and 1 − e ≥ 1 − z.
3. H_α(R‖P~) ≤ H_α(R‖P). H_α(R‖P~) is attained on the set where the likelihood ratio dP~/dR is small. The set is decreasing: with
   y it contains all y′ ≤ y, since C ≥ 0. On such a set N(C(x∖S), σ²I) has no less mass than N(Cx, σ²I), since C(x∖S) ≤ Cx.
4. If z ≤ 1, for every set A: (1 − e)(R(A) − αP⁰(A)) ≤ (1 − e)R(A) − α(1 − z)P~(A) = (1 − z)(R(A) − αP~(A)) + (z − e)R(A). So
   (1 − e)H_α(R‖P⁰) + e ≤ (1 − z)H_α(R‖P) + z. If z > 1 the bound below is vacuous.

    δ(ε) ≤ H_α(R‖P) + E z,     E z = π·Σ_i Pr[r_i ≥ B].

Step 1 does not hold for other samplers: with balls in bins a record is in one of the bins for certain, so that excluding some
bins makes the others likelier.

**Phases and runs.** The proofs use only the stated properties of R and P, so they hold for products with the pairs of other
phases (in 3, for each outcome of the other phases). With several phases e and z add up, since Π(1 − z_k) ≥ 1 − Σz_k.

Sources: truncated batches given r: Dong & Ganesh 2026 (arXiv:2602.09338), Appendix D; vectors and adaptive rounds: their Lemma
D.1, which holds for any law of x; the rest is proven here, and enumerated in `tests/plan/test_rare_truncation.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyaccount.directions import Direction

#: The values of t that are tried in the bound for a removed record.
SHARES = (0.4, 0.25, 0.15, 0.1, 0.06, 0.03, 0.01)
#: More than the few roundings of sums and products of two numbers.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class RareTruncation:
    """The numbers in the bounds above, each an upper bound; for several phases and runs together."""

    #: E e: the probability that the record is ever in a batch that is truncated; it enters the bound for a removed record.
    hit: float
    #: E z: the term in the bound for an added record.
    missed: float

    def times(self, runs: int) -> RareTruncation:
        """Return the numbers for this many runs."""
        more = runs * (1.0 + ROUNDING)
        return RareTruncation(more * self.hit, more * self.missed)

    def plus(self, other: RareTruncation) -> RareTruncation:
        """Return the numbers for two phases together."""
        more = 1.0 + ROUNDING
        return RareTruncation(more * (self.hit + other.hit), more * (self.missed + other.missed))

    @property
    def most(self) -> float:
        """Return the most that is added to δ, in either direction."""
        return max(2.0 * self.hit, self.missed)

    def beyond(self, direction: Direction, epsilon: float, bound: Callable[[float], float]) -> float:
        """Return an upper bound on how much δ(ε) may exceed that of the run without truncation, in units of δ.

        `bound(ε)` is any upper bound on δ of the run without truncation where the record is removed.
        """
        if direction == "add":
            return self.missed
        # A little below ε + ln t, to be safe against rounding.
        values = [(share, epsilon + math.log(share) - ROUNDING * (1.0 + epsilon)) for share in SHARES]
        more = [max(bound(value), share) / (1.0 - share) for share, value in values if value >= 0.0]
        return self.hit * (1.0 + min([1.0, *more])) * (1.0 + ROUNDING)

    def below(self, direction: Direction, epsilon: float) -> float:
        """Return an upper bound on how much δ(ε) may fall short of that of the run without truncation.

        With the record present the two laws differ by at most E e in total variation. This is for data sets whose other
        records contribute nothing, so that without the record there is no difference.
        """
        return self.hit * (math.exp(min(epsilon, 700.0)) if direction == "add" else 1.0) * (1.0 + ROUNDING)
