"""Toeplitz matrices with a full first column: those whose inverse is banded, and buffered linear ones (BLT)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount.document.matrices import BLT, BandedInverse
from pyaccount.plan.common import given, number
from pyaccount.plan.matrices.base import MatrixPlan, cut_noise, normalised, rounds_of, workload_of
from pyaccount.plan.matrices.built import Strategy, toeplitz_strategy
from pyaccount.rounding import positional
from pyaccount.strategies.measure import Workload

if TYPE_CHECKING:
    from pyaccount.plan.matrices.base import Listed

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

    def inverse_bands(self) -> int | None:
        """Return the number of bands of the inverse, given as a number or as a list."""
        return self.matrix.inverse_bands

    def generation(self, built: Strategy) -> str:
        """Describe the noise as a sum of past independent noise, which can be kept or drawn again by its position."""
        kept = len(given(built.inverse)) - 1
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
            listed = tuple(inverse_square_root(given(matrix.bands)).tolist())
        inverse = list(listed[:rounds])
        section = {"kind": "banded-inverse", "inverse_coefficients": inverse, "normalize": False}
        norm = _largest_ratio(given(built.coefficients)[:rounds], inverse)
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
        inverse = tuple(float(d) for d in inverse_square_root(given(bands)))
    built = toeplitz_strategy(tuple(banded_inverse(inverse, iterations).tolist()), iterations, normalize=normalize)
    return replace(built, inverse=tuple(d / built.normalization for d in inverse[:iterations]))


#: Nanoseconds that each buffer and product takes, for a sample and a step.
BUFFER_COST = 0.5


class BLTPlan(MatrixPlan[BLT]):
    """A buffered linear Toeplitz matrix, given by its scales and decays or by their number."""

    def text(self) -> str:
        """Name the matrix, with the number of buffers."""
        return f"BLT matrix of {self._buffers()} buffers"

    def build(self) -> Strategy:
        """Build the matrix; if only the number of buffers is given, optimise it for the usual participations."""
        matrix, n = self.matrix, rounds_of(self.node)
        if matrix.scales is not None and matrix.decays is not None:
            return _blt(tuple(matrix.scales), tuple(matrix.decays), n, normalize=matrix.normalize)
        pattern = self.node.sampler.usual_pattern(self.node, n)
        return _optimal_blt(given(matrix.buffers), n, pattern, workload_of(self.node), normalize=matrix.normalize)

    def search_starts(self) -> list[Listed]:
        """Return the matrices of least error for the sampler's usual participations, and for a single participation."""
        from pyaccount.strategies.inverse import optimal_blt

        n, buffers = rounds_of(self.node), self.matrix.buffers
        patterns = (self.node.sampler.usual_pattern(self.node, n), (n, 1))
        return [optimal_blt(n, given(buffers), *pattern, workload_of(self.node)) for pattern in patterns]

    def _buffers(self) -> int:
        """Return the number of buffers."""
        return (self.matrix.buffers or 0) if self.matrix.scales is None else len(self.matrix.scales)

    def product_cost(self) -> float:
        """Return the cost of two products for each buffer."""
        return 2.0 * BUFFER_COST * self._buffers()

    def generation(self, built: Strategy) -> str:
        """Describe the noise with buffers of past z.

        (Cz)_t = ν(z_t + Σ_k ω_k·s_k), with s_k = Σ_{i≥1} θ_k^{i−1}·z_{t−i} before round t.
        """
        assert built.buffers is not None
        return (
            "z_t = w_t/ν − Σ_k ω_k·s_k, and after it s_k becomes θ_k·s_k + z_t, each s_k 0 at first; with ν the `normalization`, "
            f"ω the `scales` and θ the `decays` of the `buffers`; {len(built.buffers[0])} rows s are kept"
        )

    def leading_block(self, built: Strategy, noise: dict[str, Any], rounds: int) -> dict[str, Any]:
        """Keep scales and decays, with c_0 = 1, and apply the normalisation to the noise instead."""
        scales, decays = given(built.buffers)
        section = {"kind": "blt", "scales": list(scales), "decays": list(decays), "normalize": False}
        sigma = cut_noise(number(self.node.noise.multiplier), given(built.coefficients)[0])
        return {"matrix": section, "noise": {**noise, "multiplier": sigma}}

    def normal_form(self, built: Strategy) -> dict[str, Any]:
        """Return the scales and decays."""
        scales, decays = ([positional(each) for each in listed] for listed in given(built.buffers))
        return {"kind": "blt", "decays": decays, "normalised": normalised(self.node), "scales": scales}


@lru_cache(maxsize=16)
def _optimal_blt(
    buffers: int, iterations: int, pattern: tuple[int, int], workload: Workload, *, normalize: bool
) -> Strategy:
    from pyaccount.strategies.inverse import optimal_blt

    scales, decays = optimal_blt(iterations, buffers, *pattern, workload)
    return _blt(tuple(scales.tolist()), tuple(decays.tolist()), iterations, normalize=normalize)


@lru_cache(maxsize=16)
def _blt(scales: tuple[float, ...], decays: tuple[float, ...], iterations: int, *, normalize: bool) -> Strategy:
    from pyaccount.strategies.inverse import blt

    built = toeplitz_strategy(tuple(blt(scales, decays, iterations).tolist()), iterations, normalize=normalize)
    return replace(built, buffers=(scales, decays))
