"""Allocations: one of several rounds, chosen at random and in secret. They compose, without samples.

The likelihood ratio of an allocation is a mean of independent log-normal numbers, whose law the core encloses in convex
order (`rust/core/src/pair/allocation`). Random allocation composes such laws. For balls in bins the whole run is one
allocation if no two bins move the same coordinate.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import replace

from pyaccount import _core
from pyaccount.plan.common import number
from pyaccount.plan.protection import Protection
from pyaccount.plan.rounds import DirectedBounds, enclosed
from pyaccount.profiles import AllocationProfile, GaussianProfile, ProfileKind, SeveralOfProfile

#: Values of ‖m‖²/σ² in ascending order, each with the number of rounds that have it.
Squares = tuple[tuple[float, int], ...]

#: The proof of the enclosure, as a source.
RATIO = "The law of the likelihood ratio, a mean of independent log-normal numbers, is enclosed in convex order"
#: The two enclosing laws differ, in ε, by about this factor times the squared distance of nodes (in standard deviations of the
#: variable whose law they discretise), and by more if single rounds dominate; half of the tolerance is spent on that.
GAP = 1.3
#: The range of the distance of nodes.
FINEST, COARSEST = 2.0**-14, 2.0**-5
#: The tolerance if the document states none.
TOLERANCE = 1e-4
#: Masses are resolved down to the first times δ or to the second, whichever is less; but no further than to the third, the least
#: δ of a document, which is also used if δ is the blank.
RESOLVED, FLOOR, LEAST = 1e-12, 1e-40, 1e-120
#: The approximate maximum number of nodes of one term's law.
MOST_NODES = 50_000.0
#: The core makes a law if ‖m‖²/σ² is at least the first, and the likelihood ratios that matter are below e to the second.
LEAST_SQUARE, MOST_LOSS = 1e-12, 650.0
#: The joint relative rounding error of 1/σ², a root of it and a quotient: a few units of 1.1e-16.
ROUNDING = 1e-15


#: The maximum number of values of ‖m‖²/σ² whose terms the core sums one after the other, and their largest ratio: on a common
#: grid each of them costs more, and the law's last steps are on a coarser grid than for equal terms.
MOST_KINDS, WIDEST = 16, 25.0


def is_narrow(squares: Squares, tolerance: float) -> bool:
    """Whether the law of rounds with these values is enclosed about as narrowly as `tolerance` requires.

    The relative width in ‖m‖² is about twice the one in ε: ε depends on the root of its argument at most about
    linearly.
    """
    ratio = squares[-1][0] / squares[0][0] if squares[0][0] > 0.0 else math.inf
    return ratio <= WIDEST and (len(squares) <= MOST_KINDS or ratio ** (1.0 / MOST_KINDS) <= 1.0 + 2.0 * tolerance)


def graded(squares: Squares, *, upper: bool) -> Squares:
    """Return at most `MOST_KINDS` + 1 values: the given ones, moved up (or down) to a geometric grid over their range.

    The law grows with every ‖m‖² in convex order: Z = e^{N(−s/2, s)} grows with s, since it is a martingale in s
    (geometric Brownian motion), and sums of independent terms preserve the order. So values that are moved up give a
    law above, and values that are moved down a law below.
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


def allocation(asked: Protection, squares: Squares, count: int, *, below: Squares | None = None) -> DirectedBounds:
    """Return the bounds of `count` independent allocations, each to one of the rounds that `squares` describes.

    `squares` has the values of ‖m‖²/σ² and their numbers of rounds. If these are not known exactly, `squares` must be
    upper bounds, and `below` has lower bounds.
    """
    above, below = graded(squares, upper=True), graded(squares if below is None else below, upper=False)
    largest, least = above[-1][0], below[0][0]
    negligible = _negligible(asked)
    reach = _reach(negligible)
    if least < LEAST_SQUARE or 0.5 * largest + reach * math.sqrt(largest) >= MOST_LOSS:
        # The upper bound takes the chosen round as known. The lower bound takes the sum of all outputs, which any chosen round
        # moves by at least the least norm.
        known = GaussianProfile(math.sqrt(largest) * (1.0 + ROUNDING), 1.0)
        summed = GaussianProfile(math.sqrt(least / sum(count for _, count in below)) * (1.0 - ROUNDING), 1.0)
        return _enclosed((known, known), (summed, summed), count)
    tolerance = asked.accounting.tolerance or TOLERANCE
    spacing = (0.5 * tolerance / GAP / (1.0 + largest / 4.0)) ** 0.5
    most = MOST_NODES if len(above) <= 2 else 2.0 * MOST_NODES / len(above)
    spacing = max(spacing, (math.sqrt(largest) + 2.0 * reach) * math.sqrt(largest / least) / most)

    def part(squares: Squares, *, reverse: bool, below: bool) -> ProfileKind:
        values, counts = tuple(square for square, _ in squares), tuple(rounds for _, rounds in squares)
        return AllocationProfile(values, counts, min(max(spacing, FINEST), COARSEST), negligible, reverse, below)

    upper = part(above, reverse=False, below=False), part(above, reverse=True, below=False)
    lower = part(below, reverse=False, below=True), part(below, reverse=True, below=True)
    return _enclosed(upper, lower, count)


def _enclosed(
    upper: tuple[ProfileKind, ProfileKind], lower: tuple[ProfileKind, ProfileKind], count: int
) -> DirectedBounds:
    """Return bounds whose two laws enclose the law of one pair; their distance is an error of the bound."""
    return {side: replace(directed, inner=directed.lower) for side, directed in enclosed(upper, lower, count).items()}


def several(
    asked: Protection, square: float, rounds: int, participations: int
) -> tuple[ProfileKind, ProfileKind] | None:
    """Return a lower bound for one allocation of `participations` out of `rounds` rounds, as profiles (remove, add).

    It is for two data sets, with contributions of 1 by the record. Returns None if the core makes no law for them. The
    nodes are as far apart as allowed: the upper bound is not from these data sets, and is farther away than that.
    """
    negligible = _negligible(asked)
    # The value for all participations together.
    total = participations * square
    if (
        participations > _core.MOST_PARTICIPATIONS
        or square < LEAST_SQUARE
        or 0.5 * total + _reach(negligible) * math.sqrt(total) >= MOST_LOSS
    ):
        return None
    remove, add = (
        SeveralOfProfile(square, rounds, participations, COARSEST, negligible, reverse) for reverse in (False, True)
    )
    return remove, add


def _negligible(asked: Protection) -> float:
    """Return the mass below which masses are not resolved."""
    delta = asked.privacy.delta
    return LEAST if delta == "solve" else max(LEAST, min(FLOOR, RESOLVED * number(delta)))


def _reach(negligible: float) -> float:
    """Return how many standard deviations from the mean a negligible mass begins."""
    return float((-2.0 * math.log(negligible / 64.0)) ** 0.5)
