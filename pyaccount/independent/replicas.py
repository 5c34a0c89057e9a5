"""Moments of the likelihood ratio f of correlated noise under b-min-sep sampling, in integers.

f^m has one factor for each of m *replicas*, which are independent copies of a record's participations x. With r_i(k) the inner
product of columns i and i − k, in units of the noise,

    Z_m = E f^m = Σ Π_r w_(x^r)·e^(Σ_(r<s) ⟨Cx^r, Cx^s⟩)                                              (section 10.1).

The *age* of a replica in round i is the number of rounds since it took part, and b if that is b or more: then it is *free*, and
takes part with probability p. MovedColumns have no negative entries and at most b bands, so that ⟨c_i, c_(i−k)⟩ ≥ 0, and = 0 for
k ≥ b. With F replicas free, and h the sum of r_i(a) over the ages a of the busy ones,

    β_i(s) = Σ_(j ≤ F) Bin(j; F, p)·e^(j(j−1)·r_i(0)/2 + j·h)·β_(i+1)(s′),  β_(n+1) = 1,  Z_m = Σ_s start(s)·β_1(s),

where j replicas have age 1 in s′, and the others are a round older. **Fewer states**: if no replica is free, all of them become
older until one is, after k rounds, so β_i(s) = β_(i+k)(s, k rounds older). So a table has only the states with a free replica,
C(b+m−2, m−1) of them, and the tables of the last b rounds are kept.

**Arithmetic.** Values are integers in units of 2^−56, or less. All terms are positive, so they are bounded from above if every
weight and every value is rounded up, and from below if down.

**Equal rounds.** Let B_i ≥ T·B_(i+1) be tables, and B_i ≤ λ·B_(i+1) for every state, T the step of round i and of K rounds before
it. T is linear and monotone, so T·B_i ≤ λ·T·B_(i+1) ≤ λ·B_i: λ^K·B_i is a table K rounds earlier. For states without a free
replica the inequality is that of later rounds, so it is checked for the last b of them. This holds at any time; the later, the
less is λ^K above the exact table. If time is short, columns are taken as whole near the ends of the run too: their r are larger.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import accumulate, chain, combinations_with_replacement, repeat
from math import comb, factorial, prod
from operator import add, mul
from typing import NamedTuple

from .enclosures import exp
from .shapes import refused

#: Bits of values and weights, unless more are asked for.
BITS = 56
#: Tables with more numbers than this (of 44 bytes each) are not begun.
MOST_NUMBERS = 20_000_000
#: By how much λ^K may be above the exact table while there is time: in runs that are not computed whole, and in long ones.
NEAR, NEAR_IN_LONG_RUNS = 1e-12, 2e-4


def rounded(x: Fraction, bits: int, *, up: bool) -> int:
    """Return a number in units of 2^−bits, rounded up or down."""
    return -((-x.numerator << bits) // x.denominator) if up else (x.numerator << bits) // x.denominator


def logarithm(x: Fraction) -> float:
    """Return ln x in doubles, also where x is none."""
    return math.log(x.numerator) - math.log(x.denominator)


class Renewals(NamedTuple):
    """Participations of a record: whenever it is free it joins with probability p, and then waits for `apart` − 1 rounds.

    A warm start is the stationary law: each age below b has probability p/(1 + (b−1)p). In a cold start the record is free.
    """

    rounds: int
    apart: int
    p: Fraction
    warm: bool


class MovedColumns:
    """Columns of a matrix without negative entries: entry t of column i is what a participation in round i moves in round i + t.

    Entries are multiples of 2^−60, rounded up: larger entries have a larger δ in both directions (sections 1 and 4).
    """

    def __init__(
        self, columns: Sequence[Sequence[Fraction]], square: Fraction, apart: int, also: Fraction = Fraction(0)
    ) -> None:
        """Take the columns of rounds 1, 2, …, of which the last is that of all further rounds; 1/σ²; the separation b; and what a
        participation moves in other releases, squared, in units of their noise. Raise if columns may overlap.
        """
        self.columns = [[math.ceil(entry * (1 << 60)) for entry in column] for column in columns]
        self.square, self.apart, self.also = square / (1 << 120), apart, also
        if any(entry < 0 for column in columns for entry in column):
            raise refused("sampling with a matrix that has negative entries")
        if max(map(len, columns)) > apart:
            raise refused("sampling with more bands than the separation")

    def of(self, i: int) -> list[int]:
        """Return column i."""
        return self.columns[min(i, len(self.columns)) - 1]

    def norm(self, column: Sequence[int]) -> Fraction:
        """Return what a participation moves, squared, in units of the noise."""
        return sum(each * each for each in column) * self.square + self.also

    def equal(self, law: Renewals) -> tuple[int, int]:
        """Return the first and last of the rounds whose products are equal; nothing is known here."""
        return law.rounds + 1, law.rounds

    def products(self, i: int, law: Renewals, *, whole: bool) -> list[Fraction]:
        """Return r_i(k) for k = 0..b − 1; only rounds of the run count, and only columns from 1 on."""
        here = self.of(i)[: law.rounds - i + 1]
        later = (
            sum(map(mul, here, self.of(i - k)[k:])) * self.square if k < i else Fraction(0)
            for k in range(1, self.apart)
        )
        return [self.norm(here), *later]


class EqualColumns(MovedColumns):
    """Columns that are equal: r_i(k) depends on how many rounds are left."""

    def __init__(
        self, coefficients: Sequence[Fraction], square: Fraction, apart: int, also: Fraction = Fraction(0)
    ) -> None:
        """Take the coefficients; the rest as for any columns."""
        super().__init__([coefficients], square, apart, also)
        first, self.bands = self.columns[0], len(coefficients)
        self.sums = [[0, *accumulate(map(mul, first, first[k:]))] for k in range(self.bands)]

    def equal(self, law: Renewals) -> tuple[int, int]:
        """Return the rounds with whole columns, before which there are b − 1 rounds, if a replica may be older than the run."""
        return law.apart if law.warm else 1, law.rounds - self.bands + 1

    def products(self, i: int, law: Renewals, *, whole: bool) -> list[Fraction]:
        """Return r_i(k), or what it is at most, with whole columns and columns before the first."""
        left = self.bands if whole else min(law.rounds - i + 1, self.bands)
        known = self.bands if whole or not law.warm else min(i, self.bands)
        found = [each[min(left, len(each) - 1)] * self.square for each in self.sums[:known]]
        return [found[0] + self.also, *found[1:], *[Fraction(0)] * (self.apart - known)]


class Multisets:
    """The multisets of m ages of which at least one is b, and how they move; one of the ages b is left out of a state."""

    def __init__(self, apart: int, replicas: int) -> None:
        """Order the states by the number F of free replicas, then by the oldest busy one, so that moves are in few pieces."""
        b, self.replicas = apart, replicas
        states = combinations_with_replacement(range(1, b + 1), replicas - 1)
        self.states = sorted(states, key=lambda s: (s.count(b), max((a for a in s if a < b), default=0), s))
        self.position = {state: i for i, state in enumerate(self.states)}
        self.busy = [[a for a in state if a < b] for state in self.states]
        #: For each F: the slice of its states, and for each j the pieces (rounds later, positions of the next states).
        self.strata: list[tuple[int, slice, list[list[tuple[int, list[int]]]]]] = []
        first = 0
        for free in range(1, replicas + 1):
            last = first + sum(1 for state in self.states[first:] if state.count(b) == free - 1)
            here = slice(first, last)
            moves = [self._pieces(self.busy[here], free, j, b) for j in range(free + 1)]
            self.strata.append((free, here, moves))
            first = last

    def _pieces(self, states: Sequence[Sequence[int]], free: int, j: int, b: int) -> list[tuple[int, list[int]]]:
        pieces: list[tuple[int, list[int]]] = []
        for busy in states:
            ages = sorted([1] * j + [a + 1 for a in busy] + [b] * (free - j))
            older = b - ages[-1]
            target = self.position[tuple(a + older for a in ages[:-1])]
            if not pieces or pieces[-1][0] != 1 + older:
                pieces.append((1 + older, []))
            pieces[-1][1].append(target)
        return pieces


class Moment(NamedTuple):
    """A bound of Z_m from above or from below, and λ and K."""

    value: Fraction
    growth: float
    repeated: int


class ReplicaRecursion:
    """The recursion for m replicas, rounded up or down."""

    def __init__(
        self, law: Renewals, columns: MovedColumns, replicas: int, *, up: bool = True, bits: int = BITS
    ) -> None:
        """Take the law of participations, the columns in units of the noise, m ≥ 1, and the precision of values."""
        self.bits, self.one = bits, 1 << bits
        self.law, self.columns, self.m, self.up, self.extra = law, columns, replicas, up, int(up)
        self.sets = Multisets(law.apart, replicas)
        self.weights: list[list[Iterable[int]]] = []

    def states(self) -> int:
        """Return the number of states of a table."""
        return len(self.sets.states)

    def _weigh(self, products: Sequence[Fraction]) -> None:
        """Set the weights Bin(j; F, p)·e^(j(j−1)r(0)/2 + jh) of all moves."""
        unit = self.extra * (self.one - 1)

        def grown(exponent: Fraction) -> int:
            return exp(rounded(exponent, self.bits, up=self.up), self.bits) + (1 if self.up else -1)

        factors = [grown(each) if each else self.one for each in products]
        self.weights = []
        for free, here, moves in self.sets.strata:
            heights = [self.one] * (here.stop - here.start)
            for ages in zip(*self.sets.busy[here], strict=True):
                heights = [height * factors[age] + unit >> self.bits for height, age in zip(heights, ages, strict=True)]
            weights, power = list[Iterable[int]](), [self.one] * len(heights)
            for j in range(len(moves)):
                chance = comb(free, j) * self.law.p**j * (1 - self.law.p) ** (free - j)
                # Rounded once, with r(0), so that a small chance of a large factor keeps its digits.
                times = rounded(
                    chance * Fraction(grown(Fraction(j * (j - 1), 2) * products[0]), self.one), self.bits, up=self.up
                )
                if j:
                    power = (
                        heights if j == 1 else [a * b + unit >> self.bits for a, b in zip(power, heights, strict=True)]
                    )
                weights.append([times * each + unit >> self.bits for each in power] if j else repeat(times))
            self.weights.append(weights)

    def _step(self, later: Sequence[Sequence[int]]) -> list[int]:
        """Return the table of the round before, from those of the next b rounds."""
        table: list[int] = []
        for (_, _, moves), weights in zip(self.sets.strata, self.weights, strict=True):
            terms = [
                map(mul, weight, chain.from_iterable(map(later[d - 1].__getitem__, at) for d, at in pieces))
                for pieces, weight in zip(moves, weights, strict=True)
            ]
            table += [(each >> self.bits) + self.extra for each in reduce(lambda a, b: map(add, a, b), terms)]
        return table

    def _growth(self, later: Sequence[Sequence[int]]) -> int:
        """Return λ with B_i ≤ λ·B_(i+1), or ≥, for the last b rounds."""
        every = zip(chain.from_iterable(later), chain.from_iterable(list(later)[1:]), strict=False)
        return (
            max(-((-x << self.bits) // y) for x, y in every)
            if self.up
            else min((x << self.bits) // y for x, y in every)
        )

    def moment(self, seconds: float = math.inf, goal: Fraction | None = None) -> Moment | None:
        """Return a bound of Z_m; None if there is none after about `seconds` of processor time.

        With a `goal`, a long run is first tried with whole columns everywhere, until a bound from above is at most that.
        """
        began, law = time.process_time(), self.law
        low, high = self.columns.equal(law)
        self._weigh(self.columns.products(high, law, whole=True))
        self._step([[self.one] * self.states()] * (law.apart + 1))
        cost, found = time.process_time() - began, None
        if goal is not None and self.up and high - low > 4 * law.apart:
            found = self._run((1, law.rounds), seconds, 0.0, goal)
            if found is not None and found.value <= goal:
                return found
            seconds -= time.process_time() - began
        exact = not self.up or low > high or (law.rounds - high + low + law.apart) * cost < seconds
        return self._run((low, high) if exact else (1, law.rounds), seconds, cost, None) or found

    def _run(self, equal: tuple[int, int], seconds: float, cost: float, goal: Fraction | None) -> Moment | None:
        """Return the bound with whole columns in the rounds that count as equal, and exact ones in the others.

        `cost` is the time of a round. With a goal: None as soon as the goal is out of reach.
        """
        began, law, (low, high) = time.process_time(), self.law, equal
        later = deque([[self.one] * self.states()] * (law.apart + 1), law.apart + 1)
        near = (
            0.0 if law.rounds * cost < seconds / 20 else NEAR if law.rounds * cost < seconds / 4 else NEAR_IN_LONG_RUNS
        )
        i, weighed, growth, repeated = law.rounds, False, self.one, 0
        while i > 0:
            whole = low <= i <= high
            if not (whole and weighed):
                self._weigh(self.columns.products(i, law, whole=whole and equal == (1, law.rounds)))
            weighed = whole
            later.appendleft(self._step(later))
            late = time.process_time() - began > seconds - (low - 1) * cost
            if whole and i > low and (late or (high - i) % law.apart % max(1, law.apart // 4) == 0):
                least, most = self._ratios(later)
                done = late or (i + law.apart <= law.rounds and (i - low) * (most - least) < near)
                if goal is not None and i + law.apart <= law.rounds and not done:
                    here, wanted = logarithm(Fraction(later[0][-1], self.one)), logarithm(goal)
                    if here + (i - low) * least > wanted:
                        return None
                    done = here + (i - low) * most < wanted
                if done:
                    growth, repeated, i = self._growth(later), i - low, low
            elif late and (i > low or low > high):
                return None
            i -= 1
        if repeated * abs(growth / self.one - 1) > 5000:
            return None
        value = self._start(later) * self._power(growth, repeated)
        return Moment(Fraction(rounded(value, self.bits, up=self.up), self.one), growth / self.one, repeated)

    def _ratios(self, later: Sequence[Sequence[int]]) -> tuple[float, float]:
        """Return the logarithms of the least and largest ratio of the earliest two tables that are kept, in doubles."""
        ratios = [x / y for x, y in zip(later[-2], later[-1], strict=True)]
        return math.log(min(ratios)), math.log(max(ratios))

    def _power(self, growth: int, times: int) -> Fraction:
        """Return λ^K: each product is rounded."""
        total = self.one
        while times:
            if times % 2:
                total = (total * growth >> self.bits) + self.extra
            growth, times = (growth * growth >> self.bits) + self.extra, times // 2
        return Fraction(total, self.one)

    def _start(self, later: Sequence[Sequence[int]]) -> Fraction:
        """Return Σ start(s)·β_1(s); states without a free replica are those of round 1 + k that are k rounds older."""
        law, m = self.law, self.m
        if not law.warm:
            return Fraction(later[0][self.sets.position[(law.apart,) * (m - 1)]], self.one)
        ways = [
            factorial(m) // prod(map(factorial, Counter((*state, law.apart)).values())) for state in self.sets.states
        ]
        total = sum(
            (law.p ** (m - free) * sum(map(mul, ways[here], later[0][here])) for free, here, _ in self.sets.strata),
            Fraction(0),
        )
        youngest = [min(state, default=law.apart) for state in self.sets.states]
        order = sorted(range(len(youngest)), key=lambda at: -youngest[at])
        for k in range(1, law.apart):
            while order and youngest[order[-1]] <= k:
                order.pop()
            total += law.p**m * sum(ways[at] * later[k][at] for at in order)
        return total / (1 + (law.apart - 1) * law.p) ** m / self.one
