"""Bounds of δ and ε of a composition of rounds: the lattice is refined until the claim is proven, or refuted, or time is up.

Nothing that is chosen here (lattice, precision, nodes, order) can make a bound false; it can only make it loose.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from . import lattice
from .derived import RepeatedRound
from .enclosures import exp, up
from .kinds import BoundedRange, Divergence
from .lattice import Law, LossGrid, connected, delta, lower_delta, power, product, spacing_of
from .rounds import CountedRound, GaussianRound, Round
from .shapes import refused

#: The lattice has at most this many points, in all laws together.
MOST_POINTS = 600_000
#: Nodes are g lattice points apart if g² times the mass that is left, tilted to the loss of interest, is about this.
FINE = 0.03


#: A guarantee counts as proven if δ is proven up to this factor; the verdict states by how much it is looser.
SLACK = Fraction(1, 1000)


class ProvenBounds(NamedTuple):
    """What was proven: δ(ε) is at most `delta` and at least `lower`, and ε(δ) is at most `epsilon`, at the ε and δ claimed."""

    delta: Fraction
    epsilon: Fraction | None
    lower: Fraction | None
    spacing: float


def _nodes_of(part: Round, grid: LossGrid, tilt: float, least: int, far: float) -> list[tuple[int, int]]:
    """Return nodes (k, v_k) from where the profile is within `least` of 1 − α to where it is at most `least`.

    Where little mass is left, nodes are further apart; beyond the loss `far` of interest, the tilt grows no more. Where α is so
    large that a unit of Q counts as much as P, nothing is known: the last node may be anywhere, as a profile does not increase.
    """
    one = 1 << grid.bits
    h, furthest = grid.spacing / (1 << lattice.SPACING_BITS), min(1e4, 0.69 * grid.bits)

    def gap(fall: int, steps: int, loss: float) -> int:
        """Return the distance to the next node: `fall` over the last `steps` is about the mass of the losses beyond."""
        weight = math.log(max(1, fall)) - grid.bits * math.log(2.0) - math.log(steps * h)
        weight += tilt * min(loss, far) - max(0.0, loss - far)
        return max(1, min(int(math.exp(min(60.0, (math.log(FINE) - weight) / 2))), 1 + int(0.5 / h)))

    # A profile does not increase. Where its bound does, that of the last node is the better one.
    above, k, steps = [(0, min(one, part.value(grid, 0)))], 0, 1
    while above[-1][1] > least + part.infinite and k * h < furthest:
        k += steps
        value = min(one, part.value(grid, k))
        if value > above[-1][1] + (above[-1][1] >> 10) + 1000:
            break
        above.append((k, min(value, above[-1][1])))
        steps = gap(above[-2][1] - above[-1][1], steps, k * h)
    below: list[tuple[int, int]] = []
    if part.symmetric:
        for j, value in above[1:]:
            alpha = grid.alpha(-j)
            below.append((-j, min(one, one - alpha + 1 + ((alpha + 1) * value >> grid.bits) + 1)))
    else:
        k, steps, rest = 0, 1, above[0][1]
        while (rest - 2 * part.infinite) << grid.bits > least * grid.alpha(k) and -k * h < furthest:
            k -= steps
            value, before = min(one, part.value(grid, k)), rest
            rest = value - one + grid.alpha(k)
            below.append((k, value))
            steps = gap(before - rest, steps, 0.0)
    nodes = below[::-1] + above
    lawful(part, grid, nodes)
    return _hull(grid, nodes) if part.hull else nodes


#: Losses beyond the last node where a bound is looked at too, in nats.
BEYOND = (0.1, 0.5, 2.0, 8.0, 32.0)


def lawful(part: Round, grid: LossGrid, nodes: Sequence[tuple[int, int]]) -> None:
    """Raise unless the bound of a round is what that of a law can be, at some nodes and beyond them.

    It does not increase; no set of outputs of the pair for the lower end has a larger P − αQ, whatever its threshold; and if it
    is that of a pair, it is for α ≥ 1 the reflection of the bound of the exchanged pair, computed anew. Errors are at most 2^30·α
    units.
    """
    one, h = 1 << grid.bits, grid.spacing / (1 << lattice.SPACING_BITS)
    last, final = nodes[-1]
    known = [node for node in nodes[:: max(1, len(nodes) // 4)] if node[0] >= 0 or not part.symmetric]
    beyond = [last + max(1, round(loss / h)) for loss in BEYOND]
    known += [nodes[-1], *((k, min(one, part.value(grid, k))) for k in beyond)]
    sets = [masses for k, _ in known if (masses := part.masses(grid, k)) is not None]
    for k, value in known:
        alpha = grid.alpha(k)
        error = ((alpha >> grid.bits) + 2) << 30
        mirrored = part.reflected(grid, k) if k >= 0 else None
        if (
            (k > last and value > final + error)
            or value < max(0, one - alpha) - error
            or any(p - (alpha * q >> grid.bits) > value + error for p, q in sets)
            or (mirrored is not None and abs(one - alpha + (alpha * mirrored >> grid.bits) - value) > error)
        ):
            raise refused(f"a round whose bound is not that of a law, near the loss {k * h:.3g}")


def _hull(grid: LossGrid, nodes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the nodes of the lower convex hull in α: any nodes would be valid, and these are convex up to rounding."""
    kept: list[tuple[int, int, int]] = []
    for k, value in nodes:
        alpha = grid.alpha(k)
        while len(kept) > 1:
            (_, a, v), (_, b, w) = kept[-2:]
            if (w - v) * (alpha - b) < (value - w) * (b - a):
                break
            kept.pop()
        kept.append((k, alpha, value))
    return [(k, value) for k, _, value in kept]


