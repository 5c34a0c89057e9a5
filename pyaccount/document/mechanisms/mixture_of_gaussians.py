"""A vector with Gaussian noise to which a record contributes a random amount."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.mechanisms.base import MechanismKind
from pyaccount.document.ranges import CONTRIBUTION, MIXTURE, MIXTURE_PROBABILITY, SCALE
from pyaccount.document.stated import number_or_none
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Items, Number, Solve
from pyaccount.rounding import positional

if TYPE_CHECKING:
    from pyaccount.document.stated import Placed
    from pyaccount.document.words import Adjacency

#: How far the sum of the probabilities may be from 1; they are divided by it.
_WITHIN = 1e-9


class MixtureOfGaussians(MechanismKind):
    """A vector with Gaussian noise, to which a record contributes at most s_j in norm with probability p_j."""

    aliases = "gaussian-mixture mixture-of-gaussian mog mixture-gaussian mixtureofgaussians"

    kind: Literal["mixture-of-gaussians"] = Field(
        description="A vector with Gaussian noise, to which a record contributes a random amount."
    )
    sigma: Annotated[float | Solve, Number(SCALE, blank=True)] = Field(
        description="The standard deviation σ of the noise on each number, in its unit."
    )
    sensitivities: Annotated[tuple[Annotated[float, Number(CONTRIBUTION)], ...], Items(MIXTURE)] = Field(
        description="The possible contributions of a record: each is a bound on their Euclidean norm. 0 is none."
    )
    probabilities: Annotated[tuple[Annotated[float, Number(MIXTURE_PROBABILITY)], ...], Items(MIXTURE)] = Field(
        description="The probability of each contribution. They add up to 1."
    )

    @property
    def bounded_loss(self) -> bool:
        """Return False: the privacy loss of Gaussian noise has no bound."""
        return False

    def problems(self, node: Placed) -> Iterator[Problem]:
        """Report lists of different lengths, probabilities that do not add up to 1, and no contribution at all."""
        path = node.at("mechanism", "probabilities")
        if not self._read():
            return
        if len(self.probabilities) != len(self.sensitivities):
            message = (
                f"there are {len(self.sensitivities)} sensitivities and {len(self.probabilities)} probabilities: give one "
                "probability for each sensitivity"
            )
            yield problem("contradiction", path, message, allowed=f"{len(self.sensitivities)} probabilities")
            return
        total = math.fsum(self.probabilities)
        if abs(total - 1.0) > _WITHIN:
            message = (
                f"the probabilities add up to {total:.10g}, and must add up to 1: if a record may contribute nothing, give this "
                "as sensitivity 0 with its probability"
            )
            yield problem("contradiction", path, message, allowed="probabilities that add up to 1")
        if not any(self.sensitivities):
            message = "every sensitivity is 0, so that nothing of a record is released: leave this phase out"
            yield problem("contradiction", node.at("mechanism", "sensitivities"), message)

    def _read(self) -> bool:
        """Whether every entry is a number; other entries have problems of their own."""
        lists = (self.sensitivities, self.probabilities)
        return all(
            isinstance(values, tuple) and all(number_or_none(value) is not None for value in values) for values in lists
        )

    def normal_form(self, adjacency: Adjacency) -> dict[str, Any]:
        """Return the mechanism with all of its numbers."""
        sizes, chances = ([positional(each) for each in listed] for listed in (self.sensitivities, self.probabilities))
        return {
            "kind": self.kind,
            "probabilities": chances,
            "sensitivities": sizes,
            "sigma": positional(float(self.sigma)),
        }
