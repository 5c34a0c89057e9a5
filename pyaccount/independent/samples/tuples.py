"""Tuples of replicas, drawn from a power of the likelihood ratio (sections 10.1 and 10.5; docs/replicas.md, theorems 1 to 3).

Replicas are m independent patterns x^1, …, x^m. Z_m = Σ Π_r w_(x^r)·e^(Σ_(r<s) ⟨Cx^r, Cx^s⟩) is E_R f^m. Given the ages of
the replicas (the rounds since each took part, for those that wait), what follows does not depend on how they came about. So
β_i(ages) = Σ_j Bin(j; F, p)·e^(j(j − 1)·r_i(0)/2 + j·h)·β_(i+1)(next ages), h = Σ_ages r_i(age), F the number of free
replicas, r_i(k) = ⟨c_i, c_(i−k)⟩ (0 for i ≤ k), β_(n+1) = 1. While nobody is free, ages grow by 1: only states with a free
replica have tables.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from itertools import accumulate, combinations_with_replacement
from typing import TYPE_CHECKING

from ..enclosures import exp, up
from .normals import below
from .process import PLACES, Bytes, Pattern
from .wide import logarithm

if TYPE_CHECKING:
    from .spaced import SpacedRun

#: β is counted in units of 2^−48, and chances and weights in units of 2^−64.
UNIT, _BITS, _FINE = 1 << 48, 48, 64
_Ages = tuple[int, ...]


def states(apart: int, replicas: int) -> int:
    """Return the number of states with a free replica."""
    return math.comb(apart + replicas - 2, replicas - 1)


class SpacedTuples:
    """The tables β of m replicas for all rounds, rounded up, and tuples drawn with them."""

    def __init__(self, setting: SpacedRun, replicas: int) -> None:
        """Build the tables: `rounds` times `states` integers."""
        self.setting, self.replicas, self.columns, self.unit = setting, replicas, setting.columns, UNIT
        self._ages: list[_Ages] = [
            ages for busy in range(replicas) for ages in combinations_with_replacement(range(1, setting.apart), busy)
        ]
        self._index = {ages: k for k, ages in enumerate(self._ages)}
        p, top = setting.probability, range(replicas + 1)
        self._chances = [
            [up(math.comb(free, j) * p**j * (1 - p) ** (free - j), _FINE) for j in range(free + 1)] for free in top
        ]
        self._moves = [[self._next(ages, j) for j in range(replicas - len(ages) + 1)] for ages in self._ages]
        bands, n = len(self.columns), setting.rounds
        self._products = [
            list(accumulate(self.columns[j] * self.columns[j + k] for j in range(bands - k))) for k in range(bands)
        ]
        self._factors: dict[tuple[int, int], int] = {}
        self._usual = self._weights(setting.apart) if n >= setting.apart + bands - 1 else []
        self._by_round = [self._usual, *(self._weights_of(i) for i in range(1, n + 1))]
        self.tables: list[list[int]] = [[UNIT] * len(self._ages)] * (n + setting.apart + 2)
        for i in range(n, 0, -1):
            self.tables[i] = [sum(self._terms(i, k, weights)) for k, weights in enumerate(self._by_round[i])]
        self._begin()

    def _next(self, ages: _Ages, joining: int) -> tuple[int, int]:
        """Return after how many rounds a replica is free again, and the state then."""
        b = self.setting.apart
        moved = (1,) * joining + tuple(age + 1 for age in ages if age + 1 < b)
        if b == 1:
            moved = ()
        delay = b - max(moved) if len(moved) == self.replicas else 0
        return 1 + delay, self._index[tuple(sorted(age + delay for age in moved if age + delay < b))]

    def _factor(self, k: int, rows: int) -> int:
        """Return e^⟨c_i, c_(i−k)⟩ over the first `rows` rows of column i, rounded up."""
        if (k, rows) not in self._factors:
            product = self._products[k][rows - 1] if rows > 0 else 0
            self._factors[k, rows] = exp((product >> 2 * PLACES - _FINE) + 1, _FINE) + 1
        return self._factors[k, rows]

    def _weights(self, i: int) -> list[list[int]]:
        """Return Bin(j; F, p)·e^(j(j − 1)·r_i(0)/2 + j·h), rounded up, for each state and j."""
        bands, left = len(self.columns), self.setting.rounds - i + 1
        factors = [self._factor(k, min(bands - k, left)) for k in range(bands)]
        found = []
        for ages in self._ages:
            free, h = self.replicas - len(ages), 1 << _FINE
            for age in ages:
                if age < min(i, bands):
                    h = -(-h * factors[age] >> _FINE)
            # With j joining, one more has the factor e^h for those that wait, and e^r(0) for each of the j.
            weight, together, row = 1 << _FINE, h, []
            for chance in self._chances[free]:
                row.append(-(-weight * chance >> _FINE))
                weight, together = -(-weight * together >> _FINE), -(-together * factors[0] >> _FINE)
            found.append(row)
        return found

    def _weights_of(self, i: int) -> list[list[int]]:
        if self._usual and self.setting.apart <= i <= self.setting.rounds - len(self.columns) + 1:
            return self._usual
        return self._weights(i)

    def _terms(self, i: int, state: int, weights: list[int]) -> list[int]:
        """Return the terms of β_i(state), each rounded up to a whole number."""
        tables = self.tables
        return [
            -(-weight * tables[i + delay][after] >> _FINE)
            for weight, (delay, after) in zip(weights, self._moves[state], strict=True)
        ]

    def _begin(self) -> None:
        """Prepare the states of the first round, with their chances times β; `total` is their sum, an upper bound of Z_m."""
        b, m, p = self.setting.apart, self.replicas, self.setting.probability
        free = 1 / (1 + (b - 1) * p) if self.setting.warm else Fraction(1)
        self._starts, weights = [], []
        for busy in range(m + 1 if self.setting.warm else 1):
            chance = free ** (m - busy) * (free * p) ** busy * math.factorial(m) / math.factorial(m - busy)
            known: dict[int, int] = {}
            for ages in combinations_with_replacement(range(1, b), busy):
                same = math.prod(map(math.factorial, Counter(ages).values()))
                if same not in known:
                    known[same] = up(chance / same, _FINE)
                delay = b - max(ages) if busy == m else 0
                state = self._index[tuple(age + delay for age in ages if age + delay < b)]
                self._starts.append((1 + delay, state))
                weights.append(-(-known[same] * self.tables[1 + delay][state] >> _FINE))
        self._sums = list(accumulate(weights))
        self.total = self._sums[-1]

    def log_moment(self) -> Fraction:
        """Return a lower bound of ln Z_m.

        Z_m is a sum over tuples of products of at most n + 1 weights. A weight is a chance times at most 4(m + 2)² factors
        that are 1 or more, each rounded up by a few units of 2^−64, so that its relative error is at most 4(m + 2)²·2^−62
        over the chance. Each of at most m + 1 terms of β ≥ 1 is made whole, which adds at most 2^−48 of β. The error of the
        logarithm is at most the sum of these.
        """
        m, p = self.replicas, self.setting.probability
        least: Fraction = (min(p, 1 - p) / (1 + (self.setting.apart - 1) * p)) ** m
        error = (self.setting.rounds + 1) * (Fraction(4 * (m + 2) ** 2, 1 << _FINE - 2) / least + Fraction(m + 1, UNIT))
        return logarithm(Fraction(self.total, UNIT)) - error

    def draw(self, random_bytes: Bytes) -> Pattern | None:
        """Return the rounds with participations, and how many: a tuple x with ρ(x) ≤ total. None if further bits would decide.

        *Proof* (theorem 3). In state s of round i a move has the probability t/β_i(s), where t is its term and β_i(s) is
        their sum, all whole numbers. t is at least its exact weight times β of the state that follows, and the chance of a
        start times β is at most its term. So the product of exact weights over the product of probabilities is at most Π
        β_i/β_next, which is total/UNIT, as all others cancel and β = UNIT at the end. A 64-bit number u stands for the real
        numbers from u to u + 1 in units of 2^−64: if these lie in different moves, None.
        """
        i, state = self._starts[bisect_right(self._sums, below(self.total, random_bytes))]
        found, n, tables, weights, moves = [], self.setting.rounds, self.tables, self._by_round, self._moves
        words = memoryview(random_bytes(8 * n + 8)).cast("Q")
        while i <= n:
            whole, chances, after = tables[i][state], weights[i][state], moves[state]
            at, passed = words[i] * whole, 0
            for joining, weight in enumerate(chances):
                delay, there = after[joining]
                passed += -(-weight * tables[i + delay][there] >> _FINE) << 64
                if at + whole <= passed:
                    break
                if at < passed:
                    return None
            if joining:
                found.append((i, joining))
            i, state = i + delay, there
        return found
