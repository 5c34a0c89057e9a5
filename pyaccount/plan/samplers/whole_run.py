"""Samplers whose rounds are dependent, as under a matrix: a dominating pair on the whole run, analysed by sampling.

A record, or a group of records, takes part in a random pattern x of rounds, counted with multiplicity. So the run is
dominated by P = Σ_x w_x N(Cx, σ²I) against N(0, σ²I), or against Σ_x w_x N(−Cx, σ²I) under replacement. The likelihood ratio
of a sample is a recursion of n steps (b-min-sep) or a sum over bins (balls in bins).

**Why it dominates**, for every C ≥ 0 that is lower triangular and every law w of x that depends neither on the outputs nor on
what other records do. Gradients have norms of at most 1 and may depend on all outputs before. Given the others' batches and
the outputs before row i, which both data sets share, row i of the outputs is N(m_i(x), σ²I) less what is known, m_i(x) = Σ_j
C_ij x_j g_j (a sum over the records of a group, each with its own rounds and gradients), against N(0, σ²I). So the likelihood
ratio is f = Σ_x w_x exp(Σ_i ⟨m_i(x), z_i⟩/σ² − |m_i(x)|²/2σ²), z_i ~ N(0, σ²I) under the second data set, and δ is E φ(f) for
a convex φ. Let Φ_i(a) be E φ(Σ_x a_x E_x), E_x the factors of the rows after i if all gradients are 1 and numbers; its second
derivatives are at least 0. From the last row backwards, E[φ(f) | rows up to i] ≤ Φ_i(a), a_x = w_x times the factors so far: the
exponents of row i are Gaussian with covariances ⟨m_i(x), m_i(x′)⟩/σ² ≤ (Cx)_i(Cx′)_i/σ², since C ≥ 0, and by Kahane's inequality
(1986, "Une inégalité du type de Slepian et Gordon sur les processus gaussiens") E Φ_i(a_x e^{G_x − Var G_x/2}) grows with the
covariances of G. Gradients of 1 attain it. Under replacement φ is a function of f and of the other mixture's f⁻ whose mixed
derivatives are at most 0, and ⟨m_i(x), m⁻_i(x′)⟩ ≥ −(Cx)_i(Cx′)_i: gradients 1 and −1 attain it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

from pyaccount import _core
from pyaccount.directions import Direction, sampled_directions
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import (
    NORMALISATION,
    SECRET,
    basic_assumptions,
    group_refusals,
    number,
    rounds_text,
    sampled_blanks,
    value_or_symbol,
)
from pyaccount.plan.matrices import matrix_plan
from pyaccount.plan.rare_truncation import RareTruncation
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.plan.samplers import rarely, truncated
from pyaccount.plan.samplers.base import InPlace, Sampler, SamplerPlan
from pyaccount.plan.theorem import Reduction, Theorem
from pyaccount.profiles.base import Recipe

#: Nanoseconds that a sample takes longer for drawing the number of other records in a round or a bin.
COUNT_COST = 16.0
#: The data sets of the lower bound if the likelihood ratio is enclosed.
ENCLOSED = (
    "the pair's data sets: the record contributes 1, or what it is changed to, and nobody else contributes. All rounds, sampled; "
    "the likelihood ratio is the end of its enclosure that makes losses smaller."
)
#: Who proved that the mixture over patterns dominates, for any law of patterns: see the head of this module.
PATTERNS = (
    "Kahane's inequality (1986) for mixtures over patterns, row by row: proof in pyaccount.plan.samplers.whole_run; attained by "
    "gradients 1"
)
#: The assumption for a phase that is run several times.
RUNS = Assumed(
    "The runs of a phase draw their batches and their noise independently of one another.",
    "The runs of a phase draw batches and noise independently of one another.",
)


class WholeRun(SamplerPlan[Sampler]):
    """A sampler that is analysed by the law of a record's participations in a whole run."""

    #: What happens to records that are left out of a truncated batch.
    kept: ClassVar[str]

    # ---- what each sampler defines

    def subject(self) -> str:
        """Return the name of the sampling."""
        return f"{self.node.sampler.kind} sampling"

    @abstractmethod
    def law(self) -> str:
        """Return the law of x in symbols."""

    @abstractmethod
    def source(self) -> str:
        """Return who proved that the mixture over patterns dominates."""

    @abstractmethod
    def sampling(self) -> Assumed:
        """Return how batches must be drawn, as an assumption."""

    def enclosure(self) -> str | None:
        """Describe what is lost if the likelihood ratio is enclosed; None if it is computed exactly."""
        return None

    def unit_refusals(self) -> list[Problem]:
        """Refuse units of privacy that are not covered."""
        return group_refusals(self)

    def own_refusals(self) -> list[Problem]:
        """Refuse settings of this sampler that are not covered."""
        return []

    @abstractmethod
    def untruncated(self, sigma: float, directions: tuple[Direction, ...]) -> SampledMechanism:
        """Return the mechanism of one run in which no batch is truncated."""

    def displaced(self, limit: int) -> float:
        """Return an upper bound on the probability that the sensitive record is ever displaced.

        That is the probability that it is ever in a batch with `limit` or more other records. Only samplers whose
        truncated batches are analysed define it; the others refuse such batches (`truncation_refusals`).
        """
        raise AssertionError("truncated batches that are refused reached the arithmetic")

    def rare_truncation(self, limit: int) -> RareTruncation | None:
        """Return what truncation adds to δ of the run without it; None if there is no proof of such a bound."""
        return None

    # ---- the theorem

    sampled: ClassVar[bool] = True

    def theorem(self) -> Theorem:
        """Return the theorem of the pair on the whole run, which the head of this module defines."""
        limit = self.node.truncation()
        if limit is None:
            return self
        if rarely.known(self.asked):
            rare = self.rare_truncation(limit)
            if rare is not None and rarely.preferred(self, rare):
                return RarelyTruncated(self.asked, self.node, self)
        return TruncatedRun(self.asked, self.node, self)

    def words(self) -> Reduction:
        """Return the theorem for runs in which no batch is truncated."""
        privacy = self.asked.privacy
        sigma = value_or_symbol(self.node.noise.multiplier, "σ")
        other = f"Σ_x w_x N(−Cx, {sigma}²)" if privacy.adjacency == "replace-one" else f"N(0, {sigma}²)"
        remark, source = self.enclosure(), self.source()
        return Reduction(
            path=self.node.path,
            subject=f"{self.subject()}, {matrix_plan(self).text()}",
            theorem="dominating pair on the whole run: mixtures over participation patterns",
            source=source if remark is None else f"{source}; the enclosure of the likelihood ratio: its Appendix B",
            pair=f"Σ_x w_x N(Cx, {sigma}²) against {other}; {self.law()}",
            rounds=rounds_text(self.node),
            tight=remark is None,
            remark=remark,
            lower_end=None if remark is None else ENCLOSED,
            assumed=(
                *basic_assumptions(privacy, self.node),
                self.sampling(),
                *(() if self.node.count == 1 else (RUNS,)),
                SECRET,
                NORMALISATION,
            ),
        )

    def truncated_assumptions(self, usual: tuple[Assumed, ...]) -> tuple[Assumed, ...]:
        """Return the assumptions with what is kept of a batch, and when it is chosen."""
        return truncated.assumptions(self.node, usual, self.kept)

    def mechanism(self) -> SampledMechanism:
        """Return the mechanism to sample: the likelihood ratio of one run."""
        directions = sampled_directions(self.asked.privacy.adjacency)
        return self.untruncated(number(self.node.noise.multiplier), directions)

    def refusals(self) -> list[Problem]:
        """Refuse what this analysis does not cover."""
        problems = self.unit_refusals()
        if self.asked.accounting.method == "pld":
            message = f"{self.node.sampler.kind} has no privacy loss distribution to compose: its rounds depend on one another"
            problems.append(self.asked.refusal(("accounting", "method"), message, allowed="auto or monte-carlo"))
        return [*problems, *self.own_refusals(), *sampled_blanks(self.asked, "group_size")]


