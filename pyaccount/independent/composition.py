"""Bounds of δ and ε of a composition of rounds: the lattice is refined until the claim is proven, or refuted, or time is up.

What is chosen here (lattice, precision, nodes, order) cannot make a bound false, only loose. `lawful` looks at every bound
before it is used.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from .enclosures import exp, root, up
from .lattice import (
    SPACING,
    Law,
    LossGrid,
    NotCheckableError,
    connected,
    delta,
    epsilon_at,
    lower_delta,
    power,
    product,
)
from .laws import GaussianRound, RangeRound, Renyi, Round, gaussian

#: Rounds of one kind, and how many there are.
RoundCounts = Sequence[tuple[Round, int]]
Log = Callable[[str], None]
#: A lattice has at most this many points, in all laws together.
MOST_POINTS = 600_000
#: Nodes are g points apart if g² times the mass that is left, tilted to the loss of interest, is about this.
FINE = 0.03
#: A guarantee is proven if δ is at most this much larger, relatively; the verdict says how much.
SLACK = Fraction(1, 1000)


class ProvenBounds(NamedTuple):
    """δ(ε) is at most `delta` and at least `lower`, and ε(δ) at most `epsilon`, at the ε and δ claimed."""

    delta: Fraction
    epsilon: Fraction | None = None
    lower: Fraction | None = None
    spacing: float = 0.0


def _nodes_of(part: Round, grid: LossGrid, tilt: float, least: int, far: float) -> list[tuple[int, int]]:
    """Return nodes (k, v_k), from where the profile is within `least` of 1 − α to where it is at most `least`.

    Where little mass is left, nodes are further apart; beyond the loss `far` of interest the tilt grows no more. Where errors
    are larger than the bound falls, the last node is reached: any may be the last. Values of side 1 are reflected.
    """
    one, h = 1 << grid.bits, grid.h
    furthest = min(1e4, 0.69 * grid.bits)

    def of_side(side: int) -> list[tuple[int, int]]:
        found, k, steps = [(0, min(one, part.value(grid, 0, side)))], 0, 1
        while k * h < furthest and (found[-1][1] - part.infinite) << grid.bits > least * (
            grid.alpha(k) if side else one
        ):
            k += steps
            value = min(one, part.value(grid, k, side))
            if value > found[-1][1] + (found[-1][1] >> 10) + 1000:
                break
            found.append((k, min(value, found[-1][1])))
            weight = math.log(max(1, found[-2][1] - found[-1][1])) - grid.bits * math.log(2.0) - math.log(steps * h)
            weight += -k * h if side else tilt * min(k * h, far) - max(0.0, k * h - far)
            steps = max(1, min(int(math.exp(min(60.0, (math.log(FINE) - weight) / 2))), 1 + int(0.5 / h)))
        return found

    above = of_side(0)
    below = above if part.symmetric else of_side(1)
    error = (1 << 34) + (above[0][1] >> part.precise)
    if abs(below[0][1] - above[0][1]) > error + 2 * part.infinite:
        raise NotCheckableError("a round whose two directions contradict each other")
    reflected = [
        (-k, min(one, one - (a := grid.alpha(-k)) + 1 + ((a + 1) * value >> grid.bits) + 1)) for k, value in below[1:]
    ]
    nodes = [*reflected[::-1], (0, min(above[0][1], below[0][1])), *above[1:]]
    lawful(part, grid, nodes)
    return _hull(grid, nodes) if part.hull else nodes


#: Losses beyond the last node where a bound is looked at too.
BEYOND = (0.1, 0.5, 2.0, 8.0, 32.0)


def lawful(part: Round, grid: LossGrid, nodes: Sequence[tuple[int, int]]) -> None:
    """Raise unless the bound of a round is what that of a law can be, at some nodes and beyond them.

    It does not increase; no set of outputs of the pair, or of that of the lower end, has a larger P − αQ, whatever its
    threshold; and if it is that of a pair, it is the reflection of the exchanged pair's at 1/α, computed anew. Errors are at
    most 2^30·α units.
    """
    one, known = 1 << grid.bits, [node for node in nodes[:: max(1, len(nodes) // 4)] if node[0] >= 0]
    last, final = nodes[-1]
    known += [
        nodes[-1],
        *((k, min(one, part.value(grid, k, 0))) for k in (last + max(1, round(loss / grid.h)) for loss in BEYOND)),
    ]
    # Sets of neighbouring thresholds show one that is off.
    near = {k + step for k, _ in known for step in (-2, -1, 0, 1, 2)}
    sets = [masses for k in sorted(near) if (masses := part.above(grid, k)) is not None]
    for k, value in known:
        alpha = grid.alpha(k)
        error, mirrored = ((alpha >> grid.bits) + 2) << 30, part.reflected(grid, k)
        if (
            (k > last and value > final + error)
            or value < max(0, one - alpha) - error
            or any(p - (alpha * q >> grid.bits) > value + error for p, q in sets)
            or (mirrored is not None and abs(one - alpha + (alpha * mirrored >> grid.bits) - value) > error)
        ):
            raise NotCheckableError(f"a round whose bound is not that of a law, near the loss {k * grid.h:.3g}")


def _hull(grid: LossGrid, nodes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the nodes of the lower convex hull in α: any nodes would be valid."""
    kept: list[tuple[int, int, int]] = []
    for k, value in nodes:
        alpha = grid.alpha(k)
        while len(kept) > 1 and (kept[-1][2] - kept[-2][2]) * (alpha - kept[-1][1]) >= (value - kept[-1][2]) * (
            kept[-1][1] - kept[-2][1]
        ):
            kept.pop()
        kept.append((k, alpha, value))
    return [(k, value) for k, _, value in kept]


