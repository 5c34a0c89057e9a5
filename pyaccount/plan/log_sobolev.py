"""Upper bounds for an added record, without samples, at the best tilt; see the core's `montecarlo::claims::linear`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from pyaccount import _core

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
