"""How the rows of C⁻¹Z are computed from those of Z, for each kind of matrix.

Each kind of rows is a class, and `INVERSES` has it for each kind that documents may name. The coefficients are those
of the built matrix that the certificate is about; they are already normalised if the document asks for `normalize`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.training.noise.inverses.base import IdentityRows, InverseRows, Row
from pyaccount.training.noise.inverses.not_toeplitz import DenseRows, TreeRows
from pyaccount.training.noise.inverses.toeplitz import BandedInverseRows, BLTRows, ToeplitzRows

if TYPE_CHECKING:
    from pyaccount.document.tree import TrainingNode
    from pyaccount.plan.matrices import Strategy

__all__ = ["INVERSES", "InverseRows", "Row", "inverse_rows"]

INVERSES: dict[str, type[InverseRows]] = {
    "identity": IdentityRows,
    "banded-square-root": ToeplitzRows,
    "optimal-toeplitz": ToeplitzRows,
    "toeplitz": ToeplitzRows,
    "banded-inverse": BandedInverseRows,
    "blt": BLTRows,
    "tree": TreeRows,
    "dense": DenseRows,
}


def inverse_rows(run: TrainingNode, built: Strategy) -> InverseRows:
    """Return the rows of C⁻¹Z for the built matrix of a run."""
    return INVERSES[str(run.matrix.kind)](built)
