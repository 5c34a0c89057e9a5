"""Several Gaussian releases of one batch, analysed as one release. The proofs are in `document.noise`.

If the noise of the rounds is independent, a sampler's theorem gets a run with one release of the effective multiplier, so
no sampler needs to know of several releases. The multiplier is rounded down for upper bounds and up for lower bounds. A
matrix correlates the noise of the main release only, so there is no such multiplier: some samplers analyse all releases
stacked (`SamplerPlan.stacks`), and for the others they are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyaccount.document.tree import TrainingNode
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import NOISE, number
from pyaccount.plan.protection import RunCase
from pyaccount.plan.rounds import Bounds, DirectedBounds
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.plan.samplers.base import multipliers
from pyaccount.plan.theorem import Around, Reduction
from pyaccount.rounding import shortest

MAIN_NOISE = Assumed(
    "Fresh Gaussian noise with standard deviation σ times the clip norm is added to every sum of the contributions, drawn from a "
    "generator that cannot be predicted.",
    NOISE.short,
)
#: What else may be released, and what later rounds may depend on, as an assumption.
NOTHING_ELSE = Assumed(
    "Nothing else is released of a batch. How later rounds clip and what they release may follow from what was released before, "
    "such as a clip norm from counts; no release of a round changes another one of the same round.",
    "Nothing else is released of a batch; releases change later rounds only.",
)


@dataclass(frozen=True, repr=False)
class SeveralReleases(RunCase, Around):
    """The theorem of a sampler for batches of which several sums are released.

    `stacks` says whether the inner theorem itself has the other releases if there is a matrix.
    """

    node: TrainingNode
    stacks: bool = False

    def words(self) -> Reduction:
        """Return the sampler's theorem, worded for the stacked releases."""
        open_ = self.node.noise.multiplier == "solve"
        stacked = self.node.matrix.kind != "identity"
        usual = self.inner.on(self.node if open_ or stacked else _with(self.node, multipliers(self.node)[0])).words()
        count = 1 + len(self.node.noise.also)
        of = "the effective multiplier of all releases, (Σ σ_i⁻²)^(−1/2)"
        remark = (
            f"σ here is {of}."
            if open_
            else f"The multiplier here is {of}, of σ = {number(self.node.noise.multiplier):g}."
        )
        if stacked:
            remark = (
                "Every participation also adds Σ(σ/σ_i)² to the square of what moves, for the other releases: the same "
                "participations x move all of them."
            )
        return replace(
            usual,
            subject=f"{usual.subject}, {count} releases of each batch",
            source=f"{usual.source}; releases stacked in units of their noise: Andrew et al. 2021 (arXiv:1905.03871), Theorem 1",
            remark=remark if usual.remark is None else f"{usual.remark} {remark}",
            assumed=(
                *(MAIN_NOISE if text == NOISE else text for text in usual.assumed),
                *(
                    Assumed(
                        f"Each round also releases, of the same batch, {release.what}: a sum to which each record contributes at "
                        f"most a clip norm of its own, with fresh Gaussian noise of standard deviation "
                        f"{shortest(release.multiplier)} times that, independent of all other noise.",
                        f"A further sum of each batch is clipped, with own noise: {shortest(release.multiplier)} × its norm.",
                    )
                    for release in self.node.noise.also
                ),
                NOTHING_ELSE,
            ),
        )

    def bounds(self) -> DirectedBounds:
        """Return the rounds with the effective multiplier, rounded to the safe side for each bound."""
        if self.node.matrix.kind != "identity":
            return self.inner.bounds()
        below, above = multipliers(self.node)
        upper = self.inner.on(_with(self.node, below)).bounds()
        lower = self.inner.on(_with(self.node, above)).bounds()
        return {
            direction: Bounds(upper[direction].upper, lower[direction].lower, lower[direction].inner)
            for direction in upper
        }

    def mechanism(self) -> SampledMechanism:
        """Return the mechanism to sample, with no more noise than there is; for lower bounds with no less."""
        if self.node.matrix.kind != "identity":
            return self.inner.mechanism()
        below, above = multipliers(self.node)
        least = self.inner.on(_with(self.node, above)).mechanism()
        return replace(self.inner.on(_with(self.node, below)).mechanism(), lower=least.lower or least)

    def refusals(self) -> list[Problem]:
        """Refuse what the sampler's analysis refuses, and a matrix if the sampler does not stack other releases with it."""
        problems = self.inner.refusals()
        if self.node.matrix.kind == "identity" or self.stacks:
            return problems
        message = (
            "several releases of a batch are analysed beside a matrix, which correlates the noise of the main release only, "
            "without sampling, with balls-in-bins, and with cyclic-poisson from fixed parts, all without truncation: use one of "
            "these, leave the matrix out, or release the other sums as another phase, of batches that are drawn for them alone"
        )
        allowed = "none, balls-in-bins or cyclic-poisson as the sampler; no matrix, or one release"
        return [
            *problems,
            self.asked.refusal(self.node.at("noise", "also"), message, allowed=allowed),
        ]


def _with(run: TrainingNode, multiplier: float) -> TrainingNode:
    """Return the run with a single release of this multiplier."""
    return replace(run, noise=run.noise.model_copy(update={"multiplier": multiplier, "also": ()}))
