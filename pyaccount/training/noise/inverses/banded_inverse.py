"""Toeplitz matrices whose inverse is banded: a row of C⁻¹Z is a sum of the last rows of Z, which are drawn again each time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from pyaccount.forks import cached_property
from pyaccount.training.noise.inverses.base import InverseRows, Row

if TYPE_CHECKING:
    from pyaccount.plan.matrices import Strategy


class BandedInverseRows(InverseRows):
    """Rows z_t = Σ_{j < b} a_j w_{t−j}, where a is the first column of C⁻¹."""

    from_key_alone: ClassVar[bool] = True

    def __init__(self, built: Strategy) -> None:
        assert built.inverse is not None
        self._inverse = built.inverse

    def row(self, number: int) -> Row:
        """Return the last rows of Z, the newest first, except for those with coefficient 0."""
        return Row([(number - j, a) for j, a in enumerate(self._inverse[: number + 1]) if a != 0.0], [])

    @cached_property
    def growth(self) -> float:
        """The ℓ₂ norm of a row with all coefficients, which is the largest."""
        return math.hypot(*self._inverse)

    @property
    def smallest_new(self) -> float:
        """The entry a_0, which is the whole diagonal of C⁻¹."""
        return self._inverse[0]

    @property
    def memory(self) -> str:
        """A text: no rows are kept, and a round needs as many draws as the inverse has bands."""
        return f"nothing is kept; a round is drawn as often as the inverse has bands ({len(self._inverse)})"
