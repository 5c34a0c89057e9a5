"""Laplace noise on a single number that is released in each round: without sampling, without a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyaccount.plan.common import moves, neighbours_assumption, number, value_or_symbol
from pyaccount.plan.noises.base import NoisePlan
from pyaccount.plan.reduction import Analysis, Reduction
from pyaccount.plan.rounds import DirectedBounds, tight
from pyaccount.plan.samplers.deterministic import order_assumptions
from pyaccount.profiles import LaplaceProfile

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Problem

SCALAR = (
    "Each release is a single number, the sum of contributions clipped to [−1, 1] in units of the clip norm; nothing else about "
    "them is released."
)
NOISE = (
    "Fresh Laplace noise with scale b times the clip norm is added to every released number, drawn from a generator that cannot "
    "be predicted and at a resolution that does not reveal the number's last digits."
)
SCALE = (
    "With Laplace noise the multiplier is the scale b of the noise added to each released number, in units of the clip norm "
    "of one record."
)


def words(document: Document, body: Body) -> Reduction:
    """Return the theorem: Lap(0, b) against Lap(k, b) (2k under replace-one) in every round of the group."""
    privacy = document.privacy
    factor = moves(document)
    k, scale = value_or_symbol(privacy.group_size, "k"), value_or_symbol(body.noise.multiplier, "b")
    m = "m" if body.training.iterations == "solve" else str(body.participations())
    return Reduction(
        path=body.path,
        subject="a number with Laplace noise",
        theorem="the Laplace mechanism",
        source="Dwork, McSherry, Nissim & Smith 2006; attained when the records of the group share their rounds",
        pair=f"Lap({'' if factor == 1 else '2·'}{k}, {scale}) against Lap(0, {scale})",
        rounds=m if body.count == 1 else f"{body.count} × {m}",
        tight=True,
        remark=None,
        assumptions=(neighbours_assumption(privacy), SCALAR, NOISE, *order_assumptions(body, m)),
    )


def bounds(document: Document, body: Body) -> DirectedBounds:
    """Return one Laplace release for each round in which the group takes part."""
    sensitivity = moves(document) * number(document.privacy.group_size)
    part = LaplaceProfile(float(sensitivity), number(body.noise.multiplier))
    return tight(part, part, body.count * body.participations())


def refusals(document: Document, body: Body) -> list[Problem]:
    """Refuse everything except releases of a number without sampling."""
    problems = []
    if body.sampler.kind != "none":
        problems.append(
            document.problem(
                "no-valid-bound",
                body.at("sampler", "kind"),
                "Laplace noise is analysed for numbers that are released without sampling; for a Laplace mechanism that is run "
                "once on a sampled batch, write a document of kind amplification",
                allowed="none",
            )
        )
    if body.matrix.kind != "identity":
        message = "the noise of Laplace releases is independent: leave the matrix out"
        problems.append(document.problem("no-valid-bound", body.at("matrix", "kind"), message, allowed="identity"))
    if document.accounting.method == "monte-carlo":
        message = "Laplace releases are composed, not sampled"
        problems.append(document.problem("no-valid-bound", ("accounting", "method"), message, allowed="auto or pld"))
    return problems


ANALYSIS = Analysis(words, bounds, refusals=refusals)


class LaplacePlan(NoisePlan):
    """Laplace noise, which is analysed without sampling and without a matrix."""

    sums_have_error: ClassVar[bool] = False

    def analysis(self, document: Document, body: Body) -> Analysis:
        """Return the analysis of Laplace releases; it refuses samplers."""
        return ANALYSIS

    def public(self, document: Document, body: Body) -> DirectedBounds:
        """Return the rounds of the run itself, since its participations are public."""
        return bounds(document, body)

    def convention(self, document: Document) -> str:
        """Return the sentence about the scale b, which is the same for every document."""
        return SCALE


PLAN = LaplacePlan()
