"""Correlated noise with b-min-sep sampling: moments of the likelihood ratio f of a run, in integers.

**A moment is a recursion.** f^m has a factor for each of m *replicas*, independent copies of a record's participations x. With
r_i(k) the inner product of the columns i and i − k, in units of the noise, Z_m = E_Q f^m = Σ Π_r w_(x^r)·e^(Σ_(r<s) ⟨Cx^r,
Cx^s⟩). The *age* of a replica in round i is the number of rounds since it took part, and b if that is b or more: then it is
*free*, and takes part with probability p. Columns have no negative entries and at most b bands (checked), so that ⟨c_i, c_(i−k)⟩
is ≥ 0, and 0 for k ≥ b. With F replicas free, and h the sum of r_i(a) over the ages a of the busy ones,

    β_i(s) = Σ_(j ≤ F) Bin(j; F, p)·e^(j(j−1)·r_i(0)/2 + j·h)·β_(i+1)(s′),  β_(n+1) = 1,  Z_m = Σ_s start(s)·β_1(s),

where j replicas have age 1 in s′ and the others are a round older. If no replica is free, all become older until one is, after k
rounds: β_i(s) = β_(i+k)(s, k rounds older). So a table has only the states with a free replica, and the tables of the last b
rounds are kept.

**A table is a witness.** Let v be any positive table, T the step of round i and of K rounds before it, and λ the largest factor
by which a step raises an entry of v. T is linear with positive weights, so that T^K·v ≤ λ^K·v: where β_i ≤ v, λ^K·v bounds the
table K rounds earlier. Here v is β itself after some rounds; for states without a free replica the inequality is that of later
rounds, so that λ is taken over the last b of them. Whole columns in all rounds only raise β. One step function makes tables and
proves with them: every weight and value is rounded up (or down, for a bound from below).

**From moments to δ.** *Side 0*: (x − e^ε)₊ ≤ c_m·e^(−(m−1)ε)·x^m with c_m = (m−1)^(m−1)/m^m, as their quotient is largest at x =
e^ε·m/(m−1). So δ ≤ c_m·e^(−(m−1)ε)·Z_m. If p(x) = Σ a_k·x^k ≥ (x − 1)₊ for x ≥ 0 (a witness, proven by `polynomials`), then δ ≤
Σ a_k·e^((1−k)ε)·Z_k. Independent runs multiply their f. *Side 1*: δ = E(1 − e^ε·f)₊. f ≥ w_∅, the probability of never taking
part, so δ = 0 for ε ≥ −ln w_∅. And ln f is convex, so that it is above its tangent at any −d: ln f(y) ≥ ln f(−d) + ⟨g, y + d⟩,
where g is the mean of Cx under the weights w_x·e^(−⟨Cx, d⟩ − ‖Cx‖²/2)/f(−d). ⟨g, y⟩ − ‖g‖²/2 is the loss of N(g) against N(0):
δ(ε) is at most that of a Gaussian mechanism of sensitivity ‖g‖ at ε + ln f(−d) + ⟨g, d⟩ + ‖g‖²/2.

**Rare truncation** (zero-out). The numbers of other records are released first. Let e be the probability, given them, that the
record takes part in a round that is full, and h ≥ E e. Then the laws are (1 − e)P^∅ + e·P′ and (1 − e)Q + e·Q′ with (1 − e)P^∅ ≤
P, P^∅ the law of a record that avoids those rounds, so that H_α ≤ H_((1−e)α)(P‖Q) + e ≤ W·(1 − e)^(−(m−1)) + e, W the bound by
Z_m. By convexity in e that is at most W + (1 + 2^m·W)·e for e ≤ ½, and otherwise δ ≤ 1 ≤ 2e: the mean is at most W + max(2, 1 +
2^m·W)·h. On side 1, P^∅ has f ≥ w_∅ as well, so that δ ≤ h for ε ≥ −ln w_∅.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import accumulate, chain, combinations_with_replacement, repeat
from operator import add, mul
from typing import Any, NamedTuple

from . import composition
from .columns import column
from .composition import Log, ProvenBounds, RoundCounts
from .enclosures import WIDE, exp, exp_above, ln_above
from .form import FormPart, refused
from .laws import GaussianRound, MixtureRound, Round
from .polynomials import is_above

#: Bits of tables, and of those whose weights cancel; numbers that tables may have; entries of matrices with tangents.
BITS, MORE, MOST_NUMBERS, MOST_ENTRIES = 56, 64, 20_000_000, 1_000_000
#: By how much λ^K may be above the exact table while there is time, in short runs and in long ones.
NEAR, NEAR_IN_LONG_RUNS = 1e-12, 2e-4
#: No further order is tried once δ is above the claim by no more than this share.
ENOUGH = Fraction(1, 5000)


def rounded(x: Fraction, bits: int, *, up: bool) -> int:
    """Return a number in units of 2^−bits, rounded up or down."""
    return -((-x.numerator << bits) // x.denominator) if up else (x.numerator << bits) // x.denominator


def log(x: Fraction) -> float:
    """Return ln x in doubles, also where x is none."""
    return math.log(x.numerator) - math.log(x.denominator)


class Renewals(NamedTuple):
    """n rounds in which a record joins with probability p whenever it is free, and then waits for b − 1 rounds.

    A warm start is the stationary law: each age below b has probability p/(1 + (b−1)p). In a cold start the record is free.
    """

    rounds: int
    apart: int
    p: Fraction
    warm: bool


class MovedColumns:
    """Columns without negative entries and with at most b bands: in units of 2^−60, rounded up, times a factor.

    Larger entries have a larger δ on both sides (Lemma C, row by row).
    """

    def __init__(
        self, entries: Sequence[Sequence[Fraction]], square: Fraction, apart: int, also: Fraction, *, equal: bool
    ) -> None:
        """Take the columns of all rounds, or one for all; 1/σ²; b; and what a participation moves in other releases, squared."""
        if any(entry < 0 for each in entries for entry in each) or max(map(len, entries)) > apart:
            raise refused("sampling with a matrix that has negative entries, or more bands than the separation")
        self.columns = [[math.ceil(entry * (1 << 60)) for entry in each] for each in entries]
        self.square, self.also, self.apart, self.equal, first = square / (1 << 120), also, apart, equal, self.columns[0]
        self.bands = len(first)
        self.sums = [[0, *accumulate(map(mul, first, first[k:]))] for k in range(self.bands)] if equal else []

    def of(self, i: int) -> list[int]:
        """Return column i."""
        return self.columns[min(i, len(self.columns)) - 1]

    def norm(self, here: Sequence[int]) -> Fraction:
        """Return what a participation moves, squared, in units of the noise."""
        return sum(each * each for each in here) * self.square + self.also

    def largest(self) -> Fraction:
        """Return the largest norm, squared."""
        return max(map(self.norm, self.columns))

    def alike(self, law: Renewals) -> tuple[int, int]:
        """Return the first and last of the rounds whose products are equal."""
        return (
            ((law.apart if law.warm else 1), law.rounds - self.bands + 1)
            if self.equal
            else (law.rounds + 1, law.rounds)
        )

    def products(self, i: int, law: Renewals, *, whole: bool) -> list[Fraction]:
        """Return r_i(k) for k = 0..b − 1: only rounds of the run count, and only columns from 1 on, unless `whole`."""
        left = law.rounds - i + 1
        if not self.equal:
            here = self.of(i)[:left]
            later = (
                sum(map(mul, here, self.of(i - k)[k:])) * self.square if k < i else Fraction(0)
                for k in range(1, self.apart)
            )
            return [self.norm(here), *later]
        known = self.bands if whole or not law.warm else min(i, self.bands)
        found = [each[-1 if whole else min(left, len(each) - 1)] * self.square for each in self.sums[:known]]
        return [found[0] + self.also, *found[1:], *[Fraction(0)] * (self.apart - known)]


def columns_of(matrix: FormPart, rounds: int, square: Fraction, apart: int, also: Fraction) -> MovedColumns:
    """Return the columns of a Toeplitz matrix, or of one whose entries lie beside the form (`entries`, by columns)."""
    if "entries" in matrix:
        if len(matrix["entries"]) != rounds:
            raise refused("a matrix with more columns than rounds, or fewer")
        return MovedColumns(matrix["entries"], square, apart, also, equal=False)
    entries, norm = column(matrix, rounds)
    return MovedColumns([entries], square / norm, apart, also, equal=True)


class Chain:
    """The recursion for m replicas, rounded up or down."""

    def __init__(self, law: Renewals, columns: MovedColumns, m: int, *, up: bool, bits: int) -> None:
        """Order the multisets of ages with a free replica, which is left out of a state, so that moves are in few pieces."""
        self.law, self.columns, self.m, self.up, self.bits, self.one = law, columns, m, up, bits, 1 << bits
        b, self.unit = law.apart, int(up) * ((1 << bits) - 1)
        states = combinations_with_replacement(range(1, b + 1), m - 1)
        self.states = sorted(states, key=lambda s: (s.count(b), max((a for a in s if a < b), default=0), s))
        self.position = {state: i for i, state in enumerate(self.states)}
        self.busy = [[a for a in state if a < b] for state in self.states]
        #: For each F: the slice of its states, and for each j the pieces (rounds later, positions of the next states).
        self.strata: list[tuple[int, slice, list[list[tuple[int, list[int]]]]]] = []
        first = 0
        for free in range(1, m + 1):
            last = first + sum(state.count(b) == free - 1 for state in self.states[first:])
            here = slice(first, last)
            self.strata.append((free, here, [self._pieces(self.busy[here], free, j) for j in range(free + 1)]))
            first = last
        self.weights: list[list[Iterable[int]]] = []

    def _pieces(self, states: Sequence[Sequence[int]], free: int, j: int) -> list[tuple[int, list[int]]]:
        pieces: list[tuple[int, list[int]]] = []
        for busy in states:
            ages = sorted([1] * j + [a + 1 for a in busy] + [self.law.apart] * (free - j))
            older = self.law.apart - ages[-1]
            target = self.position[tuple(a + older for a in ages[:-1])]
            if not pieces or pieces[-1][0] != 1 + older:
                pieces.append((1 + older, []))
            pieces[-1][1].append(target)
        return pieces

    def _weigh(self, products: Sequence[Fraction]) -> None:
        """Set the weights Bin(j; F, p)·e^(j(j−1)r(0)/2 + jh) of all moves; the first two factors are rounded together."""
        bits, unit, p = self.bits, self.unit, self.law.p

        def grown(exponent: Fraction) -> int:
            return exp(rounded(exponent, bits, up=self.up), bits) + (1 if self.up else -1)

        factors = [grown(each) if each else self.one for each in products]
        self.weights = []
        for free, here, moves in self.strata:
            heights = [self.one] * (here.stop - here.start)
            for ages in zip(*self.busy[here], strict=True):
                heights = [height * factors[age] + unit >> bits for height, age in zip(heights, ages, strict=True)]
            weights, powers = list[Iterable[int]](), [self.one] * len(heights)
            for j in range(len(moves)):
                chance = (
                    math.comb(free, j)
                    * p**j
                    * (1 - p) ** (free - j)
                    * Fraction(grown(Fraction(j * (j - 1), 2) * products[0]), self.one)
                )
                times = rounded(chance, bits, up=self.up)
                powers = [a * b + unit >> bits for a, b in zip(powers, heights, strict=True)] if j else powers
                weights.append([times * each + unit >> bits for each in powers] if j else repeat(times))
            self.weights.append(weights)

    def _step(self, later: Sequence[Sequence[int]]) -> list[int]:
        """Return the table of the round before, from those of the next b rounds."""
        table: list[int] = []
        for (_, _, moves), weights in zip(self.strata, self.weights, strict=True):
            terms = [
                map(mul, weight, chain.from_iterable(map(later[d - 1].__getitem__, at) for d, at in pieces))
                for pieces, weight in zip(moves, weights, strict=True)
            ]
            table += [each + self.unit >> self.bits for each in reduce(lambda a, b: map(add, a, b), terms)]
        return table

    def _growth(self, later: Sequence[Sequence[int]]) -> int:
        """Return λ with β_i ≤ λ·β_(i+1), or ≥, over the last b rounds."""
        every = zip(chain.from_iterable(later), chain.from_iterable(list(later)[1:]), strict=False)
        return (
            max(-((-x << self.bits) // y) for x, y in every)
            if self.up
            else min((x << self.bits) // y for x, y in every)
        )

    def _start(self, later: Sequence[Sequence[int]]) -> Fraction:
        """Return Σ start(s)·β_1(s); states without a free replica are those of round 1 + k that are k rounds older."""
        b, p, m = self.law.apart, self.law.p, self.m
        if not self.law.warm:
            return Fraction(later[0][self.position[(b,) * (m - 1)]], self.one)
        ways = [
            math.factorial(m) // math.prod(map(math.factorial, Counter((*state, b)).values())) for state in self.states
        ]
        total = sum(
            (p ** (m - free) * sum(map(mul, ways[here], later[0][here])) for free, here, _ in self.strata), Fraction(0)
        )
        youngest = [min(state, default=b) for state in self.states]
        order = sorted(range(len(youngest)), key=lambda at: -youngest[at])
        for k in range(1, b):
            while order and youngest[order[-1]] <= k:
                order.pop()
            total += p**m * sum(ways[at] * later[k][at] for at in order)
        return total / (1 + (b - 1) * p) ** m / self.one

    def moment(self, seconds: float, goal: Fraction | None) -> Fraction | None:
        """Return a bound of Z_m, after about `seconds` of processor time; None if there is none by then.

        A long run is first tried with whole columns everywhere, until a bound from above is at most the goal.
        """
        began, law, (low, high) = time.process_time(), self.law, self.columns.alike(self.law)
        self._weigh(self.columns.products(high, law, whole=True))
        self._step([[self.one] * len(self.states)] * (law.apart + 1))
        cost, found = time.process_time() - began, None
        if goal is not None and self.up and high - low > 4 * law.apart:
            found = self._run((1, law.rounds), seconds, 0.0, goal)
            if found is not None and found <= goal:
                return found
            seconds -= time.process_time() - began
        exact = not self.up or low > high or (law.rounds - high + low + law.apart) * cost < seconds
        return self._run((low, high) if exact else (1, law.rounds), seconds, cost, None) or found

    def _run(self, equal: tuple[int, int], seconds: float, cost: float, goal: Fraction | None) -> Fraction | None:
        """Return the bound with whole columns in the rounds that count as equal; None once a goal is out of reach."""
        began, law, (low, high), i, weighed = time.process_time(), self.law, equal, self.law.rounds, False
        later = deque([[self.one] * len(self.states)] * (law.apart + 1), law.apart + 1)
        near = (
            0.0 if law.rounds * cost < seconds / 20 else NEAR if law.rounds * cost < seconds / 4 else NEAR_IN_LONG_RUNS
        )
        growth, times = self.one, 0
        while i > 0:
            whole = low <= i <= high
            if not (whole and weighed):
                self._weigh(self.columns.products(i, law, whole=whole and equal == (1, law.rounds)))
            weighed = whole
            later.appendleft(self._step(later))
            late = time.process_time() - began > seconds - (low - 1) * cost
            if whole and i > low and (late or (high - i) % law.apart % max(1, law.apart // 4) == 0):
                ratios = [x / y for x, y in zip(later[-2], later[-1], strict=True)]
                least, most = math.log(min(ratios)), math.log(max(ratios))
                done = late or (i + law.apart <= law.rounds and (i - low) * (most - least) < near)
                if goal is not None and i + law.apart <= law.rounds and not done:
                    here, wanted = log(Fraction(later[0][-1], self.one)), log(goal)
                    if here + (i - low) * least > wanted:
                        return None
                    done = here + (i - low) * most < wanted
                if done:
                    growth, times, i = self._growth(later), i - low, low
            elif late and (i > low or low > high):
                return None
            i -= 1
        if times * abs(growth / self.one - 1) > 5000:
            return None
        total = self.one
        for bit in bin(times)[2:]:
            total = (total * total >> self.bits) + self.up
            total = (total * growth >> self.bits) + self.up if bit == "1" else total
        return Fraction(rounded(self._start(later) * total, self.bits, up=self.up), self.one**2)


class SecretRound(Round):
    """A run of which it is known what it moves if participations are public; `sampled` has what a fresh test needs."""

    sampled: Any = None

    def __init__(self, square: Fraction) -> None:
        """Take the largest ‖Cx‖², in squared units of the noise: it bounds both sides, by joint convexity."""
        self.square = square


class Correlated(SecretRound):
    """A run with b-min-sep sampling."""

    #: Coefficients of a polynomial to try, if any.
    polynomial: Sequence[Fraction] = ()

    def __init__(self, law: Renewals, columns: MovedColumns, truncated: Fraction) -> None:
        """Take the participations, the columns, and the h of rare truncation. At most ⌈n/b⌉ orthogonal columns are moved."""
        super().__init__(-(-law.rounds // law.apart) * columns.largest())
        self.law, self.columns, self.truncated = law, columns, truncated
        self._known: dict[tuple[int, bool], Fraction | None] = {}

    def moment(self, m: int, seconds: float, *, above: bool = True, goal: Fraction | None = None) -> Fraction | None:
        """Return a bound of Z_m, or None if that takes too long; one that is at most a goal will do."""
        if m < 2:
            return Fraction(1)  # f has mean 1
        if (m, above) not in self._known:
            states, large = math.comb(self.law.apart + m - 2, m - 1), m * (m - 1) // 2 * self.columns.largest() > 500
            fits = not large and states * (self.law.apart + 1) <= MOST_NUMBERS and states * 3e-5 < seconds
            bits = BITS + MORE * bool(self.polynomial)
            self._known[m, above] = (
                Chain(self.law, self.columns, m, up=above, bits=bits).moment(seconds, goal) if fits else None
            )
        return self._known[m, above]

    def never(self) -> Fraction | None:
        """Return an upper bound of −ln w_∅; None if w_∅ = 0.

        Cold: w_∅ = (1 − p)^n. Warm, with D = 1 + (b−1)p: the record is free with probability 1/D, or waits for j = 1..b−1
        rounds, each with p/D. With w = min(b − 1, n), w_∅ ≥ (1 − p)^(n−w)/D·((1 − p)^w + Σ_(j ≤ w) p·(1 − p)^(w−j)), and the
        last factor is 1.
        """
        law = self.law
        waits = min(law.apart - 1, law.rounds) if law.warm else 0
        if law.p == 1 and law.rounds > waits:
            return None
        each = ln_above(1 / (1 - law.p)) if law.rounds > waits else Fraction(0)
        return (law.rounds - waits) * each + (ln_above(1 + (law.apart - 1) * law.p) if law.warm else 0)

    def _moved(self, weights: Sequence[int]) -> list[int]:
        total = [0] * self.law.rounds
        for i, weight in enumerate(weights):
            for t, entry in enumerate(self.columns.of(i + 1)[: self.law.rounds - i], i):
                total[t] += weight * entry
        return total

    def tangent(self, along: Sequence[int], theta: Fraction) -> tuple[list[int], Fraction, Fraction] | None:
        """Return the tangent of ln f at −d, d = θ·Σ_i along_i·c_i/2^WIDE: weights, high ≥ ‖g‖², and rise ≤ its constant.

        None if f(−d) is below any number that is used here.
        """
        law, columns, one = self.law, self.columns, 1 << WIDE
        direction, inner, exponents = self._moved(along), list[Fraction](), list[Fraction]()
        for i, weight in enumerate(along):
            here = columns.of(i + 1)
            inner.append(theta * (sum(map(mul, here, direction[i:])) * columns.square + weight * columns.also) / one)
            exponents.append(inner[-1] + columns.norm(here[: law.rounds - i]) / 2)
        (low, least), (high, most) = (self._joined(exponents, up=up) for up in (False, True))
        if not least:
            return None
        low, high = [(x << WIDE) // most for x in low], [(x << WIDE) // least + 1 for x in high]
        squares = [
            (sum(x * x for x in self._moved(each)) * columns.square + sum(x * x for x in each) * columns.also) / one**2
            for each in (low, high)
        ]
        rise = sum(map(mul, low, inner), Fraction(0)) / one - ln_above(Fraction(one, least))
        return low, squares[1], rise + squares[0] / 2

    def _joined(self, exponents: Sequence[Fraction], *, up: bool) -> tuple[list[int], int]:
        """Return f·π_i and f of the law w_x·e^(−Σ x_i·exponent_i)/f, in units of 2^−WIDE, rounded up or down.

        Given that a record is free in round i, what follows has weight A_i = (1−p)·A_(i+1) + p_i·A_(i+b) with p_i =
        p·e^(−exponent_i), and what came before u_(i+1) = (1−p)·u_i + p_(i+1−b)·u_(i+1−b). All terms are positive.
        """
        law, n, b, unit = self.law, self.law.rounds, self.law.apart, 1 << WIDE
        whole = 1 + (b - 1) * law.p if law.warm else Fraction(1)
        stays, before = rounded(1 - law.p, WIDE, up=up), rounded(law.p / whole, WIDE, up=up) if law.warm else 0
        joins = [rounded(law.p * (exp_above(-each) if up else 1 / exp_above(each)), WIDE, up=up) for each in exponents]
        after, free = [unit] * (n + b), [rounded(1 / whole, WIDE, up=up)]
        for i in range(n - 1, -1, -1):
            after[i] = (stays * after[i + 1] + joins[i] * after[i + b] >> WIDE) + up
        for i in range(1, n):
            joined = joins[i - b] * free[i - b] >> WIDE if i >= b else before
            free.append((stays * free[-1] >> WIDE) + joined + 2 * up)
        total = free[0] * after[0] + before * sum(after[1:b])
        return [(x * y >> WIDE) * z + (z << 1) * up >> WIDE for x, y, z in zip(free, joins, after[b:], strict=True)], (
            total >> WIDE
        ) + up


def _other_moment(part: Round, m: int, count: int) -> Fraction:
    """Return an upper bound of Z_m of rounds beside: Σ_j Bin(j; m, p)·e^(j(j−1)s²/2) for (1 − p)N(0) + pN(s) against N(0)."""
    if isinstance(part, GaussianRound):
        p = Fraction(1)
    elif isinstance(part, MixtureRound) and list(part.w) == [1] and not part.v and not part.lost:
        p = part.w[1]
    else:
        raise refused("correlated noise with sampling beside these phases")
    chances = (math.comb(m, j) * p**j * (1 - p) ** (m - j) for j in range(m + 1))
    return _power(
        sum((each * exp_above(Fraction(j * (j - 1), 2) * part.square) for j, each in enumerate(chances)), Fraction(0)),
        count,
    )


def _power(x: Fraction, n: int) -> Fraction:
    """Return an upper bound of x^n, for x ≥ 1."""
    if n * log(x) > 20_000:
        raise refused("so many rounds beside correlated noise")
    total = Fraction(1)
    for bit in bin(n)[2:]:
        total = Fraction(rounded(total * total * (x if bit == "1" else 1), WIDE, up=True), 1 << WIDE)
    return total


def prove(parts: RoundCounts, epsilon: Fraction, target: Fraction, seconds: float, log_line: Log) -> ProvenBounds:
    """Return bounds of δ at ε and of ε at δ: of runs with correlated noise by moments, of anything else by lattices."""
    secret = [(part, count) for part, count in parts if isinstance(part, SecretRound)]
    if not secret:
        return composition.prove(parts, epsilon, target, seconds, log_line)
    rest = [(part, count) for part, count in parts if not isinstance(part, SecretRound)]
    runs = [(part, count) for part, count in secret if isinstance(part, Correlated)]
    full = sum((part.truncated for part, _ in runs), Fraction(0))
    if epsilon > 1000 or (full and (len(parts) > 1 or runs[0][1] > 1)):
        raise refused("correlated noise at an ε above 1000, or with truncated batches beside other phases")
    known = ProvenBounds(Fraction(1))
    if not full:
        public: RoundCounts = [*rest, *((GaussianRound(part.square), count) for part, count in secret)]
        known = composition.prove(public, epsilon, target, seconds / 8, log_line)._replace(lower=None)
        if known.delta <= target or len(runs) < len(secret):
            return known
    found = _Moments(runs, rest, full, log_line).bounds(epsilon, target, seconds)
    return found if found.delta < known.delta else known


class _Moments:
    """Runs with correlated noise beside other rounds."""

    def __init__(
        self, runs: Sequence[tuple[Correlated, int]], rest: RoundCounts, full: Fraction, log_line: Log
    ) -> None:
        self.runs, self.rest, self.full, self.log = runs, rest, full, log_line

    def bounds(self, epsilon: Fraction, target: Fraction, seconds: float) -> ProvenBounds:
        """Return bounds by the polynomial, and by moments of growing order until the claim is proven or they get worse."""
        until, h, epsilons = time.process_time() + seconds, self.full, list[Fraction]()
        added, removed, before, m = self._added(epsilon, target, until), Fraction(1), Fraction(2), 2
        if added <= target:
            whole = self._polynomial(epsilon, until)
            removed = removed if whole is None else min(removed, whole)
        else:
            until -= 0.9 * seconds  # moments can only show the ε that holds
        while removed > target * (1 + ENOUGH):
            share = Fraction((m - 1) ** (m - 1), m**m)
            room = (target - 2 * h) / (1 + 2**m * h) / share
            moment = self._moment(m, until, room / exp_above(-(m - 1) * epsilon))
            if moment is None:
                break
            one = share * moment * exp_above(-(m - 1) * epsilon)
            one += max(Fraction(2), 1 + 2**m * one) * h
            self.log(f"ln E f^{m} ≤ {log(moment):.6g}: δ {float(min(one, Fraction(1))):.6g}")
            if room > 0:
                epsilons.append(max(Fraction(0), ln_above(moment / room) / (m - 1)))
            removed = min(removed, one)
            if one > before:
                break
            before, m = one, m + 1
        delta = max(removed, added)
        epsilons += [epsilon] if delta <= target else []
        proven = min(
            (each for each in epsilons if each == epsilon or self._added(each, target, until) <= target), default=None
        )
        return ProvenBounds(delta, proven)

    def _moment(self, m: int, until: float, goal: Fraction) -> Fraction | None:
        """Return an upper bound of Z_m of all runs and rounds."""
        total = Fraction(1)
        for part, count in self.rest:
            total *= _other_moment(part, m, count)
        for part, count in self.runs:
            alone = goal / total if len(self.runs) == 1 and count == 1 else None
            found = part.moment(m, until - time.process_time(), goal=alone)
            if found is None:
                return None
            total *= _power(found, count)
        return total

    def _added(self, epsilon: Fraction, target: Fraction, until: float) -> Fraction:
        """Return an upper bound of δ(ε) on side 1: by the probability of never taking part, or by tangents."""

        def beside(parts: RoundCounts, left: Fraction) -> Fraction:
            seconds = max(0.1, min(10.0, until - time.process_time()))
            return composition.prove(parts, left, target, seconds, self.log).delta if parts else Fraction(0)

        never = [(part.never(), count) for part, count in self.runs]
        left = epsilon - sum(count * each for each, count in never if each is not None)
        if all(each is not None for each, _ in never) and left >= 0:
            return min(Fraction(1), beside(self.rest, left) + self.full)
        best, theta = Fraction(1), Fraction(0)
        if self.full or sum(part.law.rounds * part.columns.bands for part, _ in self.runs) > MOST_ENTRIES:
            return best
        along: list[Sequence[int]] = [[0] * part.law.rounds for part, _ in self.runs]
        for _ in range(4):
            known = [part.tangent(each, theta) for (part, _), each in zip(self.runs, along, strict=True)]
            tangents = [(each, count) for each, (_, count) in zip(known, self.runs, strict=True) if each is not None]
            if len(tangents) < len(known):
                break
            high = sum((each[1] * count for each, count in tangents), Fraction(0))
            rise = sum((each[2] * count for each, count in tangents), Fraction(0))
            if epsilon + rise > 0:
                best = min(best, beside([*self.rest, (GaussianRound(high), 1)], epsilon + rise))
            if best <= target or time.process_time() > until:
                break
            # The next tangent is near where a Gaussian mechanism of this size would have the loss −ε, and a little further.
            along, size = [each[0] for each, _ in tangents], float(high)
            theta = Fraction(max(0.0, float(epsilon + rise) / size - 0.5 + 0.5 / math.sqrt(size))).limit_denominator(
                1000
            )
        return best

    def _polynomial(self, epsilon: Fraction, until: float) -> Fraction | None:
        """Return the bound by the polynomial that is given as a witness, if there is one and it is above (x − 1)₊."""
        (run, count), *more = self.runs
        if self.rest or more or self.full or count > 1 or not run.polynomial or not is_above(run.polynomial):
            return None
        total = Fraction(0)
        for k, coefficient in enumerate(run.polynomial):
            moment = run.moment(k, until - time.process_time(), above=coefficient > 0)
            if moment is None:
                return None
            factor = exp_above((1 - k) * epsilon)
            total += coefficient * moment * (factor if coefficient > 0 else factor - Fraction(4, 1 << WIDE))
        self.log(f"a polynomial of degree {len(run.polynomial) - 1}: δ {float(total):.6g}")
        return max(total, Fraction(0))
