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
from pyaccount.execute.sampling.bounds_without_samples import Known, Proven, estimated, proven
from pyaccount.execute.sampling.estimates import SCOUT, stated_estimates
from pyaccount.execute.sampling.fixed_sequence import root
from pyaccount.execute.sampling.jobs import SHARD, Proposal
from pyaccount.execute.sampling.lower_ends import Sought, fewer_shards, lower_ends, of_a_power
from pyaccount.execute.sampling.profile import Curve, Histogram, curve, draw, larger
from pyaccount.execute.sampling.proposals import plain_proposal
from pyaccount.execute.sampling.record import Result, evidence_record
from pyaccount.execute.sampling.session import FINENESS, open_session
from pyaccount.execute.unamplified import contrast, unsampled_bounds
from pyaccount.plan.common import default_profile
from pyaccount.plan.compiling import compile_document
from pyaccount.records.certificate import DirectionResult, Directions, Guarantee, ProfilePoint, Solved
from pyaccount.risk.budgets import budget_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.directions import Direction
    from pyaccount.document.document import Document
    from pyaccount.execute.sampling.estimates import Estimate
    from pyaccount.execute.sampling.session import Session
    from pyaccount.execute.sampling.tests_of_claims import Test
    from pyaccount.plan.compiled import Instance
    from pyaccount.plan.sampled import SampledMechanism

#: The least and the most shards for the curves and for the lower ends.
PROFILE_SHARDS = (64, 512)
#: The shards for a profile's estimates, and the most if some ε has too few samples.
ESTIMATE_SHARDS = (32, 256)
#: An estimate below this share of a claim is far from it.
FAR_ESTIMATE = 0.5


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

    `shards` sets the shards drawn for them, instead of a share of the tests'. What a time limit leaves out is recorded
    as missing; the guarantee holds without it. A retest, which sets `shards`, needs everything and raises `LimitError`.
    """
    instance, acceptance, sequence = result.instance, result.acceptance, result.sequence
    kind, epsilon, q = result.kind, result.epsilon, acceptance.probability
    document, sampler, mechanism = instance.document, session.sampler, session.mechanism(instance)
    drawn = profile_shards(_accepted(sequence.tests)) if shards is None else shards
    # The guarantee's bounds are the larger of two directions, and either may be the one that is wrong.
    share = q / len(mechanism.directions)
    # The last accepted test's proposal has a small weight bound, so a small error of the generator; others vary less.
    tested = {test.direction: test.proposal.single for test in sequence.tests if test.drawn}
    known = _known(session, result)
    if result.proof is not None and mechanism.lower is None:
        tested["remove"] = of_a_power(sampler, mechanism, (result.proof.order, epsilon))
    epsilons = document.accounting.profile
    lower: dict[Direction, tuple[float, float]] = dict.fromkeys(mechanism.directions, (0.0, 0.0))
    curves: dict[Direction, list[ProfilePoint]] = {side: [] for side in mechanism.directions}
    histograms: dict[Direction, list[Histogram]] = {}
    beside: Proven | None = None
    report_delta = None if session.report_delta is None else (math.inf, 0.0, session.report_delta)
    missing: list[NotComputed] = ["search"] if sequence.limited else []
    part: NotComputed = "lower ends"
    try:
        # Lower ends are for exactly the σ and ε of the result.
        sampler.stage("lower ends")
        estimates = session.estimate(mechanism, epsilon, shards=SCOUT)
        for direction, sought in _sought(session, result, estimates, tested, drawn).items():
            lower[direction] = lower_ends(session, mechanism, sought)
        part = "profile"
        sampler.stage("profile")
        centre = epsilon
        if session.report_delta is not None:
            centre = _epsilon_near(session, instance)
            estimates = session.estimate(mechanism, centre)
        if epsilons != () or shards is not None or session.report_delta is not None:
            last = max((centre, *(default_profile(centre) if epsilons is None else epsilons)))
            histograms = _histograms(
                session, mechanism, _proposals(mechanism, estimates, tested), (centre, last), drawn
            )
        if session.report_delta is not None:
            beside = proven(session, instance, known, ())
            report_delta = _epsilon_at(
                session, instance, Curve(sampler, histograms, centre, share, beside), session.report_delta
            )
        around = epsilon if report_delta is None or math.isinf(report_delta[0]) else report_delta[0]
        epsilons = default_profile(around) if epsilons is None else epsilons
        if epsilons:
            beside = proven(session, instance, known, epsilons)
            curves = {
                side: _points(session, mechanism, side, Curve(sampler, histograms, centre, share, beside), epsilons)
                for side in mechanism.directions
            }
    except LimitError:
        if shards is not None or (sequence.value is None and kind != "deterministic"):
            raise
        missing += ["lower ends", "profile"] if part == "lower ends" else ["profile"]
    certified = _certified(session, result, _Around(lower, curves, report_delta, missing))
    return SampledResult(certified, histograms, beside)


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


def _points(
    session: Session, mechanism: SampledMechanism, direction: Direction, found: Curve, epsilons: tuple[float, ...]
) -> list[ProfilePoint]:
    """Return one direction's curve: bounds by its histograms and proofs, estimates by samples that cover every ε."""
    bounds = curve(session.sampler, found.histograms[direction], epsilons, found.failure_probability)
    if found.beside is not None:
        bounds = [found.beside.capped(point, direction) for point in bounds]
    estimates = stated_estimates(session.estimator, mechanism, direction, epsilons, ESTIMATE_SHARDS)
    points = [estimated(point, one) for point, one in zip(bounds, estimates, strict=True)]
    return [one.model_copy(update={"delta_lower": min(one.delta_lower, one.delta)}) for one in points]


