"""The Laplace mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.mechanisms.base import (
    MOVED_TEXT,
    SENSITIVITY_TEXT,
    TOTAL_TEXT,
    MechanismKind,
    Moved,
    Sensitivity,
)
from pyaccount.document.ranges import SCALE
from pyaccount.reading.fields import Number, Solve
from pyaccount.rounding import positional

if TYPE_CHECKING:
    from pyaccount.document.words import Adjacency


class LaplaceMechanism(MechanismKind):
    """Numbers with Laplace noise, in their own unit."""

    aliases = "laplace-mechanism laplacian double-exponential"

    kind: Literal["laplace"] = Field(description="Numbers with Laplace noise.")
    scale: Annotated[float | Solve, Number(SCALE, blank=True)] = Field(
        description="The scale b of the noise, in the unit of the number; its standard deviation is b√2."
    )
    sensitivity: Sensitivity = Field(default=1.0, description=f"{SENSITIVITY_TEXT} {TOTAL_TEXT}")
    moved: Moved = Field(default=1, description=MOVED_TEXT)

    def normal_form(self, adjacency: Adjacency) -> dict[str, Any]:
        """Return the mechanism with all of its numbers."""
        return {
            "kind": self.kind,
            "moved": str(self.moved),
            "scale": positional(float(self.scale)),
            "sensitivity": positional(self.sensitivity),
        }
