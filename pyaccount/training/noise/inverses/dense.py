"""Matrices from files: a row of the inverse times the rows of Z, which are drawn again from the key.

Row t of C⁻¹ is the y with yᵀC = e_tᵀ, by substitution backwards from the diagonal: from v = e_t, y_r = v_r/C[r, r] and
v ← v − y_r·C[r, :r] for r = t, …, 0. Products and sums are made element by element, so that every processor gets the same row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyaccount.forks import cached_property
from pyaccount.training.noise.inverses.base import InverseRows, Row

if TYPE_CHECKING:
    from pyaccount.plan.matrices import Strategy


class DenseRows(InverseRows):
    """z_t = Σ_{s ≤ t} (C⁻¹)[t, s] w_s, in double precision."""

    from_key_alone: ClassVar[bool] = True

    def __init__(self, built: Strategy) -> None:
        assert built.dense is not None
        self._matrix = built.dense

    def row(self, number: int) -> Row:
        """The oldest row of Z first; entries that are 0 draw nothing."""
        import numpy as np

        found = np.zeros(number + 1)
        found[number] = 1.0
        for r in range(number, -1, -1):
            if found[r] != 0.0:
                found[r] /= self._matrix[r, r]
                found[:r] -= found[r] * self._matrix[r, :r]
        return Row([(s, entry) for s, entry in enumerate(found.tolist()) if entry], [])

    @cached_property
    def growth(self) -> float:
        """The largest norm of a row."""
        import numpy as np
        from scipy import linalg  # type: ignore[import-untyped]

        unit = np.eye(len(self._matrix))
        inverse = linalg.solve_triangular(self._matrix, unit, lower=True, overwrite_b=True, check_finite=False)
        return float(np.sqrt(np.square(inverse).sum(axis=1)).max())

    @property
    def smallest_new(self) -> float:
        """One over the largest entry on the diagonal."""
        return 1.0 / float(self._matrix.diagonal().max())

    @property
    def memory(self) -> str:
        """Nothing of the noise, for as many draws as there were rounds."""
        return "nothing is kept; round t is drawn together with the t rounds before it"
