"""The base classes of mechanisms, and the fields that several of them share.

A mechanism is a class in a module of its own: its fields and their combined meaning. It takes the place of training,
sampler, matrix and noise in a document. What is protected, and how many records are protected together, is a part of
the document; a sensitivity is always the one under the adjacency of the document, for one record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from pyaccount.document.ranges import MECHANISM_EPSILON, MOVED, SCALE, SENSITIVITY
from pyaccount.document.stated import Placed, number_or_none
from pyaccount.document.words import Adjacency
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Flag, Number
from pyaccount.reading.kinds import Kind
from pyaccount.rounding import positional


class MechanismKind(Kind):
    """A mechanism whose output is released, described by what is known of its privacy."""

    #: The fields of a normal form besides the kind, separated by spaces; empty for a mechanism with a form of its own, or none.
    form_fields = ""

    if TYPE_CHECKING:
        # This is a field of the mechanisms. Declared here, it would come first in the schema of all of them.

        @property
        def kind(self) -> str:
            """The word by which documents name the mechanism."""

    @property
    def bounded_loss(self) -> bool:
        """Whether the privacy loss is bounded for every output, so that some ε holds at δ = 0."""
        return True

    @property
    def step_of_noise(self) -> float | None:
        """The step of a lattice on which its noise is; None for continuous noise, and for a mechanism without."""
        return None

    @property
    def uncertain(self) -> bool:
        """Whether its guarantee comes from samples, so that it is verified by a test or fails with some probability."""
        return False

    def for_any_data(self) -> bool:
        """Return whether the bound of a run holds for any two data sets, not only for neighbours."""
        return False

    def searched(self, blank: str) -> tuple[float, float] | None:
        """Return the least and the largest value of a blank that are tried; None for noise in units of the sensitivity."""
        return None

    def problems(self, node: Placed) -> Iterator[Problem]:
        """Yield the problems of the fields together, in the order of reporting."""
        yield from ()

    def normal_form(self, adjacency: Adjacency) -> dict[str, Any] | None:
        """Return what a normal form says of the mechanism under an adjacency; None if there is no form for it."""
        fields = {name: _in_form(getattr(self, name)) for name in self.form_fields.split()}
        return {"kind": self.kind, **fields} if fields else None


def _in_form(value: str | float | tuple[float, ...]) -> str | list[str]:
    """Return the value of a field as a normal form has it, in decimal digits."""
    if isinstance(value, tuple):
        return [positional(each) for each in value]
    return positional(value) if isinstance(value, float) else str(value)


class Selection(MechanismKind):
    """A mechanism that selects one of several candidates by their utility, and releases only which one it selected."""

    epsilon: Annotated[float | None, Number(MECHANISM_EPSILON)] = Field(
        default=None,
        description="The ε of pure differential privacy that the mechanism states, for one record under the adjacency "
        "of the document; instead of utility_sensitivity and scale.",
    )
    utility_sensitivity: Annotated[float | None, Number(SENSITIVITY)] = Field(
        default=None,
        description="The maximum change of the utility of any candidate if one record changes. Needs scale.",
    )
    scale: Annotated[float | None, Number(SCALE)] = Field(
        default=None,
        description="The scale of the noise on utilities, in units of the utility; the exponential mechanism selects "
        "a candidate of utility u with probability proportional to exp(u / scale).",
    )
    monotone: Annotated[bool, Flag()] = Field(
        default=False,
        description="Whether an added record never decreases a utility, or never increases one, as with counts. The "
        "privacy loss is then half as large. Only with utility_sensitivity, and not under replace-one.",
    )

    def loss_range(self) -> float:
        """Return ε, which bounds the privacy loss from both sides: 2Δ/scale, or Δ/scale for monotone utilities.

        The quotient is rounded up.
        """
        if self.epsilon is not None:
            return self.epsilon
        assert self.utility_sensitivity is not None
        assert self.scale is not None
        exact = Fraction(repr(self.utility_sensitivity)) / Fraction(repr(self.scale)) * (1 if self.monotone else 2)
        return rounded_up(exact)

    def problems(self, node: Placed) -> Iterator[Problem]:
        """Report a selection without ε, with half of the other description, or with both descriptions."""
        given = [name for name in ("utility_sensitivity", "scale") if getattr(self, name) is not None]
        path = node.at("mechanism", "epsilon")
        if self.epsilon is None and not given:
            message = f"{self.kind} needs epsilon, or utility_sensitivity and scale"
            yield problem("missing-key", path, message, allowed=f"a number {MECHANISM_EPSILON.describe()}")
            return
        if self.epsilon is not None and (given or self.monotone):
            field = given[0] if given else "monotone"
            message = f"epsilon already states the privacy of the mechanism: leave {field} out, or epsilon"
            yield problem("contradiction", node.at("mechanism", field), message)
            return
        for name in ("utility_sensitivity", "scale"):
            if self.epsilon is None and getattr(self, name) is None:
                message = f"{name} is required: {self.kind} needs epsilon, or utility_sensitivity and scale"
                yield problem("missing-key", node.at("mechanism", name), message)
        sizes = [number_or_none(value) for value in (self.utility_sensitivity, self.scale)]
        if None not in sizes and isinstance(self.monotone, bool) and self.loss_range() not in MECHANISM_EPSILON:
            message = (
                f"utility_sensitivity and scale make ε = {self.loss_range():.6g}, which is not "
                f"{MECHANISM_EPSILON.describe()}: choose a larger scale"
            )
            yield problem("out-of-range", node.at("mechanism", "scale"), message)

    def normal_form(self, adjacency: Adjacency) -> dict[str, Any]:
        """Return the range of the loss; the exponential mechanism is the largest utility with Gumbel noise."""
        return {"kind": "bounded-range", "epsilon": positional(self.loss_range())}


Sensitivity = Annotated[float, Number(SENSITIVITY)]
Moved = Annotated[int, Number(MOVED, whole=True)]

SENSITIVITY_TEXT = "The maximum change of each released number if one record changes, in the unit of the number."
MOVED_TEXT = (
    "The number of released numbers that one record can change, each with noise of its own: 1 for a count, or for a "
    "histogram to which a record contributes once."
)
#: With Laplace noise the total change matters, of however many numbers.
TOTAL_TEXT = "If only the total change of all numbers is bounded (ℓ1), give that as sensitivity, and leave moved out."


def rounded_up(exact: Fraction) -> float:
    """Return the least double that is at least a fraction (infinity for one beyond all doubles)."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)
