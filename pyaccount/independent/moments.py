"""Correlated noise with b-min-sep sampling: moments of the likelihood ratio f of a run, in integers.

**A moment is a recursion.** f^m has a factor for each of m *replicas*, independent copies of a record's participations x. With
r_i(k) the inner product of the columns i and i − k, in units of the noise, Z_m = E_Q f^m = Σ Π_r w_(x^r)·e^(Σ_(r<s) ⟨Cx^r,
Cx^s⟩). The *age* of a replica in round i is the number of rounds since it took part, and b if that is b or more: then it is
*free*, and takes part with probability p. Columns have no negative entries and at most b bands (checked), so that ⟨c_i, c_(i−k)⟩
is ≥ 0, and 0 for k ≥ b. With F replicas free, and h the sum of r_i(a) over the ages a of the busy ones,

    β_i(s) = Σ_(j ≤ F) Bin(j; F, p)·e^(j(j−1)·r_i(0)/2 + j·h)·β_(i+1)(s′),  β_(n+1) = 1,  Z_m = Σ_s start(s)·β_1(s),

where j replicas have age 1 in s′ and the others are a round older, up to b.

**A table is a witness.** Let v be any positive table, T the step of a round, and T·v ≤ λ·v. T is linear with positive weights,
so that T^K·v ≤ λ^K·v. Here v is β itself after some rounds, and all K rounds have the whole columns of T. One step function makes
tables and proves with them: every weight and value is rounded up.

**From moments to δ.** *Side 0*: (x − 1)/x^m is largest at x = m/(m − 1), so that (x − 1)₊ ≤ (m − 1)^(m − 1)/m^m·x^m. With
x = f·e^(−ε), δ = E_Q(f − e^ε)₊ ≤ (m − 1)^(m − 1)/m^m·e^((1−m)ε)·Z_m. *Side 1*: f ≥ w_∅, the probability of never taking part.
That is (1 − p)^n or more, as a record is free in at most n rounds, so that δ = E(1 − e^ε·f)₊ = 0 for ε ≥ −n·ln(1 − p).
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache, reduce
from itertools import accumulate, combinations_with_replacement, repeat
from operator import mul
from typing import Any, NamedTuple

from .enclosures import exp, exp_above, ln_above, up
from .form import refused
from .lattice import repeated
from .laws import Round

#: Bits of tables.
BITS = 56
#: λ is used where the factors of all entries are this near.
NEAR = 1e-11


class Renewals(NamedTuple):
    """n rounds in which a record joins with probability p whenever it is free, and then waits for b − 1 rounds.

    A warm start is the stationary law: each age below b has probability p/(1 + (b−1)p). In a cold start the record is free.
    """

    rounds: int
    apart: int
    p: Fraction
    warm: bool

    def may_be_absent(self, epsilon: Fraction) -> bool:
        """Return whether w_∅ ≥ e^−ε is proven."""
        return self.p < 1 and self.rounds * ln_above(1 / (1 - self.p)) <= epsilon


class MovedColumns:
    """The columns of a Toeplitz matrix without negative entries and with at most b bands, in units of 2^−60, rounded up.

    Larger entries have a larger δ on both sides (Lemma C, row by row).
    """

    def __init__(self, entries: Sequence[Fraction], square: Fraction, apart: int, also: Fraction) -> None:
        """Take the first column; 1/σ²; b; and what a participation moves in other releases, squared."""
        if min(entries) < 0 or len(entries) > apart:
            raise refused("sampling with a matrix that has negative entries, or more bands than the separation")
        self.column = [math.ceil(entry * (1 << 60)) for entry in entries]
        self.square, self.also = square / (1 << 120), also

    @cache  # noqa: B019 - columns live as long as their proof
    def products(self, count: int, left: int) -> Sequence[Fraction]:
        """Return r(k) for k < count, of columns that are cut off after `left` entries."""
        found = [sum(map(mul, self.column[:left], self.column[k:])) for k in range(count)]
        return [found[0] * self.square + self.also, *(each * self.square for each in found[1:])]

    def largest(self) -> Fraction:
        """Return the largest norm of a column, squared, in units of the noise."""
        return self.products(1, len(self.column))[0]


class Chain:
    """The recursion for m replicas."""

    one = 1 << BITS

    def __init__(self, law: Renewals, columns: MovedColumns, m: int) -> None:
        """List the states, which are multisets of ages, and where each leads if j of its free replicas join."""
        self.law, self.columns, self.m = law, columns, m
        self.states = list(combinations_with_replacement(range(1, law.apart + 1), m))
        at = {state: i for i, state in enumerate(self.states)}
        # Ages stand in their order: free replicas are the last ones, and those that joined become the first.
        self.moves = [
            [
                at[(1,) * j + tuple(min(age + 1, law.apart) for age in state[: m - j])]
                for j in range(state.count(law.apart) + 1)
            ]
            for state in self.states
        ]

    @lru_cache(maxsize=1)  # noqa: B019 - most rounds have the same columns
    def _weights(self, count: int, left: int) -> list[list[int]]:
        """Return Bin(j; F, p)·e^(j(j−1)r(0)/2 + jh) for all moves; the first two factors are rounded together."""
        p, b, products = self.law.p, self.law.apart, self.columns.products(count, left)

        def grown(exponent: Fraction) -> int:
            return exp(up(exponent, BITS), BITS) + 1 if exponent else self.one

        def times(a: int, b: int) -> int:
            return -(-a * b >> BITS)

        both = [grown(Fraction(j * (j - 1), 2) * products[0]) for j in range(self.m + 1)]
        chances = [
            [math.ceil(math.comb(free, j) * p**j * (1 - p) ** (free - j) * both[j]) for j in range(free + 1)]
            for free in range(self.m + 1)
        ]
        factors, weights = [grown(each) for each in products] + [self.one] * (b + 1 - len(products)), []
        for state, moves in zip(self.states, self.moves, strict=True):
            height = reduce(times, (factors[age] for age in state), self.one) if len(moves) > 1 else self.one
            heights = accumulate(repeat(height, len(moves) - 1), times, initial=self.one)
            weights.append(list(map(times, chances[len(moves) - 1], heights)))
        return weights

    def _step(self, later: Sequence[int], i: int) -> list[int]:
        """Return the table of round i from that of the next one; where no replica is free, the weight is 1."""
        # Only rounds of the run count, and only columns from 1 on.
        weights = self._weights(min(i, self.law.apart), min(self.law.rounds - i + 1, len(self.columns.column)))
        return [
            -(-sum([weight * later[at] for weight, at in zip(each, moves, strict=True)]) >> BITS)
            if len(moves) > 1
            else later[moves[0]]
            for each, moves in zip(weights, self.moves, strict=True)
        ]

    def _start(self, table: Sequence[int]) -> Fraction:
        """Return Σ start(s)·β_1(s)."""
        b, p, m = self.law.apart, self.law.p, self.m
        if not self.law.warm:
            return Fraction(table[-1], self.one)
        total = Fraction(0)
        for state, each in zip(self.states, table, strict=True):
            ways = math.factorial(m) // math.prod(map(math.factorial, Counter(state).values()))
            total += ways * p ** (m - state.count(b)) * each
        return total / (1 + (b - 1) * p) ** m / self.one

    def moment(self, seconds: float) -> Fraction | None:
        """Return a bound of Z_m; None if it is very large. After about `seconds` of processor time it is a looser one.

        λ^K stands for the rounds from b on that are left, and the step that had whole columns and proved λ, once that has raised
        all entries by about one factor, or time is up.
        """
        began, law, i = time.process_time(), self.law, self.law.rounds
        table, growth, times = [self.one] * len(self.states), self.one, 0
        while i > 0:
            before, table = table, self._step(table, i)
            i -= 1
            if law.apart <= i < law.rounds - law.apart:
                ratios = [x / y for x, y in zip(table, before, strict=True)]
                late = time.process_time() - began > seconds
                if late or i * math.log(max(ratios) / min(ratios)) < NEAR:
                    growth = max(-((-x << BITS) // y) for x, y in zip(table, before, strict=True))
                    table, times, i = before, i + 2 - law.apart, law.apart - 1
        if times * abs(growth / self.one - 1) > 5000:
            return None
        power = repeated(growth, times, lambda a, b, _: (a * b >> BITS) + 1) if times else self.one
        return self._start(table) * Fraction(power, self.one)


class SecretRound(Round):
    """A run of which it is known what it moves if participations are public; `sampled` has what a fresh test needs."""

    def __init__(self, square: Fraction, sampled: Any = None) -> None:
        """Take the largest ‖Cx‖², in squared units of the noise: it bounds both sides, by joint convexity."""
        self.square, self.sampled = square, sampled


class Correlated(SecretRound):
    """A run with b-min-sep sampling."""

    def __init__(self, law: Renewals, columns: MovedColumns, sampled: Any = None) -> None:
        """Take the participations and the columns. At most ⌈n/b⌉ orthogonal columns are moved."""
        super().__init__(-(-law.rounds // law.apart) * columns.largest(), sampled)
        self.law, self.columns = law, columns

    def delta(self, m: int, moment: Fraction, epsilon: Fraction) -> Fraction:
        """Return a bound of δ(ε) by that of Z_m; 1 where side 1 is not known."""
        if not self.law.may_be_absent(epsilon):
            return Fraction(1)
        return Fraction((m - 1) ** (m - 1), m**m) * exp_above((1 - m) * epsilon) * moment
