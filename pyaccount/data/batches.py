"""How large batches of users' records are: by formulas, and by simulation.

Records of a single user each (`attribution: single`): while none of a user's records sits out, each is drawn with probability p,
and after a draw all of them sit out b − 1 rounds, a renewal process. A user with k records is available in a round, in the long
run, with probability 1/(1 + (b − 1)(1 − (1 − p)^k)), so the expected batch is

    Σ_users k p / (1 + (b − 1)(1 − (1 − p)^k)).

Shared records: every record is drawn in every round, whether or not it sits out, and joins the batch unless one that shares a
user with it was drawn in the b − 1 rounds before (Algorithm 3 of Dong & Ganesh 2026, arXiv:2602.09338). The draws are
independent, so from round b on the expected batch is exactly

    Σ_records p (1 − p)^{(b − 1)|N(e)|},

N(e) the records that share a user with e, itself among them. It rises with p to a maximum and falls: where many share, more draws
keep more records out. Both are the long-run means, of a warm start; after a cold one the first rounds are larger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq  # type: ignore[import-untyped]

from pyaccount.data.attribution import AttributionTable, Integers

#: Ratio of neighbouring values of p that are looked at: each term of the sums above is as wide as a factor of e.
RATIO = 1.02
#: Blocks of rounds whose mean batches give the standard error, and the least rounds of one.
BLOCKS, ROUNDS = 32, 32


@dataclass(frozen=True, slots=True)
class BatchLaw:
    """The expected batch as a function of p."""

    #: Of users with a single attribution how many records they have; of shared records how many neighbours.
    values: Integers
    #: How many have that value.
    numbers: Integers
    shared: bool
    #: b: rounds between two participations.
    separation: int

    @classmethod
    def of(cls, degrees: Integers, neighbours: Integers, separation: int, *, shared: bool) -> BatchLaw:
        """That of users with so many records, whose records have so many neighbours."""
        values, numbers = np.unique(neighbours if shared else degrees, return_counts=True)
        return cls(values.astype(np.int64), numbers.astype(np.int64), shared, separation)

    def expected(self, p: float) -> float:
        """The expected batch, in records."""
        rest = self.separation - 1
        with np.errstate(divide="ignore"):
            kept = np.log1p(-p)
        if self.shared:
            terms = p * np.exp(_products(rest * self.values, kept))
        else:
            terms = self.values * p / (1.0 - rest * np.expm1(_products(self.values, kept)))
        return float(np.dot(self.numbers, terms))

    def probability(self, batch: float) -> float | None:
        """The least p with this expected batch, to six digits; None if no p has one as large."""
        records = float(np.dot(self.numbers, np.ones_like(self.values) if self.shared else self.values))
        if batch > records:
            return None
        # Without anybody who waits p would be batch/records; it is no less.
        below = batch / records
        while self.expected(below) < batch:
            if below >= 1.0:
                return None
            above = min(1.0, below * RATIO)
            if self.expected(above) >= batch:
                found: float = brentq(lambda p: self.expected(p) - batch, below, above, xtol=1e-300, rtol=1e-12)
                return float(f"{found:.6g}")
            below = above
        return float(f"{below:.6g}")

    def largest(self) -> tuple[float, float]:
        """The largest expected batch, and its p: of a grid of values, so a little less than the truth."""
        grid = np.geomspace(1e-9, 1.0, 2000)
        batches = [self.expected(float(p)) for p in grid]
        best = int(np.argmax(batches))
        return batches[best], float(f"{grid[best]:.3g}")


def _products(factors: Integers, logarithm: float) -> NDArray[np.float64]:
    """The products, where 0 times −∞ is 0: no round to sit out is none at p = 1 too."""
    return np.where(factors > 0, np.maximum(factors, 1) * logarithm, 0.0)


@dataclass(frozen=True, slots=True)
class Simulated:
    """Sizes of simulated batches. All are estimates."""

    mean: float
    #: Of the mean, from the means of blocks of rounds.
    standard_error: float
    #: Of one batch.
    standard_deviation: float
    largest: int
    rounds: int


def simulated(table: AttributionTable, p: float, separation: int, seed: int, *, shared: bool) -> Simulated:
    """Batches of a run in its stationary state, by the definitions alone: as many rounds again go before those that count."""
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
    """The size of the batch of one round after the other."""
    last = np.full(table.users, -separation, dtype=np.int64)
    records = table.records

    def size(t: int) -> int:
        drawn = random.choice(records, random.binomial(records, p), replace=False, shuffle=False).astype(np.int64)
        if len(drawn) == 0:
            return 0
        owners, ends = table.pairs_of(drawn)
        joins = np.logical_and.reduceat(last[owners] <= t - separation, ends[:-1])
        # Of records of a single user, one that sits out is not drawn at all.
        last[owners if shared else owners[joins]] = t
        return int(joins.sum())

    return size
