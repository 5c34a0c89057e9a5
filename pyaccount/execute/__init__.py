"""Run plans: compute the values that a certificate states, with the evidence for them.

`engine` asks the core on this machine, `solve` fills the blank, `sampling` tests mechanisms by samples, `choose`
compares the candidates that a document leaves open, and `group_lemma` computes the black-box bound for groups, for
contrast. This room takes plans and gives evidence. It knows plans and the core; it does not know how a certificate is
worded.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from pyaccount import _core
from pyaccount.directions import DIRECTIONS
from pyaccount.errors import LimitError
from pyaccount.execute.curve import CurvePoint, curves
from pyaccount.execute.engine import RESOLVED, Allowance, Answer, DirectedAnswer, Engine, Question, asked_at, finite
from pyaccount.execute.group_lemma import GroupLemma, group_lemma
from pyaccount.execute.infinite_loss import refuse_infinite
from pyaccount.execute.long_schedules import PROFILE_TOLERANCE, composable, profile_tolerance, read_profile
from pyaccount.execute.measure import MeasuredRisk, risk_attained
from pyaccount.execute.options import RunOptions
from pyaccount.execute.progress import NotComputed, Report, knowing
from pyaccount.execute.shared_points import points_of
from pyaccount.execute.solve import Solution, bracket, decide, solve
from pyaccount.execute.target import NEAR_ZERO, Found, interval_words
from pyaccount.execute.unamplified import contrast, unamplified_bounds
from pyaccount.plan.alike import composed_alike
from pyaccount.plan.common import default_profile, number
from pyaccount.plan.rounds import Bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.directions import Direction
    from pyaccount.document.document import Document
    from pyaccount.execute.sampling import SampledEvidence
    from pyaccount.execute.sampling.forecast import Forecast
    from pyaccount.plan.compiled import CompiledDocument, Instance
    from pyaccount.plan.rounds import DirectedBounds

__all__ = [
    "RESOLVED",
    "Answer",
    "Engine",
    "Evidence",
    "Question",
    "RecordGuarantee",
    "RunOptions",
    "asked_at",
    "run",
]

#: The relative width of the unamplified contrast: most often one Gaussian mechanism, for which this costs nothing.
CONTRAST_TOLERANCE = 1e-6
#: A profile with its curve may take this many times the work of its guarantee, and in any case this many cells, which take
#: one or two seconds: a guarantee that took no composition has a profile too, and usual profiles are as narrow as asked for.
PROFILE_WORK, LEAST_PROFILE_WORK = 10, 1 << 26


class DirectionInterval(NamedTuple):
    """An interval for one direction: the true value is at least `lower` and at most `upper`."""

    lower: float
    upper: float


class ProfileWork(NamedTuple):
    """How much work a profile was allowed, and what it and the guarantee took, in cells."""

    guarantee: int
    allowed: int
    taken: int


class RecordGuarantee(NamedTuple):
    """An interval for ε at the certified δ, for one kind of record: it is at least `lower` and at most `upper`."""

    name: str
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class PinnedClaim:
    """A point of the privacy curve, with bounds from both sides.

    `at_delta` is the interval for ε at the δ of the claim, `at_epsilon` the interval for δ at its ε. `anchor` names the
    coordinate that was given; the other coordinate is the upper bound that was found for it.

    If δ is the coordinate that was found and it lies outside of `RESOLVED`, then ε was asked at the nearest δ inside.
    ε(δ) decreases, so that answer is a lower bound at every smaller δ and an upper bound at every larger one. At the
    claim's own δ the other bound is one that holds without an answer: 0 from below, the claim's ε from above.
    """

    anchor: Literal["epsilon", "delta"]
    at_delta: Answer
    at_epsilon: Answer

    @property
    def epsilon(self) -> float:
        """The certified ε, an upper bound in nats."""
        return self.at_delta.upper if self.anchor == "delta" else given(self.at_epsilon.question.epsilon)

    @property
    def delta(self) -> float:
        """The certified δ, an upper bound."""
        return given(self.at_delta.question.delta) if self.anchor == "delta" else min(self.at_epsilon.upper, 1.0)

    @property
    def epsilon_lower(self) -> float:
        """A lower bound on ε: no smaller ε holds at the certified δ."""
        return max(self.direction(direction).lower for direction in DIRECTIONS)

    def direction(self, direction: Direction) -> DirectionInterval:
        """Return the interval for ε in one direction, at the certified δ."""
        return DirectionInterval(*self._ends(self.at_delta.directions[direction]))

    def record(self, name: str, found: Answer) -> RecordGuarantee:
        """Return the interval for ε of one kind of record, at the certified δ, from the answer to the same question."""
        return RecordGuarantee(name, *self._ends(found))

    def _ends(self, found: Answer | DirectedAnswer) -> tuple[float, float]:
        asked = given(self.at_delta.question.delta)
        return (
            found.lower if asked >= self.delta else 0.0,
            # A bound for the claim holds in each of the two directions, and for each kind of record.
            min(found.upper, self.epsilon) if asked <= self.delta else self.epsilon,
        )


@dataclass(frozen=True, slots=True)
class CertifiedRisk:
    """A measure of risk at the value of the blank, with `attained`, a lower bound on it for the mechanism itself."""

    measured: MeasuredRisk
    attained: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that a certificate states, as computed. `instance` is the plan that was run, its blank filled."""

    instance: Instance
    #: The rounds that were composed for the guarantee.
    bounds: DirectedBounds
    holds: bool
    claim: PinnedClaim
    solution: Solution | None
    profile: tuple[Answer, ...]
    unamplified: Answer
    group_lemma: GroupLemma | None
    #: More points of each direction's profile, for pictures.
    curves: dict[Direction, tuple[CurvePoint, ...]]
    #: What was left out because of a time limit, after the guarantee was known.
    not_computed: tuple[NotComputed, ...] = ()
    #: The risk, if the document has a budget of risk.
    risk: CertifiedRisk | None = None
    #: For each direction whose rounds are enclosed by laws: the lower bound on δ by the laws below, at the certified ε.
    inner: dict[Direction, float] = field(default_factory=dict)
    #: The guarantee for each kind of record, if records are of several kinds.
    records: tuple[RecordGuarantee, ...] = ()
    #: The work of the profile, if that is coarser because no more was allowed.
    profile_work: ProfileWork | None = None

    @property
    def document(self) -> Document:
        """The document, with its blank filled unless the blank is ε or δ."""
        return self.instance.document


