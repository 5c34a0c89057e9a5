"""What is sampled: a mechanism of the core, the hockey sticks that matter, and what a sample of it costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyaccount import _core

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyaccount.directions import Direction


@dataclass(frozen=True, slots=True)
class SampledMechanism:
    """A mechanism to be sampled: the core's handle, the hockey sticks that matter, and what a sample costs."""

    core: _core.Sampled
    directions: tuple[Direction, ...]
    #: Rounds of the recursion, or bins.
    steps: int
    #: Rough nanoseconds for one sample on one core.
    cost: float
    #: What the proposal's parameter is: the probability of the recursion, or the exponent of the bins' weights (0: equal).
    plain_parameter: float
    #: What lower ends are sampled from where the pair above is not attained; None where it is.
    lower: SampledMechanism | None = None
    #: Whether its losses are enclosed rather than exact: then those of `lower` are never larger than the true ones.
    enclosed: bool = False
    #: How much δ of a mechanism that stands for lower ends may exceed the true one (remove; add: e^ε times that).
    overstated: float = 0.0
    #: Those of further mechanisms that are sampled together with the first.
    further: tuple[float, ...] = ()
    #: What is composed with the sampled mechanisms, as samples of each direction see it; empty if nothing is.
    curves: Mapping[Direction, _core.ComposedCurve] = field(default_factory=dict)

    @property
    def plain_parameters(self) -> tuple[float, ...]:
        """The parameters of plain sampling, one for each mechanism."""
        return (self.plain_parameter, *self.further)

    def tail_mass(self, direction: Direction) -> float:
        """What the curve leaves to be added to the mean of samples, a constant."""
        return self.curves[direction].tail_mass if direction in self.curves else 0.0


def together(parts: Sequence[tuple[SampledMechanism, int]]) -> SampledMechanism:
    """Mechanisms that are run so many times each, independently: the likelihood ratio of all is the product of theirs."""
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    core = _core.Sampled.together([(part.core, runs) for part, runs in parts])
    first, *further = core.plain_parameters
    return SampledMechanism(
        core,
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
        further=tuple(further),
    )
