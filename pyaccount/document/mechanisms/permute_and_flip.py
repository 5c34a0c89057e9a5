"""Permute-and-flip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from pyaccount.document.mechanisms.base import Selection
from pyaccount.rounding import positional

if TYPE_CHECKING:
    from pyaccount.document.words import Adjacency


class PermuteAndFlip(Selection):
    """Permute-and-flip (McKenna & Sheldon 2020): candidates in random order are accepted with probability
    exp((utility − largest utility) / scale).
    """

    aliases = "permute-flip permuteandflip pf"

    kind: Literal["permute-and-flip"] = Field(
        description="Permute-and-flip, which also is the report of the largest utility with exponential noise."
    )

    def normal_form(self, adjacency: Adjacency) -> dict[str, Any]:
        """Return the largest utility with exponential noise, which has the same output."""
        return {"kind": "noisy-max", "epsilon": positional(self.loss_range()), "noise": "exponential"}