def run(plan: CompiledDocument, options: RunOptions) -> tuple[CompiledDocument, Evidence | SampledEvidence]:
    """Make the choices that the document leaves open, then run the plan. Return the plan that was run and its evidence.

    Raises `DocumentError` if no value reaches the target, `LimitError` at the time limit.
    """
    with options.begun(plan.document) as begun:
        plan, options = _settled(plan, begun)
        if not plan.sampled:
            return plan, execute(plan, options)
        from pyaccount.execute.sampling import execute_sampled  # that room imports this one's engine

        return plan, execute_sampled(plan, options)


def settle(plan: CompiledDocument, options: RunOptions) -> CompiledDocument:
    """Return the plan with its choices made and its matrix found. Computes nothing else. Raises the errors of `run`."""
    with options.begun(plan.document) as begun:
        return _settled(plan, begun)[0]


class Estimated(NamedTuple):
    """A plan with its choices made, and the pilot's estimates if its mechanism is sampled."""

    plan: CompiledDocument
    forecast: Forecast | None


def estimate(plan: CompiledDocument, options: RunOptions) -> Estimated:
    """Make the choices of a plan, and estimate what its certificate will state. None of it is a guarantee.

    Raises the errors of `run`.
    """
    with options.begun(plan.document) as begun:
        plan, settled = _settled(plan, begun)
        if not plan.sampled:
            return Estimated(plan, None)
        from pyaccount.execute.sampling.forecast import forecast  # that room imports this one's engine

        return Estimated(plan, forecast(plan, settled))


def _settled(plan: CompiledDocument, options: RunOptions) -> tuple[CompiledDocument, RunOptions]:
    """Return the plan with its choices made, and the options with the seed of everything that is sampled for it."""
    # The choice and the certificate use one seed, so that the recorded seed reproduces both.
    seed = options.seed if plan.document.accounting.seed is None else plan.document.accounting.seed
    if seed is None:
        # A plan that is only composed does not use the seed.
        seed = secrets.randbits(64) if plan.sampled or plan.candidates else 0
    options = replace(options, seed=seed)
    if plan.candidates:
        from pyaccount.execute.choose import choose  # seldom needed

        # Only what is drawn for the certificate is stored, or drawn by other processes.
        plan = choose(plan, replace(options, runner=None))
    return plan, options


