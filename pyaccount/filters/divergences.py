"""Upper bounds on Rényi divergences of rounds, in closed form.

The divergence of order a > 1 of a pair is D_a(P‖Q) = ln E_Q[(P/Q)^a]/(a − 1), in nats. It is a mean of a convex function of
P/Q, so that a pair that dominates another one has the larger divergence; and divergences of rounds that may depend on the
outcomes of earlier rounds add (Mironov 2017, arXiv:1702.07476, Proposition 1). (a − 1)D_a is convex in a, as the logarithm
of a moment generating function of the loss, and 0 at a = 1: where a formula holds for whole orders, a chord between two of
them is a bound in between.

| profile | (a − 1)·D_a |
| --- | --- |
| Gaussian, shift s, noise σ | a(a − 1)s²/2σ² |
| discrete Gaussian | the same is a bound (Canonne, Kamath & Steinke 2020, arXiv:2004.00010) |
| Laplace, θ = s/b | ln[a/(2a−1)·e^{(a−1)θ} + (a−1)/(2a−1)·e^{−aθ}] (Mironov 2017) |
| discrete Laplace, d steps, scale b | ln Σ_x p(x)·e^{(a−1)L(x)}, L(x) = (|x − d| − |x|)/b |
| pure ε | ln[(e^{aε} + e^{(1−a)ε})/(1 + e^ε)], the pair of randomized response, which dominates |
| bounded range r | ln sup_t [p_t·e^{(a−1)t} + (1 − p_t)·e^{(a−1)(t−r)}], p_t = (e^r − e^t)/(e^r − 1); at most a(a−1)r²/8 |
| finite pairs | ln Σ p^a q^{1−a} |
| zCDP, Rényi tables | aρ(a − 1), and the table with chords |
| Poisson sampling of Gaussian noise, removed, whole a | ln Σ_J c_J e^{J²/2σ²}, c the a-fold convolution of w_j·e^{−j²/2σ²} |
| Poisson sampling of any pair, removed, whole a | ln Σ_j C(a, j)(1 − q)^{a−j} q^j e^{(j−1)D_j} |

Bounded range: the losses lie in an interval [t − r, t] and E_P e^{−L} = 1; e^{(a−1)L} is a convex function of e^{−L}, so
that two ends are worst, and the derivative in t has one root, e^t = (a−1)(e^r − e^{−(a−1)r})/(a(1 − e^{−(a−1)r})). By
Hoeffding's lemma it is at most a(a−1)r²/8.

Poisson sampling: w = Bin(k, q) is the law of how many records of a group are drawn. E_Q[(Σ_j w_j e^{(jy − j²/2)/σ²})^a] is a
sum over a-tuples of Πw_j·exp(Σ_{r<s} j_r j_s/σ²), and 2Σ_{r<s} j_r j_s = J² − Σ j_r² with J = Σ j_r. For one record, an
added record has a smaller divergence than a removed one (Mironov, Talwar & Zhang 2019, arXiv:1908.10530, Theorem 5), whose
formula is then used for both. All other profiles are integrated: see `profiles`.

Every result is rounded up: formulas that are rational exactly, the others by more than the rounding of their terms. Sums of
powers are taken of logarithms, so that nothing overflows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from pyaccount.filters.logs import log_expm1, log_sum, shifted
from pyaccount.filters.profiles import log_moment_of_profile
from pyaccount.plan.largest_loss import largest_loss
from pyaccount.plan.rounds import Part, Rounds

#: Relative and absolute margins for the rounding of logarithms and exponentials, and of sums of them.
_RELATIVE, _ABSOLUTE = 2.0**-44, 2.0**-48
#: The largest whole order for which sums over its binomial coefficients are used.
MOST_TERMS = 4096


@lru_cache(maxsize=4096)
def divergence(part: Part, order: float) -> Fraction | None:
    """Return an upper bound on the Rényi divergence of a profile at an order, in nats; None if none is known.

    The profile has a direction, and so has the divergence. Orders are greater than 1, and taken as their decimals.
    """
    exact = _exact(part, order)
    if exact is not None:
        return exact
    logarithm = _log_moment(part, order)
    if logarithm is None or not math.isfinite(logarithm):
        return None
    return Fraction(max(0.0, logarithm)) / (Fraction(repr(order)) - 1)


def _exact(part: Part, order: float) -> Fraction | None:
    """Return the divergence, or a bound that is used, if it is rational; None otherwise."""
    a = Fraction(repr(order))
    match part.constructor, part.arguments:
        case (("gaussian" | "discrete_gaussian"), (int() | float() as shift, int() | float() as noise)):
            return a * (Fraction(repr(shift)) / Fraction(repr(noise))) ** 2 / 2
        case "zcdp", (int() | float() as rho,):
            return a * Fraction(repr(rho))
        case "renyi", (tuple() as orders, tuple() as bounds):
            return _tabulated(a, [Fraction(repr(one)) for one in orders], bounds)
    return None


def _tabulated(a: Fraction, orders: Sequence[Fraction], bounds: Sequence[object]) -> Fraction | None:
    """Return a bound between the orders of a table, by chords of (a − 1)D_a from 0 at a = 1; None beyond the last order."""
    known = [(one, Fraction(repr(bound))) for one, bound in zip(orders, bounds, strict=True) if bound != math.inf]
    above = [(one, bound) for one, bound in known if one >= a]
    if not above:
        return None
    high, bound_high = min(above)
    low, bound_low = max([(one, bound) for one, bound in known if one < a], default=(Fraction(1), Fraction(0)))
    share = (a - low) / (high - low)
    chord = ((1 - share) * (low - 1) * bound_low + share * (high - 1) * bound_high) / (a - 1)
    # Divergences do not decrease in a, so every bound of a larger order is one.
    return min([chord, *(bound for _, bound in above)])


def _log_moment(part: Part, order: float) -> float | None:  # noqa: PLR0911 - one case for each formula
    """Return an upper bound on (a − 1)·D_a = ln E_Q[(P/Q)^a]; None if none is known."""
    match part.constructor, part.arguments:
        case "laplace", (int() | float() as shift, int() | float() as scale):
            return _laplace(shift / scale, order)
        case "discrete_laplace", (int() | float() as shift, int() | float() as scale):
            return min(_discrete_laplace(int(shift), scale, order), _pure(shift / scale, order))
        case "guarantees", _:
            largest = largest_loss((Rounds(part, 1),))
            return None if largest is None else _pure(largest.at_most, order)
        case "exponential", (int() | float() as bound,):
            return _bounded_range(bound, order)
        case "exponential_runs", (int() | float() as bound, int() | float() as runs):
            return runs * _bounded_range(bound, order) * (1.0 + _RELATIVE)
        case "finite", (tuple() as above, tuple() as below):
            return _finite(part, above, below, order)
        case "poisson" | "subsampled", _:
            return _sampled(part, order)
        case "composed", parts:
            return _composed(parts, order)
        case "sometimes", (Part() as inner, int() | float() as rate):
            known = divergence(inner, order)
            if known is None:
                return None
            within = float(known) * (order - 1.0) * (1.0 + _RELATIVE) + _ABSOLUTE
            return _margin(shifted(math.log(rate) + log_expm1(within)), within)
    return log_moment_of_profile(part, order)


def _margin(logarithm: float, size: float) -> float:
    """Return a logarithm, moved up by more than the rounding of exponents of this size."""
    return logarithm * (1.0 + _RELATIVE) + _ABSOLUTE * min(1.0, size) + 2.0**-50 * logarithm * (1.0 + size)


def _pure(epsilon: float, a: float) -> float:
    """Return ln[1 + (e^{(a−1)ε} − 1)(1 − e^{−aε})/(1 + e^{−ε})], in which all terms are positive."""
    if epsilon <= 0.0:
        return 0.0
    less = log_expm1((a - 1.0) * epsilon) + math.log(-math.expm1(-a * epsilon)) - math.log1p(math.exp(-epsilon))
    return shifted(less) * (1.0 + _RELATIVE)


def _laplace(theta: float, a: float) -> float:
    """Return ln[1 + (a(e^{(a−1)θ} − 1) − (a − 1)(1 − e^{−aθ}))/(2a − 1)]."""
    grown = (a - 1.0) * theta
    if grown > 600.0:
        return (grown + math.log(a / (2.0 * a - 1.0)) + math.exp(-grown)) * (1.0 + _RELATIVE)
    up, down = a * math.expm1(grown), (a - 1.0) * -math.expm1(-a * theta)
    return math.log1p((up - down + (up + down) * 2.0**-50) / (2.0 * a - 1.0)) * (1.0 + _RELATIVE)


def _discrete_laplace(steps: int, scale: float, a: float) -> float:
    """Return ln E_P e^{(a−1)L}: the loss is d/b left of both centres, −d/b right of both, and (d − 2x)/b between them."""
    b, most = 1.0 / scale, steps / scale
    whole = math.log1p(math.exp(-b))
    terms = [(a - 1.0) * most - whole, -(a - 1.0) * most - most - whole]
    mass = math.log(-math.expm1(-b)) - whole
    terms += [mass - x * b + (a - 1.0) * (most - 2.0 * x * b) for x in range(1, steps)]
    return log_sum(terms) + _ABSOLUTE * (1.0 + a * most + abs(mass))


def _bounded_range(r: float, a: float) -> float:
    """Return the least of three bounds: Hoeffding's, that of pure ε = r, and the worst two losses t and t − r."""
    least = min(a * (a - 1.0) * r * r / 8.0 * (1.0 + _RELATIVE), _pure(r, a))
    if a * r > 300.0 or r < 1e-3:
        return least
    shrunk = math.exp(-(a - 1.0) * r)
    e_t = (a - 1.0) * (math.exp(r) - shrunk) / (a * (1.0 - shrunk))
    t = min(max(math.log(e_t), 0.0), r)
    mass = (math.exp(r) - math.exp(t)) / math.expm1(r)
    value = mass * math.exp((a - 1.0) * t) + (1.0 - mass) * math.exp((a - 1.0) * (t - r))
    # The root is placed with an error of a few units, and the maximum is flat there.
    return min(least, math.log(value) + _ABSOLUTE * (1.0 + 4.0 * a * (1.0 + r)))


