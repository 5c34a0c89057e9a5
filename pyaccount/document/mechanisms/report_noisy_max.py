"""Report noisy max."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.mechanisms.base import Selection
from pyaccount.reading.fields import Choice

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
