"""Walking down a ladder of claims fixed beforehand, and finding its foot with the pilot.

The rungs of a ladder are claims, each implied by the ones below it. They are tested from the top down with independent
samples until the first rejection; the lowest accepted rung above it is the result. It is false only if the first false
rung on the way was accepted: probability at most q whatever the length (Dong & Ganesh 2026, Theorem A.1). Starting
again higher up after a rejection at the very top costs another q.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.errors import NumericsError

if TYPE_CHECKING:
    from pyaccount.execute.sampling.verify import Test

#: How far above the pilot's root the rungs of a ladder lie, from the top; the walk ends at the first that is within the
#: tolerance.
DISTANCES = (0.02, 0.01, 0.005, 0.0025, 0.00125)
#: Where a second ladder starts if the first one's top is rejected.
SECOND = (0.10, 0.06, 0.04)
#: The ladders that may be walked, each at the price of its own q.
STARTS = 2
#: How well a root is known, relatively.
ROOT = 3e-4


@dataclass(frozen=True, slots=True)
class Walked:
    """The lowest rung accepted on the way down, if any, and every test that was run."""

    value: float | None
    tests: tuple[Test, ...]


def ladder(tolerance: float, distances: Sequence[float] = DISTANCES) -> tuple[float, ...]:
    """The distances of a ladder's rungs: down to the first within the tolerance."""
    rungs: list[float] = []
    for distance in distances:
        rungs.append(distance)
        if distance <= tolerance:
            break
    return tuple(rungs)


def walk(foot: float, ladders: Sequence[Sequence[float]], test: Callable[[float], tuple[Test, ...]]) -> Walked:
    """Walk each ladder of distances above `foot` until one has an accepted rung."""
    tests: list[Test] = []
    for distances in ladders:
        reached: float | None = None
        for distance in distances:
            value = foot * (1.0 + distance)
            outcome = test(value)
            tests += outcome
            if not all(one.accepted for one in outcome):
                break
            reached = value
        if reached is not None:
            return Walked(reached, tuple(tests))
    return Walked(None, tuple(tests))


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