def given(value: float | None) -> float:
    """Return a coordinate of a question that is known to be given."""
    assert value is not None
    return value


def execute(plan: CompiledDocument, options: RunOptions) -> Evidence:
    """Run a plan whose rounds compose. Raises `DocumentError` if nothing reaches the target, and `LimitError`."""
    report, document = options.report, plan.document
    engine = Engine(threads=options.threads, time_limit=options.remaining)
    solution, holds, known = None, True, None
    if plan.blank is not None:
        solution = solve(plan, engine, report)
        instance, known = solution.instance, solution.found
    else:
        instance = plan.at()
    if document.blank is None:
        report("checking the claim", 0, 3)
        seen: list[Found] = []
        with knowing(lambda: _interval_words(seen[-1] if seen else None)):
            verdict = decide(instance, engine, plan.tolerance, seen)
        holds, known = verdict.holds, verdict.found
    report("composing", 0, 3)
    with knowing(lambda: [*_interval_words(known), *_blank_words(solution)]):
        answered = None if known is None else known.answer
        bounds, answered = composable(instance, engine, plan.tolerance, answered)
        claim = _claim(instance.document, engine, bounds, answered, plan.tolerance)
        risk = None if known is None else known.risk
    guarantee = _Guarantee(instance, bounds, holds, claim, risk, solution)
    with knowing(lambda: [interval_words(claim.at_delta), *_blank_words(solution)]):
        return _with_profile(guarantee, engine, plan.tolerance, report)


class _Guarantee(NamedTuple):
    """What is certified: the part of the evidence that is computed first."""

    instance: Instance
    bounds: DirectedBounds
    holds: bool
    claim: PinnedClaim
    risk: MeasuredRisk | None
    solution: Solution | None


def _with_profile(guarantee: _Guarantee, engine: Engine, tolerance: float, report: Report) -> Evidence:
    """Return the evidence for a guarantee, with the profile and the values that are stated for comparison."""
    instance, bounds, holds, claim, risk, solution = guarantee
    document = instance.document
    report("profile", 1, 3)
    points = document.accounting.profile
    if points is None:
        points = default_profile(claim.epsilon)
    delta = given(claim.at_delta.question.delta)
    near_zero = claim.anchor == "epsilon" and 0.0 < claim.epsilon <= NEAR_ZERO
    with _core.Deadline(None):
        if near_zero and unamplified_bounds(instance) == bounds:
            # The question is that of the claim, whose ε is not resolved any further here either.
            unamplified = claim.at_delta
        else:
            unamplified = contrast(instance, engine, Question(None, delta, CONTRAST_TOLERANCE))
    profile: tuple[Answer, ...] = ()
    lemma: GroupLemma | None = None
    more: dict[Direction, tuple[CurvePoint, ...]] = dict.fromkeys(DIRECTIONS, ())
    missing: list[NotComputed] = []
    # A time limit may leave out any of the following; the guarantee holds without it.
    attained = 0.0
    records: tuple[RecordGuarantee, ...] = ()
    try:
        records = _records(instance, engine, claim)
    except LimitError:
        missing.append("records")
    if risk is not None:
        try:
            attained = risk_attained(engine, bounds, risk.budget, tolerance)
        except LimitError:
            missing.append("lower ends")
    work = claim.at_delta.work + claim.at_epsilon.work
    allowance = Allowance(max(PROFILE_WORK * work, LEAST_PROFILE_WORK))
    try:
        with engine.within(allowance):
            if composed_alike(bounds) and points:
                width = profile_tolerance(bounds, tolerance)
                profile, more = read_profile(engine, bounds, points, lambda read: _ends(claim, read), width)
            else:
                profile = points_of(engine, bounds, points, PROFILE_TOLERANCE)
                more = curves(engine, bounds, _ends(claim, profile), PROFILE_TOLERANCE)
    except LimitError:
        missing += ["curve"] if profile else ["profile", "curve"]
    report("contrast", 2, 3)
    if document.privacy.group_size != 1:
        try:
            lemma = group_lemma(document, engine, delta)
        except LimitError:
            missing.append("group lemma")
    inner = _inner(engine, bounds, claim)
    report("done", 3, 3)
    certified = None if risk is None else CertifiedRisk(risk, min(attained, risk.upper))
    return Evidence(
        *(instance, bounds, holds, claim, solution, profile, unamplified, lemma, more, tuple(missing)),
        *(certified, inner, records, ProfileWork(work, allowance.most, allowance.taken) if allowance.coarser else None),
    )


