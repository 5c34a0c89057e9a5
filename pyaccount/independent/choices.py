"""Choices in doubles: thresholds, orders, and how far nodes are apart. A poor choice is loose, never false."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

#: Nodes are g points apart if g² times the mass that is left, tilted to the loss of interest, is about this.
FINE = 0.03
#: Means, and logarithms of weights, of a mixture of normal laws.
WeightedLosses = Sequence[tuple[float, float]]


def thresholds(signed: Mapping[int, int], shift: int, bits: int) -> tuple[list[int], list[int]]:
    """Return t below and above the zero of Σ c_j·N(js), where its positive and negative parts are alike; near ones first."""
    s = shift / (1 << bits)
    above, below = ([(j * s, math.log(abs(each))) for j, each in signed.items() if each * sign > 0] for sign in (1, -1))
    means, logs = zip(*above, *below, strict=True)
    high = 60 + 60 * max(map(abs, means)) + (2 * max(logs) - 2 * min(logs) + 60) / s
    low, t = -high, 0.0
    for _ in range(120):
        (a, rise), (b, fall) = _log_sum(above, t), _log_sum(below, t)
        low, high = (low, t) if a > b else (t, high)
        if abs(a - b) < 1e-14 or high - low < 1e-15 * abs(high + low):
            break
        t -= (a - b) / (rise - fall) if rise > fall else math.inf
        t = t if low < t < high else (low + high) / 2
    middle = int(t * (1 << 50)) << bits - 50
    steps = [(1 << bits) + abs(middle) >> 44 - 4 * n for n in range(12)]
    return [middle - step for step in steps], [middle + step for step in steps]


def _log_sum(terms: WeightedLosses, t: float) -> tuple[float, float]:
    exponents = [w + m * t - m * m / 2 for m, w in terms]
    most = max(exponents)
    sizes = [math.exp(each - most) for each in exponents]
    return most + math.log(sum(sizes)), sum(m * size for (m, _), size in zip(terms, sizes, strict=True)) / sum(sizes)


def order(rho: float, xi: float, loss: float) -> float:
    """Return about the a − 1 with the least bound by Rényi divergences ξ + aρ of order a."""
    low, high = 1e-9, 1e9
    for _ in range(100):
        a = 1 + math.sqrt(low * high)
        slope = (2 * a - 1) * rho + xi - loss + math.log1p(-1 / a)
        low, high = (a - 1, high) if slope < 0 else (low, a - 1)
    return low


def points_apart(fall: float, loss: float, h: float, *, tilt: float, far: float) -> int:
    """Return after how many points the next node follows; beyond the loss `far` of interest the tilt grows no more."""
    weight = math.log(max(1e-300, fall)) + tilt * min(loss, far) - max(0.0, loss - far)
    return max(1, min(int(math.exp(min(60.0, (math.log(FINE) - weight) / 2))), 1 + int(0.5 / h)))


class Tilting(NamedTuple):
    """A tilt, κ of each part on both sides, the digits of tilted masses, and the mass that may be left out."""

    tilt: int
    shifts: list[list[int]]
    digits: int
    spare: Fraction


def tilting(
    laws: Sequence[Sequence[Any]], counts: Sequence[int], grid: Any, small: Fraction, epsilon: float
) -> Tilting:
    """Return about the tilt θ with the least bound e^(K(θ) − θε) of δ (Chernoff), of the side where it is larger."""
    unit = grid.digits * math.log(10.0)
    sides = [
        [[(k * grid.h, math.log(m) - unit) for k, m in enumerate(law.masses, law.low) if m] for law in each]
        for each in zip(*laws, strict=True)
    ]

    def cumulants(side: int, tilt: float) -> list[tuple[float, float]]:
        """Return K(θ) and its derivative for each law."""
        found = []
        for masses in sides[side]:
            most = max((mass + tilt * loss for loss, mass in masses), default=0.0)
            weights = [math.exp(mass + tilt * loss - most) for loss, mass in masses] or [1.0]
            mean = sum(w * loss for w, (loss, _) in zip(weights, masses, strict=False))
            found.append((most + math.log(sum(weights)), mean / sum(weights)))
        return found

    def bound(side: int, tilt: float) -> tuple[float, float]:
        value, mean = (sum(map(operator.mul, counts, each)) for each in zip(*cumulants(side, tilt), strict=True))
        return value - tilt * epsilon, mean - epsilon

    def best(side: int) -> tuple[float, float]:
        low, high = 0.0, 1.0
        while high < 4000 and bound(side, high)[1] < 0:
            low, high = high, 2 * high
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if bound(side, middle)[1] < 0 else (low, middle)
        return bound(side, low)[0], low

    tilt = round(max(best(side) for side in (0, 1))[1] * 1024)
    spare = math.exp(max(-690.0, min(-9.0, math.log(small) - max(bound(side, tilt / 1024)[0] for side in (0, 1)))))
    digits = min(grid.digits, math.ceil(9 + math.log10(sum(counts)) - math.log10(spare)))
    pairs = zip(*(cumulants(side, tilt / 1024) for side in (0, 1)), strict=True)
    return Tilting(
        tilt, [[int(k * (1 << 40)) << grid.bits - 40 for k, _ in pair] for pair in pairs], digits, Fraction(spare)
    )
