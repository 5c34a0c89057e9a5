"""The largest privacy loss of rounds, computed without rounding: it is the ε at δ = 0.

Lap(0, b) against Lap(s, b) has the losses (|y − s| − |y|)/b. They are at most s/b, with equality for every y ≤ 0: half of the
outcomes. So n_i independent rounds of each kind lose at most S = Σ n_i s_i/b_i together, and exactly S with a positive
probability: δ(ε) = E[(1 − e^{ε − ΣL})_+] is 0 for ε ≥ S and positive below, and the smallest ε at δ = 0 is S. This is the
composition of pure differential privacy (Dwork, McSherry, Nissim & Smith 2006), and its bound is attained.

The same holds for other rounds with a largest loss. What it is, the profile of the core says, in its direction. If records are
of several kinds, the largest loss of the worst kind is the smallest ε at δ = 0 for all of them.

S is summed in fractions, without rounding. Numbers are taken as the decimals that documents and certificates show: 0.3 is
3/10, not the double nearest to it. So three releases of scale 10 are exactly (0.3, 0)-differentially private. The decimal is
within half a unit in the last place of the double.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pyaccount.plan.rounds import chosen, compositions
from pyaccount.rounding import decimal_beside

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyaccount.plan.rounds import DirectedBounds
    from pyaccount.profiles import Rounds


class LargestLoss(NamedTuple):
    """The doubles next to the largest loss, below and above; they are equal if the loss is the decimal of a double."""

    at_least: float
    at_most: float


@lru_cache(maxsize=256)
def largest_loss(rounds: tuple[Rounds, ...]) -> LargestLoss | None:
    """Return the largest loss of all rounds together, in nats; None if it is unbounded, or not known."""
    kinds = [_sum(of_kind) for of_kind in compositions(rounds)]
    known = [loss for loss in kinds if loss is not None]
    if len(known) < len(kinds):
        return None
    pick = chosen(rounds)
    least, most = pick(loss[0] for loss in known), pick(loss[1] for loss in known)
    try:
        return LargestLoss(decimal_beside(least, -math.inf), decimal_beside(most, math.inf))
    except OverflowError:
        return None


def losses_bounded(bounds: DirectedBounds) -> bool:
    """Return whether the losses of every composition are bounded, so that some ε holds at δ = 0."""
    sides: Iterable[tuple[Rounds, ...]] = (rounds for one in bounds.values() for rounds in (one.upper, one.lower))
    return all(largest_loss(rounds) is not None for rounds in sides)


def _sum(rounds: Iterable[Rounds]) -> tuple[Fraction, Fraction] | None:
    """Return bounds on the sum of the largest losses of rounds; None if one is not known."""
    least = most = Fraction(0)
    for item in rounds:
        loss = item.profile.build().largest_loss()
        if loss is None:
            return None
        least, most = least + item.count * loss[0], most + item.count * loss[1]
    return least, most
