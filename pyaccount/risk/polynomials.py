"""Bounds on δ(ε) from several moments of the likelihood ratio at once.

Let P ≪ Q, f = dP/dQ and Z_k = E_Q f^k, so that Z_0 = Z_1 = 1. If a polynomial p(x) = Σ_{k ≤ m} a_k x^k is at least (x −
1)₊ for all x ≥ 0, then with x = f e^{−ε}

    δ(ε) = E_Q (f − e^ε)₊ = e^ε E_Q (f e^{−ε} − 1)₊ ≤ e^ε E_Q p(f e^{−ε}) = Σ_k a_k e^{(1−k)ε} Z_k

at every ε, whichever ε the polynomial was chosen for. An upper bound on Z_k is used if a_k > 0, and a lower bound if
a_k < 0. A single moment is the case p(x) = c_m x^m.

**That p is such a polynomial** is checked exactly. The coefficients are binary fractions, so multiplying by a power of
two makes them integers. To check are p ≥ 0 on [0, 1], and p − x + 1 ≥ 0 on [1, ∞), which with x = 1/y is a polynomial
in y on (0, 1]; so both are polynomials on the unit interval. A polynomial whose coefficients in Bernstein's basis are
all non-negative is non-negative there, since the basis functions are. If some coefficients are negative, the interval
is halved (de Casteljau), and so on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

#: The most intervals that are checked before the proof is given up.
MOST_INTERVALS = 1024
#: The largest degree: coefficients of higher degrees nearly cancel.
MOST_DEGREE = 24


@dataclass(frozen=True, slots=True)
class MomentPolynomial:
    """The coefficients a_0, …, a_m, and bounds (lower, upper) on ln Z_0, …, ln Z_m."""

    coefficients: tuple[float, ...]
    log_moments: tuple[tuple[float, float], ...]

    @property
    def log_moments_lower(self) -> list[float]:
        """The lower bounds on the moments."""
        return [lower for lower, _ in self.log_moments]

    @property
    def log_moments_upper(self) -> list[float]:
        """The upper bounds on the moments."""
        return [upper for _, upper in self.log_moments]

    @property
    def dominates(self) -> bool:
        """Return whether p(x) ≥ (x − 1)₊ for all x ≥ 0 is proven. This takes milliseconds to a tenth of a second."""
        coefficients = self.coefficients
        if not 2 <= len(coefficients) <= MOST_DEGREE + 1 or not all(math.isfinite(one) for one in coefficients):
            return False
        ratios = [one.as_integer_ratio() for one in coefficients]
        common = max(denominator for _, denominator in ratios)
        whole = [numerator * (common // denominator) for numerator, denominator in ratios]
        beyond = [whole[0] + common, whole[1] - common, *whole[2:]]
        return _nonnegative(whole) and _nonnegative(beyond[::-1])

    def bound(self, epsilon: float) -> float:
        """Return the upper bound on δ(ε), if p dominates; it is rounded up, and at most 1."""
        terms, rounding = [], 0.0
        for k, (coefficient, (lower, upper)) in enumerate(zip(self.coefficients, self.log_moments, strict=True)):
            if coefficient == 0.0:
                continue
            log = upper if coefficient > 0.0 else lower
            # Coefficients may be as large as their powers are small, so only the product is computed as a double.
            size = math.log(abs(coefficient))
            exponent = size + log + (1 - k) * epsilon
            if exponent > 700.0:
                return 1.0
            terms.append(math.copysign(math.exp(exponent), coefficient))
            # The exponent is rounded by a few units of 1.1e-16 of its terms, the exponential by one more.
            rounding += abs(terms[-1]) * 1e-15 * (4.0 + abs(size) + abs(log) + abs((1 - k) * epsilon))
        bound = math.fsum([*terms, rounding])
        # Values below the normal doubles may have been lost.
        return 1.0 if math.isnan(bound) else min(1.0, max(math.nextafter(bound, 1.0), 0.0) + 1e-300)


def _nonnegative(coefficients: Sequence[int]) -> bool:
    """Return whether Σ a_k t^k ≥ 0 on [0, 1] is proven."""
    degree = len(coefficients) - 1
    common = math.lcm(*(math.comb(degree, k) for k in range(degree + 1)))
    bernstein = [
        sum(math.comb(j, k) * (common // math.comb(degree, k)) * coefficients[k] for k in range(j + 1))
        for j in range(degree + 1)
    ]
    left = [bernstein]
    for _ in range(MOST_INTERVALS):
        values = left.pop()
        if values[0] < 0 or values[-1] < 0:
            return False
        if min(values) < 0:
            left += _halves(values)
        if not left:
            return True
    return False


def _halves(values: list[int]) -> tuple[list[int], list[int]]:
    """Return the coefficients in Bernstein's basis on both halves of an interval, times 2^degree."""
    degree = len(values) - 1
    first, second, row = [values[0] << degree], [values[-1] << degree], values
    for step in range(1, degree + 1):
        row = [one + other for one, other in pairwise(row)]
        first.append(row[0] << (degree - step))
        second.append(row[-1] << (degree - step))
    return first, second[::-1]
