"""Single parts of a document as rounds: mechanisms with finitely many outcomes, truncated batches, users, matrices, schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from .draws import Blend
from .enclosures import exp, up
from .kinds import Atoms
from .rounds import CountedRound, MixtureRound, Round

JsonObject = Mapping[str, Any]

#: One kind of rounds, and how many there are.
RepeatedRound = tuple[Round, int]


class NotCheckableError(Exception):
    """The document contains something that this checker has no bound for."""


def rounded_root(square: Fraction) -> Callable[[int], int]:
    """Return the square root of a number, rounded up, as a function of the bits."""
    return lambda bits: math.isqrt((square.numerator << 2 * bits) // square.denominator) + 1


def exactly(value: Any) -> Fraction:
    """Return a number as a fraction; raise if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise NotCheckableError(f"no bound is implemented for the value {value!r} in place of a number")
    return Fraction(value)


def stated(epsilon: Fraction, delta: Fraction) -> Atoms:
    """Return the worst (ε, δ)-private mechanism (Kairouz, Oh & Viswanath 2015); e^ε rounded up makes it no better."""
    growth = Fraction(exp(up(epsilon, 400), 400) + 1, 1 << 400)
    high, low = (1 - delta) * growth / (1 + growth), (1 - delta) / (1 + growth)
    return Atoms([(delta, Fraction(0)), (high, low), (low, high), (Fraction(0), delta)])


