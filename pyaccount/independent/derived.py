"""Single parts of a document as rounds: mechanisms with finitely many outcomes, truncated batches, users, matrices, schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise, takewhile

from .draws import Blend
from .enclosures import exp, up
from .kinds import Atoms
from .rounds import CountedRound, MixtureRound, Round
from .shapes import JsonObject, allowed, at_least_one, exactly, refused

#: One kind of rounds, and how many there are.
RepeatedRound = tuple[Round, int]


def rounds_of(training: JsonObject, epoch: Fraction | None) -> int:
    """Return the number of rounds that a document states, or that follows from its epochs, of which one has `epoch` rounds."""
    if training.get("iterations") is not None:
        return at_least_one(training, "iterations", 1)
    if epoch is None or training.get("epochs") is None:
        raise refused("a document without a number of rounds that this checker reads")
    rounds = exactly(training["epochs"]) * epoch
    nearest = round(rounds)
    near = nearest and abs(rounds - nearest) <= min(Fraction(1, 1000), rounds / 10**9)
    return nearest if near else math.ceil(rounds)


def rounded_root(square: Fraction) -> Callable[[int], int]:
    """Return the square root of a number, rounded up, as a function of the bits."""
    return lambda bits: math.isqrt((square.numerator << 2 * bits) // square.denominator) + 1


#: Discrete noise with more outcomes that differ is refused: each value of its profile takes a step for each of them.
MOST_OUTCOMES = 50_000


def discrete_gaussian(width: Fraction, shift: int) -> Atoms:
    """Return discrete noise against its shift: masses on −far..far, exact up to 2^−300, with the rest as an infinite loss."""
    bits, far = 300, math.ceil(width * 20) + shift
    if far > MOST_OUTCOMES:
        raise refused(f"discrete Gaussian noise on {far} values")
    square = 2 * width**2
    half = [exp(-(x * x * square.denominator << bits) // square.numerator, bits) + 1 for x in range(far + 1)]
    whole, nothing = 2 * sum(half) - half[0], [Fraction(0)] * shift
    p = [Fraction(weight, whole) for weight in (*half[:0:-1], *half)]
    return Atoms(list(zip([*p, *nothing], [*nothing, *p], strict=True)), Fraction(1, 1 << 180))


def discrete_laplace(width: Fraction, shift: int) -> Atoms:
    """Return noise with masses in proportion to r^|x|, r = e^(−1/width), against its shift by k.

    All x ≤ 0 have the loss k/width, all x ≥ k its negative, and 0 < x < k the loss (k − 2x)/width. So k + 1 outcomes are enough,
    of the weights 1/(1 − r), r^x and r^k/(1 − r), and those in the reverse order. *Error*: each weight has a relative error η
    below 2^−200, because exponentials err by two units of 2^−bits, r^k ≥ 2^(−1.5·k/width), and 1 − r ≥ 2^−62. Then
    P ≤ (1 + 4η)P′ and Q ≥ (1 − 4η)Q′, and αQ′ ≤ P′ where H_α counts, so that H_α exceeds that of (P′, Q′) by less than 2^−180.
    """
    if shift > MOST_OUTCOMES or width > 1 << 60 or shift > 10_000 * width:
        raise refused(f"discrete Laplace noise of the scale {float(width):.3g} that is moved by {shift} steps")
    bits = 300 + math.ceil(Fraction(3, 2) * shift / width)

    def power(x: int) -> int:
        return exp(-math.floor((x << bits) / width), bits)

    rest = (1 << bits) - power(1)
    weights = [(1 << 2 * bits) // rest, *map(power, range(1, shift)), (power(shift) << bits) // rest]
    whole = sum(weights)
    p = [Fraction(weight, whole) for weight in weights]
    return Atoms(list(zip(p, p[::-1], strict=True)), Fraction(1, 1 << 180))


def truncated(body: JsonObject, p: Fraction, shift: Callable[[int], int], rounds: int) -> RepeatedRound:
    """Return rounds whose batches are truncated to B (section 4.5): the number r of other records drawn is released.

    Where r < B it is Poisson sampling; where r ≥ B, with q = pB/(r + 1), (1−q)N(0) + qN(2) against (1−q)N(0) + qN(−1). The
    profile is convex in q, since both laws are linear in q. So between some nodes r it is at most the chord of their profiles.
    Beyond the last node the q of that node is larger, and that pair with a smaller q is a mixture of it and of equal laws.
    """
    limit = int(exactly(body["sampler"]["truncate_to"]))
    other_records = int(exactly(body["training"]["dataset_size"])) - 1
    if limit > other_records:
        return MixtureRound({1: p}, shift), rounds
    unit, last = 1 << 300, min(other_records, limit + limit // 10 + 10)
    odds = p.numerator**limit * (p.denominator - p.numerator) ** (other_records - limit)
    ways = math.comb(other_records, limit) * odds
    under = unit * ways // p.denominator**other_records
    # In units of 2^−300: the term and what they sum to from above, and from below.
    term, rare, at_least = under + 1, 0, 0
    nodes = sorted({limit + (last - limit) * i // 4 for i in range(5)})
    weights = dict.fromkeys(nodes, 0)
    for r in range(limit, other_records + 1):
        rare, at_least = rare + term, at_least + under
        right = next((node for node in nodes if node > r), last)
        left = nodes[nodes.index(right) - 1] if r < last else last
        share = term * (left + 1) * (right - r) // ((right - left) * (r + 1)) if r < last else term
        weights[left] += share + 1
        weights[right] += term - share
        factor = Fraction(other_records - r, r + 1) * p / (1 - p)
        if factor < Fraction(1, 2) and term << 120 < rare:
            # What follows is below the last term.
            rare, weights[last] = rare + term, weights[last] + term
            break
        term, under = math.ceil(term * factor), int(under * factor)
    full = [(r, p * limit / (r + 1)) for r in nodes]
    pairs: list[tuple[Fraction, Round]] = [
        (Fraction(weights[r], unit), MixtureRound({2: q}, shift, {-1: q})) for r, q in full
    ]
    pairs.append((1 - Fraction(at_least, unit), MixtureRound({1: p}, shift)))
    return Blend(pairs, MixtureRound({1: p * (1 - Fraction(rare, unit))}, shift)), rounds


def shared_users(
    sampler: JsonObject, p: Fraction, rounds: int, squares: tuple[Fraction, Fraction], squared: Sequence[Fraction]
) -> RepeatedRound:
    """Return users who share records (section 4.4): what the participations move is public, squared, with its law.

    Whenever a user is not waiting, j of its records are drawn with Bin(j; records, p); j ≥ 1 moves j² and makes it wait for b − 1
    rounds. Columns no longer than b are orthogonal, and a later one is no longer. So whoever comes earlier, and with more
    records, moves no less: a user with fewer records, which is kept out by fewer draws, moves less than one that is available
    in the first round. That is the start taken here, whatever the document says. After a warm start, by contrast, a user with
    one record may come more often than one with two (p near 1). What is moved is counted in 64ths of the largest squared
    column norm, rounded up: the last columns are shorter.
    """
    records, apart = int(exactly(sampler["records_per_user"])), int(exactly(sampler["min_separation"]))
    unit, parts = 1 << 220, 64
    whole = squares[0] * sum(squared) + squares[1]
    draws = [up(math.comb(records, j) * p**j * (1 - p) ** (records - j), 220) for j in range(records + 1)]
    waiting: list[dict[int, int]] = [{} for _ in range(rounds + apart + 1)]
    waiting[0] = {0: unit}
    for i in range(rounds):
        here = squares[0] * sum(squared[: rounds - i]) + squares[1]
        moves = math.ceil(parts * here / whole)
        for moved, weight in waiting[i].items():
            for j, probability in enumerate(draws):
                there = waiting[i + apart if j else i + 1]
                key = moved + j * j * moves
                there[key] = there.get(key, 0) + (weight * probability >> 220) + 1
    law: dict[int, int] = {}
    for left in waiting[rounds:]:
        for moved, weight in left.items():
            law[moved] = law.get(moved, 0) + weight
    return CountedRound({moved: Fraction(weight, unit) for moved, weight in law.items()}, whole / parts), 1


#: Matrices whose columns are series, which end with the run.
SERIES = ("blt", "banded-inverse")


def column(matrix: JsonObject | None, claim: JsonObject, rounds: int) -> tuple[list[Fraction], Fraction]:
    """Return the first column of a Toeplitz matrix, and what its squares are divided by: their sum, if it is normalised.

    The document defines the column, except where its matrix is the result of a search: those coefficients (or buffers) are a part
    of the claim. Columns that are infinite series are rounded up, and the norm down.
    """
    matrix = matrix or {"kind": "identity", "normalize": False}
    kind, margin = matrix["kind"], Fraction(0)
    claimed: JsonObject = claim.get("matrix") or {}
    given = [*matrix.get("coefficients", ()), *matrix.get("inverse_coefficients", ())]
    if exactly(matrix.get("bands", len(given))) > rounds:
        raise refused("more bands than rounds")
    if kind == "identity":
        entries = [Fraction(1)]
    elif kind == "toeplitz":
        entries = [exactly(each) for each in matrix["coefficients"]]
    elif kind == "banded-square-root":
        entries = [Fraction(1)]
        if exactly(matrix["bands"]) > 4000:
            raise refused("a square root with more than 4,000 bands")
        for j in range(1, int(exactly(matrix["bands"]))):
            entries.append(entries[-1] * Fraction(2 * j - 1, 2 * j))
    elif kind == "optimal-toeplitz" and claimed.get("coefficients") and matrix.get("normalize", True):
        for each in claimed["coefficients"]:
            allowed(each, "coefficients", "matrix")
        entries = [exactly(each) for each in claimed["coefficients"]]
        if len(entries) != matrix["bands"]:
            raise refused(f"{len(entries)} coefficients where the document has others")
    elif kind in SERIES:
        entries, margin = _series(matrix, claimed, rounds), Fraction(1, 1 << 200)
    else:
        raise refused(f"the matrix {kind} with these options")
    entries = entries[:rounds]
    squares = ((abs(each) - margin) ** 2 for each in entries)
    norm = sum(squares, Fraction(0)) if matrix.get("normalize", True) else Fraction(1)
    if entries[0] <= 0 or not norm:
        raise refused("a matrix whose diagonal is not positive")
    return [each + margin if each >= 0 else each - margin for each in entries], norm


def _series(matrix: JsonObject, claimed: JsonObject, rounds: int) -> list[Fraction]:
    """Return the column of a matrix with buffers, c_i = Σ ω θ^(i − 1), or the inverse of a banded one, r·c = 1.

    Proof of an error below 2^−200: a step rounds each of fewer than 2^15 terms by a unit of 2^−320 times an entry, and later
    steps multiply this error by entries of the column (or by θ ≤ 1). Entries are checked to be at most 2^30, and there are at
    most 10^5 of them.
    """
    unit = 1 << 320
    if rounds > 100_000:
        raise refused("a series of more than 100,000 entries")
    if matrix["kind"] == "blt":
        buffers = matrix if "scales" in matrix else claimed["buffers"]
        for key in ("scales", "decays"):
            for each in buffers[key]:
                allowed(each, key, "matrix")
        scales, decays = ([exactly(each) for each in buffers[key]] for key in ("scales", "decays"))
        if len(scales) != exactly(matrix.get("buffers", len(scales))):
            raise refused("buffers that are not those of the document")
        terms, column = [int(each * unit) for each in scales], [unit]
        for _ in range(rounds - 1):
            column.append(sum(terms))
            terms = [int(term * decay) for term, decay in zip(terms, decays, strict=True)]
    else:
        inverse = [exactly(each) for each in matrix.get("inverse_coefficients", ())] or [Fraction(1)]
        if exactly(matrix.get("bands", 1)) > 4000:
            raise refused("the inverse of a matrix with more than 4,000 bands")
        for j in range(1, int(exactly(matrix.get("bands", 1)))):
            inverse.append(inverse[-1] * Fraction(2 * j - 3, 2 * j))
        wide, column = [int(each / inverse[0] * unit) for each in inverse], [int(unit / inverse[0])]
        for i in range(1, rounds):
            column.append(-sum(wide[k] * column[i - k] for k in range(1, min(len(wide), i + 1))) // unit)
    if max(map(abs, column)) > unit << 30:
        raise refused("a matrix with such large entries")
    return [Fraction(each, unit) for each in column]


def pattern(entries: Sequence[Fraction], rounds: int, apart: int, most: int) -> Fraction:
    """Return the largest ‖Σ C e_i‖² over at most `most` columns that are `apart` or more from each other.

    They are the first columns at the smallest separation: if columns of at most `apart` bands are orthogonal, because earlier
    columns are not shorter, and with decreasing coefficients ≥ 0 as well (section 11). The largest column is the first.
    """
    if most > 1 and len(entries) > apart and most * len(entries) > 3_000_000:
        raise refused("overlapping columns of so many rounds")
    if most > 1 and len(entries) > apart and any(a < b for a, b in pairwise([*entries, Fraction(0)])):
        raise refused("overlapping columns that do not decrease")
    if len(entries) <= apart:
        squares = [Fraction(0), *accumulate(each**2 for each in entries)]
        left = (rounds - i * apart for i in range(most - 1, -1, -1))
        shorter = list(takewhile(lambda rows: rows < len(entries), left))
        return (most - len(shorter)) * squares[-1] + sum((squares[rows] for rows in shorter), Fraction(0))
    total = [Fraction(0)] * rounds
    for i in range(most):
        for j, each in enumerate(entries[: rounds - i * apart]):
            total[i * apart + j] += each
    return sum((each**2 for each in total), Fraction(0))


def tree(matrix: JsonObject, rounds: int, apart: int, most: int) -> Fraction:
    """Return the largest squared norm of at most `most` leaves of a tree that restarts every r rounds (section 11).

    A leaf moves ⌊log₂ r⌋ + 1 nodes of equal weight, which is norm 1 with unit norm. Leaves of different trees are orthogonal.
    """
    every = int(exactly(matrix.get("restart_every", rounds)))
    if every > rounds:
        raise refused("a tree that restarts after the end of the run")
    if most > 1 and every > apart:
        raise refused("a tree in which a record takes part several times")
    return Fraction(most * (1 if matrix.get("normalize", True) else every.bit_length()))


def schedules(body: JsonObject) -> dict[str, JsonObject]:
    """Return the schedules of a body, by what they set."""
    found = {
        "noise": body["noise"]["multiplier"],
        **{key: body["training"].get(key) for key in ("sampling_probability", "expected_batch_size")},
    }
    return {key: value for key, value in found.items() if isinstance(value, Mapping) and "schedule" in value}


def values(claim: JsonObject, rounds: int) -> list[Fraction]:
    """Return the values of a schedule: a list, or start·decay^⌊t/every⌋ with each product rounded to a double."""
    schedule = claim["schedule"]
    if isinstance(schedule, list):
        if len(schedule) != rounds:
            raise refused(f"a schedule of {len(schedule)} values in {rounds} rounds")
        return [exactly(each) for each in schedule]
    if rounds > 10_000_000:
        raise refused("a schedule of so many rounds")
    value, least, found = float(schedule["start"]), exactly(schedule.get("least", 0)), []
    for t in range(rounds):
        if t and t % int(schedule.get("every", 1)) == 0:
            value *= float(schedule["decay"])
        found.append(max(Fraction(value), least))
    return found
