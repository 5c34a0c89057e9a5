"""Report noisy max."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.mechanisms.base import Selection
from pyaccount.reading.fields import Choice
from pyaccount.rounding import positional

if TYPE_CHECKING:
    from pyaccount.document.words import Adjacency

MaxNoise = Literal["gumbel", "exponential", "laplace"]


class ReportNoisyMax(Selection):
    """Report noisy max: independent noise is added to all utilities, and only the candidate with the largest sum is
    released, not the sum itself.
    """

    aliases = "noisy-max rnm argmax report-noisy-argmax noisy-argmax"

    kind: Literal["report-noisy-max"] = Field(description="The candidate with the largest noisy utility.")
    noise: Annotated[MaxNoise, Choice(("gumbel", "exponential", "laplace"))] = Field(
        description="The law of the noise. gumbel: the exponential mechanism; exponential: permute-and-flip; laplace: "
        "Laplace noise of the scale."
    )

    def normal_form(self, adjacency: Adjacency) -> dict[str, Any]:
        """Return the range of the loss, and the noise."""
        if self.noise == "gumbel":
            return super().normal_form(adjacency)
        return {"kind": "noisy-max", "epsilon": positional(self.loss_range()), "noise": self.noise}
