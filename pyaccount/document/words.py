"""Words that documents of several kinds share."""

from __future__ import annotations

from typing import Literal

#: The version of the document language.
VERSION = 1

Adjacency = Literal["add-remove", "zero-out", "replace-one"]

#: Which two data sets are neighbours under each adjacency.
ADJACENCY_MEANINGS: dict[Adjacency, str] = {
    "add-remove": "one data set has one more record",
    "zero-out": "a record is replaced by an empty record",
    "replace-one": "a record is replaced by another record",
}
