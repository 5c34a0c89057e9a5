"""Cyclic Poisson sampling: with fixed parts the rounds of one part have orthogonal columns, so they compose.

A record of part φ takes part in rounds φ, φ + b, φ + 2b, …, in each with probability p = b·p₀. With at most b bands the
columns of these rounds do not overlap, so the run is a composition of Poisson-subsampled Gaussian mechanisms with shifts
‖c_i‖. For a Toeplitz matrix the first part has the most rounds and the longest columns, so it dominates the other parts.

Other releases of the same batches add rows to the encoder, for which the same domination holds as for balls in bins
(`balls_in_bins`). The columns of a part remain orthogonal, and the square of each norm grows by the same number.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

from pyaccount import _core
from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.document.samplers import CyclicPoisson
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import (
    BANDED,
    NO_ITERATIONS,
    NORMALISATION,
    OTHER_BLANKS,
    SECRET,
    basic_assumptions,
    group_refusals,
    number,
    value_or_symbol,
)
from pyaccount.plan.matrices import matrix_plan, strategy
from pyaccount.plan.rounds import Bounds, DirectedBounds
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.plan.samplers.base import Differentiable, InPlace, Worst, each_round, public_participation
from pyaccount.plan.samplers.renewal import STEP_COST, scaled_coefficients
from pyaccount.plan.samplers.whole_run import WholeRun
from pyaccount.plan.theorem import Reduction, Theorem
from pyaccount.profiles import GaussianProfile, PoissonProfile, ProfileKind, Rounds
from pyaccount.profiles.base import Recipe


def _part(p: float, sigma: float, *, two_sided: bool, reverse: bool) -> ProfileKind:
    if p >= 1.0:
        return GaussianProfile(2.0 if two_sided else 1.0, sigma)
    return PoissonProfile(1, p, sigma, two_sided, reverse)


def _first_part(plan: FixedParts | CyclicPoissonPlan, *, two_sided: bool, reverse: bool) -> list[tuple[Rounds, ...]]:
    """Return the rounds of the first part in one run, from above and from below."""
    n, b = number(plan.node.training.iterations), plan.node.separation() or 1
    p, sigma = plan.node.sampling_probability(), number(plan.node.noise.multiplier)
    built = strategy(plan)
    assert built.coefficients is not None
    turns = -(-n // b)
    # The last column starts in this round; it is the only one that the end of the run can cut off.
    last = (turns - 1) * b
    reach = min(len(built.coefficients), n - last)
    further = each_round(plan.node)
    full = math.sqrt(math.fsum((*(c * c for c in built.coefficients), further)))
    cut = math.sqrt(math.fsum((*(c * c for c in built.coefficients[:reach]), further)))
    norms = {full: turns} if reach == len(built.coefficients) else {full: turns - 1, cut: 1}
    # The norm of a single coefficient of 1 is exact; other norms are known up to the strategy's slack.
    slack = 0.0 if built.coefficients == (1.0,) and further == 0.0 else built.slack
    return [
        tuple(
            Rounds(_part(p, sigma / (norm * (1.0 + side)), two_sided=two_sided, reverse=reverse), count)
            for norm, count in norms.items()
            if count > 0
        )
        for side in (slack, -slack)
    ]


class FixedParts(InPlace[CyclicPoisson]):
    """The rounds of the first part, if parts are fixed and may be known."""

    def words(self) -> Reduction:
        """Return the theorem for fixed parts: the composition for a record of the first part."""
        two_sided = self.asked.privacy.adjacency == "replace-one"
        blank = self.node.training.expected_batch_size == "solve"
        b = self.node.separation() or 1
        p = "p" if blank else repr(self.node.sampling_probability())
        sigma = value_or_symbol(self.node.noise.multiplier, "σ")
        turns = "⌈n/b⌉" if self.node.training.iterations == "solve" else str(-(-self.node.training.iterations // b))
        runs = "" if self.node.count == 1 else f"{self.node.count} × "
        other = f"(1−{p})N(0) + {p}·N(−‖c_i‖)" if two_sided else "N(0)"
        return Reduction(
            path=self.node.path,
            subject=f"cyclic Poisson sampling from {b} fixed parts, {matrix_plan(self).text()}",
            theorem="composition over the rounds of the first part, whose columns do not overlap",
            source="Choquette-Choo et al. 2023 (arXiv:2306.08153), Theorem 4; attained by gradients of the same sign",
            pair=f"(1−{p})N(0) + {p}·N(‖c_i‖) against {other}, σ = {sigma}, ‖c_i‖ the norm of the column of round i",
            rounds=f"{runs}{turns}",
            tight=True,
            remark=None,
            assumed=(
                *basic_assumptions(self.asked.privacy, self.node),
                Assumed(
                    f"The data set is cut into {b} parts beforehand, by a rule under which a record's part does not depend on "
                    "the other records or on contents; the parts need not be secret.",
                    f"{b} parts are fixed beforehand, by a rule that looks at no contents.",
                ),
                Assumed(
                    f"Iteration i draws from part i mod {b}, every record of it independently with probability {p}.",
                    f"Iteration i draws each record of part i mod {b} independently.",
                ),
                SECRET,
                NORMALISATION,
            ),
        )

    def refusals(self) -> list[Problem]:
        """Refuse what the analysis of fixed parts does not cover."""
        problems = group_refusals(self)
        if not self.node.matrix.banded:
            problems.append(
                self.asked.refusal(
                    self.node.at("matrix", "kind"),
                    "cyclic Poisson sampling is analysed only with a banded Toeplitz matrix; for another matrix use "
                    "balls-in-bins",
                    allowed=BANDED,
                )
            )
        if self.node.training.iterations == "solve" and self.node.matrix.kind != "identity":
            problems.append(
                self.asked.refusal(self.node.at("training", "iterations"), NO_ITERATIONS, allowed=OTHER_BLANKS)
            )
        return problems

    def bounds(self) -> DirectedBounds:
        """Return the rounds of the first part, of which only the last column may be cut off by the end of the run."""
        two_sided = self.asked.privacy.adjacency == "replace-one"
        directed: DirectedBounds = {}
        for direction in DIRECTIONS:
            reverse = direction == "add" and not two_sided
            upper, lower = (
                tuple(replace(one, count=self.node.count * one.count) for one in rounds)
                for rounds in _first_part(self, two_sided=two_sided, reverse=reverse)
            )
            directed[direction] = Bounds(upper, lower)
        return directed


class CyclicPoissonPlan(WholeRun[CyclicPoisson]):
    """Cyclic Poisson sampling: composed if the parts are fixed; sampled on the whole run if they are secret."""

    has_derivatives: ClassVar[bool] = True

    def theorem(self) -> Theorem:
        """Return the theorem for how records are put in parts."""
        return super().theorem() if self.sampler.phase == "random" else FixedParts(self.asked, self.node, self)

    def stacks(self) -> bool:
        """Whether the parts are fixed, so that only the norms of columns matter."""
        return self.sampler.phase != "random"

    def subject(self) -> str:
        """Return the name of sampling from random parts."""
        return "cyclic Poisson sampling from random secret parts"

    def law(self) -> str:
        """Return the law for random parts: a phase, and a random subset of its rounds."""
        b, p = self.node.separation() or 1, self.node.sampling_probability()
        return f"x = a phase φ of {b}, each with probability 1/{b}, and of the rounds φ, φ + {b}, … each with probability {p!r}"

    def source(self) -> str:
        """Return the source of the proof, which is that of b-min-sep sampling."""
        return (
            "the mixture over patterns, as for b-min-sep sampling (Dong & Ganesh 2026, arXiv:2602.09338, Section 4); attained by "
            "gradients 1"
        )

    def sampling(self) -> Assumed:
        """Return the assumption that records are put in parts independently."""
        b, p = self.node.separation() or 1, self.node.sampling_probability()
        return Assumed(
            f"Every record is put in one of {b} parts uniformly at random, independently of the others, before the run; the "
            "parts are secret and not used for another run. "
            f"Iteration i draws from part i mod {b}, every record of it independently with probability {p!r}. Parts of equal "
            "size do not satisfy this: their records are not independent.",
            f"Records are put in {b} secret parts at random; each is Poisson sampled.",
        )

    def own_refusals(self) -> list[Problem]:
        """Refuse a matrix whose columns may overlap, and parts that never have a turn."""
        problems = []
        if not self.node.matrix.banded:
            message = (
                f"the analysis of {self.node.sampler.kind} sampling needs a banded Toeplitz matrix; for another matrix use "
                "b-min-sep or balls-in-bins"
            )
            allowed = "a banded matrix, or the sampler b-min-sep or balls-in-bins"
            problems.append(self.asked.refusal(self.node.at("matrix", "kind"), message, allowed=allowed))
        parts, iterations = self.node.separation() or 1, self.node.training.iterations
        if iterations != "solve" and parts > iterations:
            message = f"there are {parts} random parts, but only {iterations} iterations: some parts never have a turn"
            field = "partitions" if self.sampler.partitions is not None else "kind"
            allowed = f"at most {iterations} parts"
            problems.append(
                self.asked.problem("contradiction", self.node.at("sampler", field), message, allowed=allowed)
            )
        return problems

    def untruncated(self, sigma: float, directions: tuple[Direction, ...]) -> SampledMechanism:
        """Return the mechanism: the recursion, averaged over the phases.

        δ of an added record is at most that of the first part: it is convex in the likelihood ratio, a mean over the phases.
        """
        n, b, p = number(self.node.training.iterations), self.node.separation() or 1, self.node.sampling_probability()
        recipe: Recipe[_core.Sampled] = Recipe("Sampled.phases", (tuple(scaled_coefficients(self, sigma)), n, b, p))
        composed: dict[Direction, tuple[Rounds, ...]] = {}
        if "replace" in directions:
            composed["add"] = _first_part(self, two_sided=False, reverse=True)[0]
        return SampledMechanism(recipe, directions, n, STEP_COST * n, p, composed=composed)

    def differentiable(self) -> Differentiable | None:
        """Return the derivatives by the coefficients if the phase is random, else None."""
        if self.sampler.phase != "random":
            return None
        n, b, p = number(self.node.training.iterations), self.node.separation() or 1, self.node.sampling_probability()
        return Differentiable.of_coefficients(lambda coefficients: _core.Sampled.phases(coefficients, n, b, p))

    def spaced_pattern(self) -> tuple[int, int] | None:
        """Return a single participation if parts are fixed: δ of the first part depends on the norm of whole columns.

        The last column may be cut off by the end of the run; the search does not use that.
        """
        fixed = self.sampler.phase != "random" and self.node.matrix.banded
        return (self.node.separation() or 1, 1) if fixed else None

    def truncation_refusals(self) -> list[Problem]:
        """Refuse truncation, because the document does not give the sizes of the parts."""
        message = (
            "how often a part's batches are truncated depends on the sizes of the parts, which the document does not give; "
            "use b-min-sep sampling with the same separation"
        )
        path, allowed = self.node.at("sampler", "truncate_to"), "b-min-sep, balls-in-bins or poisson"
        return [self.asked.refusal(path, message, allowed=allowed)]

    def worst(self) -> Worst:
        """Return the case in which a record takes part whenever its part has its turn."""
        return public_participation(self)

    def shortest_run(self, rounds: int) -> int:
        """Return enough rounds that every random part has had its turn."""
        return max(rounds, self.node.separation() or 1) if self.sampler.phase == "random" else rounds

    def cut(self, rounds: int) -> dict[str, Any]:
        """Return the number of parts, which may otherwise follow from the bands of the whole run's matrix."""
        return {"partitions": self.node.separation()}

    def largest_batch(self) -> int:
        """Return the size of a part: a batch comes from one of the parts."""
        return super().largest_batch() // (self.node.separation() or 1)
