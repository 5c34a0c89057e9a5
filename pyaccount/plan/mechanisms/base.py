"""The base class of mechanisms in the plan room: from what is known of a mechanism to rounds that compose.

Each kind is a class: its dominating pair or its proven profile, what it assumes, and what it refuses. `plan.units` has the
theorems about runs on a sample.

**The lemma of paths**: what leads from one output law to another in steps that are purely private is dominated by Laplace
noise.

**Lemma.** Let M_τ, 0 ≤ τ ≤ θ, be output laws with Pr[M_{τ+t} ∈ S] ≥ e^{−t} Pr[M_τ ∈ S] for all sets S and t ≥ 0. Then
Lap(0, 1) against Lap(θ, 1) dominates M_0 against M_θ: for every α,

    Pr[M_0 ∈ S] − α Pr[M_θ ∈ S] ≤ H_α(Lap(0, 1)‖Lap(θ, 1)), which is 1 − √α·e^{−θ/2} for |ln α| ≤ θ.

**Proof.** Let φ(τ) = Pr[M_τ ∈ S] and u = 1 − φ(0). The hypothesis for S and for its complement says that φ falls at
most by the factor e^{−t}, and 1 − φ grows at most by e^t, over every t; so φ never jumps down. If u ≥ ½, φ(θ) ≥
e^{−θ}(1 − u). If u < ½ and φ stays above ½, 1 − φ(θ) ≤ e^θ u and φ(θ) ≥ ½. Otherwise φ(τ) = ½ for the first τ ≤ θ at
which φ is not above it, so that e^τ ≥ 1/(2u), and φ(θ) ≥ ½e^{−(θ−τ)} ≥ e^{−θ}/(4u). Those are the three pieces of the
trade-off function of the Laplace pair: with type I error u, the type II error is at least 1 − e^θ u for u ≤ e^{−θ}/2,
e^{−θ}/(4u) up to ½, and e^{−θ}(1 − u) from there on (Dong, Roth & Su 2022, Section 2); in the second case φ(θ) is at
least the first two pieces, of which the second is at most ½. A bound on the trade-off function is one on H_α for all
α. ∎

The same holds for d steps of length η, each of which changes probabilities at most by e^{±η}: then φ after a step is
at least f(φ) = max(e^{−η} φ, 1 − e^η (1 − φ)), and after d steps the d-fold iterate of f. Discrete Laplace noise,
shifted by d on a lattice with η = 1/b, attains it: for thresholds t ≥ d each step multiplies Pr[X > t] by e^η until
the median is crossed, and Pr[X ≤ t] by e^{−η} from there on. So discrete Laplace noise at the distance d dominates
what takes d such steps.

**What follows.** (1) Numbers with Laplace noise of scale b (discrete Laplace noise on a lattice) that a record
changes by Δ in total, Σ_j |Δ_j| ≤ Δ, are dominated by one number that changes by Δ: move along the segment from one
to the other (in steps of the lattice, one coordinate at a time); the log density of the noise changes at most by 1/b
for each unit. (2) The largest of utilities with noise of bounded hazard rate (`plan.mechanisms.selections`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

from pyaccount.directions import DIRECTIONS
from pyaccount.document.mechanisms import MechanismKind
from pyaccount.document.tree import Draw, MechanismRelease
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import neighbours_assumption, number, refused_samples
from pyaccount.plan.rounds import Bounds, DirectedBounds, best_of, repeated
from pyaccount.plan.theorem import Reduction, Theorem
from pyaccount.plan.units import SHOWN, sampled, sampling_assumptions, sampling_refusals, sampling_source
from pyaccount.profiles import ProfileKind, Rounds
from pyaccount.rounding import shortest

Mechanism = TypeVar("Mechanism", bound=MechanismKind)

#: The assumption about runs that are repeated, and about what is drawn.
FRESH = Assumed(
    "Every run uses randomness that is new, independent of everything else, and cannot be predicted.",
    "Every run uses new, independent randomness that nobody can predict.",
)


@dataclass(frozen=True, slots=True)
class Released:
    """What one run of a mechanism reveals: `count` rounds of a profile.

    The profile `upper` bounds every pair of neighbours, and `lower` is that of two data sets. They are the same object if
    the bound is attained, unless rounding separates them. Both are for both directions, unless `add` has those of the
    direction add.
    """

    upper: ProfileKind
    lower: ProfileKind
    count: int = 1
    add: Released | None = None
    #: The rounds of `lower`, if they are fewer.
    attained: int | None = None
    #: What is revealed beside it, which is the same from above and from below, and in both directions.
    beside: tuple[ProfileKind, ...] = ()
    #: Other pairs of data sets, which may reveal more than `lower`, depending on ε and on the number of runs.
    further_pairs: tuple[ProfileKind, ...] = ()
    #: The supremum of the profiles of pairs of data sets, if it is known: each α has pairs that attain it or approach it. It is
    #: no pair's profile, so it is a lower bound for one run that nothing is composed with.
    supremum: ProfileKind | None = None

    def __post_init__(self) -> None:
        """Both directions state the same: the lower end of a document takes one pair, or the supremum, in each of them."""
        add = self.add
        if add is not None and (
            add.add is not None
            or add.beside
            or len(add.further_pairs) != len(self.further_pairs)
            or (add.supremum is None) != (self.supremum is None)
        ):
            message = "the direction add states more, or another kind of lower end, than the direction remove"
            raise ValueError(message)

    def above(self, lower: Callable[[Released], ProfileKind]) -> Released:
        """Return the same with another lower end in each direction."""
        add = None if self.add is None else replace(self.add, lower=lower(self.add))
        return replace(self, lower=lower(self), add=add)

    def bounds(self) -> DirectedBounds:
        """Return the rounds of one run in both directions."""
        beside = tuple(Rounds(one, 1) for one in self.beside)
        return {
            direction: Bounds(
                (Rounds(one.upper, one.count), *beside), (Rounds(one.lower, one.attained or one.count), *beside)
            )
            for direction, one in zip(DIRECTIONS, (self, self.add or self), strict=True)
        }


@dataclass(frozen=True, slots=True)
class MechanismWords:
    """A mechanism's theorem in words; see `Reduction`."""

    subject: str
    theorem: str
    source: str
    pair: str
    assumed: tuple[Assumed, ...]
    remark: str | None = None
    #: The two data sets of the lower bound, unless the bound is attained.
    lower_end: str | None = None
    #: Those of runs that nothing else is composed with, if they differ.
    lower_end_alone: str | None = None
    #: What bounds several runs better than their composition, unless they are sampled.
    several: str | None = None


