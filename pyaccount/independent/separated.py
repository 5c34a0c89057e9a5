"""b-min-sep sampling in a document: its participations, its columns, and how rarely its batches are truncated."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from .correlated import Correlated, exp_above, log_above
from .derived import SERIES, column
from .replicas import EqualColumns, MovedColumns, Renewals
from .shapes import JsonObject, agreed, exactly, refused

#: Terms of binomial tails are multiples of 2^−320.
_BITS = 320
#: Runs with more rounds are refused.
MOST_ROUNDS = 100_000


def seldom(rounds: int, other_records: int, rate: Fraction, most: int) -> Fraction:
    """Return an upper bound of h = Σ_i Pr[r_i ≥ B]·Pr[x_i = 1], r_i ~ Bin(N − 1, rate), for chances of at most `rate`.

    The first term is computed by its logarithm; each further one is the one before times (N − 1 − r)/(r + 1)·rate/(1 − rate),
    rounded up. Once that factor is below ½, what follows is below the last term.
    """
    if most > other_records:
        return Fraction(0)
    if most <= other_records * rate or rate == 1:
        raise refused("batches that are often truncated")
    first = log_above(Fraction(math.comb(other_records, most)))
    first += most * log_above(rate) + (other_records - most) * log_above(1 - rate)
    term, total, r, odds = exp_above(first), Fraction(0), most, rate / (1 - rate)
    while r < other_records:
        total += term
        factor = Fraction(other_records - r, r + 1) * odds
        if factor < Fraction(1, 2) and term < total / (1 << 80):
            break
        term, r = Fraction(math.ceil(term * factor * (1 << _BITS)), 1 << _BITS), r + 1
    return rounds * rate * (total + term)


def _entries(matrix: JsonObject, here: JsonObject) -> list[list[Fraction]]:
    """Return the columns of a matrix from a file, whose entries are in the certificate, without their last zeros."""
    if here.get("rows") is not None or not here.get("entries"):
        raise refused("sampling with a matrix of more rows than rounds, or whose entries are not stated")
    rows = [[exactly(each) for each in row] for row in here["entries"]]
    if any(each for i, row in enumerate(rows) for each in row[i + 1 :]):
        raise refused("a matrix with entries above its diagonal")
    columns = [[row[i] for row in rows[i:]] for i in range(len(rows))]
    for entries in columns:
        while len(entries) > 1 and entries[-1] == 0:
            entries.pop()
    largest = max(sum((each**2 for each in entries), Fraction(0)) for entries in columns)
    if matrix.get("normalize", True) and abs(largest - 1) > Fraction(1, 10**9):
        raise refused("entries in the certificate that are not normalised")
    return columns


def b_min_sep(
    body: JsonObject,
    claim: JsonObject,
    squares: tuple[Fraction, Fraction],
    stated: tuple[Fraction | None, Fraction | None],
    rounds: Callable[[Fraction], int],
) -> Correlated:
    """Return a run of b-min-sep sampling (sections 4.1 and 4.2).

    `stated` are the probability p of a free record and the participation rate 1/(b − 1 + 1/p). If both are, the larger p counts.
    `rounds` is the number of rounds as a function of those in an epoch.
    """
    sampler, matrix = body["sampler"], body.get("matrix")
    (main, also), norm = squares, Fraction(1)
    if matrix is not None and matrix["kind"] in ("tree", *SERIES):
        raise refused(f"b-min-sep sampling with the matrix {matrix['kind']}, whose columns are long")
    if matrix is not None and matrix["kind"] == "dense":
        columns = _entries(matrix, claim.get("matrix") or {})
    else:
        entries, norm = column(matrix, claim, MOST_ROUNDS)
        columns = [entries]
    apart = sampler.get("min_separation")
    b = int(exactly(max(map(len, columns)) if apart is None else apart))
    p, rate = stated
    free = 1 - (rate or 0) * (b - 1)
    chances = [each for each in (p, rate / free if rate and free > 0 else None) if each is not None]
    if b < 1 or free <= 0 or not all(0 < each <= 1 for each in chances):
        raise refused(f"a participation rate above 1/{b}")
    agreed([1 / (b - 1 + 1 / each) for each in chances])
    p = max(chances)
    law = Renewals(rounds(b - 1 + 1 / p), b, p, sampler.get("start", "warm") == "warm")
    dense = matrix is not None and matrix["kind"] == "dense"
    if max(law.rounds, b) > MOST_ROUNDS or len(columns) != (law.rounds if dense else 1) or len(columns[0]) > law.rounds:
        raise refused(f"this matrix in {law.rounds} rounds")
    if not dense:
        moved: MovedColumns = EqualColumns(columns[0], main / norm, b, also)
    else:
        moved = MovedColumns(columns, main, b, also)
    truncated = Fraction(0)
    if "truncate_to" in sampler:
        most, other_records = int(exactly(sampler["truncate_to"])), int(exactly(body["training"]["dataset_size"])) - 1
        truncated = seldom(law.rounds, other_records, p / (1 + (b - 1) * p) if law.warm else p, most)
    return Correlated(law, moved, truncated)
