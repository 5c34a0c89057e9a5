"""High-precision privacy profiles that are independent of the package: mpmath, definitions and closed forms only."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath as mp

DIGITS = 50


def tail(x: mp.mpf) -> mp.mpf:
    """Return Pr[Z > x] of a standard normal Z."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def gaussian_delta(mu: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
    """Return δ(ε) of N(μ, 1) against N(0, 1) (Balle & Wang 2018, Theorem 8)."""
    return tail(epsilon / mu - mu / 2) - mp.exp(epsilon) * tail(epsilon / mu + mu / 2)


def decreasing_root(f: Callable[[mp.mpf], mp.mpf], target: mp.mpf, high: mp.mpf) -> mp.mpf:
    """Return the x ≥ 0 with f(x) = target for a decreasing f, to 30 digits; 0 if f(0) ≤ target.

    The method is bisection. Once the bracket is small, secants of ln f propose new ends, which are checked by evaluating f.
    """
    low = mp.mpf(0)
    if f(low) <= target:
        return low
    while f(high) > target:
        low, high = high, 2 * high

    def narrowed(x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
        return (x, high) if f(x) > target else (low, x)

    for _ in range(14):
        low, high = narrowed((low + high) / 2)
    before, after = low, high
    first, second = (mp.log(f(x) / target) for x in (before, after))
    for _ in range(8):
        if first == second:
            break
        before, after = after, after - second * (after - before) / (second - first)
        if abs(after - before) <= abs(after) * mp.mpf(10) ** -32:
            break
        first, second = second, mp.log(f(after) / target)
    margin = abs(after) * mp.mpf(10) ** -31
    for x in (after - margin, after + margin):
        if low < x < high:
            low, high = narrowed(x)
    for _ in range(110):
        if high - low <= mp.mpf(10) ** -30 * high:
            break
        low, high = narrowed((low + high) / 2)
    return high


def gaussian_epsilon(mu: float, delta: float) -> mp.mpf:
    """Return ε(δ) of N(μ, 1) against N(0, 1)."""
    with mp.workdps(DIGITS + 200 if delta < 1e-90 else DIGITS):
        return decreasing_root(lambda e: gaussian_delta(mp.mpf(mu), e), mp.mpf(delta), mp.mpf(1))


Mixture = Sequence[tuple[mp.mpf, mp.mpf]]


def binomial(trials: int, p: float) -> list[mp.mpf]:
    """Return the binomial weights at the exact value of the double p."""
    q = mp.mpf(p)
    return [math.comb(trials, j) * q**j * (1 - q) ** (trials - j) for j in range(trials + 1)]


def hypergeometric(marked: int, others: int, draws: int) -> list[mp.mpf]:
    """Return the exact distribution of the number of marked records among the draws."""
    total = math.comb(marked + others, draws)
    ways = [
        math.comb(marked, j) * math.comb(others, draws - j) if 0 <= draws - j <= others else 0
        for j in range(marked + 1)
    ]
    return [mp.mpf(f.numerator) / f.denominator for f in (Fraction(w, total) for w in ways)]


def density(mixture: Mixture, y: mp.mpf) -> mp.mpf:
    """Return the density of a mixture of unit-variance Gaussians."""
    return mp.fsum(w * mp.npdf(y - c) for w, c in mixture)


def mixture_delta(p: Mixture, q: Mixture, epsilon: mp.mpf, *, increasing: bool = True) -> mp.mpf:
    """Return δ(ε) if the likelihood ratio is monotone: that of the best half-line, found by bisection on the densities."""
    sign = 1 if increasing else -1

    # Both densities are divided by that of N(0, 1), and Q's is multiplied by e^ε.
    alpha = mp.exp(epsilon)
    ours = [(w * mp.exp(-c * c / 2), sign * c) for w, c in p]
    others = [(alpha * w * mp.exp(-c * c / 2), sign * c) for w, c in q]

    def above(y: mp.mpf) -> bool:
        return bool(mp.fsum(w * mp.exp(c * y) for w, c in ours) > mp.fsum(w * mp.exp(c * y) for w, c in others))

    low, high = mp.mpf(-80), mp.mpf(80)
    if above(low):
        return 1 - mp.exp(epsilon)
    if not above(high):
        return mp.mpf(0)
    # Near the best half-line δ changes by the square of the distance, so half of the digits of its end are enough.
    for _ in range(int(1.7 * mp.mp.dps) + 12):
        middle = (low + high) / 2
        low, high = (low, middle) if above(middle) else (middle, high)

    def mass(mixture: Mixture) -> mp.mpf:
        return mp.fsum(w * tail(high - sign * c) for w, c in mixture)

    return mass(p) - alpha * mass(q)


def discrete_delta(outcomes: Sequence[tuple[mp.mpf, mp.mpf]], count: int, epsilon: mp.mpf) -> mp.mpf:
    """Return the exact δ(ε) of `count` rounds of a pair with two outcomes, as a binomial sum."""
    (p0, q0), (p1, q1) = outcomes
    total = mp.mpf(0)
    for j in range(count + 1):
        ways = math.comb(count, j)
        total += max(mp.mpf(0), ways * (p0**j * p1 ** (count - j) - mp.exp(epsilon) * q0**j * q1 ** (count - j)))
    return total
