"""Participations as a renewal process: while available a record joins, then it sits out for a number of rounds.

These are b-min-sep sampling of records and of users, and, with a separation of 1, Poisson sampling on the whole run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount.plan.common import number
from pyaccount.plan.matrices import columns, matrix_plan, strategy
from pyaccount.plan.recipe import Recipe
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.plan.samplers import rarely, truncated
from pyaccount.plan.samplers.base import Differentiable, Worst, public_participation
from pyaccount.plan.samplers.whole_run import WholeRun
from pyaccount.rounding import up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount import _core
    from pyaccount.directions import Direction
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.plan.rare_truncation import RareTruncation

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


class Renewal(WholeRun):
    """A sampler with the law of b-min-sep sampling."""

    kept: ClassVar[str] = "A record that is not kept counts as drawn: it sits out the same iterations as one that is."

    def start(self, body: Body) -> str:
        """Return warm if the process is stationary at first, cold if every record is available."""
        return "cold"

    def records(self, body: Body) -> int:
        """Return the number of records of the protected unit, which sit out together."""
        return 1

    def law(self, body: Body) -> str:
        """Return the law: while available, a record joins with probability p, then it sits out b − 1 rounds."""
        b, p = body.separation() or 1, body.sampling_probability()
        return (
            f"x = a renewal process: while available, joins with probability {p!r}, then sits out {b - 1} rounds; "
            f"{START[self.start(body)][0]} at first"
        )

    def source(self, body: Body) -> str:
        """Return the paper that analyses the sampler."""
        return "Dong & Ganesh 2026 (arXiv:2602.09338), Sections 4 and 5; attained by gradients 1"

    def sampling(self, body: Body) -> str:
        """Return the assumption that each record is sampled independently."""
        b, p = body.separation() or 1, body.sampling_probability()
        return (
            f"Every record joins each iteration in which it is available with probability {p!r}, independently of the "
            f"others, and is unavailable for the next {b - 1} iterations after joining; {START[self.start(body)][1]}."
        )

    def enclosure(self, document: Document, body: Body) -> str | None:
        """Describe what is lost if columns overlap; None if they do not."""
        b = body.separation() or 1
        if body.matrix.banded or body.training.iterations == "solve" or body.training.iterations <= b:
            return None
        gap = columns(document, body, b).core.gap
        if gap == 0.0:
            return None
        sigma = None if body.noise.multiplier == "solve" else number(body.noise.multiplier)
        most = f"{up(gap, 4)}/σ²" + ("" if sigma is None else f" = {up(gap / (sigma * sigma), 4)}")
        return (
            f"columns are longer than the separation {b}, so the likelihood ratio is enclosed between two recursions and the "
            f"loss is the one that is never too small; none is overstated by more than {most} (½ Σ Γ_i of the worst pattern), "
            "those of likely patterns by much less"
        )

    def untruncated(
        self, document: Document, body: Body, sigma: float, directions: tuple[Direction, ...]
    ) -> SampledMechanism:
        """Return the mechanism: a recursion over the rounds."""
        if not body.matrix.banded:
            return self._overlapping(document, body, sigma, directions)
        built = strategy(document, body)
        recipe = self.recursion(body, scaled_coefficients(document, body, sigma), built.iterations)
        cost = (STEP_COST + USER_COST * (self.records(body) - 1)) * built.iterations
        return SampledMechanism(recipe, directions, built.iterations, cost, recipe.core.plain_parameter)

    def recursion(self, body: Body, coefficients: Sequence[float], iterations: int) -> Recipe[_core.Sampled]:
        """Return the recipe of the core's mechanism for columns that do not overlap."""
        b, p, warm = body.separation() or 1, body.sampling_probability(), self.start(body) == "warm"
        return Recipe("Sampled.renewal", (tuple(coefficients), iterations, b, p, warm))

    def differentiable(self, document: Document, body: Body) -> Differentiable | None:
        """Return the derivatives by the coefficients, for columns that do not overlap."""
        if not self.has_derivatives or not body.matrix.banded:
            return None
        n = number(body.training.iterations)
        return Differentiable.of_coefficients(lambda coefficients: self.recursion(body, coefficients, n).core)

    def _overlapping(
        self, document: Document, body: Body, sigma: float, directions: tuple[Direction, ...]
    ) -> SampledMechanism:
        """Return the mechanism for columns that may be longer than the separation; its likelihood ratio is enclosed."""
        matrix_columns, steps = columns(document, body, body.separation() or 1), number(body.training.iterations)
        records, warm = self.records(body), self.start(body) == "warm"
        p = body.sampling_probability()
        described = (matrix_columns, sigma, p, records, warm)
        above: Recipe[_core.Sampled] = Recipe("Sampled.overlapping", (*described, False))
        below: Recipe[_core.Sampled] = Recipe("Sampled.overlapping", (*described, True))
        cost = (STEP_COST + USER_COST * (records - 1) + matrix_plan(body).product_cost(body)) * steps
        lower = SampledMechanism(below, directions, steps, cost, below.core.plain_parameter, enclosed=True)
        return SampledMechanism(above, directions, steps, cost, above.core.plain_parameter, lower, enclosed=True)

    def displaced(self, body: Body, limit: int) -> float:
        """Return an upper bound on the probability that the sensitive record is ever in a truncated batch.

        The counts of other records do not depend on the record's own draws. So it is at most the expected number of
        these draws times the largest probability of such a count. If no other record contributes, the run differs from
        one without truncation by no more in total variation.
        """
        assert body.training.dataset_size is not None
        # A tail may grow by many times as much as its rate, so the rate is rounded up.
        rate, rest = self.largest_rate(body) * (1.0 + truncated.ROUNDING), body.training.dataset_size - 1
        n, b = number(body.training.iterations), body.separation() or 1
        return min(1.0, min(n * rate, math.ceil(n / b)) * rarely.upper_tail(rest, rate, limit) * (1.0 + 1e-12))

    def rare_truncation(self, body: Body, limit: int) -> RareTruncation:
        """Return what truncation adds, from the probability of being drawn in each round, for either start."""
        assert body.training.dataset_size is not None
        b, p, rounds = body.separation() or 1, body.sampling_probability(), number(body.training.iterations)
        if self.start(body) == "warm":
            # A tail may grow by many times as much as its rate, so the rate is rounded up.
            stationary = max(self.largest_rate(body), p / (1.0 + (b - 1) * p))
            rates = [(min(1.0, stationary * (1.0 + truncated.ROUNDING)), rounds)]
        else:
            rates = rarely.counted_rates(rarely.cold_rates(p, b, rounds))
        tails = [(count, rate, rarely.upper_tail(body.training.dataset_size - 1, rate, limit)) for rate, count in rates]
        full = math.fsum(count * tail for count, _, tail in tails)
        hit = math.fsum(count * rate * tail for count, rate, tail in tails)
        return rarely.of_renewal(hit, full, p, b)

    def worst(self, document: Document, body: Body) -> Worst:
        """Return the case in which a record takes part whenever it may be drawn."""
        return public_participation(document, body, self.records(body))

    def cut(self, body: Body, rounds: int) -> dict[str, Any]:
        """Return the separation, which may otherwise follow from the bands of the whole run's matrix."""
        return {"min_separation": body.separation()}


def scaled_coefficients(document: Document, body: Body, sigma: float) -> list[float]:
    """Return the first column in units of σ, rounded up: with larger coefficients the mechanism is no more private."""
    coefficients = strategy(document, body).coefficients
    assert coefficients is not None
    return [math.nextafter(c / sigma, math.inf) for c in coefficients]