def discrete(width: Fraction, shift: int, *, gaussian: bool) -> Atoms:
    """Return discrete noise against its shift: masses on −far..far, exact up to 2^−300, with the rest as an infinite loss."""
    bits = 300
    far = math.ceil(width * (20 if gaussian else 160)) + shift
    law: dict[int, int] = {}
    for x in range(far + 1):
        exponent = -Fraction(x * x) / (2 * width**2) if gaussian else -x / width
        law[x] = law[-x] = exp((exponent.numerator << bits) // exponent.denominator, bits) + 1
    whole = sum(law.values())
    p = {x: Fraction(law.get(x, 0), whole) for x in range(-far, far + shift + 1)}
    outcomes = [(p[x], p.get(x - shift, Fraction(0))) for x in p]
    return Atoms([each for each in outcomes if each[0] or each[1]], Fraction(1, 1 << 180))


def truncated(body: JsonObject, p: Fraction, shift: Callable[[int], int], rounds: int) -> RepeatedRound:
    """Return rounds whose batches are truncated to B (section 4.5): the number r of other records drawn is released.

    Where r < B it is Poisson sampling; where r ≥ B, with q = pB/(r + 1), (1−q)N(0) + qN(2) against (1−q)N(0) + qN(−1). The
    profile is
    convex in q, since both laws are linear in q. So for r up to some r₂ its mean is at most that of the chord from r₂ to B;
    beyond r₂
    the q of r₂ is larger, and that pair with a smaller q is a mixture of it and of equal laws.
    """
    limit, other_records = (
        int(exactly(body["sampler"]["truncate_to"])),
        int(exactly(body["training"]["dataset_size"])) - 1,
    )
    if limit > other_records:
        return MixtureRound({1: p}, shift), rounds
    unit, second = 1 << 300, min(other_records, limit + limit // 10 + 10)
    ways = (
        math.comb(other_records, limit) * p.numerator**limit * (p.denominator - p.numerator) ** (other_records - limit)
    )
    term, rare, at_limit = Fraction(unit * ways // p.denominator**other_records + 1, unit), Fraction(0), Fraction(0)
    q = {r: p * limit / (r + 1) for r in (limit, second)}
    for r in range(limit, other_records + 1):
        rare += term
        at_limit += term * (p * limit / (r + 1) - q[second]) / (q[limit] - q[second]) if r < second else 0
        factor = Fraction(other_records - r, r + 1) * p / (1 - p)
        if factor < Fraction(1, 2) and term * 2**120 < rare:
            # What follows is below the last term.
            rare += term
            break
        term = Fraction(math.ceil(term * factor * unit), unit)
    pairs = {r: MixtureRound({2: q[r]}, shift, {-1: q[r]}) for r in q}
    usual = 1 - rare + Fraction(other_records, 2**290)
    parts = [(usual, MixtureRound({1: p}, shift)), (at_limit, pairs[limit]), (rare - at_limit, pairs[second])]
    return Blend(parts, MixtureRound({1: p * (1 - rare)}, shift)), rounds


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


def column(claim: JsonObject, matrix: JsonObject) -> list[Fraction]:
    """Return the squared coefficients of a Toeplitz matrix: those of the certificate.

    Without them the document says enough: the bands, and that columns have at most norm 1, as if all of it were in the first.
    """
    coefficients = (claim.get("matrix") or {}).get("coefficients")
    if coefficients:
        return [exactly(each) ** 2 for each in coefficients]
    if matrix.get("normalize", True) is True and matrix["kind"] in ("banded-square-root", "optimal-toeplitz"):
        return [Fraction(1), *[Fraction(0)] * (int(exactly(matrix["bands"])) - 1)]
    raise NotCheckableError("no bound is implemented for a matrix whose coefficients are not in the certificate")


def pattern(claim: JsonObject, matrix: JsonObject, rounds: int, apart: int, most: int) -> Fraction:
    """Return the largest ‖Σ C e_i‖² over at most `most` columns that are `apart` or more from each other.

    Columns of at most `apart` bands are orthogonal. A tree that restarts every r ≤ apart rounds is orthogonal to the others,
    and a
    leaf moves ⌊log₂ r⌋ + 1 nodes of equal weight, which is norm 1 with unit norm. With decreasing coefficients ≥ 0 the first
    columns
    at the smallest separation are the worst (section 11).
    """
    if matrix["kind"] == "tree":
        every = int(exactly(matrix.get("restart_every") or rounds))
        if most > 1 and every > apart:
            raise NotCheckableError("no bound is implemented for a tree in which a record takes part several times")
        return Fraction(most * (1 if matrix.get("normalize", True) else every.bit_length()))
    squared = column(claim, matrix)
    bands, norm = len(squared), sum(squared, Fraction(0))
    if most == 1 or bands <= apart:
        return most * norm
    entries = [abs(exactly(each)) for each in claim["matrix"]["coefficients"]]
    if any(a < b for a, b in pairwise(entries)):
        raise NotCheckableError("no bound is implemented for overlapping columns that do not decrease")
    total = [Fraction(0)] * rounds
    for i in range(most):
        for j, each in enumerate(entries[: rounds - i * apart]):
            total[i * apart + j] += each
    return sum((each**2 for each in total), Fraction(0))


def schedules(body: JsonObject) -> dict[str, JsonObject]:
    """Return the schedules of a body, by what they set."""
    found = {
        "noise": body["noise"]["multiplier"],
        **{key: body["training"].get(key) for key in ("sampling_probability", "expected_batch_size")},
    }
    return {key: value for key, value in found.items() if isinstance(value, dict) and "schedule" in value}


def values(claim: JsonObject, rounds: int) -> list[Fraction]:
    """Return the values of a schedule: a list, or start·decay^⌊t/every⌋ with each product rounded to a double."""
    schedule = claim["schedule"]
    if isinstance(schedule, list):
        return [exactly(each) for each in schedule]
    if "file" in schedule:
        raise NotCheckableError("no bound is implemented for a schedule in a file")
    value, least, found = float(schedule["start"]), schedule.get("least"), []
    for t in range(rounds):
        if t and t % int(schedule.get("every", 1)) == 0:
            value *= float(schedule["decay"])
        found.append(Fraction(repr(value)) if least is None else max(Fraction(repr(value)), exactly(least)))
    return found
