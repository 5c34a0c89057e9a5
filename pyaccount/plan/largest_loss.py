"""The largest privacy loss of rounds, exactly: what ε is at δ = 0.

Lap(0, b) against Lap(s, b) has the losses (|y − s| − |y|)/b. They are at most s/b, with equality for every y ≤ 0: half of the
outcomes. So n_i independent rounds of each kind lose at most S = Σ n_i s_i/b_i together, and exactly S with a positive
probability: δ(ε) = E[(1 − e^{ε − ΣL})_+] is 0 for ε ≥ S and positive below, and the smallest ε at δ = 0 is S. This is the
composition of pure differential privacy (Dwork, McSherry, Nissim & Smith 2006), and its bound is attained.

S is added up in fractions, without rounding. Here a number is the decimal that it is written as, in documents and
certificates: 0.3 is 3/10, not the double next to it. So three releases of scale 10 are (0.3, 0)-differentially private, and
not a little less. That decimal is within half a unit in the last place of the double.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyaccount.plan.rounds import DirectedBounds, Part, Rounds


class LargestLoss(NamedTuple):
    """The numbers next to it, the same twice where it is one that a double is written as."""

    at_least: float
    at_most: float


@lru_cache(maxsize=256)
def largest_loss(rounds: tuple[Rounds, ...]) -> LargestLoss | None:
    """The largest loss of all rounds together; None where it has no bound, or none that is attained."""
    losses = [_loss(one.part) for one in rounds]
    total = Fraction(0)
    for one, loss in zip(rounds, losses, strict=True):
        if loss is None:
            return None
        total += one.count * loss
    try:
        nearest = float(total)
    except OverflowError:
        return None
    written = _decimal(nearest)
    below = nearest if written <= total else math.nextafter(nearest, -math.inf)
    above = nearest if written >= total else math.nextafter(nearest, math.inf)
    return LargestLoss(below, above)


def bounded(bounds: DirectedBounds) -> bool:
    """Whether the losses of every composition are bounded, so that some ε holds at δ = 0."""
    compositions: Iterable[tuple[Rounds, ...]] = (
        rounds for sides in bounds.values() for rounds in (sides.upper, sides.lower)
    )
    return all(largest_loss(rounds) is not None for rounds in compositions)


def _loss(part: Part) -> Fraction | None:
    """s/b of a Laplace release."""
    if part.constructor != "laplace":
        return None
    sensitivity, scale = part.arguments
    assert isinstance(sensitivity, int | float)
    assert isinstance(scale, int | float)
    return _decimal(sensitivity) / _decimal(scale)


def _decimal(number: float) -> Fraction:
    """The decimal that a number is written as: the shortest one that no other double is nearer to."""
    return Fraction(repr(number))
