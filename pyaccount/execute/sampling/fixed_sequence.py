"""The fixed-sequence test: claims on a fixed grid, tested in order until the first rejection; and the pilot's root.

Each value of a grid is a claim, which is implied by the claims below it. The distances of the values above the pilot's
value follow from the tolerance. They are tested from the largest down with independent samples until the first
rejection, or until going on is not worthwhile; the lowest accepted value above that is the result. It is false only if
the first false value of the sequence was accepted: this has probability at most q, however long the grid is (Dong &
Ganesh 2026, Theorem A.1). If the very first value is rejected, a second grid, higher up, can be tested, for another q.

**A direction that is tested once.** Write T_d(v) for "the run at v satisfies the claim in direction d". T_d(v) implies
T_d(w) for every w > v of a grid, separately for each direction:

* for ε and δ by their definition: H_{e^ε}(P‖Q) decreases in ε, and a larger δ claims less;
* for σ by post-processing. A run with σ′ > σ is a run with σ whose adversary adds noise √(σ′² − σ²) of its own, through
  the same matrix, to every release of that phase before looking at it. δ is the largest over data sets and adversaries,
  so it decreases in σ, both for a record that is removed and for one that is added. (Laplace noise of scale b′ > b is
  that of scale b with, in a share 1 − b²/b′² of the cases, an independent one of scale b′ added.) The proof only
  requires that the sampler, truncated batches, other phases and further releases stay as they are. T_d is about the
  run. Densities that only enclose the run's, and what rare truncation or a composed profile adds to the mean of
  samples, belong to the test of T_d(v), which is valid separately at each v: if T_d(v) is false for the run, so is the
  claim about what is sampled.

So a direction whose δ is far below the claim may be tested once, at a low value v, for all values from there up. That
takes little more than one test of it higher up. A value w is accepted if every direction d has an accepted test of T_d
at some v ≤ w. The lowest accepted value is false with probability at most q, without a union over directions or values.
For, given all that was drawn before it, a test of a false claim accepts with probability at most q. Consider the first
test on the grid whose claim is false. The tests before it are of true claims, which imply only true results; if it
rejects, the sequence ends, and the result follows from these. So a false result needs this one test to accept. Which
test that is depends only on what was drawn before it (by the pilot and by tests after which the search continued), and
q bounds its error whatever that was. The sequence that tests every direction at each value is a special case.

A rejection of the one test ends the grid as a rejection of its first value does. A second test of that direction on the
grid, at an easier value, would be a second chance, and cost another q. Adding a record often has a much smaller δ than
removing it, and yet is expensive to test, since the bounds on its samples are weaker: a direction whose estimate is at most
half of the claim at a value of the grid is tested once. No guarantee depends on that choice, only samples, or a rejection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pyaccount.directions import Direction
from pyaccount.document.policy import GuaranteeKind
from pyaccount.errors import LimitError, NumericsError
from pyaccount.execute.sampling.estimates import SCOUT, Effort
from pyaccount.execute.sampling.moments import MomentProof
from pyaccount.execute.sampling.session import Session
from pyaccount.execute.sampling.tests_of_claims import Acceptance, Test
from pyaccount.plan.compiled import Instance

#: The least distance: distances below the tolerance are halved down to it. If the tolerance is at most `NARROW`, a
#: value at twice its distance is tested first.
LEAST_DISTANCE, NARROW = 0.005, 0.02
#: The distances of the second grid, if the first grid's largest value is rejected: multiples of that value's distance.
SECOND = (5.0, 3.0, 2.0)
#: Values below the tolerance are tested while all their tests together are expected to take at most this many seconds
#: on one core (of the reference machine for costs, so that the answer does not depend on the machine), or no more
#: samples than those that were asked for. The cost of such tests themselves does not count: otherwise a wider
#: tolerance, with more of them, would take longer. The limit is larger if powers of the likelihood ratio are drawn: the
#: lowest value then takes seconds, not hours.
CHEAP, CHEAP_POWERS = 1.0, 8.0
#: The relative precision of a root.
ROOT = 3e-4


@dataclass(frozen=True, slots=True)
class SequenceResult:
    """The lowest value accepted before the first rejection, if any, and every test that was run."""

    value: float | None
    tests: tuple[Test, ...]
    #: Whether a time limit ended the sequence after a value was accepted.
    limited: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """A result: what was certified, for which mechanism and how. The rest of the evidence is computed for it."""

    instance: Instance
    acceptance: Acceptance
    sequence: SequenceResult
    kind: GuaranteeKind
    epsilon: float
    delta: float
    holds: bool = True
    solved: float | None = None
    within: bool = True
    #: The proof, if moments prove the result.
    proof: MomentProof | None = None
    #: How many of the first tests were of a refused claim: their error is not part of the result's probability.
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Grid:
    """Distances above the pilot's value, from the largest down: those always tested, and those tested only if cheap."""

    asked: tuple[float, ...]
    optional: tuple[float, ...] = ()

    def below(self, highest: float) -> Grid:
        """Return the grid without values at this distance or beyond, which need no samples."""
        return Grid(*(tuple(d for d in values if d < highest) for values in (self.asked, self.optional)))


