"""What holds of a profile beside what samples say of each point: the guarantee itself, and what is known without samples.

**A verified guarantee is a plain statement of differential privacy**, about the procedure A that tests and then runs what was
accepted. The tests do not look at the data. Let δ_σ(ε) be the profile of the run at σ, and q' ≤ q the probability that a σ is
accepted with δ_σ(ε) > δ_0. For neighbours D, D′ and any set S of outcomes

    Pr[A(D) ∈ S] − e^ε Pr[A(D′) ∈ S] ≤ Σ_σ Pr[σ is accepted] δ_σ(ε) ≤ (1 − q') δ_0 + q' ≤ δ_0 + q (1 − δ_0) = δ

(where nothing is accepted nothing depends on the data). A has a profile like any other mechanism: it falls, and is convex in e^ε.
So what (ε, δ) implies at another ε (see `risk.implied`) holds as the guarantee itself does, and no probability is added.

**A confidence guarantee** is wrong with the total probability of its tests. That is one event for all points that it bounds: each
of them is wrong with this and its own probability together, and all of them with the sum of their own and this once.

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
