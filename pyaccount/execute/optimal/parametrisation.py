"""First columns of unit norm around a given one, by few numbers: c = u/‖u‖, u_j = c⁰_j·exp(Σ_k Φ_jk a_k).

Every such column is positive. Up to `FREE` bands Φ leaves every ratio of coefficients free. Of more, Φ has the cosines of
πk·ln(1 + j)/ln(bands), k < `SMOOTH`, and the diagonal by itself: the ratio to the best known columns is a smooth function of
ln(1 + j), and few numbers are found well from few samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyaccount.strategies import normalized

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

#: The most bands whose coefficients are all free, and the number of smooth functions and the diagonal for more.
FREE, SMOOTH = 9, 8
#: Coefficients are at least this share of the first: the logarithm of 0 is no place to start.
LEAST = 1e-9


@dataclass(frozen=True)
class Columns:
    """The columns around one; a = 0 is that one itself."""

    start: Vector
    basis: Vector

    @classmethod
    def around(cls, start: Vector) -> Columns:
        """Those around a column of at least two coefficients, the first positive and the others not negative."""
        return cls(positive(start), basis(len(start)))

    def at(self, a: Vector) -> Vector:
        """c of unit norm. The sums are numpy's own, in the same order on any number of threads."""
        exponent = (self.basis * a).sum(axis=1)
        return normalized(self.start * np.exp(exponent - exponent.max()))

    def pulled(self, c: Vector, gradient: Vector) -> Vector:
        """∇_a of a function of c = c(a) with the gradient g there: Φᵀ(c ∘ (g − ⟨g, c⟩c)), since ∂c/∂u projects c out."""
        tangent = c * (gradient - (gradient * c).sum() * c)
        return np.asarray((self.basis.T * tangent).sum(axis=1))


def positive(column: Vector) -> Vector:
    """The column of unit norm, with what is next to nothing in it raised to `LEAST` of the first."""
    return normalized(np.maximum(column, LEAST * column[0]))


def basis(bands: int) -> Vector:
    """Φ, a column for each parameter; the constant is not in its span, for it changes no normalised column."""
    if bands <= FREE:
        return np.eye(bands)[:, :-1]
    place = np.log1p(np.arange(bands)) / math.log(bands)
    smooth = [np.cos(math.pi * k * place) for k in range(1, SMOOTH)]
    return np.stack([*smooth, np.arange(bands) == 0], axis=1).astype(np.float64)