def together(parts: RoundCounts) -> list[tuple[Round, int]]:
    """Return the parts with all Gaussian mechanisms as one, √(s_1² + s_2²), all Rényi divergences, and runs of equal ranges."""
    square, divergence, rest = Fraction(0), Renyi(Fraction(0), Fraction(0)), list[tuple[Round, int]]()
    ranges = Counter[Fraction]()
    for part, count in parts:
        if isinstance(part, GaussianRound):
            square += count * part.square
        elif isinstance(part, Renyi):
            divergence = divergence.plus(part, count)
        elif isinstance(part, RangeRound):
            ranges[part.r] += part.runs * count
        else:
            rest.append((part, count))
    for r, count in ranges.items():
        block = min(count, RangeRound.MOST if Fraction(1, 10**6) <= r <= 20 else 1)
        rest += [
            (RangeRound(r, block), count // block),
            *([(RangeRound(r, count % block), 1)] if count % block else []),
        ]
    if any(isinstance(part, Renyi) for part, _ in parts):
        rest.append((divergence, 1))
    return [*rest, (GaussianRound(square), 1)] if square else rest


def composed(parts: RoundCounts, grid: LossGrid, tilt: float, small: Fraction, far: float) -> tuple[Law, Law]:
    """Return laws of both sides; `small` is the mass that cutting may add to δ."""
    least = max(1, int(small * (1 << grid.bits) / 1000 / sum(count for _, count in parts)))
    spare, whole = int(small * 10**grid.digits / len(parts)), list[Law]()
    for part, count in parts:
        laws = connected(grid, _nodes_of(part, grid, tilt, least, far))
        runs = [power(grid, law, count, spare) for law in (laws[:1] if part.symmetric else laws)]
        runs = runs * 2 if part.symmetric else runs
        whole = [product(grid, a, b, spare // 100, spare) for a, b in zip(whole, runs, strict=True)] if whole else runs
    return whole[0], whole[1]


def closed_form(part: GaussianRound, epsilon: Fraction, target: Fraction) -> ProvenBounds:
    """Return the bounds of a Gaussian mechanism, whose δ is known up to rounding: to 2^20·(1 + e^ε) units, and much less."""
    bits = 160 + max(0, math.ceil(-math.log2(target))) + 4 * math.ceil(epsilon)
    s, one = root(part.square, bits), 1 << bits

    def at(value: Fraction) -> tuple[int, int]:
        loss = (value.numerator << bits) // value.denominator
        return gaussian(loss, alpha := exp(loss, bits), s, bits), alpha

    (found, alpha), (mirrored, _) = at(epsilon), at(-epsilon)
    error = ((alpha >> bits) + 2) << 20
    if abs(one - alpha + (alpha * mirrored >> bits) - found) > error:
        raise NotCheckableError("a Gaussian mechanism whose bound is not that of a law")
    low, high, goal = epsilon / 2, epsilon * 2 + 1, target * one
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle)[0] <= goal else (middle, high)
    known = high if at(high)[0] <= goal else None
    return ProvenBounds(Fraction(found, one), known, Fraction(max(0, found - error), one))


def prove(
    parts: RoundCounts, epsilon: Fraction, target: Fraction, seconds: float, log: Log = lambda line: None
) -> ProvenBounds:
    """Return bounds of δ at ε and of ε at δ: lattices become finer until δ(ε) ≤ target, or the contrary is proven.

    After about `seconds` of processor time no finer one is begun. The excess of δ falls as h² does: from two lattices follows
    how fine the next must be, and whether the claim may be out of reach, so that a lower bound is looked for.
    """
    began, parts = time.process_time(), together(parts)
    if len(parts) == 1 and isinstance(parts[0][0], GaussianRound):
        return closed_form(parts[0][0], epsilon, target)
    rounds = sum(count for _, count in parts)
    claimed, tilt = float(epsilon), 0.5 * -math.log(target) / max(float(epsilon), 1e-3)
    h = min(math.sqrt(0.6 / (rounds * tilt * (tilt + 1))), claimed / 100 + 1e-3, 0.05)
    digits = math.ceil(-math.log10(target) + math.log10(rounds) + 11) + max(part.more_digits for part, _ in parts)
    bits = math.ceil(3.33 * digits) + 50 + math.ceil(2 * claimed)
    at, goal = up(epsilon, bits), int(target * (1 + SLACK) * 10**digits)
    attempts: list[tuple[int, LossGrid, tuple[Law, Law]]] = []
    lower, before = None, 0.0
    while True:
        grid = LossGrid(max(1, round(h * (1 << SPACING))), digits, bits)
        laws = composed(parts, grid, tilt, target / 100, claimed)
        found = max(delta(grid, law, at) for law in laws)
        attempts.append((found, grid, laws))
        passed, points = time.process_time() - began, sum(len(law.masses) for law in laws)
        log(f"spacing {h:.3g}: δ {found / 10**digits:.6g}, {points} losses, {passed:.1f} s")
        if found <= goal:
            break
        nearer = delta(grid, laws[0], at - (1 << bits) // 200)
        slope = math.log(max(1, nearer) / found) * 200
        tilt, factor = max(tilt * 0.2, slope) if slope > 0 else tilt, 2.0
        if len(attempts) > 1:
            coarse, ratio = attempts[-2][0], attempts[-2][1].h / grid.h
            excess = (coarse - found) / (ratio**2 - 1)
            margin = goal - (found - excess)
            factor = min(max(math.sqrt(max(excess, 1.0) / (0.6 * margin)) if margin > 0 else 2.0, 1.3), 8.0)
            if margin <= abs(excess) / 50:
                lower = _lower(parts, grid, epsilon, target)
                if lower > target * (1 + SLACK):
                    break
        # The time of a lattice is about that of its points, and all lattices before were coarser.
        factor = min(factor, MOST_POINTS / points, (seconds - passed) / max(passed - before, 0.01) / 1.2)
        before = passed
        if factor < 1.2:
            break
        h /= factor
    least, grid, laws = min(attempts)
    values = [epsilon_at(grid, law, int(target * 10**digits)) for law in laws]
    known = None if None in values else Fraction(max(value for value in values if value is not None), 1 << bits)
    if lower is None and least > goal:
        lower = _lower(parts, grid, epsilon, target)
    return ProvenBounds(Fraction(least, 10**digits), known, lower, grid.h)


def _lower(parts: RoundCounts, coarse: LossGrid, epsilon: Fraction, target: Fraction) -> Fraction:
    """Return the larger lower bound of both sides; with more digits, as masses under Q count e^ε times."""
    more = math.ceil(epsilon / 2)
    grid = LossGrid(coarse.spacing, coarse.digits + more, coarse.bits + 4 * more)
    least = max(1, int(target * (1 << grid.bits) / 10**7 / sum(count for _, count in parts)))
    nodes, best = [[k for k, _ in _nodes_of(part, grid, 3.0, least, 1.0)] for part, _ in parts], 0
    for side in (0, 1):
        cells = [(part.cells(grid, at, side), count) for (part, count), at in zip(parts, nodes, strict=True)]
        known = [(each, count) for each, count in cells if each is not None]
        if len(known) == len(parts):
            best = max(best, lower_delta(grid, known, up(epsilon, grid.bits), int(target * 10**grid.digits / 100_000)))
    return Fraction(best, 10**grid.digits)
