"""The columns of a matrix, and the largest norm of a pattern of participations."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from .form import FormPart, refused


def column(matrix: FormPart, rounds: int) -> tuple[list[Fraction], Fraction]:
    """Return the first column of a Toeplitz matrix, and what its squares are divided by: their sum, if it is normalised.

    That of buffers is c_i = Σ ω·θ^(i − 1) after c_0 = 1. Each step rounds down by a unit of 2^−320, and θ ≤ 1, so that an entry
    errs by less than 2^−200 with fewer than 2^100 steps of all buffers. It is rounded up, and the norm down.
    """
    kind, margin, unit = matrix["kind"], Fraction(0), 1 << 320
    entries = [Fraction(1)]
    if matrix.get("bands", 0) > min(rounds, 4000) or len(matrix.get("column", ())) > rounds or rounds > 100_000:
        raise refused("more bands than rounds, or more than 4,000, or more than 100,000 rounds")
    if kind == "toeplitz":
        entries = list(matrix["column"])
    elif kind == "banded-square-root":
        entries = list(
            accumulate(range(1, matrix["bands"]), lambda c, j: c * Fraction(2 * j - 1, 2 * j), initial=entries[0])
        )
    elif kind == "blt" and len(matrix["scales"]) == len(matrix["decays"]):
        terms, margin = [int(each * unit) for each in matrix["scales"]], Fraction(1, 1 << 200)
        for _ in range(rounds - 1):
            entries.append(Fraction(sum(terms), unit))
            terms = [int(term * decay) for term, decay in zip(terms, matrix["decays"], strict=True)]
    elif kind != "identity":
        raise refused(f"the matrix {kind} with this sampler")
    squares = (max(Fraction(0), abs(each) - margin) ** 2 for each in entries)
    norm = sum(squares, Fraction(0)) if matrix.get("normalised") == "yes" else Fraction(1)
    if entries[0] <= 0:
        raise refused("a matrix whose diagonal is not positive")
    return [each + margin if each >= 0 else each - margin for each in entries], norm


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
    squares = list(accumulate((each**2 for each in entries), initial=Fraction(0)))
    rows = (rounds - i * apart for i in range(max(0, most - len(entries) - 1), most))
    return max(0, most - len(entries) - 1) * squares[-1] + sum(
        (squares[min(each, len(entries))] for each in rows), Fraction(0)
    )


def tree(matrix: FormPart, rounds: int, apart: int, most: int) -> Fraction:
    """Return the largest squared norm of at most `most` leaves of a tree that restarts every r rounds.

    A leaf moves ⌊log₂ r⌋ + 1 nodes of equal weight, which is norm 1 if normalised. Leaves of different trees are orthogonal.
    """
    every, most = matrix["every"], min(most, -(-rounds // apart))
    if every > rounds or (most > 1 and every > apart):
        raise refused("a tree in which a record takes part several times, or that restarts after the end of the run")
    return Fraction(most * (1 if matrix["normalised"] == "yes" else every.bit_length()))
