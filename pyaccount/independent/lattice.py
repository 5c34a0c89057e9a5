"""Laws of privacy losses on a lattice, with integer masses that are rounded outward, and their composition.

A *law* is a measure on losses k·h and ∞; its profile is h(α) = Σ p_k·(1 − α·e^(−kh))₊ + p_∞ at α = e^ε.

**Composition is monotone.** δ of two mechanisms is the mean of the one's profile h(e^(ε − ℓ)) over the losses ℓ of the other. So
a law may be replaced by one with a larger profile, one after the other, and then δ only grows. Larger masses have a larger
profile; a law need not have mass 1; a loss may be moved up, also to ∞.

**Connect the dots** (Doroshenko et al. 2022, arXiv:2207.04380). A profile is convex in α, 1 at α = 0, and does not increase. So
the function that is linear between its values at some α_k = e^(kh), and constant beyond the last, is above it. It is the profile
of a law on the losses kh.

**Tilted masses.** Masses of a law may stand as p_k·e^(θkh − κ), θ ≥ 0: the product of two such laws is tilted with the same θ,
and κ adds up. Losses with a tilted mass c may then be left out. As (1 − e^(ε−ℓ))₊ ≤ e^(θ(ℓ−ε)), they take at most c·e^(κ−θε) off
δ(ε), which is added; in a product c is multiplied by the mass of the other law. So a far tail needs few digits and losses.
"""

from __future__ import annotations

import decimal
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeVar

from .enclosures import exp

#: The spacing h of a lattice is a multiple of 2^−SPACING, and a tilt θ one of 2^−TILT.
SPACING, TILT = 60, 10
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact])
T = TypeVar("T")


class NotCheckableError(Exception):
    """Raised where no bound is implemented, or where a hypothesis of a proof is not met."""


class LossGrid(NamedTuple):
    """Losses k·h with h = spacing·2^−60, masses in units of 10^−digits, and values of functions with `bits` bits."""

    spacing: int
    digits: int
    bits: int

    @property
    def h(self) -> float:
        """The spacing, for choices."""
        return self.spacing / (1 << SPACING)

    def loss(self, k: int) -> int:
        """Return k·h, exactly, as θkh is: there are at least SPACING + TILT bits."""
        return k * self.spacing << self.bits - SPACING

    def alpha(self, k: int) -> int:
        """Return e^(kh) within one unit."""
        return exp(self.loss(k), self.bits)

    def reflected(self, k: int, value: int) -> int:
        """Return a bound of H_α at e^(kh) from one of the exchanged pair at e^(−kh): 1 − α + α·H_(1/α)."""
        alpha, one = self.alpha(k), 1 << self.bits
        return max(0, one - alpha + 2 + ((alpha + 1) * value >> self.bits))


class Law(NamedTuple):
    """Masses of the losses (low + i)·h, and what counts as an infinite loss, or is left out, in units of 10^−digits.

    All of these are tilted by θ and κ. `certain`, which has grid.bits bits, is added to δ as it is.
    """

    low: int
    masses: list[int]
    infinite: int
    tilt: int = 0
    shift: int = 0
    certain: int = 0

    def total(self) -> int:
        """Return the mass of all losses."""
        return sum(self.masses) + self.infinite


