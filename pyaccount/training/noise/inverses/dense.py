"""Matrices from files: a row of C⁻¹Z is a row of C⁻¹ times the rows of Z, which are drawn again from the key each time.

Row t of C⁻¹ is the y with yᵀC = e_tᵀ. It is found by substitution backwards from the diagonal: start with v = e_t, then set
y_r = v_r/C[r, r] and v ← v − y_r·C[r, :r] for r = t, …, 0. Products and sums are computed element by element, so that every
processor gets the same row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyaccount.forks import cached_property
from pyaccount.training.noise.inverses.base import InverseRows, Row

if TYPE_CHECKING:
    from pyaccount.plan.matrices import Strategy


class DenseRows(InverseRows):
    """Rows z_t = Σ_{s ≤ t} (C⁻¹)[t, s] w_s, with coefficients in double precision."""

    from_key_alone: ClassVar[bool] = True

    def __init__(self, built: Strategy) -> None:
        assert built.dense is not None
        self._matrix = built.dense

    def row(self, number: int) -> Row:
        """Return the rows of Z up to this round, the oldest first, except for those with coefficient 0."""
        import numpy as np

        entries = np.zeros(number + 1)
        entries[number] = 1.0
        for r in range(number, -1, -1):
            if entries[r] != 0.0:
                entries[r] /= self._matrix[r, r]
                entries[:r] -= entries[r] * self._matrix[r, :r]
        return Row([(s, entry) for s, entry in enumerate(entries.tolist()) if entry], [])

    @cached_property
    def growth(self) -> float:
        """The largest ℓ₂ norm of a row of C⁻¹."""
        import numpy as np
        from scipy import linalg  # type: ignore[import-untyped]

        unit = np.eye(len(self._matrix))
        inverse = linalg.solve_triangular(self._matrix, unit, lower=True, overwrite_b=True, check_finite=False)
        return float(np.sqrt(np.square(inverse).sum(axis=1)).max())

    @property
    def smallest_new(self) -> float:
        """One over the largest entry on the diagonal of C, which is the smallest entry on the diagonal of C⁻¹."""
        return 1.0 / float(self._matrix.diagonal().max())

    @property
    def memory(self) -> str:
        """A text: no rows are kept, and a round draws its own row of Z and those of all earlier rounds."""
        return "nothing is kept; round t is drawn together with the t rounds before it"
