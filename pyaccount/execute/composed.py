"""Run plans whose rounds compose, and fill the certificate's record with proven intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from pyaccount import _core
from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.document.document import Document
from pyaccount.document.resting import rests_on
from pyaccount.errors import DocumentError, LimitError, path_text
from pyaccount.execute.certified import (
    CertifiedNumbers,
    budget_lines,
    considered,
    contrast_record,
    ordered,
    risk_record,
    searched,
    unamplified_record,
)
from pyaccount.execute.curve import CurvePoint, curves
from pyaccount.execute.engine import (
    Allowance,
    Answer,
    DirectedAnswer,
    Engine,
    Question,
    asked_at,
    finite,
    refuse_infinite,
)
from pyaccount.execute.group_lemma import group_lemma
from pyaccount.execute.options import RunOptions
from pyaccount.execute.progress import NotComputed, Report, knowing
from pyaccount.execute.shared_points import (
    NEGLIGIBLE,
    PROFILE_TOLERANCE,
    at_its_upper_end,
    composable,
    narrow,
    points_of,
    profile_tolerance,
    read_profile,
)
from pyaccount.execute.solve import Solution, bracket, decide, solve
from pyaccount.execute.target import NEAR_ZERO, Found, MeasuredRisk, interval_words, risk_attained
from pyaccount.execute.unamplified import contrast, unamplified_bounds
from pyaccount.plan.alike import composed_alike
from pyaccount.plan.common import default_profile, number
from pyaccount.plan.compiled import CompiledDocument, Instance
from pyaccount.plan.recursion import COMPOSED, recursion_errors
from pyaccount.plan.rounds import Bounds, DirectedBounds
from pyaccount.records.certificate import (
    Contrast,
    CurveRecord,
    DirectionResult,
    Directions,
    Guarantee,
    KindOfRecord,
    ProfilePoint,
    Solved,
)
from pyaccount.records.evidence import AlikeRecord, BudgetLine, Composition, EvidenceRecord, ProfileWorkRecord
from pyaccount.rounding import shortest

#: The relative width of the unamplified contrast: most often one Gaussian mechanism, for which this costs nothing.
CONTRAST_TOLERANCE = 1e-6
#: A profile with its curve may take this many times the work of its guarantee, and in any case this many cells, which take
#: one or two seconds: a guarantee that took no composition has a profile too, and usual profiles are as narrow as asked for.
PROFILE_WORK, LEAST_PROFILE_WORK = 10, 1 << 26
#: A recursion is left out where the interval of the composed bounds is relatively no wider than this, or than a tolerance that is
#: stated: it takes up to a hundred times as long.
NARROW = 1e-3


#: The line of the error budget for laws that are enclosed between two others.
ENCLOSURE = (
    "law of a likelihood ratio: δ by the law above less δ by the law below, with what the other lines say of both"
)
#: The line of the error budget for rounds that are bounded by similar ones.
ALIKE = (
    "rounds that are nearly alike, bounded by the worst of them: δ by the rounds above less δ by the rounds below, with what "
    "the other lines say of both"
)


class DirectionInterval(NamedTuple):
    """The true value is at least `lower` and at most `upper`."""

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
        return self.at_delta.upper if self.anchor == "delta" else number(self.at_epsilon.question.epsilon)

    @property
    def delta(self) -> float:
        """The certified δ, an upper bound."""
        return number(self.at_delta.question.delta) if self.anchor == "delta" else min(self.at_epsilon.upper, 1.0)

    @property
    def epsilon_lower(self) -> float:
        """A lower bound on ε: no smaller ε holds at the certified δ."""
        return max(self.direction(direction).lower for direction in DIRECTIONS)

    def direction(self, direction: Direction) -> DirectionInterval:
        """Return the interval for ε in one direction, at the certified δ."""
        return self._ends(self.at_delta.directions[direction])

    def record(self, name: str, found: Answer) -> KindOfRecord:
        """Return the guarantee of one kind of record, at the certified δ, from the answer to the same question."""
        lower, upper = self._ends(found)
        return KindOfRecord(name=name, epsilon=upper, epsilon_lower=ordered(lower, upper, f"ε of {name}"))

    def _ends(self, found: Answer | DirectedAnswer) -> DirectionInterval:
        asked = number(self.at_delta.question.delta)
        return DirectionInterval(
            found.lower if asked >= self.delta else 0.0,
            # A bound for the claim holds in each of the two directions, and for each kind of record.
            min(found.upper, self.epsilon) if asked <= self.delta else self.epsilon,
        )


def execute(plan: CompiledDocument, options: RunOptions) -> CertifiedNumbers:
    """Run a plan whose rounds compose. Raises `DocumentError` if nothing reaches the target, and `LimitError`."""
    report, document = options.report, plan.document
    engine = Engine(threads=options.threads, time_limit=options.remaining)
    plan = _without_needless_recursion(plan, engine, report)
    solution, holds, known = None, True, None
    if plan.blank is not None:
        only_attacked = plan.attacked and not plan.recursive
        solution = solve(plan.without_recursion() if only_attacked else plan, engine, report)
        instance, known = solution.instance, solution.found
        if only_attacked and known.answer is not None:
            # An attack is looked for once the value is known.
            attacked = plan.at(solution.value)
            answer = engine.ask(attacked.bounds(), known.answer.question)
            if answer.upper <= known.answer.upper:
                instance, known = attacked, replace(known, answer=answer)
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
    found = _Guarantee(plan, instance, bounds, holds, claim, risk, solution)
    with knowing(lambda: [interval_words(claim.at_delta), *_blank_words(solution)]):
        return _with_profile(found, engine, report)


def _without_needless_recursion(plan: CompiledDocument, engine: Engine, report: Report) -> CompiledDocument:
    """Return the plan by the composed bounds alone, if their interval is narrow."""
    if not plan.attacked:
        return plan
    composed, privacy = plan.without_recursion(), plan.document.privacy
    value = None
    if plan.blank is not None:
        try:
            value = solve(composed, engine, report).value
        except DocumentError:
            return plan
    delta = None if privacy.delta == "solve" else number(privacy.delta)
    narrow_enough = min(NARROW, plan.document.accounting.tolerance or NARROW)
    question = Question(number(privacy.epsilon) if delta is None else None, delta, 0.1 * narrow_enough)
    answer = engine.ask(composed.at(value).bounds(), question)
    return composed if answer.upper - answer.lower <= narrow_enough * answer.upper < math.inf else plan


class _Guarantee(NamedTuple):
    """What is computed first, and certified whatever else a time limit leaves out."""

    plan: CompiledDocument
    #: The plan with its blank filled, and the rounds that were composed for the guarantee.
    instance: Instance
    bounds: DirectedBounds
    holds: bool
    claim: PinnedClaim
    risk: MeasuredRisk | None
    solution: Solution | None


def _with_profile(found: _Guarantee, engine: Engine, report: Report) -> CertifiedNumbers:
    """Return the record of a guarantee, with the profile and the values that are stated for comparison."""
    plan, instance, bounds, holds, claim, risk, solution = found
    document, tolerance = instance.document, plan.tolerance
    report("profile", 1, 3)
    points = document.accounting.profile
    if points is None:
        points = default_profile(claim.epsilon)
    delta = number(claim.at_delta.question.delta)
    unamplified = _unamplified(found, engine)
    profile: tuple[Answer, ...] = ()
    lemma: Contrast | None = None
    more: dict[Direction, tuple[CurvePoint, ...]] = dict.fromkeys(DIRECTIONS, ())
    missing: list[NotComputed] = []
    # A time limit may leave out any of the following; the guarantee holds without it.
    attained = 0.0
    records: list[KindOfRecord] = []
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
                profile = points_of(engine, bounds, points, PROFILE_TOLERANCE, NEGLIGIBLE * delta)
                more = curves(engine, bounds, _ends(claim, profile), PROFILE_TOLERANCE)
    except LimitError:
        missing += ["curve"] if profile else ["profile", "curve"]
    report("contrast", 2, 3)
    composed = _composed_bound(found, engine, missing)
    if document.privacy.group_size != 1:
        try:
            lemma = group_lemma(document, engine, delta)
        except LimitError:
            missing.append("group lemma")
    inner = _inner(engine, bounds, claim)
    report("done", 3, 3)
    rests, told = rests_on(document.to_mapping()), (claim.epsilon, claim.epsilon_lower, claim.delta)
    coarser = ProfileWorkRecord(guarantee=work, allowed=allowance.most, taken=allowance.taken)
    return CertifiedNumbers(
        instance=instance,
        holds=holds,
        guarantee=Guarantee(
            kind=rests.kind,
            epsilon=claim.epsilon,
            epsilon_lower=ordered(claim.epsilon_lower, claim.epsilon, "ε"),
            delta=claim.delta,
            delta_lower=ordered(min(claim.at_epsilon.lower, 1.0), claim.delta, "δ"),
            failure_probability=rests.failure_probability,
        ),
        solved=_solved(plan, claim, solution),
        directions=Directions(**{side: _direction(claim, profile, more[side], side) for side in DIRECTIONS}),
        profile=[_point(answer, claim) for answer in profile],
        evidence=_evidence(found, inner, coarser if allowance.coarser else None),
        unamplified=unamplified,
        not_computed=missing,
        risk=None if risk is None else risk_record(risk.budget, (risk.upper, min(attained, risk.upper)), told),
        records=records or None,
        composed_bound=composed,
        group_lemma=lemma,
    )


def _unamplified(found: _Guarantee, engine: Engine) -> Contrast:
    """Return the bound for public participations at the certified δ."""
    instance, claim = found.instance, found.claim
    near_zero = claim.anchor == "epsilon" and 0.0 < claim.epsilon <= NEAR_ZERO
    with _core.Deadline(None):
        if near_zero and unamplified_bounds(instance) == found.bounds:
            # The question is that of the claim, whose ε is not resolved any further here either.
            return unamplified_record(instance, claim.at_delta)
        question = Question(None, number(claim.at_delta.question.delta), CONTRAST_TOLERANCE)
        return unamplified_record(instance, contrast(instance, engine, question))


def _composed_bound(found: _Guarantee, engine: Engine, missing: list[NotComputed]) -> Contrast | None:
    """Return the composed bound at the certified δ; None if the guarantee is that."""
    if not found.instance.recursive:
        return None
    delta = number(found.claim.at_delta.question.delta)
    try:
        answer = engine.ask(found.instance.composed(), Question(None, delta, found.plan.tolerance))
        return contrast_record(COMPOSED, answer.upper, delta)
    except LimitError:
        missing.append("composed bound")
        return None


def _records(instance: Instance, engine: Engine, claim: PinnedClaim) -> list[KindOfRecord]:
    """Return the guarantee for each kind of record at the certified δ; empty if all records are of one kind."""
    kinds, question = instance.alternatives(), claim.at_delta.question
    answers = engine.ask_all([(kind.bounds, question) for kind in kinds]) if kinds else []
    return [claim.record(kind.name, answer) for kind, answer in zip(kinds, answers, strict=True)]


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
    """Return the known points of each direction's profile, its own and the guarantee, which holds in both; empty without one."""
    points: dict[Direction, list[CurvePoint]] = {}
    for side in DIRECTIONS if profile else ():
        least = min(claim.delta, claim.at_epsilon.directions[side].upper)
        ends = [CurvePoint(claim.epsilon, least), CurvePoint(claim.direction(side).upper, claim.delta)]
        own = [CurvePoint(number(one.question.epsilon), min(1.0, one.directions[side].upper)) for one in profile]
        points[side] = sorted([*own, *ends])
    return points


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
        width = profile_tolerance(bounds, tolerance)
        if privacy.delta == 0.0:  # the largest loss answers, and nothing is composed
            at_epsilon = engine.ask(bounds, Question(at_delta.upper, None, width))
        else:
            at_epsilon = at_its_upper_end(engine, bounds, at_delta, width, NEGLIGIBLE * privacy.delta)
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


