"""Upper bounds on Rényi divergences from a privacy profile, for profiles without a closed form.

For f(t) = t^a and a pair with E_Q[P/Q] = 1, f(1) = 1 and

    E_Q[(P/Q)^a] = 1 + ∫_0^1 f″(t) E_Q[(t − P/Q)_+] dt + ∫_1^∞ f″(t) E_Q[(P/Q − t)_+] dt,

with E_Q[(P/Q − t)_+] = H_t(P‖Q) and E_Q[(t − P/Q)_+] = H_t − 1 + t. Both are convex in t, so that the chords between nodes
t_i = e^{x_i} of upper bounds on H are bounds as well (the functional increases with H, as f″ > 0). Summed by parts, the
integral of the chords is Σ_i g_i·(S_i − S_{i−1}), where g_i is the bound at a node and S_i = (f(t_{i+1}) − f(t_i))/(t_{i+1}
− t_i) increases with i, so that all terms are positive. At the first node, with the chord from (0, 0), it is g_0·(S_0 −
t_0^{a−1}); at the last one g_N·(a·t_N^{a−1} − S_{N−1}). Beyond the last node either the loss is over, or the pair is
dominated there by a Gaussian pair with a shift c (in units of σ), and then ∫_{t_N}^∞ f″ g ≤ E_Q[L^a; L > t_N] =
e^{a(a−1)c²/2}·Φ(ac − c/2 − x_N/c).

**Dominated by a Gaussian pair.** H_t is jointly convex in the pair, so a mixture of pairs N(i) against N(j) has at most the
H_t of the pair with the largest distance |i − j|, for t ≥ 1. That is so for the mixtures of Poisson sampling (distance k; 2k
under replacement), of random contributions, of draws with replacement or of a fixed size (as many copies as there are
draws), of truncated batches (2 against −1) and of random allocation. Advanced joint convexity bounds by H_α at α ≥ t, which
is smaller than at t. A sampled pair (1 − q)Q + qP against Q has H_t = q·h(1 + (t − 1)/q) ≤ h(t); in the other direction its
loss is at most −ln(1 − q).
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

from pyaccount import _core
from pyaccount.filters.logs import log_expm1, log_sum, shifted
from pyaccount.plan.largest_loss import largest_loss
from pyaccount.plan.rounds import Part, Rounds

#: The spacing of nodes, times the order, and relative to the distance from 0 or to the usual loss; the relative error of E − 1
#: is about an eighth of its square.
_SPACING, _FINE = 0.03, 0.02
#: About the most nodes on each side; more make the spacing larger, and the bound looser.
_MOST_NODES = 20_000
#: The logarithm of what is negligible beside 1, and how many standard deviations beyond the mass of L^a the nodes reach.
_NEGLIGIBLE, _REACH = 30.0, 9.0
#: A relative margin for exponentials, for weights (differences of nearly equal slopes), and an absolute one for H − 1 + t.
_RELATIVE, _DIFFERENCE, _ABSOLUTE = 2.0**-40, 1e-8, 2.0**-51


class _End(NamedTuple):
    """Where a loss ends, or the Gaussian shift that dominates it for all t ≥ 1."""

    largest: float | None
    shift: float = 0.0
    #: −ln of the probability of the largest shift; it only decides where the nodes end.
    rarity: float = 0.0


def log_moment_of_profile(part: Part, order: float) -> float | None:
    """Return an upper bound on ln E_Q[(P/Q)^a] of a profile in its direction; None if its tail is not known."""
    end = _end(part)
    if end is None:
        return None
    shift, profile = end.shift, part.build()
    last = end.largest
    if last is None:
        last = shift * (order * shift + math.sqrt(_REACH**2 + 2.0 * order * end.rarity))
    # The distance of the two laws is half of the mean size of L − 1.
    usual = max(1e-6, profile.delta(0.0)[1])
    nodes = [-x for x in reversed(_nodes(_NEGLIGIBLE / order, order, usual))] + _nodes(last, order, usual)[1:]
    slopes = [(order - 1.0) * x + log_expm1(order * (after - x)) - log_expm1(after - x) for x, after in pairwise(nodes)]
    terms = []
    for index, x in enumerate(nodes):
        value = profile.delta(x)[1]
        if x < 0.0:
            value = min(math.exp(x), value + math.expm1(x) + _ABSOLUTE)
        at_end = index == len(nodes) - 1
        if value <= 0.0 or (at_end and end.largest is not None):
            continue
        upper = math.log(order) + (order - 1.0) * x if at_end else slopes[index]
        lower = slopes[index - 1] if index else (order - 1.0) * x
        terms.append(upper + math.log(-math.expm1(lower - upper)) + math.log(value))
    if end.largest is None:
        x = nodes[-1]
        deviation = x / shift + shift / 2.0 - order * shift
        terms.append(order * (order - 1.0) * shift * shift / 2.0 + _log_tail(deviation))
    if not terms:
        return 0.0
    total = log_sum(terms)
    return shifted(total + _DIFFERENCE + _RELATIVE * abs(total)) * (1.0 + _RELATIVE)


def _nodes(last: float, order: float, usual: float) -> list[float]:
    """Return nodes from 0 to `last`, closer to one another near 0, where small losses are."""
    most = max(last / _MOST_NODES, _SPACING / order)
    nodes = [0.0]
    while nodes[-1] < last:
        nodes.append(nodes[-1] + min(most, _FINE * max(usual, nodes[-1])))
    return nodes


def _log_tail(deviation: float) -> float:
    """Return an upper bound on ln Pr[N(0, 1) > x]."""
    if deviation < 30.0:
        return math.log(0.5 * math.erfc(deviation / math.sqrt(2.0)) * (1.0 + _RELATIVE))
    return -deviation * deviation / 2.0 - math.log(deviation * math.sqrt(2.0 * math.pi)) + _RELATIVE


def _end(part: Part) -> _End | None:  # noqa: PLR0911 - one case for each kind of tail
    """Return how the loss of a profile ends; None if that is not known."""
    largest = largest_loss((Rounds(part, 1),))
    if largest is not None:
        return _End(largest.at_most)
    options = dict(part.options)
    match part.constructor, part.arguments:
        case "poisson", (int() | float() as group, int() | float() as rate, int() | float() as noise):
            shift = (2.0 if options["two_sided"] else 1.0) * group / noise
            return _End(None, shift * (1.0 + _RELATIVE), -group * math.log(rate))
        case "mixture", (tuple() as weights, tuple() as shifts, int() | float() as noise):
            law = [(float(shift), float(weight)) for shift, weight in zip(shifts, weights, strict=True) if weight > 0.0]
            largest_shift, likely = max(law)
            return _End(None, largest_shift / noise * (1.0 + _RELATIVE), -math.log(likely))
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
        case "subsampled", (Part() as inner, _):
            return _end(inner)
    return None
