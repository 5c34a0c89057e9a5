"""Rounds with a fixed number of draws, and truncated ones; the laws of how often a record is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from .enclosures import up
from .lattice import LossGrid
from .rounds import MixtureRound, Round, gaussian


class Replaced(Round):
    """Draws of a fixed number, where each draw of the record displaces another one (sections 1.2 and 1.3).

    H_α′ ≤ Σ_(j≥1) p_j·G_(2j)(1 + (α′ − 1)/η) for α′ ≥ 1, in both directions, for replace-one, and for add-remove and zero-out
    as well. p_j, η and the shift are rounded up: the bound grows with each of them, as α falls with η. `best` has further
    bounds; the lower hull of the least of them is a bound, since the profile is convex.
    """

    symmetric = True

    def __init__(
        self, drawn: Mapping[int, Fraction], lost: Fraction, step: Callable[[int], int], lower: MixtureRound, best: bool
    ) -> None:
        """Take p_j for the first j ≥ 1 and the sum of the others, and the shift of one displaced draw."""
        self.drawn, self.lost, self.step, self.lower, self.hull = dict(drawn), lost, step, lower, best
        self.both = MixtureRound(drawn, step, {-j: p for j, p in drawn.items()}, lost) if best else None

    def value(self, grid: LossGrid, k: int) -> int:
        """Return the least of the bounds at e^(kh), k ≥ 0."""
        bits, one, s = grid.bits, 1 << grid.bits, self.step(grid.bits)
        eta = up(sum(self.drawn.values(), self.lost), bits)
        wanted = grid.alpha(k)
        alpha = one + (((wanted - one) << bits) // eta if wanted > one else 0)
        slack = one // eta + 2
        joint = sum(up(p, bits) * (gaussian(alpha, j * s, grid) + slack) >> bits for j, p in self.drawn.items())
        self.infinite = 2 * up(self.lost, bits)
        joint += len(self.drawn) + up(self.lost, bits)
        if self.both is None:
            return joint
        beta = (wanted << bits) // alpha
        blend = ((one - beta + 2) * self.lower.value(grid, k) + (beta + 2) * joint >> bits) + 4
        return min(joint, blend, self.both.value(grid, k))

    def masses(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return those of two concrete data sets: the record adds 1 where others add −1, and so does what replaces it."""
        return self.lower.masses(grid, k)


class ZeroedOut(Round):
    """Draws of a fixed number under zero-out (section 1.3), for α′ ≥ 1 with α = 1 + (α′ − 1)/η:

    remove: Σ (p_j/η)·H_α′((1−η)N(0) + ηN(2j) ‖ (1−η)N(0) + ηN(j)); add: Σ p_j·G_j(α). With `best` the pair Σ p_j N(2j) against
    Σ p_j N(−j), and the bound of `Replaced`, hold as well, and the least is taken.
    """

    def __init__(
        self, drawn: Mapping[int, Fraction], lost: Fraction, shift: Callable[[int], int], other: Round, best: bool
    ) -> None:
        """Take p_j, what they leave out, the shift of one draw, and the bound of `Replaced`."""
        self.drawn, self.lost, self.shift, self.other, self.hull = dict(drawn), lost, shift, other, True
        self.eta = min(Fraction(1), sum(drawn.values(), lost))
        self.pairs = {j: MixtureRound({2 * j: self.eta}, shift, {j: self.eta}) for j in drawn}
        twice = {2 * j: weight for j, weight in drawn.items()}
        self.both = [MixtureRound(twice, shift, {-j: weight for j, weight in drawn.items()}, lost)] if best else []
        self.lower = MixtureRound(twice, shift, drawn, lost)

    def value(self, grid: LossGrid, k: int) -> int:
        """Return the least bound; below α = 1 by reflection."""
        bits, one, slack = grid.bits, 1 << grid.bits, len(self.drawn) + up(self.lost, grid.bits) + 4
        least = [pair.value(grid, k) for pair in self.both]
        if k >= 0:
            shares = {j: up(min(Fraction(1), weight / self.eta), bits) for j, weight in self.drawn.items()}
            least.append(sum(share * self.pairs[j].value(grid, k) >> bits for j, share in shares.items()) + slack)
            return min([*least, self.other.value(grid, k)])
        eta, wanted = up(self.eta, bits), grid.alpha(-k)
        alpha, s = one + ((wanted - one) << bits) // eta, self.shift(bits)
        unsure = one // eta + 2
        added = (
            sum(up(w, bits) * (gaussian(alpha, j * s, grid) + unsure) >> bits for j, w in self.drawn.items()) + slack
        )
        here = grid.alpha(k)
        below = one - here + 2 + ((here + 1) * min(added, self.other.value(grid, -k)) >> bits)
        return min([*least, below])

    def masses(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return those of two data sets: the record adds 1 or nothing, and others −1."""
        return self.lower.masses(grid, k)


class Blend(Round):
    """Σ_i w_i·H(P_i‖Q_i): which pair it is is released, and does not depend on the record (section 4.5)."""

    def __init__(self, parts: Sequence[tuple[Fraction, Round]], lower: MixtureRound) -> None:
        """Take the weights, rounded up, and a pair for the lower end."""
        self.parts, self.lower = list(parts), lower

    def value(self, grid: LossGrid, k: int) -> int:
        """Return the sum of the values."""
        return sum((up(weight, grid.bits) * part.value(grid, k) >> grid.bits) + 2 for weight, part in self.parts)

    def masses(self, grid: LossGrid, k: int) -> tuple[int, int] | None:
        """Return those of the pair for the lower end."""
        return self.lower.masses(grid, k)


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


def hypergeometric(records: int, drawn: int, group: int) -> tuple[dict[int, Fraction], Fraction]:
    """Return the law of how many of `group` records are among `drawn` of `records`, for j ≥ 1, exactly."""
    whole = math.comb(records, group)
    law = {
        j: Fraction(math.comb(drawn, j) * math.comb(records - drawn, group - j), whole)
        for j in range(1, min(group, drawn) + 1)
    }
    return {j: weight for j, weight in law.items() if weight}, Fraction(0)


def mixed(first: Mapping[int, Fraction], second: Callable[[int], Mapping[int, Fraction]]) -> dict[int, Fraction]:
    """Return Σ_i first(i)·second(i)(j) for j ≥ 1, rounded up."""
    law: dict[int, Fraction] = {}
    for i, weight in first.items():
        for j, inner in second(i).items():
            law[j] = law.get(j, Fraction(0)) + weight * inner
    return {j: Fraction(up(weight, 300), 1 << 300) for j, weight in law.items()}
