"""What discrete Laplace and discrete Gaussian noise have in common: a lattice of values."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pyaccount.document.mechanisms.base import MOVED_TEXT, SENSITIVITY_TEXT, MechanismKind, Moved, Sensitivity
from pyaccount.document.ranges import SCALE, SHIFT
from pyaccount.document.stated import number_or_none
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Number

if TYPE_CHECKING:
    from pyaccount.document.stated import Placed


class OnLattice(MechanismKind):
    """Numbers that are multiples of a step, with noise that is a multiple of it too."""

    step: Annotated[float, Number(SCALE)] = Field(
        default=1.0,
        description="The distance between neighbouring values; the released numbers and their noise are multiples of "
        "it. 1 for integers.",
    )
    sensitivity: Sensitivity = Field(default=1.0, description=f"{SENSITIVITY_TEXT} A multiple of step.")
    moved: Moved = Field(default=1, description=MOVED_TEXT)

    @property
    def step_of_noise(self) -> float | None:
        """The step of the released numbers."""
        return self.step

    def shift(self) -> int:
        """Return the sensitivity in steps."""
        return int(self._steps())

    def in_steps(self, size: float) -> float:
        """Return a size (a scale) in steps, rounded to the nearest double."""
        return float(Fraction(repr(size)) / Fraction(repr(self.step)))

    def _steps(self) -> Fraction:
        return Fraction(repr(self.sensitivity)) / Fraction(repr(self.step))

    def problems(self, node: Placed) -> Iterator[Problem]:
        """Report a sensitivity that is no whole number of steps, or too many of them."""
        if number_or_none(self.sensitivity) is None or number_or_none(self.step) is None:
            return
        steps, path = self._steps(), node.at("mechanism", "sensitivity")
        if steps.denominator != 1:
            message = (
                f"the sensitivity is {float(steps):.6g} steps of {self.step:.6g}, but values on a lattice change by whole "
                "steps: give the largest change as a multiple of step"
            )
            yield problem("contradiction", path, message)
        elif int(steps) not in SHIFT:
            message = f"the sensitivity is {int(steps):_} steps; their number must be {SHIFT.describe()}"
            yield problem("out-of-range", path, message)
