"""No sampling: every record takes part in rounds that are fixed beforehand. The run is one Gaussian mechanism."""

from __future__ import annotations

from typing import Any, ClassVar

from pyaccount.document.samplers import Deterministic
from pyaccount.document.tree import TrainingNode
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import (
    MATRIX_NOISE,
    NO_ITERATIONS,
    OTHER_BLANKS,
    basic_assumptions,
    moves,
    number,
    value_or_symbol,
)
from pyaccount.plan.matrices import Strategy, matrix_plan, strategy
from pyaccount.plan.rounds import DirectedBounds, enclosed, tight
from pyaccount.plan.samplers.base import SamplerPlan, Worst, each_round, moved
from pyaccount.plan.theorem import EVERY_ROUND, Reduction
from pyaccount.profiles import GaussianProfile
from pyaccount.rounding import down, up


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


def _separation_of(run: TrainingNode) -> int:
    """Return the least distance between two participations, for a run without sampling."""
    return run.sampler.least_distance


def order_assumptions(run: TrainingNode, m: str) -> tuple[Assumed, ...]:
    """Return the assumptions on the order: it is fixed beforehand, with at most m participations of a record."""
    apart = _separation_of(run)
    most = f"No record takes part in more than {m} {'round' if m == '1' else 'rounds'} of a run"
    most += f", nor twice within {apart} rounds." if apart > 1 else "."
    return (
        Assumed(
            "Which records take part in which round is fixed beforehand, does not depend on the data, and does not change for "
            "the other records when a record is added, removed or replaced.",
            "Who is in which round is fixed beforehand, whatever the data or the others.",
        ),
        Assumed(most, most.replace("takes part in", "is in").replace(" of a run", "")),
    )


