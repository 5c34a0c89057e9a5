"""What stands beside a guarantee from samples: lower ends, bounds on other points of the profile, and estimates.

Usually they come from the samples of the tests. Bets for lower ends are made on them while they are drawn (see
`wealth`), and the losses are counted in a histogram. Each of several tests may be the one that certifies the result, so
the bounds from the k-th test of a direction get the share 1/(k(k + 1)) of a failure probability, and a histogram of N
shards, where a test may end, the share 1/(N(N + 1)) of that: all shares add up to at most 1, so whichever test and N it
is, the bound fails with at most the whole probability. (Bets may end at any time.) If bets on samples of their own
follow, they count as one more test.

Few plain samples bound the profile at small ε, where those of tests say little. Then there is one estimate, at the
guarantee. Only a profile that is asked for has more samples and an estimate at each point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyaccount.directions import Direction
from pyaccount.execute.sampling.bounds_without_samples import estimated
from pyaccount.execute.sampling.estimates import Estimate, stated_estimates
from pyaccount.execute.sampling.fixed_sequence import Result
from pyaccount.execute.sampling.jobs import SHARD, Proposal
from pyaccount.execute.sampling.lower_ends import LowerEnds, Sought, fewer_shards, lower_ends, of_a_power
from pyaccount.execute.sampling.profile import Curve, Histogram, curve, draw
from pyaccount.execute.sampling.proposals import plain_proposal
from pyaccount.execute.sampling.session import Session
from pyaccount.execute.sampling.tests_of_claims import Test
from pyaccount.execute.sampling.wealth import share_of
from pyaccount.plan.common import given
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.records.certificate import ProfilePoint

#: The least and the most shards for the curves of a profile that is asked for, and for lower ends.
PROFILE_SHARDS = (64, 512)
#: The shards for its estimates, and the most if some ε has too few samples; and those of the estimate at the guarantee.
ESTIMATE_SHARDS, GUARANTEE_SHARDS = (32, 256), (8, 128)
#: The plain shards for the curves of any other profile.
PLAIN_SHARDS = 16
#: An estimate below this share of a claim, or of another direction's, is far from it; the shards for such a direction.
FAR_ESTIMATE, FAR_SHARDS = 0.5, 16
#: If the tests leave the lower end of ε farther away than this, in tolerances, more samples are drawn for it.
NEAR_ENOUGH = 2.0


@dataclass(slots=True)
class Beside:
    """What is computed beside a result; with `shards`, from so many new shards, without the samples of the tests."""

    session: Session
    result: Result
    mechanism: SampledMechanism
    #: The failure probability of each bound in one direction.
    failure_probability: float
    shards: int | None
    #: The lower bounds on ε and δ in each direction.
    lower: dict[Direction, tuple[float, float]] = field(default_factory=dict)
    _drawn: dict[Direction, LowerEnds] = field(default_factory=dict)
    _estimates: dict[Direction, Estimate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lower = dict.fromkeys(self.mechanism.directions, (0.0, 0.0))

    def find_lower_ends(self) -> None:
        """Find the lower ends in every direction. Raises `LimitError`."""
        epsilon, lacking = self.result.epsilon, []
        for side in self.mechanism.directions:
            found = next((one for one in self._own_tests(side) if self._of_the_result(one[1])), None)
            if found is None:
                lacking.append(side)
            else:
                k, test = found
                self.lower[side] = given(test.below).ends(self.failure_probability * share_of(k))
        near = epsilon * (1.0 - NEAR_ENOUGH * self.session.plan.tolerance)
        if len(lacking) < len(self.lower) and max(end for end, _ in self.lower.values()) < near:
            lacking = [side for side in self.lower if side in lacking or not self._far(side)]
        for side in lacking:
            self._drawn[side] = lower_ends(self.session, self.mechanism, self._sought(side))
            ends = zip(self._drawn[side].ends, self.lower[side], strict=True)
            epsilon_lower, delta_lower = (max(pair) for pair in ends)
            self.lower[side] = (epsilon_lower, delta_lower)

    def estimates(self) -> dict[Direction, Estimate]:
        """Return the estimates at the guarantee. Raises `LimitError`."""
        if not self._estimates:
            epsilons = (self.result.epsilon,)
            for side in self.mechanism.directions:
                (self._estimates[side],) = stated_estimates(
                    self.session.estimator, self.mechanism, side, epsilons, GUARANTEE_SHARDS
                )
        return self._estimates

    def many_histograms(self, centre: float, last: float) -> dict[Direction, list[Histogram]]:
        """Return histograms of new samples for a profile that is asked for, around an ε and up to the last one."""
        at = self.estimates() if self.session.report_delta is None else self.session.estimate(self.mechanism, centre)
        sources = proposals(self.mechanism, at, {side: self._tested(side) for side in self.mechanism.directions})
        return histograms(self.session, self.mechanism, sources, (centre, last), self._usual_shards())

    def few_histograms(self) -> dict[Direction, list[Histogram]]:
        """Return histograms of the samples that were drawn for the guarantee and its lower ends, and of a few plain ones."""
        return {side: list(self._few(side)) for side in self.mechanism.directions}

    def points(
        self, side: Direction, found: Curve, epsilons: Sequence[float], *, everywhere: bool
    ) -> list[ProfilePoint]:
        """Return one direction's curve: bounds by its histograms and proofs, with estimates everywhere or at the guarantee."""
        points = curve(self.session.sampler, found.histograms[side], epsilons, found.failure_probability)
        if found.beside is not None:
            points = [found.beside.capped(point, side) for point in points]
        if everywhere:
            estimator = self.session.estimator
            stated = stated_estimates(estimator, self.mechanism, side, epsilons, ESTIMATE_SHARDS)
            points = [estimated(point, one) for point, one in zip(points, stated, strict=True)]
        elif self.result.epsilon in epsilons:
            own = self.estimates()[side]
            points = [estimated(point, own) if point.epsilon == self.result.epsilon else point for point in points]
        return [one.model_copy(update={"delta_lower": min(one.delta_lower, one.delta)}) for one in points]

    def _own_tests(self, side: Direction) -> Iterator[tuple[int, Test]]:
        """Yield the tests of one direction with further bounds, the last one first, and their numbers; none for a retest."""
        tests = [one for one in self.result.sequence.tests if one.direction == side and (one.below or one.losses)]
        if self.shards is None:
            yield from reversed(list(enumerate(tests, 1)))

    def _of_the_result(self, test: Test) -> bool:
        """Return whether a test accepted the claim that is certified."""
        result = self.result
        claim = (self.session.noise(result.instance), result.epsilon, result.acceptance.delta)
        return (
            test.accepted
            and test.below is not None
            and result.kind != "deterministic"
            and claim == (test.noise_multiplier, test.epsilon, test.threshold)
        )

    def _few(self, side: Direction) -> Iterator[Histogram]:
        session, mechanism, epsilon = self.session, self.mechanism, self.result.epsilon
        noise = session.noise(self.result.instance)
        for k, test in self._own_tests(side):
            if test.losses is not None and test.noise_multiplier == noise:
                share = share_of(k) * share_of(test.losses.samples // SHARD)
                yield Histogram(mechanism, side, test.proposal, test.losses, share=share)
                break
        own = self._drawn.get(side)
        usual = plain_proposal(mechanism, side)
        if own is not None and own.losses is not None:
            yield Histogram(mechanism, side, own.proposal, own.losses)
        if own is None or own.losses is None or own.proposal != usual:
            yield draw(session.sampler, mechanism, side, usual, epsilon, PLAIN_SHARDS)

    def _far(self, side: Direction) -> bool:
        """Return whether another direction's estimate is far larger."""
        found = self.estimates()
        return found[side].value <= FAR_ESTIMATE * max(one.value for one in found.values())

    def _usual_shards(self) -> int:
        return profile_shards(_accepted(self.result.sequence.tests)) if self.shards is None else self.shards

    def _tested(self, side: Direction) -> Proposal | None:
        """Return the law of the last test with samples, or a power up to that of a proof; None if there is neither.

        The last test's proposal has a small weight bound, so a small error of the generator; others vary less.
        """
        proof = self.result.proof
        if proof is not None and side == "remove" and self.mechanism.lower is None:
            return of_a_power(self.session.sampler, self.mechanism, (proof.order, self.result.epsilon))
        last = self._last_test(side)
        return None if last is None else last.proposal.single

    def _last_test(self, side: Direction) -> Test | None:
        tests = [test for test in self.result.sequence.tests if test.drawn and test.direction == side]
        return tests[-1] if tests else None

    def _sought(self, side: Direction) -> Sought:
        """Return which lower ends are to be found from new samples."""
        result, estimate = self.result, self.estimates()[side]
        far = result.instance.document.accounting.method == "renyi" or estimate.value < FAR_ESTIMATE * result.delta
        earlier = sum(test.below is not None for _, test in self._own_tests(side))
        share = share_of(earlier + 1) if earlier else 1.0
        few = self.shards is None and self._far(side)
        return Sought(
            side,
            result.epsilon,
            result.delta,
            self.failure_probability * share,
            estimate,
            self._last_test(side),
            self._tested(side),
            FAR_SHARDS if few else self._usual_shards(),
            far=far,
        )


def profile_shards(accepted: int) -> int:
    """Return the shards for lower ends and curves, given the samples of the accepted tests."""
    return min(max(accepted // SHARD // 4, PROFILE_SHARDS[0]), PROFILE_SHARDS[1])


def proposals(
    mechanism: SampledMechanism, estimates: dict[Direction, Estimate], tested: dict[Direction, Proposal | None]
) -> dict[Direction, set[Proposal]]:
    """Return each direction's proposals for histograms: plain sampling, the pilot's proposal, and the last test's."""
    found = {side: {plain_proposal(mechanism, side), estimates[side].proposal} for side in mechanism.directions}
    for side, proposal in tested.items():
        # Samples with a floor lack a part of δ, for which there is a bound only at the ε of the test.
        if proposal is not None and proposal.floor is None:
            found[side].add(proposal)
    return found


def histograms(
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
        kept = {one for one in listed if one == usual or _bounds(session, mechanism, direction, one, last)}
        ordered = sorted(kept, key=lambda proposal: (proposal.mean_scale, proposal.parameter))
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


def _accepted(tests: Sequence[Test]) -> int:
    """Return the number of samples of the last claim's accepted tests, from which that of the other evidence follows."""
    last = {test.direction: test for test in tests if test.accepted}
    return sum(test.samples for test in last.values())
