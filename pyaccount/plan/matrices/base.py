"""What the plan room is asked about a matrix, and the answers of a banded Toeplitz matrix.

A matrix has one class here, in a module of its own: how it is built from its fields, what it is called in a sentence, and what
the leading block is that the first rounds of a run have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount.plan.common import whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyaccount.document import Body, Document
    from pyaccount.plan.matrices.built import Strategy

    Listed = tuple[NDArray[np.float64], ...]

#: What a few roundings of σ·‖c‖ may have added; the noise of a cut BLT or banded inverse is moved by this to the safe side.
ROUNDING = 1e-15


def cut_noise(sigma: float, first: float) -> float:
    """σ of a leading block that is not normalised, where normalising divided the whole run's matrix by ‖c‖ = 1/first.

    (C/‖c‖)⁻¹σZ = C⁻¹(σ‖c‖)Z.
    """
    return sigma if first == 1.0 else sigma / first * (1.0 - ROUNDING)


class MatrixPlan(ABC):
    """What is known of a kind of matrix beyond its fields."""

    #: Whether building it may find out that it is none.
    may_fail: ClassVar[bool] = False
    #: Whether it is read from a file, at the size of the whole run.
    from_file: ClassVar[bool] = False

    def text(self, body: Body) -> str:
        """The matrix in a few words."""
        return f"{body.matrix.kind} matrix of {body.matrix.diagonals()} bands"

    @abstractmethod
    def build(self, document: Document, body: Body) -> Strategy:
        """The matrix of a run. Raises `ValueError` for one that is not non-negative, or whose error no double holds."""

    def search_starts(self, body: Body) -> list[Listed]:
        """The matrices that are known without a search, of the kind that one is made for: where it begins.

        Each by its coefficients, or by scales and decays.
        """
        raise AssertionError("this matrix is not searched for")

    def disjoint_modes(self, document: Document, body: Body, bins: int) -> bool:
        """Whether the modes m_t = Σ_e C e_{eT+t} of T bins are known to be orthogonal.

        Row i of m_{i mod T} is positive, since C ≥ 0 has a positive diagonal, and a product of two modes sums terms of one sign:
        they are orthogonal exactly where C[i, j] = 0 for all i ≢ j mod T, so that no row is in two of them. That is asked of the
        entries, none of which is rounded to 0 for it. Bands that are next to each other have it for one bin only.
        """
        return bins == 1 or body.matrix.diagonals() == 1

    def product_cost(self, body: Body) -> float:
        """Nanoseconds that a sample and a step take longer where columns overlap."""
        raise AssertionError("the columns of a banded matrix do not overlap")

    def generation(self, built: Strategy) -> str:
        """How training makes the rows z_t of C⁻¹w from rows w_t of independent noise, one round after another; exact."""
        assert built.coefficients is not None
        kept = len(built.coefficients) - 1
        if kept == 0:
            return "z_t = w_t / c_0, with c the `coefficients`; no row is kept"
        rows = "row z is" if kept == 1 else f"{kept} rows z are"
        return (
            f"z_t = (w_t − Σ_j c_j·z_{{t−j}}) / c_0, j = 1 … {kept}, with c the `coefficients` and z_s = 0 for s < 0; the last "
            f"{rows} kept"
        )

    def inverse_bands(self, body: Body) -> int | None:
        """The number of diagonals of the inverse, if that is banded."""
        return None

    def leading_block(self, built: Strategy, body: Body, noise: dict[str, Any], rounds: int) -> dict[str, Any]:
        """The sections `matrix` and `noise` of the leading block of the whole run's matrix."""
        assert built.coefficients is not None
        if built.coefficients == (1.0,):
            return {}
        coefficients = list(built.coefficients[:rounds])
        return {"matrix": {"kind": "toeplitz", "coefficients": coefficients, "normalize": False}}


def rounds_of(body: Body) -> int:
    """The size of the matrix: the rounds of one run."""
    return whole(body.training.iterations)
