"""The plan: how a document will be analysed, theorem by theorem, before any ε or δ is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.document import (
    BandedInverse,
    BMinSep,
    CyclicPoisson,
    Dense,
    Identity,
    participation_rate,
    separation,
    truncation,
)
from pyaccount.errors import DocumentError, path_text
from pyaccount.plan import cyclic_poisson, deterministic, fixed_draws, laplace, poisson, sampled, truncated, users
from pyaccount.plan.common import length_text
from pyaccount.plan.profile import PROFILE_SHARES
from pyaccount.plan.reduction import DirectedBounds, Reduction, combine
from pyaccount.plan.sampled import SampledMechanism, together
from pyaccount.plan.strategy import strategy
from pyaccount.rounding import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.document import Body, Document

REDUCERS: dict[str, Callable[[Document, Body], Reduction]] = {
    "poisson": poisson.reduce,
    **dict.fromkeys(fixed_draws.LAWS, fixed_draws.reduce),
    "b-min-sep": sampled.reduce,
    "user-b-min-sep": users.reduce,
    "balls-in-bins": sampled.reduce,
    "cyclic-poisson": cyclic_poisson.reduce,
    "none": deterministic.reduce,
}

#: The samplers whose rounds are analysed one by one, which a matrix would tie together.
ROUND_BY_ROUND = ("poisson", *fixed_draws.LAWS)

#: The relative width of the answer's interval where the document does not say.
COMPOSED_TOLERANCE, SAMPLED_TOLERANCE = 1e-4, 1e-2

#: How many compositions solving a blank takes, typically: a bracket, a few secant steps, the two ends.
SEARCH_STEPS = 16


@dataclass(frozen=True, slots=True)
class Estimate:
    """What composing will cost, roughly: from the engine's scaling laws, within a factor of a few."""

    compositions: int
    evaluations: int
    transform_length: int
    seconds: float


def _rate(body: Body) -> float:
    """How often a record takes part, roughly: 1 where that is still to be found, or no one rate."""
    try:
        return participation_rate(body)
    except ValueError:
        return 1.0


def duration(seconds: float) -> str:
    """A time for people."""
    for size, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} s"


@dataclass(frozen=True, slots=True)
class Considered:
    """A candidate of a choice, with the noise multiplier it needs by the pilot's estimate and the error that goes with it."""

    matrix: str
    bands: int
    noise_multiplier: float
    prefix_sum_mse: float
    #: What certifying it would take on this machine, where that was asked for: the tests of a sampled one.
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A document with its reductions; no ε, δ or blank has been computed."""

    document: Document
    reductions: tuple[Reduction, ...]
    #: What the `choose:` lists leave to choose from, and the document that has them; empty without.
    candidates: tuple[Document, ...] = ()
    asked: Document | None = None
    #: What was compared to make the choices.
    considered: tuple[Considered, ...] = ()

    @property
    def sampled(self) -> bool:
        """Whether the mechanism is judged by sampling its privacy loss."""
        return any(reduction.sampled is not None for reduction in self.reductions)

    @property
    def mixed(self) -> bool:
        """Whether sampled phases stand beside ones that compose."""
        return self.sampled and any(reduction.sampled is None for reduction in self.reductions)

    @property
    def tolerance(self) -> float:
        """The relative width of the answer's interval: the document's, or the engine's default."""
        stated = self.document.accounting.tolerance
        return stated if stated is not None else SAMPLED_TOLERANCE if self.sampled else COMPOSED_TOLERANCE

    @property
    def closed_form(self) -> bool:
        """Whether the whole composition is one Gaussian mechanism, read without discretisation."""
        plain = all(reduction.gaussian for reduction in self.reductions)
        return plain and self.document.accounting.method == "auto"

    @property
    def engine(self) -> str:
        """The engine, for people."""
        if self.mixed:
            return (
                "Monte Carlo: samples of the sampled phases' privacy loss, bounded by their proposal, each weighed with the "
                "curve to which the other phases compose, and wagers against the claim"
            )
        if self.sampled:
            return "Monte Carlo: samples of the privacy loss, bounded by their proposal, and wagers against the claim"
        if self.closed_form:
            return "closed form (one Gaussian mechanism)"
        return "privacy loss distributions: connect-the-dots upper and lower bounds, tilted FFT, both directions"

    @property
    def question(self) -> str:
        """What will be computed, for people."""
        blank, privacy = self.document.blank, self.document.privacy
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

    def bounds(self) -> DirectedBounds:
        """The rounds to compose; the document's blank must be filled or be ε or δ."""
        merge = self.document.accounting.method == "auto"
        return combine((reduction.bounds() for reduction in self.reductions), merge_gaussians=merge)

    def composed_bounds(self) -> DirectedBounds | None:
        """The rounds of the phases that are not sampled; None if all are. Their blanks must be filled."""
        merge = self.document.accounting.method == "auto"
        parts = [reduction.bounds() for reduction in self.reductions if reduction.sampled is None]
        return combine(parts, merge_gaussians=merge) if parts else None

    def mechanism(self) -> SampledMechanism:
        """The sampled phases together, without what they are composed with. Their blanks must be filled."""
        return together(
            [
                (reduction.sampled(), body.count)
                for reduction, body in zip(self.reductions, self.document.bodies, strict=True)
                if reduction.sampled is not None
            ]
        )

    def estimate(self) -> Estimate:
        """The cost, from how the engine scales: evaluations with tolerance^(−1/2), transforms with √(rounds/tolerance).

        A record that is seldom drawn loses about its rate in most rounds, and the lattice must resolve that.
        """
        blank = self.document.blank
        searching = blank is not None and blank[-1] not in ("epsilon", "delta")
        profile = self.document.accounting.profile
        questions = (
            2 + 2 * (len(PROFILE_SHARES if profile is None else profile)) + (2 * SEARCH_STEPS if searching else 0)
        )
        if self.closed_form:
            return Estimate(questions, questions, 0, 1e-3)
        tolerance = self.tolerance
        evaluations = sum(1500 * math.sqrt(1e-4 / tolerance) for _ in self.reductions)
        components = max(reduction.components for reduction in self.reductions)
        iterations = sum(
            body.count * (1000 if body.training.iterations == "solve" else body.training.iterations)
            for body in self.document.bodies
        )
        points = max(15 * math.sqrt(iterations / tolerance), *(50 / _rate(body) for body in self.document.bodies))
        length = 2 ** min(22, max(6, round(math.log2(points))))
        seconds = questions * (evaluations * (components + 2) * 0.5e-6 + length * 0.1e-6)
        return Estimate(questions, round(evaluations), length, seconds)

    def sampling_cost(self) -> list[str]:
        """What a test of the claim takes with plain samples, for people: without drawing any."""
        delta, blank = self.document.privacy.delta, self.document.blank
        probe = self.document
        if blank is not None and blank[-1] == "multiplier":
            probe = probe.with_value(blank, 1.0)
        cost = compile_document(probe).mechanism().cost
        lines = [f"one sample takes about {cost / 1000:.3g} µs on one core"]
        if delta != "solve":
            log = math.log(100.0 / delta)
            easy, hard = 7.0 * log / delta, 51.0 * log / delta
            lines.append(
                f"a verification with plain samples would take about {easy:.2g} of them if the truth is half of δ, {hard:.2g} at "
                f"80 %: {duration(easy * cost / 2e9)} to {duration(hard * cost / 2e9)} on two cores"
            )
        lines.append(
            "with truncated batches only plain samples bound others that are mixed with them: --estimate asks the pilot"
            if any(truncation(body) is not None for body in self.document.bodies)
            else "samples drawn where losses are large, with bounded weights, take fewer: --estimate asks the pilot how many"
        )
        return lines


