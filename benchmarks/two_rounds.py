"""δ of two rounds of b-min-sep sampling with correlated noise, by a quadrature.

With y = (y₁, y₂) in units of the noise, a record that takes part in the pattern x with probability w_x moves the mean by C·x. The
laws are P = Σ w_x·N(C·x) and Q = N(0); if the record is replaced, Q = Σ w_x·N(−C·x). No entry of C is negative, so P/Q does not
decrease in y₂, and P/Q exceeds e^ε for y₂ > t(y₁). With C·x = (a_x, c_x),

> δ = ∫ Σ_x w_x·φ(y₁ − a_x)·Φ(c_x − t(y₁)) dy₁ − e^ε·(the same integral for Q).

The outer integral is computed by the trapezoidal rule. For the documents of `changed_certificates.py`, 800 steps and 8,000 agree
within 1e-9 of δ, and within 3e-6 without a matrix, where t goes to −∞ at a finite y₁.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]
#: A law of two rounds: the probability of each pattern, with the means of y₁ and y₂ in units of the noise.
Law = list[tuple[float, float, float]]
_STEPS = 800
#: Beyond this many standard deviations nothing is seen in doubles.
_FAR = 39.0


def patterns(p: float, apart: int, *, warm: bool) -> dict[tuple[int, int], float]:
    """Return the probabilities of the patterns (x₁, x₂).

    A free record takes part with probability p, and is free again `apart` rounds later. A cold run starts with free records; a
    warm one with the stationary law of the first round in which the record is free: round 1 with probability 1/(1 + (b − 1)p),
    each of the rounds 2..b with p times that.
    """
    starts = {1: 1.0}
    if warm:
        starts = {first: (1.0 if first == 1 else p) / (1 + (apart - 1) * p) for first in range(1, apart + 1)}
    known: dict[tuple[int, int], float] = {}
    for first_free, chance in starts.items():
        for one in (0, 1):
            free = first_free == 1
            before = (p if one else 1 - p) if free else float(not one)
            again = apart == 1 if one else first_free <= 2
            for two in (0, 1):
                after = (p if two else 1 - p) if again else float(not two)
                known[one, two] = known.get((one, two), 0.0) + chance * before * after
    return known


def _log_density(law: Law, y1: Array, y2: Array) -> Array:
    """Return ln of a law's density, relative to the standard normal one."""
    terms = [math.log(w) + a * y1 + c * y2 - (a * a + c * c) / 2 for w, a, c in law]
    return np.asarray(np.logaddexp.reduce(terms, axis=0), dtype=np.float64)


def _hockey_stick(above: Law, below: Law, epsilon: float, steps: int) -> float:
    """Return sup_S P(S) − e^ε·Q(S) of laws whose likelihood ratio P/Q does not decrease in y₂."""
    far = 9 + max(abs(a) for _, a, _ in above + below)
    y1 = np.linspace(-far, far, steps + 1)
    low, high = np.full_like(y1, -_FAR), np.full_like(y1, _FAR)
    for _ in range(60):
        middle = (low + high) / 2
        gains = _log_density(above, y1, middle) - _log_density(below, y1, middle) > epsilon
        low, high = np.where(gains, low, middle), np.where(gains, middle, high)

    def mass(law: Law) -> Array:
        parts = [w * np.exp(-((y1 - a) ** 2) / 2) * ndtr(c - high) for w, a, c in law]
        return np.asarray(sum(parts), dtype=np.float64)

    inner = mass(above) - math.exp(epsilon) * mass(below)
    return float(np.sum(inner)) * (2 * far / steps) / math.sqrt(2 * math.pi)


class TwoRounds(NamedTuple):
    """Two rounds of b-min-sep sampling.

    Attributes:
        p: the probability with which a free record takes part, in [0, 1].
        apart: b, the number of rounds after which the record is free again.
        column: the first column of the Toeplitz matrix C, not negative, in units of the clip norm.
        sigma: the noise multiplier.
        warm: whether the run starts with the stationary law.
    """

    p: float
    apart: int
    column: Sequence[float]
    sigma: float
    warm: bool

    def delta(self, epsilon: float, *, replaced: bool = False, steps: int = _STEPS) -> float:
        """Return δ(ε), the larger of both directions; if `replaced`, the record's other contribution is the opposite one."""
        first, second = self.column[0], self.column[1] if len(self.column) > 1 else 0.0
        law = [
            (w, one * first / self.sigma, (one * second + two * first) / self.sigma)
            for (one, two), w in patterns(self.p, self.apart, warm=self.warm).items()
            if w > 0
        ]
        mirrored = [(w, -a, -c) for w, a, c in law]
        if replaced:
            return _hockey_stick(law, mirrored, epsilon, steps)
        nothing = [(1.0, 0.0, 0.0)]
        # If the record is added, the ratio 1/f decreases in y₂; with −y in place of y it increases.
        return max(_hockey_stick(law, nothing, epsilon, steps), _hockey_stick(nothing, mirrored, epsilon, steps))
