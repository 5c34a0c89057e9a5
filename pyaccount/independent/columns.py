"""The columns of a matrix, and the largest norm of a pattern of participations."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise, takewhile

from .form import FormPart, refused

#: Matrices whose columns are series, which end with the run.
SERIES = ("blt", "banded-inverse", "inverse-square-root")


def column(matrix: FormPart, rounds: int) -> tuple[list[Fraction], Fraction]:
    """Return the first column of a Toeplitz matrix, and what its squares are divided by: their sum, if it is normalised.

    Columns that are infinite series are rounded up, and the norm down.
    """
    kind, margin = matrix["kind"], Fraction(0)
    if kind == "identity":
        return [Fraction(1)], Fraction(1)
    if matrix.get("bands", 0) > min(rounds, 4000) or len(matrix.get("column", matrix.get("inverse", ()))) > rounds:
        raise refused("more bands than rounds, or more than 4,000")
    if kind == "toeplitz":
        entries = list(matrix["column"])
    elif kind == "banded-square-root":
        entries = list(
            accumulate(range(1, matrix["bands"]), lambda c, j: c * Fraction(2 * j - 1, 2 * j), initial=Fraction(1))
        )
    elif kind in SERIES:
        entries, margin = _series(matrix, rounds), Fraction(1, 1 << 200)
    else:
        raise refused(f"the matrix {kind} with this sampler")
    squares = ((abs(each) - margin) ** 2 for each in entries)
    norm = sum(squares, Fraction(0)) if matrix["normalised"] == "yes" else Fraction(1)
    if entries[0] <= 0 or not norm:
        raise refused("a matrix whose diagonal is not positive")
    return [each + margin if each >= 0 else each - margin for each in entries], norm


def _series(matrix: FormPart, rounds: int) -> list[Fraction]:
    """Return the column of a matrix with buffers, c_i = Σ ω·θ^(i − 1), or the inverse of a banded one, r·c = 1.

    An entry errs by less than 2^−200: a step rounds each of fewer than 2^15 terms by a unit of 2^−320 times an entry, and later
    steps multiply this error by entries of the column (or by θ ≤ 1), which are checked to be at most 2^30, and of which there
    are at most 10^5.
    """
    unit = 1 << 320
    if rounds > 100_000:
        raise refused("a series of more than 100,000 entries")
    found = [unit]
    if matrix["kind"] == "blt":
        if len(matrix["scales"]) != len(matrix["decays"]):
            raise refused("buffers with more scales than decays, or fewer")
        terms = [int(each * unit) for each in matrix["scales"]]
        for _ in range(rounds - 1):
            found.append(sum(terms))
            terms = [int(term * decay) for term, decay in zip(terms, matrix["decays"], strict=True)]
    else:
        inverse = matrix.get("inverse") or list(
            accumulate(range(1, matrix["bands"]), lambda c, j: c * Fraction(2 * j - 3, 2 * j), initial=Fraction(1))
        )
        if inverse[0] <= 0:
            raise refused("a matrix whose diagonal is not positive")
        wide, found = [int(each / inverse[0] * unit) for each in inverse], [int(unit / inverse[0])]
        for i in range(1, rounds):
            found.append(-sum(wide[k] * found[i - k] for k in range(1, min(len(wide), i + 1))) // unit)
    if max(map(abs, found)) > unit << 30:
        raise refused("a matrix with such large entries")
    return [Fraction(each, unit) for each in found]


def largest(entries: Sequence[Fraction], rounds: int, apart: int, most: int) -> Fraction:
    """Return the largest ‖Σ C e_i‖² over at most `most` columns that are `apart` or more from each other.

    They are the first columns at the smallest separation: if columns of at most `apart` bands are orthogonal, because earlier
    columns are not shorter, and with decreasing coefficients ≥ 0 as well (Kalinin & Lampert 2024, arXiv:2405.13763). One column
    is the first.
    """
    most = min(most, -(-rounds // apart))
    if most > 1 and len(entries) > apart:
        if most * len(entries) > 3_000_000 or any(a < b for a, b in pairwise([*entries, Fraction(0)])):
            raise refused("overlapping columns that do not decrease, or of so many rounds")
        total = [Fraction(0)] * rounds
        for i in range(most):
            for j, each in enumerate(entries[: rounds - i * apart]):
                total[i * apart + j] += each
        return sum((each**2 for each in total), Fraction(0))
    squares = [Fraction(0), *accumulate(each**2 for each in entries)]
    shorter = list(takewhile(lambda rows: rows < len(entries), (rounds - i * apart for i in range(most - 1, -1, -1))))
    return (most - len(shorter)) * squares[-1] + sum((squares[rows] for rows in shorter), Fraction(0))


def tree(matrix: FormPart, rounds: int, apart: int, most: int) -> Fraction:
    """Return the largest squared norm of at most `most` leaves of a tree that restarts every r rounds.

    A leaf moves ⌊log₂ r⌋ + 1 nodes of equal weight, which is norm 1 if normalised. Leaves of different trees are orthogonal.
    """
    every, most = matrix["every"], min(most, -(-rounds // apart))
    if every > rounds or (most > 1 and every > apart):
        raise refused("a tree in which a record takes part several times, or that restarts after the end of the run")
    return Fraction(most * (1 if matrix["normalised"] == "yes" else every.bit_length()))
