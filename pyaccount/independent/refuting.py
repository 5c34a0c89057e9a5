"""A lower bound of δ, which refutes a claim. Nothing that is proven of a claim depends on it, and the proofs do not import it.

A whole number is read off each output. Their sum is a statistic of all outputs, and no statistic has a larger H than they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import accumulate, pairwise
from typing import NamedTuple

from .composition import RoundCounts, nodes_of
from .enclosures import exp, up
from .lattice import LossGrid, coefficients, repeated
from .laws import Round


class Cells(NamedTuple):
    """A whole number that is read off an output: bounds of its masses, from below under P and from above under Q."""

    low: int
    under_p: list[int]
    under_q: list[int]


def cells(part: Round, grid: LossGrid, nodes: Sequence[int], side: int) -> Cells | None:
    """Return the masses of the outputs between the sets of neighbouring nodes, for one side; None if no pair is known."""
    if part.attained is None:
        return None
    one, known = 1 << grid.bits, [part.attained.masses(grid.loss(k), grid.bits) for k in nodes]
    # Sets above thresholds are nested, so that both masses fall, whatever thresholds were found.
    falling = (sorted(each, reverse=True) for each in zip(*known, strict=True))
    edges = [(one, one), *zip(*falling, strict=True), (0, 0)]
    labels = [nodes[0], *(round((a + b) / 2) for a, b in pairwise(nodes)), nodes[-1]]
    scale, error, low = 10**grid.digits, up(part.attained.lost, grid.bits) + (1 << 21), -nodes[-1] if side else nodes[0]
    under_p, under_q = [0] * (nodes[-1] - nodes[0] + 1), [0] * (nodes[-1] - nodes[0] + 1)
    for label, before, after in zip(labels, edges, edges[1:], strict=False):
        at, (p, q) = (-label if side else label) - low, (before[i] - after[i] for i in (side, 1 - side))
        under_p[at] += max(0, p - error) * scale >> grid.bits
        under_q[at] -= -(q + error) * scale >> grid.bits
    return Cells(low, under_p, under_q)


def _lower_delta(grid: LossGrid, parts: Sequence[tuple[Cells, int]], epsilon: int, spare: int) -> int:
    """Return a lower bound of δ(ε) of a composition, in units of 10^−digits.

    The sum T of the numbers of all rounds is a statistic of all outputs, so that δ(ε) ≥ Σ_t (P(T = t) − e^ε·Q(T = t))₊. Outputs
    with little mass under P are left out, the same ones under P and Q. P is rounded down, Q up.
    """

    def join(a: Cells, b: Cells, share: int) -> Cells:
        p = coefficients(a.under_p, b.under_p, grid.digits, up=False)
        q = coefficients(a.under_q, b.under_q, grid.digits)
        low = next((i for i, mass in enumerate(accumulate(p)) if mass > share), 0)
        top = len(p) - next((i for i, mass in enumerate(accumulate(p[:low:-1])) if mass > share), 0)
        return Cells(a.low + b.low + low, p[low:top], q[low:top])

    def run(one: Cells, count: int) -> Cells:
        return repeated(one, count, lambda a, b, times: join(a, b, spare * times // count))

    whole = reduce(lambda a, b: join(a, b, spare), [run(one, count) for one, count in parts])
    growth = exp(epsilon, grid.bits) + 1
    return sum(max(0, p + (-q * growth >> grid.bits)) for p, q in zip(whole.under_p, whole.under_q, strict=True))


def lower(parts: RoundCounts, spacing: float, digits: int, epsilon: Fraction, target: Fraction) -> Fraction:
    """Return the larger lower bound of both sides, on a lattice of this spacing; masses under Q count e^ε times."""
    more, best = int(epsilon / 2) + 1, 0
    grid = LossGrid(max(1, round(spacing * (1 << 60))), digits + more, int(3.33 * digits + 2 * epsilon) + 60 + 4 * more)
    least = max(1, int(target * (1 << grid.bits) / 10**7 / sum(count for _, count in parts)))
    nodes = [[k for k, _ in nodes_of(part, grid, 3.0, least, 1.0)] for part, _ in parts]
    for side in (0, 1):
        found = [(cells(part, grid, at, side), count) for (part, count), at in zip(parts, nodes, strict=True)]
        known = [(each, count) for each, count in found if each is not None]
        if len(known) == len(parts):
            best = max(best, _lower_delta(grid, known, up(epsilon, grid.bits), int(target * 10**grid.digits / 100_000)))
    return Fraction(best, 10**grid.digits)
