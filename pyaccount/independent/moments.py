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

**From moments to δ.** *Side 0*: if p(x) = Σ a_k·x^k ≥ (x − 1)₊ for x ≥ 0 (a witness, proven by `polynomials`), then δ ≤
Σ a_k·e^((1−k)ε)·Z_k. c_m·x^m with c_m = (m−1)^(m−1)/m^m is one: (x − 1)/x^m is largest at x = m/(m−1). *Side 1*: f ≥ w_∅, the
probability of never taking part, so that δ = E(1 − e^ε·f)₊ = 0 for ε ≥ −ln w_∅.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import accumulate, chain, combinations_with_replacement, repeat
from operator import mul
from typing import Any, NamedTuple

from .columns import column
from .enclosures import exp, exp_above, ln_above
from .form import FormPart, refused
from .laws import Round
from .polynomials import is_above

#: Bits of tables, and of those whose weights cancel; numbers that tables may have.
BITS, MORE, MOST_NUMBERS = 56, 64, 20_000_000
#: λ is used where the factors of all entries are this near, and no order is tried once δ is this near the claim.
NEAR, ENOUGH = 1e-11, Fraction(1, 5000)


def rounded(x: Fraction, bits: int, *, up: bool) -> int:
    """Return a number in units of 2^−bits, rounded up or down."""
    return -((-x.numerator << bits) // x.denominator) if up else (x.numerator << bits) // x.denominator


class Renewals(NamedTuple):
    """n rounds in which a record joins with probability p whenever it is free, and then waits for b − 1 rounds.

    A warm start is the stationary law: each age below b has probability p/(1 + (b−1)p). In a cold start the record is free.
    """

    rounds: int
    apart: int
    p: Fraction
    warm: bool

    def never(self) -> Fraction | None:
        """Return an upper bound of −ln w_∅; None if w_∅ = 0.

        Cold: w_∅ = (1 − p)^n. Warm, with D = 1 + (b−1)p: the record is free with probability 1/D, or waits for j = 1..b−1
        rounds, each with p/D. With w = min(b − 1, n), w_∅ ≥ (1 − p)^(n−w)/D·((1 − p)^w + Σ_(j ≤ w) p·(1 − p)^(w−j)), and the
        last factor is 1.
        """
        waits = min(self.apart - 1, self.rounds) if self.warm else 0
        if self.p == 1 and self.rounds > waits:
            return None
        each = ln_above(1 / (1 - self.p)) if self.rounds > waits else Fraction(0)
        return (self.rounds - waits) * each + (ln_above(1 + (self.apart - 1) * self.p) if self.warm else 0)


class MovedColumns:
    """Columns without negative entries and with at most b bands: in units of 2^−60, rounded up, times a factor.

    Larger entries have a larger δ on both sides (Lemma C, row by row).
    """

    def __init__(self, entries: Sequence[Sequence[Fraction]], square: Fraction, apart: int, also: Fraction) -> None:
        """Take the columns of all rounds, or one for all; 1/σ²; b; and what a participation moves in other releases, squared."""
        if any(entry < 0 for each in entries for entry in each) or max(map(len, entries)) > apart:
            raise refused("sampling with a matrix that has negative entries, or more bands than the separation")
        self.columns = [[math.ceil(entry * (1 << 60)) for entry in each] for each in entries]
        self.square, self.also, self.apart, first = square / (1 << 120), also, apart, self.columns[0]
        #: The inner products of the first k rows of two equal columns, by their distance.
        self.sums = [list(accumulate(map(mul, first, first[k:]), initial=0)) for k in range(len(first))]

    def largest(self) -> Fraction:
        """Return the largest norm of a column, squared, in units of the noise."""
        return Fraction(max(sum(map(mul, each, each)) for each in self.columns)) * self.square + self.also

    def products(self, i: int, rounds: int) -> list[Fraction]:
        """Return r_i(k) for k = 0..b − 1: only rounds of the run count, and only columns from 1 on."""
        left, found = rounds - i + 1, list[int]()
        if len(self.columns) == 1:
            found = [each[min(left, len(each) - 1)] for each in self.sums[:i]]
        else:
            here = self.columns[i - 1][:left]
            found = [sum(map(mul, here, self.columns[i - k - 1][k:])) for k in range(min(i, self.apart))]
        found += [0] * (self.apart - len(found))
        return [found[0] * self.square + self.also, *(each * self.square for each in found[1:])]


def columns_of(matrix: FormPart, rounds: int, square: Fraction, apart: int, also: Fraction) -> MovedColumns:
    """Return the columns of a Toeplitz matrix, or of one whose entries lie beside the form (`entries`, by columns)."""
    if "entries" in matrix:
        if len(matrix["entries"]) != rounds:
            raise refused("a matrix with more columns than rounds, or fewer")
        return MovedColumns(matrix["entries"], square, apart, also)
    entries, norm = column(matrix, rounds)
    return MovedColumns([entries], square / norm, apart, also)


class Chain:
    """The recursion for m replicas, rounded up or down."""

    def __init__(self, law: Renewals, columns: MovedColumns, m: int, *, up: bool, bits: int) -> None:
        """List the states, multisets of ages with a free replica, which is left out, and where each leads if j replicas join."""
        self.law, self.columns, self.m, self.up, self.bits, self.one = law, columns, m, up, bits, 1 << bits
        b, self.unit = law.apart, int(up) * ((1 << bits) - 1)
        self.states = list(combinations_with_replacement(range(1, b + 1), m - 1))
        self.position = {state: i for i, state in enumerate(self.states)}
        self.moves = [[self._next(state, j) for j in range(state.count(b) + 2)] for state in self.states]

    def _next(self, state: tuple[int, ...], j: int) -> tuple[int, int]:
        """Return after how many rounds a replica is free again, less one, and the state then."""
        b = self.law.apart
        ages = sorted([1] * j + [a + 1 for a in state if a < b] + [b] * (state.count(b) + 1 - j))
        older = b - ages[-1]
        return older, self.position[tuple(a + older for a in ages[:-1])]

    def _weigh(self, products: Sequence[Fraction]) -> None:
        """Set the weights Bin(j; F, p)·e^(j(j−1)r(0)/2 + jh) of all moves; the first two factors are rounded together."""
        bits, unit, p = self.bits, self.unit, self.law.p

        def grown(exponent: Fraction) -> int:
            return exp(rounded(exponent, bits, up=self.up), bits) + (1 if self.up else -1)

        def alone(free: int, j: int) -> int:
            chance = math.comb(free, j) * p**j * (1 - p) ** (free - j)
            return rounded(chance * grown(Fraction(j * (j - 1), 2) * products[0]) / self.one, bits, up=self.up)

        def times(a: int, b: int) -> int:
            return a * b + unit >> bits

        factors = [grown(each) if each else self.one for each in products] + [self.one]
        chances = [[alone(free, j) for j in range(free + 1)] for free in range(self.m + 1)]
        self.weights = []
        for state, moves in zip(self.states, self.moves, strict=True):
            height = reduce(times, (factors[age] for age in state), self.one)
            heights = accumulate(repeat(height, len(moves) - 1), times, initial=self.one)
            self.weights.append(list(map(times, chances[len(moves) - 1], heights)))

    def _step(self, later: Sequence[Sequence[int]]) -> list[int]:
        """Return the table of the round before, from those of the next b rounds."""
        unit, bits = self.unit, self.bits
        return [
            sum([weight * later[older][at] for weight, (older, at) in zip(weights, moves, strict=True)]) + unit >> bits
            for weights, moves in zip(self.weights, self.moves, strict=True)
        ]

    def _start(self, later: Sequence[Sequence[int]]) -> Fraction:
        """Return Σ start(s)·β_1(s); states without a free replica are those of round 1 + k that are k rounds older."""
        b, p, m = self.law.apart, self.law.p, self.m
        if not self.law.warm:
            return Fraction(later[0][self.position[(b,) * (m - 1)]], self.one)
        total = Fraction(0)
        for at, state in enumerate(self.states):
            ways = math.factorial(m) // math.prod(map(math.factorial, Counter((*state, b)).values()))
            unready = sum(later[k][at] for k in range(1, min(state, default=b)))
            total += ways * (p ** (m - 1 - state.count(b)) * later[0][at] + p**m * unready)
        return total / (1 + (b - 1) * p) ** m / self.one

    def moment(self, seconds: float) -> Fraction | None:
        """Return a bound of Z_m; None if there is none after about `seconds` of processor time.

        λ^K stands for K rounds with whole columns, once the tables of b rounds have been raised by about one factor, or time is
        up. The step before had whole columns, and those after it have them down to round b, or 1 in a cold start.
        """
        began, law, i, known = time.process_time(), self.law, self.law.rounds, list[Fraction]()
        later = deque([[self.one] * len(self.states)] * (law.apart + 1), law.apart + 1)
        growth, times, last = self.one, 0, law.apart - 1 if law.warm else 0
        while i > 0:
            products = self.columns.products(i, law.rounds)
            if products != known:
                self._weigh(products)
            known = products
            later.appendleft(self._step(later))
            i -= 1
            late = time.process_time() - began > seconds
            if len(self.columns.columns) == 1 and last < i < law.rounds - law.apart:
                if late or i % max(1, law.apart // 4) == 0:
                    growth, spread = self._growth(later)
                    if late or i * spread < NEAR:
                        times, i = i - last, last
            elif late and len(self.columns.columns) > 1:
                return None
        if times * abs(growth / self.one - 1) > 5000:
            return None
        total = self.one
        for bit in bin(times)[2:]:
            total = (total * total >> self.bits) + self.up
            total = (total * growth >> self.bits) + self.up if bit == "1" else total
        return Fraction(rounded(self._start(later) * total, self.bits, up=self.up), self.one**2)

    def _growth(self, later: Sequence[Sequence[int]]) -> tuple[int, float]:
        """Return λ with β_i ≤ λ·β_(i+1), or ≥, over the last b rounds, and how far the last factors are from one, in doubles."""
        ratios = [x / y for x, y in zip(later[0], later[1], strict=True)]
        every = zip(chain.from_iterable(later), chain.from_iterable(list(later)[1:]), strict=False)
        factors = (-((-x << self.bits) // y) if self.up else (x << self.bits) // y for x, y in every)
        return max(factors) if self.up else min(factors), math.log(max(ratios) / min(ratios))


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

    def __init__(self, law: Renewals, columns: MovedColumns) -> None:
        """Take the participations and the columns. At most ⌈n/b⌉ orthogonal columns are moved."""
        super().__init__(-(-law.rounds // law.apart) * columns.largest())
        self.law, self.columns = law, columns
        self._known: dict[tuple[int, bool], Fraction | None] = {}

    def moment(self, m: int, seconds: float, *, above: bool = True) -> Fraction | None:
        """Return a bound of Z_m, or None if that takes too long."""
        if m < 2:
            return Fraction(1)  # f has mean 1
        if (m, above) not in self._known:
            states, large = math.comb(self.law.apart + m - 2, m - 1), m * (m - 1) // 2 * self.columns.largest() > 500
            fits = (
                not large and states * (self.law.apart + 1) <= MOST_NUMBERS and states * self.law.apart * 1e-6 < seconds
            )
            bits = BITS + MORE * bool(self.polynomial)
            self._known[m, above] = (
                Chain(self.law, self.columns, m, up=above, bits=bits).moment(seconds) if fits else None
            )
        return self._known[m, above]

    def removed(self, coefficients: Sequence[Fraction], epsilon: Fraction, seconds: float) -> Fraction | None:
        """Return Σ a_k·e^((1−k)ε)·Z_k, for a polynomial that is above (x − 1)₊; None if a moment takes too long."""
        total = Fraction(0)
        for k, coefficient in enumerate(coefficients):
            moment = self.moment(k, seconds, above=coefficient > 0) if coefficient else Fraction(0)
            if moment is None:
                return None
            factor = exp_above((1 - k) * epsilon)
            total += coefficient * moment * (factor if coefficient > 0 else factor - Fraction(4, 1 << 320))
        return max(total, Fraction(0))

    def delta(self, epsilon: Fraction, target: Fraction, seconds: float, log: Callable[[str], None]) -> Fraction:
        """Return a bound of δ(ε), by the witness and by moments of growing order until it is near the target or gets worse."""
        never, until, found = self.law.never(), time.process_time() + seconds, Fraction(1)
        if never is None or epsilon < never:
            return found
        if self.polynomial and is_above(self.polynomial):
            found = min(found, self.removed(self.polynomial, epsilon, seconds) or found)
            log(f"a polynomial of degree {len(self.polynomial) - 1}: δ {float(found):.6g}")
        before, m = Fraction(2), 2
        while found > target * (1 + ENOUGH):
            least = Fraction((m - 1) ** (m - 1), m**m)
            one = self.removed([*[Fraction(0)] * m, least], epsilon, until - time.process_time())
            if one is None or one > before:
                break
            log(f"E f^{m}: δ {float(min(one, Fraction(1))):.6g}")
            found, before, m = min(found, one), one, m + 1
        return found
