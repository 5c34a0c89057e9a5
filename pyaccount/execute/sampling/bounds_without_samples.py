"""Bounds on a profile that come from elsewhere than its samples: from the guarantee itself, and without samples.

**The guarantee** says that δ(ε₀) ≤ δ for the run that was accepted. That is wrong only if a test erred, which has the
total probability of the tests. It implies other points of the same profile (see `risk.implied`), also together with
bounds without samples, since all of these are about the one run. A test's error is one event for all points: each of
them is wrong with this and its own probability together, and all of them with the sum of their own and this once.

(A verified guarantee includes the tests' error in its δ. It is then a statement about the procedure that tests and runs
what was accepted, and it holds for certain. The profile is not about that procedure but about the run, so the
probability is stated.)

A test of an added record by one mean says more. E D₁ does not depend on ε, and the bound that it gives decreases with
e^{−λε}: if it proves δ(ε₁) ≤ δ₀ it proves δ(ε) ≤ δ₀e^{−λ(ε − ε₁)} at every ε. Likewise E V² ≤ v e^{−λ(ε − ε₁)}, and
δ(ε) ≤ √(E V²). The run that was tested may have less noise than the result, which is then at least as private, but
never more. The errors are those of the tests as run: all tests of a grid, with those of second moments, are one
sequence, of which the first false claim is accepted with probability at most q.

**Without samples** the profile of `Session.unsampled` holds for certain, and so do bounds by moments (see `moments`),
and those by the weight bounds of proposals and the logarithmic Sobolev inequality (`SampledMechanism.bounded_profile`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.execute.engine import Question
from pyaccount.execute.sampling.estimates import Estimate
from pyaccount.execute.sampling.moments import MomentProof
from pyaccount.execute.sampling.session import Session
from pyaccount.execute.sampling.tests_of_claims import Test
from pyaccount.execute.unamplified import unsampled_bounds
from pyaccount.plan.compiled import Instance
from pyaccount.records.certificate import ProfilePoint
from pyaccount.risk.implied import implied
from pyaccount.risk.tradeoff import Bound

#: The relative width of composed bounds without samples.
TOLERANCE = 1e-2
#: An estimate that is this many standard errors above a proven bound is not an estimate of the run itself.
BEYOND = 4.0


def point_of(epsilon: float, upper: float, lower: float) -> ProfilePoint:
    """Return δ at one ε, without an estimate: bounds that each hold with probability at least 1 − q."""
    return ProfilePoint(epsilon=epsilon, delta=upper, delta_lower=lower, delta_estimate=None, standard_error=None)


def estimated(point: ProfilePoint, found: Estimate) -> ProfilePoint:
    """Return a point with an estimate, moved into the bounds; without one if too little was seen.

    Samples are of a pair that need not be attained. If another proof gives a bound far below their estimate, they
    say nothing about the run itself, and there is no estimate either.
    """
    if not found.known or found.value - point.delta > BEYOND * found.standard_error:
        return point
    estimate = min(max(found.value, point.delta_lower), point.delta)
    return point.model_copy(update={"delta_estimate": estimate, "standard_error": found.standard_error})


@dataclass(frozen=True, slots=True)
class Known:
    """What is known about a run when its profile is computed: its guarantee (ε, δ), and how that was proven.

    The tests are of runs with no more noise, and their errors are part of the guarantee's probability.
    """

    guarantee: tuple[float, float]
    proof: MomentProof | None = None
    tests: Sequence[Test] = ()

    def added(self, epsilon: float) -> Iterator[float]:
        """Yield upper bounds on δ of an added record, by the means that were tested; `beyond` must be added to them."""
        for test in self.tests:
            mean, square = test.proposal.log_sobolev, test.second_moment
            further = epsilon - test.epsilon
            if test.accepted and mean is not None:
                yield _falling(test.threshold, mean.exponent * further)
            if square is not None and square.accepted:
                yield _falling(math.sqrt(square.bound), 0.5 * square.proposal.exponent * further)


def _falling(bound: float, exponent: float) -> float:
    """Return a bound times e^{−exponent}, rounded up; at most 1."""
    log = math.log(bound) - exponent
    return min(1.0, math.exp(min(log, 0.0) * (1.0 - 1e-14) + 1e-14 * (1.0 + abs(exponent))))


@dataclass(frozen=True, slots=True)
class Proven:
    """Points that bound δ in each direction, independently of the profile's samples."""

    remove: tuple[Bound, ...]
    add: tuple[Bound, ...]

    def capped(self, point: ProfilePoint, direction: Direction) -> ProfilePoint:
        """Return a point with its upper end at most what these imply, in one direction (or both, which are one)."""
        own, other = (self.add, self.remove) if direction == "add" else (self.remove, self.add)
        return point.model_copy(update={"delta": min(point.delta, implied(own, other, point.epsilon))})


def proven(session: Session, instance: Instance, known: Known, epsilons: Sequence[float]) -> Proven:
    """Return what a guarantee and its proof imply at these ε, with bounds without samples. Raises `LimitError`."""
    bounds = unsampled_bounds(instance)
    width = TOLERANCE if session.plan.mixed else session.fineness
    answers = session.engine.ask_all([(bounds, Question(epsilon, None, width)) for epsilon in epsilons])
    sides = {
        side: (
            Bound(*known.guarantee),
            *(
                Bound(epsilon, min(1.0, answer.directions[side].upper))
                for epsilon, answer in zip(epsilons, answers, strict=True)
            ),
        )
        for side in DIRECTIONS
    }
    mechanism = session.mechanism(instance)
    if "replace" not in mechanism.directions:
        for side in DIRECTIONS:
            of_samples = mechanism.bounded_profile(side, epsilons)
            if side == "add":
                of_samples = [
                    min(bound, *known.added(epsilon), 1.0) for epsilon, bound in zip(epsilons, of_samples, strict=True)
                ]
            beyond = [session.sampler.beyond(mechanism, side, epsilon) for epsilon in epsilons]
            sides[side] += tuple(
                Bound(epsilon, min(1.0, bound + more))
                for epsilon, bound, more in zip(epsilons, of_samples, beyond, strict=True)
            )
    if known.proof is not None:
        for side in DIRECTIONS:
            sides[side] += tuple(Bound(epsilon, known.proof.bounded(mechanism, side, epsilon)) for epsilon in epsilons)
    return Proven(sides["remove"], sides["add"])
