"""Random allocation: of every t consecutive rounds a record takes part in k, chosen at random.

Allocations compose, without samples. For 1 < k < t the rounds of an allocation are split into k blocks that compose;
the bound treats the blocks as known. If samples are requested, or if a document of one run states a tolerance that samples
meet, the pair of an allocation itself is sampled.

**A record that is replaced.** Both records take part in k of the t rounds, each with the same law, and the rounds of one say
nothing about those of the other; what is compared are two mixtures, over the rounds of the one and over those of the other.
Lemma D.1 of Dong & Ganesh 2026 (arXiv:2602.09338) allows any two laws and rows that are chosen adaptively: the mixture of
N(x, σ²I) against that of N(−x, σ²I) dominates, in both directions, and gradients +1 and −1 attain it. Its likelihood ratio is
no sum of independent numbers, so it is sampled. If a record is in every round (k = t), a round is N(1, σ²) against N(−1, σ²).

**With a matrix** allocations depend on one another where columns reach from one into the next, and the pair of the whole run is
sampled: its proof is in `pyaccount.plan.samplers.whole_run`. An automaton that knows how many rounds are left to take, and who
took part while columns reach, computes the likelihood ratio.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from pyaccount import _core
from pyaccount.directions import Direction, sampled_directions
from pyaccount.document.samplers import RandomAllocation
from pyaccount.document.sections import Privacy
from pyaccount.document.tree import TrainingNode
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import (
    NORMALISATION,
    OTHER_BLANKS,
    SECRET,
    basic_assumptions,
    group_refusals,
    moves,
    number,
    refused_samples,
    rounds_text,
    sampled_blanks,
    value_or_symbol,
)
from pyaccount.plan.compiled import SAMPLED_TOLERANCE
from pyaccount.plan.matrices import matrix_plan
from pyaccount.plan.rounds import Bounds, DirectedBounds, combine, tight
from pyaccount.plan.sampled import SampledMechanism, together
from pyaccount.plan.samplers.allocation import RATIO, ROUNDING, allocation, several
from pyaccount.plan.samplers.base import InPlace, SamplerPlan, Worst, moved
from pyaccount.plan.samplers.poisson import WAY_COST
from pyaccount.plan.samplers.renewal import scaled_coefficients
from pyaccount.plan.samplers.whole_run import PATTERNS
from pyaccount.plan.theorem import Reduction, Theorem
from pyaccount.profiles import GaussianProfile
from pyaccount.profiles.base import Recipe

ONE_OF_MANY = (
    "Choquette-Choo et al. 2025 (arXiv:2410.06266) and Feldman & Shenfeld 2025 (arXiv:2502.08202); attained by gradients 1. "
    f"{RATIO}"
)
PAIR = "Choquette-Choo et al. 2025 (arXiv:2410.06266) and Feldman & Shenfeld 2025 (arXiv:2502.08202); attained by gradients 1"
MIRRORED = "Dong & Ganesh 2026 (arXiv:2602.09338), Lemma D.1, for both mixtures; attained by gradients +1 and −1"
BLOCKS = (
    "Feldman & Shenfeld 2025 (arXiv:2502.08202): the t rounds are split into k blocks at random and one round is taken from "
    "each, which is the uniform law, so that by joint convexity the composition of the blocks dominates"
)

GIVEN_UP = "Which rounds are a block counts as known; the sampler keeps it secret."
#: The hint of a plan if samples would give a tighter bound.
SAMPLES = (
    "With accounting.method: monte-carlo the pair of whole allocations is sampled, which is tighter, in about a minute."
)
#: Nanoseconds that a sample takes on one core for each round, and for each participation in each round.
ROUND_COST, TAKEN_COST = 12.0, 0.4
#: The largest number of ways from one pattern to the next, over all rounds of a run with a matrix.
MOST_WAYS = 1 << 21
#: With less noise a document is not sampled unless it asks for samples: the rounding of sampled losses may be too large then.
LEAST_NOISE = 0.2
LOWER_END = (
    "two data sets: the record contributes 1, or 0, and nobody else contributes. All rounds, in secret; of an allocation's "
    "outputs y is seen in which narrow cell Σ e^(y/σ²) lies, or Σ y, whichever is better at an ε (with hardly any noise, "
    "or k > 16, Σ y only)."
)


def _assumptions(privacy: Privacy, run: TrainingNode, sampler: RandomAllocation) -> tuple[Assumed, ...]:
    t, k = sampler.iterations_per_allocation, sampler.participations
    return (
        *basic_assumptions(privacy, run),
        Assumed(
            f"In every {t} consecutive rounds, from the first on, every record takes part in {k} of them, chosen uniformly at "
            "random, independently of the other records and of other allocations; batches have no fixed size.",
            f"Every record is in {k} of each {t} rounds, drawn apart from others.",
        ),
        SECRET,
        NORMALISATION,
    )


def _composed(run: TrainingNode, t: int, each: int) -> str:
    """Return how many rounds or blocks compose, `each` of them for every allocation, as text."""
    n = run.training.iterations
    if n != "solve":
        return str(run.count * n // t * each)
    times = run.count if each == t else run.count * each
    return ("" if times == 1 else f"{times} × ") + ("n" if each == t else f"n/{t}")


class RandomAllocationPlan(SamplerPlan[RandomAllocation]):
    """Allocations, which compose or are sampled."""

    round_by_round: ClassVar[bool] = True
    states_probability: ClassVar[bool] = False

    def theorem(self) -> Theorem:
        """Return the composition, for any k; or the sampled pair if samples are requested, or needed."""
        if self.with_matrix() or self.asked.accounting.method == "monte-carlo" or self.mirrored() or self._too_wide():
            return SampledAllocations(self.asked, self.node, self)
        return self

    def _too_wide(self) -> bool:
        """Whether the document states a tolerance that samples meet and blocks do not, and asks what samples can answer."""
        accounting, blank = self.asked.accounting, self.asked.blank
        return (
            accounting.method == "auto"
            and (accounting.tolerance or 0.0) >= SAMPLED_TOLERANCE
            and 1 < self.sampler.participations < self.sampler.iterations_per_allocation
            and not self.node.path
            and (self.node.noise.multiplier == "solve" or number(self.node.noise.multiplier) >= LEAST_NOISE)
            and (blank is None or blank[-1] in ("multiplier", "epsilon", "delta"))
            and self.asked.privacy.risk is None
        )

    @property
    def covers_matrices(self) -> bool:
        """Whether a matrix is covered: a banded one is, and `refusals` says of which size."""
        return self.node.matrix.banded

    def with_matrix(self) -> bool:
        """Whether the noise of the rounds is correlated."""
        return self.node.matrix.kind != "identity"

    def mirrored(self) -> bool:
        """Whether a record is replaced, and its rounds are secret."""
        return moves(self.asked) == 2 and self.sampler.participations < self.sampler.iterations_per_allocation

    def words(self) -> Reduction:
        """Return the theorem: (1/T) Σ_i N(e_i, σ²I) against N(0, σ²I) for each allocation, or for each of its k blocks."""
        t, k, sigma = (
            self.sampler.iterations_per_allocation,
            self.sampler.participations,
            value_or_symbol(self.node.noise.multiplier, "σ"),
        )
        exact = k in (1, t)
        length = f"{t}" if exact else f"{t // k}" if t % k == 0 else f"{t // k} or {t // k + 1}"
        return Reduction(
            path=self.node.path,
            subject=f"random allocation of {k} of {t} rounds",
            theorem="mixture over the rounds of an allocation"
            if exact
            else "composition of allocations to blocks of rounds",
            source=ONE_OF_MANY if exact else BLOCKS,
            pair=f"(1/T) Σ_i N(e_i, {sigma}²I) against N(0, {sigma}²I), T = {length}"
            if moves(self.asked) == 1
            else f"N(1, {sigma}²) against N(−1, {sigma}²)",
            rounds=_composed(self.node, t, k),
            tight=exact,
            remark=None if exact else f"{GIVEN_UP} {SAMPLES}",
            assumed=_assumptions(self.asked.privacy, self.node, self.sampler),
            lower_end=None if exact else LOWER_END,
        )

    def bounds(self) -> DirectedBounds:
        """Return an allocation to one round for each block; with several blocks, the lower bound uses two data sets."""
        t, k, sigma = (
            self.sampler.iterations_per_allocation,
            self.sampler.participations,
            number(self.node.noise.multiplier),
        )
        count = self.node.count * number(self.node.training.iterations) // t
        if k == t:
            # A record is in every round.
            part = GaussianProfile(float(moves(self.asked)), sigma)
            return tight(part, part, count * t)
        square = 1.0 / (sigma * sigma)
        sizes = [(t // k, k - t % k), (t // k + 1, t % k)]
        above = combine(
            [allocation(self.asked, ((square, size),), count * blocks) for size, blocks in sizes if blocks],
            merge_gaussians=False,
        )
        if k == 1:
            return above
        # The lower bound is for two data sets. If the core makes no law for them, all t rounds: N(k, tσ²) against N(0, tσ²).
        below = several(self.asked, square, t, k) or 2 * (GaussianProfile(k * (1.0 - ROUNDING), sigma * t**0.5),)
        lower = tight(*below, count)
        return {side: Bounds(above[side].upper, lower[side].lower, above[side].inner) for side in above}

    def refusals(self) -> list[Problem]:
        """Refuse what these pairs do not cover."""
        problems = group_refusals(self)
        batch = self.node.at("training", "expected_batch_size")
        if self.with_matrix():
            problems += self._matrix_refusals()
        if self.asked.blank == batch:
            message = (
                "the expected batch size follows from the allocation, k of every t rounds, so it cannot be the blank"
            )
            allowed = f"{OTHER_BLANKS}, or at training.iterations"
            problems.append(self.asked.refusal(batch, message, allowed=allowed))
        return problems

    def _matrix_refusals(self) -> list[Problem]:
        """Refuse matrices under which the participations that a column reaches are too many to count, or not random at all."""
        t, k = self.sampler.iterations_per_allocation, self.sampler.participations
        bands, n = self.node.matrix.diagonals() or 1, self.node.training.iterations
        path = self.node.at("matrix", "kind")
        if k == t:
            message = f"a record takes part in all of every {t} rounds, so nothing is sampled: use kind: none"
            return [self.asked.refusal(self.node.at("sampler", "kind"), message, allowed="none")]
        rounds = t if n == "solve" else n
        if (k + 1) * 2**bands * rounds <= MOST_WAYS:
            return []
        message = (
            f"with {bands} bands and {k} participations of a record the rounds that a column reaches have too many patterns: "
            f"(k + 1)·2^bands times {rounds} rounds may be {MOST_WAYS:_} at most; use fewer bands, or balls-in-bins"
        )
        return [self.asked.refusal(path, message, allowed="fewer bands, or balls-in-bins")]

    def worst(self) -> Worst:
        """Return the case in which the rounds of a record are known."""
        t, k = self.sampler.iterations_per_allocation, self.sampler.participations
        if self.with_matrix():
            taken = number(self.node.training.iterations) // t * k
            words = f"the rounds known: {taken} of them for each record, as close as can be"
            return Worst(words, lambda: moved(self, 1, taken), self.node.count)
        taken = self.node.count * number(self.node.training.iterations) // t * k
        words = f"the rounds known: each record in {k} of every {t} rounds"
        return Worst(words, lambda: 1.0, taken)

    def rounds_at_a_time(self) -> int:
        """Return the length of an allocation, since one that has begun counts as a whole."""
        return self.sampler.iterations_per_allocation


class SampledAllocations(InPlace[RandomAllocation]):
    """The pair of whole allocations, which is sampled."""

    inner: RandomAllocationPlan
    sampled: ClassVar[bool] = True

    def words(self) -> Reduction:
        """Return the theorem of the sampled pair: Σ_x w_x N(x, σ²I) against N(0, σ²I), or its mirror image."""
        t, k = self.sampler.iterations_per_allocation, self.sampler.participations
        sigma, mirrored = value_or_symbol(self.node.noise.multiplier, "σ"), self.inner.mirrored()
        shift, subject = "x", f"random allocation of {k} of {t} rounds"
        theorem = f"dominating pair of an allocation: {'mixtures' if mirrored else 'a mixture'} over the choices of its rounds"
        source, rounds, patterns = MIRRORED if mirrored else PAIR, _composed(self.node, t, 1), f"{k} of {t} rounds"
        if self.inner.with_matrix():
            shift, subject = "Cx", f"{subject}, {matrix_plan(self.inner).text()}"
            theorem = "dominating pair on the whole run: mixtures over participation patterns"
            source, rounds, patterns = PATTERNS, rounds_text(self.node), f"{k} of every {t} rounds"
        other = f"Σ_x w_x N(−{shift}, {sigma}²I)" if mirrored else f"N(0, {sigma}²I)"
        return Reduction(
            path=self.node.path,
            subject=subject,
            theorem=theorem,
            source=source,
            pair=f"Σ_x w_x N({shift}, {sigma}²I) against {other}; x = {patterns}, all choices equally likely",
            rounds=rounds,
            tight=True,
            remark=None,
            assumed=_assumptions(self.asked.privacy, self.node, self.sampler),
        )

    def mechanism(self) -> SampledMechanism:
        """Return the mechanism to sample: all allocations of a run, with the rounds that bound it without samples."""
        t, k = self.sampler.iterations_per_allocation, self.sampler.participations
        if self.inner.with_matrix():
            return self._with_matrix(t, k)
        # 1/σ is rounded up, which means less noise: the mechanism is then no more private.
        unit = math.nextafter(1.0 / number(self.node.noise.multiplier), math.inf)
        recipe: Recipe[_core.Sampled] = Recipe("Sampled.allocation", (t, k, unit))
        directions, cost = sampled_directions(self.asked.privacy.adjacency), (ROUND_COST + TAKEN_COST * k) * t
        allocated = SampledMechanism(recipe, directions, t, cost, recipe.core.plain_parameter)
        run = together([(allocated, number(self.node.training.iterations) // t)])
        blocks = self.inner.on(replace(self.node, count=1)).bounds()
        # A replaced record is bounded by way of a run without it: see the core's `proposals::replicated`.
        known: tuple[Direction, ...] = ("add",) if self.inner.mirrored() else directions
        return replace(run, composed={side: blocks[side].upper for side in known})

    def _with_matrix(self, t: int, k: int) -> SampledMechanism:
        """Return the mechanism of a whole run with a matrix."""
        n, directions = number(self.node.training.iterations), sampled_directions(self.asked.privacy.adjacency)
        coefficients = tuple(scaled_coefficients(self.inner, number(self.node.noise.multiplier)))
        recipe: Recipe[_core.Sampled] = Recipe("Sampled.allocated", (coefficients, n, t, k))
        cost = (ROUND_COST + WAY_COST * (k + 1) * 2 ** len(coefficients)) * n
        return SampledMechanism(recipe, directions, n, cost, recipe.core.plain_parameter)

    def refusals(self) -> list[Problem]:
        """Refuse what the pair of an allocation does not cover, or what needs no samples."""
        t, k = self.sampler.iterations_per_allocation, self.sampler.participations
        problems = self.inner.refusals()
        if self.inner.mirrored() or self.inner.with_matrix():
            if self.asked.accounting.method == "pld":
                what = (
                    "allocations under a matrix have"
                    if self.inner.with_matrix()
                    else ("the pair of a replaced record under random allocation has")
                )
                message = f"{what} no privacy loss distribution that is implemented, so the run is sampled"
                path = ("accounting", "method")
                problems.append(self.asked.refusal(path, message, allowed="auto or monte-carlo"))
        elif k in (1, t):
            exact = f"allocations of {k} of {t} rounds compose exactly without samples"
            problems += refused_samples(self.asked, f"{exact}: samples would not make the bound tighter")
        return [*problems, *sampled_blanks(self.asked)]