class DeterministicPlan(SamplerPlan[Deterministic]):
    """No sampling, so that the worst case with public participations is the run itself."""

    independent_rounds: ClassVar[bool] = True
    scheduled_noise: ClassVar[bool] = True
    states_probability: ClassVar[bool] = False
    has_derivatives: ClassVar[bool] = True

    @property
    def gaussian(self) -> bool:
        """Return True: the run is one Gaussian mechanism."""
        return True

    def words(self) -> Reduction:
        """Return the theorem: the sensitivity is k·max_x ‖Cx‖ over the participation patterns x (2k under replace-one).

        With C = I and m rounds it is k√m.
        """
        if self.node.matrix.kind != "identity":
            return self._with_matrix()
        privacy = self.asked.privacy
        factor = moves(self.asked)
        k, sigma = value_or_symbol(privacy.group_size, "k"), value_or_symbol(self.node.noise.multiplier, "σ")
        per_round = k if factor == 1 else f"2·{k}"
        m = "m" if self.node.training.iterations == "solve" else str(self.node.participations())
        return Reduction(
            path=self.node.path,
            subject="no sampling",
            theorem="composition of Gaussian mechanisms",
            source="Dong, Roth & Su 2022, Corollary 3.3; attained when the records of the group share their rounds",
            pair=f"N({per_round}·√{m}, {sigma}²) against N(0, {sigma}²)",
            rounds=m if self.node.count == 1 else f"{self.node.count} × {m}",
            tight=True,
            remark=None,
            assumed=self._assumptions(m),
        )

    def _with_matrix(self) -> Reduction:
        privacy = self.asked.privacy
        factor, m = moves(self.asked), self.node.participations()
        # While σ is the blank, the other releases are a term of the formula.
        open_ = bool(self.node.noise.also) and self.node.noise.multiplier == "solve"
        above, below = strategy(self).sensitivity(_separation_of(self.node), m, 0.0 if open_ else each_round(self.node))
        sensitivity = f"√({up(above)}² + {m}·Σ(σ/σ_i)²)" if open_ else up(above)
        attained = above == below
        k, sigma = value_or_symbol(privacy.group_size, "k"), value_or_symbol(self.node.noise.multiplier, "σ")
        return Reduction(
            path=self.node.path,
            subject=f"no sampling, {matrix_plan(self).text()}",
            theorem="the Gaussian mechanism with the largest sensitivity of a participation pattern",
            source=f"Choquette-Choo et al. 2023 (arXiv:2306.08153), Section 3; {_how(strategy(self), attained)}",
            pair=f"N({'' if factor == 1 else '2·'}{k}·{sensitivity}, {sigma}²) against N(0, {sigma}²)",
            rounds=str(self.node.count),
            tight=attained,
            remark=None
            if attained
            else f"The sensitivity is an upper bound; the worst rounds found reach {down(below)}, which gives the lower end.",
            assumed=tuple(
                matrix_plan(self).noise() if text == MATRIX_NOISE else text for text in self._assumptions(str(m))
            ),
            lower_end=None
            if attained
            else "two data sets: the group contributes 1, or what it is changed to, in the worst rounds found, and nobody else "
            "contributes. All rounds.",
        )

    def _assumptions(self, m: str) -> tuple[Assumed, ...]:
        return (*basic_assumptions(self.asked.privacy, self.node), *order_assumptions(self.node, m))

    def bounds(self) -> DirectedBounds:
        """Return one Gaussian mechanism for each round; with a matrix, which makes rounds dependent, one for each run."""
        group, noise = moves(self.asked) * number(self.asked.privacy.group_size), number(self.node.noise.multiplier)
        if self.node.matrix.kind == "identity":
            part = GaussianProfile(float(group), noise)
            return tight(part, part, self.node.count * self.node.participations())
        built = strategy(self)
        above, below = built.sensitivity(_separation_of(self.node), self.node.participations(), each_round(self.node))
        upper = GaussianProfile(group * above * (1.0 + built.slack), noise)
        lower = GaussianProfile(group * below * (1.0 - built.slack), noise)
        return enclosed((upper, upper), (lower, lower), self.node.count)

    def refusals(self) -> list[Problem]:
        """Refuse to solve for the number of iterations with a matrix, whose size would be unknown."""
        if self.node.matrix.kind == "identity" or self.node.training.iterations != "solve":
            return []
        path = self.node.at("training", "iterations")
        return [self.asked.refusal(path, NO_ITERATIONS, allowed=OTHER_BLANKS)]

    def stacks(self) -> bool:
        """Return True: the sensitivity is that of all releases stacked."""
        return True

    def schedule_refusals(self) -> list[Problem]:
        """Refuse a distance of participations: the worst rounds would then depend on the order of the schedule."""
        if _separation_of(self.node) == 1:
            return []
        message = (
            "which rounds with a distance are the worst is not computed for a schedule of noise: leave min_separation out, and "
            "state max_participations; the rounds with the least noise then count"
        )
        return [self.asked.refusal(self.node.at("sampler", "min_separation"), message, allowed="no distance")]

    def worst(self) -> Worst:
        """Return the case in which a record takes part as often and at as short distances as the order allows."""
        most, apart = self.node.participations(), _separation_of(self.node)
        if self.node.matrix.kind == "identity":
            return Worst(_in_order(self.node), lambda: 1.0, self.node.count * most)
        return Worst(_in_order(self.node), lambda: moved(self, apart, most), self.node.count)

    def spaced_pattern(self) -> tuple[int, int] | None:
        """Return the least distance and largest number of participations, which is all that is known of the order."""
        return _separation_of(self.node), self.node.participations()

    def cut(self, rounds: int) -> dict[str, Any]:
        """Return a number of participations that is at most the number of rounds."""
        most = self.sampler.max_participations
        return {} if most is None else {"max_participations": min(most, rounds)}


def _in_order(run: TrainingNode) -> str:
    """Return how often a record takes part, in words."""
    most, apart = run.participations(), _separation_of(run)
    if most == number(run.training.iterations):
        return f"{EVERY_ROUND}, without sampling"
    distance = f", {apart} or more apart" if apart > 1 and most > 1 else ""
    return f"each record in at most {most} {'round' if most == 1 else 'rounds'}{distance}, without sampling"
