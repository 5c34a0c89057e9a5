"""How often a record is drawn, and what that moves: laws of draws, truncated batches, users, and discrete noise.

Weights are rounded up to multiples of 2^−300, and what is left out is stated, so that a law is checked to add up to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from .enclosures import exp, exp_above, ln_above, up
from .form import refused
from .lattice import NotCheckableError
from .laws import ROUNDED, Blend, FiniteRound, GaussianRound, MixtureRound, Round

#: The bits of weights; and outcomes of discrete noise that differ.
BITS, MOST_OUTCOMES = 300, 50_000


def _whole(law: dict[int, Fraction], none: Fraction, lost: Fraction = Fraction(0)) -> dict[int, Fraction]:
    """Return a law of j ≥ 1; raise unless it adds up to 1 with the probability of 0 and what is lost, all rounded up."""
    if not 1 <= sum(law.values(), none + lost) <= 1 + lost + ROUNDED:
        raise NotCheckableError("draws whose probabilities do not add up to 1")
    return law


def binomial(trials: int, p: Fraction, least: Fraction) -> tuple[dict[int, Fraction], Fraction]:
    """Return Bin(j; trials, p) for the first j ≥ 1, and a bound of the sum of the others.

    Terms follow from one another by the factor (trials − j)/(j + 1)·p/(1 − p), rounded up. Once it is below ½, what follows a
    term is below that term; then terms are left out that are below `least`.
    """
    if p == 1:
        return {trials: Fraction(1)}, Fraction(0)
    unit = 1 << BITS
    base = unit * (p.denominator - p.numerator) ** trials // p.denominator**trials + 1
    odds, law, term = p / (1 - p), dict[int, Fraction](), base
    for j in range(trials):
        factor = Fraction(trials - j, j + 1) * odds
        term = math.ceil(term * factor)
        law[j + 1] = Fraction(term, unit)
        if factor < Fraction(1, 2) and law[j + 1] <= least:
            return _whole(law, Fraction(base, unit), law[j + 1]), law[j + 1]
    return _whole(law, Fraction(base, unit)), Fraction(0)


def hypergeometric(records: int, drawn: int, group: int) -> dict[int, Fraction]:
    """Return the law of how many of `group` records are among `drawn` of `records`, for j ≥ 1, exactly."""
    whole = math.comb(records, group)
    law = {
        j: Fraction(math.comb(drawn, j) * math.comb(records - drawn, group - j), whole)
        for j in range(1, min(group, drawn) + 1)
    }
    return _whole(
        {j: weight for j, weight in law.items() if weight}, Fraction(math.comb(records - drawn, group), whole)
    )


def mixed(
    first: Mapping[int, Fraction], second: Callable[[int], tuple[dict[int, Fraction], Fraction]]
) -> tuple[dict[int, Fraction], Fraction]:
    """Return Σ_i first(i)·second(i)(j) for j ≥ 1, and what is lost."""
    law, lost = dict[int, Fraction](), Fraction(0)
    for i, weight in first.items():
        inner, rest = second(i)
        lost += weight * rest
        for j, each in inner.items():
            law[j] = law.get(j, Fraction(0)) + weight * each
    return {j: Fraction(up(weight, BITS), 1 << BITS) for j, weight in law.items()}, lost


def truncated(p: Fraction, records: int, limit: int, square: Fraction) -> Round:
    """Return a round of one zeroed-out record whose batch is truncated to B: the number r of other records drawn is released.

    Where r < B it is Poisson sampling; where r ≥ B, with q = pB/(r + 1), (1−q)N(0) + qN(2) against (1−q)N(0) + qN(−1): a record
    that is kept displaces another one. The profile is convex in q, since both laws are linear in it: between some nodes r it is
    at most the chord of theirs in 1/(r + 1). Beyond the last node its q is larger, and a smaller q is a mixture of that pair and
    of equal laws.
    """
    other_records = records - 1
    if limit > other_records:
        return MixtureRound({1: p}, square)
    unit, last = 1 << BITS, min(other_records, limit + limit // 10 + 10)
    ways = (
        math.comb(other_records, limit) * p.numerator**limit * (p.denominator - p.numerator) ** (other_records - limit)
    )
    below = unit * ways // p.denominator**other_records
    # In units: the term and sums from above, and from below.
    term, rare, known = below + 1, 0, 0
    nodes = sorted({limit + (last - limit) * i // 4 for i in range(5)})
    weights = dict.fromkeys(nodes, 0)
    for r in range(limit, other_records + 1):
        rare, known = rare + term, known + below
        right = next((node for node in nodes if node > r), last)
        left = nodes[nodes.index(right) - 1] if r < last else last
        share = term * (left + 1) * (right - r) // ((right - left) * (r + 1)) if r < last else term
        weights[left] += share + 1
        weights[right] += term - share
        factor = Fraction(other_records - r, r + 1) * p / (1 - p)
        if factor < Fraction(1, 2) and term << 120 < rare:
            rare, weights[last] = rare + term, weights[last] + term  # what follows is below the last term
            break
        term, below = math.ceil(term * factor), int(below * factor)
    full = [(r, p * limit / (r + 1)) for r in nodes]
    pairs: list[tuple[Fraction, Round]] = [
        (Fraction(weights[r], unit), MixtureRound({2: q}, square, {-1: q})) for r, q in full
    ]
    pairs.append((1 - Fraction(known, unit), MixtureRound({1: p}, square)))
    return Blend(pairs, MixtureRound({1: p * (1 - Fraction(rare, unit))}, square))


def seldom(rounds: int, other_records: int, rate: Fraction, most: int) -> Fraction:
    """Return an upper bound of h = Σ_i Pr[r_i ≥ B]·Pr[x_i = 1], r_i ~ Bin(N − 1, rate), for chances of at most `rate`.

    The first term is computed by its logarithm; each further one follows by a factor, rounded up. Once that is below ½, what
    follows is below the last term.
    """
    if most > other_records:
        return Fraction(0)
    if most <= other_records * rate or rate == 1:
        raise refused("batches that are often truncated")
    first = (
        ln_above(Fraction(math.comb(other_records, most)))
        + most * ln_above(rate)
        + (other_records - most) * ln_above(1 - rate)
    )
    term, total, odds = exp_above(first), Fraction(0), rate / (1 - rate)
    for r in range(most, other_records):
        total += term
        factor = Fraction(other_records - r, r + 1) * odds
        if factor < Fraction(1, 2) and term < total / (1 << 80):
            break
        term = Fraction(up(term * factor, BITS), 1 << BITS)
    return rounds * rate * (total + term)


def shared_users(p: Fraction, records: int, apart: int, norms: list[Fraction]) -> Round:
    """Return users who share records: what the participations move is public, squared, with its law.

    Whenever a user is not waiting, j of its records are drawn with Bin(j; records, p); j ≥ 1 moves j²·‖c_i‖² and makes it wait
    for b − 1 rounds. Columns no longer than b are orthogonal, and later ones (`norms` has all rounds) no longer. So whoever
    comes earlier, and with more records, moves no less: a user with fewer records, which is kept out by fewer draws, moves less
    than one that is available in the first round. That is the start taken here, whatever the form says. What is moved is counted
    in 64ths of the largest norm, rounded up.
    """
    unit, parts, rounds = 1 << 220, 64, len(norms)
    draws = [up(math.comb(records, j) * p**j * (1 - p) ** (records - j), 220) for j in range(records + 1)]
    waiting: list[dict[int, int]] = [{} for _ in range(rounds + apart + 1)]
    waiting[0] = {0: unit}
    for i in range(rounds):
        moves = math.ceil(parts * norms[i] / norms[0])
        for moved, weight in waiting[i].items():
            for j, probability in enumerate(draws):
                there, key = waiting[i + apart if j else i + 1], moved + j * j * moves
                there[key] = there.get(key, 0) + (weight * probability >> 220) + 1
    law: dict[int, int] = {}
    for left in waiting[rounds:]:
        for moved, weight in left.items():
            law[moved] = law.get(moved, 0) + weight
    nothing = FiniteRound([(Fraction(1), Fraction(1))])
    return Blend(
        [
            (Fraction(weight, unit), GaussianRound(norms[0] * moved / parts) if moved else nothing)
            for moved, weight in law.items()
        ]
    )


def discrete_gaussian(width: Fraction, shift: int) -> FiniteRound:
    """Return discrete noise against its shift: masses on −far..far, exact up to 2^−300, with the rest as an infinite loss."""
    bits, far = BITS, math.ceil(width * 20) + shift
    if far > MOST_OUTCOMES:
        raise refused(f"discrete Gaussian noise on {far} values")
    square = 2 * width**2
    half = [exp(-(x * x * square.denominator << bits) // square.numerator, bits) + 1 for x in range(far + 1)]
    whole, nothing = 2 * sum(half) - half[0], [Fraction(0)] * shift
    p = [Fraction(weight, whole) for weight in (*half[:0:-1], *half)]
    return FiniteRound(list(zip([*p, *nothing], [*nothing, *p], strict=True)), Fraction(1, 1 << 180))


def discrete_laplace(width: Fraction, shift: int) -> FiniteRound:
    """Return noise with masses in proportion to r^|x|, r = e^(−1/width), against its shift by k.

    All x ≤ 0 have the loss k/width, all x ≥ k its negative, and 0 < x < k the loss (k − 2x)/width. So k + 1 outcomes are enough,
    of the weights 1/(1 − r), r^x and r^k/(1 − r), and those in the reverse order. Each weight has a relative error η < 2^−200,
    because exponentials err by two units of 2^−bits, r^k ≥ 2^(−1.5·k/width), and 1 − r ≥ 2^−62. Then P ≤ (1 + 4η)P′ and Q ≥ (1 −
    4η)Q′, and αQ′ ≤ P′ where H_α counts, so that H_α exceeds that of (P′, Q′) by less than 2^−180.
    """
    if shift > MOST_OUTCOMES or width > 1 << 60 or shift > 10_000 * width:
        raise refused(f"discrete Laplace noise of the scale {float(width):.3g} that is moved by {shift} steps")
    bits = BITS + math.ceil(Fraction(3, 2) * shift / width)

    def power(x: int) -> int:
        return exp(-math.floor((x << bits) / width), bits)

    rest = (1 << bits) - power(1)
    weights = [(1 << 2 * bits) // rest, *map(power, range(1, shift)), (power(shift) << bits) // rest]
    p = [Fraction(weight, sum(weights)) for weight in weights]
    return FiniteRound(list(zip(p, p[::-1], strict=True)), Fraction(1, 1 << 180))
