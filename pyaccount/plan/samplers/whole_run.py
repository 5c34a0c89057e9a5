"""Samplers whose rounds are dependent, as under a matrix: a dominating pair on the whole run, analysed by sampling.

One record takes part in a random pattern x of rounds. So the run is dominated by P = Σ_x w_x N(Cx, σ²I) against N(0,
σ²I), or against Σ_x w_x N(−Cx, σ²I) under replacement. The likelihood ratio of a sample is a recursion of n steps
(b-min-sep) or a sum over bins (balls in bins).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from pyaccount.directions import sampled_directions
from pyaccount.plan.common import (
    NORMALISATION,
    OTHER_BLANKS,
    SECRET,
    basic_assumptions,
    group_refusals,
    number,
    rounds_text,
    value_or_symbol,
)
from pyaccount.plan.matrices import matrix_plan
from pyaccount.plan.recipe import Recipe
from pyaccount.plan.reduction import Analysis, Reduction
from pyaccount.plan.samplers import rarely, truncated
from pyaccount.plan.samplers.base import SamplerPlan

if TYPE_CHECKING:
    from pyaccount import _core
    from pyaccount.directions import Direction
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Problem
    from pyaccount.plan.rare_truncation import RareTruncation
    from pyaccount.plan.sampled import SampledMechanism

#: Nanoseconds that a sample takes longer for drawing the number of other records in a round or a bin.
COUNT_COST = 16.0
#: The data sets of the lower bound if the likelihood ratio is enclosed.
ENCLOSED = (
    "the pair's data sets: the record contributes 1, or what it is changed to, and nobody else contributes. All rounds, sampled; "
    "the likelihood ratio is the end of its enclosure that makes losses smaller."
)
#: The assumption for a body that is run several times.
RUNS = "The runs of a phase draw their batches and their noise independently of one another."


class WholeRun(SamplerPlan):
    """A sampler that is analysed by the law of a record's participations in a whole run."""

    #: What happens to records that are left out of a truncated batch.
    kept: ClassVar[str]

    # ---- what each sampler defines

    def subject(self, body: Body) -> str:
        """Return the name of the sampling."""
        return f"{body.sampler.kind} sampling"

    @abstractmethod
    def law(self, body: Body) -> str:
        """Return the law of x in symbols."""

    @abstractmethod
    def source(self, body: Body) -> str:
        """Return who proved that the mixture over patterns dominates."""

    @abstractmethod
    def sampling(self, body: Body) -> str:
        """Return how batches must be drawn, as an assumption."""

    def enclosure(self, document: Document, body: Body) -> str | None:
        """Describe what is lost if the likelihood ratio is enclosed; None if it is computed exactly."""
        return None

    def unit_refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse units of privacy that are not covered."""
        return group_refusals(document, body)

    def own_refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse settings of this sampler that are not covered."""
        return []

    @abstractmethod
    def untruncated(
        self, document: Document, body: Body, sigma: float, directions: tuple[Direction, ...]
    ) -> SampledMechanism:
        """Return the mechanism of one run in which no batch is truncated."""

    def displaced(self, body: Body, limit: int) -> float:
        """Return an upper bound on the probability that the sensitive record is ever displaced.

        That is the probability that it is ever in a batch with `limit` or more other records. Only samplers whose
        truncated batches are analysed define it; the others refuse such batches (`truncation_refusals`).
        """
        raise AssertionError("truncated batches that are refused reached the arithmetic")

    def rare_truncation(self, body: Body, limit: int) -> RareTruncation | None:
        """Return what truncation adds to δ of the run without it; None if there is no proof of such a bound."""
        return None

    # ---- the theorem

    def analysis(self, document: Document, body: Body) -> Analysis:
        """Return the analysis by the pair on the whole run, which the head of this module defines."""
        limit = body.truncation()
        if limit is None:
            return Analysis(self.words, mechanism=self.mechanism, refusals=self.refusals)
        if rarely.known(document):
            rare = self.rare_truncation(body, limit)
            if rare is not None and rarely.preferred(document, body, rare):
                return Analysis(self.rarely_truncated_words, mechanism=self.rarely_truncated, refusals=self.refusals)
        return Analysis(self.truncated_words, mechanism=self.truncated_mechanism, refusals=self.refusals)

    def words(self, document: Document, body: Body) -> Reduction:
        """Return the theorem for runs in which no batch is truncated."""
        privacy = document.privacy
        sigma = value_or_symbol(body.noise.multiplier, "σ")
        other = f"Σ_x w_x N(−Cx, {sigma}²)" if privacy.adjacency == "replace-one" else f"N(0, {sigma}²)"
        remark, source = self.enclosure(document, body), self.source(body)
        return Reduction(
            path=body.path,
            subject=f"{self.subject(body)}, {matrix_plan(body).text(body)}",
            theorem="dominating pair on the whole run: mixtures over participation patterns",
            source=source if remark is None else f"{source}; the enclosure of the likelihood ratio: its Appendix B",
            pair=f"Σ_x w_x N(Cx, {sigma}²) against {other}; {self.law(body)}",
            rounds=rounds_text(body),
            tight=remark is None,
            remark=remark,
            lower_end=None if remark is None else ENCLOSED,
            assumptions=(
                *basic_assumptions(privacy, body),
                self.sampling(body),
                *(() if body.count == 1 else (RUNS,)),
                SECRET,
                NORMALISATION,
            ),
        )

    def truncated_words(self, document: Document, body: Body) -> Reduction:
        """Return the theorem for runs with truncated batches, given the counts of other records."""
        usual, limit = self.words(document, body), body.truncation()
        return replace(
            usual,
            subject=f"{usual.subject}, batches truncated to {limit}",
            theorem="dominating pair on the whole run given the other records' counts: mixtures over patterns and survivals",
            source=truncated.SOURCE,
            pair=(
                f"given r, Σ_x w_x N(Cu) against Σ_x w_x N(Cv): where x takes part u = 1, v = 0 if r < {limit}, else with "
                f"probability {limit}/(r + 1) u = 2, v = −1; {self.law(body)}"
            ),
            tight=False,
            remark=truncated.truncation_note(body, self.largest_rate),
            lower_end=self._lower_end(document, body),
            assumptions=self.truncated_assumptions(body, usual.assumptions),
        )

    def _lower_end(self, document: Document, body: Body) -> str:
        """Describe the lower bound, by runs without truncation; their distance is unknown while a rate is the blank."""
        limit = body.truncation()
        assert limit is not None
        return truncated.lower_end(self.displaced(body, limit) if rarely.known(document) else None)

    def truncated_assumptions(self, body: Body, usual: tuple[str, ...]) -> tuple[str, ...]:
        """Return the assumptions with what is kept of a batch, and when it is chosen."""
        return truncated.assumptions(body, usual, self.kept)

    def rarely_truncated_words(self, document: Document, body: Body) -> Reduction:
        """Return the theorem for runs that are truncated so seldom that the pair without truncation is used."""
        usual, limit = self.words(document, body), body.truncation()
        assert limit is not None
        rare = self.rare_truncation(body, limit)
        assert rare is not None
        return replace(
            usual,
            subject=f"{usual.subject}, batches seldom truncated to {limit}",
            theorem=f"{usual.theorem}; without truncation, and what rare truncation adds to δ",
            source=f"{usual.source}; given the other records' counts: {truncated.SOURCE}; {rarely.SOURCE}",
            pair=f"{usual.pair}; truncation adds to δ what the remark says",
            tight=False,
            remark=rarely.truncation_note(body, rare),
            lower_end=truncated.lower_end(rare.hit),
            assumptions=self.truncated_assumptions(body, usual.assumptions),
        )

    def mechanism(self, document: Document, body: Body) -> SampledMechanism:
        """Return the mechanism to sample: the likelihood ratio of one run."""
        directions = sampled_directions(document.privacy.adjacency)
        return self.untruncated(document, body, number(body.noise.multiplier), directions)

    def rarely_truncated(self, document: Document, body: Body) -> SampledMechanism:
        """Return the mechanism without truncation, with what truncation adds to its δ."""
        limit = body.truncation()
        assert limit is not None
        return replace(self.mechanism(document, body), rare_truncation=self.rare_truncation(body, limit))

    def truncated_mechanism(self, document: Document, body: Body) -> SampledMechanism:
        """Return the mechanism to sample: the likelihood ratio of a run and of the counts of other records."""
        built, limit = self.mechanism(document, body), body.truncation()
        assert limit is not None
        assert body.training.dataset_size is not None
        recipe: Recipe[_core.Sampled] = Recipe("Sampled.truncated", (built.recipe, body.training.dataset_size, limit))
        # The pair that releases the counts of other records is not attained: lower bounds use runs without truncation,
        # whose δ exceeds the true one by at most `displaced` (for `add`: by at most e^ε times that).
        lower = replace(built, overstated=self.displaced(body, limit))
        cost = built.cost + COUNT_COST * built.steps
        return replace(built, recipe=recipe, cost=cost, lower=lower, plain_only=True)

    def refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse what this analysis does not cover."""
        problems = self.unit_refusals(document, body)
        if document.accounting.method == "pld":
            message = (
                f"{body.sampler.kind} has no privacy loss distribution to compose: its rounds depend on one another"
            )
            path = ("accounting", "method")
            problems.append(document.problem("no-valid-bound", path, message, allowed="auto or monte-carlo"))
        problems += self.own_refusals(document, body)
        blank = document.blank
        if blank is not None and blank[-1] not in ("multiplier", "epsilon", "delta", "group_size"):
            message = "a sampled analysis can solve only for noise.multiplier, privacy.epsilon or privacy.delta"
            problems.append(document.problem("no-valid-bound", blank, message, allowed=OTHER_BLANKS))
        return problems