def _finite(part: Part, above: Sequence[object], below: Sequence[object], a: float) -> float | None:
    """Return ln Σ p^a q^{1−a} of normalised probabilities, each of which has a relative error."""
    options = dict(part.options)
    p, q = (tuple(float(value) for value in law if isinstance(value, int | float)) for law in (above, below))
    if options.get("reverse"):
        p, q = q, p
    totals = math.log(math.fsum(p)), math.log(math.fsum(q))
    terms, size = [], 0.0
    for one, other in zip(p, q, strict=True):
        if one == 0.0:
            continue
        if other == 0.0:
            return None
        logs = math.log(one) - totals[0], math.log(other) - totals[1]
        size = max(size, abs(logs[0]) + abs(logs[1]))
        terms.append(a * logs[0] + (1.0 - a) * logs[1])
    error = float(options.get("relative_error", 0.0))
    return log_sum(terms) + 2.0 * a * (2.0 * error + 2.0**-50 * (1.0 + size)) + _ABSOLUTE


def _composed(parts: Sequence[object], order: float) -> float | None:
    """Return the sum over the rounds of a composed profile."""
    total = 0.0
    for one in parts:
        assert isinstance(one, tuple)
        known = divergence(one[0], order)
        if known is None:
            return None
        total += one[1] * float(known) * (order - 1.0) * (1.0 + _RELATIVE)
    return total * (1.0 + _RELATIVE)


