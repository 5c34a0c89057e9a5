"""The numbers of a certificate that come from a composition: proven intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from pyaccount.certificate.numbers import CertificateNumbers, budget_lines, considered, ordered, searched
from pyaccount.directions import DIRECTIONS
from pyaccount.document.resting import rests_on
from pyaccount.errors import path_text
from pyaccount.execute.long_schedules import narrow
from pyaccount.records.certificate import CurveRecord, DirectionResult, Directions, Guarantee, ProfilePoint, Solved
from pyaccount.records.evidence import (
    AlikeRecord,
    BudgetLine,
    Composition,
    EvidenceRecord,
    ProfileWorkRecord,
)
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.directions import Direction
    from pyaccount.execute import Evidence, PinnedClaim
    from pyaccount.execute.curve import CurvePoint
    from pyaccount.execute.engine import Answer
    from pyaccount.plan.compiled import CompiledDocument
    from pyaccount.plan.rounds import DirectedBounds


#: The line of the error budget for laws that are enclosed between two others.
ENCLOSURE = (
    "law of a likelihood ratio: δ by the law above less δ by the law below, with what the other lines say of both"
)
#: The line of the error budget for rounds that are bounded by similar ones.
ALIKE = (
    "rounds that are nearly alike, bounded by the worst of them: δ by the rounds above less δ by the rounds below, with what "
    "the other lines say of both"
)


def composed(plan: CompiledDocument, evidence: Evidence) -> CertificateNumbers:
    """Return the numbers of a certificate; `plan` is the plan that was run."""
    claim, rests = evidence.claim, rests_on(evidence.document.to_mapping())
    return CertificateNumbers(
        guarantee=Guarantee(
            kind=rests.kind,
            epsilon=claim.epsilon,
            epsilon_lower=ordered(claim.epsilon_lower, claim.epsilon, "ε"),
            delta=claim.delta,
            delta_lower=ordered(min(claim.at_epsilon.lower, 1.0), claim.delta, "δ"),
            failure_probability=rests.failure_probability,
        ),
        solved=_solved(plan, evidence),
        directions=Directions(**{d: _direction(evidence, d) for d in DIRECTIONS}),
        profile=[_point(answer, claim) for answer in evidence.profile],
        evidence=_evidence(plan, evidence),
    )


def _solved(plan: CompiledDocument, evidence: Evidence) -> Solved | None:
    if evidence.solution is not None:
        solution = evidence.solution
        return Solved(path=path_text(solution.path), value=solution.value, fails_at=solution.fails_at)
    blank, claim = plan.document.blank, evidence.claim
    if blank is None:
        return None
    value, below = (
        (claim.epsilon, claim.epsilon_lower) if blank[-1] == "epsilon" else (claim.delta, claim.at_epsilon.lower)
    )
    return Solved(path=path_text(blank), value=value, fails_at=below if below > 0.0 else None)


def _point(answer: Answer, claim: PinnedClaim, direction: Direction | None = None) -> ProfilePoint:
    source = answer if direction is None else answer.directions[direction]
    epsilon = answer.question.epsilon
    assert epsilon is not None
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


def _direction(evidence: Evidence, direction: Direction) -> DirectionResult:
    at_delta = evidence.claim.direction(direction)
    at_epsilon = evidence.claim.at_epsilon.directions[direction]
    return DirectionResult(
        epsilon=at_delta.upper,
        epsilon_lower=ordered(at_delta.lower, at_delta.upper, f"ε in the direction {direction}"),
        delta=min(at_epsilon.upper, 1.0),
        delta_lower=min(at_epsilon.lower, 1.0),
        profile=[_point(answer, evidence.claim, direction) for answer in evidence.profile],
        curve=_curve(evidence.curves[direction]),
    )


def _curve(points: Sequence[CurvePoint]) -> CurveRecord | None:
    if not points:
        return None
    return CurveRecord(epsilon=[point.epsilon for point in points], delta=[point.delta for point in points])


def _evidence(plan: CompiledDocument, evidence: Evidence) -> EvidenceRecord:
    claim, instance = evidence.claim, evidence.instance
    anchor = claim.at_delta if claim.anchor == "delta" else claim.at_epsilon
    question = (
        f"ε at δ = {shortest(anchor.question.delta)}"
        if anchor.question.delta is not None
        else f"δ at ε = {shortest(anchor.question.epsilon or 0.0)}"
    )
    bounds, attained = evidence.bounds, all(reduction.tight for reduction in instance.reductions)
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
        if direction in evidence.inner:
            # Both compositions bound δ of the pair, so the law above adds no more than the distance between their ends.
            width = min(claim.at_epsilon.directions[direction].upper, 1.0) - evidence.inner[direction]
            source = ENCLOSURE if rounds.kinds is None else ALIKE
            budget.append(BudgetLine(source=source, direction=label, contribution=max(0.0, width)))
    if evidence.risk is not None:
        measured = evidence.risk.measured
        # This line sums all errors: lattice, tails, transforms and rounding of the points, and the part between the
        # points.
        words = (
            f"width of the interval of the {measured.budget.words}, in its own unit: profile points, and between them"
        )
        width = max(0.0, measured.upper - measured.lower)
        if math.isfinite(width):
            budget.append(BudgetLine(source=words, direction="both", contribution=width))
    alike = _alike(evidence.bounds)
    # For groups, the tolerance applies to the whole interval, not only to what their compositions add.
    within = anchor.within_tolerance if alike is None else narrow(anchor, plan.tolerance)
    within = within and (evidence.risk is None or evidence.risk.measured.within_tolerance)
    return EvidenceRecord(
        engine=plan.engine,
        tolerance=plan.tolerance,
        within_tolerance=within,
        compositions=compositions,
        sampling=None,
        considered=considered(plan),
        searched=searched(plan),
        alike=alike,
        profile_work=None if evidence.profile_work is None else ProfileWorkRecord(**evidence.profile_work._asdict()),
        error_budget=budget,
    )


def _alike(bounds: DirectedBounds) -> AlikeRecord | None:
    """Return how many kinds of rounds exist and were composed, in the direction with most; None if none is grouped."""
    counts = [
        (bounds[side].kinds or 0, len(bounds[side].upper)) for side in DIRECTIONS if bounds[side].kinds is not None
    ]
    return AlikeRecord(kinds=max(counts)[0], composed=max(counts)[1]) if counts else None
