"""The exponential mechanism."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pyaccount.document.mechanisms.base import Selection


class Exponential(Selection):
    """The exponential mechanism: it selects a candidate with probability proportional to exp(utility / scale)."""

    aliases = "exponential-mechanism em gumbel softmax-selection"

    kind: Literal["exponential"] = Field(
        description="The exponential mechanism, which also is the report of the largest utility with Gumbel noise."
    )