class OfTruncated(InPlace[Any]):
    """What both theorems about truncated batches share: the limit, and what runs without truncation refuse."""

    inner: WholeRun[Any]
    sampled: ClassVar[bool] = True

    @property
    def limit(self) -> int:
        """The most records of a batch."""
        return number(self.node.truncation())

    def refusals(self) -> list[Problem]:
        """Refuse what runs without truncation refuse."""
        return self.inner.refusals()


class TruncatedRun(OfTruncated):
    """Runs with truncated batches, given the counts of other records."""

    def words(self) -> Reduction:
        """Return the theorem for runs with truncated batches, given the counts of other records.

        The lower bound is by runs without truncation; their distance is unknown while a rate is the blank.
        """
        usual, limit = self.inner.words(), self.limit
        return replace(
            usual,
            subject=f"{usual.subject}, batches truncated to {limit}",
            theorem="dominating pair on the whole run given the other records' counts: mixtures over patterns and survivals",
            source=truncated.SOURCE,
            pair=(
                f"given r, Σ_x w_x N(Cu) against Σ_x w_x N(Cv): where x takes part u = 1, v = 0 if r < {limit}, else with "
                f"probability {limit}/(r + 1) u = 2, v = −1; {self.inner.law()}"
            ),
            tight=False,
            remark=truncated.truncation_note(self.node, self.inner.largest_rate),
            lower_end=truncated.lower_end(self.inner.displaced(limit) if rarely.known(self.asked) else None),
            assumed=self.inner.truncated_assumptions(usual.assumed),
        )

    def mechanism(self) -> SampledMechanism:
        """Return the mechanism to sample: the likelihood ratio of a run and of the counts of other records."""
        built, records = self.inner.mechanism(), number(self.node.training.dataset_size)
        recipe: Recipe[_core.Sampled] = Recipe("Sampled.truncated", (built.recipe, records, self.limit))
        # The pair that releases the counts of other records is not attained: lower bounds use runs without truncation,
        # whose δ exceeds the true one by at most `displaced` (for `add`: by at most e^ε times that).
        lower = replace(built, overstated=self.inner.displaced(self.limit))
        cost = built.cost + COUNT_COST * built.steps
        return replace(built, recipe=recipe, cost=cost, lower=lower, plain_only=True)


class RarelyTruncated(OfTruncated):
    """Runs that are truncated so seldom that the pair without truncation is used."""

    def words(self) -> Reduction:
        """Return the theorem for runs that are truncated so seldom that the pair without truncation is used."""
        usual, rare = self.inner.words(), self.inner.rare_truncation(self.limit)
        assert rare is not None
        return replace(
            usual,
            subject=f"{usual.subject}, batches seldom truncated to {self.limit}",
            theorem=f"{usual.theorem}; without truncation, and what rare truncation adds to δ",
            source=f"{usual.source}; given the other records' counts: {truncated.SOURCE}; {rarely.SOURCE}",
            pair=f"{usual.pair}; truncation adds to δ what the remark says",
            tight=False,
            remark=rarely.truncation_note(self.node, rare),
            lower_end=truncated.lower_end(rare.hit),
            assumed=self.inner.truncated_assumptions(usual.assumed),
        )

    def mechanism(self) -> SampledMechanism:
        """Return the mechanism without truncation, with what truncation adds to its δ."""
        return replace(self.inner.mechanism(), rare_truncation=self.inner.rare_truncation(self.limit))
