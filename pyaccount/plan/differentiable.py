"""How δ of a sampler follows the coefficients of a banded Toeplitz matrix: what a search for one asks of a sampler's plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from pyaccount import _core

    Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Differentiable:
    """The mechanism of one run for any first column c and noise multiplier σ, and what its gradient says about c.

    Nothing is rounded in a safe direction: with these a matrix is proposed, and what is certified is built by its analysis.
    """

    core: Callable[[Vector, float], _core.Sampled]
    #: ∂δ/∂c_j for each j, from the derivatives that the core gives at (c, σ).
    slopes: Callable[[Vector, float, _core.DeltaGradient], Vector]

    @classmethod
    def of_coefficients(cls, build: Callable[[list[float]], _core.Sampled]) -> Differentiable:
        """Of mechanisms that are built from c/σ: the core's derivatives are ∂δ/∂(c_j/σ)."""
        import numpy as np  # only searches for a matrix need it

        return cls(
            lambda c, sigma: build((c / sigma).tolist()),
            lambda _c, sigma, gradient: np.array(gradient.derivatives) / sigma,
        )
