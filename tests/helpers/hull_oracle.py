"""An independent composition of stated points: finite pairs of laws by enumeration, in exact arithmetic."""

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

Atom = tuple[Fraction, Fraction]


def pair_of(points: Iterable[tuple[float, float]]) -> list[Atom]:
    """Return the atoms (p, q) of a pair whose profile H(α) = Σ max(0, p − αq) is the lower convex hull of points (ε, δ).

    The points hold in both directions, so each (α, δ) also gives (1/α, 1 − 1/α + δ/α). H is 1 − α or more, and falls to the least
    δ. The slope of H between two kinks is minus the mass of q whose likelihood ratio is larger.
    """
    known = [(Fraction(0), Fraction(1))]
    for epsilon, delta in points:
        alpha, bound = Fraction(math.exp(epsilon)), Fraction(delta)
        known += [(alpha, bound), (1 / alpha, 1 - 1 / alpha + bound / alpha)]
    floor = min(delta for _, delta in known)
    hull: list[tuple[Fraction, Fraction]] = []
    for point in sorted(known):
        while len(hull) > 1 and _above(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    while len(hull) > 1 and hull[-2][1] <= hull[-1][1]:
        hull.pop()
    slopes = [(right[1] - left[1]) / (right[0] - left[0]) for left, right in itertools.pairwise(hull)] + [Fraction(0)]
    atoms = [(floor, Fraction(0))]
    # The likelihood ratio 0 has the rest of q.
    atoms.append((Fraction(0), 1 + slopes[0]))
    for (alpha, _), before, after in zip(hull[1:], slopes[:-1], slopes[1:], strict=True):
        atoms.append((alpha * (after - before), after - before))
    assert sum(p for p, _ in atoms) == 1
    assert sum(q for _, q in atoms) == 1
    return atoms


def _above(
    left: tuple[Fraction, Fraction], middle: tuple[Fraction, Fraction], right: tuple[Fraction, Fraction]
) -> bool:
    return (middle[1] - left[1]) * (right[0] - left[0]) >= (right[1] - left[1]) * (middle[0] - left[0])


def delta_of(pairs: Sequence[list[Atom]], epsilon: float) -> float:
    """Return H at e^ε of the product of pairs: a sum over all combinations of atoms."""
    alpha = Fraction(math.exp(epsilon))
    total = Fraction(0)
    for combination in itertools.product(*pairs):
        p = math.prod((one[0] for one in combination), start=Fraction(1))
        q = math.prod((one[1] for one in combination), start=Fraction(1))
        total += max(Fraction(0), p - alpha * q)
    return float(total)
