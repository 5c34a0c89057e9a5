"""The fixed-sequence test: claims on a grid fixed beforehand, tested in order until the first rejection; and the pilot's root.

The values of a grid are claims, each implied by the ones below it. Their distances above the pilot's value follow from the
tolerance. They are tested from the largest down with independent samples until the first rejection, or until going on does not
pay; the lowest accepted value above that is the result. It is false only if the first false value of the sequence was accepted:
probability at most q however long the grid is (Dong & Ganesh 2026, Theorem A.1). Starting once more on a second grid, higher
up, after the very first value was rejected costs another q.

**A direction that is tested once.** Write T_d(v) for "the run at v satisfies the claim in direction d". T_d(v) implies T_d(w) for
every w > v of a grid, in each direction by itself:

* for ε and δ by their definition: H_{e^ε}(P‖Q) falls in ε, and a larger δ claims less;
* for σ by post-processing. A run with σ′ > σ is a run with σ whose adversary adds noise √(σ′² − σ²) of its own, through the same
  matrix, to every release of that phase before looking at it. δ is the largest over data sets and adversaries, so it falls in σ,
  both for a record that is removed and for one that is added. (Laplace noise of scale b′ > b is that of scale b with, in a share
  1 − b²/b′² of the cases, an independent one of scale b′ added.) No more is used of the sampler, of truncated batches, of other
  phases and of further releases than that they stay as they are. T_d is about the run: densities that only enclose the run's, and
  what rare truncation or a composed profile adds to the mean of samples, are part of the test of T_d(v), which is valid at each v
  by itself: where T_d(v) is false of the run, so is the claim about what is sampled.

So a direction whose δ is far below the claim may be tested once, at a low value v, for all values from there up. That takes
little more than one test of it higher up. A value w is accepted when every direction d has an accepted test of T_d at some v ≤ w.
The lowest accepted value is false with probability at most q, without a union over directions or values. For, given all that was
drawn before it, a test of a false claim accepts with probability at most q. Look at the first test on the grid whose claim is
false. The tests before it are of true claims, which imply only true results; if it rejects, the sequence ends, and the result
follows from these. So a false result needs this one test to accept. Which test that is depends on what was drawn before it alone
(by the pilot and by tests that chose to go on), and q bounds its error whatever that was. The sequence that tests every
direction at each value is a special case.

A rejection of the one test ends the grid as a rejection of its first value does. A second test of that direction on the grid, at
an easier value, would be a second chance, and cost another q.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pyaccount.errors import LimitError, NumericsError

if TYPE_CHECKING:
    from pyaccount.directions import Direction
    from pyaccount.execute.sampling.error_probability import Acceptance
    from pyaccount.execute.sampling.tests_of_claims import Test
    from pyaccount.plan.compiled import Instance

#: Distances below the tolerance are halved down to this distance; where the tolerance is no wider than `NARROW`, one twice
#: as far comes first.
LEAST_DISTANCE, NARROW = 0.005, 0.02
#: Where a second grid starts if the first one's largest value is rejected: multiples of that.
SECOND = (5.0, 3.0, 2.0)
#: Values below the tolerance are tested while all their tests together are expected to take no more than this many seconds on one
#: core (of the machine that costs are told for: so the answer does not depend on the machine), or no more samples than those
#: that were asked for. What such tests took themselves does not count: a wider tolerance, with more of them, would take longer.
#: More where powers of the likelihood ratio are drawn: the value that is nearest to the pilot's then takes seconds, not hours.
CHEAP, CHEAP_POWERS = 1.0, 8.0
#: How well a root is known, relatively.
ROOT = 3e-4


@dataclass(frozen=True, slots=True)
class SequenceResult:
    """The lowest value accepted before the first rejection, if any, and every test that was run."""

    value: float | None
    tests: tuple[Test, ...]
    #: Whether a time limit ended the sequence after a value was accepted.
    limited: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """Distances above the pilot's value, from the largest down: those tested whatever it costs, and those only if it pays."""

    asked: tuple[float, ...]
    optional: tuple[float, ...] = ()

    def below(self, highest: float) -> Grid:
        """Without the values from this distance on, which need no samples."""
        return Grid(*(tuple(d for d in values if d < highest) for values in (self.asked, self.optional)))


