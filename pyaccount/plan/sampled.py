"""Mechanisms that are analysed by sampling: the core's mechanism, the directions to bound, and the cost of a sample.

An added record has upper bounds without samples, by a log-Sobolev inequality at the best tilt; see the core's
`montecarlo::claims::linear`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Literal

from pyaccount import _core
from pyaccount.plan.rare_truncation import RareTruncation
from pyaccount.profiles import Rounds
from pyaccount.profiles.base import Recipe

if TYPE_CHECKING:
    from pyaccount.directions import Direction

#: The first tilt that is tried, the factor between tilts that bracket the best one, and how often a bracket is narrowed.
FIRST, FACTOR, NARROWINGS = 1.0, 2.0, 5

GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)

#: The factor between tilts that are tried for a whole profile.
COARSE = 2.0**0.5

#: A logarithm below that of every positive double: a bound that has reached it cannot be improved.
LEAST = -745.0


def added_bound(core: _core.Sampled, epsilon: float, what: Literal["square", "delta"]) -> tuple[float, float] | None:
    """Return the least upper bound on E V² or on δ(ε) over the tilts tried, and minus that tilt; None if none gives one.

    Any tilt gives a valid bound, so the search need not be exact. Raises `LimitError` at the deadline that was entered.
    """
    if core.added_bounds(-FIRST, [epsilon]) is None:
        return None
    position = ("square", "delta").index(what)

    def log(tilt: float) -> float:
        _core.Cancellation.check()
        bounds = core.added_bounds(-tilt, [epsilon])
        return math.inf if bounds is None else bounds[0][position]

    middle, value = FIRST, log(FIRST)
    while value > LEAST and (further := log(middle * FACTOR)) < value:
        middle, value = middle * FACTOR, further
    low, high = middle / FACTOR, middle * FACTOR
    for _ in range(NARROWINGS if value > LEAST else 0):
        # Golden sections on a logarithmic scale: the larger side of the middle is cut.
        upper = high / middle > middle / low
        end = high if upper else low
        trial = middle * (end / middle) ** (1.0 - GOLDEN)
        tried = log(trial)
        if tried < value:
            low, high = (middle, high) if upper else (low, middle)
            middle, value = trial, tried
        elif upper:
            high = trial
        else:
            low = trial
    if value > 0.0:
        return None
    return _raised(value), middle


def added_profile(core: _core.Sampled, epsilons: Sequence[float]) -> list[float]:
    """Return upper bounds on δ at each ε, the least over some tilts; 1 where no tilt gives a bound.

    Coarser than `added_bound`. Many ε take hardly longer than one, since the cost of a tilt does not depend on ε.
    Raises `LimitError` at the deadline that was entered.
    """
    logs, tilt = [0.0] * len(epsilons), FIRST
    while True:
        _core.Cancellation.check()
        bounds = core.added_bounds(-tilt, list(epsilons))
        if bounds is None:
            break
        better = [min(log, bound[1]) for log, bound in zip(logs, bounds, strict=True)]
        # For each ε the bound falls up to the best tilt and then rises; a bound below all doubles cannot improve.
        done = [new == old or new < LEAST for new, old in zip(better, logs, strict=True)]
        logs = better
        if all(done) and tilt > FIRST:
            break
        tilt *= COARSE
    return [_raised(log) if log < 0.0 else 1.0 for log in logs]


def _raised(log: float) -> float:
    """Return the exponential of a logarithm that was rounded up, rounded up."""
    return math.nextafter(math.exp(log) * (1.0 + 1e-15), math.inf)


#: The mean scales that are tried for bounds on δ without samples.
MEAN_SCALES: Mapping[Direction, tuple[float, ...]] = {
    "remove": tuple(1.0 + 0.1 * 1.6**k for k in range(8)),
    "add": tuple(-0.1 * 1.6**k for k in range(15)),
}


@dataclass(frozen=True, slots=True)
class SampledMechanism:
    """A mechanism to be sampled: how the core makes it, the directions to bound, and the cost of a sample."""

    recipe: Recipe[_core.Sampled]
    directions: tuple[Direction, ...]
    #: The number of rounds of the recursion, or of bins.
    steps: int
    #: Rough nanoseconds for one sample on one core.
    cost: float
    #: The proposal's parameter for plain samples: the recursion's probability, or the exponent of the bins' weights (0: equal).
    plain_parameter: float
    #: The mechanism from which lower bounds are sampled if this pair is not attained; None if it is.
    lower: SampledMechanism | None = None
    #: Whether its losses are enclosed rather than exact; then the losses of `lower` never exceed the true ones.
    enclosed: bool = False
    #: For a mechanism that is used for lower bounds: how much its δ may exceed the true one (remove; add: e^ε times as much).
    overstated: float = 0.0
    #: Whether bounds are known only for plain samples, not for other proposals.
    plain_only: bool = False
    #: The difference in δ between this mechanism, without truncation, and the run that is meant, whose batches are seldom
    #: truncated; None if there is no such difference.
    rare_truncation: RareTruncation | None = None
    #: The `plain_parameter` of each further mechanism that is sampled together with the first.
    further: tuple[float, ...] = ()
    #: The curve that is composed with the sampled mechanisms, for samples of each direction; empty if there is none.
    curves: Mapping[Direction, Recipe[_core.ComposedCurve]] = field(default_factory=dict)

    #: Rounds whose composition bounds the mechanism from above in each direction, without samples; empty if none are known. Of a
    #: replaced record, "add" is one that is added where there was none.
    composed: Mapping[Direction, tuple[Rounds, ...]] = field(default_factory=dict)

    @property
    def core(self) -> _core.Sampled:
        """Return the mechanism as an object of the core."""
        return self.recipe.core

    @property
    def plain_parameters(self) -> tuple[float, ...]:
        """Return the parameters of plain sampling, one for each mechanism."""
        return (self.plain_parameter, *self.further)

    def chain(self, order: int, block: int | None = None, most_busy: int | None = None) -> tuple[int, float] | None:
        """Return the number of states of a chain of replicas, and the number computed over all of its steps.

        Returns None if there is no such chain.
        """
        return self.core.replicas(order, block, most_busy)

    def tail_mass(self, direction: Direction) -> float:
        """Return the constant that the curve leaves to be added to the mean of samples."""
        curve = self.curve(direction)
        return 0.0 if curve is None else curve.tail_mass

    def curve(self, direction: Direction) -> _core.ComposedCurve | None:
        """Return the curve that is composed with the sampled mechanisms, for samples of this direction."""
        recipe = self.curves.get(direction)
        return None if recipe is None else recipe.core

    def beyond(self, direction: Direction, epsilon: float, removed: Callable[[float], float] | None = None) -> float:
        """Return how much δ of the intended run may exceed the δ from samples and curve: a constant, an upper bound.

        `removed` returns an upper bound on δ of a removed record at any ε; without it the weight bound is used.
        """
        rare = self.rare_truncation
        bound = removed or (lambda value: self.bounded("remove", value))
        return 0.0 if rare is None else rare.beyond(direction, epsilon, bound)

    def below(self, direction: Direction, epsilon: float) -> float:
        """Return how much δ of the intended run may fall short of the δ from samples and curve: an upper bound."""
        rare = self.rare_truncation
        return 0.0 if rare is None else rare.below(direction, epsilon)

    def bounded(self, direction: Direction, epsilon: float) -> float:
        """Return an upper bound on δ(ε) that needs no samples: the smaller of the weight bounds and `known`."""
        bound, known = self._weight_bound(direction, epsilon), self.known(direction, epsilon)
        return bound if known is None else min(bound, known)

    def known(self, direction: Direction, epsilon: float) -> float | None:
        """Return an upper bound on δ(ε) by `added_bound` or by rounds that compose; None if neither gives one."""
        if self.curves:
            return None
        if direction in self.composed:
            return composed_bound(self.composed[direction], epsilon)
        added = added_bound(self.core, epsilon, "delta") if direction == "add" else None
        return None if added is None else added[0]

    def bounded_profile(self, direction: Direction, epsilons: Sequence[float]) -> list[float]:
        """Return an upper bound on δ at each ε that needs no samples.

        The bounds are a little above `bounded`, and take little more time than a single one.
        """
        bounds = [self._weight_bound(direction, epsilon) for epsilon in epsilons]
        if direction in self.composed and not self.curves:
            known = composed_bounds(self.composed[direction], epsilons)
            return [min(pair) for pair in zip(bounds, known, strict=True)]
        if direction == "add" and not self.curves:
            bounds = [min(pair) for pair in zip(bounds, added_profile(self.core, epsilons), strict=True)]
        return bounds

    def _weight_bound(self, direction: Direction, epsilon: float) -> float:
        """Return the least of the weight bounds on δ(ε); at most 1."""
        curve, bounds = self.curve(direction), [1.0]
        for mean_scale in MEAN_SCALES[direction]:
            for parameters in (self.plain_parameters, self.core.balanced_parameters(mean_scale)):
                weight_bound, _, _ = self.core.bounds(direction, parameters, mean_scale, epsilon, curve)
                if math.isfinite(weight_bound):
                    bounds.append(weight_bound + self.tail_mass(direction))
        return min(bounds)


def together(parts: Sequence[tuple[SampledMechanism, int]]) -> SampledMechanism:
    """Return the mechanism of several independent ones, each run a number of times.

    Its likelihood ratio is the product of theirs.
    """
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    rare = [part.rare_truncation.times(runs) for part, runs in parts if part.rare_truncation is not None]
    recipe: Recipe[_core.Sampled] = Recipe("Sampled.together", (tuple((part.recipe, runs) for part, runs in parts),))
    first, *further = recipe.core.plain_parameters
    return SampledMechanism(
        recipe,
        # Adjacency is the document's, so all parts have the same directions.
        parts[0][0].directions,
        sum(part.steps * runs for part, runs in parts),
        sum(part.cost * runs for part, runs in parts),
        first,
        lower=None
        if all(part.lower is None for part, _ in parts)
        else together([(part.lower or part, runs) for part, runs in parts]),
        enclosed=any(part.enclosed for part, _ in parts),
        overstated=sum(part.overstated * runs for part, runs in parts),
        plain_only=any(part.plain_only for part, _ in parts),
        rare_truncation=reduce(RareTruncation.plus, rare) if rare else None,
        further=tuple(further),
        composed=_together([(part.composed, runs) for part, runs in parts]),
    )


def _together(
    parts: Sequence[tuple[Mapping[Direction, tuple[Rounds, ...]], int]],
) -> dict[Direction, tuple[Rounds, ...]]:
    """Return the rounds of all parts, each run a number of times, in the directions that are known for all parts."""
    known = [side for side in parts[0][0] if all(side in part for part, _ in parts)]
    return {
        side: tuple(replace(item, count=item.count * runs) for part, runs in parts for item in part[side])
        for side in known
    }


#: The relative tolerance of compositions, and the δ below which a profile is not resolved.
TOLERANCE, IGNORED = 1e-2, 1e-120


@lru_cache(maxsize=64)
def composed_bound(rounds: tuple[Rounds, ...], epsilon: float) -> float:
    """Return an upper bound on δ(ε) of these rounds. Raises `LimitError` at the deadline that was entered."""
    answers = _core.answer_all([(_built(rounds), epsilon, None, TOLERANCE)], threads=1)
    return min(1.0, answers[0].upper)


def composed_bounds(rounds: tuple[Rounds, ...], epsilons: Sequence[float]) -> list[float]:
    """Return an upper bound on δ at each of these ε ≥ 0, in any order. Raises `LimitError` at the deadline that was entered."""
    ascending = sorted(set(epsilons))
    ((points, *_),) = _core.curve_all([(_built(rounds), ascending, TOLERANCE, IGNORED)], threads=1)
    bounds = {epsilon: min(1.0, upper) for epsilon, (_, upper) in zip(ascending, points, strict=True)}
    return [bounds[epsilon] for epsilon in epsilons]


def _built(rounds: tuple[Rounds, ...]) -> list[tuple[_core.RoundProfile, int]]:
    return [(item.profile.build(), item.count) for item in rounds]
