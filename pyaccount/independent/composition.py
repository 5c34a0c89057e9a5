"""Laws of a composition of rounds, from above.

What is chosen here (lattice, nodes, order) cannot make a bound false, only loose. `lawful` looks at every bound before it is
used; `connected` looks at the laws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from . import choices
from .enclosures import exp
from .lattice import Law, LossGrid, NotCheckableError, connected, hull, power, product, tilted
from .laws import GaussianRound, Ranges, Renyi, Round

#: Rounds of one kind, and how many there are.
RoundCounts = Sequence[tuple[Round, int]]
#: Losses beyond the last node where a bound is looked at too.
BEYOND = (0.1, 0.5, 2.0, 8.0, 32.0)


def nodes_of(part: Round, grid: LossGrid, tilt: float, least: int, far: float) -> list[tuple[int, int]]:
    """Return nodes (k, v_k), from where the profile is within `least` of 1 − α to where it is at most `least`.

    Where errors are larger than the bound falls, the last node is reached: any may be the last. Values of side 1 are reflected.
    """
    one, h = 1 << grid.bits, grid.h

    def of_side(side: int) -> list[tuple[int, int]]:
        found, k, steps, end = [(0, min(one, part.value(grid, 0, side)))], 0, 1, int(min(1e4, 0.69 * grid.bits) / h)
        # What counts as an infinite loss does not fall.
        rest = part.value(grid, end, side)
        rest = rest if rest < one >> 1 else 0
        while k < end and (found[-1][1] - rest) << grid.bits > least * (grid.alpha(k) if side else one):
            k += steps
            value = min(one, part.value(grid, k, side))
            if value > found[-1][1] + (found[-1][1] >> 10) + 1000:
                break
            found.append((k, min(value, found[-1][1])))
            fall = (found[-2][1] - found[-1][1]) / one / (steps * h)
            steps = choices.points_apart(fall, k * h, h, tilt=tilt, far=far)
        return found

    above = of_side(0)
    below = above if part.symmetric else of_side(1)
    reflected = [(-k, min(one, grid.reflected(-k, value))) for k, value in below[1:]]
    nodes = [*reflected[::-1], (0, min(above[0][1], below[0][1])), *above[1:]]
    lawful(part, grid, nodes)
    if not part.hull:
        return nodes
    # Any nodes would be valid.
    kept = {alpha for alpha, _ in hull([(grid.alpha(k), value) for k, value in nodes])}
    return [(k, value) for k, value in nodes if grid.alpha(k) in kept]


def lawful(part: Round, grid: LossGrid, nodes: Sequence[tuple[int, int]]) -> None:
    """Raise unless the bound of a round is what that of a law can be, at some nodes and beyond them.

    It does not increase, is at least 1 − α, and no set of outputs of two data sets has more. Errors are at most 2^30·α units.
    """
    one, known = 1 << grid.bits, [node for node in nodes[:: max(1, len(nodes) // 4)] if node[0] >= 0]
    (last, final), pair = nodes[-1], part.attained
    beyond = (last + max(1, round(loss / grid.h)) for loss in BEYOND)
    for k, value in [*known, nodes[-1], *((k, min(one, part.value(grid, k, 0))) for k in beyond)]:
        alpha = grid.alpha(k)
        least, error = max(0, one - alpha), ((alpha >> grid.bits) + 2) << 30
        if pair:
            for step in (-1, 0, 1):
                p, q = pair.masses(grid.loss(k) + step * (one >> 6), grid.bits)
                least = max(least, p - (alpha * q >> grid.bits))
        if value < least - error or (k > last and value > final + error):
            raise NotCheckableError(f"a round whose bound is not that of a law, near the loss {k * grid.h:.3g}")


def together(parts: RoundCounts) -> list[tuple[Round, int]]:
    """Return the parts with all Gaussian mechanisms as one, √(s_1² + s_2²), all Rényi divergences, and runs of equal ranges."""
    square, rho, xi, runs = Fraction(0), Fraction(0), Fraction(0), Counter[Fraction]()
    rest: list[tuple[Round, int]] = []
    for part, count in parts:
        if isinstance(part, GaussianRound):
            square += count * part.square
        elif isinstance(part, Renyi):
            rho, xi = rho + count * part.rho, xi + count * part.xi
        elif isinstance(part, Ranges):
            runs[part.r] += part.runs * count
        else:
            rest.append((part, count))
    for r, count in runs.items():
        blocks, left = divmod(count, Ranges.MOST)
        rest += [(Ranges(r, Ranges.MOST), blocks)] * bool(blocks) + [(Ranges(r, left), 1)] * bool(left)
    return [*rest, *[(Renyi(rho, xi), 1)] * bool(rho), *[(GaussianRound(square), 1)] * bool(square)]


def connected_laws(parts: RoundCounts, grid: LossGrid, tilt: float, small: Fraction, far: float) -> list[list[Law]]:
    """Return the laws of both sides of each round; `small` is the mass that may be taken as infinite losses."""
    least = max(1, int(small * (1 << grid.bits) / 1000 / sum(count for _, count in parts)))
    return [list(connected(grid, nodes_of(part, grid, tilt, least, far))) for part, _ in parts]


def tilted_laws(parts: RoundCounts, grid: LossGrid, laws: list[list[Law]], chosen: choices.Tilting) -> list[list[Law]]:
    """Return tilted laws. That a loss is infinite is certain: its mass counts times those of all other rounds, Π m ≤ e^Σ(m−1)."""
    one, found = 10**grid.digits, [list[Law]() for _ in laws]
    for side in (0, 1):
        excess = sum(count * max(0, pair[side].total() - one) for pair, (_, count) in zip(laws, parts, strict=True))
        growth = exp(-(-(excess << grid.bits) // one), grid.bits) + 1
        for pair, shifts, into in zip(laws, chosen.shifts, found, strict=True):
            law = tilted(grid, pair[side], chosen.tilt, shifts[side], chosen.digits)
            into.append(law._replace(certain=-(-pair[side].infinite * growth // one)))
    return found


def composed(parts: RoundCounts, grid: LossGrid, laws: list[list[Law]], small: Fraction) -> tuple[Law, Law]:
    """Return laws of both sides; `small` is the mass that may be left out."""
    spare, whole = int(small * 10**grid.digits / len(parts)), list[Law]()
    for (part, count), pair in zip(parts, laws, strict=True):
        runs = [power(grid, law, count, spare) for law in pair[: 2 - part.symmetric]] * (1 + part.symmetric)
        whole = [product(grid, a, b, spare) for a, b in zip(whole, runs, strict=True)] if whole else runs
    return whole[0], whole[1]
