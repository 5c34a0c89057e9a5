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
from collections.abc import Callable, Sequence
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

    With A_g = 1/(e^(gh) − 1) for nodes that are g apart, the second differences of v in α are p_k = (v_j − v_k)(1 + A_(k−j)) −
    (v_k − v_i)·A_(i−k) for j < k < i, p_k = (1 − v_k) − … for the first node, since v = 1 at α = 0, and p_∞ = v at the last one.
    The reflection has the mass p_k·e^(−kh) at −k, and at ∞ what the slope at 0 leaves of 1: 1 − (1 − v)/α at the first node. A_g
    errs by less than A_g² + 1 units, which goes to the safe side. A mass that is negative is raised to 0: then the law is still
    above.

    *Checked*, up to errors of 2^24·α units in the values: v is in [0, 1] and does not increase, no mass is negative, nor what the
    reflection leaves at ∞ (H_α ≥ 1 − α), and the masses of both laws add up to 1 from both sides.
    """
    bits, one, scale = grid.bits, 1 << grid.bits, 10**grid.digits
    inverse: dict[int, tuple[int, int]] = {}

    def apart(gap: int) -> tuple[int, int]:
        if gap not in inverse:
            growth = grid.alpha(gap) - one
            inverse[gap] = one * one // (growth + 1), one * one // (growth - 1) + 1
        return inverse[gap]

    first, last = nodes[0][0], nodes[-1][0]
    masses, mirrored, raised = [0] * (last - first + 1), [0] * (last - first + 1), [0, 0]
    for i, (k, value) in enumerate(nodes):
        error = 1 << 24 + max(0, int(k * grid.h * 1.45))
        lawful, mass = 0 <= value <= one, (one - value) << bits
        if i:
            fall, a = nodes[i - 1][1] - value, apart(k - nodes[i - 1][0])
            lawful &= fall >= -error
            mass = fall * one + fall * a[fall > 0]
            error *= 2 + (a[1] >> bits)
        if i + 1 < len(nodes):
            fall, a = value - nodes[i + 1][1], apart(nodes[i + 1][0] - k)
            mass -= fall * a[fall < 0]
            error += error * (a[1] >> bits)
        if not lawful or mass < -error << bits:
            raise NotCheckableError(f"a bound that is not that of a law, near the loss {k * grid.h:.3g}")
        reflection = mass * (grid.alpha(-k) + 1) >> bits if mass else 0
        if mass > 0:
            masses[k - first] = -(-mass * scale >> 2 * bits)
            mirrored[last - k] = -(-(reflection + 1) * scale >> 2 * bits)
        else:
            raised = [raised[0] - mass, raised[1] - reflection]
    left = one - (one - nodes[0][1]) * one // (grid.alpha(first) + 1)
    laws = Law(first, masses, -(-nodes[-1][1] * scale >> bits)), Law(-last, mirrored, max(0, -(-left * scale >> bits)))
    # Beyond 1 there is what was raised to 0, what a unit of A_g changes, and what was rounded up.
    most = [scale + (each * scale >> 2 * bits) + (scale >> 30) + 2 * len(masses) + 4 for each in raised]
    if left < -(1 << 24) or any(not scale <= law.total() <= top for law, top in zip(laws, most, strict=True)):
        raise NotCheckableError("a law whose masses do not add up to 1")
    return laws


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


def product(grid: LossGrid, a: Law, b: Law, spare: int, step: int = 0) -> Law:
    """Return a law above the composition of two.

    Coefficients are rounded up. Losses at both ends are left out while the mass at each is at most `spare`; if there is no tilt,
    the smallest move up to the least that is kept. Numbers that are multiples of a step add up like losses. Their largest are cut
    down to the largest that is kept, while that takes at most `spare` off the mean, which `infinite` counts.
    """
    masses = coefficients(a.masses, b.masses, grid.digits)
    infinite = (
        a.infinite + b.infinite if step else -(-(a.infinite * b.total() + b.infinite * a.total()) // 10**grid.digits)
    )
    top, low, beyond, below = len(masses), 0, 0, 0
    most_low, most_top = (spare // 1000, spare) if step else (spare, spare if a.tilt else spare // 100)
    while top > 1:
        # A cut moves all that is beyond by one step.
        cost = -(-(beyond + masses[top - 1]) * step >> grid.bits) if step else masses[top - 1]
        if cost > most_top:
            break
        top, beyond, most_top, infinite = top - 1, beyond + masses[top - 1], most_top - cost, infinite + cost
    while low + 1 < top and below + masses[low] <= most_low:
        below += masses[low]
        low += 1
    masses = masses[low:top]
    masses[0] += 0 if a.tilt else below
    masses[-1] += beyond if step else 0
    infinite += below if a.tilt else 0
    return Law(a.low + b.low + low, masses, infinite, a.tilt, a.shift + b.shift, a.certain + b.certain)


def repeated(one: T, count: int, join: Callable[[T, T, int], T]) -> T:
    """Return `count` of one thing, by squaring; `join` is told of how many the result consists."""
    result, done = one, 1
    for bit in bin(count)[3:]:
        result, done = join(result, result, 2 * done), 2 * done
        if bit == "1":
            result, done = join(result, one, done + 1), done + 1
    return result


def power(grid: LossGrid, law: Law, count: int, spare: int, step: int = 0) -> Law:
    """Return a law above `count` of them."""
    steps = 2 * count * count.bit_length()
    return repeated(law, count, lambda a, b, times: product(grid, a, b, spare * times // steps, step))


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