def _solved(plan: CompiledDocument, claim: PinnedClaim, solution: Solution | None) -> Solved | None:
    if solution is not None:
        return Solved(path=path_text(solution.path), value=solution.value, fails_at=solution.fails_at)
    blank = plan.document.blank
    if blank is None:
        return None
    value, below = (
        (claim.epsilon, claim.epsilon_lower) if blank[-1] == "epsilon" else (claim.delta, claim.at_epsilon.lower)
    )
    return Solved(path=path_text(blank), value=value, fails_at=below if below > 0.0 else None)


def _point(answer: Answer, claim: PinnedClaim, direction: Direction | None = None) -> ProfilePoint:
    source, epsilon = answer if direction is None else answer.directions[direction], number(answer.question.epsilon)
    # δ falls with ε, and the guarantee was found more finely than the profile: from its ε on, its δ bounds both
    # directions.
    upper = min(source.upper, 1.0 if epsilon < claim.epsilon else claim.delta, 1.0)
    return ProfilePoint(
        epsilon=epsilon,
        delta=upper,
        delta_lower=min(source.lower, upper),
        delta_estimate=None,
        standard_error=None,
    )


def _direction(
    claim: PinnedClaim, profile: Sequence[Answer], curve: Sequence[CurvePoint], direction: Direction
) -> DirectionResult:
    at_delta, at_epsilon = claim.direction(direction), claim.at_epsilon.directions[direction]
    points = {name: [getattr(point, name) for point in curve] for name in CurvePoint._fields}
    return DirectionResult(
        epsilon=at_delta.upper,
        epsilon_lower=ordered(at_delta.lower, at_delta.upper, f"ε in the direction {direction}"),
        delta=min(at_epsilon.upper, 1.0),
        delta_lower=min(at_epsilon.lower, 1.0),
        profile=[_point(answer, claim, direction) for answer in profile],
        curve=CurveRecord(**points) if curve else None,
    )


