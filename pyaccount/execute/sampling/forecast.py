"""Estimate, before anything is certified, δ, the blank, and the samples that the tests will take. Never a guarantee.

The pilot runs as it would for the certificate. Every test that the fixed sequence would reach is planned but not run.
Its price is the number of samples that it is expected to take.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pyaccount.directions import Direction
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.betting_choice import BLOCKS, FIRST, MOST_SAMPLED, Claim, choose_betting
from pyaccount.execute.sampling.calibrate import composed_noise, noise_search, take_claim
from pyaccount.execute.sampling.confidence import delta_search, epsilon_search
from pyaccount.execute.sampling.estimates import Estimate, stated_estimates
from pyaccount.execute.sampling.fixed_sequence import Grid, GridSearch, Once, once_on
from pyaccount.execute.sampling.jobs import SHARD, Proposal, Replicas
from pyaccount.execute.sampling.proposals import plain_proposal
from pyaccount.execute.sampling.session import Session, open_session
from pyaccount.execute.sampling.tests_of_claims import Acceptance, of_claim
from pyaccount.plan.common import number
from pyaccount.plan.compiled import CompiledDocument, Instance
from pyaccount.plan.sampled import SampledMechanism

#: The distances above the pilot's value at which the width and the samples of a certificate are compared.
OFFERED = (0.2, 0.1, 0.05, 0.02, 0.01)
#: The shards of an estimate, and the most if it has too few effective samples.
SHARDS, MOST_SHARDS = 64, 256


@dataclass(frozen=True, slots=True)
class Priced:
    """The expected price of testing one value of the blank, with its distance above the pilot's value."""

    distance: float
    value: float
    #: The expected samples; infinite if no test would accept the value.
    samples: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """The pilot's estimates, and the expected samples of the tests."""

    #: The ε at which δ is estimated.
    epsilon: float
    #: The blank, and the pilot's value of it, before any distance is added; None for a claim.
    blank: str | None
    pilot_value: float | None
    estimates: dict[Direction, Estimate]
    #: Values of the blank with the price of their tests, from the cheapest on.
    trade: tuple[Priced, ...] = ()
    #: The distance at which the fixed-sequence test is expected to end; None for a claim, or if no test would accept.
    ends_at: float | None = None
    #: Where the last tests' samples come from, in words, and why not from a power of the likelihood ratio.
    draws: tuple[str, ...] = ()
    #: The σ that cyclic Poisson sampling with the same separation would need, which composes.
    cyclic_noise: float | None = None

    @property
    def noise_multiplier(self) -> float | None:
        """The pilot's σ, if that is the blank."""
        return self.pilot_value if self.blank == "multiplier" else None


class _ExpectedTest(NamedTuple):
    """A test, with the expected number of samples."""

    mechanism: SampledMechanism
    direction: Direction
    epsilon: float
    proposal: Proposal
    samples: float


@dataclass(slots=True)
class _Pricing:
    """Prices tests in one session, each value once."""

    session: Session
    search: GridSearch
    known: dict[tuple[float, tuple[Direction, ...] | None], Priced] = field(default_factory=dict)
    #: The tests planned last, by direction.
    last: dict[Direction, list[_ExpectedTest]] = field(default_factory=dict)

    def at(self, distance: float, directions: tuple[Direction, ...] | None = None) -> Priced:
        """Return the expected price of tests at this distance above the pilot's value, in all directions or in some."""
        key = (distance, directions)
        if key not in self.known:
            value = self.search.pilot_value * (1.0 + distance)
            tests = _planned(self.session, *self.search.claim(value), directions)
            for direction in {one.direction for one in tests}:
                self.last[direction] = [one for one in tests if one.direction == direction]
            samples = sum(one.samples for one in tests) if tests else math.inf
            self.known[key] = Priced(distance, value, samples)
        return self.known[key]

    def sequence(self) -> tuple[list[Priced], float | None]:
        """Return the values that would be tested, with their prices, and the distance at which the sequence ends."""
        for k, grid in enumerate(self.search.reachable):
            tested, reached = self._priced(grid, once_on(self.session, self.search, grid) if k == 0 else None)
            if reached is not None:
                return tested, reached
        return [], None

    def _priced(self, grid: Grid, once: Once | None) -> tuple[list[Priced], float | None]:
        tested: list[Priced] = []
        for distance in (*grid.asked, *grid.optional):
            served = once is not None and once.serves(distance)
            one = self.at(distance, once.further if served and once is not None else None)
            if once is not None and not tested:
                below = self.at(once.distance, once.directions)
                one = replace(one, samples=one.samples + below.samples)
            budget = self.search.budget(grid, distance, {each.distance: each.samples for each in tested})
            if not math.isfinite(one.samples) or (budget is not None and one.samples > budget):
                break
            tested.append(one)
        return tested, tested[-1].distance if tested else None