def grids(tolerance: float, *, starts: int) -> list[Grid]:
    """The grids for a relative width that the user accepts: down to it, and on while that pays.

    The widest interval within the tolerance is the cheapest to certify. If the largest value is rejected, the next grid starts
    farther out.
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
    """A search from the pilot's value up: what is claimed at a value, and which value is certified without samples."""

    pilot_value: float
    #: Values from here on need no samples; infinite if nothing is certified without.
    fallback: float
    grids: list[Grid]
    #: The mechanism, ε and what is to be accepted at a value.
    claim: Callable[[float], tuple[Instance, float, Acceptance]]
    #: Nanoseconds for a sample, of the machine that costs are told for.
    cost: float
    #: The seconds of one core that optional values may take.
    cheap: float = CHEAP

    @property
    def reachable(self) -> list[Grid]:
        """The grids without the values that need no samples."""
        # A pilot's value of 0 is a claim of its own, at no distance from anything.
        highest = self.fallback / self.pilot_value - 1.0 if self.pilot_value > 0.0 else math.inf
        return [one.below(highest) for one in self.grids]

    def within(self, value: float, tolerance: float) -> bool:
        """Whether a value is as near to the pilot's as was asked for."""
        return value <= self.pilot_value * (1.0 + tolerance) * (1.0 + 1e-12)

    def budget(self, grid: Grid, distance: float, spent: Mapping[float, float]) -> float | None:
        """The samples that tests of a value may be expected to take, after those above took so many; none: whatever it takes."""
        if distance in grid.asked:
            return None
        asked = sum(samples for above, samples in spent.items() if above in grid.asked)
        return max(self.cheap * 1e9 / self.cost, asked) + asked - sum(spent.values())


@dataclass(frozen=True, slots=True)
class Once:
    """Directions that are tested once on a grid, and the distance at which: that serves all values from there up."""

    distance: float
    directions: tuple[Direction, ...]
    #: The directions that are tested at every value.
    further: tuple[Direction, ...]

    def serves(self, distance: float) -> bool:
        """Whether its test implies the claim at this distance, in its directions."""
        return distance >= self.distance


class Testing(Protocol):
    """Tests of one value, in all directions or in some: all of them, or none where they are expected to take too many samples."""

    def __call__(
        self, value: float, budget: float | None, directions: tuple[Direction, ...] | None = None
    ) -> tuple[Test, ...]:
        """The tests that were run, up to the first rejection."""


def fixed_sequence_test(
    search: GridSearch, test: Testing, once: Callable[[Grid], Once | None] | None = None
) -> SequenceResult:
    """Test each grid in sequence until one has an accepted value.

    Where to stop is chosen by what tests are expected to cost, and by a time limit: an accepted value is as good whatever
    is not tried. `once` says which directions are tested once on the first grid; if that was rejected, the second one has them
    tested at each value.
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
    """The x in [low, high] at which a decreasing noisy function of ln x crosses zero.

    `estimate(x)` gives its value and the standard error of that. Brackets by steps, then takes secants, until the
    crossing is known to `precision` or within the noise. Returns an end of the range if the function does not cross inside.
    """
    x = min(max(start, low), high)
    above: tuple[float, float] | None = None
    below: tuple[float, float] | None = None
    stride = 0.3
    for _ in range(40):
        value, noise = estimate(x)
        if math.isnan(value):
            raise NumericsError("the pilot's samples say nothing about this mechanism")
        log = math.log(x)
        if value > 0.0:
            above = (log, value)
        else:
            below = (log, value)
        if above is not None and below is not None:
            # The secant between the ends, each moved a little towards the middle.
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
    raise NumericsError("the pilot's estimates did not settle")