def _records(instance: Instance, engine: Engine, claim: PinnedClaim) -> tuple[RecordGuarantee, ...]:
    """Return the guarantee for each kind of record at the certified δ; empty if all records are of one kind."""
    kinds, question = instance.alternatives(), claim.at_delta.question
    answers = engine.ask_all([(kind.bounds, question) for kind in kinds]) if kinds else []
    return tuple(claim.record(kind.name, answer) for kind, answer in zip(kinds, answers, strict=True))


def _inner(engine: Engine, bounds: DirectedBounds, claim: PinnedClaim) -> dict[Direction, float]:
    """Return lower bounds on δ at the certified ε, from the laws below those that bound the rounds from above.

    If these laws are the mechanism's own lower bounds, or time is up, the result is the mechanism's own lower bound on
    δ, which is never larger.
    """
    sides = [side for side in DIRECTIONS if bounds[side].inner is not None]
    known = {side: claim.at_epsilon.directions[side].lower for side in sides}
    if all(bounds[side].inner == bounds[side].lower for side in sides):
        return known
    below = {
        side: Bounds(rounds, rounds) for side in DIRECTIONS for rounds in [bounds[side].inner or bounds[side].upper]
    }
    try:
        answer = engine.ask(below, claim.at_epsilon.question)
    except LimitError:
        return known
    return {side: answer.directions[side].lower for side in sides}


def _ends(claim: PinnedClaim, profile: Sequence[Answer]) -> dict[Direction, list[CurvePoint]]:
    """Return the known points of each direction's profile; empty if there is no profile."""
    return {side: _known(claim, profile, side) for side in DIRECTIONS if profile}


def _known(claim: PinnedClaim, profile: Sequence[Answer], direction: Direction) -> list[CurvePoint]:
    """Return the known points of one direction's profile: its own and the guarantee, which holds in both directions."""
    points = [
        CurvePoint(given(answer.question.epsilon), min(1.0, answer.directions[direction].upper)) for answer in profile
    ]
    least = min(claim.delta, claim.at_epsilon.directions[direction].upper)
    return sorted(
        [*points, CurvePoint(claim.epsilon, least), CurvePoint(claim.direction(direction).upper, claim.delta)]
    )


def _interval_words(found: Found | None) -> list[str]:
    """Return a proven interval in words, as a list of at most one sentence."""
    return [] if found is None else [found.said]


def _blank_words(solution: Solution | None) -> list[str]:
    """Return in words which value the blank was filled with, as a list of at most one sentence."""
    return [] if solution is None else [bracket(solution.path, solution.value, solution.fails_at)]


def _claim(
    document: Document, engine: Engine, bounds: DirectedBounds, known: Answer | None, tolerance: float
) -> PinnedClaim:
    """Return the claim with bounds from both sides; `known` is an answer already found for its given coordinate."""
    privacy = document.privacy
    judged_at_epsilon = known is not None and known.question.epsilon is not None
    if privacy.delta != "solve" and (privacy.epsilon == "solve" or privacy.epsilon > 0.0) and not judged_at_epsilon:
        at_delta = known or engine.ask(bounds, Question(None, privacy.delta, tolerance))
        if math.isinf(at_delta.upper):
            refuse_infinite(document, bounds)
        at_delta = finite(at_delta)
        at_epsilon = engine.ask(bounds, Question(at_delta.upper, None, profile_tolerance(bounds, tolerance)))
        return PinnedClaim("delta", at_delta, at_epsilon)
    at_epsilon = known or engine.ask(bounds, Question(number(privacy.epsilon), None, tolerance))
    delta = asked_at(bounds, at_epsilon.upper)
    if judged_at_epsilon and 0.0 < number(privacy.epsilon) <= NEAR_ZERO and delta >= at_epsilon.upper:
        # An ε so near to zero is not resolved any further: δ(ε) is at most this δ, and nothing is said from below.
        within = _core.ProvenInterval.proven(0.0, number(privacy.epsilon))
        ends = DirectedAnswer(0.0, within.upper, within, within)
        return PinnedClaim(
            "epsilon", Answer(Question(None, delta, tolerance), dict.fromkeys(DIRECTIONS, ends)), at_epsilon
        )
    return PinnedClaim("epsilon", engine.ask(bounds, Question(None, delta, tolerance)), at_epsilon)
