"""Rows of C⁻¹Z for matrices from files, which are dense, and for trees of partial sums.

A row of a dense C⁻¹Z is a row of C⁻¹ times the rows of Z, which are drawn again from the key each time.
Row t of C⁻¹ is the y with yᵀC = e_tᵀ. It is found by substitution backwards from the diagonal: start with v = e_t, then set
y_r = v_r/C[r, r] and v ← v − y_r·C[r, :r] for r = t, …, 0. Products and sums are computed element by element, so that every
processor gets the same row.

With a tree, a row of C⁻¹Z is the change of the error of the estimated running sum; `strategies.tree` has the formulas. One row of
Z is new in each round: w_t is the noise of the block of 2^a rounds that is added to the estimate after round t, or what is new in
the estimate of that block. With ν the scale of the nodes and e_j the errors of the blocks l_j that the block replaces,

z_t = (γ_a·w_t − Σ_{j<a} (1 − β_j)·e_j)/ν.

With honest estimation e_j is the row of Z of the round with which l_j ended. So a round takes a + 1 rows of Z: 2 on average,
and at most ⌊log₂ N⌋ + 1. With efficient estimation e_j is a sum over all 2^j rounds of l_j: (log₂ N)/2 + 1 rows on average,
and at most N, when the rounds of a tree are a power of two. The rows are drawn again from the key each time.

The sum of all z up to a round is the error of the estimate. Other nodes of the tree are not drawn, since no estimate needs
them; so what a run releases is a function of the noisy nodes, with the law that it has if all nodes are drawn.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from pyaccount.forks import cached_property
from pyaccount.training.noise.inverses.base import InverseRows, Row

if TYPE_CHECKING:
    from pyaccount.plan.matrices import Strategy


class DenseRows(InverseRows):
    """Rows z_t = Σ_{s ≤ t} (C⁻¹)[t, s] w_s, with coefficients in double precision."""

    from_key_alone: ClassVar[bool] = True
    memory = "nothing is kept; round t is drawn together with the t rounds before it"

    def __init__(self, built: Strategy) -> None:
        assert built.dense is not None
        self._matrix = built.dense
        self.smallest_new = 1.0 / float(self._matrix.diagonal().max())

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


class TreeRows(InverseRows):
    """Rows z_t = (γ_a·w_t − Σ_j (1 − β_j)·e_j)/ν."""

    from_key_alone: ClassVar[bool] = True

    def __init__(self, built: Strategy) -> None:
        from pyaccount.strategies import tree as trees  # numpy

        assert built.tree is not None
        self._tree, levels = built.tree, built.tree.levels
        # That of the largest block, γ_a/ν: what is new in an efficient estimate is less than a node's noise.
        self.smallest_new = trees.new_weight(built.tree, levels - 1) / built.tree.scale
        self.memory = (
            f"nothing is kept; a round is drawn {levels / 2 + 0.5:g} times on average, and at most {1 << (levels - 1)} times: "
            "honest estimation draws fewer rows"
            if built.tree.efficient
            else f"nothing is kept; a round is drawn twice on average, and at most {levels} times"
        )

    def row(self, number: int) -> Row:
        """Return the rows of Z of the blocks that end in this round and within its block, the oldest first."""
        from pyaccount.strategies import tree as trees  # numpy

        tree = self._tree
        height = trees.newest(tree, number)
        fresh = []
        for part in reversed(range(height)):
            weight = -trees.dropped_weight(tree, height, part) / tree.scale
            last = number - (1 << part)
            if tree.efficient:
                response = trees.block_response(tree, part)
                fresh += [(last + 1 - len(response) + s, weight * share) for s, share in enumerate(response)]
            else:
                fresh.append((last, weight))
        return Row([*fresh, (number, trees.new_weight(tree, height) / tree.scale)], [])

    @cached_property
    def growth(self) -> float:
        """The largest ℓ₂ norm of a row of C⁻¹, from the variances of the blocks' errors, which are independent."""
        from pyaccount.strategies import tree as trees

        tree = self._tree

        def norm(height: int) -> float:
            parts = (trees.dropped_weight(tree, height, j) * math.sqrt(trees.variance(tree, j)) for j in range(height))
            return math.hypot(trees.new_weight(tree, height), *parts) / tree.scale

        return max(norm(height) for height in range(tree.levels))
