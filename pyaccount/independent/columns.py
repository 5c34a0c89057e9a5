"""The columns of a matrix, and the largest norm of a pattern of participations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import itemgetter, mul

from .form import FormPart, refused


def column(matrix: FormPart, rounds: int) -> tuple[list[Fraction], Fraction]:
    """Return the first column of a Toeplitz matrix, and what its squares are divided by: their sum, if it is normalised.

    For a dense matrix it is that of the smallest Toeplitz matrix with no smaller entries, which move more (Lemma C, row by row).
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
    elif kind == "dense":
        entries = [matrix["unit"] * max(map(itemgetter(k), matrix["columns"][: rounds - k])) for k in range(rounds)]
    elif kind != "identity":
        raise refused(f"the matrix {kind} with this sampler")
    norm = Fraction(1)
    if matrix.get("normalised") == "yes" and kind == "dense":
        norm = matrix["unit"] ** 2 * max(sum(map(mul, each, each)) for each in matrix["columns"])
    elif matrix.get("normalised") == "yes":
        norm = sum((max(Fraction(0), abs(each) - margin) ** 2 for each in entries), Fraction(0))
    while len(entries) > 1 and not entries[-1]:
        entries.pop()
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
    if most > 1 and len(entries) > apart and any(a < b for a, b in pairwise([*entries, Fraction(0)])):
        raise refused("overlapping columns that do not decrease")
    if most * len(entries) > 3_000_000:
        raise refused("columns of so many rounds that are added up")
    total = [Fraction(0)] * rounds
    for i in range(most):
        for j, each in enumerate(entries[: rounds - i * apart], i * apart):
            total[j] += each
    return sum((count * each**2 for each, count in Counter(total).items()), Fraction(0))


def of_dense(matrix: FormPart, apart: int, most: int) -> Fraction:
    """Return a bound of the largest ‖Σ_S C e_i‖² over sets S of at most `most` columns that are `apart` or more from each other.

    It is Σ_(i∈S) Σ_(j∈S) ⟨c_i, c_j⟩, and the inner sum is at most its largest value over all such sets that contain i. This is
    exact for one column, and for columns that are orthogonal so far from each other.
    """
    columns: list[list[int]] = matrix["columns"]

    def largest(weights: list[int], most: int) -> int:
        """Return the largest sum of weights over such sets; the last table has the sums from each index on."""
        table = [0] * (len(weights) + apart)
        for _ in range(most):
            table, before = [0] * len(table), table
            for i in range(len(weights) - 1, -1, -1):
                table[i] = max(table[i + 1], weights[i] + before[i + apart])
        return table[0]

    def inner(i: int) -> int:
        far = (j for j in range(len(columns)) if most > 1 and abs(i - j) >= apart)
        products: dict[int, int] = {
            j: sum(map(mul, columns[max(i, j)], columns[min(i, j)][abs(i - j) :])) for j in (i, *far)
        }
        return products.pop(i) + largest([products.get(j, 0) for j in range(len(columns))], most - 1)

    return Fraction(matrix["unit"]) ** 2 * largest(list(map(inner, range(len(columns)))), most)


def tree(matrix: FormPart, rounds: int, apart: int, most: int) -> Fraction:
    """Return the largest squared norm of at most `most` leaves of a tree that restarts every r rounds.

    A leaf moves ⌊log₂ r⌋ + 1 nodes of equal weight, which is norm 1 if normalised. Leaves of different trees are orthogonal.
    """
    every, most = matrix["every"], min(most, -(-rounds // apart))
    if every > rounds or (most > 1 and every > apart):
        raise refused("a tree in which a record takes part several times, or that restarts after the end of the run")
    return Fraction(most * (1 if matrix["normalised"] == "yes" else every.bit_length()))
