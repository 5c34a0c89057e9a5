"""How the rows of C⁻¹Z follow from those of Z, for each kind of matrix.

A kind is a module with a class; `INVERSES` has one for each kind that documents may name, and everything else asks it. The
coefficients are those of the built matrix, which the certificate is about; `normalize` has scaled these already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.training.noise.inverses.banded_inverse import BandedInverseRows
from pyaccount.training.noise.inverses.base import InverseRows, Row
from pyaccount.training.noise.inverses.blt import BLTRows
from pyaccount.training.noise.inverses.dense import DenseRows
from pyaccount.training.noise.inverses.identity import IdentityRows
from pyaccount.training.noise.inverses.toeplitz import ToeplitzRows

if TYPE_CHECKING:
    from pyaccount.document import Body
    from pyaccount.plan.matrices import Strategy

__all__ = ["INVERSES", "InverseRows", "Row", "inverse_rows"]

INVERSES: dict[str, type[InverseRows]] = {
    "identity": IdentityRows,
    "banded-square-root": ToeplitzRows,
    "optimal-toeplitz": ToeplitzRows,
    "toeplitz": ToeplitzRows,
    "banded-inverse": BandedInverseRows,
    "blt": BLTRows,
    "dense": DenseRows,
}


def inverse_rows(body: Body, built: Strategy) -> InverseRows:
    """The rows of C⁻¹Z for the matrix of a body."""
    return INVERSES[str(body.matrix.kind)](built)
