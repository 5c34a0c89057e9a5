"""What the pilot says before anything is certified: estimates of δ and of the blank, and what it will all cost here.

Never a guarantee. The pilot runs as it would for the certificate, and is timed; every test that the ladder would come to
is planned, but
not run, and priced by the samples it is expected to take and the pace at which this machine has just drawn some.
"""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyaccount.document import BMinSep
from pyaccount.execute.progress import silent
from pyaccount.execute.sampling.betting import Claim, choose_betting
from pyaccount.execute.sampling.calibrate import cyclic_noise, noise_descent
from pyaccount.execute.sampling.confidence import delta_descent, epsilon_descent
from pyaccount.execute.sampling.estimates import told
from pyaccount.execute.sampling.evidence import profile_shards
from pyaccount.execute.sampling.session import open_session
from pyaccount.execute.sampling.shards import SHARD, WAVE, Table
from pyaccount.execute.sampling.verify import plan_fixed_sample
from pyaccount.execute.sampling.walk import STARTS, Descent, Ladder
from pyaccount.plan.profile import default_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.directions import SampledDirection
    from pyaccount.document import Document
    from pyaccount.execute.progress import Report
    from pyaccount.execute.sampling.estimates import Estimate
    from pyaccount.execute.sampling.session import Session
    from pyaccount.plan.plan import Plan

#: Distances above the foot at which the trade of width for time is told.
OFFERED = (0.2, 0.1, 0.05, 0.02, 0.01)
#: Shards of an estimate, the most where too little is seen, and shards by which the pace is taken.
SHARDS, MOST_SHARDS, PACE_SHARDS = 64, 256, 32
#: The estimates of a profile take so many times what a fourth of their samples take: the search for a mixture is the same.
AFRESH = 2.5


@dataclass(frozen=True, slots=True)
class Priced:
    """Tests of one value of the blank: how far it is above the foot, and what certifying it is expected to take."""

    distance: float
    value: float
    #: Infinite where no test would accept it.
    samples: float
    #: Of the tests alone.
    seconds: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """The pilot's estimates, and the price of the certificate."""

    #: Where δ is estimated, and the document with the pilot's value in the blank.
    epsilon: float
    document: Document
    #: What is blank, and the pilot's value of it, before any distance is added; none for a claim.
    blank: str | None
    foot: float | None
    estimates: dict[SampledDirection, Estimate]
    #: In seconds on this machine, by stage, in the order in which they come.
    stages: dict[str, float]
    #: Values of the blank and what their tests take, from the cheapest on.
    trade: tuple[Priced, ...] = ()
    #: The distance at which the walk down the ladder is expected to end; none for a claim, and where no test would accept.
    ends_at: float | None = None
    #: The σ that cyclic Poisson sampling with the same separation would need: it composes, in seconds.
    cyclic_noise: float | None = None
    seed: int = 0

    @property
    def seconds(self) -> float:
        """The price of the whole certificate on this machine."""
        return sum(self.stages.values())

    @property
    def noise_multiplier(self) -> float | None:
        """The pilot's σ, if that is the blank."""
        return self.foot if self.blank == "multiplier" else None


@dataclass(slots=True)
class _Pricing:
    """Tests priced in one session, each value once."""

    session: Session
    descent: Descent
    pace: float
    known: dict[float, Priced] = field(default_factory=dict)
    #: Seconds that planning a test took, on average what it will take again.
    planning: list[float] = field(default_factory=list)

    def at(self, distance: float) -> Priced:
        """What tests at this distance above the foot are expected to take."""
        if distance not in self.known:
            began = time.monotonic()
            value = self.descent.foot * (1.0 + distance)
            samples = _samples(self.session, *self.descent.claim(value))
            self.planning.append(time.monotonic() - began)
            self.known[distance] = Priced(distance, value, samples, samples * self.pace)
        return self.known[distance]

    def walk(self) -> tuple[list[Priced], float | None]:
        """The rungs that would be tested, and where the walk ends."""
        for ladder in self.descent.reachable:
            tested, reached = self._down(ladder)
            if reached is not None:
                return tested, reached
        return [], None

    def _down(self, ladder: Ladder) -> tuple[list[Priced], float | None]:
        tested: list[Priced] = []
        for distance in (*ladder.asked, *ladder.optional):
            one = self.at(distance)
            budget = self.descent.budget(ladder, distance, round(sum(each.samples for each in tested)))
            if not math.isfinite(one.samples) or (budget is not None and one.samples > budget):
                break
            tested.append(one)
        return tested, tested[-1].distance if tested else None


