"""Collect what a certificate of a sampled mechanism states around a result: lower ends, curves and contrast."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pyaccount import _core
from pyaccount.errors import LimitError, path_text
from pyaccount.execute.certified import CertifiedNumbers, from_guarantee, ordered, risk_record, unamplified_record
from pyaccount.execute.engine import RESOLVED, Answer, Engine, Question
from pyaccount.execute.options import RunOptions
from pyaccount.execute.progress import NotComputed
from pyaccount.execute.sampling.beside import PROFILE_SHARDS, Beside, histograms, proposals
from pyaccount.execute.sampling.bounds_without_samples import Known, Proven, proven
from pyaccount.execute.sampling.fixed_sequence import root
from pyaccount.execute.sampling.profile import Curve, Histogram, larger
from pyaccount.execute.sampling.record import Result, evidence_record
from pyaccount.execute.sampling.session import FINENESS, Session, open_session
from pyaccount.execute.unamplified import contrast, unsampled_bounds
from pyaccount.plan.common import sampled_profile
from pyaccount.plan.compiling import compile_document
from pyaccount.records.certificate import DirectionResult, Directions, Guarantee, ProfilePoint, Solved
from pyaccount.risk.budgets import budget_of

if TYPE_CHECKING:
    from pyaccount.directions import Direction
    from pyaccount.document.document import Document
    from pyaccount.plan.compiled import Instance


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
        evidence=evidence_record(session, result, fallback),
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
    assert session.report_delta is not None
    delta, mechanism = session.report_delta, session.mechanism(instance)
    worst = session.unsampled(instance, delta=delta).upper
    if not 0.0 < worst < math.inf or session.excess(mechanism, 0.0, delta)[0] <= 0.0:
        return 0.0
    return root(lambda epsilon: session.excess(mechanism, epsilon, delta), 0.5 * worst, 1e-3, worst)
