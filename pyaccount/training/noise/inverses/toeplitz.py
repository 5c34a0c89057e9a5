"""Banded Toeplitz matrices: substitution, by the last rows that were given out.

Row t of C·(C⁻¹Z) = Z reads Σ_j c_j z_{t−j} = w_t, so z_t = (w_t − Σ_{1≤j<b} c_j z_{t−j})/c_0 with z_s = 0 for s < 0. What is
kept is what was given out, rounding included: then C times the rows given out is Z but for c_j times the roundings of single
rows, and no rounding is carried on by C⁻¹.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.forks import cached_property
from pyaccount.training.noise.inverses.base import InverseRows, Row

if TYPE_CHECKING:
    from pyaccount.plan.matrices import Strategy


class ToeplitzRows(InverseRows):
    """By the coefficients of the matrix."""

    def __init__(self, built: Strategy) -> None:
        assert built.coefficients is not None
        self._first, *later = built.coefficients
        self._rounds = built.iterations
        self._ratios = [-c / self._first for c in later]
        self.kept = len(later)

    def row(self, number: int) -> Row:
        """The next one, once those before are known."""
        return Row([(number, 1.0 / self._first)], self._ratios)

    @cached_property
    def growth(self) -> float:
        """The norm of the last row, which has all coefficients of 1/c(x): by substitution in double precision."""
        import numpy as np

        from pyaccount.strategies.sums import quotient  # numpy

        impulse = np.zeros(self._rounds if self.kept else 1)
        impulse[0] = 1.0 / self._first
        series = quotient(impulse, np.array([1.0, *(-ratio for ratio in self._ratios)]))
        return float(np.sqrt(np.square(series).sum()))

    @property
    def smallest_new(self) -> float:
        """1/c_0."""
        return 1.0 / self._first

    @property
    def memory(self) -> str:
        """The bands but for the diagonal."""
        return f"the last {self.kept} rows are kept; a round is drawn once"
