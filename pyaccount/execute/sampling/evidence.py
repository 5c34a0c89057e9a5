"""What a certificate of a sampled mechanism states: lower ends, curves and contrast around a result, from new samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.errors import LimitError
from pyaccount.execute.engine import RESOLVED, Answer, Engine, Question
from pyaccount.execute.options import RunOptions
from pyaccount.execute.progress import NotComputed
from pyaccount.execute.sampling.composed_profile import ComposedProfile
from pyaccount.execute.sampling.estimates import ESTIMATE, SCOUT, stated_estimates
from pyaccount.execute.sampling.fixed_sequence import root
from pyaccount.execute.sampling.jobs import SHARD, Proposal
from pyaccount.execute.sampling.lower_ends import Sought, fewer, lower_ends, of_a_power
from pyaccount.execute.sampling.profile import Curve, Histogram, curve, draw, larger
from pyaccount.execute.sampling.proposals import plain
from pyaccount.execute.sampling.proven import Known, Proven, SampledPoint, proven
from pyaccount.execute.sampling.session import FINENESS, open_session
from pyaccount.execute.sampling.tests_of_claims import FixedSample, Test
from pyaccount.execute.unamplified import contrast, unsampled_bounds
from pyaccount.plan.common import default_profile
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.drawing import DrawingRule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.directions import Direction
    from pyaccount.document.document import Document
    from pyaccount.document.policy import GuaranteeKind
    from pyaccount.execute.sampling.error_probability import Acceptance
    from pyaccount.execute.sampling.estimates import Estimate
    from pyaccount.execute.sampling.fixed_sequence import SequenceResult
    from pyaccount.execute.sampling.moments import MomentProof
    from pyaccount.execute.sampling.session import Session
    from pyaccount.plan.compiled import Instance
    from pyaccount.plan.sampled import SampledMechanism

#: Shards for the curves, and for the lower ends.
PROFILE_SHARDS = (64, 512)
#: Shards for the estimates of a profile, and the most where too little of some ε is seen; fewer where samples are spared.
ESTIMATE_SHARDS, SPARED_ESTIMATES = (64, 256), (32, 256)
#: The share of a claim below which an estimate is far from it.
FAR_ESTIMATE = 0.5


@dataclass(frozen=True, slots=True)
class DirectionNumbers:
    """One direction: what holds there, from above and from below, and its curve."""

    epsilon: float
    epsilon_lower: float
    delta: float
    delta_lower: float
    profile: tuple[SampledPoint, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What was certified, of which mechanism and how: what evidence is drawn around."""

    instance: Instance
    acceptance: Acceptance
    sequence: SequenceResult
    kind: GuaranteeKind
    epsilon: float
    delta: float
    holds: bool = True
    solved: float | None = None
    within: bool = True
    #: What proves it where moments do.
    proof: MomentProof | None = None
    #: How many tests, the first ones, were of a claim that was refused: their error is no part of the result's probability.
    refused: int = 0


@dataclass(frozen=True, slots=True)
class SampledEvidence:
    """Everything that a certificate of a sampled mechanism states, as computed."""

    #: The plan that was run, at the value of its blank.
    instance: Instance
    holds: bool
    kind: GuaranteeKind
    epsilon: float
    epsilon_lower: float
    delta: float
    delta_lower: float
    #: Of the statement as it stands: 0 where it is folded into δ.
    failure_probability: float
    #: The probability at which each test, and each lower end and point of the curve, may be wrong.
    test_probability: float
    #: Of all tests that could have certified: what is folded into δ, or stated beside the guarantee.
    total_probability: float
    #: Of each lower end, and of each bound of each point of a curve; the guarantee's own, not a direction's.
    pointwise_probability: float
    solved: float | None
    directions: dict[Direction, DirectionNumbers]
    profile: tuple[SampledPoint, ...]
    tests: tuple[Test, ...]
    fixed_sample: FixedSample | None
    seed: int
    samples: int
    within_tolerance: bool
    unamplified: Answer
    #: What certifies where no test does: public participations in the sampled phases, the rest as they are analysed.
    fallback: Answer
    #: The curve of the phases that are composed with the sampled ones.
    composed_profile: ComposedProfile | None
    #: What proves the guarantee where moments do.
    proof: MomentProof | None = None
    #: What a time limit left out after the guarantee was known.
    not_computed: tuple[NotComputed, ...] = ()
    #: What the profile was read off: the curve's other points are in it too.
    histograms: dict[Direction, list[Histogram]] = field(default_factory=dict)
    #: Beside a budget of risk: ε at most and at least at a δ, and this δ.
    told: tuple[float, float, float] | None = None
    #: What bounds the profile beside its own samples; None where there is nothing to bound.
    proven: Proven | None = None

    @property
    def document(self) -> Document:
        """The document, its blank filled unless that is ε or δ."""
        return self.instance.document


