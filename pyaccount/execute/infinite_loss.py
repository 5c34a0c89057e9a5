"""Refuse a δ at which no ε is finite, and say from which δ on one is.

A round whose loss is infinite with probability aᵢ, such as one that is stated with a δ, tells the two data sets apart for certain
in these outcomes, and no ε covers them. The loss of independent rounds is infinite if that of one is, so that δ(ε) is at least
1 − Π (1 − aᵢ)^nᵢ for every ε, with nᵢ rounds of each kind. Each profile of the core has a lower bound on its own aᵢ.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyaccount.document.stated import number_or_none
from pyaccount.errors import DocumentError
from pyaccount.plan.rounds import DirectedBounds, chosen, compositions
from pyaccount.rounding import up

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.profiles import Rounds


def _log_finite(item: Rounds) -> float:
    """Return an upper bound on ln Pr[L < ∞], L the loss of all these rounds: n·ln(1 − a)."""
    mass = item.profile.build().mass_at_infinity()
    return item.count * math.log1p(-mass) if mass < 1.0 else -math.inf


def mass_at_infinity(rounds: tuple[Rounds, ...]) -> float:
    """Return the probability that the loss of all rounds together is infinite, a few units of rounding from below."""
    least: float = chosen(rounds)(-math.expm1(math.fsum(map(_log_finite, one))) for one in compositions(rounds))
    return least


def refuse_infinite(document: Document, bounds: DirectedBounds) -> None:
    """Raise `DocumentError` if no ε is finite at the document's δ, or none that is proven; return if that is not known."""
    delta = number_or_none(document.privacy.delta)
    if delta is None:
        return
    above, below = (
        up(max(mass_at_infinity(rounds) for rounds in rounds_of_side))
        for rounds_of_side in ([side.upper for side in bounds.values()], [side.lower for side in bounds.values()])
    )
    # The message is true of every δ below the number that it shows, up to its rounding.
    if delta >= float(above):
        return
    known = f"no ε is finite below δ = {below}" if delta < float(below) else f"no finite ε is proven below δ = {above}"
    message = (
        f"{known} (rounded up): with this probability, what is released may tell the data sets apart for certain, as it "
        f"may for a mechanism that is stated with a δ. Give a delta of at least {above}, or release less that has a δ of its own"
    )
    allowed = f"a number at least {above} and less than 1"
    raise DocumentError([document.problem("out-of-range", ("privacy", "delta"), message, allowed=allowed)])
