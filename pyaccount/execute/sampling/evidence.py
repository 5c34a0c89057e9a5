"""Collect what a certificate of a sampled mechanism states around a result: lower ends, curves and contrast."""

from __future__ import annotations

import math
from typing import NamedTuple

from pyaccount import _core
from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.document.document import Document
from pyaccount.errors import LimitError, path_text
from pyaccount.execute.certified import (
    CertifiedNumbers,
    budget_lines,
    considered,
    from_guarantee,
    ordered,
    risk_record,
    searched,
    unamplified_record,
)
from pyaccount.execute.engine import RESOLVED, Answer, Engine, Question
from pyaccount.execute.options import RunOptions
from pyaccount.execute.progress import NotComputed
from pyaccount.execute.sampling.beside import PROFILE_SHARDS, Beside, histograms, proposals
from pyaccount.execute.sampling.bounds_without_samples import Known, Proven, proven
from pyaccount.execute.sampling.fixed_sequence import Result, root
from pyaccount.execute.sampling.profile import Curve, Histogram, larger
from pyaccount.execute.sampling.session import FINENESS, Session, open_session
from pyaccount.execute.unamplified import contrast, unsampled_bounds
from pyaccount.plan.common import given, sampled_profile
from pyaccount.plan.compiled import Instance
from pyaccount.plan.compiling import compile_document
from pyaccount.records.certificate import DirectionResult, Directions, Guarantee, ProfilePoint, Solved
from pyaccount.records.evidence import (
    BudgetLine,
    ComposedCurveRecord,
    EvidenceRecord,
    MomentRecord,
    SamplingRecord,
    TestRecord,
)
from pyaccount.risk.budgets import budget_of

#: The engine of a guarantee that is proven by moments.
MOMENTS = (
    "moments of the likelihood ratio, by an exact chain over replicas of a record's participations, which prove the claim "
    "without samples; lower ends and the profile are from samples"
)

#: What samples of a replaced record lack.
BELOW_FLOOR = "outcomes below the floor of the samples, by a bound on δ of an added record"


def _evidence_record(session: Session, result: Result, fallback: Answer) -> EvidenceRecord:
    """Return how a result was computed. `fallback` is the bound that holds if no test accepts."""
    plan, acceptance, tests = session.plan, result.acceptance, result.sequence.tests
    composed, q = session.composed_profile(result.instance), acceptance.probability
    total = acceptance.starts * q
    accepted = [test for test in tests if test.accepted]
    last = {test.direction: test for test in accepted}
    budget: list[BudgetLine] = []
    engine = plan.engine
    tried = "moment" if plan.document.accounting.method == "renyi" else "test"
    if result.kind == "deterministic":
        last = {}
        if result.proof is not None:
            engine, proof = MOMENTS, result.proof
            # All of δ counts, since its distance to the truth is unknown.
            how = f"bound by {'a moment' if proof.polynomial is None else 'moments together'}, rounded up (all of δ)"
            weights = "bound by the weights of a proposal (all of δ)"
            budget.append(BudgetLine(source=how, direction="remove", contribution=proof.remove))
            budget.append(BudgetLine(source=weights, direction="add", contribution=proof.add))
        elif composed is None:
            # The bound is that of the unamplified Gaussian mechanism, whose directions are equal.
            engine = f"closed form (one Gaussian mechanism, not amplified), which no {tried} improved on; {engine}"
            budget += budget_lines(fallback.directions["remove"], "both")
        else:
            engine = (
                "composition with public participations in the sampled phases, as bad as they can be, which no test "
                f"improved on; {engine}"
            )
            for side in DIRECTIONS:
                budget += budget_lines(fallback.directions[side], side)
    for direction, test in last.items():
        lines = {
            "failure of the tests: part of δ, or stated beside the guarantee": total,
            "the generator: finite tail and grid of its normal numbers, rounding of its waiting times and of its counts": (
                test.limits.generator
            ),
            "rounding of the recursion, as a shift of each log density in nats (inside the samples)": test.limits.rounding,
        }
        if composed is not None:
            lines |= {
                "loss of the composed phases beyond their curve, added to what samples estimate": test.limits.tail_mass,
                "largest relative distance of the composed curve's bounds (relative, inside the samples)": (
                    composed.relative_gap
                ),
            }
        if test.limits.clipped > 0.0:
            why = "clipping samples whose second moment is bounded" if test.proposal.floor is None else BELOW_FLOOR
            lines[f"{why}, taken from the claim that is tested"] = test.limits.clipped
        if test.limits.left_out > 0.0:
            lines["samples that draw few busy replicas: what they leave out, taken from the claim that is tested"] = (
                test.limits.left_out
            )
        if test.limits.beyond > 0.0:
            lines["batches that are truncated, added to δ of the run without truncation"] = test.limits.beyond
        budget += [
            BudgetLine(source=source, direction=direction, contribution=contribution)
            for source, contribution in lines.items()
        ]
    deterministic = result.kind == "deterministic"
    return EvidenceRecord(
        engine=engine,
        tolerance=plan.tolerance,
        within_tolerance=result.within,
        compositions=[],
        sampling=SamplingRecord(
            verification="fixed-sample" if acceptance.fixed is not None else "betting",
            seed=session.sampler.seed,
            seed_source="system" if result.instance.document.accounting.seed is None else "document",
            samples=session.sampler.samples,
            shard_size=_core.SHARD_SIZE,
            test_probability=q,
            total_probability=total,
            pointwise_failure_probability=q,
            # A tested guarantee bounds the profile too: see `proven`.
            profile_failure_probability=None if deterministic else min(1.0, math.nextafter(q + total, 1.0)),
            tests=[TestRecord.model_validate(test) for test in tests],
            composed_curve=None if composed is None else ComposedCurveRecord.model_validate(composed),
            moment=None if result.proof is None else MomentRecord.model_validate(result.proof),
        ),
        considered=considered(plan),
        searched=searched(plan),
        alike=None,
        error_budget=budget,
    )


