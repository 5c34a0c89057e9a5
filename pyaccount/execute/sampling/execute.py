"""A plan with a sampled reduction, executed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from pyaccount.directions import DIRECTIONS, sampled_directions
from pyaccount.document import UNBANDED, BMinSep, load, participation_rate, separation
from pyaccount.errors import DocumentError, NumericsError
from pyaccount.execute.engine import NOISE_RANGE, RESOLVED, Answer, Engine, Question
from pyaccount.execute.progress import silent
from pyaccount.execute.sampling.others import Others, ignored, others
from pyaccount.execute.sampling.pilot import Claim, Estimate, Pilot, plain
from pyaccount.execute.sampling.profile import Curve, Histogram, Point, curve, draw, larger
from pyaccount.execute.sampling.shards import SHARD, Proposal, Sampler, Table, Wager
from pyaccount.execute.sampling.verify import (
    Capital,
    FixedSample,
    Test,
    lower_wagers,
    plan_fixed_sample,
    verify,
    verify_fixed,
)
from pyaccount.execute.sampling.walk import ROOT, SECOND, STARTS, Walked, ladder, root, walk
from pyaccount.execute.unamplified import unamplified_bounds, unsampled_bounds
from pyaccount.plan.plan import compile_document
from pyaccount.plan.profile import default_profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.directions import SampledDirection
    from pyaccount.document import Document
    from pyaccount.execute.progress import Report
    from pyaccount.plan.plan import Plan
    from pyaccount.plan.sampled import SampledMechanism

#: The probability of accepting a false claim, as a share of δ.
FAILURE_SHARE = 0.01
#: The ladder for δ: relative distances above the pilot's estimate.
DELTA_DISTANCES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
#: And for the second one.
FAR_DELTA_DISTANCES = (9.0, 3.0)
#: How wide an interval for δ is by default.
DELTA_TOLERANCE = 0.12
#: Shards for the curves, and for the lower ends.
PROFILE_SHARDS = (64, 512)
#: Relative distances below ε at which a lower bound on ε is tried, from the easiest on.
LOWER_DISTANCES = (0.3, 0.2, 0.1, 0.06, 0.04, 0.03, 0.02, 0.01)
#: A direction whose δ is so much smaller than another's decides nothing.
NEGLIGIBLE = 1e-3

#: Relative widths of what holds without samples: where it is one Gaussian mechanism, and where it is composed.
FINENESS, COMPOSED_FINENESS = 1e-6, 1e-3
#: How near the least σ that holds without samples is looked for where it is composed.
COARSENESS = 5e-3

Kind = Literal["deterministic", "verified", "confidence"]


@dataclass(frozen=True, slots=True)
class DirectionNumbers:
    """One direction: what holds there, from above and from below, and its curve."""

    epsilon: float
    epsilon_lower: float
    delta: float
    delta_lower: float
    profile: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class SampledEvidence:
    """Everything that a certificate of a sampled mechanism states, as computed."""

    document: Document
    holds: bool
    kind: Kind
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
    directions: dict[Literal["remove", "add"], DirectionNumbers]
    profile: tuple[Point, ...]
    tests: tuple[Test, ...]
    fixed_sample: FixedSample | None
    seed: int
    samples: int
    within_tolerance: bool
    unamplified: Answer
    #: What certifies where no test does: the sampled phases' participations revealed, the others as they are analysed.
    fallback: Answer
    #: The curve of the phases that are composed with the sampled ones.
    others: Others | None


@dataclass(slots=True)
class Session:
    """The sampler, the pilot and the document of one execution."""

    plan: Plan
    sampler: Sampler
    pilot: Pilot
    engine: Engine
    log_target: float = 0.0
    claim: float = 0.0
    starts: int = 1
    fixed: FixedSample | None = None
    estimates: dict[SampledDirection, Estimate] = field(default_factory=dict)
    #: Where the composed phases' curve ends, and the last curve with the rounds that it is of.
    end: float | None = None
    composed: dict[object, Others] = field(default_factory=dict)
    #: What the profile was read off: the curve's other points are in it too.
    histograms: dict[SampledDirection, list[Histogram]] = field(default_factory=dict)

    def mechanism(self, document: Document) -> SampledMechanism:
        """The mechanism of a document without a blank in its noise: its sampled phases, and the curve of the others."""
        plan = compile_document(document)
        mechanism, found = plan.mechanism(), self.others(plan, document)
        if found is None:
            return mechanism
        lower = None if mechanism.lower is None else replace(mechanism.lower, curves=found.curves)
        return replace(mechanism, curves=found.curves, lower=lower)

    def others(self, plan: Plan, document: Document) -> Others | None:
        """The curve of the phases that compose; None if there are none. Kept while only sampled phases change."""
        bounds = plan.composed_bounds()
        if bounds is None:
            return None
        key = tuple((direction, bounds[direction].upper, bounds[direction].lower) for direction in DIRECTIONS)
        if key not in self.composed:
            privacy = document.privacy
            directions = sampled_directions(privacy.adjacency)
            if self.end is None:
                # Once for all candidates, so that they differ in nothing but the candidate.
                epsilon = None if privacy.epsilon == "solve" else privacy.epsilon
                delta = None if privacy.delta == "solve" else privacy.delta
                self.end = ignored(self.engine, bounds, epsilon=epsilon, delta=delta)
            self.composed = {key: others(self.engine, bounds, directions, self.end)}
        return self.composed[key]

    def unsampled(self, document: Document, *, epsilon: float | None = None, delta: float | None = None) -> Answer:
        """What holds at this ε, or at this δ, without looking at a sample."""
        plan = compile_document(document)
        return self.engine.ask(unsampled_bounds(plan), Question(epsilon, delta, self.fineness))

    @property
    def fineness(self) -> float:
        """How narrow the fallback is asked to be: one Gaussian mechanism costs nothing, a composition does."""
        return COMPOSED_FINENESS if self.plan.mixed else FINENESS

    def noise(self, document: Document) -> float:
        """σ of the phase whose noise was the blank, or of the first phase that is sampled."""
        blank = self.plan.document.blank
        asked = [body for body in document.bodies if body.at("noise", "multiplier") == blank]
        drawn = [
            body
            for reduction, body in zip(self.plan.reductions, document.bodies, strict=True)
            if reduction.sampled is not None
        ]
        multiplier = (asked or drawn)[0].noise.multiplier
        assert multiplier != "solve"
        return multiplier

    def allow(self, delta: float, starts: int) -> None:
        """Fix the probability of accepting a false claim, and the claim δ₀ whose acceptance gives `delta` with it folded in."""
        q = FAILURE_SHARE * delta
        self.starts = starts
        self.log_target = math.log(starts / q)
        self.claim = (delta - q) / (1.0 - q)

    def fix(self, plan: FixedSample) -> None:
        """Test with a number of samples fixed beforehand instead."""
        self.fixed, self.starts = plan, 1
        self.claim, self.log_target = plan.bar, -math.log(plan.failure_probability)

    def estimate(
        self, mechanism: SampledMechanism, epsilon: float, *, shards: int = 16
    ) -> dict[SampledDirection, Estimate]:
        """The pilot's estimates in every direction, with less effort in one whose δ is far below another's."""
        self.estimates, largest = {}, 0.0
        for direction in mechanism.directions:
            found = self.pilot.estimate(mechanism, direction, epsilon, shards=shards, negligible=NEGLIGIBLE * largest)
            self.estimates[direction], largest = found, max(largest, found.value)
        return self.estimates

    def test(self, document: Document, epsilon: float, delta: float) -> tuple[Test, ...]:
        """Test one claim."""
        mechanism = self.mechanism(document)
        sigma = self.noise(document)
        self.sampler.stage(f"testing ({epsilon:.5g}, {delta:.4g}) at σ = {sigma:.5g}")
        if self.fixed is not None:
            return verify_fixed(self.sampler, mechanism, sigma, epsilon, self.fixed)
        estimates = self.estimate(mechanism, epsilon)
        return verify(self.sampler, self.pilot, Claim(mechanism, sigma, epsilon, delta, self.log_target), estimates)


def _excess(session: Session, mechanism: SampledMechanism, epsilon: float, delta: float) -> tuple[float, float]:
    """ln(δ̂(ε)/δ) of the worse direction, and its standard error."""
    estimates = session.estimate(mechanism, epsilon)
    worst = max(estimates.values(), key=lambda estimate: estimate.value)
    if worst.value <= 0.0:
        return -50.0, 0.0
    return math.log(worst.value / delta), worst.standard_error / worst.value


def open_session(plan: Plan, *, threads: int, time_limit: float | None, report: Report, seed: int) -> Session:
    """A session for a plan; the document's time limit holds unless another is given."""
    limit = plan.document.accounting.time_limit if time_limit is None else time_limit
    sampler = Sampler(seed=seed, threads=threads, time_limit=limit, report=report)
    return Session(plan, sampler, Pilot(sampler), Engine(threads=threads, time_limit=limit))