def grids(tolerance: float, *, starts: int) -> list[Grid]:
    """Return the grids for a relative width that the user accepts: down to that width, and beyond while that is cheap.

    The widest interval within the tolerance is the cheapest to certify. If the largest value is rejected, the next grid
    starts farther out.
    """
    asked = (2.0 * tolerance, tolerance) if tolerance <= NARROW else (tolerance,)
    optional, distance = [], 0.5 * tolerance
    while distance >= LEAST_DISTANCE:
        optional.append(distance)
        distance *= 0.5
    first = Grid(asked, tuple(optional))
    return [first, Grid(tuple(factor * asked[0] for factor in SECOND))][:starts]


@dataclass(frozen=True, slots=True)
class GridSearch:
    """A search upwards from the pilot's value: the claim at each value, and the value certified without samples."""

    pilot_value: float
    #: Values from this one on need no samples; infinite if no value is certified without samples.
    fallback: float
    grids: list[Grid]
    #: Returns the mechanism, ε and the acceptance rule at a value.
    claim: Callable[[float], tuple[Instance, float, Acceptance]]
    #: Nanoseconds for a sample on the reference machine for costs.
    cost: float
    #: The seconds of one core that optional values may take.
    cheap: float = CHEAP

    @property
    def reachable(self) -> list[Grid]:
        """The grids without the values that need no samples."""
        # A pilot's value of 0 is itself the claim, to which no distance can be added.
        highest = self.fallback / self.pilot_value - 1.0 if self.pilot_value > 0.0 else math.inf
        return [one.below(highest) for one in self.grids]

    def within(self, value: float, tolerance: float) -> bool:
        """Return whether a value is within the tolerance of the pilot's."""
        return value <= self.pilot_value * (1.0 + tolerance) * (1.0 + 1e-12)

    def budget(self, grid: Grid, distance: float, spent: Mapping[float, float]) -> float | None:
        """Return the samples that tests of a value may take, given those spent on values above; None if unlimited."""
        if distance in grid.asked:
            return None
        asked = sum(samples for above, samples in spent.items() if above in grid.asked)
        return max(self.cheap * 1e9 / self.cost, asked) + asked - sum(spent.values())


@dataclass(frozen=True, slots=True)
class Once:
    """Directions that are tested once on a grid, at this distance, for all values from there up."""

    distance: float
    directions: tuple[Direction, ...]
    #: The directions that are tested at every value.
    further: tuple[Direction, ...]

    def serves(self, distance: float) -> bool:
        """Return whether its test implies the claim at this distance, in its directions."""
        return distance >= self.distance


class Testing(Protocol):
    """Runs tests of one value in all directions or in some; none if they are expected to take too many samples."""

    def __call__(
        self, value: float, budget: float | None, directions: tuple[Direction, ...] | None = None
    ) -> tuple[Test, ...]:
        """Return the tests that were run, up to the first rejection."""


def fixed_sequence_test(
    search: GridSearch, test: Testing, once: Callable[[Grid], Once | None] | None = None
) -> SequenceResult:
    """Test each grid in sequence until one has an accepted value. Raises `LimitError` if time is up before that.

    Where to stop depends on the expected cost of tests and on a time limit, which does not affect the validity of
    accepted values. `once` returns the directions that are tested once on the first grid; if that grid is rejected, the
    second one tests them at each value.
    """
    tests: list[Test] = []
    for k, one in enumerate(search.reachable):
        reached: float | None = None
        spent: dict[float, float] = {}
        single = once(one) if once is not None and k == 0 else None
        for distance in (*one.asked, *one.optional):
            value = search.pilot_value * (1.0 + distance)
            try:
                if single is None or not single.serves(distance):
                    outcome = test(value, search.budget(one, distance, spent))
                else:
                    outcome = test(value, search.budget(one, distance, spent), single.further)
                    if reached is None and outcome and outcome[-1].accepted:
                        lowest = search.pilot_value * (1.0 + single.distance)
                        outcome += test(lowest, None, single.directions)
            except LimitError:
                if reached is None:
                    raise
                return SequenceResult(reached, tuple(tests), limited=True)
            tests += outcome
            spent[distance] = sum(found.samples for found in outcome)
            if not outcome or not all(found.accepted for found in outcome):
                break
            reached = value
        if reached is not None:
            return SequenceResult(reached, tuple(tests))
    return SequenceResult(None, tuple(tests))


