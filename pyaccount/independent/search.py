"""The search for a proof: the lattice is refined until the claim is proven, or refuted, or time is up.

Nothing here is a bound: all of them come from `composition`, `lattice` and `moments`, and a poor choice only makes one loose.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from . import choices
from .composition import RoundCounts, composed, connected_laws, lawful, tilted_laws, together
from .enclosures import exp, up
from .lattice import SPACING, Law, LossGrid, delta
from .laws import Blend, GaussianRound
from .moments import Chain, Correlated, SecretRound
from .refuting import lower

Log = Callable[[str], None]
#: A lattice has at most this many points, in all laws together; and a table of moments this many entries.
MOST_POINTS, MOST_ENTRIES = 600_000, 10_000_000
#: A guarantee is proven if δ is at most this much larger, relatively; the verdict says how much.
SLACK = Fraction(1, 1000)


class ProvenBounds(NamedTuple):
    """δ(ε) is at most `delta` and at least `lower`, and ε(δ) at most `epsilon`, at the ε and δ claimed."""

    delta: Fraction
    epsilon: Fraction | None = None
    lower: Fraction | None = None
    spacing: float = 0.0


def _least_epsilon(at: Callable[[Fraction], bool], low: Fraction, high: Fraction) -> Fraction | None:
    """Return an ε between two for which a bound holds, near the least one; None if it does not hold at the larger one."""
    if at(low) or not at(high):
        return low if at(low) else None
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle) else (middle, high)
    return high


def prove(
    parts: RoundCounts, epsilon: Fraction, target: Fraction, seconds: float, log: Log = lambda line: None
) -> ProvenBounds:
    """Return bounds of δ at ε and of ε at δ: of one run with correlated noise also by moments, of anything else by lattices."""
    secret = [part for part, _ in parts if isinstance(part, SecretRound)]
    alone = parts[0][0] if len(parts) == 1 and parts[0][1] == 1 and epsilon <= 1000 else None
    public = [(GaussianRound(part.square) if isinstance(part, SecretRound) else part, count) for part, count in parts]
    known = _by_lattices(public, epsilon, target, seconds / 8 if secret else seconds, log)
    known = known._replace(lower=None) if secret else known
    if known.delta <= target or not isinstance(alone, Correlated) or not alone.law.may_be_absent(epsilon):
        return known
    moments = _moments(alone, epsilon, target, seconds, log)

    def bound(at: Fraction) -> Fraction:
        return min((alone.delta(m, moment, at) for m, moment in enumerate(moments, 2)), default=Fraction(1))

    if bound(epsilon) >= known.delta:
        return known
    return ProvenBounds(bound(epsilon), _least_epsilon(lambda e: bound(e) <= target, Fraction(0), epsilon))


def _moments(run: Correlated, epsilon: Fraction, target: Fraction, seconds: float, log: Log) -> list[Fraction]:
    """Return moments of growing order from 2 on, until δ(ε) is near the target or gets worse, or they take too long."""
    until, best, moments = time.process_time() + seconds, Fraction(2), list[Fraction]()
    while best > target * (1 + SLACK / 5):
        m, left = len(moments) + 2, until - time.process_time()
        states, large = math.comb(run.law.apart + m - 1, m), m * (m - 1) // 2 * run.columns.largest() > 500
        if large or states > MOST_ENTRIES or states * run.law.apart * 2e-7 > left:
            break
        moment = Chain(run.law, run.columns, m).moment(left)
        if moment is None or (found := run.delta(m, moment, epsilon)) >= best:
            break
        log(f"E f^{m}: δ {float(found):.6g}")
        moments, best = [*moments, moment], found
    return moments


def of_one(part: GaussianRound | Blend, epsilon: Fraction, target: Fraction) -> ProvenBounds:
    """Return the bounds of one round whose profile is known at every ε: that of a lattice with one point, ε rounded down."""
    bits = 160 + max(0, math.ceil(-math.log2(target))) + 4 * math.ceil(epsilon)

    def above(value: Fraction) -> Fraction:
        grid = LossGrid(math.floor(value * (1 << SPACING)), 1, bits)
        return Fraction(max(part.value(grid, 1, side) for side in (0, 1)[: 2 - part.symmetric]), 1 << bits)

    found, grid = above(epsilon), LossGrid(max(1, math.floor(epsilon * (1 << SPACING))), 1, bits)
    lawful(part, grid, [(1, part.value(grid, 1, 0))])
    known = _least_epsilon(lambda value: above(value) <= target, epsilon / 2, 2 * epsilon + 1)
    below = None
    if part.attained:
        (p, q), alpha = part.attained.masses(up(epsilon, bits), bits), exp(up(epsilon, bits), bits)
        below = Fraction(max(0, p - (alpha * q >> bits) - ((alpha >> bits) + 2 << 21)), 1 << bits)
    return ProvenBounds(found, known, below)


def _by_lattices(
    parts: RoundCounts, epsilon: Fraction, target: Fraction, seconds: float, log: Log = lambda line: None
) -> ProvenBounds:
    """Return bounds of δ at ε and of ε at δ: lattices become finer until δ(ε) ≤ target, or the contrary is proven.

    After about `seconds` of processor time no finer one is begun. The excess of δ falls as h² does: from two lattices follows
    how fine the next must be, and whether the claim may be out of reach, so that a lower bound is looked for.
    """
    began, parts = time.process_time(), together(parts)
    (alone, count), *rest = parts
    if not rest and count == 1 and isinstance(alone, GaussianRound | Blend) and not alone.more_digits:
        return of_one(alone, epsilon, target)
    rounds = sum(count for _, count in parts)
    claimed, tilt = float(epsilon), 0.5 * -math.log(target) / max(float(epsilon), 1e-3)
    h = min(math.sqrt(0.6 / (rounds * tilt * (tilt + 1))), claimed / 100 + 1e-3, 0.05)
    digits = math.ceil(-math.log10(target) + math.log10(rounds) + 11) + max(part.more_digits for part, _ in parts)
    bits = math.ceil(3.33 * digits) + 50 + math.ceil(2 * claimed)
    at, goal = up(epsilon, bits), int(target * (1 + SLACK) * (1 << bits))
    attempts: list[tuple[int, LossGrid, tuple[Law, Law]]] = []
    below, before = None, 0.0
    while True:
        grid = LossGrid(max(1, round(h * (1 << SPACING))), digits, bits)
        each, small = connected_laws(parts, grid, tilt, target / 100, claimed), target / 10_000
        chosen = choices.tilting(each, [count for _, count in parts], grid, target / 20_000, claimed)
        if chosen.digits < 0.75 * digits:
            each, grid = tilted_laws(parts, grid, each, chosen), grid._replace(digits=chosen.digits)
            small = chosen.spare
        laws = composed(parts, grid, each, small)
        found, larger = max((delta(grid, law, at), side) for side, law in enumerate(laws))
        attempts.append((found, grid, laws))
        passed, points = time.process_time() - began, sum(len(law.masses) for law in laws)
        log(f"spacing {h:.3g}: δ {found / (1 << bits):.6g}, {points} losses, {passed:.1f} s")
        if found <= goal:
            break
        nearer, factor = delta(grid, laws[larger], at - (1 << bits) // 200), 2.0
        tilt = max(tilt * 0.2, math.log(nearer / found) * 200)
        if len(attempts) > 1:
            coarse, ratio = attempts[-2][0], attempts[-2][1].h / grid.h
            excess = (coarse - found) / (ratio**2 - 1)
            margin = goal - (found - excess)
            factor = min(max(math.sqrt(max(excess, 1.0) / (0.6 * margin)) if margin > 0 else 2.0, 1.3), 8.0)
            if margin <= abs(excess) / 50:
                below = lower(parts, grid.h, digits, epsilon, target)
                if below > target * (1 + SLACK):
                    break
        # The time of a lattice is about that of its points, and all lattices before were coarser.
        factor = min(factor, MOST_POINTS / points, (seconds - passed) / max(passed - before, 0.01) / 1.2)
        before = passed
        if factor < 1.2:
            break
        h /= factor
    least, grid, laws = min(attempts)
    # Every loss of both laws is below the largest one.
    largest = Fraction(max(0, *(grid.loss(law.low + len(law.masses)) for law in laws)), 1 << bits)
    known = _least_epsilon(
        lambda e: all(delta(grid, law, int(e * (1 << bits))) <= target * (1 << bits) for law in laws),
        Fraction(0),
        largest,
    )
    if below is None and least > goal:
        below = lower(parts, grid.h, digits, epsilon, target)
    return ProvenBounds(Fraction(least, 1 << bits), known, below, grid.h)
