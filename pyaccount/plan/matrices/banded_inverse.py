"""Toeplitz matrices whose inverse is banded."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount.document.matrices import BandedInverse
from pyaccount.plan.common import number
from pyaccount.plan.matrices.base import MatrixPlan, cut_noise, normalised, rounds_of
from pyaccount.plan.matrices.built import Strategy, toeplitz_strategy
from pyaccount.rounding import positional

if TYPE_CHECKING:
    from collections.abc import Sequence


#: Nanoseconds that the transforms of a full column take, for a sample and a step.
TRANSFORM_COST = 20.0
#: Coefficients below this fraction of the first one are neglected: together they are far less than the rounding of the rest.
NOTHING = 2.0**-200


class BandedInversePlan(MatrixPlan[BandedInverse]):
    """A Toeplitz matrix that is given by the first column of its inverse."""

    may_fail: ClassVar[bool] = True

    def text(self) -> str:
        """Name the matrix, with the number of bands if the document gives it."""
        width = self.matrix.bands
        return "matrix with a banded inverse" + ("" if width is None else f" ({width} bands)")

    def build(self) -> Strategy:
        """Build the matrix from the power series of the inverse."""
        matrix = self.matrix
        inverse = None if matrix.inverse_coefficients is None else tuple(matrix.inverse_coefficients)
        return _inverse(matrix.bands, inverse, rounds_of(self.node), normalize=matrix.normalize)

    def product_cost(self) -> float:
        """Return the cost of the transforms."""
        return TRANSFORM_COST

    def inverse_bands(self) -> int | None:
        """Return the number of bands of the inverse, given as a number or as a list."""
        return self.matrix.inverse_bands

    def generation(self, built: Strategy) -> str:
        """Describe the noise as a sum of past independent noise, which can be kept or drawn again by its position."""
        assert built.inverse is not None
        kept = len(built.inverse) - 1
        return (
            f"z_t = Σ_j d_j·w_{{t−j}}, j = 0 … {kept}, with d the `inverse_coefficients` and w_s = 0 for s < 0; the last "
            f"{kept} rows w are kept, or drawn again"
        )

    def leading_block(self, built: Strategy, noise: dict[str, Any], rounds: int) -> dict[str, Any]:
        """Keep the coefficients exactly and apply the normalisation to the noise, as for a BLT."""
        from pyaccount.strategies.inverse import inverse_square_root  # numpy

        matrix = self.matrix
        listed = matrix.inverse_coefficients
        if listed is None:
            assert matrix.bands is not None
            listed = tuple(inverse_square_root(matrix.bands).tolist())
        inverse = list(listed[:rounds])
        section = {"kind": "banded-inverse", "inverse_coefficients": inverse, "normalize": False}
        assert built.coefficients is not None
        norm = _largest_ratio(built.coefficients[:rounds], inverse)
        return {
            "matrix": section,
            "noise": {**noise, "multiplier": cut_noise(number(self.node.noise.multiplier), norm)},
        }

    def normal_form(self, built: Strategy) -> dict[str, Any]:
        """Return the number of bands of the inverse square root, or the coefficients of the inverse."""
        if self.matrix.bands is not None:
            bands = str(self.matrix.bands)
            return {"kind": "inverse-square-root", "bands": bands, "normalised": normalised(self.node)}
        inverse = [positional(each) for each in self.matrix.inverse_coefficients or ()]
        return {"kind": "banded-inverse", "inverse": inverse, "normalised": normalised(self.node)}


def _largest_ratio(coefficients: Sequence[float], inverse: list[float]) -> float:
    """Return the largest ratio of a coefficient of the whole run to the one that this inverse gives.

    With the noise divided by it, no entry of C/σ of the prefix is below that of the whole run, however both were
    rounded.
    """
    import numpy as np

    from pyaccount.strategies.inverse import banded_inverse

    run, cut = np.asarray(coefficients), banded_inverse(inverse, len(coefficients))
    counted = run > run[0] * NOTHING
    return float((run[counted] / cut[counted]).max())


@lru_cache(maxsize=16)
def _inverse(bands: int | None, inverse: tuple[float, ...] | None, iterations: int, *, normalize: bool) -> Strategy:
    from pyaccount.strategies.inverse import banded_inverse, inverse_square_root

    if inverse is None:
        assert bands is not None
        inverse = tuple(float(d) for d in inverse_square_root(bands))
    built = toeplitz_strategy(tuple(banded_inverse(inverse, iterations).tolist()), iterations, normalize=normalize)
    return replace(built, inverse=tuple(d / built.normalization for d in inverse[:iterations]))
