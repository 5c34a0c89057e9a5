"""Laws of privacy losses on a lattice, with integer masses that are rounded outward, and their composition.

A *law* is a finite measure on losses k·h and ∞. Its profile is h(α) = Σ p_k·(1 − α·e^(−kh))₊ + p_∞.

**Composition is monotone.** If the profile of one law is nowhere below that of another, the same is true after both are
composed with a third: δ of a product is ∫ h(e^(ε − ℓ)) over the losses ℓ of the third law. So rounds may be replaced one after
the other by laws with larger profiles, and larger masses have larger profiles. A law need not have mass 1.

**Connect the dots** (Doroshenko et al. 2022, arXiv:2207.04380). A profile is convex in α, 1 at α = 0 and not increasing. The
function that is linear between its values at some α_k = e^(kh) is above it, and is the profile of the law of its second
differences.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import NamedTuple

from .enclosures import exp, ln
from .shapes import refused

#: Masses are multiples of 10^−digits, and the spacing h is a multiple of 2^−SPACING_BITS.
SPACING_BITS = 60

_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact])


class Law(NamedTuple):
    """Masses of losses (low + i)·h, in units of 10^−digits, and the mass of an infinite loss."""

    low: int
    masses: list[int]
    infinite: int

    def total(self) -> int:
        """Return the mass of all losses."""
        return sum(self.masses) + self.infinite


class LossGrid(NamedTuple):
    """A lattice of losses and the precision of masses."""

    spacing: int
    digits: int
    bits: int

    def at(self, k: int) -> int:
        """Return the loss k·h with `bits` bits, exactly if there are at least as many bits as in the spacing."""
        return k * self.spacing << (self.bits - SPACING_BITS)

    def alpha(self, k: int) -> int:
        """Return e^(kh) within one unit."""
        return exp(self.at(k), self.bits)


def connected(grid: LossGrid, nodes: Sequence[tuple[int, int]]) -> tuple[Law, Law]:
    """Return the laws of the function through the nodes (k, v_k), and of its reflection 1 − α + α·v(1/α).

    With A_g = 1/(e^(gh) − 1), nodes at distances g′ before and g after k, and v = 1 at α = 0, the masses are
    p_k = (v_(k−1) − v_k)(1 + A_g′) − (v_k − v_(k+1))·A_g; p_k = (1 − v_k) − (v_k − v_(k+1))·A_g for the first node;
    p_∞ = v at the last node. The mass of the reflection at −k is p_k·e^(−kh), and at ∞ what is left of 1:
    1 + (slope at 0) = 1 − (1 − v)/α at the first node. v_k are exact integers with grid.bits bits; A_g errs by less than
    2^(2·log₂ A_g + 2) units, which is taken to the safe side. A mass that is negative by rounding or because the nodes are not
    convex is replaced by 0: then the law is still above the function.

    **Checked**: values are in [0, 1] and do not increase, and no mass is negative beyond what errors of 2^24·α units of values
    make, nor that of the reflection at ∞, which means H_α ≥ 1 − α. The masses of both laws add up to 1 from both sides.
    """
    bits, one = grid.bits, 1 << grid.bits
    inverse: dict[int, tuple[int, int]] = {}

    def apart(gap: int) -> tuple[int, int]:
        if gap not in inverse:
            growth = grid.alpha(gap) - one
            inverse[gap] = (one * one // (growth + 1), one * one // (growth - 1) + 1)
        return inverse[gap]

    first, last = nodes[0][0], nodes[-1][0]
    masses, mirrored, raised = [0] * (last - first + 1), [0] * (last - first + 1), (0, 0)
    scale = 10**grid.digits
    for i, (k, value) in enumerate(nodes):
        error = 1 << 24 + max(0, int(k * grid.spacing * 1.45) >> SPACING_BITS)
        lawful = 0 <= value <= one
        if i:
            before = nodes[i - 1][1] - value
            lawful &= before >= -error
            error *= 2 + (apart(k - nodes[i - 1][0])[1] >> bits)
            mass = before * one + before * apart(k - nodes[i - 1][0])[before > 0]
        else:
            mass = (one - value) << bits
        if i + 1 < len(nodes):
            after = value - nodes[i + 1][1]
            mass -= after * apart(nodes[i + 1][0] - k)[after < 0]
            error += error * (apart(nodes[i + 1][0] - k)[1] >> bits)
        if not lawful or mass < -error << bits:
            raise refused(
                f"a bound that is not that of a law, near the loss {k * grid.spacing / (1 << SPACING_BITS):.3g}"
            )
        if not mass:
            continue
        reflection = mass * (grid.alpha(-k) + 1) >> bits
        if mass > 0:
            masses[k - first] = -(-mass * scale >> 2 * bits)
            mirrored[last - k] = -(-(reflection + 1) * scale >> 2 * bits)
        else:
            raised = raised[0] - mass, raised[1] - reflection
    start = nodes[0]
    left = one - (one - start[1]) * one // (grid.alpha(start[0]) + 1)
    laws = Law(first, masses, -(-nodes[-1][1] * scale >> bits)), Law(-last, mirrored, max(0, -(-left * scale >> bits)))
    # What was negative and is 0, what a unit of A_g changes, and what is rounded up.
    most = [scale + (each * scale >> 2 * bits) + (scale >> 30) + 2 * len(masses) + 4 for each in raised]
    if left < -(1 << 24) or any(not scale <= law.total() <= top for law, top in zip(laws, most, strict=True)):
        raise refused("a law whose masses do not add up to 1")
    return laws


def product(grid: LossGrid, a: Law, b: Law, spare_top: int, spare_low: int) -> Law:
    """Return a law whose profile is at least that of the composition of two.

    The polynomials of masses are multiplied exactly (Kronecker 1882: their coefficients are digits of two large numbers, which
    the decimal module multiplies by number-theoretic transforms), and each coefficient is rounded up to the unit. Losses above
    are moved to ∞ while their mass is at most `spare_top`, and losses below up to the least loss that is kept while their mass
    is at most `spare_low`. Both only raise the profile.
    """
    scale = 10**grid.digits
    masses = _coefficients(a.masses, b.masses, grid.digits, rounded_up=True)
    infinite = -(-(a.infinite * b.total() + b.infinite * a.total()) // scale)
    top = len(masses)
    while top > 1 and masses[top - 1] <= spare_top:
        top -= 1
        spare_top -= masses[top]
        infinite += masses[top]
    low, raised = 0, 0
    while low + 1 < top and raised + masses[low] <= spare_low:
        raised += masses[low]
        low += 1
    masses = masses[low:top]
    masses[0] += raised
    return Law(a.low + b.low + low, masses, infinite)


def _coefficients(a: list[int], b: list[int], digits: int, *, rounded_up: bool) -> list[int]:
    """Return the coefficients of the product of two polynomials, divided by 10^digits and rounded.

    No coefficient exceeds the product of the sums, so all of them have at most `width` digits and do not run into each other.
    """
    width = max(len(str(sum(a) * sum(b))), digits + 1)
    packed = [decimal.Decimal("".join([str(mass).zfill(width) for mass in reversed(each)])) for each in (a, b)]
    whole = str(_EXACT.multiply(packed[0], packed[0] if a is b else packed[1]))
    count = len(a) + len(b) - 1
    whole = whole.zfill(width * count)
    kept, unit = width - digits, int(rounded_up)
    return [int(whole[i : i + kept]) + unit for i in range(width * (count - 1), -1, -width)]


def multiplied(a: list[int], b: list[int], digits: int) -> list[int]:
    """Return the coefficients of a product of polynomials in units of 10^−digits, rounded up."""
    return _coefficients(a, b, digits, rounded_up=True)


def power(grid: LossGrid, law: Law, count: int, spare: int) -> Law:
    """Return a law above the composition of `count` of them; `spare` is the mass that may be moved at each end."""
    steps = 2 * count.bit_length()
    result, done = law, 1
    for bit in bin(count)[3:]:
        for other, times in ((result, 2 * done), *(((law, 2 * done + 1),) if bit == "1" else ())):
            share = spare * times // (count * steps)
            result, done = product(grid, result, other, share // 100, share), times
    return result


def delta(grid: LossGrid, law: Law, epsilon: int) -> int:
    """Return δ(ε) of a law in units of 10^−digits, rounded up; ε has grid.bits bits.

    δ = Σ p_k·(1 − e^(ε − kh))₊ + p_∞. The factor e^(−h) of neighbouring losses is rounded down, and so are its powers.
    """
    bits, one = grid.bits, 1 << grid.bits
    first = max(law.low, epsilon // (grid.spacing << (bits - SPACING_BITS)) + 1)
    factor, step = exp(min(0, epsilon - grid.at(first)), bits) - 1, exp(-grid.at(1), bits) - 1
    total = 0
    for mass in law.masses[first - law.low :]:
        total += mass * (one - factor)
        factor = factor * step >> bits
    return -(-total >> bits) + law.infinite


def epsilon(grid: LossGrid, law: Law, target: int) -> int | None:
    """Return an ε with δ(ε) ≤ `target`, near the least one; None if the mass of ∞ alone is larger."""
    low, high = grid.at(law.low - 1), grid.at(law.low + len(law.masses))
    low = max(low, 0)
    if delta(grid, law, high) > target:
        return None
    if low >= high or delta(grid, law, low) <= target:
        return low
    while high - low > 1 << (grid.bits - 50):
        middle = (low + high) // 2
        low, high = (low, middle) if delta(grid, law, middle) <= target else (middle, high)
    return high


class Cells(NamedTuple):
    """A statistic of the output with whole values: bounds of its masses, from below under P and from above under Q."""

    low: int
    under_p: list[int]
    under_q: list[int]


def lower_delta(grid: LossGrid, parts: Sequence[tuple[Cells, int]], epsilon: int, spare: int) -> int:
    """Return a lower bound of δ(ε) of a composition, in units of 10^−digits.

    In each round a whole number is read off the output, the cell in which it lies. Their sum T is a statistic of all outputs, and
    δ(ε) ≥ Σ_t (P(T = t) − e^ε·Q(T = t))₊, because no statistic has a larger profile. Outputs with small P-mass are left out, at
    every step the same ones under P and Q: there T is another value that the sum leaves out. P is rounded down, Q up.
    """
    result: Cells | None = None

    def joined(a: Cells, b: Cells, share: int) -> Cells:
        p = _coefficients(a.under_p, b.under_p, grid.digits, rounded_up=False)
        q = _coefficients(a.under_q, b.under_q, grid.digits, rounded_up=True)
        low, top = 0, len(p)
        for_low = for_top = share
        while top - low > 1 and p[top - 1] <= for_top:
            top -= 1
            for_top -= p[top]
        while top - low > 1 and p[low] <= for_low:
            for_low -= p[low]
            low += 1
        return Cells(a.low + b.low + low, p[low:top], q[low:top])

    for cells, count in parts:
        run, done = cells, 1
        for bit in bin(count)[3:]:
            run, done = joined(run, run, spare * 2 * done // count), 2 * done
            if bit == "1":
                run, done = joined(run, cells, spare * (done + 1) // count), done + 1
        result = run if result is None else joined(result, run, spare)
    assert result is not None
    bits = grid.bits
    growth = exp(epsilon, bits) + 1
    gains = (p - (-(-q * growth >> bits)) for p, q in zip(result.under_p, result.under_q, strict=True))
    return sum(gain for gain in gains if gain > 0)


def spacing_of(h: float) -> int:
    """Return the spacing near h as an integer."""
    return max(1, round(h * (1 << SPACING_BITS)))


def logarithm(grid: LossGrid, x: int) -> int:
    """Return ln x within one unit."""
    return ln(x, grid.bits)
