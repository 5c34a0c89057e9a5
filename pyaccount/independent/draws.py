"""Rounds with a fixed number of draws, and truncated ones; the laws of how often a record is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from .enclosures import up
from .lattice import LossGrid
from .rounds import MixtureRound, Round, gaussian


class DisplacingDraws(Round):
    """A fixed number of draws, where each draw of the record displaces another one (sections 1.2 and 1.3).

    P, Q and M are the laws with one record, with what is in its place, and without draws of either. If the record is drawn j
    times, P and M differ by a·j at most, Q and M by b·j, P and Q by d·j. Let α = 1 + (α′ − 1)/η and β = α′/α for α′ ≥ 1. Then
    H_α′(P‖Q) = η·H_α(P₁‖(1−β)M + βQ₁), with P₁ and Q₁ the laws if it is drawn, is at most each of

    - *joint* (a = d): Σ_(j≥1) p_j·G_(aj)(α); *pairs* (a ≠ d): Σ (p_j/η)·H_α′((1−η)N(0) + ηN(aj) ‖ (1−η)N(0) + ηN(bj));
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
        self.pairs = {j: MixtureRound({2 * j: self.eta}, shift, {j: self.eta}) for j in drawn}

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
        if a == d:
            found = [joint]
        else:
            shares = {j: up(min(Fraction(1), p / self.eta), bits) for j, p in self.drawn.items()}
            apart = sum(share * self.pairs[j].value(grid, k) >> bits for j, share in shares.items())
            found = [apart + len(shares) + lost + 2]
        if self.common:
            # β errs by less than the relative error of α, which is 1/η units.
            weights = one - beta + slack, beta + slack
            blend = (weights[0] * self.alone[a].value(grid, k) + weights[1] * joint >> bits) + 4
            found += [blend, self.both[a].value(grid, k)]
        self.infinite = 2 * lost
        return min(found)

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
            return law, Fraction(term, unit)
    return law, Fraction(0)


def hypergeometric(records: int, drawn: int, group: int) -> dict[int, Fraction]:
    """Return the law of how many of `group` records are among `drawn` of `records`, for j ≥ 1, exactly."""
    whole = math.comb(records, group)
    law = {
        j: Fraction(math.comb(drawn, j) * math.comb(records - drawn, group - j), whole)
        for j in range(1, min(group, drawn) + 1)
    }
    return {j: weight for j, weight in law.items() if weight}


def mixed(first: Mapping[int, Fraction], second: Callable[[int], Mapping[int, Fraction]]) -> dict[int, Fraction]:
    """Return Σ_i first(i)·second(i)(j) for j ≥ 1, rounded up."""
    law: dict[int, Fraction] = {}
    for i, weight in first.items():
        for j, inner in second(i).items():
            law[j] = law.get(j, Fraction(0)) + weight * inner
    return {j: Fraction(up(weight, 300), 1 << 300) for j, weight in law.items()}
