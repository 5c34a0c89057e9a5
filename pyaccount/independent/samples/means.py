"""Added records where Hölder's inequality is too loose: a mean that is tested bounds δ_add, or the second moment of its samples.

Let y = z − d, z ~ N(0, I), g = ∇ln f(−d), and for a vector t and λ ≥ 0

    D_t = −λ(ln f(y) − ⟨g, z⟩) + ‖λ∇ln f(y) − t‖²/2.

The logarithmic Sobolev inequality (section 10.3) with S = N(−d, I) says that ln E_R[f^−λ·e^⟨d,y⟩] ≤ −‖d‖²·3/2 + E D_(2d),
and without e^⟨d,y⟩ that ln E_R f^−λ ≤ −‖d‖²/2 + E D_d. Since (1 − u)₊u^λ ≤ λ^λ/(1 + λ)^(1+λ) and (1 − u)₊²u^λ ≤ 4λ^λ/(2 +
λ)^(2+λ),

    δ_add ≤ λ^λ/(1 + λ)^(1+λ)·e^(−λε − ‖d‖²/2 + E D_d),    E V² ≤ 4λ^λ/(2 + λ)^(2+λ)·e^(−λε − ‖d‖² + E D_(2d)),

where V = (1 − e^ε·f(y))₊·e^(⟨d,y⟩ + ‖d‖²/2) has the mean δ_add. ln f is convex, so ln f(y) ≥ ln f(−d) + ⟨g, z⟩, and D_t is
at most −λ·ln f(−d) + (λ·max‖Cx‖ + ‖t‖)²/2. A bounded mean is tested by bets (`bets`), each with failure probability q.

*Two tests*. If E V² ≤ v then E V − E min(V, c) ≤ E (V − c)₊ ≤ v/(4c), because (V − c)₊ ≤ V²/(4c). So if δ_add ≥ δ, either E
V² > v, and the first test bets against a true statement, or E min(V, c) ≥ δ − v/(4c), and the second one does. It is
accepted only if both are won: with probability at most q.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from operator import mul
from typing import NamedTuple

from ..enclosures import exp, ln, up
from .normals import normals
from .process import EXPONENT, PLACES, Bytes, Outcomes, Process
from .wide import logarithm

#: Exponents λ are multiples of 1/64, and values of D are integers in units of 2^−80.
_PARTS, _UNIT = 64, 2 * PLACES
#: How many outcomes a choice looks at, and what it chooses from: sizes of d, λ, and the room between E D and what is tested.
_LOOKS, _ROOMS, _SIZES = 48, (0.4, 0.8, 1.5, 2.5), (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
_LAMBDAS = tuple(round(_PARTS * 1.25**k) for k in range(-12, 22))


class MeanPlan(NamedTuple):
    """Which mean is tested: the size of d, λ in 64ths, t/d, the bound D₀ on it, and where samples are clipped, if at all."""

    size: float
    exponent: int
    times: int
    bound: float
    clip: float | None
    cost: float


class _Look(NamedTuple):
    """What is known at an outcome: ln f in units of 2^−60; z, ∇ln f and the products with the columns."""

    log_ratio: int
    noise: list[int]
    gradient: list[int]


class Shifted:
    """Outcomes y = z − d, with ln f, its gradient, and the bounds on both."""

    def __init__(self, process: Process, size: float, random_bytes: Bytes) -> None:
        """Take d as a multiple of the mean of Cx, rounded: any d ≥ 0 is valid."""
        n, columns = process.rounds, process.columns
        self.rounds, self._bytes, self._ratio = n, random_bytes, process.ratio(Fraction(1))
        usual = self._ratio.posterior([0] * n)
        mean = Outcomes(n, columns, max(columns)).spread([1 << EXPONENT - 8] * n if usual is None else usual[1])
        self.d = [each * int(size * 1024) >> 10 for each in mean]
        self.squared = Fraction(sum(map(mul, self.d, self.d)), 1 << _UNIT)
        self._outcomes = Outcomes(n, columns, max(self.d) + 2 * max(columns))
        self.largest = _root(process.longest())
        self.centre = self._at([0] * n)

    def _at(self, noise: list[int]) -> _Look | None:
        found = self._ratio.posterior(self._products(noise))
        if found is None:
            return None
        return _Look(
            ln(found[0], self._ratio.bits) >> self._ratio.bits - EXPONENT, noise, self._outcomes.spread(found[1])
        )

    def _products(self, noise: Sequence[int]) -> list[int]:
        return self._outcomes.products([z - each for z, each in zip(noise, self.d, strict=True)], [], Fraction(1))

    def look(self) -> _Look | None:
        """Return what is known at a new outcome."""
        noise = normals(self.rounds, self._bytes)
        return None if noise is None else self._at(noise)

    def value(self, look: _Look, exponent: int, times: int) -> int:
        """Return D at an outcome, without its margin, in units of 2^−80."""
        assert self.centre is not None
        tangent = sum(map(mul, self.centre.gradient, look.noise))
        apart = [exponent * g - _PARTS * times * each for g, each in zip(look.gradient, self.d, strict=True)]
        linear: int = exponent * (tangent - (look.log_ratio << _UNIT - EXPONENT)) // _PARTS
        squared: int = sum(map(mul, apart, apart)) // (2 * _PARTS * _PARTS)
        return linear + squared

    def parts(self, look: _Look) -> tuple[float, float, float]:
        """Return ⟨g, z⟩ − ln f, ‖∇ln f‖² and ⟨∇ln f, d⟩ in doubles, of which D is made for any λ: for choices only."""
        assert self.centre is not None
        unit = float(1 << _UNIT)
        linear = sum(map(mul, self.centre.gradient, look.noise)) / unit - look.log_ratio / (1 << EXPONENT)
        return linear, sum(map(mul, look.gradient, look.gradient)) / unit, sum(map(mul, look.gradient, self.d)) / unit

    def margin(self, exponent: int, times: int) -> Fraction:
        """Return by how much D may be larger, for all outcomes in the cells.

        With e the error of f and B = max‖Cx‖ ≥ ‖∇ln f‖: ln f errs by less than 2e + 2^−58, and so does its tangent, by what
        follows. Each entry of a gradient errs by less than 5e of it and 2^−39, so that a gradient errs by less than 5e·B +
        √n·2^−39 =: η. Numbers z are below 8.6 and err by 2^−40, so that ⟨g, z⟩ errs by less than √n·(8.6·η + 2^−40·B). The
        vector λ∇ln f − t has at most the length λB + ‖t‖, and half of its square errs by less than λη(λB + ‖t‖ + λη).
        """
        e, b, n = self._ratio.error, self.largest, _root(Fraction(self.rounds))
        eta, size = 5 * e * b + n / (1 << 39), Fraction(exponent, _PARTS)
        linear = 2 * e + Fraction(1, 1 << 58) + n * (Fraction(43, 5) * eta + b / (1 << 40))
        return size * linear + size * eta * (size * b + times * _root(self.squared) + size * eta) + Fraction(1, 1 << 60)

    def most(self, exponent: int, times: int) -> Fraction:
        """Return the bound on D."""
        assert self.centre is not None
        size = Fraction(exponent, _PARTS)
        least = Fraction(self.centre.log_ratio, 1 << EXPONENT) - 2 * self._ratio.error - Fraction(1, 1 << 58)
        return (size * self.largest + times * _root(self.squared)) ** 2 / 2 - size * least

    def sample(self, epsilon: Fraction, bits: int) -> int | None:
        """Return V = (1 − e^ε·f(y))₊·e^(⟨d,z⟩ − ‖d‖²/2), rounded up, in units of 2^−bits; None if it is not known."""
        noise, ratio = normals(self.rounds, self._bytes), self._ratio
        f = None if noise is None else ratio.at(self._products(noise))
        if f is None or noise is None:
            return None
        f -= (f * up(ratio.error, 64) >> 64) + 2
        least = exp((epsilon.numerator << ratio.bits) // epsilon.denominator, ratio.bits) - 2
        gain = (1 << bits) - (f * least << bits >> 2 * ratio.bits)
        if gain <= 0:
            return 0
        # z errs by less than a unit in each row.
        weight = sum(map(mul, self.d, noise)) + sum(self.d) - (int(self.squared * (1 << _UNIT)) >> 1) + 1
        return (gain * (exp(weight, _UNIT) + 1) >> _UNIT) + 1


def _root(x: Fraction) -> Fraction:
    """Return √x, rounded up to a multiple of 2^−40."""
    return Fraction(math.isqrt((x.numerator << 2 * PLACES) // x.denominator) + 1, 1 << PLACES)


def planned(
    process: Process, epsilon: Fraction, delta: Fraction, random_bytes: Bytes, deadline: float
) -> MeanPlan | None:
    """Return the test that is expected to need the fewest samples. Its numbers are doubles: any plan is valid."""
    plans: list[MeanPlan] = []
    for size in _SIZES:
        shifted = Shifted(process, size, random_bytes)
        if shifted.centre is None or time.process_time() > deadline:
            break
        parts = [shifted.parts(look) for look in (shifted.look() for _ in range(_LOOKS)) if look is not None]
        values = [value / 2**60 for value in (shifted.sample(epsilon, 60) for _ in range(_LOOKS)) if value is not None]
        if parts and values:
            mean = min(sum(values) / len(values), 0.8 * float(delta))
            for exponent in _LAMBDAS:
                plans += _plans(shifted, size, exponent, parts, (float(epsilon), float(delta), mean))
    return min(plans, key=lambda plan: plan.cost, default=None)


def _plans(
    shifted: Shifted,
    size: float,
    exponent: int,
    parts: Sequence[tuple[float, float, float]],
    claim: tuple[float, float, float],
) -> Iterator[MeanPlan]:
    """Yield tests of D for one d and one λ: of the bound of δ_add, and of bounds of E V² with some room."""
    epsilon, delta, mean = claim
    lam, small = exponent / _PARTS, float(shifted.squared)
    for times in (1, 2):
        drawn = [
            lam * a + (lam**2 * square - 2 * lam * times * along + times**2 * small) / 2 for a, square, along in parts
        ]
        usual = sum(drawn) / len(drawn) + float(shifted.margin(exponent, times))
        constant = lam * math.log(lam / (times + lam)) + times * math.log(times / (times + lam))
        known = constant - lam * epsilon - small * times / 2 + usual
        most = float(shifted.most(exponent, times)) - usual
        for room in (math.log(delta) - known,) if times == 1 else _ROOMS:
            if room > 0.05:
                clip, more = (None, 0.0) if times == 1 else _clipped(math.exp(min(0.0, known + room)), mean, delta)
                cost = 2 * max(1.0, most / room) + more
                if cost < math.inf:
                    yield MeanPlan(size, exponent, times, usual + room - 1e-6, clip, cost)


def _clipped(v: float, mean: float, delta: float) -> tuple[float | None, float]:
    """Return where samples with the second moment v are clipped best, and about how many are needed over ln(1/q)."""
    best, cost = None, math.inf
    for k in range(40):
        clip = delta * 1.3**k
        room = delta - v / (4 * clip) - mean
        if room > 0 and max(1.5 * clip / room, 2 * v / room**2) < cost:
            best, cost = clip, max(1.5 * clip / room, 2 * v / room**2)
    return best, cost


def bounded(plan: MeanPlan, epsilon: Fraction, squared: Fraction) -> Fraction:
    """Return an upper bound of ln δ_add (if t = d) or of ln E V² (if t = 2d), provided that E D < D₀."""
    size, times, mean = Fraction(plan.exponent, _PARTS), plan.times, Fraction(plan.bound)
    constant = size * logarithm(size / (times + size)) + times * logarithm(times / (times + size))
    return constant - size * epsilon - times * squared / 2 + mean + Fraction(1, 1 << 200)
