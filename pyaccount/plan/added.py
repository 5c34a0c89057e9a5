"""What is known without samples where a record is added, at the best tilt; see the core's `montecarlo::claims::linear`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from pyaccount import _core

#: The first tilt that is looked at, the factor between those that bracket the best one, and how often a bracket is narrowed.
FIRST, FACTOR, NARROWINGS = 1.0, 2.0, 5
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
#: The factor between tilts that are looked at for a whole profile.
COARSE = 2.0**0.5
#: A logarithm below that of every positive double: no larger tilt could say more.
LEAST = -745.0


def added_bound(core: _core.Sampled, epsilon: float, what: Literal["square", "delta"]) -> tuple[float, float] | None:
    """Return the least upper bound on E V² or on δ(ε) that some tilt gives, and minus that tilt; None where none says anything.

    Any tilt gives a valid bound, so the search need not be exact. Raises `LimitError` at the deadline that was entered.
    """
    if core.added_bounds(-FIRST, [epsilon]) is None:
        return None
    place = ("square", "delta").index(what)

    def log(tilt: float) -> float:
        _core.Cancellation.check()
        found = core.added_bounds(-tilt, [epsilon])
        return math.inf if found is None else found[0][place]

    middle, value = FIRST, log(FIRST)
    while value > LEAST and (further := log(middle * FACTOR)) < value:
        middle, value = middle * FACTOR, further
    low, high = middle / FACTOR, middle * FACTOR
    for _ in range(NARROWINGS if value > LEAST else 0):
        # Golden sections on a logarithmic scale: the larger side of the middle is cut.
        upper = high / middle > middle / low
        end = high if upper else low
        trial = middle * (end / middle) ** (1.0 - GOLDEN)
        found = log(trial)
        if found < value:
            low, high = (middle, high) if upper else (low, middle)
            middle, value = trial, found
        elif upper:
            high = trial
        else:
            low = trial
    if value > 0.0:
        return None
    return _raised(value), middle


def added_profile(core: _core.Sampled, epsilons: Sequence[float]) -> list[float]:
    """Return upper bounds on δ at each ε, the least of some tilts; 1 where none says anything.

    Coarser than `added_bound`, and for many ε hardly dearer than for one: what a tilt takes does not depend on ε. Raises
    `LimitError` at the deadline that was entered.
    """
    logs, tilt = [0.0] * len(epsilons), FIRST
    while True:
        _core.Cancellation.check()
        found = core.added_bounds(-tilt, list(epsilons))
        if found is None:
            break
        better = [min(log, one[1]) for log, one in zip(logs, found, strict=True)]
        # For each ε the bound falls to the best tilt, and rises beyond it; below all doubles there is nothing to gain.
        done = [new == old or new < LEAST for new, old in zip(better, logs, strict=True)]
        logs = better
        if all(done) and tilt > FIRST:
            break
        tilt *= COARSE
    return [_raised(log) if log < 0.0 else 1.0 for log in logs]


def _raised(log: float) -> float:
    """The exponential of a logarithm that was rounded up, rounded up."""
    return math.nextafter(math.exp(log) * (1.0 + 1e-15), math.inf)
