"""The wealth of bets, and the bets for lower ends: against "δ(ε) ≤ t" for several t, and against "δ(ε′) ≤ δ" for ε′ < ε.

If no smaller ε than ε′ holds at δ, then δ(ε′) > δ, so a won bet of the second kind is a lower end of ε. Either kind is
a sequence of claims, from the easiest on, that ends with the first bet that is not won: it passes the first true "δ(ε)
≤ t" with probability at most q.

Such a bet multiplies its wealth by 1 + λ(V − t) for each sample V, whose logarithm is about λ(E V − t) − λ²E V²/2 in
the mean. After N samples it is L = ln(1/q) at the least distance E V − t if λ² = 2L/(N·E V²), whatever t is. So bets
are made before the mean is known, and may be made on samples that are drawn for another claim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyaccount.execute.sampling.jobs import SHARD, Bet, BetTable, Sums

#: The error of summing logarithms of wealth, at most: at the start, and for each sample (a unit of rounding each).
LOG_SLACK, SAMPLE_SLACK = 1e-6, 2.3e-16
#: Shares of the claim at which a lower bound on δ is tried, from the easiest on.
LOWER_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.82, 0.84, 0.86, 0.88, 0.9, 0.92, 0.94, 0.96)
#: The same if the claim may lie far above δ.
FAR_SHARES = (0.003, 0.01, 0.03, *LOWER_SHARES)
#: Relative distances below ε at which a lower bound on ε is tried, from the easiest on.
LOWER_DISTANCES = (0.3, 0.2, 0.1, 0.06, 0.04, 0.03, 0.02, 0.015, 0.0125, 0.01, 0.0075, 0.005, 0.0035, 0.0025)
#: The same if ε may lie far above the true one.
FAR_DISTANCES = (0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.06, 0.04, 0.03, 0.02, 0.01)
#: The largest betting fraction, as a share of 1/t, at which all would be lost with V = 0.
BOLDEST = 0.5


class Wealth:
    """The wealth of several bets against one claim, each with an equal share at first; checked after each shard."""

    def __init__(self, bets: int) -> None:
        self.logs = [0.0] * bets
        self.highest = -math.inf
        self._slack = LOG_SLACK

    def add(self, growth: Sequence[float]) -> None:
        """Add one shard."""
        self.logs = [log + more for log, more in zip(self.logs, growth, strict=True)]
        self._slack += SHARD * SAMPLE_SLACK
        self.highest = max(self.highest, self.now)

    @property
    def now(self) -> float:
        """ln of the current wealth."""
        top = max(self.logs)
        return top + math.log(math.fsum(math.exp(log - top) for log in self.logs) / len(self.logs))

    def reached(self, log_target: float) -> bool:
        """Return whether the wealth ever reached e^`log_target`."""
        return self.highest >= log_target + self._slack


def share_of(k: int) -> float:
    """Return the share of a probability that the k-th of any number of events gets. All shares add up to 1."""
    return 1.0 / (k * (k + 1))


def places_below(epsilon: float, distances: Sequence[float]) -> list[float]:
    """Return ε and the smaller values at which lower bounds are tried, from the easiest on."""
    return [epsilon, *(epsilon * (1.0 - distance) for distance in distances)]


@dataclass(frozen=True, slots=True)
class LowerBets:
    """Bets for lower ends of a result (ε, δ). Each table has one ε, ε itself first."""

    tables: tuple[BetTable, ...]
    #: How far δ(ε) may be below the mean that is drawn.
    lost: float
    wealth: list[list[Wealth]] = field(default_factory=list)

    def add(self, sums: Sequence[Sums]) -> None:
        """Add a shard's sums, one for each table."""
        if not self.wealth:
            self.wealth.extend([Wealth(1) for _ in table.bets] for table in self.tables)
        for one, group in zip(sums, self.wealth, strict=True):
            for growth, wealth in zip(one.log_wealth, group, strict=True):
                wealth.add((growth,))

    def ends(self, failure_probability: float) -> tuple[float, float]:
        """Return lower bounds on ε at δ and on δ at ε, each wrong with at most this probability."""
        log_target = -math.log(failure_probability)
        epsilon_lower, delta_lower = 0.0, 0.0
        if not self.wealth:
            return epsilon_lower, delta_lower
        for bet, wealth in zip(self.tables[0].bets, self.wealth[0], strict=True):
            if not wealth.reached(log_target):
                break
            delta_lower = max(0.0, bet.threshold - self.lost)
        for table, (wealth,) in zip(self.tables[1:], self.wealth[1:], strict=True):
            if not wealth.reached(log_target):
                break
            epsilon_lower = table.epsilon
        return epsilon_lower, delta_lower


def lower_bets(  # noqa: PLR0913 - where bets are made, and what is known of the samples
    places: Sequence[float],
    squares: Sequence[float],
    lost: Sequence[float],
    delta: float,
    *,
    shares: Sequence[float],
    expected: tuple[float, float],
) -> LowerBets:
    """Return bets at ε and at smaller values, the places, with estimates of E V² and what δ may lack there.

    `expected` has the samples that are expected and the logarithm of the wealth that is wanted.
    """
    samples, log_target = expected

    def bet(threshold: float, square: float) -> Bet:
        fraction = math.sqrt(2.0 * log_target / max(samples * square, 1e-300))
        return Bet(threshold, -min(fraction, BOLDEST / threshold))

    first = BetTable(places[0], math.inf, tuple(bet(share * delta, squares[0]) for share in shares))
    further = [
        BetTable(place, math.inf, (bet(delta + less, square),))
        for place, square, less in zip(places[1:], squares[1:], lost[1:], strict=True)
    ]
    return LowerBets((first, *further), lost[0])
