"""Rounds with a fixed number of draws, and truncated ones; the laws of how often a record is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from .enclosures import exp, tail, up
from .lattice import LossGrid, logarithm
from .rounds import ROUNDED, MixtureRound, Round, gaussian
from .shapes import refused


class DisplacingDraws(Round):
    """A fixed number of draws, where each draw of the record displaces another one (sections 1.2 and 1.3).

    P, Q and M are the laws with one record, with what is in its place, and without draws of either. If the record is drawn j
    times, P and M differ by a·j at most, Q and M by b·j, P and Q by d·j. Let α = 1 + (α′ − 1)/η and β = α′/α for α′ ≥ 1. Then
    H_α′(P‖Q) = η·H_α(P₁‖(1−β)M + βQ₁), with P₁ and Q₁ the laws if it is drawn, is at most each of

    - *joint* (a = d): Σ_(j≥1) p_j·G_(aj)(α); *pairs* (a ≠ d): Σ p_j·H_α(N(aj)‖(1−β)N(0) + βN(bj)). This ratio increases, unlike
      that of (1−η)N(0) + ηN(aj) to (1−η)N(0) + ηN(bj), which falls below 1 first if the shifts are large;
    - with `common`, if all draws come from one sequence, *blend*: (1−β)·H_α′(Σ p_j N(aj)‖N(0)) + β·Σ p_j G_(dj)(α), and *both*:
      Σ p_j N(aj) against Σ p_j N(−bj).

    Replace-one has (a, b, d) = (2, 2, 2) in both directions, zero-out (2, 1, 1) and, the other way round, (1, 2, 1). p_j, η and
    shifts are rounded up: each bound grows with them. The lower hull of the least is a bound, since the profile is convex.
    """

    hull = True

    def __init__(
        self, drawn: Mapping[int, Fraction], lost: Fraction, shift: Callable[[int], int], *, zeroed: bool, common: bool
    ) -> None:
        """Take p_j for the first j ≥ 1 and the sum of the others, the shift of one draw, and what is in the record's place."""
        self.drawn, self.lost, self.shift, self.common = dict(drawn), lost, shift, common
        self.symmetric, self.eta = not zeroed, min(Fraction(1), sum(drawn.values(), lost))
        self.sides = [(2, 1, 1), (1, 2, 1)] if zeroed else [(2, 2, 2)]
        # Two data sets: the record adds 1, and others −1; what is in its place adds nothing, or −1 as well.
        self.lower = MixtureRound(self._times(2), shift, self._times(1) if zeroed else None, lost)
        self.alone = {a: MixtureRound(self._times(a), shift, None, lost) for a, _, _ in self.sides}
        self.both = {a: MixtureRound(self._times(a), shift, self._times(-b), lost) for a, b, _ in self.sides}
        self._powers: dict[tuple[int, int], tuple[int, int]] = {}

    def _times(self, factor: int) -> dict[int, Fraction]:
        return {factor * j: weight for j, weight in self.drawn.items()}

    def _least(self, grid: LossGrid, k: int, a: int, d: int) -> int:
        """Return the least of the bounds at e^(kh), k ≥ 0, in the direction where P and M differ by a·j."""
        bits, one, s = grid.bits, 1 << grid.bits, self.shift(grid.bits)
        lost, eta, wanted = up(self.lost, bits), up(self.eta, bits), grid.alpha(k)
        alpha = one + (((wanted - one) << bits) // eta if wanted > one else 0)
        slack, beta = one // eta + 2, (wanted << bits) // alpha
        joint = sum(up(p, bits) * (gaussian(alpha, d * j * s, grid) + slack) >> bits for j, p in self.drawn.items())
        joint += len(self.drawn) + lost
        found = [joint]
        if a != d:
            known = {j: self._pair(j, alpha, min(one, beta + slack), grid) + slack for j in self.drawn}
            found = [sum(up(p, bits) * known[j] >> bits for j, p in self.drawn.items()) + len(known) + lost]
        if self.common:
            # β errs by less than the relative error of α, which is 1/η units.
            weights = one - beta + slack, beta + slack
            blend = (weights[0] * self.alone[a].value(grid, k) + weights[1] * joint >> bits) + 4
            found += [blend, self.both[a].value(grid, k)]
        self.infinite = 2 * lost
        return min(found)

    def _pair(self, j: int, alpha: int, beta: int, grid: LossGrid) -> int:
        """Return H_α(N(2j)‖(1−β)N(0) + βN(j)), for αβ ≥ 1. It grows with β, as large outputs are more likely under N(j).

        With w = (js)² and y = e^(jst) the ratio is y²e^(−2w)/((1 − β) + βe^(−w/2)·y), which increases, and is α at the positive
        root of y² − By − C with B = αβe^(3w/2) and C = α(1 − β)e^(2w). y ≥ B ≥ 1, so that B, the root and ln y err by fewer than
        12 units relatively, and js·t by js more; the ratio errs by at most twice that. So P − αQ misses at most α times it.
        """
        bits, one, s = grid.bits, 1 << grid.bits, j * self.shift(grid.bits)
        if (bits, j) not in self._powers:
            square = s * s >> bits
            self._powers[bits, j] = exp(3 * square >> 1, bits), exp(2 * square, bits)
        first, second = self._powers[bits, j]
        b, c = alpha * beta * first >> 2 * bits, alpha * (one - beta) * second >> 2 * bits
        t = (logarithm(grid, (b + math.isqrt(b * b + (c << bits + 2))) >> 1) << bits) // s
        p, q, other = (tail(t - i * s, bits) for i in (2, 0, 1))
        errors = ((alpha >> bits) + 2) * (4 * (s >> bits) + 64)
        return p - (alpha * ((one - beta) * q + beta * other) >> 2 * bits) + errors

    def value(self, grid: LossGrid, k: int) -> int:
        """Return the least bound; below α = 1 by reflection."""
        if k >= 0:
            return self._least(grid, k, *self.sides[0][::2])
        here = grid.alpha(k)
        return (1 << grid.bits) - here + 2 + ((here + 1) * self._least(grid, -k, *self.sides[-1][::2]) >> grid.bits)


class Blend(Round):
    """Σ_i w_i·H(P_i‖Q_i): which pair it is is released, and does not depend on the record (section 4.5)."""

    def __init__(self, parts: Sequence[tuple[Fraction, Round]], lower: MixtureRound) -> None:
        """Take the weights, rounded up, and a pair for the lower end."""
        if not 1 <= sum(weight for weight, _ in parts) <= 1 + ROUNDED or min(weight for weight, _ in parts) < 0:
            raise refused("cases whose probabilities do not add up to 1")
        self.parts, self.lower = list(parts), lower

    def value(self, grid: LossGrid, k: int) -> int:
        """Return the sum of the values."""
        return sum((up(weight, grid.bits) * part.value(grid, k) >> grid.bits) + 2 for weight, part in self.parts)


def binomial(trials: int, p: Fraction, least: Fraction, bits: int = 300) -> tuple[dict[int, Fraction], Fraction]:
    """Return Bin(j; trials, p) for the first j ≥ 1 and a bound of the sum of the others, rounded up to 2^−bits.

    Terms follow from one another by the factor (trials − j)/(j + 1)·p/(1 − p), and are rounded up. Once this factor is below ½,
    what follows a term is below that term. The last terms are left out once they are below `least`.
    """
    if p == 1:
        return {trials: Fraction(1)}, Fraction(0)
    unit = 1 << bits
    base = (unit * (p.denominator - p.numerator) ** trials) // p.denominator**trials + 1
    odds, law, j, term = p / (1 - p), dict[int, Fraction](), 0, base
    while j < trials:
        factor = Fraction(trials - j, j + 1) * odds
        term = math.ceil(term * factor)
        j += 1
        law[j] = Fraction(term, unit)
        if factor < Fraction(1, 2) and law[j] <= least:
            return _whole(law, Fraction(base, unit), law[j]), law[j]
    return _whole(law, Fraction(base, unit)), Fraction(0)


def _whole(law: dict[int, Fraction], none: Fraction, lost: Fraction = Fraction(0)) -> dict[int, Fraction]:
    """Return a law of j ≥ 1; raise unless it adds up to 1 with the probability of 0 and what is lost, all rounded up."""
    if not 1 <= sum(law.values(), none + lost) <= 1 + lost + ROUNDED:
        raise refused("draws whose probabilities do not add up to 1")
    return law


def hypergeometric(records: int, drawn: int, group: int) -> dict[int, Fraction]:
    """Return the law of how many of `group` records are among `drawn` of `records`, for j ≥ 1, exactly."""
    whole = math.comb(records, group)
    law = {
        j: Fraction(math.comb(drawn, j) * math.comb(records - drawn, group - j), whole)
        for j in range(1, min(group, drawn) + 1)
    }
    none = Fraction(math.comb(records - drawn, group), whole)
    return _whole({j: weight for j, weight in law.items() if weight}, none)


def mixed(first: Mapping[int, Fraction], second: Callable[[int], Mapping[int, Fraction]]) -> dict[int, Fraction]:
    """Return Σ_i first(i)·second(i)(j) for j ≥ 1, rounded up."""
    law: dict[int, Fraction] = {}
    for i, weight in first.items():
        for j, inner in second(i).items():
            law[j] = law.get(j, Fraction(0)) + weight * inner
    return {j: Fraction(up(weight, 300), 1 << 300) for j, weight in law.items()}