def _sampled(part: Part, order: float) -> float | None:
    """Return the bound under Poisson sampling: by a sum for whole orders, by chords, or from the profile."""
    options = dict(part.options)
    one = part.constructor == "poisson" and part.arguments[0] == 1
    if options.get("two_sided") or (options["reverse"] and not one):
        return log_moment_of_profile(part, order)
    low, high = math.floor(order), math.ceil(order)
    if high > MOST_TERMS:
        return None
    top = _at_whole(part, high)
    if low == high or top is None:
        return top
    bottom = _at_whole(part, low)
    share = order - low
    chord = math.inf if bottom is None else ((1.0 - share) * bottom + share * top) * (1.0 + _RELATIVE)
    integrated = log_moment_of_profile(part, order)
    return chord if integrated is None else min(chord, integrated)


@lru_cache(maxsize=4096)
def _at_whole(part: Part, a: int) -> float | None:
    """Return ln E_Q[(P/Q)^a] for a whole order under Poisson sampling, removed records."""
    if a == 1:
        return 0.0
    match part.constructor, part.arguments:
        case "poisson", (int() | float() as group, int() | float() as rate, int() | float() as noise):
            if group > 1:
                return _group(int(group), rate, noise, a)
            moments = [j * (j - 1.0) / (2.0 * noise * noise) for j in range(2, a + 1)]
        case "subsampled", (Part() as inner, int() | float() as rate):
            moments = []
            for j in range(2, a + 1):
                known = divergence(inner, float(j))
                if known is None:
                    return None
                moments.append(float(known) * (j - 1.0) * (1.0 + _RELATIVE))
        case _:
            return None
    if rate >= 1.0:
        return moments[-1] * (1.0 + _RELATIVE)
    kept, drawn = math.log1p(-rate), math.log(rate)
    # As the binomial weights sum to 1, the terms are those of E − 1.
    terms, size = [], 0.0
    for j, moment in enumerate(moments, start=2):
        choices = math.log(math.comb(a, j))
        size = max(size, choices - (a - j) * kept - j * drawn + moment)
        terms.append(choices + (a - j) * kept + j * drawn + log_expm1(moment * (1.0 + _RELATIVE)))
    return shifted(log_sum(terms) + 2.0**-49 * (64.0 + size)) * (1.0 + _RELATIVE)


def _group(group: int, rate: float, noise: float, a: int) -> float:
    """Return ln Σ_J c_J e^{J²/2σ²} for a group of records, c the a-fold convolution of w_j e^{−j²/2σ²}."""
    if rate >= 1.0:
        return a * (a - 1.0) * group * group / (2.0 * noise * noise) * (1.0 + _RELATIVE)
    kept, drawn, spread = math.log1p(-rate), math.log(rate), 2.0 * noise * noise
    weights = [
        math.log(math.comb(group, j)) + (group - j) * kept + j * drawn - j * j / spread for j in range(group + 1)
    ]
    sums = [0.0]
    for _ in range(a):
        sums = [
            log_sum([sums[i] + weights[j - i] for i in range(max(0, j - group), min(j, len(sums) - 1) + 1)])
            for j in range(len(sums) + group)
        ]
    total = log_sum([value + j * j / spread for j, value in enumerate(sums)])
    size = a * (max(map(abs, weights)) + group) + (a * group) ** 2 / spread
    return max(0.0, total) + 2.0**-49 * (64.0 + size)