def evidence_of(session: Session, result: Result, *, shards: int | None = None) -> SampledEvidence:
    """Lower ends, curves and contrast for a result; `shards` draws so many for them, instead of a share of the tests'.

    What a time limit leaves out is said to be missing: the guarantee stands without it. A retest, which asks for shards,
    needs all.
    """
    instance, acceptance, sequence = result.instance, result.acceptance, result.sequence
    kind, epsilon, delta, q = result.kind, result.epsilon, result.delta, acceptance.probability
    document, sampler, mechanism = instance.document, session.sampler, session.mechanism(instance)
    drawn = profile_shards(_accepted(session, sequence.tests)) if shards is None else shards
    # The guarantee's bounds are the larger of two directions': either may be the one that fails.
    share = q / len(mechanism.directions)
    # The last accepted test's proposal has a small weight bound, and with it a small error of the generator; another varies less.
    tested = {test.direction: test.proposal.single for test in sequence.tests if test.drawn}
    far, known = document.accounting.method == "renyi", _known(session, result, retested=shards is not None)
    if result.proof is not None and mechanism.lower is None and (far or known.everything):
        tested["remove"] = of_a_power(sampler, mechanism, (result.proof.order, epsilon), blocks=known.everything)
    epsilons = document.accounting.profile
    lower: dict[Direction, tuple[float, float]] = dict.fromkeys(mechanism.directions, (0.0, 0.0))
    curves: dict[Direction, tuple[SampledPoint, ...]] = dict.fromkeys(mechanism.directions, ())
    histograms: dict[Direction, list[Histogram]] = {}
    beside: Proven | None = None
    told_at = None if session.told_at is None else (math.inf, 0.0, session.told_at)
    missing: list[NotComputed] = ["search"] if sequence.limited else []
    part: NotComputed = "lower ends"
    try:
        # At the very σ and ε of the result.
        sampler.stage("lower ends")
        estimates = session.estimate(mechanism, epsilon, shards=_effort(session))
        for direction, sought in _sought(session, result, estimates, tested, drawn).items():
            lower[direction] = lower_ends(session, mechanism, sought)
        part = "profile"
        sampler.stage("profile")
        centre = epsilon
        if session.told_at is not None:
            centre = _told_near(session, instance)
            estimates = session.estimate(mechanism, centre)
        if epsilons != () or shards is not None or session.told_at is not None:
            last = max((centre, *(default_profile(centre) if epsilons is None else epsilons)))
            histograms = _histograms(
                session, mechanism, _proposals(mechanism, estimates, tested), (centre, last), drawn
            )
        if session.told_at is not None:
            beside = proven(session, instance, known, ())
            told_at = _told(session, instance, Curve(sampler, histograms, centre, share, beside), session.told_at)
        around = epsilon if told_at is None or math.isinf(told_at[0]) else told_at[0]
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
    numbers = {
        direction: DirectionNumbers(epsilon, lower[direction][0], delta, lower[direction][1], curves[direction])
        for direction in mechanism.directions
    }
    directions: dict[Direction, DirectionNumbers] = {
        "remove": numbers.get("remove", numbers.get("replace")),  # type: ignore[dict-item]
        "add": numbers.get("add", numbers.get("replace")),  # type: ignore[dict-item]
    }
    pairs = zip(directions["remove"].profile, directions["add"].profile, strict=True)
    profile = tuple(larger(pair) for pair in pairs)
    unamplified, fallback = _without_samples(session, result)
    return SampledEvidence(
        instance=instance,
        holds=result.holds,
        kind=kind,
        epsilon=epsilon,
        epsilon_lower=max(number.epsilon_lower for number in directions.values()),
        delta=delta,
        delta_lower=max(number.delta_lower for number in directions.values()),
        failure_probability=acceptance.starts * q if kind == "confidence" else 0.0,
        test_probability=q,
        total_probability=acceptance.starts * q,
        pointwise_probability=q,
        solved=result.solved,
        directions=directions,
        profile=profile,
        tests=sequence.tests,
        fixed_sample=acceptance.fixed,
        seed=sampler.seed,
        samples=sampler.samples,
        within_tolerance=result.within,
        unamplified=unamplified,
        fallback=fallback,
        composed_profile=session.composed_profile(instance),
        proof=result.proof,
        not_computed=tuple(missing),
        histograms=histograms,
        told=told_at,
        proven=beside,
    )


