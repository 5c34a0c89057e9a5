"""Choose which direction a grid tests only once, and at which value. `fixed_sequence` proves that this is valid.

Adding a record often has a much smaller δ than removing it, and yet is expensive to test, since the bounds on its
samples are weaker. If the pilot's estimate of one direction is at most half of the claim at a value of the grid, one
test in that direction there serves all values above. No guarantee depends on the choice: a poor one costs samples, or a
rejection.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyaccount.execute.sampling.estimates import SCOUT, Effort
from pyaccount.execute.sampling.fixed_sequence import Grid, GridSearch, Once, SequenceResult, fixed_sequence_test

if TYPE_CHECKING:
    from pyaccount.directions import Direction
    from pyaccount.execute.sampling.session import Session

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
