"""Upper bounds on Rényi divergences from a privacy profile, for profiles without a closed form.

For f(t) = t^a and a pair with E_Q[P/Q] = 1, E_Q[(P/Q)^a] = 1 + ∫_0^1 f″(t) E_Q[(t − P/Q)_+] dt + ∫_1^∞ f″(t) E_Q[(P/Q −
t)_+] dt, with E_Q[(P/Q − t)_+] = H_t(P‖Q) and E_Q[(t − P/Q)_+] = H_t − 1 + t. Both are convex in t, so that the chords
between nodes t_i = e^{x_i} of upper bounds on H are bounds as well (the functional increases with H, and f″ > 0). On nodes
with a common spacing h of x the integral of the chords is Σ g_i·S·(1 − e^{−(a−1)h})·e^{(a−1)x_i}, S = (e^{ah} − 1)/(e^h −
1), where all terms are positive, and in which the ends have other weights: g_0·(S − 1)·e^{(a−1)x_0} at the first, with the
chord from (0, 0), and g_N·(a − S·e^{−(a−1)h})·e^{(a−1)x_N} at the last. Beyond the last node either the loss is over, or the
pair is dominated there by a Gaussian pair with a shift c (in units of σ), and then ∫_{t_N}^∞ f″ g ≤ E_Q[L^a; L > t_N] =
e^{a(a−1)c²/2}·Φ(ac − c/2 − x_N/c).

**Dominated by a Gaussian pair.** H_t is jointly convex in the pair, so a mixture of pairs N(i) against N(j) has at most the
H_t of the pair with the largest distance |i − j|, for t ≥ 1. That is so for the mixtures of Poisson sampling (distance k; 2k
under replacement), of draws with replacement or of a fixed size (as many copies as there are draws), of truncated batches (2
against −1) and of random allocation. Advanced joint convexity bounds by H_α at α ≥ t, which is smaller than at t. A sampled
pair (1 − q)Q + qP against Q has H_t = q·h(1 + (t − 1)/q) ≤ h(t); in the other direction its loss is at most −ln(1 − q).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pyaccount import _core
from pyaccount.filters.logs import log_sum, shifted
from pyaccount.plan.largest_loss import largest_loss
from pyaccount.plan.rounds import Part, Rounds

#: The spacing of nodes, times the order; the relative error of E − 1 is about an eighth of its square.
_SPACING = 0.03
#: The most nodes; more make the spacing larger, and the bound looser.
_MOST_NODES = 200_000
#: The logarithm of what is negligible beside 1, and how many standard deviations beyond the mass of L^a the nodes reach.
_NEGLIGIBLE, _REACH = 30.0, 9.0
#: A relative margin for weights, exponentials and the sum; an absolute one for H − 1 + t.
_RELATIVE, _ABSOLUTE = 2.0**-40, 2.0**-51


class _End(NamedTuple):
    """Where a loss ends, or the Gaussian shift that dominates it for all t ≥ 1."""

    largest: float | None
    shift: float = 0.0


def log_moment_of_profile(part: Part, order: float) -> float | None:
    """Return an upper bound on ln E_Q[(P/Q)^a] of a profile in its direction; None if its tail is not known."""
    end = _end(part)
    if end is None:
        return None
    shift = end.shift
    last = end.largest if end.largest is not None else shift * (order * shift + _REACH)
    first = -_NEGLIGIBLE / order
    spacing = max(_SPACING / order, (last - first) / _MOST_NODES)
    profile = part.build()
    below = math.ceil(-first / spacing)
    above = max(1, math.ceil(last / spacing))
    ratio = math.expm1(order * spacing) / math.expm1(spacing)
    inner = math.log(ratio) + math.log(-math.expm1(-(order - 1.0) * spacing))
    terms = []
    for index in range(-below, above + 1):
        x = index * spacing
        value = profile.delta(x)[1]
        if x < 0.0:
            value = min(math.exp(x), value + math.expm1(x) + _ABSOLUTE)
        if value <= 0.0:
            continue
        weight = inner
        if index == -below:
            weight = math.log(ratio - 1.0)
        elif index == above:
            if end.largest is not None:
                continue
            weight = math.log(order - ratio * math.exp(-(order - 1.0) * spacing))
        terms.append(weight + (order - 1.0) * x + math.log(value))
    if end.largest is None:
        x = above * spacing
        deviation = x / shift + shift / 2.0 - order * shift
        terms.append(order * (order - 1.0) * shift * shift / 2.0 + _log_tail(deviation))
    if not terms:
        return 0.0
    total = log_sum(terms)
    return shifted(total + _RELATIVE * (1.0 + abs(total))) * (1.0 + _RELATIVE)


def _log_tail(deviation: float) -> float:
    """Return an upper bound on ln Pr[N(0, 1) > x]."""
    if deviation < 30.0:
        return math.log(0.5 * math.erfc(deviation / math.sqrt(2.0)) * (1.0 + _RELATIVE))
    return -deviation * deviation / 2.0 - math.log(deviation * math.sqrt(2.0 * math.pi)) + _RELATIVE


def _end(part: Part) -> _End | None:  # noqa: PLR0911 - one case for each kind of tail
    """Return how the loss of a profile ends; None if that is not known."""
    options = dict(part.options)
    match part.constructor, part.arguments:
        case "poisson", (int() | float() as group, int() | float() as rate, int() | float() as noise):
            if options["reverse"] and not options["two_sided"]:
                # The density without the record is at least (1 − q)^k of the other one.
                return _End(-group * math.log1p(-rate) * (1.0 + _RELATIVE))
            return _End(None, (2.0 if options["two_sided"] else 1.0) * group / noise * (1.0 + _RELATIVE))
        case "copies", (str(), int(), int(), int(), int(), int() | float() as shift, int() | float() as noise):
            counts, _, _ = _core.copies(*part.arguments[:5])  # type: ignore[arg-type]
            return _End(None, max(counts) * abs(shift) / noise * (1.0 + _RELATIVE))
        case "displaced", (str(), str(), int(), int(), int(), int(), int() | float() as noise):
            counts, _, _ = _core.copies(*part.arguments[1:6])  # type: ignore[arg-type]
            return _End(None, 2.0 * max(counts) / noise * (1.0 + _RELATIVE))
        case "truncated_poisson", (int(), int(), int() | float(), int() | float() as noise):
            return _End(None, 3.0 / noise * (1.0 + _RELATIVE))
        case "allocation", (tuple() as squares, *_):
            sizes = [float(square) for square in squares if isinstance(square, int | float)]
            return _End(None, math.sqrt(max(sizes)) * (1.0 + _RELATIVE))
        case "gaussian", (int() | float() as shift, int() | float() as noise):
            return _End(None, shift / noise * (1.0 + _RELATIVE))
        case "subsampled", (Part() as inner, int() | float() as rate):
            if options["reverse"] and rate < 1.0:
                return _End(-math.log1p(-rate) * (1.0 + _RELATIVE))
            return _end(inner)
    largest = largest_loss((Rounds(part, 1),))
    return None if largest is None else _End(largest.at_most)