def _without_samples(session: Session, result: Result) -> tuple[Answer, Answer]:
    """The contrast, and what certifies where no test does: the same, or for mixed documents what was composed."""
    at = min(max(result.delta, RESOLVED[0]), RESOLVED[1])
    with _core.Deadline(None):
        unamplified = contrast(result.instance.document, session.engine, Question(None, at, FINENESS))
        if not session.plan.mixed or result.kind != "deterministic":
            return unamplified, unamplified
        # What certifies was composed before any limit fell; asking once more for its budget must not lose it.
        bounds = unsampled_bounds(result.instance)
        return unamplified, Engine().ask(bounds, Question(None, at, session.fineness))


def _told(session: Session, instance: Instance, found: Curve, delta: float) -> tuple[float, float, float]:
    """ε at a δ, at most and at least: by samples, or what holds without them, where that is less."""
    lower, upper = found.epsilons(delta)
    return min(upper, session.unsampled(instance, delta=delta).upper), lower, delta


def _points(
    session: Session, mechanism: SampledMechanism, direction: Direction, found: Curve, epsilons: tuple[float, ...]
) -> tuple[SampledPoint, ...]:
    """The curve of one direction: bounds from its histograms and what is proven, estimates from samples that cover every ε."""
    bounds = curve(session.sampler, found.histograms[direction], epsilons, found.failure_probability)
    if found.beside is not None:
        bounds = [found.beside.capped(point, direction) for point in bounds]
    shards = SPARED_ESTIMATES if session.plan.drawing.includes(DrawingRule.SPARING) else ESTIMATE_SHARDS
    estimates = stated_estimates(session.estimator, mechanism, direction, epsilons, shards)
    return tuple(point.estimated(one) for point, one in zip(bounds, estimates, strict=True))


def _sought(
    session: Session,
    result: Result,
    estimates: dict[Direction, Estimate],
    tested: dict[Direction, Proposal],
    shards: int,
) -> dict[Direction, Sought]:
    """What lower ends are looked for, in every direction."""
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
            far=far or _far_above(session, delta, estimate),
        )
        for direction, estimate in estimates.items()
    }


def _known(session: Session, result: Result, *, retested: bool) -> Known:
    """What is known of a result; all of it, unless an older certificate is recomputed bit for bit.

    Tests count whose errors are part of the result's probability, none where that is 0, and which are of no more noise than it
    has: a run with more noise is another run, which may be more private.
    """
    everything = retested or session.plan.drawing.includes(DrawingRule.SECOND_MOMENTS)
    noise, own = session.noise(result.instance), result.sequence.tests[result.refused :]
    counted = result.kind != "deterministic"
    tests = tuple(test for test in own if counted and test.noise_multiplier <= noise)
    return Known((result.epsilon, result.delta), result.proof, tests, everything)