def compile_document(document: Document) -> Plan:
    """Choose the reduction for each body of the document. Raises `DocumentError` for what no theorem covers.

    A document with `choose:` lists is planned as the first of its candidates; `Plan.candidates` holds them all.
    """
    candidates = document.candidates()
    first = _compile_one(candidates[0])
    return Plan(first.document, first.reductions, tuple(candidates), document) if document.choices else first


def _compile_one(document: Document) -> Plan:
    problems = []
    for body in document.bodies:
        if body.matrix.kind != "identity" and body.sampler.kind in ROUND_BY_ROUND:
            problems.append(
                document.problem(
                    "no-valid-bound",
                    body.at("sampler", "kind"),
                    f"with a matrix the rounds depend on one another, and no bound is known for {body.sampler.kind} sampling; "
                    "b-min-sep, balls-in-bins and cyclic-poisson keep a record's participations apart",
                    allowed="b-min-sep, balls-in-bins, cyclic-poisson or none",
                )
            )
    if problems:
        raise DocumentError(problems)
    plan = Plan(document, tuple(_reduced(document, body) for body in document.bodies))
    if document.accounting.method == "monte-carlo" and not plan.sampled:
        message = (
            "only b-min-sep, balls-in-bins, Poisson and random cyclic-poisson sampling of one record, and user-b-min-sep "
            "sampling of users that share no records, are judged by sampling"
        )
        raise DocumentError(
            [document.problem("no-valid-bound", ("accounting", "method"), message, allowed="auto or pld")]
        )
    if document.blank is None or document.blank[-1] in ("epsilon", "delta"):
        # Refusals that depend on numbers show before anything runs.
        plan.composed_bounds()
    for body in document.bodies:
        if isinstance(body.matrix, Dense | BandedInverse) and body.training.iterations != "solve":
            # So do those that depend on a file, or on an inverse.
            strategy(document, body)
    return plan


def _reduced(document: Document, body: Body) -> Reduction:
    """The reduction of a body; where it counts in epochs, how many rounds these are is an assumption too."""
    reduction = _reducer(document, body)(document, body)
    length = length_text(body)
    return reduction if length is None else replace(reduction, assumptions=(*reduction.assumptions, length))


def _reducer(document: Document, body: Body) -> Callable[[Document, Body], Reduction]:
    if body.noise.kind == "laplace":
        return laplace.reduce
    truncated.refuse(document, body)
    if truncation(body) is not None:
        return truncated.reduce
    if isinstance(body.sampler, CyclicPoisson) and body.sampler.phase == "random":
        return sampled.reduce
    # b-min-sep with b = 1 is Poisson sampling.
    if document.accounting.method == "monte-carlo":
        return sampled.reduce if body.sampler.kind == "poisson" else REDUCERS[body.sampler.kind]
    if isinstance(body.sampler, BMinSep) and separation(body) == 1 and _independent(document, body):
        return poisson.reduce
    return REDUCERS[body.sampler.kind]


def _independent(document: Document, body: Body) -> bool:
    """Whether the matrix is the identity."""
    if isinstance(body.matrix, Identity):
        return True
    if body.training.iterations == "solve" or getattr(body.matrix, "bands", None) != 1:
        return False
    return strategy(document, body).coefficients == (1.0,)
