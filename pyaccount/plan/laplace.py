"""Laplace noise on a single number that is released in each round: without sampling, without a matrix."""

from __future__ import annotations

from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import moves, neighbours_assumption, number, refused_samples, value_or_symbol
from pyaccount.plan.protection import RunCase
from pyaccount.plan.rounds import DirectedBounds, tight
from pyaccount.plan.samplers import sampler_plan
from pyaccount.plan.samplers.deterministic import order_assumptions
from pyaccount.plan.theorem import Reduction, Theorem
from pyaccount.profiles import LaplaceProfile

SCALAR = Assumed(
    "Each release is a single number, the sum of contributions clipped to [−1, 1] in units of the clip norm; nothing else about "
    "them is released.",
    "Each release is one number: a sum of contributions, each clipped.",
)
NOISE = Assumed(
    "Fresh Laplace noise with scale b times the clip norm is added to every released number, drawn from a generator that cannot "
    "be predicted and at a resolution that does not reveal the number's last digits.",
    "Every number gets fresh Laplace noise, b × clip norm, fine to its digits.",
)
SCALE = (
    "With Laplace noise the multiplier is the scale b of the noise added to each released number, in units of the clip norm "
    "of one record."
)


class LaplaceTheorem(RunCase, Theorem):
    """Laplace noise on a number, without sampling and without a matrix."""

    def words(self) -> Reduction:
        """Return the theorem: Lap(0, b) against Lap(k, b) (2k under replace-one) in every round of the group."""
        privacy = self.asked.privacy
        factor = moves(self.asked)
        k, scale = value_or_symbol(privacy.group_size, "k"), value_or_symbol(self.node.noise.multiplier, "b")
        m = "m" if self.node.training.iterations == "solve" else str(self.node.participations())
        return Reduction(
            path=self.node.path,
            subject="a number with Laplace noise",
            theorem="the Laplace mechanism",
            source="Dwork, McSherry, Nissim & Smith 2006; attained when the records of the group share their rounds",
            pair=f"Lap({'' if factor == 1 else '2·'}{k}, {scale}) against Lap(0, {scale})",
            rounds=m if self.node.count == 1 else f"{self.node.count} × {m}",
            tight=True,
            remark=None,
            assumed=(neighbours_assumption(privacy), SCALAR, NOISE, *order_assumptions(self.node, m)),
        )

    def bounds(self) -> DirectedBounds:
        """Return one Laplace release for each round in which the group takes part."""
        sensitivity = moves(self.asked) * number(self.asked.privacy.group_size)
        part = LaplaceProfile(float(sensitivity), number(self.node.noise.multiplier))
        return tight(part, part, self.node.count * self.node.participations())

    def refusals(self) -> list[Problem]:
        """Refuse everything except releases of a number without sampling."""
        problems = []
        if self.node.sampler.kind != "none":
            problems.append(
                self.asked.refusal(
                    self.node.at("sampler", "kind"),
                    "the numbers of a training run with Laplace noise are analysed without sampling; of Poisson samples write "
                    f"mechanism: {{kind: laplace, sensitivity: {moves(self.asked)}}}, since a record moves a sum by so many clip "
                    f"norms under {self.asked.privacy.adjacency}, with the scale in clip norms, and the sampler and the count of "
                    "runs beside it; for one run on a batch of another kind, write a document of kind amplification",
                    allowed="none",
                )
            )
        if self.node.matrix.kind != "identity":
            message = "the noise of Laplace releases is independent: leave the matrix out"
            problems.append(self.asked.refusal(self.node.at("matrix", "kind"), message, allowed="identity"))
        return [*problems, *refused_samples(self.asked, "Laplace releases are composed, not sampled")]

    def worst_words(self) -> str:
        """Describe the order that is fixed beforehand."""
        return sampler_plan(self).worst_words()

    def public(self) -> DirectedBounds:
        """Return the rounds of the run itself, since its participations are public."""
        return self.bounds()
