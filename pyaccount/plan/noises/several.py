"""Several Gaussian releases of one batch, analysed as one release. The proofs are in `document.releases`.

If the noise of the rounds is independent, a sampler's theorem gets a body with one release of the effective multiplier, so
no sampler needs to know of several releases. The multiplier is rounded down for upper bounds and up for lower bounds. A
matrix correlates the noise of the main release only, so there is no such multiplier: some samplers analyse all releases
stacked (`SamplerPlan.stacks`), and for the others they are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.document.releases import effective
from pyaccount.plan.common import NOISE, number
from pyaccount.plan.reduction import Analysis
from pyaccount.plan.rounds import Bounds
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Problem
    from pyaccount.plan.reduction import Reduction
    from pyaccount.plan.rounds import DirectedBounds
    from pyaccount.plan.sampled import SampledMechanism

MAIN_NOISE = (
    "Fresh Gaussian noise with standard deviation σ times the clip norm is added to every sum of the contributions, drawn from a "
    "generator that cannot be predicted."
)
#: What else may be released, and what later rounds may depend on, as an assumption.
NOTHING_ELSE = (
    "Nothing else is released of a batch. How later rounds clip and what they release may follow from what was released before, "
    "such as a clip norm from counts; no release of a round changes another one of the same round."
)


def multipliers(body: Body) -> tuple[float, float]:
    """Return the effective multiplier of a body whose noise is known: a lower and an upper bound on it.

    With a matrix it is that of the main release, and the others are in the sensitivity.
    """
    if body.matrix.kind != "identity":
        return (number(body.noise.multiplier),) * 2
    return effective([number(body.noise.multiplier), *(release.multiplier for release in body.noise.also)])


@dataclass(frozen=True, slots=True)
class SeveralReleases:
    """The analysis of a sampler for batches of which several sums are released."""

    inner: Analysis
    #: Whether the analysis itself has the other releases if there is a matrix.
    stacks: bool = False

    def analysis(self) -> Analysis:
        """Return the analysis of all releases together."""
        return Analysis(
            self.words,
            bounds=None if self.inner.bounds is None else self.bounds,
            mechanism=None if self.inner.mechanism is None else self.mechanism,
            refusals=self.refusals,
            gaussian=self.inner.gaussian,
        )

    def words(self, document: Document, body: Body) -> Reduction:
        """Return the sampler's theorem, worded for the stacked releases."""
        open_ = body.noise.multiplier == "solve"
        stacked = body.matrix.kind != "identity"
        usual = self.inner.words(document, body if open_ or stacked else _with(body, multipliers(body)[0]))
        count = 1 + len(body.noise.also)
        of = "the effective multiplier of all releases, (Σ σ_i⁻²)^(−1/2)"
        remark = (
            f"σ here is {of}." if open_ else f"The multiplier here is {of}, of σ = {number(body.noise.multiplier):g}."
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
            assumptions=(
                *(MAIN_NOISE if text == NOISE else text for text in usual.assumptions),
                *(
                    f"Each round also releases, of the same batch, {release.what}: a sum to which each record contributes at "
                    f"most a clip norm of its own, with fresh Gaussian noise of standard deviation "
                    f"{shortest(release.multiplier)} times that, independent of all other noise."
                    for release in body.noise.also
                ),
                NOTHING_ELSE,
            ),
        )

    def bounds(self, document: Document, body: Body) -> DirectedBounds:
        """Return the rounds with the effective multiplier, rounded to the safe side for each bound."""
        assert self.inner.bounds is not None
        if body.matrix.kind != "identity":
            return self.inner.bounds(document, body)
        below, above = multipliers(body)
        upper = self.inner.bounds(document, _with(body, below))
        lower = self.inner.bounds(document, _with(body, above))
        return {
            direction: Bounds(upper[direction].upper, lower[direction].lower, lower[direction].inner)
            for direction in upper
        }

    def mechanism(self, document: Document, body: Body) -> SampledMechanism:
        """Return the mechanism to sample, with no more noise than there is; for lower bounds with no less."""
        assert self.inner.mechanism is not None
        if body.matrix.kind != "identity":
            return self.inner.mechanism(document, body)
        below, above = multipliers(body)
        least = self.inner.mechanism(document, _with(body, above))
        return replace(self.inner.mechanism(document, _with(body, below)), lower=least.lower or least)

    def refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse what the sampler's analysis refuses, and a matrix if the sampler does not stack other releases with it."""
        problems = [] if self.inner.refusals is None else self.inner.refusals(document, body)
        if body.matrix.kind == "identity" or self.stacks:
            return problems
        message = (
            "several releases of a batch are analysed beside a matrix, which correlates the noise of the main release only, "
            "without sampling, with balls-in-bins, and with cyclic-poisson from fixed parts, all without truncation: use one of "
            "these, leave the matrix out, or release the other sums as another phase, of batches that are drawn for them alone"
        )
        allowed = "none, balls-in-bins or cyclic-poisson as the sampler; no matrix, or one release"
        return [*problems, document.problem("no-valid-bound", body.at("noise", "also"), message, allowed=allowed)]


def _with(body: Body, multiplier: float) -> Body:
    """Return the body with a single release of this multiplier."""
    return replace(body, noise=body.noise.model_copy(update={"multiplier": multiplier, "also": ()}))