def connected(grid: LossGrid, nodes: Sequence[tuple[int, int]]) -> tuple[Law, Law]:
    """Return the law of the function through nodes (k, v_k), and that of its reflection 1 − α + α·v(1/α).

    Where the slope in α grows by q, the law has the mass q·α, and the other one q, which the reflection has at −k. Before the
    first node the slope is (v − 1)/α, as v = 1 at α = 0; beyond the last one it is 0. p_∞ is the last value, and that of the
    reflection 1 less the sum of all q. Slopes and α err by a unit: q is raised by 2, and to 0 if it is negative; then the law is
    still above. With `more` bits errors of α move no profile by more than the units that are added to p_∞.

    *Checked*, up to errors of 2^24·α units in the values: v is in [0, 1], the slope grows, and is at least −1 (H_α ≥ 1 − α),
    and the masses of both laws add up to 1 from both sides.
    """
    first, last, scale = nodes[0][0], nodes[-1][0], 10**grid.digits
    more = int(max(-first, last) * grid.h * 1.45) + 2
    fine = grid._replace(bits=grid.bits + more)
    bits, one = fine.bits, 1 << fine.bits
    masses, mirrored = [0] * (last - first + 1), [0] * (last - first + 1)
    points = [(0, one), *((fine.alpha(k), value << more) for k, value in nodes)]
    gaps = [b - a for (a, _), (b, _) in pairwise(points)]
    slopes = [(w - v << bits) // gap for ((_, v), (_, w)), gap in zip(pairwise(points), gaps, strict=True)] + [0]
    for i, (k, _) in enumerate(nodes):
        (alpha, value), q = points[i + 1], slopes[i + 1] - slopes[i] + 2
        if not 0 <= value <= one or q < -(max(one, alpha) << 25 + more) // min(gaps[i : i + 2]):
            raise NotCheckableError(f"a bound that is not that of a law, near the loss {k * grid.h:.3g}")
        masses[k - first] = -(-max(0, q) * alpha * scale >> 2 * bits)
        mirrored[last - k] = -(-max(0, q) * scale >> bits)
    left = one + slopes[0]
    beyond = [-(-(max(0, each) + (4 << more)) * scale >> bits) for each in (points[-1][1], left)]
    laws = Law(first, masses, beyond[0]), Law(-last, mirrored, beyond[1])
    if left < -(1 << 24 + more) or any(not scale <= law.total() <= scale + (scale >> 10) for law in laws):
        raise NotCheckableError("a law whose masses do not add up to 1")
    return laws


def hull(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the lower convex hull of points, of which each is on the right of the one before."""
    kept: list[tuple[int, int]] = []
    for x, y in points:
        while len(kept) > 1 and (kept[-1][1] - kept[-2][1]) * (x - kept[-1][0]) >= (y - kept[-1][1]) * (
            kept[-1][0] - kept[-2][0]
        ):
            kept.pop()
        kept.append((x, y))
    return kept


def coefficients(a: list[int], b: list[int], digits: int, *, up: bool = True) -> list[int]:
    """Return the coefficients of the product of two polynomials, divided by 10^digits and rounded.

    They are the digits of the product of two large numbers (Kronecker 1882), which `decimal` multiplies exactly by
    number-theoretic transforms. None exceeds the product of the sums, so that `width` digits keep them apart.
    """
    width = max(len(str(sum(a) * sum(b))), digits + 1)
    packed = [decimal.Decimal("".join([str(mass).zfill(width) for mass in reversed(each)])) for each in (a, b)]
    count, kept = len(a) + len(b) - 1, width - digits
    whole = str(_EXACT.multiply(packed[0], packed[0] if a is b else packed[1])).zfill(width * count)
    return [int(whole[i : i + kept]) + up for i in range(width * (count - 1), -1, -width)]


def tilted(grid: LossGrid, law: Law, tilt: int, shift: int, digits: int) -> Law:
    """Return the finite losses of a law with tilted masses of so many digits."""
    down, masses = 10 ** (grid.digits - digits) << grid.bits, list[int]()
    for k, mass in enumerate(law.masses, law.low):
        weight = exp((tilt * grid.loss(k) >> TILT) - shift, grid.bits) + 1 if mass else 0
        masses.append(-(-mass * weight // down))
    return Law(law.low, masses, 0, tilt, shift)


def product(grid: LossGrid, a: Law, b: Law, spare: int) -> Law:
    """Return a law above the composition of two.

    Coefficients are rounded up. Losses at both ends are left out, or infinite, while their mass at each is at most `spare`.
    """
    masses = coefficients(a.masses, b.masses, grid.digits)
    low = bisect_right(list(accumulate(masses[:-1])), spare)
    top = len(masses) - bisect_right(list(accumulate(reversed(masses[low + 1 :]))), spare)
    infinite = -(-(a.infinite * b.total() + b.infinite * a.total()) // 10**grid.digits)
    infinite += sum(masses[:low]) + sum(masses[top:])
    return Law(a.low + b.low + low, masses[low:top], infinite, a.tilt, a.shift + b.shift, a.certain + b.certain)


def repeated(one: T, count: int, join: Callable[[T, T, int], T]) -> T:
    """Return `count` of one thing, by squaring; `join` is told of how many the result consists."""
    result, done = one, 1
    for bit in bin(count)[3:]:
        result, done = join(result, result, 2 * done), 2 * done
        if bit == "1":
            result, done = join(result, one, done + 1), done + 1
    return result


def power(grid: LossGrid, law: Law, count: int, spare: int) -> Law:
    """Return a law above `count` of them."""
    steps = 2 * count * count.bit_length()
    return repeated(law, count, lambda a, b, times: product(grid, a, b, spare * times // steps))


def delta(grid: LossGrid, law: Law, epsilon: int) -> int:
    """Return δ(ε) = Σ p_k·(1 − e^(ε − kh))₊ + p_∞, rounded up; all numbers have grid.bits bits.

    With tilted masses p_k is a mass times e^(κ − θkh). This factor follows from the one before by e^(−θh), rounded up, and its
    product with e^(ε − kh) by e^(−(θ+1)h), rounded down.
    """
    bits, h, tilt = grid.bits, grid.loss(1), law.tilt
    first = max(law.low, epsilon // h + 1)
    loss = grid.loss(first)

    def factor(loss: int, less: int = 0) -> int:
        return exp(law.shift - (tilt * loss >> TILT) + less, bits)

    near, step = factor(loss) + 1, exp(-(tilt * h >> TILT), bits) + 1
    far, fall = factor(loss, min(0, epsilon - loss)) - 1, exp(-h - (tilt * h >> TILT), bits) - 1
    total = law.infinite * (factor(epsilon) + 2)
    for mass in law.masses[first - law.low :]:
        total += mass * (near - far)
        near, far = (near * step >> bits) + 1, far * fall >> bits
    return int(-(-total // 10**grid.digits)) + law.certain