class MechanismPlan(Theorem, Generic[Mechanism]):
    """The theorem of a mechanism, alone or on a sample."""

    node: MechanismRelease

    @abstractmethod
    def released(self, mechanism: Mechanism, group: int) -> Released:
        """Return what one run reveals about a group of `group` records, each of which may change it by its sensitivity."""

    @abstractmethod
    def described(self, mechanism: Mechanism) -> MechanismWords:
        """Return the theorem in words, for one record."""

    def own_refusals(self, mechanism: Mechanism) -> list[Problem]:
        """Explain what the theorem does not cover; empty if it covers the body."""
        return []

    def one_run(self) -> Released:
        """Return what one run of a body's mechanism reveals about what the document protects."""
        return self.released(self._of(), number(self.asked.privacy.group_size))

    def words(self) -> Reduction:
        """Return the theorem, with sampling and the number of runs."""
        text, group = self.described(self._of()), self.asked.privacy.group_size
        draw = self.node.draw
        lower_end = text.lower_end_alone if text.lower_end_alone is not None and self._alone() else text.lower_end
        remark = text.several if text.several is not None and self.node.count > 1 and draw is None else text.remark
        if group != 1:
            grouped = f"For a group of {'k' if group == 'solve' else group} records the mechanism is that of the group."
            remark = grouped if remark is None else f"{remark} {grouped}"
        if draw is not None and self.asked.privacy.adjacency == "replace-one" and not draw.clients:
            remark = SHOWN if remark is None else f"{remark} {SHOWN}"
        return Reduction(
            path=self.node.path,
            subject=f"{text.subject}, on a Poisson sample of the {draw.units}" if draw else text.subject,
            theorem=f"{text.theorem}, sampled" if draw else text.theorem,
            source=f"{text.source}; {sampling_source(self)}" if draw else text.source,
            pair=f"{text.pair}; drawn with probability {shortest(draw.probability)}" if draw else text.pair,
            rounds=str(self.node.count),
            tight=text.lower_end is None,
            remark=remark,
            assumed=(
                neighbours_assumption(self.asked.privacy),
                *text.assumed,
                FRESH,
                *(sampling_assumptions(self, removal=self._of().for_any_data()) if draw else ()),
            ),
            lower_end=lower_end,
        )

    def bounds(self) -> DirectedBounds:
        """Return the rounds of all runs. Where they are the whole document, the lower end is the best of several data sets.

        A profile on a sample is a function of that of one run at one other α, which rises with it. So a supremum of profiles
        becomes the supremum of the profiles on a sample.
        """
        run = self.one_run()
        if self._alone() and run.supremum is not None and self.node.count == 1:
            return self._all_runs(run.above(lambda one: cast("ProfileKind", one.supremum)))
        bounds = self._all_runs(run)
        if not (self._alone() and run.further_pairs):
            return bounds
        further = [run.above(lambda one, n=n: one.further_pairs[n]) for n in range(len(run.further_pairs))]  # type: ignore[misc]
        each = [bounds, *(self._all_runs(other) for other in further)]
        return {
            side: replace(one, lower=best_of([below[side].lower for below in each])) for side, one in bounds.items()
        }

    def _all_runs(self, run: Released) -> DirectedBounds:
        """Return the rounds of all runs, from what one run reveals."""
        rounds = run.bounds()
        return repeated(rounds, self.node.count) if self.node.draw is None else sampled(rounds, self)

    def _alone(self) -> bool:
        """Return whether the runs are the whole document."""
        return list(self.asked.phases) == [self.node]

    def refusals(self) -> list[Problem]:
        """Refuse engines that draw samples, and sampling of what is not covered."""
        mechanism, problems = self._of(), []
        if len(self.asked.phases) == 1:
            problems += refused_samples(self.asked, "a mechanism is composed, not sampled: leave method out")
        if self.node.draw is not None:
            problems += sampling_refusals(self, removal=mechanism.for_any_data())
        return [*problems, *self.own_refusals(mechanism)]

    def sample_refusals(self, draw: Draw) -> list[Problem]:
        """Refuse what the mechanism would refuse of a sample of its own: what it reveals of records that are not drawn."""
        own = self.node.at("sampler", "kind")
        return [problem for problem in self.on(replace(self.node, draw=draw)).refusals() if problem.path == own]

    def public(self) -> DirectedBounds:
        """Return the rounds of all runs on all records."""
        return repeated(self.one_run().bounds(), self.node.count)

    def _of(self) -> Mechanism:
        return cast("Mechanism", self.node.mechanism)