def root(
    estimate: Callable[[float], tuple[float, float]], start: float, low: float, high: float, *, precision: float = ROOT
) -> float:
    """Return the x in [low, high] at which a decreasing noisy function of ln x crosses zero.

    `estimate(x)` returns its value and the standard error of that. Brackets by steps, then takes secants, until the
    crossing is known to `precision` or within the noise. Returns an end of the range if the function does not cross
    inside. Raises `NumericsError` if an estimate is NaN, or after 40 steps.
    """
    x = min(max(start, low), high)
    above: tuple[float, float] | None = None
    below: tuple[float, float] | None = None
    stride = 0.3
    for _ in range(40):
        value, noise = estimate(x)
        if math.isnan(value):
            raise NumericsError("the pilot's samples give no estimate of δ for this mechanism")
        log = math.log(x)
        if value > 0.0:
            above = (log, value)
        else:
            below = (log, value)
        if above is not None and below is not None:
            # Take the secant between the ends, but stay a little away from each.
            share = above[1] / (above[1] - below[1])
            crossing = above[0] + share * (below[0] - above[0])
            width = abs(below[0] - above[0])
            if width < precision or (abs(value) < max(2.0 * noise, 1e-3) and width < 0.3):
                return math.exp(crossing)
            edge = 0.05 * width
            x = math.exp(min(max(crossing, min(above[0], below[0]) + edge), max(above[0], below[0]) - edge))
            continue
        if (value > 0.0 and x >= high) or (value <= 0.0 and x <= low):
            return x
        x = min(high, x * math.exp(stride)) if value > 0.0 else max(low, x * math.exp(-stride))
        stride *= 1.3
    raise NumericsError("the pilot's estimates of δ did not converge")


#: A direction may be tested once if its estimate is at most this share of the claim.
FAR = 0.5
#: Each optional value of a grid is tested or not with about equal chances. A test at the lowest of them is worthwhile
#: if it takes at most this many times as much as one at the lowest value that must be tested, since otherwise a second
#: test would be needed.
WORTH_LOWER = 2.0


def tested_in_sequence(session: Session, search: GridSearch) -> SequenceResult:
    """Run the fixed-sequence test of a session's claims; a direction that is far from all of them is tested once."""
    return fixed_sequence_test(
        search,
        lambda value, budget, directions=None: session.test(*search.claim(value), budget, directions),
        lambda grid: once_on(session, search, grid),
    )


def once_on(session: Session, search: GridSearch, grid: Grid) -> Once | None:
    """Return what is tested once on a grid, by the pilot's last estimates and by new ones at the value to be tested.

    Returns None if that saves no test, or if no direction is far from the claim.
    """
    values = grid.asked + grid.optional
    if len(values) < 2:
        return None
    largest = max((one.value for one in session.latest.values()), default=0.0)
    far = tuple(side for side, one in session.latest.items() if one.value <= FAR * largest)
    if not far:
        return None
    further = tuple(side for side in session.latest if side not in far)
    distances = list(dict.fromkeys([values[-1], (grid.asked or values)[-1]]))
    shares = [max(_share_of_claim(session, search, distance, side) for side in far) for distance in distances]
    lowest = shares[0] <= FAR and growth(shares[-1]) <= WORTH_LOWER * growth(shares[0])
    index = 0 if lowest else -1
    if shares[index] > FAR or distances[index] == values[0]:
        return None
    return Once(distances[index], far, further)


def _share_of_claim(session: Session, search: GridSearch, distance: float, direction: Direction) -> float:
    """Return the estimate of δ(ε) in one direction at a value of a grid, as a share of the claim there."""
    instance, epsilon, acceptance = search.claim(search.pilot_value * (1.0 + distance))
    session.sampler.stage("pilot, for a direction that is far from the claim")
    found = session.estimator.at(session.mechanism(instance), direction, epsilon, Effort(SCOUT))
    return found.value / acceptance.delta


def growth(share: float) -> float:
    """Return the growth of ln of the wealth expected per sample, in units of δ₀/W, if δ is this share of δ₀ and W ≫ δ₀.

    For samples that are 0 or W and the best betting fraction it is 1 − r + r ln r.
    """
    return 1.0 - share + (share * math.log(share) if share > 0.0 else 0.0)
