"""A document with its theorems, as data: what is known before any ε or δ is computed, with the blank as its parameter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.errors import path_text
from pyaccount.plan.alike import MANY, grouped
from pyaccount.plan.common import length_text
from pyaccount.plan.drawing import NEWEST, DrawingRule
from pyaccount.plan.rounds import DirectedBounds, combine
from pyaccount.plan.sampled import SampledMechanism, together
from pyaccount.risk.budgets import budget_of
from pyaccount.rounding import plain

if TYPE_CHECKING:
    from pyaccount.document import Document
    from pyaccount.errors import Path
    from pyaccount.plan.reduction import Analysis, Reduction

#: The relative width of the answer's interval where the document does not say.
COMPOSED_TOLERANCE, SAMPLED_TOLERANCE = 1e-4, 1e-2
#: That of long schedules, whose nearly alike rounds are bounded by the worst of them.
LONG_TOLERANCE = 5e-3

#: Blanks that are a bound of the guarantee itself: nothing of the mechanism is open.
BOUNDS_OF_THE_GUARANTEE = ("epsilon", "delta")


@dataclass(frozen=True, slots=True)
class Considered:
    """A candidate of a choice, with the noise multiplier it needs by the pilot's estimate and the errors that go with it."""

    matrix: str
    bands: int
    noise_multiplier: float
    prefix_sum_mse: float
    #: What is compared: the squared error that the workload asks for, without one the one above.
    squared_error: float
    #: What certifying it would take on this machine, where that was asked for: the tests of a sampled one.
    seconds: float | None = None
    #: What of the sampler was to be chosen, by its key; and the squared error over the square of the share of the records that a
    #: batch has, which is compared then: batches may differ in size, and this is the error of means up to a common factor.
    chosen: tuple[tuple[str, int], ...] = ()
    relative_error: float | None = None

    @property
    def compared(self) -> float:
        """What candidates are compared by; the same of all of a choice."""
        return self.squared_error if self.relative_error is None else self.relative_error


