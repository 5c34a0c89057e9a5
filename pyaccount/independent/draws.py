"""How often a record is drawn, and what that moves: laws of draws, truncated batches, users, and discrete noise.

Weights are rounded up to multiples of 2^−300, and what is left out is stated, so that a law is checked to add up to 1.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

from .enclosures import exp, exp_above, ln_above, up
from .form import refused
from .lattice import NotCheckableError
from .laws import ROUNDED, Blend, FiniteRound, GaussianRound, MixtureRound, Round

#: The bits of weights; and outcomes of discrete noise that differ.
BITS, MOST_OUTCOMES = 300, 50_000
NOTHING = FiniteRound([(Fraction(1), Fraction(1))])


def whole(law: dict[int, Fraction], none: Fraction, lost: Fraction = Fraction(0)) -> dict[int, Fraction]:
    """Return a law of j ≥ 1; raise unless it adds up to 1 with the probability of 0 and what is lost, all rounded up."""
    if not 1 <= sum(law.values(), none + lost) <= 1 + lost + ROUNDED:
        raise NotCheckableError("draws whose probabilities do not add up to 1")
    return law


def binomial(trials: int, p: Fraction, least: Fraction, start: int = 1) -> tuple[dict[int, Fraction], Fraction]:
    """Return Bin(j; trials, p) for the first j ≥ `start`, and a bound of the sum of the others.

    The first has a logarithm up to 2^−300, and further ones follow by the factor (trials − j)/(j + 1)·p/(1 − p), rounded up. Once
    it is below ½, what follows a term is below that term; then terms are left out that are below `least`.
    """
    if p == 1 or start > trials:
        return {trials: Fraction(1)} if start <= trials else {}, Fraction(0)
    first = ln_above(Fraction(math.comb(trials, start))) + start * ln_above(p) + (trials - start) * ln_above(1 - p)
    odds, law, term = p / (1 - p), dict[int, Fraction](), up(exp_above(first), BITS)
    for j in range(start, trials + 1):
        factor, law[j] = Fraction(trials - j, j + 1) * odds, Fraction(term, 1 << BITS)
        if factor < Fraction(1, 2) and law[j] <= least:
            return law, law[j]
        term = math.ceil(term * factor)
    return law, Fraction(0)


def drawn(trials: int, p: Fraction, least: Fraction) -> tuple[dict[int, Fraction], Fraction]:
    """Return Bin(j; trials, p) for the first j ≥ 1, which add up to 1 with that of 0, and a bound of the sum of the others."""
    law, lost = binomial(trials, p, least)
    return whole(law, exp_above(trials * ln_above(1 - p)) if p < 1 else Fraction(0), lost), lost


def hypergeometric(records: int, drawn: int, group: int) -> dict[int, Fraction]:
    """Return the law of how many of `group` records are among `drawn` of `records`, for j ≥ 1, exactly."""
    ways = {j: math.comb(drawn, j) * math.comb(records - drawn, group - j) for j in range(min(group, drawn) + 1)}
    law = {j: Fraction(each, math.comb(records, group)) for j, each in ways.items() if each}
    none = law.pop(0, Fraction(0))
    return whole(law, none)


def truncated(p: Fraction, records: int, limit: int, square: Fraction) -> Round:
    """Return a round of one zeroed-out record whose batch is truncated to B: the number r of other records drawn is released.

    Where r < B it is Poisson sampling; where r ≥ B, with q = pB/(r + 1), (1−q)N(0) + qN(2) against (1−q)N(0) + qN(−1): a record
    that is kept displaces another one. The profile is convex in q, since both laws are linear in it: between some nodes r it is
    at most the chord of theirs in 1/(r + 1). Beyond the last node its q is larger, and a smaller q is a mixture of that pair and
    of equal laws.
    """
    rest, last = records - 1, min(records - 1, limit + limit // 10 + 10)
    if limit <= rest * p or p == 1 or records > 10**12:
        raise refused("batches that are often truncated")
    law, lost = binomial(rest, p, Fraction(1, 1 << 200), limit)
    weights = {limit + (last - limit) * i // 4: lost if i == 4 else Fraction(0) for i in range(5) if law}
    for r, each in law.items():
        left = max(node for node in weights if node <= r)
        right = min((node for node in weights if node > r), default=left)
        share = Fraction((left + 1) * (right - r), (right - left) * (r + 1)) if right > left else Fraction(1)
        for node, part in ((left, share), (right, 1 - share)):
            weights[node] += Fraction(up(each * part, BITS), 1 << BITS)
    qs = [(weight, p * limit / (r + 1)) for r, weight in weights.items()]
    usual = 1 - sum(law.values(), Fraction(0)) + Fraction(1, 1 << 190)
    parts = [(weight, MixtureRound({2: q}, square, {-1: q})) for weight, q in qs]
    return Blend([*parts, (usual, MixtureRound({1: p}, square))])


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
    waiting = [Counter[int]() for _ in range(rounds + apart + 1)]
    waiting[0][0] = unit
    for i in range(rounds):
        moves = math.ceil(parts * norms[i] / norms[0])
        for moved, weight in waiting[i].items():
            for j, probability in enumerate(draws):
                waiting[i + apart if j else i + 1][moved + j * j * moves] += (weight * probability >> 220) + 1
    law = sum(waiting[rounds:], Counter[int]())
    moving = [(Fraction(law[moved], unit), GaussianRound(norms[0] * moved / parts)) for moved in law if moved]
    return Blend([*moving, (Fraction(law[0], unit), NOTHING)])


def discrete(width: Fraction, shift: int, *, laplace: bool) -> FiniteRound:
    """Return noise with masses in proportion to w_x = r^|x|, r = e^(−1/width), or e^(−x²/(2·width²)), against its shift by k.

    *Laplace*: all x ≤ 0 have the loss k/width, all x ≥ k its negative. So k + 1 outcomes are enough, of the weights 1/(1 − r),
    r^x and r^k/(1 − r), and those in the reverse order. *Gaussian*: with x in −far..far, far ≥ 20·width; what is beyond is a
    share of both laws below 2^−180, and counts as an infinite loss. Each weight has a relative error η < 2^−200, since
    exponentials err by two units and their logarithms are above −bits/2, and 1 − r ≥ 2^−62. Then P ≤ (1 + 4η)P′ and
    Q ≥ (1 − 4η)Q′, and     αQ′ ≤ P′ where H_α counts, so that H_α exceeds that of (P′, Q′) by less than 2^−180.
    """
    far = shift if laplace else math.ceil(20 * width) + shift
    power, rate = (1, 1 / width) if laplace else (2, 1 / (2 * width**2))
    size = rate * far**power
    if far > MOST_OUTCOMES or width > 1 << 60 or size > 10_000:
        raise refused(f"discrete noise of the scale {float(width):.3g} that is moved by {shift} steps")
    bits = BITS + math.ceil(3 * size)
    half = [exp(-math.floor(rate * (x**power << bits)), bits) for x in range(far + 1)]
    if laplace:
        rest = (1 << bits) - exp(-math.floor((1 << bits) / width), bits)
        weights = [(1 << 2 * bits) // rest, *half[1:-1], (half[-1] << bits) // rest]
        p, q = weights, weights[::-1]
    else:
        weights = [*half[:0:-1], *half]
        p, q = [*weights, *[0] * shift], [*[0] * shift, *weights]
    return FiniteRound(list(zip(p, q, strict=True)), Fraction(1, 1 << 180))
