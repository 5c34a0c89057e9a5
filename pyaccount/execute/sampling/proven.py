"""What holds of a profile beside what samples say of each point: the guarantee itself, and what is known without samples.

**The guarantee** says that δ(ε₀) ≤ δ of the run that was accepted. That is wrong only if a test erred, with the total probability
of the tests. It implies other points of the same profile (see `risk.implied`), also together with what is known without samples,
since all of these are about the one run. A test's error is one event for all points: each of them is wrong with this and its own
probability together, and all of them with the sum of their own and this once.

(A verified guarantee has the tests' error folded into its δ: then it is a statement about the procedure that tests and runs what
was accepted, and holds for certain. The profile is not about that procedure but about the run, so the probability is stated.)

**Without samples** the profile of `Session.unsampled` holds for certain, and so does what moments prove (see `moments`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.directions import DIRECTIONS
from pyaccount.execute.engine import Question
from pyaccount.execute.unamplified import unsampled_bounds
from pyaccount.risk.implied import implied
from pyaccount.risk.tradeoff import Bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.directions import Direction
    from pyaccount.execute.sampling.moments import MomentProof
    from pyaccount.execute.sampling.profile import SampledPoint
    from pyaccount.execute.sampling.session import Session
    from pyaccount.plan.compiled import Instance

#: The relative width of what is known without samples, where it is composed.
TOLERANCE = 1e-2


@dataclass(frozen=True, slots=True)
class Proven:
    """Points that hold in each direction, whatever is drawn for the profile."""

    remove: tuple[Bound, ...]
    add: tuple[Bound, ...]

    def capped(self, point: SampledPoint, direction: Direction) -> SampledPoint:
        """A point of one direction (of a replaced record: of both, which are one) with its upper end at most what these imply."""
        own, other = (self.add, self.remove) if direction == "add" else (self.remove, self.add)
        return replace(point, upper=min(point.upper, implied(own, other, point.epsilon)))


def proven(
    session: Session,
    instance: Instance,
    guarantee: tuple[float, float],
    epsilons: Sequence[float],
    proof: MomentProof | None = None,
) -> Proven:
    """The guarantee (ε, δ), and what holds at these ε without samples, by moments too if there are any. Raises `LimitError`."""
    bounds = unsampled_bounds(instance)
    width = TOLERANCE if session.plan.mixed else session.fineness
    answers = session.engine.ask_all([(bounds, Question(epsilon, None, width)) for epsilon in epsilons])
    sides = {
        side: (
            Bound(*guarantee),
            *(
                Bound(epsilon, min(1.0, answer.directions[side].upper))
                for epsilon, answer in zip(epsilons, answers, strict=True)
            ),
        )
        for side in DIRECTIONS
    }
    if proof is not None:
        mechanism = session.mechanism(instance)
        for side in DIRECTIONS:
            sides[side] += tuple(Bound(epsilon, proof.bounded(mechanism, side, epsilon)) for epsilon in epsilons)
    return Proven(sides["remove"], sides["add"])