class SampledResult(NamedTuple):
    """What was certified, and the samples of its profile, from which other points can be computed."""

    certified: CertifiedNumbers
    histograms: dict[Direction, list[Histogram]]
    #: Bounds on the profile other than its own samples; None if there is no profile.
    beside: Proven | None


class _Around(NamedTuple):
    """What was computed for a result beside its tests."""

    #: The lower bounds on ε and δ, and the points of the profile, in each direction.
    lower: dict[Direction, tuple[float, float]]
    curves: dict[Direction, list[ProfilePoint]]
    #: For a budget of risk: the upper and the lower bound on ε at a δ, and this δ.
    at: tuple[float, float, float] | None
    missing: list[NotComputed]


def evidence_of(session: Session, result: Result, *, shards: int | None = None) -> SampledResult:
    """Return the record of a result: lower ends, curves and contrast.

    `shards` sets the shards drawn for them, instead of the tests' own. What a time limit leaves out is recorded as
    missing; the guarantee holds without it. A retest, which sets `shards`, needs everything and raises `LimitError`.
    """
    instance, sequence, epsilon = result.instance, result.sequence, result.epsilon
    sampler, mechanism, listed = session.sampler, session.mechanism(instance), instance.document.accounting.profile
    # The guarantee's bounds are the larger of two directions, and either may be the one that is wrong.
    share = result.acceptance.probability / len(mechanism.directions)
    known, beside = _known(session, result), Beside(session, result, mechanism, share, shards)
    curves: dict[Direction, list[ProfilePoint]] = {side: [] for side in mechanism.directions}
    histograms: dict[Direction, list[Histogram]] = {}
    bounds: Proven | None = None
    of_risk = session.report_delta is not None
    report_delta = None if session.report_delta is None else (math.inf, 0.0, session.report_delta)
    missing: list[NotComputed] = ["search"] if sequence.limited else []
    part: NotComputed = "lower ends"
    try:
        # Lower ends are for exactly the σ and ε of the result.
        sampler.stage("lower ends")
        beside.find_lower_ends()
        part = "profile"
        sampler.stage("profile")
        centre = _epsilon_near(session, instance) if of_risk else epsilon
        if listed or of_risk or shards is not None:
            histograms = beside.many_histograms(centre, max((centre, *(listed or sampled_profile(centre)))))
        elif listed is None:
            histograms = beside.few_histograms()
        if session.report_delta is not None:
            bounds = proven(session, instance, known, ())
            report_delta = _epsilon_at(
                session, instance, Curve(sampler, histograms, centre, share, bounds), session.report_delta
            )
        around = epsilon if report_delta is None or math.isinf(report_delta[0]) else report_delta[0]
        epsilons = sampled_profile(around) if listed is None else listed
        if epsilons:
            bounds = proven(session, instance, known, epsilons)
            found = Curve(sampler, histograms, centre, share, bounds)
            everywhere = listed is not None or of_risk
            curves = {side: beside.points(side, found, epsilons, everywhere=everywhere) for side in curves}
    except LimitError:
        if shards is not None or (sequence.value is None and result.kind != "deterministic"):
            raise
        missing += ["lower ends", "profile"] if part == "lower ends" else ["profile"]
    certified = _certified(session, result, _Around(beside.lower, curves, report_delta, missing))
    return SampledResult(certified, histograms, bounds)