def _planned(
    session: Session,
    instance: Instance,
    epsilon: float,
    acceptance: Acceptance,
    directions: tuple[Direction, ...] | None = None,
) -> list[_ExpectedTest]:
    """Return the tests of a claim with their expected samples, in whole waves; none if no test would accept."""
    mechanism = session.mechanism(instance)
    if acceptance.fixed is not None:
        return [
            _ExpectedTest(mechanism, one, epsilon, plain_proposal(mechanism, one), float(acceptance.fixed.samples))
            for one in directions or mechanism.directions
        ]
    claim = Claim(mechanism, session.noise(instance), epsilon, acceptance.delta, acceptance.log_target)
    tests = []
    for direction, estimate in session.estimate(mechanism, epsilon, directions=directions).items():
        betting = choose_betting(session.sampler, claim, direction, estimate)
        if betting is None or not math.isfinite(betting.expected_samples):
            return []
        wave = betting.proposal.wave * SHARD
        samples = float(wave * math.ceil(betting.expected_samples / wave))
        tests.append(_ExpectedTest(mechanism, direction, epsilon, betting.proposal, samples))
        if betting.square is not None:
            proposal = replace(plain_proposal(mechanism, direction), log_sobolev=betting.square.mean.proposal)
            samples = float(wave * math.ceil(betting.square_samples / wave))
            tests.append(_ExpectedTest(mechanism, direction, epsilon, proposal, samples))
    return tests


def forecast(plan: CompiledDocument, options: RunOptions) -> Forecast:
    """Estimate the blank, δ at the document's ε, and the samples of the tests.

    The plan's mechanism must be sampled, and its choices made. Raises as `execute_sampled` does.
    """
    stated = plan.document.accounting.seed
    session = open_session(plan, replace(options, seed=secrets.randbits(64) if stated is None else stated))
    take_claim(session)
    document = session.plan.document
    search = _search(session)
    at, epsilon, acceptance = search.claim(search.pilot_value)
    mechanism = session.mechanism(at)
    session.sampler.stage("pilot")
    session.estimate(mechanism, epsilon)
    pricing = _Pricing(session, search)
    blank, claim = None if document.blank is None else str(document.blank[-1]), document.blank is None
    covered = claim and search.fallback <= acceptance.delta
    asked = document.accounting.method == "renyi"
    tested, ends = ([], None) if covered or asked else pricing.sequence()
    draws = tuple(_draws_of(session, pricing.last)) if tested else ()
    offered = (
        ()
        if claim or asked or search.pilot_value <= 0.0
        else tuple(d for d in OFFERED if search.pilot_value * (1.0 + d) < search.fallback)
    )
    # A tested value is listed with its price in the sequence, which does not repeat the one test of a direction.
    priced = {distance: pricing.at(distance) for distance in offered} | {one.distance: one for one in tested}
    trade = [priced[distance] for distance in sorted(priced, reverse=True)]
    return Forecast(
        epsilon=epsilon,
        blank=blank,
        pilot_value=None if claim else search.pilot_value,
        estimates={
            side: stated_estimates(session.estimator, mechanism, side, (epsilon,), (SHARDS, MOST_SHARDS))[0]
            for side in mechanism.directions
        },
        trade=tuple(one for one in trade if math.isfinite(one.samples)),
        ends_at=None if claim else ends,
        draws=draws,
        cyclic_noise=composed_noise(session) if blank == "multiplier" else None,
    )