def _samples(session: Session, document: Document, epsilon: float, delta: float) -> float:
    """The samples that the tests of a claim are expected to take, whole waves of shards; infinite where none would accept."""
    mechanism = session.mechanism(document)
    estimates = session.estimate(mechanism, epsilon)
    if session.fixed is not None:
        return float(session.fixed.samples * len(mechanism.directions))
    claim = Claim(mechanism, session.noise(document), epsilon, delta, session.log_target)
    total = 0.0
    for direction, estimate in estimates.items():
        betting = choose_betting(session.sampler, claim, direction, estimate)
        if betting is None or not math.isfinite(betting.expected_samples):
            return math.inf
        wave = WAVE * SHARD
        total += wave * math.ceil(betting.expected_samples / wave)
    return total


def _pace(session: Session, document: Document, epsilon: float) -> float:
    """Seconds for a sample of a test, on this machine and now."""
    mechanism = session.mechanism(document)
    proposal = session.estimates[mechanism.directions[0]].proposal
    began = time.monotonic()
    session.sampler.run(
        mechanism,
        mechanism.directions[0],
        proposal,
        [Table(epsilon, math.inf)],
        purpose="pilot",
        candidate=session.sampler.fresh(),
        count=PACE_SHARDS,
    )
    return (time.monotonic() - began) / (PACE_SHARDS * SHARD)


def forecast(
    plan: Plan, *, threads: int = 0, time_limit: float | None = None, report: Report | None = None
) -> Forecast:
    """Estimate the blank, δ at the document's ε, and the price of the certificate.

    For plans without a choice whose mechanism is sampled. Raises as `execute_sampled` does.
    """
    document = plan.document
    stated = document.accounting.seed
    session = open_session(
        plan,
        threads=threads,
        time_limit=time_limit,
        report=report or silent,
        seed=secrets.randbits(64) if stated is None else stated,
    )
    began = time.monotonic()
    descent = _descent(session, document)
    at, epsilon, delta = descent.claim(descent.foot)
    session.sampler.stage("pilot")
    first = session.estimate(session.mechanism(at), epsilon)
    stages = {"pilot": time.monotonic() - began}
    pace = _pace(session, at, epsilon)
    pricing = _Pricing(session, descent, pace)
    claim = document.blank is None
    covered = claim and descent.fallback <= delta
    tested, ends = ([], None) if covered else pricing.walk()
    planning = sum(pricing.planning) / max(len(pricing.planning), 1)
    if tested:
        stages["tests"] = sum(one.seconds for one in tested) + planning * len(tested)
    offered = (
        () if claim or descent.foot <= 0.0 else tuple(d for d in OFFERED if descent.foot * (1.0 + d) < descent.fallback)
    )
    trade = [pricing.at(distance) for distance in sorted({*offered, *(one.distance for one in tested)}, reverse=True)]
    # What stands beside the guarantee: lower ends, histograms from up to three proposals, estimates of every point.
    accepted = sum(one.samples for one in tested)
    stages |= _beside(session, at, epsilon, first, accepted, pace)
    return Forecast(
        epsilon=epsilon,
        document=at,
        blank=None if document.blank is None else str(document.blank[-1]),
        foot=None if claim else descent.foot,
        estimates=_told(session, at, epsilon),
        stages=stages,
        trade=tuple(one for one in trade if math.isfinite(one.samples)),
        ends_at=None if claim else ends,
        cyclic_noise=_cyclic(session, document),
        seed=session.sampler.seed,
    )


