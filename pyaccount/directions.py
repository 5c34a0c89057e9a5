"""The directions of a pair of data sets, by the names that every room, the documents and the certificates give them.

*remove*: outcomes of the first data set (with the sensitive records) against those of the second; *add*: the other way round.
The two directions of a replacement mirror each other: *replace* is what samples are drawn for there, and is both of them.
"""

from __future__ import annotations

from typing import Literal

Direction = Literal["remove", "add", "replace"]
DIRECTIONS: tuple[Direction, Direction] = ("remove", "add")


def sampled_directions(adjacency: str) -> tuple[Direction, ...]:
    """The curves that samples must bound for a guarantee under this adjacency."""
    return ("replace",) if adjacency == "replace-one" else DIRECTIONS
