"""Several Gaussian releases of one batch, analysed as one: `document.releases` has the proof.

What a sampler's theorem is told is a body with the effective multiplier, so that no sampler knows of several releases: from
below for the upper bounds, from above for the lower ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.document.releases import effective
from pyaccount.plan.common import NOISE, number
from pyaccount.plan.reduction import Analysis
from pyaccount.plan.rounds import Bounds
from pyaccount.rounding import plain

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.errors import Problem
    from pyaccount.plan.reduction import Reduction
    from pyaccount.plan.rounds import DirectedBounds
    from pyaccount.plan.sampled import SampledMechanism

MAIN_NOISE = (
    "Fresh Gaussian noise with standard deviation σ times the clip norm is added to every sum of the contributions, drawn from a "
    "generator that cannot be predicted."
)
#: What the noise may follow from, as an assumption.
NOTHING_ELSE = (
    "Nothing else is released of a batch. How later rounds clip and what they release may follow from what was released before, "
    "such as a clip norm from counts; no release of a round changes another one of the same round."
)


def multipliers(body: Body) -> tuple[float, float]:
    """The effective multiplier of a body whose noise is known, from below and from above."""
    return effective([number(body.noise.multiplier), *(release.multiplier for release in body.noise.also)])


@dataclass(frozen=True, slots=True)
class Joined:
    """A sampler's analysis of batches of which several sums are released."""

    inner: Analysis

    def analysis(self) -> Analysis:
        """The analysis of all releases together."""
        return Analysis(
            self.words,
            bounds=None if self.inner.bounds is None else self.bounds,
            mechanism=None if self.inner.mechanism is None else self.mechanism,
            refusals=self.refusals,
            gaussian=self.inner.gaussian,
        )

    def words(self, document: Document, body: Body) -> Reduction:
        """The sampler's, for the stacked releases."""
        open_ = body.noise.multiplier == "solve"
        told = self.inner.words(document, body if open_ else _with(body, multipliers(body)[0]))
        count = 1 + len(body.noise.also)
        of = "the effective multiplier of all releases, (Σ σ_i⁻²)^(−1/2)"
        remark = (
            f"σ here is {of}." if open_ else f"The multiplier here is {of}, of σ = {number(body.noise.multiplier):g}."
        )
        return replace(
            told,
            subject=f"{told.subject}, {count} releases of each batch",
            source=f"{told.source}; releases stacked in units of their noise: Andrew et al. 2021 (arXiv:1905.03871), Theorem 1",
            remark=remark if told.remark is None else f"{told.remark} {remark}",
            assumptions=(
                *(MAIN_NOISE if text == NOISE else text for text in told.assumptions),
                *(
                    f"Each round also releases, of the same batch, {release.what}: a sum to which each record contributes at "
                    f"most a clip norm of its own, with fresh Gaussian noise of standard deviation {plain(release.multiplier)} "
                    "times that, independent of all other noise."
                    for release in body.noise.also
                ),
                NOTHING_ELSE,
            ),
        )

    def bounds(self, document: Document, body: Body) -> DirectedBounds:
        """The rounds with the effective multiplier, each end on its safe side."""
        assert self.inner.bounds is not None
        below, above = multipliers(body)
        upper = self.inner.bounds(document, _with(body, below))
        lower = self.inner.bounds(document, _with(body, above))
        return {side: Bounds(upper[side].upper, lower[side].lower, lower[side].inner) for side in upper}

    def mechanism(self, document: Document, body: Body) -> SampledMechanism:
        """What is sampled, with no more noise than there is; for lower ends with no less."""
        assert self.inner.mechanism is not None
        below, above = multipliers(body)
        least = self.inner.mechanism(document, _with(body, above))
        return replace(self.inner.mechanism(document, _with(body, below)), lower=least.lower or least)

    def refusals(self, document: Document, body: Body) -> list[Problem]:
        """A matrix, which correlates the noise of one release alone; and what the sampler's analysis does not cover."""
        problems = [] if self.inner.refusals is None else self.inner.refusals(document, body)
        if body.matrix.kind == "identity":
            return problems
        message = (
            "several releases of a batch are analysed where the noise of every round is independent, and the matrix correlates "
            "that of the main one: leave the matrix out, or release the other sums of batches that are drawn for them "
            "alone, as another phase"
        )
        return [
            *problems,
            document.problem("no-valid-bound", body.at("noise", "also"), message, allowed="no matrix, or one release"),
        ]


def _with(body: Body, multiplier: float) -> Body:
    """The body with one release of this multiplier."""
    return replace(body, noise=body.noise.model_copy(update={"multiplier": multiplier, "also": ()}))