def _certified(session: Session, result: Result, around: _Around) -> CertifiedNumbers:
    """Return the record of a result."""
    instance, kind, epsilon, delta = result.instance, result.kind, result.epsilon, result.delta
    q = result.acceptance.probability
    numbers = {
        direction: DirectionResult(
            epsilon=epsilon,
            epsilon_lower=around.lower[direction][0],
            delta=delta,
            delta_lower=around.lower[direction][1],
            profile=around.curves[direction],
            curve=None,
        )
        for direction in around.lower
    }
    both = numbers.get("replace")
    directions = Directions(remove=both or numbers["remove"], add=both or numbers["add"])
    ends = directions.remove, directions.add
    unamplified, fallback = _without_samples(session, result)
    guarantee = Guarantee(
        kind=kind,
        epsilon=epsilon,
        epsilon_lower=ordered(max(end.epsilon_lower for end in ends), epsilon, "ε"),
        delta=delta,
        delta_lower=ordered(max(end.delta_lower for end in ends), delta, "δ"),
        failure_probability=result.acceptance.starts * q if kind == "confidence" else 0.0,
    )
    blank, solved, risk = session.asked.blank, None, None
    if blank is not None and result.solved is not None:
        solved = Solved(path=path_text(blank), value=result.solved, fails_at=None)
    budget = budget_of(session.asked)
    if budget is not None and around.at is not None:
        risk = risk_record(budget, from_guarantee(budget, guarantee, directions), around.at)
    return CertifiedNumbers(
        instance=instance,
        holds=result.holds,
        guarantee=guarantee,
        solved=solved,
        directions=directions,
        profile=[larger(pair) for pair in zip(*(end.profile for end in ends), strict=True)],
        evidence=_evidence_record(session, result, fallback),
        unamplified=unamplified_record(instance, unamplified),
        not_computed=around.missing,
        risk=risk,
    )


def _without_samples(session: Session, result: Result) -> tuple[Answer, Answer]:
    """Return the contrast, and the bound that holds if no test accepts (in mixed documents that is another one)."""
    at = min(max(result.delta, RESOLVED[0]), RESOLVED[1])
    with _core.Deadline(None):
        unamplified = contrast(result.instance, session.engine, Question(None, at, FINENESS))
        if not session.plan.mixed or result.kind != "deterministic":
            return unamplified, unamplified
        # The bound was composed before any limit was reached; recomputing it for its error budget must not lose it.
        bounds = unsampled_bounds(result.instance)
        return unamplified, Engine().ask(bounds, Question(None, at, session.fineness))


def _epsilon_at(session: Session, instance: Instance, found: Curve, delta: float) -> tuple[float, float, float]:
    """Return ε at a δ: the upper bound, by samples or without them if that is less, the lower bound, and δ."""
    lower, upper = found.epsilons(delta)
    return min(upper, session.unsampled(instance, delta=delta).upper), lower, delta


def _known(session: Session, result: Result) -> Known:
    """Return what is known about a result.

    A test counts only if its error is part of the result's probability (none if that is 0) and if it has no more noise
    than the result: a run with more noise is another run, which may be more private.
    """
    noise, own = session.noise(result.instance), result.sequence.tests[result.refused :]
    counted = result.kind != "deterministic"
    tests = tuple(test for test in own if counted and test.noise_multiplier <= noise)
    return Known((result.epsilon, result.delta), result.proof, tests)


def curve_of(document: Document, guarantee: tuple[float, float], seed: int, failure_probability: float) -> Curve:
    """Return the profile of a mechanism without blanks, from new samples around the ε of a known guarantee (ε, δ)."""
    plan = compile_document(document)
    session = open_session(plan, RunOptions(seed=seed, time_limit=document.accounting.time_limit))
    instance, epsilon = plan.at(), guarantee[0]
    mechanism = session.mechanism(instance)
    estimates = session.estimate(mechanism, epsilon)
    epsilons = sampled_profile(epsilon)
    sources, around = proposals(mechanism, estimates, {}), (epsilon, max(epsilons))
    drawn = histograms(session, mechanism, sources, around, PROFILE_SHARDS[0])
    beside = proven(session, instance, Known(guarantee), epsilons)
    return Curve(session.sampler, drawn, epsilon, failure_probability / len(mechanism.directions), beside)


def _epsilon_near(session: Session, instance: Instance) -> float:
    """Return an estimate of the ε at which δ(ε) is the δ for which ε is stated: histograms are drawn around it."""
    delta, mechanism = given(session.report_delta), session.mechanism(instance)
    worst = session.unsampled(instance, delta=delta).upper
    if not 0.0 < worst < math.inf or session.excess(mechanism, 0.0, delta)[0] <= 0.0:
        return 0.0
    return root(lambda epsilon: session.excess(mechanism, epsilon, delta), 0.5 * worst, 1e-3, worst)