def _sought(
    session: Session,
    result: Result,
    estimates: dict[Direction, Estimate],
    tested: dict[Direction, Proposal],
    shards: int,
) -> dict[Direction, Sought]:
    """Return which lower ends are to be found, in every direction."""
    tests = {test.direction: test for test in result.sequence.tests if test.drawn}
    far = result.instance.document.accounting.method == "renyi"
    epsilon, delta, share = result.epsilon, result.delta, result.acceptance.probability / len(estimates)
    return {
        direction: Sought(
            direction,
            epsilon,
            delta,
            share,
            estimate,
            tests.get(direction),
            tested.get(direction),
            shards,
            far=far or estimate.value < FAR_ESTIMATE * delta,
        )
        for direction, estimate in estimates.items()
    }


def _known(session: Session, result: Result) -> Known:
    """Return what is known about a result.

    A test counts only if its error is part of the result's probability (none if that is 0) and if it has no more noise
    than the result: a run with more noise is another run, which may be more private.
    """
    noise, own = session.noise(result.instance), result.sequence.tests[result.refused :]
    counted = result.kind != "deterministic"
    tests = tuple(test for test in own if counted and test.noise_multiplier <= noise)
    return Known((result.epsilon, result.delta), result.proof, tests)


def _accepted(tests: Sequence[Test]) -> int:
    """Return the number of samples of the last claim's accepted tests, from which that of the other evidence follows."""
    last = {test.direction: test for test in tests if test.accepted}
    return sum(test.samples for test in last.values())


def profile_shards(accepted: int) -> int:
    """Return the shards for lower ends and curves, given the samples of the accepted tests."""
    return min(max(accepted // SHARD // 4, PROFILE_SHARDS[0]), PROFILE_SHARDS[1])


def _proposals(
    mechanism: SampledMechanism, estimates: dict[Direction, Estimate], tested: dict[Direction, Proposal]
) -> dict[Direction, set[Proposal]]:
    """Return each direction's proposals for histograms: plain sampling, the pilot's proposal, and the last test's."""
    return {
        side: {plain_proposal(mechanism, side), estimates[side].proposal}
        # Samples with a floor lack a part of δ, for which there is a bound only at the ε of the test.
        | ({tested[side]} if side in tested and tested[side].floor is None else set())
        for side in mechanism.directions
    }


def _histograms(
    session: Session,
    mechanism: SampledMechanism,
    sources: dict[Direction, set[Proposal]],
    epsilons: tuple[float, float],
    shards: int,
) -> dict[Direction, list[Histogram]]:
    """Return the loss histograms of every direction, one from each proposal.

    `epsilons` has the ε in the middle of the profile and its last one.
    """
    epsilon, last = epsilons
    found: dict[Direction, list[Histogram]] = {}
    for direction, listed in sources.items():
        usual = plain_proposal(mechanism, direction)
        proposals = {one for one in listed if one == usual or _bounds(session, mechanism, direction, one, last)}
        ordered = sorted(proposals, key=lambda proposal: (proposal.mean_scale, proposal.parameter))
        found[direction] = [
            draw(session.sampler, mechanism, direction, proposal, epsilon, fewer_shards(proposal, shards))
            for proposal in ordered
        ]
    return found


def _bounds(
    session: Session, mechanism: SampledMechanism, direction: Direction, proposal: Proposal, last: float
) -> bool:
    """Return whether samples of a proposal bound δ in a profile: weight bounds fall in ε, and plain ones have 1."""
    return session.sampler.limits(mechanism, direction, proposal, last).weight_bound < 1.0


def curve_of(document: Document, guarantee: tuple[float, float], seed: int, failure_probability: float) -> Curve:
    """Return the profile of a mechanism without blanks, from new samples around the ε of a known guarantee (ε, δ)."""
    plan = compile_document(document)
    session = open_session(plan, RunOptions(seed=seed, time_limit=document.accounting.time_limit))
    instance, epsilon = plan.at(), guarantee[0]
    mechanism = session.mechanism(instance)
    estimates = session.estimate(mechanism, epsilon)
    epsilons = default_profile(epsilon)
    histograms = _histograms(
        session, mechanism, _proposals(mechanism, estimates, {}), (epsilon, max(epsilons)), PROFILE_SHARDS[0]
    )
    beside = proven(session, instance, Known(guarantee), epsilons)
    return Curve(session.sampler, histograms, epsilon, failure_probability / len(mechanism.directions), beside)


def _epsilon_near(session: Session, instance: Instance) -> float:
    """Return an estimate of the ε at which δ(ε) is the δ for which ε is stated: histograms are drawn around it."""
    assert session.report_delta is not None
    delta, mechanism = session.report_delta, session.mechanism(instance)
    worst = session.unsampled(instance, delta=delta).upper
    if not 0.0 < worst < math.inf or session.excess(mechanism, 0.0, delta)[0] <= 0.0:
        return 0.0
    return root(lambda epsilon: session.excess(mechanism, epsilon, delta), 0.5 * worst, 1e-3, worst)
