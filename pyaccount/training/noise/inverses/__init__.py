"""How the rows of C⁻¹Z are computed from those of Z, for each kind of matrix.

Each kind is a module with a class, and `INVERSES` has the class for each kind that documents may name. The coefficients are those
of the built matrix that the certificate is about; they are already normalised if the document asks for `normalize`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.training.noise.inverses.banded_inverse import BandedInverseRows
from pyaccount.training.noise.inverses.base import InverseRows, Row
from pyaccount.training.noise.inverses.blt import BLTRows
from pyaccount.training.noise.inverses.dense import DenseRows
from pyaccount.training.noise.inverses.identity import IdentityRows
from pyaccount.training.noise.inverses.toeplitz import ToeplitzRows
from pyaccount.training.noise.inverses.tree import TreeRows

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
