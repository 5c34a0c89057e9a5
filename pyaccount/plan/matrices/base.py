"""The base class of the matrices in the plan room, with the answers of a banded Toeplitz matrix.

Each kind is a class: how the matrix is built from its fields, what it is called in a sentence, and which leading block the
first rounds of a run use. `workload_of` gives the workload of a run in the form that the strategies use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from pyaccount.document.document import Document
from pyaccount.document.matrices import MatrixKind
from pyaccount.document.tree import TrainingNode
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import MATRIX_NOISE, given, number
from pyaccount.plan.matrices.built import Strategy
from pyaccount.plan.protection import RunCase
from pyaccount.rounding import positional
from pyaccount.strategies.measure import PREFIX_SUMS, Workload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Listed = tuple[NDArray[np.float64], ...]

Matrix = TypeVar("Matrix", bound=MatrixKind)

#: Bounds the relative rounding of σ·‖c‖; the noise of a cut BLT or banded inverse is moved by this to the safe side.
ROUNDING = 1e-15

#: Nanoseconds that the transforms of a column take, for a sample and a step.
TRANSFORM_COST = 20.0

#: The most numbers that a normal form lists of a matrix.
MOST_LISTED = 16_384


def normalised(run: TrainingNode) -> str:
    """Return the word of normal forms for whether a matrix is scaled to unit column norm."""
    return "yes" if getattr(run.matrix, "normalize", True) else "no"


def cut_noise(sigma: float, first: float) -> float:
    """Return σ for a leading block that is not normalised, if the whole run's matrix was divided by ‖c‖ = 1/`first`.

    It follows from (C/‖c‖)⁻¹σZ = C⁻¹(σ‖c‖)Z.
    """
    return sigma if first == 1.0 else sigma / first * (1.0 - ROUNDING)


class MatrixPlan(RunCase, ABC, Generic[Matrix]):
    """What follows from the matrix of a training run."""

    @property
    def matrix(self) -> Matrix:
        """The matrix of the run."""
        return cast("Matrix", self.node.matrix)

    #: Whether building may fail, because the document alone does not show that the matrix is valid.
    may_fail: ClassVar[bool] = False
    #: Whether it is read from a file, which has the size of the whole run.
    from_file: ClassVar[bool] = False

    def text(self) -> str:
        """Describe the matrix in a few words."""
        return f"{self.node.matrix.kind} matrix of {self.node.matrix.diagonals()} bands"

    def refusals(self) -> list[Problem]:
        """Explain why the matrix is not analysed with the sampler of a run; empty if it is, or if the sampler decides."""
        return []

    def noise(self) -> Assumed:
        """Return the assumption about the noise, and about what may be released."""
        return MATRIX_NOISE

    @abstractmethod
    def build(self) -> Strategy:
        """Build the matrix of a run. Raises `ValueError` for a negative entry, or an error that exceeds all doubles."""

    def search_starts(self) -> list[Listed]:
        """Return the matrices from which a search begins: those of this kind that are known without a search.

        Each is given by its coefficients, or by its scales and decays.
        """
        raise AssertionError("this matrix is not searched for")

    def disjoint_modes(self, bins: int) -> bool:
        """Whether the modes m_t = Σ_e C e_{eT+t} of T bins are known to be orthogonal.

        Row i of m_{i mod T} is positive, since C ≥ 0 has a positive diagonal, and a product of two modes sums terms of
        one sign. So the modes are orthogonal exactly if C[i, j] = 0 for all i ≢ j mod T, that is, if no row is in two
        of them. This is checked on the entries, none of which is rounded to 0 for it. A matrix of adjacent bands
        satisfies it only for one bin, or with a single band.
        """
        return bins == 1 or self.node.matrix.diagonals() == 1

    def product_cost(self) -> float:
        """Return the nanoseconds that a sample and a step take longer if columns overlap: those of the transforms."""
        return TRANSFORM_COST

    def generation(self, built: Strategy) -> str:
        """Describe how training makes the rows z_t of C⁻¹w from independent rows w_t, exactly, round by round."""
        kept = len(given(built.coefficients)) - 1
        if kept == 0:
            return "z_t = w_t / c_0, with c the `coefficients`; no row is kept"
        rows = "row z is" if kept == 1 else f"{kept} rows z are"
        return (
            f"z_t = (w_t − Σ_j c_j·z_{{t−j}}) / c_0, j = 1 … {kept}, with c the `coefficients` and z_s = 0 for s < 0; the last "
            f"{rows} kept"
        )

    def inverse_bands(self) -> int | None:
        """Return the number of diagonals of the inverse if the inverse is banded, else None."""
        return None

    def leading_block(self, built: Strategy, noise: dict[str, Any], rounds: int) -> dict[str, Any]:
        """Return the sections `matrix` and `noise` of a document for the leading block of the whole run's matrix."""
        assert built.coefficients is not None
        if built.coefficients == (1.0,):
            return {}  # a document without a matrix has the identity
        coefficients = list(built.coefficients[:rounds])
        return {"matrix": {"kind": "toeplitz", "coefficients": coefficients, "normalize": False}}

    def normal_form(self, built: Strategy) -> dict[str, Any] | None:
        """Return what a normal form says of a matrix: by default its first column; None if it has too many numbers."""
        if built.coefficients is None or len(built.coefficients) > MOST_LISTED:
            return None
        column = [positional(each) for each in built.coefficients]
        return {"kind": "toeplitz", "column": column, "normalised": normalised(self.node)}


def rounds_of(run: TrainingNode) -> int:
    """Return the size of the matrix: the number of rounds of one run."""
    return number(run.training.iterations)


def has_workload(document: Document) -> bool:
    """Whether the document states a workload, which it can do only with a single run."""
    return any(run.workload is not None for run in document.runs_among_phases())


def workload_of(run: TrainingNode) -> Workload:
    """Return the workload of a run: what its errors are of, and which of them is minimised; by default prefix sums."""
    stated = run.workload
    if stated is None:
        return PREFIX_SUMS
    rates = stated.learning_rates
    return Workload(
        momentum=float(stated.momentum),
        ema_decay=float(stated.ema_decay),
        learning_rates=None if rates is None else tuple(map(float, rates)),
        largest=stated.error == "largest",
    )
