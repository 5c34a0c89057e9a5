"""Rows of C⁻¹Z for Toeplitz matrices: banded ones, those with a banded inverse, and buffered linear ones (BLT).

Those of a banded C are computed by substitution, from the last rows that were given out.
Row t of C·(C⁻¹Z) = Z reads Σ_j c_j z_{t−j} = w_t, so z_t = (w_t − Σ_{1≤j<b} c_j z_{t−j})/c_0 with z_s = 0 for s < 0. The kept
rows are those that were given out, rounding included. Therefore C times the rows that were given out is Z except for c_j times
the roundings of single rows; C⁻¹ does not propagate any rounding.

If the inverse is banded, a row of C⁻¹Z is a sum of the last rows of Z, which are drawn again each time.

With buffers, a row of C⁻¹Z is computed from one running sum for each. Then
C has c_0 = κ and c_i = κ·Σ_j ω_j θ_j^{i−1} for i ≥ 1 (κ = 1 before the matrix is normalised). Row t of C·(C⁻¹Z) = Z reads
w_t = κ z_t + κ·Σ_j ω_j Σ_{i≥1} θ_j^{i−1} z_{t−i}. With the sums m_j(t) = Σ_{i≥1} θ_j^{i−1} z_{t−i}, for which
m_j(t + 1) = θ_j m_j(t) + z_t and m_j(0) = 0, that is

z_t = w_t/κ − Σ_j ω_j m_j(t).

So C⁻¹ is applied with one number for each buffer and element, in O(buffers) time, with C's own scales and decays. This uses the
statement of arXiv:2504.21413 that the inverse of a BLT with d buffers is a BLT with d buffers, without computing its parameters:
as a power series C is κ·p(x)/q(x) with q(x) = Π_j (1 − θ_j x) and p(x) = q(x) + Σ_j ω_j x Π_{i≠j} (1 − θ_i x), both of degree at
most d, and so is q(x)/(κ·p(x)). The running sums are doubles and add up the rows as they were given out, with
the roundings described above.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

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
        self.kept, self.smallest_new = len(later), 1.0 / self._first
        self.memory = f"the last {self.kept} rows are kept; a round is drawn once"

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


class BandedInverseRows(InverseRows):
    """Rows z_t = Σ_{j < b} a_j w_{t−j}, where a is the first column of C⁻¹."""

    from_key_alone: ClassVar[bool] = True

    def __init__(self, built: Strategy) -> None:
        assert built.inverse is not None
        self._inverse, self.smallest_new = built.inverse, built.inverse[0]
        bands = len(built.inverse)
        self.memory = f"nothing is kept; a round is drawn as often as the inverse has bands ({bands})"

    def row(self, number: int) -> Row:
        """Return the last rows of Z, the newest first, except for those with coefficient 0."""
        return Row([(number - j, a) for j, a in enumerate(self._inverse[: number + 1]) if a != 0.0], [])

    @cached_property
    def growth(self) -> float:
        """The ℓ₂ norm of a row with all coefficients, which is the largest."""
        return math.hypot(*self._inverse)


class BLTRows(InverseRows):
    """Rows of C⁻¹Z, computed with the scales and decays of the matrix."""

    def __init__(self, built: Strategy) -> None:
        assert built.buffers is not None
        assert built.coefficients is not None
        self._first, self._rounds = built.coefficients[0], built.iterations
        scales, self.decays = built.buffers
        self._ratios = [-scale for scale in scales]
        self.smallest_new = 1.0 / self._first
        self.memory = f"{len(scales)} running sums of doubles are kept; a round is drawn once"

    def row(self, number: int) -> Row:
        """Return the next row, as the newest row of Z and the running sums of earlier rows."""
        return Row([(number, 1.0 / self._first)], self._ratios)

    @cached_property
    def growth(self) -> float:
        """The ℓ₂ norm of the last row, which has all coefficients of 1/c(x); computed with the running sums themselves."""
        import numpy as np

        assert self.decays is not None
        ratios, decays = np.array(self._ratios), np.array(self.decays)
        sums, square = np.zeros(len(decays)), 0.0
        for number in range(self._rounds):
            entry = (1.0 / self._first if number == 0 else 0.0) + float((ratios * sums).sum())
            sums = decays * sums + entry
            square += entry * entry
        return math.sqrt(square)