def _accepted(session: Session, tests: Sequence[Test]) -> int:
    """The samples of accepted tests that what stands beside them follows: those of the last claim.

    Of all claims where older certificates are recomputed.
    """
    accepted = [test for test in tests if test.accepted]
    last = session.plan.drawing.includes(DrawingRule.POWERS)
    counted = {test.direction: test for test in accepted}.values() if last else accepted
    return sum(test.samples for test in counted)


def profile_shards(accepted: int) -> int:
    """Shards for the lower ends and the curves beside accepted tests of so many samples."""
    return min(max(accepted // SHARD // 4, PROFILE_SHARDS[0]), PROFILE_SHARDS[1])


def _effort(session: Session) -> int:
    """Shards of an estimate of which only the proposals and the mixture are used, not the value."""
    return SCOUT if session.plan.drawing.includes(DrawingRule.SPARING) else ESTIMATE


def _far_above(session: Session, delta: float, estimate: Estimate) -> bool:
    """Whether a claim may lie so far above δ that lower ends are looked for farther down."""
    return session.plan.drawing.includes(DrawingRule.SPARING) and estimate.value < FAR_ESTIMATE * delta


def _proposals(
    mechanism: SampledMechanism, estimates: dict[Direction, Estimate], tested: dict[Direction, Proposal]
) -> dict[Direction, set[Proposal]]:
    """Return where losses are drawn from in every direction: plainly, from the pilot's proposal, and from the last test's."""
    return {
        side: {plain(mechanism, side), estimates[side].proposal} | ({tested[side]} if side in tested else set())
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

    The values of ε are that in the middle of a profile and its last one.
    """
    epsilon, last = epsilons
    found: dict[Direction, list[Histogram]] = {}
    for direction, listed in sources.items():
        usual, proposals = plain(mechanism, direction), listed
        if session.plan.drawing.includes(DrawingRule.SPARING):
            proposals = {one for one in proposals if one == usual or _bounds(session, mechanism, direction, one, last)}
        ordered = sorted(proposals, key=lambda proposal: (proposal.mean_scale, proposal.parameter))
        found[direction] = [
            draw(session.sampler, mechanism, direction, proposal, epsilon, fewer(session, proposal, shards))
            for proposal in ordered
        ]
    return found


def _bounds(
    session: Session, mechanism: SampledMechanism, direction: Direction, proposal: Proposal, last: float
) -> bool:
    """Whether samples of a proposal bound δ anywhere in a profile: their weight bound falls in ε, and that of plain ones is 1."""
    return session.sampler.limits(mechanism, direction, proposal, last).weight_bound < 1.0


def curve_of(document: Document, guarantee: tuple[float, float], seed: int, failure_probability: float) -> Curve:
    """The profile of a mechanism without blanks, of which a guarantee (ε, δ) is known, from new samples around this ε."""
    plan = compile_document(document)
    session = open_session(plan, RunOptions(seed=seed))
    instance, epsilon = plan.at(), guarantee[0]
    mechanism = session.mechanism(instance)
    estimates = session.estimate(mechanism, epsilon)
    epsilons = default_profile(epsilon)
    histograms = _histograms(
        session, mechanism, _proposals(mechanism, estimates, {}), (epsilon, max(epsilons)), PROFILE_SHARDS[0]
    )
    beside = proven(session, instance, Known(guarantee), epsilons)
    return Curve(session.sampler, histograms, epsilon, failure_probability / len(mechanism.directions), beside)


def _told_near(session: Session, instance: Instance) -> float:
    """About where δ(ε) is the δ at which ε is told, by estimates: what is drawn to tell it is drawn around there."""
    assert session.told_at is not None
    delta, mechanism = session.told_at, session.mechanism(instance)
    worst = session.unsampled(instance, delta=delta).upper
    if not 0.0 < worst < math.inf or session.excess(mechanism, 0.0, delta)[0] <= 0.0:
        return 0.0
    return root(lambda epsilon: session.excess(mechanism, epsilon, delta), 0.5 * worst, 1e-3, worst)
