"""The largest privacy loss of rounds, computed without rounding: it is the ε at δ = 0.

Lap(0, b) against Lap(s, b) has the losses (|y − s| − |y|)/b. They are at most s/b, with equality for every y ≤ 0: half of the
outcomes. So n_i independent rounds of each kind lose at most S = Σ n_i s_i/b_i together, and exactly S with a positive
probability: δ(ε) = E[(1 − e^{ε − ΣL})_+] is 0 for ε ≥ S and positive below, and the smallest ε at δ = 0 is S. This is the
composition of pure differential privacy (Dwork, McSherry, Nissim & Smith 2006), and its bound is attained.

The same holds for other rounds with a largest loss ℓ_i: discrete Laplace noise (s/b as well), a stated ε at δ = 0, the
exponential mechanism of range r (r; it is the supremum of losses that come arbitrarily near; kr for k runs) and finite pairs
(the largest ln(p/q)). If runs draw the record with probability q, losses become ln(1 − q + q·e^ℓ) in the direction remove, and
−ln(1 − q + q·e^{−ℓ}) in the direction add. Logarithms are enclosed: their errors are a few units of rounding, of the arguments
too.

If records are of several kinds, the largest loss of the worst kind is the smallest ε at δ = 0 for all of them.

S is summed in fractions, without rounding. Numbers are taken as the decimals that documents and certificates show: 0.3 is
3/10, not the double nearest to it. So three releases of scale 10 are exactly (0.3, 0)-differentially private. The decimal is
within half a unit in the last place of the double.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pyaccount.plan.rounds import Part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyaccount.plan.rounds import DirectedBounds, Rounds


class LargestLoss(NamedTuple):
    """The doubles next to the largest loss, below and above; they are equal if the loss is the decimal of a double."""

    at_least: float
    at_most: float


#: A fraction that a loss is at least, and one that it is at most.
_Enclosed = tuple[Fraction, Fraction]


@lru_cache(maxsize=256)
def largest_loss(rounds: tuple[Rounds, ...]) -> LargestLoss | None:
    """Return the largest loss of all rounds together; None if it is unbounded, or not known."""
    total = _total((_loss(item.part), item.count) for item in rounds)
    if total is None:
        return None
    try:
        return LargestLoss(_nearest(total[0], -math.inf), _nearest(total[1], math.inf))
    except OverflowError:
        return None


def _with_count(argument: object) -> bool:
    """Whether an argument is a profile with the number of its rounds."""
    return isinstance(argument, tuple) and isinstance(argument[0], Part)


def _total(losses: Iterable[tuple[_Enclosed | None, int]]) -> _Enclosed | None:
    """Return the sum of largest losses with their counts; None if one is not known."""
    least = most = Fraction(0)
    for loss, count in losses:
        if loss is None:
            return None
        least, most = least + count * loss[0], most + count * loss[1]
    return least, most


def _nearest(exact: Fraction, towards: float) -> float:
    """Return the double next to a fraction on one side; the nearest one if its decimal is the fraction."""
    nearest = float(exact)
    written = _decimal(nearest)
    beyond = written >= exact if towards > 0 else written <= exact
    return nearest if beyond else math.nextafter(nearest, towards)


def losses_bounded(bounds: DirectedBounds) -> bool:
    """Whether the losses of every composition are bounded, so that some ε holds at δ = 0."""
    compositions: Iterable[tuple[Rounds, ...]] = (
        rounds for sides in bounds.values() for rounds in (sides.upper, sides.lower)
    )
    return all(largest_loss(rounds) is not None for rounds in compositions)


def _loss(part: Part) -> _Enclosed | None:  # noqa: PLR0911 - one case for each profile with a largest loss
    """Return the largest loss of a round, enclosed; None if it has none, or none is known."""
    match part.constructor, part.arguments:
        case (("laplace" | "discrete_laplace"), (int() | float() as sensitivity, int() | float() as scale)):
            exact = _decimal(sensitivity) / _decimal(scale)
            return exact, exact
        case "exponential", (int() | float() as bound,):
            return _decimal(bound), _decimal(bound)
        case "exponential_runs", (int() | float() as bound, int() | float() as runs):
            return int(runs) * _decimal(bound), int(runs) * _decimal(bound)
        case "guarantees", (tuple() as points,):
            pure = [point[0] for point in points if isinstance(point, tuple) and point[1] == 0.0]
            return (_decimal(min(pure)), _decimal(min(pure))) if pure else None
        case "finite", (tuple() as above, tuple() as below):
            pairs = [(p, q) for p, q in zip(above, below, strict=True) if isinstance(p, float) and p > 0.0]
            if any(not isinstance(q, float) or q <= 0.0 for _, q in pairs):
                return None
            log, size = max((math.log(p / q), abs(math.log(p)) + abs(math.log(q))) for p, q in pairs)
            return _enclosed(log, 1e-15 * (1.0 + size))
        case "composed", parts:
            return _total((_loss(one[0]), int(one[1])) for one in parts if _with_count(one))  # type: ignore[index, arg-type]
        case "worst", alternatives:
            ends = [_loss(one) for one in alternatives if isinstance(one, Part)]
            known = [loss for loss in ends if loss is not None]
            return (max(loss[0] for loss in known), max(loss[1] for loss in known)) if len(known) == len(ends) else None
        case "sometimes", (inner, _) if isinstance(inner, Part):
            loss = _loss(inner)
            return None if loss is None else (max(Fraction(0), loss[0]), max(Fraction(0), loss[1]))
        case "subsampled", (inner, int() | float() as rate) if isinstance(inner, Part):
            loss = _loss(inner)
            return None if loss is None else _sampled(loss, rate, add=bool(dict(part.options)["reverse"]))
    return None


def _sampled(loss: _Enclosed, rate: float, *, add: bool) -> _Enclosed | None:
    """Return the largest loss if the record is drawn with this probability."""
    ends = []
    for end in loss:
        value = -float(end) if add else float(end)
        if value > 500.0:
            return None
        moved = rate * math.expm1(value)
        mapped = math.log1p(moved) if rate < 1.0 else value
        margin = 4e-15 * (abs(mapped) + abs(moved) / (1.0 + moved) + min(1.0, abs(moved)) * abs(value))
        ends.append(_enclosed(-mapped if add else mapped, margin))
    return ends[0][0], ends[1][1]


def _enclosed(value: float, margin: float) -> _Enclosed:
    """Return a number with this error as the two ends of an interval."""
    return Fraction(value) - Fraction(margin), Fraction(value) + Fraction(margin)


def _decimal(number: float) -> Fraction:
    """Return the decimal that a number is written as: the shortest one to which no other double is nearer."""
    return Fraction(repr(number))
