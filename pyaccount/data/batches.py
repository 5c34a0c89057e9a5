"""The sizes of batches of users' records, by formulas and by simulation.

If each record has a single user (`attribution: single`): while a user is available, each of its records is drawn with
probability p. After a round with a draw, all of them are unavailable for b − 1 rounds. This is a renewal process: in
the long run a user with k records is available in a round with probability 1/(1 + (b − 1)(1 − (1 − p)^k)). So the
expected batch is

    Σ_users k p / (1 + (b − 1)(1 − (1 − p)^k)).

If records are shared: in every round each record is drawn with probability p, even if it is unavailable. It joins the
batch unless a record that shares a user with it was drawn in the previous b − 1 rounds (Algorithm 3 of Dong & Ganesh
2026, arXiv:2602.09338). The draws are independent, so from round b on the expected batch is exactly

    Σ_records p (1 − p)^{(b − 1)|N(e)|},

where N(e) is the set of records that share a user with e, including e. As p grows, this rises to a maximum and then
falls: if many records are shared, more draws exclude more records. Both formulas are long-run means, that is, for a
warm start; after a cold start the first rounds are larger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq  # type: ignore[import-untyped]

from pyaccount.data.attribution import AttributionTable, Integers

#: The ratio of consecutive values of p in a search. It is fine enough, because each term of the sums varies over a
#: factor of e.
RATIO = 1.02
#: The number of blocks of rounds, from whose means the standard error is estimated, and the minimum rounds of a block.
BLOCKS, ROUNDS = 32, 32


@dataclass(frozen=True, slots=True)
class BatchLaw:
    """The expected batch as a function of p."""

    #: The different numbers of records of a user (single attribution), or of neighbours of a record (shared).
    values: Integers
    #: How many users or records have each value.
    numbers: Integers
    shared: bool
    #: b, the minimum distance between two participations, in rounds.
    separation: int

    @classmethod
    def of(cls, degrees: Integers, neighbours: Integers, separation: int, *, shared: bool) -> BatchLaw:
        """Create the law from the number of records of each user, and of neighbours of each record."""
        values, numbers = np.unique(neighbours if shared else degrees, return_counts=True)
        return cls(values.astype(np.int64), numbers.astype(np.int64), shared, separation)

    def expected(self, p: float) -> float:
        """Return the expected batch size at sampling probability p, in records."""
        rest = self.separation - 1
        with np.errstate(divide="ignore"):
            kept = np.log1p(-p)
        if self.shared:
            terms = p * np.exp(_products(rest * self.values, kept))
        else:
            terms = self.values * p / (1.0 - rest * np.expm1(_products(self.values, kept)))
        return float(np.dot(self.numbers, terms))

    def probability(self, batch: float) -> float | None:
        """Return the smallest p with this expected batch, to six digits; None if no p reaches it."""
        records = float(np.dot(self.numbers, np.ones_like(self.values) if self.shared else self.values))
        if batch > records:
            return None
        # If no record were ever unavailable, p would be batch/records; so p is at least that.
        below = batch / records
        while self.expected(below) < batch:
            if below >= 1.0:
                return None
            above = min(1.0, below * RATIO)
            if self.expected(above) >= batch:
                root: float = brentq(lambda p: self.expected(p) - batch, below, above, xtol=1e-300, rtol=1e-12)
                return float(f"{root:.6g}")
            below = above
        return float(f"{below:.6g}")

    def largest(self) -> tuple[float, float]:
        """Return the largest expected batch on a grid of p, which is slightly below the maximum, and its p."""
        grid = np.geomspace(1e-9, 1.0, 2000)
        batches = [self.expected(float(p)) for p in grid]
        best = int(np.argmax(batches))
        return batches[best], float(f"{grid[best]:.3g}")


def _products(factors: Integers, logarithm: float) -> NDArray[np.float64]:
    """Return the products, with 0 times −∞ = 0: without unavailable rounds the factor is 1 also at p = 1."""
    return np.where(factors > 0, np.maximum(factors, 1) * logarithm, 0.0)


@dataclass(frozen=True, slots=True)
class Simulated:
    """Sizes of simulated batches. All are estimates."""

    mean: float
    #: The standard error of the mean, from the means of blocks of rounds.
    standard_error: float
    #: The standard deviation of the size of one batch.
    standard_deviation: float
    largest: int
    rounds: int


def simulated(table: AttributionTable, p: float, separation: int, seed: int, *, shared: bool) -> Simulated:
    """Simulate batches of a run in its stationary state, without the formulas. The first half of them is discarded."""
    length = max(separation, ROUNDS)
    measured = BLOCKS * length
    draws = _sizes(table, p, separation, np.random.default_rng(seed), shared)
    sizes = np.array([draws(t) for t in range(2 * measured)])[measured:]
    means = sizes.reshape(BLOCKS, length).mean(axis=1)
    return Simulated(
        mean=float(sizes.mean()),
        standard_error=float(means.std(ddof=1) / np.sqrt(BLOCKS)),
        standard_deviation=float(sizes.std(ddof=1)),
        largest=int(sizes.max()),
        rounds=measured,
    )


def _sizes(
    table: AttributionTable, p: float, separation: int, random: np.random.Generator, shared: bool
) -> Callable[[int], int]:
    """Return a function that simulates the next round, to be called with t = 0, 1, …, and returns its batch size."""
    last = np.full(table.users, -separation, dtype=np.int64)
    records = table.records

    def size(t: int) -> int:
        drawn = random.choice(records, random.binomial(records, p), replace=False, shuffle=False).astype(np.int64)
        if len(drawn) == 0:
            return 0
        owners, ends = table.pairs_of(drawn)
        joins = np.logical_and.reduceat(last[owners] <= t - separation, ends[:-1])
        # With a single user per record, unavailable records are not drawn, so they do not make their user wait again.
        last[owners if shared else owners[joins]] = t
        return int(joins.sum())

    return size
