"""Banded Toeplitz matrices, given by their coefficients or by a name that determines these, and the identity (plain DP-SGD)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyaccount.document.matrices import BandedSquareRoot, Identity, OptimalToeplitz, Toeplitz
from pyaccount.plan.matrices.base import MatrixPlan, normalised, rounds_of, workload_of
from pyaccount.plan.matrices.built import Strategy, toeplitz_strategy
from pyaccount.rounding import positional
from pyaccount.strategies.measure import Workload

if TYPE_CHECKING:
    from pyaccount.plan.matrices.base import Listed


class ToeplitzPlan(MatrixPlan[Toeplitz]):
    """A Toeplitz matrix that is given by its coefficients."""

    def build(self) -> Strategy:
        """Build the matrix, without the zeros at the end of the coefficients."""
        listed = list(self.matrix.coefficients)
        while listed[-1] == 0.0:
            listed.pop()
        return toeplitz_strategy(tuple(listed), rounds_of(self.node), normalize=self.matrix.normalize)

    def disjoint_modes(self, bins: int) -> bool:
        """Whether only coefficients at multiples of T are not 0."""
        return all(lag % bins == 0 for lag, c in enumerate(self.matrix.coefficients) if c != 0.0)

    def text(self) -> str:
        """Name the matrix, without the number of bands: the coefficients show it."""
        return f"{self.matrix.kind} matrix"

    def normal_form(self, built: Strategy) -> dict[str, Any] | None:
        """Return the coefficients that are stated, without zeros at their end."""
        column = [positional(each) for each in self.matrix.coefficients[: len(built.coefficients or ())]]
        return {"kind": "toeplitz", "column": column, "normalised": normalised(self.node)}


class BandedSquareRootPlan(MatrixPlan[BandedSquareRoot]):
    """The square root of the prefix-sum matrix, cut to its first bands."""

    def build(self) -> Strategy:
        """Build the matrix; its coefficients do not depend on the length of the run."""
        assert isinstance(self.matrix.bands, int)
        return _square_root(self.matrix.bands, rounds_of(self.node), normalize=self.matrix.normalize)

    def normal_form(self, built: Strategy) -> dict[str, Any]:
        """Return the number of bands."""
        return {
            "kind": "banded-square-root",
            "bands": str(self.matrix.diagonals()),
            "normalised": normalised(self.node),
        }


class OptimalToeplitzPlan(MatrixPlan[OptimalToeplitz]):
    """The banded Toeplitz matrix of least error under the workload."""

    def build(self) -> Strategy:
        """Build the matrix, optimised for the length of the run."""
        assert isinstance(self.matrix.bands, int)
        return _optimal(
            self.matrix.bands, rounds_of(self.node), workload_of(self.node), normalize=self.matrix.normalize
        )

    def search_starts(self) -> list[Listed]:
        """Return the matrix of least error for its column norm, and the square root."""
        from pyaccount.strategies.toeplitz import banded_square_root, optimal_toeplitz  # numpy

        bands = self.matrix.diagonals()
        assert bands is not None
        return [(optimal_toeplitz(rounds_of(self.node), bands, workload_of(self.node)),), (banded_square_root(bands),)]


@lru_cache(maxsize=64)
def _square_root(bands: int, iterations: int, *, normalize: bool) -> Strategy:
    from pyaccount.strategies.toeplitz import banded_square_root  # numpy

    coefficients = tuple(float(c) for c in banded_square_root(bands))
    return toeplitz_strategy(coefficients, iterations, normalize=normalize)


@lru_cache(maxsize=64)
def _optimal(bands: int, iterations: int, workload: Workload, *, normalize: bool) -> Strategy:
    from pyaccount.strategies.toeplitz import optimal_toeplitz  # numpy

    coefficients = tuple(float(c) for c in optimal_toeplitz(iterations, bands, workload))
    return toeplitz_strategy(coefficients, iterations, normalize=normalize)


#: How independent noise is drawn.
INDEPENDENT = "z_t = w_t; no row is kept"


class IdentityPlan(MatrixPlan[Identity]):
    """The identity: the noise of the rounds is independent."""

    def text(self) -> str:
        """Name what the matrix means for the noise."""
        return "independent noise"

    def build(self) -> Strategy:
        """Build the matrix, which has a single coefficient of 1."""
        return toeplitz_strategy((1.0,), rounds_of(self.node), normalize=False)

    def generation(self, built: Strategy) -> str:
        """Describe the noise, which is used as drawn."""
        return INDEPENDENT

    def normal_form(self, built: Strategy) -> dict[str, Any]:
        """Return that it is the identity."""
        return {"kind": "identity"}
