"""The two directions of a pair of data sets, by the names that every room, the documents and the certificates give them.

*remove*: outcomes of the first data set (with the sensitive records) against those of the second; *add*: the other way round.
"""

from __future__ import annotations

from typing import Literal

Direction = Literal["remove", "add"]
DIRECTIONS: tuple[Direction, Direction] = ("remove", "add")

#: What samples are drawn for. The two directions of a replacement mirror each other, so that one curve is both of theirs.
SampledDirection = Literal["remove", "add", "replace"]


def sampled_directions(adjacency: str) -> tuple[SampledDirection, ...]:
    """The curves that samples must bound for a guarantee under this adjacency."""
    return ("replace",) if adjacency == "replace-one" else DIRECTIONS
