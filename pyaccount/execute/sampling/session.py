"""The state of one execution: its sampler, its estimator, its engine, and the curves of the composed phases."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from pyaccount.directions import DIRECTIONS, Direction, sampled_directions
from pyaccount.document.document import Document
from pyaccount.execute.engine import Answer, Engine, Question
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.betting_choice import Claim
from pyaccount.execute.sampling.composed_profile import ComposedProfile, composed_profile, ignored
from pyaccount.execute.sampling.estimates import ESTIMATE, SCOUT, Effort, Estimate, Estimator
from pyaccount.execute.sampling.moments import MomentProof, moment_proof
from pyaccount.execute.sampling.shards import Sampler
from pyaccount.execute.sampling.tests_of_claims import Acceptance, Test, run_betting_tests, run_fixed_sample_tests
from pyaccount.execute.unamplified import unsampled_bounds
from pyaccount.plan.common import number
from pyaccount.plan.compiled import CompiledDocument, Instance
from pyaccount.plan.sampled import SampledMechanism

#: A direction whose δ is less than this share of another's does not affect the result.
NEGLIGIBLE = 1e-3
#: A coarse estimate suffices for a test if the claim is this many standard errors away.
CLEAR = 6.0
#: Relative widths of bounds without samples: of one Gaussian mechanism, and of a composition.
FINENESS, COMPOSED_FINENESS = 1e-6, 1e-3


@dataclass(slots=True)
class Session:
    """The plan that is executed, and the means to do so. It holds no claim: each test gets all that it is about."""

    plan: CompiledDocument
    sampler: Sampler
    estimator: Estimator
    engine: Engine
    #: The document as it was asked for, before choices and the claim that keeps a budget of risk.
    asked: Document
    #: The random numbers for the search of a root, the same for all candidates.
    stream: int | None = None
    #: The δ at which the composed phases' curve ends, and the last curve, by its rounds.
    end: float | None = None
    composed: dict[object, ComposedProfile] = field(default_factory=dict)
    #: The last mechanism, whose object in the core keeps the tables of its chain of replicas.
    last: SampledMechanism | None = None
    #: The δ at which ε is stated, for a budget of risk.
    report_delta: float | None = None
    #: The last estimates in all directions.
    latest: dict[Direction, Estimate] = field(default_factory=dict)
    #: What was found so far, in words, for the message if a limit stops the work.
    known: list[str] = field(default_factory=list)

    def mechanism(self, instance: Instance) -> SampledMechanism:
        """Return the mechanism at a value of the blank: its sampled phases, and the composed profile of the rest."""
        mechanism, found = instance.mechanism(), self.composed_profile(instance)
        if found is not None:
            lower = None if mechanism.lower is None else replace(mechanism.lower, curves=found.curves)
            mechanism = replace(mechanism, curves=found.curves, lower=lower)
        if mechanism != self.last:
            self.last = mechanism
        return self.last

    def composed_profile(self, instance: Instance) -> ComposedProfile | None:
        """Return the curve of the phases that compose, or None. It is kept while only sampled phases change."""
        bounds = instance.composed_bounds()
        if bounds is None:
            return None
        key = tuple((direction, bounds[direction].upper, bounds[direction].lower) for direction in DIRECTIONS)
        if key not in self.composed:
            privacy = instance.document.privacy
            directions = sampled_directions(privacy.adjacency)
            if self.end is None:
                # All candidates use the same end, so that they differ in nothing but the candidate.
                epsilon = None if privacy.epsilon == "solve" else privacy.epsilon
                delta = None if privacy.delta == "solve" else privacy.delta
                self.end = ignored(self.engine, bounds, epsilon=epsilon, delta=delta)
            self.composed = {key: composed_profile(self.engine, bounds, directions, self.end)}
        return self.composed[key]

    def unsampled(self, instance: Instance, *, epsilon: float | None = None, delta: float | None = None) -> Answer:
        """Return the answer at this ε, or at this δ, from bounds without samples."""
        return self.engine.ask(unsampled_bounds(instance), Question(epsilon, delta, self.fineness))

    def moment_proof(self, instance: Instance, epsilon: float, delta: float) -> MomentProof | None:
        """Return a proof of the claim by moments; None if there is none, or if the document asks for samples."""
        accounting = instance.document.accounting
        if accounting.method != "auto" or accounting.verification != "betting":
            return None
        self.sampler.stage("moments, without samples")
        return moment_proof(self.engine, self.mechanism(instance), epsilon, delta)

    @property
    def fineness(self) -> float:
        """The relative width of bounds without samples: one Gaussian mechanism is cheap, a composition is not."""
        return COMPOSED_FINENESS if self.plan.mixed else FINENESS

    def noise(self, instance: Instance) -> float:
        """Return σ of the phase whose noise was the blank, or of the first phase that is sampled."""
        blank, runs = self.plan.document.blank, list(instance.document.runs_among_phases())
        asked = [run for run in runs if run.at("noise", "multiplier") == blank]
        drawn = {one.node.path for one in instance.theorems if one.sampled}
        return number((asked or [run for run in runs if run.path in drawn])[0].noise.multiplier)

    def estimate(
        self,
        mechanism: SampledMechanism,
        epsilon: float,
        *,
        shards: int = ESTIMATE,
        stream: int | None = None,
        directions: tuple[Direction, ...] | None = None,
    ) -> dict[Direction, Estimate]:
        """Return estimates in every direction (or in some), with less effort in one whose δ is far below another's."""
        estimates: dict[Direction, Estimate] = {}
        largest = 0.0
        for direction in directions or mechanism.directions:
            effort = Effort(shards, negligible=NEGLIGIBLE * largest, candidate=stream)
            found = self.estimator.at(mechanism, direction, epsilon, effort)
            estimates[direction], largest = found, max(largest, found.value)
        if directions is None:
            self.latest = estimates
        return estimates

    def excess(
        self, mechanism: SampledMechanism, epsilon: float, delta: float, *, shards: int = ESTIMATE
    ) -> tuple[float, float]:
        """Return ln(δ̂(ε)/δ) of the worse direction, and how precisely it is worth knowing; always uses one stream."""
        if self.stream is None:
            self.stream = self.sampler.fresh()
        estimates = self.estimate(mechanism, epsilon, shards=shards, stream=self.stream)
        worst = max(estimates.values(), key=lambda estimate: estimate.value)
        if worst.value <= 0.0:
            return -50.0, 0.0
        # With the same random numbers a root is found more precisely than its own standard error.
        return math.log(worst.value / delta), 0.25 * worst.standard_error / worst.value

    def test(
        self,
        instance: Instance,
        epsilon: float,
        acceptance: Acceptance,
        budget: float | None = None,
        directions: tuple[Direction, ...] | None = None,
    ) -> tuple[Test, ...]:
        """Test one claim, in all directions or in some; test nothing if that is expected to exceed the budget."""
        mechanism, sigma, delta = self.mechanism(instance), self.noise(instance), acceptance.delta
        tested = directions or mechanism.directions
        self.sampler.stage(f"testing ({epsilon:.5g}, {delta:.4g}) at σ = {sigma:.5g}")
        claim = Claim(mechanism, sigma, epsilon, delta, acceptance.log_target, acceptance.stated)
        if acceptance.fixed is not None:
            if budget is not None and len(tested) * acceptance.fixed.samples > budget:
                return ()
            tests = run_fixed_sample_tests(self.sampler, claim, acceptance.fixed, tested)
        else:
            estimates = self._estimates_for(claim, directions, coarse=budget is None)
            tests = run_betting_tests(self.sampler, claim, estimates, budget)
        if tests:
            outcome = "accepted" if all(test.accepted for test in tests) else "rejected"
            side = "" if directions is None else f" ({', '.join(directions)})"
            self.known.append(f"({epsilon:.5g}, {delta:.4g}) at σ = {sigma:.5g} was {outcome}{side}")
        return tests

    def _estimates_for(
        self, claim: Claim, directions: tuple[Direction, ...] | None, *, coarse: bool
    ) -> dict[Direction, Estimate]:
        """Return estimates for the tests of a claim; coarse ones, if they may be and are far from the claim."""
        if coarse:
            found = self.estimate(claim.mechanism, claim.epsilon, shards=SCOUT, directions=directions)
            if all(abs(claim.delta - one.value) > CLEAR * one.standard_error for one in found.values()):
                return found
        return self.estimate(claim.mechanism, claim.epsilon, directions=directions)


def open_session(plan: CompiledDocument, options: RunOptions) -> Session:
    """Open a session for a plan. Its seed is one of the options."""
    assert options.seed is not None
    sampler = Sampler(options)
    engine = Engine(threads=options.threads, time_limit=options.remaining)
    return Session(plan, sampler, Estimator(sampler), engine, plan.asked or plan.document)
