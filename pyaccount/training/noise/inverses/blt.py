"""Buffered linear Toeplitz matrices: a row of C⁻¹Z is computed from one running sum for each buffer.

C has c_0 = κ and c_i = κ·Σ_j ω_j θ_j^{i−1} for i ≥ 1 (κ = 1 before the matrix is normalised). Row t of C·(C⁻¹Z) = Z reads
w_t = κ z_t + κ·Σ_j ω_j Σ_{i≥1} θ_j^{i−1} z_{t−i}. With the sums m_j(t) = Σ_{i≥1} θ_j^{i−1} z_{t−i}, for which
m_j(t + 1) = θ_j m_j(t) + z_t and m_j(0) = 0, that is

z_t = w_t/κ − Σ_j ω_j m_j(t).

So C⁻¹ is applied with one number for each buffer and element, in O(buffers) time, with C's own scales and decays. This uses the
statement of arXiv:2504.21413 that the inverse of a BLT with d buffers is a BLT with d buffers, without computing its parameters:
as a power series C is κ·p(x)/q(x) with q(x) = Π_j (1 − θ_j x) and p(x) = q(x) + Σ_j ω_j x Π_{i≠j} (1 − θ_i x), both of degree at
most d, and so is q(x)/(κ·p(x)). The running sums are doubles and add up the rows as they were given out; `toeplitz` explains
what that means for roundings.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyaccount.forks import cached_property
from pyaccount.training.noise.inverses.base import InverseRows, Row

if TYPE_CHECKING:
    from pyaccount.plan.matrices import Strategy


class BLTRows(InverseRows):
    """Rows of C⁻¹Z, computed with the scales and decays of the matrix."""

    def __init__(self, built: Strategy) -> None:
        assert built.buffers is not None
        assert built.coefficients is not None
        self._first, self._rounds = built.coefficients[0], built.iterations
        scales, self.decays = built.buffers
        self._ratios = [-scale for scale in scales]

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

    @property
    def smallest_new(self) -> float:
        """The entry 1/c_0, which is the whole diagonal of C⁻¹."""
        return 1.0 / self._first

    @property
    def memory(self) -> str:
        """A text: a running sum is kept for each buffer."""
        return f"{len(self._ratios)} running sums of doubles are kept; a round is drawn once"
