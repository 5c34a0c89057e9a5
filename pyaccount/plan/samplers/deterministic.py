"""No sampling: every record takes part in rounds that are fixed beforehand. The run is one Gaussian mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount.document.samplers import Deterministic
from pyaccount.plan.common import (
    MATRIX_NOISE,
    NO_ITERATIONS,
    OTHER_BLANKS,
    basic_assumptions,
    moves,
    number,
    value_or_symbol,
)
from pyaccount.plan.matrices import matrix_plan, strategy
from pyaccount.plan.reduction import Analysis, Reduction
from pyaccount.plan.rounds import DirectedBounds, enclosed, tight
from pyaccount.plan.samplers.base import EVERY_ROUND, SamplerPlan, Worst, each_round, moved
from pyaccount.profiles import GaussianProfile
from pyaccount.rounding import down, up

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Problem
    from pyaccount.plan.matrices import Strategy


def words(document: Document, body: Body) -> Reduction:
    """Return the theorem: the sensitivity is k·max_x ‖Cx‖ over the participation patterns x (2k under replace-one).

    With C = I and m rounds it is k√m.
    """
    if body.matrix.kind != "identity":
        return _with_matrix(document, body)
    privacy = document.privacy
    factor = moves(document)
    k, sigma = value_or_symbol(privacy.group_size, "k"), value_or_symbol(body.noise.multiplier, "σ")
    per_round = k if factor == 1 else f"2·{k}"
    m = "m" if body.training.iterations == "solve" else str(body.participations())
    return Reduction(
        path=body.path,
        subject="no sampling",
        theorem="composition of Gaussian mechanisms",
        source="Dong, Roth & Su 2022, Corollary 3.3; attained when the records of the group share their rounds",
        pair=f"N({per_round}·√{m}, {sigma}²) against N(0, {sigma}²)",
        rounds=m if body.count == 1 else f"{body.count} × {m}",
        tight=True,
        remark=None,
        assumptions=_assumptions(document, body, m),
    )


def bounds(document: Document, body: Body) -> DirectedBounds:
    """Return one Gaussian mechanism for each round; with a matrix, which makes rounds dependent, one for each run."""
    group, noise = moves(document) * number(document.privacy.group_size), number(body.noise.multiplier)
    if body.matrix.kind == "identity":
        part = GaussianProfile(float(group), noise)
        return tight(part, part, body.count * body.participations())
    built = strategy(document, body)
    above, below = built.sensitivity(_separation_of(body), body.participations(), each_round(body))
    upper = GaussianProfile(group * above * (1.0 + built.slack), noise)
    lower = GaussianProfile(group * below * (1.0 - built.slack), noise)
    return enclosed((upper, upper), (lower, lower), body.count)


def refusals(document: Document, body: Body) -> list[Problem]:
    """Refuse to solve for the number of iterations with a matrix, whose size would be unknown."""
    if body.matrix.kind == "identity" or body.training.iterations != "solve":
        return []
    path = body.at("training", "iterations")
    return [document.problem("no-valid-bound", path, NO_ITERATIONS, allowed=OTHER_BLANKS)]


ANALYSIS = Analysis(words, bounds, refusals=refusals, gaussian=True)


def _with_matrix(document: Document, body: Body) -> Reduction:
    privacy = document.privacy
    factor, m = moves(document), body.participations()
    # While σ is the blank, the other releases are a term of the formula.
    open_ = bool(body.noise.also) and body.noise.multiplier == "solve"
    above, below = strategy(document, body).sensitivity(_separation_of(body), m, 0.0 if open_ else each_round(body))
    sensitivity = f"√({up(above)}² + {m}·Σ(σ/σ_i)²)" if open_ else up(above)
    attained = above == below
    k, sigma = value_or_symbol(privacy.group_size, "k"), value_or_symbol(body.noise.multiplier, "σ")
    return Reduction(
        path=body.path,
        subject=f"no sampling, {matrix_plan(body).text(body)}",
        theorem="the Gaussian mechanism with the largest sensitivity of a participation pattern",
        source=f"Choquette-Choo et al. 2023 (arXiv:2306.08153), Section 3; {_how(strategy(document, body), attained)}",
        pair=f"N({'' if factor == 1 else '2·'}{k}·{sensitivity}, {sigma}²) against N(0, {sigma}²)",
        rounds=str(body.count),
        tight=attained,
        remark=None
        if attained
        else f"The sensitivity is an upper bound; the worst rounds found reach {down(below)}, which gives the lower end.",
        assumptions=tuple(
            matrix_plan(body).noise(document, body) if text == MATRIX_NOISE else text
            for text in _assumptions(document, body, str(m))
        ),
        lower_end=None
        if attained
        else "two data sets: the group contributes 1, or what it is changed to, in the worst rounds found, and nobody else "
        "contributes. All rounds.",
    )


def _how(built: Strategy, attained: bool) -> str:
    """Return how the sensitivity was found."""
    if built.tree is not None:
        counts = "the largest sum of squared counts of a record's rounds in the blocks"
        return (
            f"{counts}{'' if attained else ', bounded from above'}: Kairouz et al. 2021 (arXiv:2103.00039), Appendix D"
        )
    if not attained:
        return "cross products of columns bounded from above, no more for each than there are other participations"
    if built.coefficients is None:
        return "the worst rounds of all, as a search found that none are worse"
    return "Kalinin & Lampert 2024 (arXiv:2405.13763), Theorem 2"


def _separation_of(body: Body) -> int:
    """Return the least distance between two participations, for a body without sampling."""
    return (body.sampler.min_separation or 1) if isinstance(body.sampler, Deterministic) else 1


def _assumptions(document: Document, body: Body, m: str) -> tuple[str, ...]:
    return (*basic_assumptions(document.privacy, body), *order_assumptions(body, m))


def order_assumptions(body: Body, m: str) -> tuple[str, ...]:
    """Return the assumptions on the order: it is fixed beforehand, with at most m participations of a record."""
    apart = _separation_of(body)
    return (
        "Which records take part in which round is fixed beforehand, does not depend on the data, and does not change for "
        "the other records when a record is added, removed or replaced.",
        f"No record takes part in more than {m} {'round' if m == '1' else 'rounds'} of a run"
        + (f", nor twice within {apart} rounds." if apart > 1 else "."),
    )


class DeterministicPlan(SamplerPlan):
    """No sampling, so that the worst case with public participations is the run itself."""

    independent_rounds: ClassVar[bool] = True
    scheduled_noise: ClassVar[bool] = True
    states_probability: ClassVar[bool] = False
    has_derivatives: ClassVar[bool] = True

    def analysis(self, document: Document, body: Body) -> Analysis:
        """Return the analysis as one Gaussian mechanism."""
        return ANALYSIS

    def stacks(self, body: Body) -> bool:
        """Return True: the sensitivity is that of all releases stacked."""
        return True

    def schedule_refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse a distance of participations: the worst rounds would then depend on the order of the schedule."""
        if _separation_of(body) == 1:
            return []
        message = (
            "which rounds with a distance are the worst is not computed for a schedule of noise: leave min_separation out, and "
            "state max_participations; the rounds with the least noise then count"
        )
        return [
            document.problem("no-valid-bound", body.at("sampler", "min_separation"), message, allowed="no distance")
        ]

    def worst(self, document: Document, body: Body) -> Worst:
        """Return the case in which a record takes part as often and at as short distances as the order allows."""
        most, apart = body.participations(), _separation_of(body)
        if body.matrix.kind == "identity":
            return Worst(_in_order(body), lambda: 1.0, body.count * most)
        return Worst(_in_order(body), lambda: moved(document, body, apart, most), body.count)

    def spaced_pattern(self, body: Body) -> tuple[int, int] | None:
        """Return the least distance and largest number of participations, which is all that is known of the order."""
        return _separation_of(body), body.participations()

    def cut(self, body: Body, rounds: int) -> dict[str, Any]:
        """Return a number of participations that is at most the number of rounds."""
        assert isinstance(body.sampler, Deterministic)
        most = body.sampler.max_participations
        return {} if most is None else {"max_participations": min(most, rounds)}


def _in_order(body: Body) -> str:
    """Return how often a record takes part, in words."""
    most, apart = body.participations(), _separation_of(body)
    if most == number(body.training.iterations):
        return f"{EVERY_ROUND}, without sampling"
    distance = f", {apart} or more apart" if apart > 1 and most > 1 else ""
    return f"each record in at most {most} {'round' if most == 1 else 'rounds'}{distance}, without sampling"


PLAN = DeterministicPlan()