@dataclass(frozen=True, slots=True)
class Proposed:
    """A matrix with the noise multiplier that it needs and the errors that go with it: estimates."""

    noise_multiplier: float
    prefix_sum_mse: float
    #: What is to be small: the squared error that the workload asks for, without one the one above.
    squared_error: float


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search for the matrix of a plan found: estimates, none of which enters the guarantee."""

    #: The matrix that it began with, the better of the two that are known without sampling, and the one found.
    start: Proposed
    found: Proposed
    #: The norm of the gradient of the squared error's logarithm at the matrix found, in the parameters of the search, by samples
    #: that it was not fitted to, and that of its components' standard errors.
    gradient_norm: float
    gradient_error: float
    rounds: int
    #: What is to be said of how it ended; None where it ended because nothing more was to be gained.
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """A plan at a value of its blank: the mechanism itself, with every number of it. See `CompiledDocument.at`."""

    #: With its blank filled, unless that is ε or δ.
    document: Document
    analyses: tuple[Analysis, ...]

    @property
    def merges(self) -> bool:
        """Whether Gaussian mechanisms are composed in closed form."""
        return self.document.accounting.method == "auto"

    @property
    def reductions(self) -> tuple[Reduction, ...]:
        """The theorems, in words with this value."""
        return worded(self.document, self.analyses)

    def parts(self) -> list[DirectedBounds | None]:
        """The rounds of each phase; None for those that are sampled. Raises `DocumentError` for numbers without a bound."""
        return [
            None if analysis.bounds is None else analysis.bounds(self.document, body)
            for analysis, body in zip(self.analyses, self.document.bodies, strict=True)
        ]

    def bounds(self, width: float | None = None) -> DirectedBounds:
        """The rounds to compose, of a plan that is not sampled.

        With a `width`, long schedules have their nearly alike rounds bounded by the worst of them, which makes ε about that
        much wider, relatively: see `pyaccount.plan.alike`.
        """
        parts = [part for part in self.parts() if part is not None]
        assert len(parts) == len(self.analyses), "a sampled mechanism has no rounds to compose"
        exact = combine(parts, merge_gaussians=self.merges)
        return exact if width is None else grouped(exact, width)

    def composed_bounds(self) -> DirectedBounds | None:
        """The rounds of the phases that are not sampled; None if all are."""
        parts = [part for part in self.parts() if part is not None]
        return combine(parts, merge_gaussians=self.merges) if parts else None

    def bounds_beside(self, path: Path) -> DirectedBounds | None:
        """The rounds of all phases but that of `path`; None if it is in none or the only one, or another one is sampled."""
        own = [bool(body.path) and path[: len(body.path)] == body.path for body in self.document.bodies]
        if not any(own):
            return None
        rest = [part for part, alone in zip(self.parts(), own, strict=True) if not alone]
        parts = [part for part in rest if part is not None]
        return combine(parts, merge_gaussians=self.merges) if parts and len(parts) == len(rest) else None

    def mechanism(self) -> SampledMechanism:
        """The sampled phases together, without what they are composed with."""
        return together(
            [
                (analysis.mechanism(self.document, body), body.count)
                for analysis, body in zip(self.analyses, self.document.bodies, strict=True)
                if analysis.mechanism is not None
            ]
        )


@dataclass(frozen=True, slots=True)
class CompiledDocument:
    """A document with the theorem for each of its bodies; no ε, δ or blank has been computed.

    It is data: it can be pickled, and `at` gives what it is at a value of the blank without compiling or validating once more.
    """

    document: Document
    analyses: tuple[Analysis, ...]
    #: The theorems in words, the blank by its symbol.
    reductions: tuple[Reduction, ...]
    #: What the `choose:` lists leave to choose from, or the one document whose matrix is to be found, and the document that
    #: says so; empty without.
    candidates: tuple[Document, ...] = ()
    asked: Document | None = None
    #: What was compared to make the choices.
    considered: tuple[Considered, ...] = ()
    #: How its matrix was found, where that was left to a search.
    searched: Searched | None = None
    #: The tolerance of a long schedule whose document states none.
    long_tolerance: float = LONG_TOLERANCE
    #: How samples are drawn: certificates are recomputed by the rule of their own time.
    drawing: DrawingRule = NEWEST

    def at(self, value: float | None = None) -> Instance:
        """The plan at a value of its blank, which is in the blank's range.

        Without a value where nothing of the mechanism is blank.
        """
        blank = self.document.blank
        if value is None:
            assert blank is None or blank[-1] in BOUNDS_OF_THE_GUARANTEE, "a blank of the mechanism needs a value"
            return Instance(self.document, self.analyses)
        return Instance(self.document.filled(value), self.analyses)

    @property
    def blank(self) -> str | None:
        """The name of what is to be computed, if that is part of the mechanism; None for ε, δ and claims."""
        path = self.document.blank
        return None if path is None or path[-1] in BOUNDS_OF_THE_GUARANTEE else str(path[-1])

    @property
    def sampled(self) -> bool:
        """Whether the mechanism is judged by sampling its privacy loss."""
        return any(analysis.mechanism is not None for analysis in self.analyses)

    @property
    def mixed(self) -> bool:
        """Whether sampled phases stand beside ones that compose."""
        return self.sampled and any(analysis.mechanism is None for analysis in self.analyses)

    @property
    def tolerance(self) -> float:
        """The relative width of the answer's interval: the document's, or the engine's default."""
        stated = self.document.accounting.tolerance
        if stated is not None:
            return stated
        return SAMPLED_TOLERANCE if self.sampled else self.long_tolerance if self.long else COMPOSED_TOLERANCE

    @property
    def long(self) -> bool:
        """Whether there are many kinds of rounds, and those that are nearly alike may be bounded by the worst of them."""
        if len(self.analyses) <= MANY or self.sampled or self.closed_form or budget_of(self.document) is not None:
            return False
        kinds = {
            (body.noise.multiplier, body.training.expected_batch_size, body.sampling_probability())
            if body.training.expected_batch_size != "solve"
            else (body.noise.multiplier, "solve", 0.0)
            for analysis, body in zip(self.analyses, self.document.bodies, strict=True)
            if analysis.alike
        }
        return len(kinds) > MANY

    @property
    def closed_form(self) -> bool:
        """Whether the whole composition is one Gaussian mechanism, read without discretisation."""
        return all(analysis.gaussian for analysis in self.analyses) and self.document.accounting.method == "auto"

    @property
    def engine(self) -> str:
        """The engine, for people."""
        if self.mixed:
            return (
                "Monte Carlo: samples of the sampled phases' privacy loss, bounded by their proposal, each weighed with the "
                "composed profile of the other phases, and bets against the claim"
            )
        if self.document.accounting.method == "renyi":
            return "moments of the likelihood ratio, by an exact chain over replicas of a record's participations"
        if self.sampled:
            return "Monte Carlo: samples of the privacy loss, bounded by their proposal, and bets against the claim"
        if self.closed_form:
            return "closed form (one Gaussian mechanism)"
        return "privacy loss distributions: connect-the-dots upper and lower bounds, tilted FFT, both directions"

    @property
    def question(self) -> str:
        """What will be computed, for people."""
        blank, privacy, budget = self.document.blank, self.document.privacy, budget_of(self.document)
        if budget is not None:
            allowed = f"{budget.words} of at most {plain(budget.limit)} {budget.note}"
            if blank is None:
                return f"is a {allowed} kept?"
            return f"the {'smallest' if blank[-1] == 'multiplier' else 'largest'} {path_text(blank)} with a {allowed}"
        epsilon, delta = ("solve" if value == "solve" else plain(value) for value in (privacy.epsilon, privacy.delta))
        target = f"({epsilon}, {delta})"
        if blank is None:
            return f"does {target}-DP hold?"
        name = blank[-1]
        if name == "epsilon":
            return f"the smallest ε at δ = {delta}"
        if name == "delta":
            return f"the smallest δ at ε = {epsilon}"
        extreme = "smallest" if name == "multiplier" else "largest"
        return f"the {extreme} {path_text(blank)} with {target}-DP"


def worded(document: Document, analyses: tuple[Analysis, ...]) -> tuple[Reduction, ...]:
    """The theorem for each body in words; where it counts in epochs, how many rounds these are is an assumption too."""
    found = []
    for analysis, body in zip(analyses, document.bodies, strict=True):
        reduction, length = analysis.words(document, body), length_text(body)
        found.append(reduction if length is None else replace(reduction, assumptions=(*reduction.assumptions, length)))
    return tuple(found)
