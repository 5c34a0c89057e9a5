"""The identity matrix, that is, independent noise."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pyaccount.document.matrices.base import MatrixKind


class Identity(MatrixKind):
    """The identity: independent noise in each round, as in plain DP-SGD."""

    aliases = "eye i dp-sgd"

    kind: Literal["identity"] = Field(description="Independent noise in each round (plain DP-SGD).")

    def diagonals(self) -> int | None:
        """Return 1: only the main diagonal is non-zero."""
        return 1
