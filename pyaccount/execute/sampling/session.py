"""The state of one execution: its sampler, its estimates, the claim to be tested and the composed phases' curve."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyaccount.directions import DIRECTIONS, sampled_directions
from pyaccount.execute.engine import Answer, Engine, Question
from pyaccount.execute.sampling.betting import Claim
from pyaccount.execute.sampling.estimates import ESTIMATE, Estimate, Estimator
from pyaccount.execute.sampling.others import Others, ignored, others
from pyaccount.execute.sampling.shards import Sampler
from pyaccount.execute.sampling.verify import FixedSample, Test, verify, verify_fixed
from pyaccount.execute.unamplified import unsampled_bounds
from pyaccount.plan.plan import compile_document

if TYPE_CHECKING:
    from pyaccount.directions import SampledDirection
    from pyaccount.document import Document
    from pyaccount.execute.progress import Report
    from pyaccount.execute.sampling.profile import Histogram
    from pyaccount.plan.plan import Plan
    from pyaccount.plan.sampled import SampledMechanism

#: The probability of accepting a false claim, as a share of δ.
FAILURE_SHARE = 0.01
#: A direction whose δ is so much smaller than another's decides nothing.
NEGLIGIBLE = 1e-3
#: Relative widths of what holds without samples: where it is one Gaussian mechanism, and where it is composed.
FINENESS, COMPOSED_FINENESS = 1e-6, 1e-3


@dataclass(slots=True)
class Session:
    """The sampler, the estimator and the document of one execution."""

    plan: Plan
    sampler: Sampler
    estimator: Estimator
    engine: Engine
    log_target: float = 0.0
    claim: float = 0.0
    starts: int = 1
    fixed: FixedSample | None = None
    estimates: dict[SampledDirection, Estimate] = field(default_factory=dict)
    #: The random numbers by which a root is searched: candidates differ by nothing else.
    stream: int | None = None
    #: Where the composed phases' curve ends, and the last curve with the rounds that it is of.
    end: float | None = None
    composed: dict[object, Others] = field(default_factory=dict)
    #: What the profile was read off: the curve's other points are in it too.
    histograms: dict[SampledDirection, list[Histogram]] = field(default_factory=dict)
    #: What was found so far, in words: for the message if a limit stops the work.
    known: list[str] = field(default_factory=list)

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
        self, mechanism: SampledMechanism, epsilon: float, *, shards: int = ESTIMATE, stream: int | None = None
    ) -> dict[SampledDirection, Estimate]:
        """Estimates in every direction, with less effort in one whose δ is far below another's."""
        self.estimates, largest = {}, 0.0
        for direction in mechanism.directions:
            found = self.estimator.at(
                mechanism, direction, epsilon, shards=shards, negligible=NEGLIGIBLE * largest, stream=stream
            )
            self.estimates[direction], largest = found, max(largest, found.value)
        return self.estimates

    def excess(
        self, mechanism: SampledMechanism, epsilon: float, delta: float, *, shards: int = ESTIMATE
    ) -> tuple[float, float]:
        """ln(δ̂(ε)/δ) of the worse direction from the same random numbers at every call, and how closely it is worth knowing."""
        if self.stream is None:
            self.stream = self.sampler.fresh()
        estimates = self.estimate(mechanism, epsilon, shards=shards, stream=self.stream)
        worst = max(estimates.values(), key=lambda estimate: estimate.value)
        if worst.value <= 0.0:
            return -50.0, 0.0
        # With the same random numbers a root is found more closely than it is known.
        return math.log(worst.value / delta), 0.25 * worst.standard_error / worst.value

    def test(self, document: Document, epsilon: float, delta: float, budget: float | None = None) -> tuple[Test, ...]:
        """Test one claim; none is tested that is expected to take more samples than the budget."""
        mechanism = self.mechanism(document)
        sigma = self.noise(document)
        self.sampler.stage(f"testing ({epsilon:.5g}, {delta:.4g}) at σ = {sigma:.5g}")
        if self.fixed is not None:
            if budget is not None and len(mechanism.directions) * self.fixed.samples > budget:
                return ()
            tests = verify_fixed(self.sampler, mechanism, sigma, epsilon, self.fixed)
        else:
            claim = Claim(mechanism, sigma, epsilon, delta, self.log_target)
            tests = verify(self.sampler, claim, self.estimate(mechanism, epsilon), budget)
        if tests:
            outcome = "accepted" if all(test.accepted for test in tests) else "rejected"
            self.known.append(f"({epsilon:.5g}, {delta:.4g}) at σ = {sigma:.5g} was {outcome}")
        return tests


def open_session(plan: Plan, *, threads: int, time_limit: float | None, report: Report, seed: int) -> Session:
    """A session for a plan; the document's time limit holds unless another is given."""
    limit = plan.document.accounting.time_limit if time_limit is None else time_limit
    sampler = Sampler(seed=seed, threads=threads, time_limit=limit, report=report)
    return Session(plan, sampler, Estimator(sampler), Engine(threads=threads, time_limit=limit))
