"""The largest privacy loss of rounds, computed exactly: it is the ε at δ = 0.

Lap(0, b) against Lap(s, b) has the losses (|y − s| − |y|)/b. They are at most s/b, with equality for every y ≤ 0: half of the
outcomes. So n_i independent rounds of each kind lose at most S = Σ n_i s_i/b_i together, and exactly S with a positive
probability: δ(ε) = E[(1 − e^{ε − ΣL})_+] is 0 for ε ≥ S and positive below, and the smallest ε at δ = 0 is S. This is the
composition of pure differential privacy (Dwork, McSherry, Nissim & Smith 2006), and its bound is attained.

S is summed in fractions, without rounding. Numbers are taken as the decimals that documents and certificates show: 0.3 is
3/10, not the double nearest to it. So three releases of scale 10 are exactly (0.3, 0)-differentially private. The decimal is
within half a unit in the last place of the double.
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
    """The doubles next to the largest loss, below and above; they are equal if the loss is the decimal of a double."""

    at_least: float
    at_most: float


@lru_cache(maxsize=256)
def largest_loss(rounds: tuple[Rounds, ...]) -> LargestLoss | None:
    """Return the largest loss of all rounds together; None if it is unbounded, or not attained."""
    losses = [_loss(item.part) for item in rounds]
    total = Fraction(0)
    for item, loss in zip(rounds, losses, strict=True):
        if loss is None:
            return None
        total += item.count * loss
    try:
        nearest = float(total)
    except OverflowError:
        return None
    written = _decimal(nearest)
    below = nearest if written <= total else math.nextafter(nearest, -math.inf)
    above = nearest if written >= total else math.nextafter(nearest, math.inf)
    return LargestLoss(below, above)


def losses_bounded(bounds: DirectedBounds) -> bool:
    """Whether the losses of every composition are bounded, so that some ε holds at δ = 0."""
    compositions: Iterable[tuple[Rounds, ...]] = (
        rounds for sides in bounds.values() for rounds in (sides.upper, sides.lower)
    )
    return all(largest_loss(rounds) is not None for rounds in compositions)


def _loss(part: Part) -> Fraction | None:
    """Return s/b of a Laplace release; None for any other part."""
    if part.constructor != "laplace":
        return None
    sensitivity, scale = part.arguments
    assert isinstance(sensitivity, int | float)
    assert isinstance(scale, int | float)
    return _decimal(sensitivity) / _decimal(scale)


def _decimal(number: float) -> Fraction:
    """Return the decimal that a number is written as: the shortest one to which no other double is nearer."""
    return Fraction(repr(number))
