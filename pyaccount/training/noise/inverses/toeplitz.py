"""Banded Toeplitz matrices: a row of C⁻¹Z is computed by substitution, from the last rows that were given out.

Row t of C·(C⁻¹Z) = Z reads Σ_j c_j z_{t−j} = w_t, so z_t = (w_t − Σ_{1≤j<b} c_j z_{t−j})/c_0 with z_s = 0 for s < 0. The kept
rows are those that were given out, rounding included. Therefore C times the rows that were given out is Z except for c_j times
the roundings of single rows; C⁻¹ does not propagate any rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.forks import cached_property
from pyaccount.training.noise.inverses.base import InverseRows, Row

if TYPE_CHECKING:
    from pyaccount.plan.matrices import Strategy


class ToeplitzRows(InverseRows):
    """Rows of C⁻¹Z, computed with the coefficients of the matrix."""

    def __init__(self, built: Strategy) -> None:
        assert built.coefficients is not None
        self._first, *later = built.coefficients
        self._rounds = built.iterations
        self._ratios = [-c / self._first for c in later]
        self.kept = len(later)

    def row(self, number: int) -> Row:
        """Return the next row, as the newest row of Z and the kept rows."""
        return Row([(number, 1.0 / self._first)], self._ratios)

    @cached_property
    def growth(self) -> float:
        """The ℓ₂ norm of the last row, which has all coefficients of 1/c(x); by substitution in double precision."""
        import numpy as np

        from pyaccount.strategies.sums import quotient  # imports numpy

        impulse = np.zeros(self._rounds if self.kept else 1)
        impulse[0] = 1.0 / self._first
        series = quotient(impulse, np.array([1.0, *(-ratio for ratio in self._ratios)]))
        return float(np.sqrt(np.square(series).sum()))

    @property
    def smallest_new(self) -> float:
        """The entry 1/c_0, which is the whole diagonal of C⁻¹."""
        return 1.0 / self._first

    @property
    def memory(self) -> str:
        """A text: one row is kept for each band except for the diagonal."""
        return f"the last {self.kept} rows are kept; a round is drawn once"