def together(parts: Sequence[RepeatedRound]) -> list[RepeatedRound]:
    """Return the parts with all Gaussian mechanisms as one, all bounds on divergences, and blocks of equal selections.

    N(s_1) × N(s_2) is N(√(s_1² + s_2²)) (Dong, Roth & Su 2022), and Rényi divergences of an order add up.
    """
    gaussians = [(part, count) for part, count in parts if isinstance(part, GaussianRound)]
    rates = [part.times(count) for part, count in parts if isinstance(part, Divergence)]
    rest = [(part, count) for part, count in parts if not isinstance(part, GaussianRound | Divergence | BoundedRange)]
    selections = Counter[Fraction]()
    for part, count in parts:
        if isinstance(part, BoundedRange):
            selections[part.spread] += part.runs * count
    for spread, count in selections.items():
        block = min(count, BoundedRange.MOST if Fraction(1, 10**6) <= spread <= 20 else 1)
        rest += [(BoundedRange(spread, block), count // block)]
        rest += [(BoundedRange(spread, count % block), 1)] if count % block else []
    rest += [(sum(rates[1:], rates[0]), 1)] if rates else []
    if not gaussians:
        return rest

    def shift(bits: int) -> int:
        square = sum(count * part.shift(bits) ** 2 for part, count in gaussians)
        return math.isqrt(square) + 1

    return [*rest, (GaussianRound(shift), 1)]


def closed_form(part: GaussianRound | CountedRound, epsilon: Fraction, target: Fraction) -> ProvenBounds:
    """Return the bounds of a Gaussian mechanism, or of a mean of them, whose δ is known up to rounding."""
    bits = 160 + max(0, math.ceil(-math.log2(target))) + 4 * math.ceil(epsilon)

    def at(value: Fraction) -> int:
        grid = LossGrid(value.numerator << lattice.SPACING_BITS, 1, bits)
        return part.at(exp((value.numerator << bits) // value.denominator, bits), grid)

    found, error = at(epsilon), 1 << 20
    if isinstance(part, GaussianRound):
        # The two directions reflect into each other.
        alpha, mirrored = exp((epsilon.numerator << bits) // epsilon.denominator, bits), at(-epsilon)
        if abs((1 << bits) - alpha + (alpha * mirrored >> bits) - found) > ((alpha >> bits) + 2) << 30:
            raise refused("a Gaussian mechanism whose bound is not that of a law")
    low, high = epsilon / 2, epsilon * 2 + 1
    growth = exp((epsilon.numerator << 64) // epsilon.denominator, 64) >> 64
    lower = None if isinstance(part, CountedRound) else Fraction(max(0, found - error * (growth + 2)), 1 << bits)
    if Fraction(at(high), 1 << bits) > target:
        return ProvenBounds(Fraction(found, 1 << bits), None, lower, 0.0)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if Fraction(at(middle), 1 << bits) <= target else (middle, high)
    return ProvenBounds(Fraction(found, 1 << bits), high, lower, 0.0)


class _Attempt(NamedTuple):
    grid: LossGrid
    laws: tuple[Law, Law]
    delta: int


def _compose(
    parts: Sequence[RepeatedRound], grid: LossGrid, tilt: float, small: Fraction, far: float
) -> tuple[Law, Law]:
    """Return the laws of both directions; `small` is the mass that cutting may add to δ."""
    rounds = sum(count for _, count in parts)
    least = max(1, int(small * (1 << grid.bits) / 1000 / rounds))
    spare = int(small * 10**grid.digits / len(parts))
    whole: list[Law] = []
    for part, count in parts:
        laws = connected(grid, _nodes_of(part, grid, tilt, least, far))
        runs = [power(grid, law, count, spare) for law in (laws[:1] if part.symmetric else laws)]
        runs = runs * 2 if part.symmetric else runs
        whole = [product(grid, a, b, spare // 100, spare) for a, b in zip(whole, runs, strict=True)] if whole else runs
    return whole[0], whole[1]


def run_laws(parts: Sequence[RepeatedRound], grid: LossGrid, small: Fraction) -> tuple[Law, Law]:
    """Return the laws of both directions of a run that is an inner mechanism."""
    return _compose(parts, grid, 20.0, small, 1.0)


def prove(
    parts: Sequence[RepeatedRound], epsilon: Fraction, target: Fraction, seconds: float, log: Callable[[str], None]
) -> ProvenBounds:
    """Return bounds of δ at ε and of ε at δ, from lattices that become finer until δ(ε) ≤ target, or the contrary is proven.

    `seconds` of processor time are the limit after which no finer one is begun.
    """
    began = time.process_time()
    parts = together(parts)
    if len(parts) == 1 and isinstance(parts[0][0], GaussianRound | CountedRound):
        return closed_form(parts[0][0], epsilon, target)
    rounds = sum(count for _, count in parts)
    claimed, tilt = float(epsilon), 0.5 * -math.log(target) / max(float(epsilon), 1e-3)
    h = min(math.sqrt(0.6 / (rounds * tilt * (tilt + 1))), claimed / 100 + 1e-3, 0.05)
    digits = math.ceil(-math.log10(target) + math.log10(rounds) + 11) + max(part.more_digits for part, _ in parts)
    bits = math.ceil(3.33 * digits) + 50 + math.ceil(2 * claimed)
    attempts: list[_Attempt] = []
    lower: int | None = None
    before = 0.0
    while True:
        grid = LossGrid(spacing_of(h), digits, bits)
        at = up(epsilon, bits)
        laws = _compose(parts, grid, tilt, target / 100, claimed)
        found = [delta(grid, law, at) for law in laws]
        attempts.append(_Attempt(grid, laws, max(found)))
        passed = time.process_time() - began
        goal = int(target * (1 + SLACK) * 10**digits)
        log(f"spacing {h:.3g}: δ {max(found) / 10**digits:.6g}, {len(laws[0].masses)} losses, {passed:.1f} s")
        if attempts[-1].delta <= goal:
            break
        tilt = _slope(attempts[-1], at, tilt)
        factor, doubtful = _refinement(attempts, goal)
        if doubtful:
            lower = _lower(parts, grid, epsilon, target)
            if lower > goal:
                break
        # The time of a lattice is about that of its points, and all lattices before were coarser.
        points = sum(len(law.masses) for law in laws)
        last = max(passed - before, 0.01)
        factor = min(factor, MOST_POINTS / points, (seconds - passed) / last / 1.2)
        before = passed
        if factor < 1.2:
            break
        h /= factor
    best = min(attempts, key=lambda attempt: attempt.delta)
    scale = 10**digits
    values = [lattice.epsilon(best.grid, law, int(target * scale)) for law in best.laws]
    known = None if None in values else Fraction(max(value for value in values if value is not None), 1 << bits)
    if lower is None and best.delta > goal:
        lower = _lower(parts, best.grid, epsilon, target)
    least = None if lower is None else Fraction(lower, scale)
    return ProvenBounds(Fraction(best.delta, scale), known, least, best.grid.spacing / (1 << lattice.SPACING_BITS))


def _slope(attempt: _Attempt, at: int, tilt: float) -> float:
    """Return −d ln δ/dε, by which what is far in the tail matters more, or what there was."""
    nearer = delta(attempt.grid, attempt.laws[0], at - (1 << attempt.grid.bits) // 200)
    slope = math.log(max(1, nearer) / attempt.delta) * 200
    return max(tilt * 0.2, slope) if slope > 0 else tilt


def _refinement(attempts: Sequence[_Attempt], goal: int) -> tuple[float, bool]:
    """Return by how much the next lattice is finer, and whether the goal may be out of reach: the error is about c·h²."""
    if len(attempts) < 2:
        return 2.0, False
    coarse, fine = attempts[-2:]
    excess = (coarse.delta - fine.delta) / ((coarse.grid.spacing / fine.grid.spacing) ** 2 - 1)
    margin = goal - (fine.delta - excess)
    factor = math.sqrt(max(excess, 1.0) / (0.6 * margin)) if margin > 0 else 2.0
    return min(max(factor, 1.3), 8.0), margin <= abs(excess) / 50


def _lower(parts: Sequence[RepeatedRound], coarse: LossGrid, epsilon: Fraction, target: Fraction) -> int:
    """Return the larger lower bound of both directions, in units of the grid's digits; more digits are used, as Q counts e^ε
    times."""
    more = math.ceil(epsilon / 2)
    grid = LossGrid(coarse.spacing, coarse.digits + more, coarse.bits + 4 * more)
    spare = int(target * 10**grid.digits / 100_000)
    least = max(1, int(target * (1 << grid.bits) / 10**7 / sum(count for _, count in parts)))
    nodes = [[k for k, _ in _nodes_of(part, grid, 3.0, least, 1.0)] for part, _ in parts]
    best = 0
    for mirrored in (False, True):
        cells = [part.cells(grid, at, mirrored=mirrored) for (part, _), at in zip(parts, nodes, strict=True)]
        known = [(each, count) for each, (_, count) in zip(cells, parts, strict=True) if each is not None]
        if len(known) == len(parts):
            best = max(best, lower_delta(grid, known, up(epsilon, grid.bits), spare))
    return int(best // 10**more)