def _evidence(
    found: _Guarantee, inner: dict[Direction, float], profile_work: ProfileWorkRecord | None
) -> EvidenceRecord:
    plan, instance, bounds, _, claim, risk, _ = found
    anchor = claim.at_delta if claim.anchor == "delta" else claim.at_epsilon
    question = (
        f"ε at δ = {shortest(anchor.question.delta)}"
        if anchor.question.delta is not None
        else f"δ at ε = {shortest(anchor.question.epsilon or 0.0)}"
    )
    attained = all(reduction.tight for reduction in instance.reductions)
    compositions: list[Composition] = []
    budget: list[BudgetLine] = []
    # If both directions are the same composition, it is listed once.
    shared = bounds["remove"] == bounds["add"]
    for direction in DIRECTIONS[:1] if shared else DIRECTIONS:
        label: Literal["remove", "add", "both"] = "both" if shared else "add" if direction == "add" else "remove"
        answer = anchor.directions[direction]
        rounds = bounds[direction]
        # If laws enclose the rounds, no composition is that of the mechanism itself.
        laws = set(rounds.inner or ()) - set(rounds.upper)
        accounts = [("mechanism" if attained and not laws else "upper", answer.upper_account)]
        if rounds.lower != rounds.upper and (laws or not attained):
            accounts.append(("lower" if laws & set(rounds.lower) else "concrete-pair", answer.lower_account))
        for bound, account in accounts:
            compositions.append(
                Composition(
                    direction=label,
                    bound=bound,  # type: ignore[arg-type]
                    question=question,
                    lower=account.lower,
                    # If its own composition gives no upper bound, use that of the mechanism: a δ below the mechanism's
                    # is at most its bound.
                    upper=account.upper if math.isfinite(account.upper) else answer.upper,
                    spacing=account.spacing,
                    profile_evaluations=account.nodes,
                    transform_length=account.transform_length,
                    tilt=account.tilt,
                )
            )
        budget += budget_lines(answer, label)
        if direction in inner:
            # Both compositions bound δ of the pair, so the law above adds no more than the distance between their ends.
            width = min(claim.at_epsilon.directions[direction].upper, 1.0) - inner[direction]
            source = ENCLOSURE if rounds.kinds is None else ALIKE
            budget.append(BudgetLine(source=source, direction=label, contribution=max(0.0, width)))
        for source, error in recursion_errors(rounds.upper, claim.epsilon):
            budget.append(BudgetLine(source=source, direction=label, contribution=error))
    if risk is not None:
        # This line sums all errors: lattice, tails, transforms and rounding of the points, and the part between the
        # points.
        words = f"width of the interval of the {risk.budget.words}, in its own unit: profile points, and between them"
        width = max(0.0, risk.upper - risk.lower)
        if math.isfinite(width):
            budget.append(BudgetLine(source=words, direction="both", contribution=width))
    grouped = max(((side.kinds, len(side.upper)) for side in bounds.values() if side.kinds is not None), default=None)
    alike = None if grouped is None else AlikeRecord(kinds=grouped[0], composed=grouped[1])
    # For groups, the tolerance applies to the whole interval, not only to what their compositions add.
    within = anchor.within_tolerance if alike is None else narrow(anchor, plan.tolerance)
    within = within and (risk is None or risk.within_tolerance)
    used = plan if not plan.recursive or instance.recursive else plan.without_recursion()
    return EvidenceRecord(
        engine=used.engine,
        tolerance=plan.tolerance,
        within_tolerance=within,
        compositions=compositions,
        sampling=None,
        considered=considered(plan),
        searched=searched(plan),
        alike=alike,
        profile_work=profile_work,
        error_budget=budget,
    )
