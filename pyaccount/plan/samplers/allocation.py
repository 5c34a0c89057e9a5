"""One of several rounds, chosen at random and in secret: rounds that compose, without samples.

The likelihood ratio of an allocation is a mean of independent log-normal numbers, whose law the core encloses in convex order
(`rust/core/src/pair/allocation`). Random allocation composes them; balls in bins without a matrix are one for a whole run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.plan.common import number
from pyaccount.plan.reduction import DirectedBounds, Part, enclosed, gaussian

if TYPE_CHECKING:
    from pyaccount.document import Document

#: What is proven of it, as a source.
RATIO = "The law of the likelihood ratio, a mean of independent log-normal numbers, is enclosed in convex order"
#: The two laws differ, in ε, by about so many times the squared distance of nodes (in standard deviations of what they are nodes
#: of), and by more where single rounds weigh much; half of the tolerance is spent on that.
GAP = 1.3
#: What the distance may be.
FINEST, COARSEST = 2.0**-14, 2.0**-5
#: The tolerance where the document has none.
TOLERANCE = 1e-4
#: Masses are resolved down to this share of δ, and to this much; where δ is the blank, down to what a document can ask for.
RESOLVED, FLOOR, LEAST = 1e-12, 1e-40, 1e-120
#: The most nodes of one term's law, roughly.
MOST_NODES = 50_000.0
#: Rounds for which the core makes a law: ‖m‖²/σ² is at least the first, likelihood ratios that count are below e to the second.
LEAST_SQUARE, MOST_LOSS = 1e-12, 650.0


def allocation(document: Document, squares: Sequence[tuple[float, int]], count: int) -> DirectedBounds:
    """So many independent allocations, each of one round among these: ‖m‖²/σ², and how many rounds have it."""
    largest, least = max(square for square, _ in squares), min(square for square, _ in squares)
    negligible = _negligible(document)
    reach = _reach(negligible)
    if least < LEAST_SQUARE or 0.5 * largest + reach * math.sqrt(largest) >= MOST_LOSS:
        # Known rounds from above; from below the sum of all, in which whatever round was chosen shows as at least the least.
        known = gaussian(math.sqrt(largest), 1.0)
        summed = gaussian(math.sqrt(least / sum(count for _, count in squares)), 1.0)
        return enclosed((known, known), (summed, summed), count)
    tolerance = document.accounting.tolerance or TOLERANCE
    spacing = (0.5 * tolerance / GAP / (1.0 + largest / 4.0)) ** 0.5
    spacing = max(spacing, (math.sqrt(largest) + 2.0 * reach) / MOST_NODES)
    listed = tuple(square for square, _ in squares), tuple(rounds for _, rounds in squares)

    def part(*, reverse: bool, below: bool) -> Part:
        arguments = (*listed, min(max(spacing, FINEST), COARSEST), negligible)
        return Part("allocation", arguments, (("reverse", reverse), ("below", below)))

    above = part(reverse=False, below=False), part(reverse=True, below=False)
    return enclosed(above, (part(reverse=False, below=True), part(reverse=True, below=True)), count)


def several(document: Document, square: float, rounds: int, participations: int) -> tuple[Part, Part] | None:
    """One allocation of several of so many rounds to a record, from below: (remove, add), or None where the core makes no law.

    Two data sets, those of a record whose contributions are 1. The nodes are as far apart as they may be: what is above does not
    come from these data sets, and is farther away than that.
    """
    negligible = _negligible(document)
    # Of all participations together.
    total = participations * square
    if (
        participations > _core.MOST_PARTICIPATIONS
        or square < LEAST_SQUARE
        or 0.5 * total + _reach(negligible) * math.sqrt(total) >= MOST_LOSS
    ):
        return None
    arguments = (square, rounds, participations, COARSEST, negligible)
    remove, add = (Part("several_of", arguments, (("reverse", reverse),)) for reverse in (False, True))
    return remove, add


def _negligible(document: Document) -> float:
    """Masses below are not resolved."""
    delta = document.privacy.delta
    return LEAST if delta == "solve" else max(LEAST, min(FLOOR, RESOLVED * number(delta)))


def _reach(negligible: float) -> float:
    """How many standard deviations from the mean they lie."""
    return float((-2.0 * math.log(negligible / 64.0)) ** 0.5)
