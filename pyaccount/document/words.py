"""Words that documents of several kinds share."""

from __future__ import annotations

from typing import Literal

#: The version of the document language.
VERSION = 1

Adjacency = Literal["add-remove", "zero-out", "replace-one"]
