"""One of several rounds, chosen at random and in secret: rounds that compose, without samples.

The likelihood ratio of an allocation is a mean of independent log-normal numbers, whose law the core encloses in convex order
(`rust/core/src/pair/allocation`). Random allocation composes them; balls in bins are one for a whole run
where no two bins move the same coordinate.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.plan.common import number
from pyaccount.plan.rounds import DirectedBounds, Part, enclosed, gaussian

if TYPE_CHECKING:
    from pyaccount.document import Document

#: Values of ‖m‖²/σ², ascending, each with how many rounds have it.
Squares = tuple[tuple[float, int], ...]

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
#: By how much 1/σ², a root of it and a quotient may be off together, relatively: a few units of 1.1e-16.
ROUNDING = 1e-15


#: The most values of ‖m‖²/σ² whose terms the core sums one after the other, and how far apart they may be: on one grid for all of
#: them each costs more, and the law's last steps are on a coarser grid than those of equal terms.
MOST_KINDS, WIDEST = 16, 25.0


def resolved(squares: Squares, tolerance: float) -> bool:
    """Whether the law of rounds that differ by so much is enclosed about as narrowly as `tolerance` asks for.

    A width in ‖m‖² is, relatively, about twice that in ε: ε depends on the root of its argument at most about linearly.
    """
    ratio = squares[-1][0] / squares[0][0] if squares[0][0] > 0.0 else math.inf
    return ratio <= WIDEST and (len(squares) <= MOST_KINDS or ratio ** (1.0 / MOST_KINDS) <= 1.0 + 2.0 * tolerance)


def graded(squares: Squares, *, upper: bool) -> Squares:
    """At most `MOST_KINDS` + 1 values: those of a geometric grid between the ends, moved up to it, or down.

    The law grows with every ‖m‖² in convex order: Z = e^{N(−s/2, s)} does with s, being a martingale in s (geometric Brownian
    motion), and the order survives sums of independent terms. So values moved up are above, and values moved down below.
    """
    if len(squares) <= MOST_KINDS:
        return squares
    least, largest = squares[0][0], squares[-1][0]
    grid = [least * (largest / least) ** (k / MOST_KINDS) for k in range(1, MOST_KINDS)]
    grid = [least, *(node for node in grid if least < node < largest), largest]
    counts: Counter[float] = Counter()
    for square, count in squares:
        counts[grid[bisect_left(grid, square) if upper else bisect_right(grid, square) - 1]] += count
    return tuple(sorted(counts.items()))


def allocation(document: Document, squares: Squares, count: int, *, below: Squares | None = None) -> DirectedBounds:
    """So many independent allocations, each of one round among these: ‖m‖²/σ², and how many rounds have it.

    Where the squares are not known exactly these are at least as large as they are, and those `below` at most as large.
    """
    above, below = graded(squares, upper=True), graded(squares if below is None else below, upper=False)
    largest, least = above[-1][0], below[0][0]
    negligible = _negligible(document)
    reach = _reach(negligible)
    if least < LEAST_SQUARE or 0.5 * largest + reach * math.sqrt(largest) >= MOST_LOSS:
        # Known rounds from above; from below the sum of all, in which whatever round was chosen shows as at least the least.
        known = gaussian(math.sqrt(largest) * (1.0 + ROUNDING), 1.0)
        summed = gaussian(math.sqrt(least / sum(count for _, count in below)) * (1.0 - ROUNDING), 1.0)
        return _enclosed((known, known), (summed, summed), count)
    tolerance = document.accounting.tolerance or TOLERANCE
    spacing = (0.5 * tolerance / GAP / (1.0 + largest / 4.0)) ** 0.5
    most = MOST_NODES if len(above) <= 2 else 2.0 * MOST_NODES / len(above)
    spacing = max(spacing, (math.sqrt(largest) + 2.0 * reach) * math.sqrt(largest / least) / most)

    def part(squares: Squares, *, reverse: bool, below: bool) -> Part:
        listed = tuple(square for square, _ in squares), tuple(rounds for _, rounds in squares)
        arguments = (*listed, min(max(spacing, FINEST), COARSEST), negligible)
        return Part("allocation", arguments, (("reverse", reverse), ("below", below)))

    upper = part(above, reverse=False, below=False), part(above, reverse=True, below=False)
    lower = part(below, reverse=False, below=True), part(below, reverse=True, below=True)
    return _enclosed(upper, lower, count)


def _enclosed(upper: tuple[Part, Part], lower: tuple[Part, Part], count: int) -> DirectedBounds:
    """Of one pair both, whose distance is an error of the bound."""
    return {side: replace(found, inner=found.lower) for side, found in enclosed(upper, lower, count).items()}


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