def _search(session: Session) -> GridSearch:
    """Return the search that the document's blank asks for; a claim is a grid of one value."""
    blank, privacy = session.plan.document.blank, session.plan.document.privacy
    if blank is not None:
        searches = {"multiplier": noise_search, "epsilon": epsilon_search, "delta": delta_search}
        return searches[str(blank[-1])](session)
    epsilon, delta, instance = number(privacy.epsilon), number(privacy.delta), session.plan.at()
    acceptance, bound = of_claim(instance.document, 1), session.unsampled(instance, epsilon=epsilon).upper
    if bound > delta and (proof := session.moment_proof(instance, epsilon, delta)) is not None:
        bound = proof.delta
    cost = session.mechanism(instance).cost
    # A claim is the value 1 itself, at no distance. If it holds without samples, the fallback is below δ.
    return GridSearch(
        1.0, bound if bound <= delta else math.inf, [Grid((0.0,))], lambda _: (instance, epsilon, acceptance), cost
    )


def _draws_of(session: Session, planned: dict[Direction, list[_ExpectedTest]]) -> Iterator[str]:
    """Say for each direction where its tests draw samples from, and why not from a power of the likelihood ratio."""
    for direction, tests in planned.items():
        steps = [f"about {test.samples:.2g} samples from {_law(test)}" for test in tests if test.samples]
        yield f"{direction}: {', then '.join(reversed(steps)) or 'no samples, since a bound without samples is enough'}"
        mechanism = tests[0].mechanism
        smallest = Replicas(FIRST).price(mechanism)
        if direction == "add" or smallest is None or tests[0].proposal.replicas or not tests[0].samples:
            continue
        chosen = session.sampler.replicas
        if chosen is None:
            yield (
                f"{direction}: a power of the likelihood ratio needs a chain of at least {smallest[0]} states, and at most "
                f"{MOST_SAMPLED} fit; with a separation that is divisible by a number from 2 to {BLOCKS[0]} a chain by blocks of "
                "rounds is smaller"
            )
        else:
            replicas, (states, work) = chosen
            yield (
                f"{direction}: {_power(replicas)} needs a chain of {states} states, {work:.2g} in all its steps; that is "
                "expected to cost more than it saves"
            )


def _law(test: _ExpectedTest) -> str:
    """Name the law from which the samples of a test come."""
    proposal = test.proposal
    if proposal.log_sobolev is not None:
        return f"a mean that bounds {'δ' if proposal.log_sobolev.moment == 1 else 'their second moment'}"
    if proposal.replicas is not None:
        price = proposal.replicas.price(test.mechanism)
        states = "" if price is None else f", a chain of {price[0]} states"
        return f"{_power(proposal.replicas)}{states}"
    if proposal.components:
        return "a mixture"
    return "the mechanism itself" if proposal == plain_proposal(test.mechanism, test.direction) else "a scaled law"


def _power(replicas: Replicas) -> str:
    how = f" by blocks of {replicas.block} rounds" if replicas.block else ""
    how = f" with at most {replicas.most_busy} busy replicas" if replicas.most_busy else how
    return f"the power {replicas.order} of the likelihood ratio{how}"


def cheaper(plan: CompiledDocument, found: Forecast) -> Sequence[str]:
    """Return in words which changes of the document would make the certificate cheaper."""
    lines = []
    if found.cyclic_noise is not None:
        lines.append(
            f"cyclic-poisson sampling in {plan.document.run.sampler.min_separation} fixed parts composes, without samples, "
            f"at σ near {found.cyclic_noise:.4g}"
        )
    if found.ends_at is not None and plan.document.blank is not None:
        price = next(one.samples for one in found.trade if one.distance == found.ends_at)
        wider = [one for one in found.trade if one.distance > found.ends_at and one.samples < 0.5 * price]
        if wider:
            lines.append(f"a tolerance of {wider[-1].distance:g} halves the tests' samples or better")
    return lines
