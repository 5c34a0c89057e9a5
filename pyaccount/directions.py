"""The directions of a pair of data sets, under the names that every package, the documents and the certificates use.

*remove* compares the outcomes of the first data set (with the sensitive records) with those of the second; *add* is the
reverse. The two directions of a replacement mirror each other: samples for it are drawn in direction *replace*, which
covers both.
"""

from __future__ import annotations

from typing import Literal

Direction = Literal["remove", "add", "replace"]
DIRECTIONS: tuple[Direction, Direction] = ("remove", "add")


def sampled_directions(adjacency: str) -> tuple[Direction, ...]:
    """Return the directions whose curves samples must bound for a guarantee under this adjacency."""
    return ("replace",) if adjacency == "replace-one" else DIRECTIONS
