"""Toeplitz matrices whose inverse is banded: a sum of the last rows of Z, which are drawn again from the key."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from pyaccount.forks import cached_property
from pyaccount.training.noise.inverses.base import InverseRows, Row

if TYPE_CHECKING:
    from pyaccount.plan.matrices import Strategy


class BandedInverseRows(InverseRows):
    """z_t = Σ_{j < b} a_j w_{t−j}, a the first column of C⁻¹."""

    from_key_alone: ClassVar[bool] = True

    def __init__(self, built: Strategy) -> None:
        assert built.inverse is not None
        self._inverse = built.inverse

    def row(self, number: int) -> Row:
        """The newest row of Z first; coefficients that are 0 draw nothing."""
        return Row([(number - j, a) for j, a in enumerate(self._inverse[: number + 1]) if a != 0.0], [])

    @cached_property
    def growth(self) -> float:
        """The norm of a row that has all coefficients."""
        return math.hypot(*self._inverse)

    @property
    def smallest_new(self) -> float:
        """a_0."""
        return self._inverse[0]

    @property
    def memory(self) -> str:
        """Nothing, for as many draws as there are bands."""
        return f"nothing is kept; a round is drawn as often as the inverse has bands ({len(self._inverse)})"