def tests_price(session: Session, document: Document, sigma: float) -> float:
    """Seconds for the tests of a candidate at the tolerance's distance above its σ; infinite if none would accept."""
    privacy, path = document.privacy, document.blank
    assert privacy.epsilon != "solve"
    assert privacy.delta != "solve"
    assert path is not None
    if document.accounting.verification == "fixed-sample":
        session.fix(plan_fixed_sample(privacy.delta))
    else:
        session.allow(privacy.delta, STARTS)
    filled = document.with_value(path, sigma * (1.0 + session.plan.tolerance))
    samples = _samples(session, filled, privacy.epsilon, session.claim)
    return samples * _pace(session, filled, privacy.epsilon)


def _descent(session: Session, document: Document) -> Descent:
    """The search that the document's blank asks for; a claim is a ladder of itself alone."""
    blank = None if document.blank is None else document.blank[-1]
    if blank == "multiplier":
        return noise_descent(session, document)
    if blank == "epsilon":
        return epsilon_descent(session, document)
    if blank == "delta":
        return delta_descent(session, document)
    privacy = document.privacy
    assert privacy.epsilon != "solve"
    assert privacy.delta != "solve"
    epsilon, delta = privacy.epsilon, privacy.delta
    if document.accounting.verification == "fixed-sample":
        session.fix(plan_fixed_sample(delta))
    else:
        session.allow(delta, 1)
    claim, bound = session.claim, session.unsampled(document, epsilon=epsilon).upper
    cost = session.mechanism(document).cost
    # A foot of 1: the claim itself is the value, at no distance. Where it holds without samples the fallback is below δ.
    return Descent(
        1.0, bound if bound <= delta else math.inf, [Ladder((0.0,))], lambda _: (document, epsilon, claim), cost
    )


def _told(session: Session, document: Document, epsilon: float) -> dict[SampledDirection, Estimate]:
    mechanism = session.mechanism(document)
    return {
        direction: told(session.estimator, mechanism, direction, (epsilon,), shards=SHARDS, most=MOST_SHARDS)[0]
        for direction in mechanism.directions
    }


def _beside(  # noqa: PLR0913, PLR0917 - what is drawn beside a guarantee
    session: Session,
    document: Document,
    epsilon: float,
    estimates: dict[SampledDirection, Estimate],
    accepted: float,
    pace: float,
) -> dict[str, float]:
    """Lower ends and the profile, in seconds: bounds by their samples, estimates by drawing a fourth of them."""
    mechanism, drawn = session.mechanism(document), profile_shards(round(min(accepted, 1e15)))
    ways = 1 if mechanism.lower is None else 2
    lower = len(estimates) * (8 + drawn)
    histograms = sum(ways * (2 if one.proposal.stretch in (0.0, 1.0) else 3) for one in estimates.values()) * drawn
    epsilons = document.accounting.profile
    epsilons = default_profile(epsilon) if epsilons is None else epsilons
    stages = {"lower ends": lower * SHARD * pace}
    if epsilons:
        began = time.monotonic()
        for direction in mechanism.directions:
            told(session.estimator, mechanism, direction, epsilons, shards=SHARDS // 4, most=SHARDS // 4)
        stages["profile"] = histograms * SHARD * pace + AFRESH * (time.monotonic() - began)
    return stages


def _cyclic(session: Session, document: Document) -> float | None:
    """σ for the same document under cyclic Poisson sampling, which composes; none where there is no such document."""
    blank = document.blank
    if blank is None or blank[-1] != "multiplier" or not isinstance(document.bodies[0].sampler, BMinSep):
        return None
    return cyclic_noise(session, document)


def cheaper(plan: Plan, found: Forecast) -> Sequence[str]:
    """Routes of the same document that take less, in words."""
    lines = []
    sampler = plan.document.bodies[0].sampler
    if found.cyclic_noise is not None and isinstance(sampler, BMinSep):
        lines.append(
            f"cyclic-poisson sampling in {sampler.min_separation} fixed parts composes, in seconds, "
            f"at σ near {found.cyclic_noise:.4g}"
        )
    if found.ends_at is not None and plan.document.blank is not None:
        price = next(one.seconds for one in found.trade if one.distance == found.ends_at)
        wider = [one for one in found.trade if one.distance > found.ends_at and one.seconds < 0.5 * price]
        if wider:
            lines.append(f"a tolerance of {wider[-1].distance:g} halves the tests' price or better")
    return lines
