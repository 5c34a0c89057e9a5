"""Participations as a renewal process: while available a record joins, then it sits out for a number of rounds.

These are b-min-sep sampling of records and of users, and, with a separation of 1, Poisson sampling on the whole run.

**Where columns overlap**, and for groups of records, the likelihood ratio is no recursion over single rounds: a pattern's
‖Cx‖² has the inner products of columns that meet. An automaton whose state is who took part while columns reach computes it
exactly if there are few states (`Renewal.recursion`); otherwise it is enclosed, or the matrix is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from pyaccount import _core
from pyaccount.directions import Direction
from pyaccount.document.words import Assumed
from pyaccount.plan.common import given, number
from pyaccount.plan.matrices import columns, matrix_plan, strategy
from pyaccount.plan.protection import RunCase
from pyaccount.plan.rare_truncation import RareTruncation
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.plan.samplers import rarely, truncated
from pyaccount.plan.samplers.base import Differentiable, Sampler, Worst, public_participation
from pyaccount.plan.samplers.whole_run import WholeRun
from pyaccount.profiles.base import Recipe
from pyaccount.rounding import up

#: Nanoseconds of the kernel for a sample and a step, on one core of a machine of 2024; and for each further record of a user.
STEP_COST, USER_COST = 6.0, 1.0

#: The words for each start: in the law, and as an assumption.
START = {
    "warm": (
        "stationary",
        "at the start each is unavailable for a random number of iterations, drawn from the stationary law",
    ),
    "cold": ("available at once", "at the start all are available"),
}


class Renewal(WholeRun[Sampler]):
    """A sampler with the law of b-min-sep sampling."""

    kept: ClassVar[str] = "A record that is not kept counts as drawn: it sits out the same iterations as one that is."

    def start(self) -> str:
        """Return warm if the process is stationary at first, cold if every record is available."""
        return "cold"

    def records(self) -> int:
        """Return the number of records of the protected unit, which sit out together."""
        return 1

    def law(self) -> str:
        """Return the law: while available, a record joins with probability p, then it sits out b − 1 rounds."""
        b, p = self.node.separation() or 1, self.node.sampling_probability()
        return (
            f"x = a renewal process: while available, joins with probability {p!r}, then sits out {b - 1} rounds; "
            f"{START[self.start()][0]} at first"
        )

    def source(self) -> str:
        """Return the paper that analyses the sampler."""
        return "Dong & Ganesh 2026 (arXiv:2602.09338), Sections 4 and 5; attained by gradients 1"

    def sampling(self) -> Assumed:
        """Return the assumption that each record is sampled independently."""
        b, p = self.node.separation() or 1, self.node.sampling_probability()
        return Assumed(
            f"Every record joins each iteration in which it is available with probability {p!r}, independently of the "
            f"others, and is unavailable for the next {b - 1} iterations after joining; {START[self.start()][1]}.",
            f"Every record joins independently, then sits out {b - 1} rounds; {self.start()} start.",
        )

    def exact(self) -> bool:
        """Whether the likelihood ratio is computed exactly: if columns do not overlap, or an automaton knows how they do."""
        return self.node.matrix.banded

    def enclosure(self) -> str | None:
        """Describe what is lost if columns overlap and the likelihood ratio is enclosed; None if it is not."""
        b = self.node.separation() or 1
        if self.node.training.iterations == "solve" or self.node.training.iterations <= b or self.exact():
            return None
        gap = columns(self, b).core.gap
        if gap == 0.0:
            return None
        sigma = None if self.node.noise.multiplier == "solve" else number(self.node.noise.multiplier)
        most = f"{up(gap, 4)}/σ²" + ("" if sigma is None else f" = {up(gap / (sigma * sigma), 4)}")
        return (
            f"columns are longer than the separation {b}, so the likelihood ratio is enclosed between two recursions and the "
            f"loss is the one that is never too small; none is overstated by more than {most} (½ Σ Γ_i of the worst pattern), "
            "those of likely patterns by much less"
        )

    def untruncated(self, sigma: float, directions: tuple[Direction, ...]) -> SampledMechanism:
        """Return the mechanism: a recursion over the rounds."""
        if not self.exact():
            return self._overlapping(sigma, directions)
        built = strategy(self)
        recipe = self.recursion(scaled_coefficients(self, sigma), built.iterations)
        return SampledMechanism(
            recipe, directions, built.iterations, self.step_cost() * built.iterations, recipe.core.plain_parameter
        )

    def step_cost(self) -> float:
        """Return how many nanoseconds a sample takes for a step where the likelihood ratio is exact."""
        return STEP_COST + USER_COST * (self.records() - 1)

    def recursion(self, coefficients: Sequence[float], iterations: int) -> Recipe[_core.Sampled]:
        """Return the recipe of the core's mechanism for columns that do not overlap."""
        b, p, warm = self.node.separation() or 1, self.node.sampling_probability(), self.start() == "warm"
        return Recipe("Sampled.renewal", (tuple(coefficients), iterations, b, p, warm))

    def differentiable(self) -> Differentiable | None:
        """Return the derivatives by the coefficients, for columns that do not overlap."""
        if not self.has_derivatives or not self.node.matrix.banded:
            return None
        n = number(self.node.training.iterations)
        return Differentiable.of_coefficients(lambda coefficients: self.recursion(coefficients, n).core)

    def _overlapping(self, sigma: float, directions: tuple[Direction, ...]) -> SampledMechanism:
        """Return the mechanism for columns that may be longer than the separation; its likelihood ratio is enclosed."""
        steps, p, warm = number(self.node.training.iterations), self.node.sampling_probability(), self.start() == "warm"
        described = (columns(self, self.node.separation() or 1), sigma, p, self.records(), warm)
        above: Recipe[_core.Sampled] = Recipe("Sampled.overlapping", (*described, False))
        below: Recipe[_core.Sampled] = Recipe("Sampled.overlapping", (*described, True))
        cost = (STEP_COST + USER_COST * (self.records() - 1) + matrix_plan(self).product_cost()) * steps
        lower = SampledMechanism(below, directions, steps, cost, below.core.plain_parameter, enclosed=True)
        return SampledMechanism(above, directions, steps, cost, above.core.plain_parameter, lower, enclosed=True)

    def displaced(self, limit: int) -> float:
        """Return an upper bound on the probability that the sensitive record is ever in a truncated batch.

        The counts of other records do not depend on the record's own draws. So it is at most the expected number of
        these draws times the largest probability of such a count. If no other record contributes, the run differs from
        one without truncation by no more in total variation.
        """
        # A tail may grow by many times as much as its rate, so the rate is rounded up.
        rate, rest = self.largest_rate() * (1.0 + truncated.ROUNDING), number(self.node.training.dataset_size) - 1
        n, b = number(self.node.training.iterations), self.node.separation() or 1
        return min(1.0, min(n * rate, math.ceil(n / b)) * rarely.upper_tail(rest, rate, limit) * (1.0 + 1e-12))

    def rare_truncation(self, limit: int) -> RareTruncation:
        """Return what truncation adds, from the probability of being drawn in each round, for either start."""
        b, p = self.node.separation() or 1, self.node.sampling_probability()
        rounds, rest = number(self.node.training.iterations), number(self.node.training.dataset_size) - 1
        if self.start() == "warm":
            # A tail may grow by many times as much as its rate, so the rate is rounded up.
            stationary = max(self.largest_rate(), p / (1.0 + (b - 1) * p))
            rates = [(min(1.0, stationary * (1.0 + truncated.ROUNDING)), rounds)]
        else:
            rates = rarely.counted_rates(rarely.cold_rates(p, b, rounds))
        tails = [(count, rate, rarely.upper_tail(rest, rate, limit)) for rate, count in rates]
        full = math.fsum(count * tail for count, _, tail in tails)
        hit = math.fsum(count * rate * tail for count, rate, tail in tails)
        return rarely.of_renewal(hit, full, p, b)

    def worst(self) -> Worst:
        """Return the case in which a record takes part whenever it may be drawn."""
        return public_participation(self, self.records())

    def cut(self, rounds: int) -> dict[str, Any]:
        """Return the separation, which may otherwise follow from the bands of the whole run's matrix."""
        return {"min_separation": self.node.separation()}


def scaled_coefficients(case: RunCase, sigma: float) -> list[float]:
    """Return the first column in units of σ, rounded up: with larger coefficients the mechanism is no more private."""
    coefficients = strategy(case).coefficients
    return [math.nextafter(c / sigma, math.inf) for c in given(coefficients)]
