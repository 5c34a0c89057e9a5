"""Sampling without replacement: batches of a fixed size.

**With a matrix**, for one of n records that is added or removed. Let S_1, S_2, … be independent uniform sequences of B of
the other n − 1 records, and x_1, x_2, … independent coins with probability B/n. Where x_i = 1, the record takes the last
place of S_i. So batches are drawn as the sampler draws them from n records; without the record they are the S_i, as it
draws them from n − 1. Given all S_i, which are as likely on both data sets and independent of x, the two runs differ by
Σ_j C_ij x_j (g_j − y_j) in row i: g_j is the record's gradient and y_j that of the last one of S_j. Both may depend on
all outputs before, and their difference has a norm of at most 2. By joint convexity in the S_i the bound for each of them
is a bound, and that is the one of `pyaccount.plan.samplers.whole_run` for gradients of norm 2 and independent coins:
Poisson sampling with half of the noise. It is attained if the record contributes 1 and all others −1. A larger n only
makes participations rarer: x times further independent coins, which are public, moves no row by more.

If the record is replaced or set to zero, both data sets have it in the same rounds, and patterns stand on both sides:
such runs are refused. The mirror image, Σ_x w_x N(2Cx) against Σ_x w_x N(−2Cx), bounds them, but it is far from attained,
since no y_j opposes both records: without a matrix, where the truth is known, it has 1.07 times the true ε at a rate of 0.01,
σ = 1 and 500 rounds, and 1.97 times at a rate of 0.05 and σ = 4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pyaccount.directions import Direction
from pyaccount.document.samplers import FixedSize
from pyaccount.document.words import Assumed
from pyaccount.errors import Path, Problem
from pyaccount.plan.common import number, rounds, value_or_symbol
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.plan.samplers.base import Worst, public_participation
from pyaccount.plan.samplers.fixed_draws import DISPLACEMENT, LEAST_SIZE, FixedDrawsPlan
from pyaccount.plan.samplers.poisson import PoissonPlan
from pyaccount.plan.theorem import EVERY_ROUND, Reduction, Theorem


class FixedSizePlan(FixedDrawsPlan[FixedSize]):
    """Batches that are uniform subsets of the data set, of a fixed size."""

    core: ClassVar[str] = "fixed-size"
    scheduled_rates: ClassVar[tuple[str, ...]] = ("expected_batch_size",)
    called: ClassVar[str] = "fixed-size batches without replacement"
    symbols: ClassVar[str] = "Hyp(j; {k} of {n}, {m} drawn)"
    drawn: ClassVar[Assumed] = Assumed(
        "Every batch is a uniformly random subset of exactly the stated size, drawn afresh and independently for each "
        "iteration; going through a shuffled data set in order does not satisfy this.",
        "Every batch is a new random subset of the stated size, never by shuffling.",
    )
    once: ClassVar[bool] = True
    tight_source: ClassVar[str] = (
        "Ganesh 2024 (arXiv:2401.10294), Theorem 3.3; attained by gradients +1 and −1 (its Section 3.3)"
    )

    @property
    def covers_matrices(self) -> bool:
        """Whether a matrix is covered: what is not is refused by the theorem for it."""
        return True

    def theorem(self) -> Theorem:
        """Return the analysis of single rounds; with a matrix, that of the whole run."""
        return self if self.node.matrix.kind == "identity" else FixedSizeRun(self.asked, self.node)

    def worst(self) -> Worst:
        """Return that a record is in every round."""
        return Worst(EVERY_ROUND, lambda: 1.0, rounds(self.node))

    def distinct_drawn(self) -> tuple[int, Path]:
        """Return the size of the batch, whose records are all distinct, and its field."""
        return self.node.batch_size(), self.node.at("training", "expected_batch_size")

    def largest_batch(self) -> int:
        """Return the size of the data set; under add-remove that of the smaller of two neighbours."""
        records, privacy = super(FixedDrawsPlan, self).largest_batch(), self.asked.privacy
        if privacy.adjacency != "add-remove":
            return records
        return records - number(privacy.group_size)


class FixedSizeRun(PoissonPlan):
    """A run with a matrix, by the pair on the whole run of the head of this module."""

    def unit_refusals(self) -> list[Problem]:
        """Refuse records that are changed, groups, and batches that the smaller data set cannot fill."""
        privacy = self.asked.privacy
        if privacy.adjacency != "add-remove":
            message = (
                "with a matrix, batches of a fixed size are analysed only if a record is added or removed: no useful bound is "
                "known for one that is changed; use add-remove, or the sampler poisson"
            )
            return [self.asked.refusal(("privacy", "adjacency"), message, allowed="add-remove")]
        if privacy.group_size != 1:
            message = (
                "with a matrix, batches of a fixed size are analysed for single records: those of a group are not drawn "
                "independently of one another; use poisson"
            )
            return [self.asked.refusal(("privacy", "group_size"), message, allowed="1")]
        rest = number(self.node.training.dataset_size) - 1
        if self.node.training.expected_batch_size != "solve" and self.node.batch_size() > rest:
            message = f"under add-remove the smaller data set has {rest} records, fewer than a batch; draw fewer"
            path = self.node.at("training", "expected_batch_size")
            return [self.asked.refusal(path, message, allowed=f"at most {max(rest, 0)}")]
        return []

    def subject(self) -> str:
        """Return the name of the sampling."""
        return FixedSizePlan.called

    def words(self) -> Reduction:
        """Return the theorem of the whole run, with doubled shifts."""
        usual, sigma = super().words(), value_or_symbol(self.node.noise.multiplier, "σ")
        return replace(
            usual,
            theorem="dominating pair on the whole run with doubled shifts: mixtures over participation patterns",
            source=f"{usual.source} of the record and −1 of all others; the coupling: pyaccount.plan.samplers.fixed_size",
            pair=f"Σ_x w_x N(2Cx, {sigma}²) against N(0, {sigma}²); {self.law()}",
            remark=DISPLACEMENT,
            assumed=(*usual.assumed, LEAST_SIZE),
        )

    def sampling(self) -> Assumed:
        """Return how batches must be drawn."""
        return FixedSizePlan.drawn

    def untruncated(self, sigma: float, directions: tuple[Direction, ...]) -> SampledMechanism:
        """Return the mechanism of Poisson sampling with half of the noise."""
        return super().untruncated(0.5 * sigma, directions)

    def worst(self) -> Worst:
        """Return the case in which the record is in every batch, in the place of another one that opposes it."""
        found: Worst = public_participation(self)
        return Worst(f"{found.words}, in another one's place", lambda: 2.0 * found.norm(), found.count)