def execute_sampled(
    plan: Plan, *, threads: int, time_limit: float | None, report: Report, seed: int
) -> SampledEvidence:
    """Run a plan whose mechanism is sampled. Raises as `execute` does."""
    session = open_session(plan, threads=threads, time_limit=time_limit, report=report, seed=seed)
    document = plan.document
    blank = None if document.blank is None else document.blank[-1]
    if blank == "multiplier":
        return _calibrate(session, document)
    if blank == "epsilon":
        return _solve_epsilon(session, document, None)
    if blank == "delta":
        return _solve_delta(session, document)
    return _check(session, document)


def pilot_noise(session: Session, document: Document, *, precision: float = ROOT) -> tuple[float, float]:
    """The pilot's estimate of the σ at which δ(ε) is the claim, and a σ certified without sampling.

    The latter is infinite where another phase that is sampled, with its participations revealed, misses the target whatever σ is.
    """
    path, privacy = document.blank, document.privacy
    assert path is not None
    assert privacy.epsilon != "solve"
    assert privacy.delta != "solve"
    epsilon, delta = privacy.epsilon, privacy.delta

    def gaussian(sigma: float) -> float:
        return session.unsampled(document.with_value(path, sigma), epsilon=epsilon).upper

    low, high = _bracket(lambda sigma: gaussian(sigma) <= delta) if session.plan.mixed else NOISE_RANGE
    missed = f"no σ reaches the target ε = {epsilon:g} at δ = {delta:g}: it is missed even at σ = {NOISE_RANGE[1]:g}"
    infeasible = document.problem("target-infeasible", path, f"{missed}; try a larger epsilon or delta")
    covered = gaussian(high) <= delta
    if not covered and len(document.bodies) == 1:
        raise DocumentError([infeasible])
    if gaussian(low) <= delta:
        message = f"the target ε = {epsilon:g} at δ = {delta:g} holds with hardly any noise (already at σ = {low:g})"
        raise DocumentError([document.problem("target-infeasible", path, f"{message}; try a smaller epsilon or delta")])
    while covered and high / low > 1.0 + (COARSENESS if session.plan.mixed else FINENESS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if gaussian(middle) <= delta else (middle, high)
    session.sampler.stage("pilot")

    def excess(sigma: float) -> tuple[float, float]:
        session.sampler.stage(f"pilot, σ = {sigma:.4g}")
        session.sampler.progress(0.0)
        return _excess(session, session.mechanism(document.with_value(path, sigma)), epsilon, session.claim)

    if covered:
        start = min(high, _relative(session, document) or 0.6 * high)
        return root(excess, start, NOISE_RANGE[0], high, precision=precision), high
    foot = root(excess, 1.0, NOISE_RANGE[0], high, precision=precision)
    if foot >= high:
        raise DocumentError([infeasible])
    return foot, math.inf


def _bracket(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Noise multipliers around the least one that holds, from the middle outwards; an end of the range if that is beyond it.

    At the ends of the range the losses of composed phases are enormous, and slow to compose.
    """
    high = 1.0
    while high < NOISE_RANGE[1] and not holds(high):
        high = min(4.0 * high, NOISE_RANGE[1])
    low = 0.25 * high
    while low > NOISE_RANGE[0] and holds(low):
        low = max(0.25 * low, NOISE_RANGE[0])
    return low, high


def _relative(session: Session, document: Document) -> float | None:
    """The σ that cyclic Poisson sampling with the same separation would need, roughly: where the pilot starts to look.

    It composes in a moment and is never far from b-min-sep sampling; nothing depends on how near it is.
    """
    body, path, privacy = document.bodies[0], document.blank, document.privacy
    assert path is not None
    assert privacy.epsilon != "solve"
    assert privacy.delta != "solve"
    if len(document.bodies) > 1 or body.count > 1:
        return None
    if not isinstance(body.sampler, BMinSep) or isinstance(body.matrix, UNBANDED):
        return None
    raw = document.to_mapping()
    raw["sampler"] = {"kind": "cyclic-poisson", "partitions": separation(body)}
    raw["training"] = {"participation_rate": participation_rate(body), "iterations": body.training.iterations}
    raw["accounting"] = {}
    cyclic = load(raw)
    low, high = NOISE_RANGE
    while high / low > 1.05:
        middle = math.sqrt(low * high)
        bounds = compile_document(cyclic.with_value(path, middle)).bounds()
        answer = session.engine.ask(bounds, Question(privacy.epsilon, None, 0.2))
        low, high = (low, middle) if answer.upper <= privacy.delta else (middle, high)
    return high


def _calibrate(session: Session, document: Document) -> SampledEvidence:
    """Algorithm 5 of Dong & Ganesh (2026): a ladder of σ from just above the pilot's root, the unamplified Gaussian on top."""
    privacy, path = document.privacy, document.blank
    assert privacy.epsilon != "solve"
    assert privacy.delta != "solve"
    assert path is not None
    epsilon, delta = privacy.epsilon, privacy.delta
    if document.accounting.verification == "fixed-sample":
        # The bar is half of δ, so that is what the pilot looks for. One ladder: its q is part of the plan.
        session.fix(plan_fixed_sample(delta))
        ladders = [ladder(session.plan.tolerance)]
    else:
        session.allow(delta, STARTS)
        ladders = [ladder(session.plan.tolerance), SECOND]
    foot, fallback = pilot_noise(session, document)
    claim = session.claim

    def test(sigma: float) -> tuple[Test, ...]:
        return session.test(document.with_value(path, sigma), epsilon, claim)

    # Rungs above the certified σ need no samples.
    reachable = [[d for d in rungs if foot * (1.0 + d) < fallback] for rungs in ladders]
    walked = walk(foot, reachable, test)
    sigma = fallback if walked.value is None else walked.value
    if not math.isfinite(sigma):
        raise NumericsError(
            "no σ on the ladder was accepted, and none is certified without samples; try a larger tolerance"
        )
    kind: Kind = "deterministic" if walked.value is None else "verified"
    filled = document.with_value(path, sigma)
    within = walked.value is not None and sigma <= foot * (1.0 + session.plan.tolerance) * (1.0 + 1e-12)
    return evidence_of(session, filled, walked, kind, epsilon, delta, holds=True, solved=sigma, within=within)


def _check(session: Session, document: Document) -> SampledEvidence:
    """Test the claim; if it is not accepted, say what ε can be certified at its δ."""
    privacy = document.privacy
    assert privacy.epsilon != "solve"
    assert privacy.delta != "solve"
    epsilon, delta = privacy.epsilon, privacy.delta
    bound = session.unsampled(document, epsilon=epsilon)
    if bound.upper <= delta:
        # Holds without sampling being looked at.
        session.allow(delta, 1)
        session.estimate(session.mechanism(document), epsilon)
        return evidence_of(
            session, document, Walked(None, ()), "deterministic", epsilon, delta, holds=True, solved=None, within=True
        )
    if document.accounting.verification == "fixed-sample":
        session.fix(plan_fixed_sample(delta))
    else:
        session.allow(delta, 1)
    tests = session.test(document, epsilon, session.claim)
    if all(test.accepted for test in tests):
        walked = Walked(epsilon, tests)
        return evidence_of(session, document, walked, "verified", epsilon, delta, holds=True, solved=None, within=True)
    session.fixed = None
    return _solve_epsilon(session, document, Walked(None, tests))


def _solve_epsilon(session: Session, document: Document, refused: Walked | None) -> SampledEvidence:
    """A confidence statement: the lowest ε on a ladder that is certified at δ."""
    delta = document.privacy.delta
    assert delta != "solve"
    session.fixed = None
    q = FAILURE_SHARE * delta
    session.starts, session.log_target, session.claim = STARTS, math.log(STARTS / q), delta
    mechanism = session.mechanism(document)
    worst = session.unsampled(document, delta=delta).upper
    if not math.isfinite(worst):
        raise NumericsError("the unamplified mechanism has no finite ε at this δ to start from")
    session.sampler.stage("pilot")
    foot = 0.0
    if worst > 0.0 and _excess(session, mechanism, 0.0, delta)[0] > 0.0:
        foot = root(lambda epsilon: _excess(session, mechanism, epsilon, delta), 0.5 * worst, 1e-3, worst)

    def test(epsilon: float) -> tuple[Test, ...]:
        return session.test(document, epsilon, delta)

    if foot == 0.0:
        tests = test(0.0)
        walked = Walked(0.0 if all(t.accepted for t in tests) else None, tests)
    else:
        rungs = [
            [d for d in distances if foot * (1.0 + d) < worst] for distances in (ladder(session.plan.tolerance), SECOND)
        ]
        walked = walk(foot, rungs, test)
    epsilon = worst if walked.value is None else walked.value
    kind: Kind = "deterministic" if walked.value is None else "confidence"
    within = walked.value is not None and epsilon <= foot * (1.0 + session.plan.tolerance) * (1.0 + 1e-12)
    if refused is not None:
        walked = Walked(walked.value, refused.tests + walked.tests)
    return evidence_of(
        session,
        document,
        walked,
        kind,
        epsilon,
        delta,
        holds=refused is None,
        solved=None if refused is not None else epsilon,
        within=within,
    )


def _solve_delta(session: Session, document: Document) -> SampledEvidence:
    """A confidence statement: the lowest δ on a ladder that is certified at ε."""
    epsilon = document.privacy.epsilon
    assert epsilon != "solve"
    mechanism = session.mechanism(document)
    session.sampler.stage("pilot")
    estimates = session.estimate(mechanism, epsilon, shards=64)
    foot = max(estimate.value for estimate in estimates.values())
    worst = min(1.0, session.unsampled(document, epsilon=epsilon).upper)
    if foot <= 0.0:
        raise NumericsError("the pilot found no loss above this ε: δ is too small to estimate; ask at a smaller ε")
    q = FAILURE_SHARE * foot
    session.starts, session.log_target = STARTS, math.log(STARTS / q)
    stated = document.accounting.tolerance
    tolerance = DELTA_TOLERANCE if stated is None else stated
    rungs = ladder(tolerance, DELTA_DISTANCES)

    def test(delta: float) -> tuple[Test, ...]:
        return session.test(document, epsilon, delta)

    walked = walk(
        foot,
        [[d for d in rungs if foot * (1.0 + d) < worst], [d for d in FAR_DELTA_DISTANCES if foot * (1.0 + d) < worst]],
        test,
    )
    delta = worst if walked.value is None else walked.value
    kind: Kind = "deterministic" if walked.value is None else "confidence"
    within = walked.value is not None and delta <= foot * (1.0 + tolerance) * (1.0 + 1e-12)
    return evidence_of(session, document, walked, kind, epsilon, delta, holds=True, solved=delta, within=within)


def evidence_of(  # noqa: PLR0913, PLR0917 - the parts of a result
    session: Session,
    document: Document,
    walked: Walked,
    kind: Kind,
    epsilon: float,
    delta: float,
    *,
    holds: bool,
    solved: float | None,
    within: bool,
    shards: int | None = None,
) -> SampledEvidence:
    """Lower ends, curves and contrast for a result; `shards` draws so many for them, instead of a share of the tests'."""
    sampler, mechanism = session.sampler, session.mechanism(document)
    q = math.exp(-session.log_target)
    # At the very σ and ε of the result.
    estimates = session.estimate(mechanism, epsilon)
    drawn = profile_shards(sum(test.samples for test in walked.tests if test.accepted)) if shards is None else shards
    # The guarantee's bounds are the larger of two directions': either may be the one that fails.
    share = q / len(mechanism.directions)
    sampler.stage("lower ends")
    # The last accepted test's proposal has a small cap, and with it a small error of the generator; the pilot's own varies less.
    tested = {test.direction: test.proposal for test in walked.tests if test.stakes}
    lower = {
        direction: _lower_ends(
            session,
            mechanism.lower or mechanism,
            direction,
            epsilon,
            delta,
            tested.get(direction, estimates[direction].proposal),
            share,
            drawn,
        )
        for direction in mechanism.directions
    }
    epsilons = document.accounting.profile
    if epsilons is None:
        epsilons = default_profile(epsilon)
    sampler.stage("profile")
    if epsilons or shards is not None:
        session.histograms = _histograms(session, mechanism, epsilon, tested, drawn)
    curves = {
        direction: tuple(curve(sampler, session.histograms[direction], epsilons, share)) if epsilons else ()
        for direction in mechanism.directions
    }
    numbers = {
        direction: DirectionNumbers(epsilon, lower[direction][0], delta, lower[direction][1], curves[direction])
        for direction in mechanism.directions
    }
    directions: dict[Literal["remove", "add"], DirectionNumbers] = {
        "remove": numbers.get("remove", numbers.get("replace")),  # type: ignore[dict-item]
        "add": numbers.get("add", numbers.get("replace")),  # type: ignore[dict-item]
    }
    pairs = zip(directions["remove"].profile, directions["add"].profile, strict=True)
    profile = tuple(larger(pair) for pair in pairs)
    contrast_delta = min(max(delta, RESOLVED[0]), RESOLVED[1])
    contrast = session.engine.ask(unamplified_bounds(document), Question(None, contrast_delta, FINENESS))
    fallback = session.unsampled(document, delta=contrast_delta) if session.plan.mixed else contrast
    return SampledEvidence(
        document=document,
        holds=holds,
        kind=kind,
        epsilon=epsilon,
        epsilon_lower=max(number.epsilon_lower for number in directions.values()),
        delta=delta,
        delta_lower=max(number.delta_lower for number in directions.values()),
        failure_probability=session.starts * q if kind == "confidence" else 0.0,
        test_probability=q,
        total_probability=session.starts * q,
        pointwise_probability=q,
        solved=solved,
        directions=directions,
        profile=profile,
        tests=walked.tests,
        fixed_sample=session.fixed,
        seed=sampler.seed,
        samples=sampler.samples,
        within_tolerance=within,
        unamplified=contrast,
        fallback=fallback,
        others=session.others(compile_document(document), document),
    )


def profile_shards(accepted: int) -> int:
    """Shards for the lower ends and the curves beside accepted tests of so many samples."""
    return min(max(accepted // SHARD // 4, PROFILE_SHARDS[0]), PROFILE_SHARDS[1])


def _histograms(
    session: Session, mechanism: SampledMechanism, epsilon: float, tested: dict[SampledDirection, Proposal], shards: int
) -> dict[SampledDirection, list[Histogram]]:
    """Loss histograms of every direction: from plain samples, from the pilot's proposal at ε, and from the last test's."""
    found: dict[SampledDirection, list[Histogram]] = {}
    for direction in mechanism.directions:
        proposals = {plain(mechanism, direction), session.estimates[direction].proposal}
        if direction in tested:
            proposals.add(tested[direction])
        ordered = sorted(proposals, key=lambda proposal: (proposal.stretch, proposal.parameter))
        found[direction] = [
            draw(session.sampler, mechanism, direction, proposal, epsilon, shards) for proposal in ordered
        ]
    return found


def curve_of(document: Document, epsilon: float, seed: int, failure_probability: float) -> Curve:
    """The profile of a mechanism without blanks, from new samples around ε."""
    session = open_session(compile_document(document), threads=0, time_limit=None, report=silent, seed=seed)
    mechanism = session.mechanism(document)
    session.estimate(mechanism, epsilon)
    histograms = _histograms(session, mechanism, epsilon, {}, PROFILE_SHARDS[0])
    return Curve(session.sampler, histograms, epsilon, failure_probability / len(mechanism.directions))


def _lower_ends(  # noqa: PLR0913, PLR0917 - a claim and what is known about it
    session: Session,
    mechanism: SampledMechanism,
    direction: SampledDirection,
    epsilon: float,
    delta: float,
    proposal: Proposal,
    q: float,
    shards: int,
) -> tuple[float, float]:
    """Lower bounds on ε at δ and on δ at ε, each with probability at least 1 − q, by wagers against smaller values."""
    sampler = session.sampler
    epsilons = [epsilon * (1.0 - distance) for distance in LOWER_DISTANCES]
    points = [epsilon, *epsilons]
    first, _ = sampler.run(
        mechanism,
        direction,
        proposal,
        [Table(point, math.inf) for point in points],
        purpose="pilot",
        candidate=sampler.fresh(),
        count=8,
    )
    tables = []
    for k, point in enumerate(points):
        mean = sum(shard[k].value for shard in first) / (8 * SHARD)
        square = sum(shard[k].square for shard in first) / (8 * SHARD)
        generator = sampler.limits(mechanism, direction, proposal, point).generator
        wagers = lower_wagers(mean, square, delta)
        if k > 0:
            target = delta + generator
            wagers = (
                (Wager(target, -min(0.5 / target, (mean - target) / max(square, 1e-300))),) if mean > target else ()
            )
        tables.append(Table(point, math.inf, wagers))
    capitals = [[Capital(1) for _ in table.wagers] for table in tables]
    candidate = sampler.fresh()
    sums, _ = sampler.run(
        mechanism, direction, proposal, tables, purpose="confidence", candidate=candidate, count=shards
    )
    for shard in sums:
        for table, group in zip(shard, capitals, strict=True):
            for growth, capital in zip(table.log_capital, group, strict=True):
                capital.add((growth,))
    log_target = math.log(1.0 / q)
    delta_lower = 0.0
    generator = sampler.limits(mechanism, direction, proposal, epsilon).generator
    for wager, capital in zip(tables[0].wagers, capitals[0], strict=True):
        if not capital.reached(log_target):
            break
        delta_lower = max(0.0, wager.threshold - generator)
    epsilon_lower = 0.0
    for point, group in zip(epsilons, capitals[1:], strict=True):
        if not group or not group[0].reached(log_target):
            break
        epsilon_lower = point
    return epsilon_lower, delta_lower
