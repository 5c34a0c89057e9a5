"""Several steps of a stated guarantee: the profile of a group of records, of which only that of one record is known.

Let h be the profile that the stated (ε, δ) allow (`plan.mechanisms.stated`), and g(t) = min (δ + e^ε t), over the stated
points, their reflections (−ε, 1 − e^{−ε}(1 − δ)), and the line 1. So 1 − g is the trade-off function of h; it is symmetric, and
g increases, is concave, and is at least t.

**From above.** Data sets k steps apart have at least the trade-off function 1 − g^{∘k} (Dong, Roth & Su 2022, Theorem 2.14), so
their profile is at most h_k(α) = sup_t [g^{∘k}(t) − αt].

**Attained, at every α at once.** Let M_i be the law on [0, 1] with M_i[0, t] = g^{∘(k−i)}(t), i = 0, …, k. A mechanism that
counts special records, and releases M_i for i of them, where more than k count as k, moves by one step when one record changes.
Since M_i[0, t] = g(M_{i+1}[0, t]), the ratio of M_i to M_{i+1} falls in t, and their profile is sup_t [g(s) − αs] at s =
M_{i+1}[0, t], which is h(α); in the other direction too, because h is symmetric. M_0 and M_k have the profile h_k, and their
data sets differ in k records. Randomized response at kε, which has the same largest loss, is not attained for k ≥ 2.

**Points above.** All lines increase, so g^{∘k} is the minimum of all compositions of k lines. A composition with slope e^S and
intercept c proves h_k(e^S) ≤ c, whichever it is. Its S is a sum of stated decimals, without rounding, and c is a sum of
positive terms. The lines that the orbit of t takes are the composition that touches g^{∘k} at t; those on both sides of every
kink give all vertices of h_k. Kinks of g^{∘k} are the preimages of those of g under g^{∘i}, i < k.

**Points below.** If v ≤ g^{∘k}(t), the *test* (t, v) proves h_k(α) ≥ v − αt. A kink b of g gives the tests (g^{−i}(b),
g^{∘(k−i)}(b)). Points between successive tests, each below both of their lines, have chords that are below one of the lines; so
their lower convex hull is below h_k, wherever the points are. By symmetry the test (1 − v, 1 − t) is as good as (t, v), so
those with t + v ≤ 1 are enough, with the point (0, v − t) of the last one.

**Rounding.** Decimals have 60 digits, and twice those that the smallest ε and δ begin with, so that each step has a relative
error below 1e-50 of what a guarantee can be. A test is moved by 1e-40 in every step to its safe side, an intercept once. The
points below are then lowered by 2⁻⁴⁶ of themselves: the core leaves out vertices that lie on a chord to rounding, which raises
a hull by at most 2⁻⁴⁸ of itself.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from pyaccount.document.mechanisms.base import rounded_up
from pyaccount.rounding import decimal_beside

_Point = tuple[float, float]

#: The most steps of all orbits together, enough for one (ε, δ) and the largest group that is replaced. Beyond it orbits of fewer
#: kinks are followed, which loosens both ends.
MOST_STEPS = 40_000
_TIE = Decimal("1e-25")
#: What the points below are multiplied by.
_LOWERED = Decimal(1) - Decimal(2) ** -46


class ProfileOfSteps(NamedTuple):
    """Points (ε, δ) with ε ≥ 0 of a profile: above it and below it."""

    above: tuple[_Point, ...]
    below: tuple[_Point, ...]
    #: Whether the orbits of all kinks were followed, so that both are the profile to rounding.
    whole: bool


class _Line(NamedTuple):
    """t ↦ intercept + slope·t: a line of g, or several composed. The loss is ln slope in units of the stated decimals."""

    #: None if the line 1 is among those that are composed.
    loss: int | None
    slope: Decimal
    intercept: Decimal

    def at(self, t: Decimal) -> Decimal:
        """Return the value at t."""
        return self.intercept + self.slope * t

    def then(self, other: _Line) -> _Line:
        """Return the composition that applies the other line last."""
        loss = None if self.loss is None or other.loss is None else self.loss + other.loss
        return _Line(loss, self.slope * other.slope, other.at(self.intercept))


class _Test(NamedTuple):
    """v ≤ g^{∘k}(t), with the lines that touch g^{∘k} at t on the left and on the right."""

    t: Decimal
    v: Decimal
    left: _Line
    right: _Line


_SAME = _Line(0, Decimal(1), Decimal(0))
_ONE = _Line(None, Decimal(0), Decimal(1))


@lru_cache(maxsize=64)
def profile_of_steps(points: tuple[_Point, ...], steps: int) -> ProfileOfSteps:
    """Return the profile of so many steps, each of which has all of the stated (ε, δ), ε ≥ 0, taken as their decimals."""
    given = [Fraction(repr(number)) for point in points for number in point]
    digits = max([0, *(-math.floor(math.log10(number)) for number in given if 0 < number < 1)])
    unit = math.lcm(*(number.denominator for number in given[::2]))
    with localcontext(Context(prec=60 + 2 * digits, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        steady = _Steps(_lines(points, unit), steps, Decimal(10) ** -(40 + digits))
        kinks = steady.kinks[:: -(-len(steady.kinks) * steps // MOST_STEPS) or 1]
        tests = [steady.origin(), *(test for kink in kinks for test in steady.tests(kink))]
        above = _above(tests, unit) or ((decimal_beside(steps * max(given[::2]), math.inf), 1.0),)
        return ProfileOfSteps(above, _below(tests, unit), len(kinks) == len(steady.kinks))


def _lines(points: tuple[_Point, ...], unit: int) -> list[_Line]:
    """Return the lines whose minimum is g on [0, 1], in the order in which they are the least."""
    least: dict[int, _Line] = {}
    for epsilon, delta in points:
        loss, slope, intercept = int(Fraction(repr(epsilon)) * unit), Decimal(repr(epsilon)).exp(), Decimal(repr(delta))
        for key, line in (
            (loss, _Line(loss, slope, intercept)),
            (-loss, _Line(-loss, 1 / slope, 1 - (1 - intercept) / slope)),
        ):
            if line.intercept < least.get(key, _ONE).intercept:
                least[key] = line
    ordered = [least[loss] for loss in sorted(least, reverse=True)]
    if all(line.intercept > 0 for line in ordered):
        # The line 1 is the reflection of t ≥ 0. Without a δ above 0 it is met at t = 1 only.
        ordered.append(_ONE)
    kept: list[_Line] = []
    for line in ordered:
        # The line before is left out if it starts no lower, or if this one is below it where it becomes the least.
        while kept and (
            line.intercept <= kept[-1].intercept
            or (len(kept) > 1 and _crossing(kept[-1], line) <= _crossing(kept[-2], kept[-1]))
        ):
            kept.pop()
        kept.append(line)
    return kept


def _crossing(steep: _Line, flat: _Line) -> Decimal:
    return (flat.intercept - steep.intercept) / (steep.slope - flat.slope)


class _Steps:
    """g, and the orbits of its kinks."""

    def __init__(self, lines: list[_Line], steps: int, guard: Decimal) -> None:
        self._lines, self._steps, self._guard = lines, steps, guard
        self.kinks = [_crossing(*pair) for pair in pairwise(lines)]
        self._values = [line.at(kink) for line, kink in zip(lines, self.kinks, strict=False)]

    def origin(self) -> _Test:
        """Return the test at t = 0."""
        *_, (v, left, right) = self._forward(Decimal(0))
        return _Test(Decimal(0), v, left, right)

    def tests(self, kink: Decimal) -> Iterator[_Test]:
        """Yield the tests at the preimages of a kink that are left of the axis of symmetry, t + v ≤ 1."""
        ahead = list(self._forward(kink))
        for back, (t, left, right) in enumerate(self._backward(kink)):
            v, left_ahead, right_ahead = ahead[self._steps - back]
            if t + v <= 1 + self._guard * self._steps:
                yield _Test(t, v, left.then(left_ahead), right.then(right_ahead))

    def _forward(self, x: Decimal) -> Iterator[tuple[Decimal, _Line, _Line]]:
        """Yield a number below g^{∘n}(x), and the compositions on both sides of x, for n = 0, 1, …, k."""
        left = right = _SAME
        yield x, left, right
        for _ in range(self._steps):
            left = left.then(self._lines[bisect_left(self.kinks, x * (1 - _TIE))])
            right = right.then(self._lines[bisect_right(self.kinks, x * (1 + _TIE))])
            x = self._lines[bisect_left(self.kinks, x)].at(x) * (1 - self._guard)
            yield x, left, right

    def _backward(self, t: Decimal) -> Iterator[tuple[Decimal, _Line, _Line]]:
        """Yield a number t with g^{∘n}(t) above that given, and the compositions on both sides, for n < k while t > 0."""
        left = right = _SAME
        for _ in range(self._steps):
            yield t, left, right
            left = self._lines[bisect_left(self._values, t * (1 - _TIE))].then(left)
            right = self._lines[bisect_right(self._values, t * (1 + _TIE))].then(right)
            line = self._lines[bisect_left(self._values, t)]
            if line.loss is None or (t := (t * (1 + self._guard) - line.intercept) / line.slope) <= 0:
                return


def _above(tests: Iterable[_Test], unit: int) -> tuple[_Point, ...]:
    """Return the points of the lines that touch, with both coordinates rounded up, except a largest loss that is a decimal."""
    points: dict[float, float] = {}
    for line in {line for test in tests for line in (test.left, test.right)}:
        if line.loss is None or line.loss < 0 or line.intercept >= 1:
            continue
        delta = float(line.intercept * (1 + Decimal("1e-30")))
        if Decimal(delta) < line.intercept * (1 + Decimal("1e-30")):
            delta = math.nextafter(delta, 1.0)
        exact = Fraction(line.loss, unit)
        epsilon = rounded_up(exact) if delta > 0.0 else decimal_beside(exact, math.inf)
        points[epsilon] = min(delta, points.get(epsilon, 1.0))
    return tuple(sorted(point for point in points.items() if point[1] < 1.0))


def _below(tests: Iterable[_Test], unit: int) -> tuple[_Point, ...]:
    """Return points between the tests of the upper concave hull, each below both of its lines."""
    hull: list[_Test] = []
    for test in sorted(tests, key=lambda test: (test.t, -test.v)):
        if hull and (test.t == hull[-1].t or test.v <= hull[-1].v):
            continue
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], test):
            hull.pop()
        hull.append(test)
    points = [(0.0, _down(hull[-1].v - hull[-1].t))]
    for one, other in pairwise(hull):
        if one.right.loss is not None and one.right.loss == other.left.loss:
            epsilon = decimal_beside(Fraction(one.right.loss, unit), -math.inf)
        else:
            epsilon = float(_slope(one, other).ln())
        alpha = Decimal(epsilon).exp()
        if epsilon >= 0.0:
            points.append((epsilon, _down(min(one.v - alpha * one.t, other.v - alpha * other.t))))
    return tuple(sorted(points))


def _slope(one: _Test, other: _Test) -> Decimal:
    return (other.v - one.v) / (other.t - one.t)


def _down(delta: Decimal) -> float:
    """Return δ, lowered by what the core may raise it."""
    lowered = max(Decimal(0), delta * _LOWERED)
    nearest = float(lowered)
    return nearest if Decimal(nearest) <= lowered else math.nextafter(nearest, 0.0)
