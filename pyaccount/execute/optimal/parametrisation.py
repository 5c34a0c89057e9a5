"""First columns of unit norm around a given one, c = u/‖u‖, by few numbers a; a = 0 is that one.

Up to `FREE` bands every ratio of coefficients is free: u_j = c⁰_j + a_j for j > 0. Of more, u_j = c⁰_j·exp(Σ_k Φ_jk a_k), where Φ
has the cosines of πk·ln(1 + j)/ln(bands), k < `SMOOTH`, and the diagonal by itself: the ratio to the best known columns is
smooth, and few numbers are found well from few samples.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyaccount.strategies import normalized

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

#: The most bands whose coefficients are all free, and the number of smooth functions and the diagonal for more.
FREE, SMOOTH = 15, 8
#: Coefficients are at least this share of the first: columns stay as long as the bands say.
LEAST = 1e-9
#: How far a parameter may go in one round: the samples of its first matrix tell little of one that is far.
REACH = 0.25


@dataclass(frozen=True)
class ColumnFamily(ABC):
    """The columns around one. Sums are numpy's own, in the same order on any number of threads."""

    start: Vector

    @property
    @abstractmethod
    def bounds(self) -> list[tuple[float, float]]:
        """Where each parameter may go."""

    @abstractmethod
    def at(self, a: Vector) -> Vector:
        """c of unit norm."""

    @abstractmethod
    def pulled(self, a: Vector, gradient: Vector) -> Vector:
        """∇_a of a function of c with this gradient at c(a)."""

    @property
    def zero(self) -> Vector:
        """The parameters of the column itself."""
        return np.zeros(len(self.bounds))

    def downhill(self, gradient: Vector) -> NDArray[np.bool_]:
        """The parameters along which a function of this gradient at a = 0 can fall: not those that are at their end."""
        low = np.array([low for low, _ in self.bounds])
        return np.asarray((low < 0.0) | (gradient <= 0.0))


class FreeColumns(ColumnFamily):
    """With every ratio of coefficients free."""

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """No coefficient leaves the range of those that are allowed."""
        least = LEAST * self.start[0]
        return [(-min(REACH, max(0.0, float(c - least))), REACH) for c in self.start[1:]]

    def at(self, a: Vector) -> Vector:
        """Shifted."""
        return normalized(self._shifted(a))

    def pulled(self, a: Vector, gradient: Vector) -> Vector:
        """(g − ⟨g, c⟩c)/‖u‖ without the first, since ∂c/∂u = (I − ccᵀ)/‖u‖."""
        u = self._shifted(a)
        size = math.sqrt(float(np.square(u).sum()))
        c = u / size
        return np.asarray(((gradient - (gradient * c).sum() * c) / size)[1:])

    def _shifted(self, a: Vector) -> Vector:
        return np.concatenate((self.start[:1], self.start[1:] + a))


class SmoothColumns(ColumnFamily):
    """With smooth changes of the logarithms."""

    @property
    def basis(self) -> Vector:
        """Φ, a column for each parameter; the constant is not in its span, for it changes no normalised column."""
        bands = len(self.start)
        place = np.log1p(np.arange(bands)) / math.log(bands)
        smooth = [np.cos(math.pi * k * place) for k in range(1, SMOOTH)]
        return np.stack([*smooth, np.arange(bands) == 0], axis=1).astype(np.float64)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The same for all."""
        return [(-REACH, REACH)] * SMOOTH

    def at(self, a: Vector) -> Vector:
        """Multiplied."""
        exponent = (self.basis * a).sum(axis=1)
        return normalized(self.start * np.exp(exponent - exponent.max()))

    def pulled(self, a: Vector, gradient: Vector) -> Vector:
        """Φᵀ(c ∘ (g − ⟨g, c⟩c))."""
        c = self.at(a)
        tangent = c * (gradient - (gradient * c).sum() * c)
        return np.asarray((self.basis.T * tangent).sum(axis=1))


def around(start: Vector) -> ColumnFamily:
    """The columns around one of at least two coefficients, the first positive and the others not negative."""
    kind = FreeColumns if len(start) <= FREE else SmoothColumns
    return kind(positive(start))


def positive(column: Vector) -> Vector:
    """The column of unit norm, with what is next to nothing in it raised to `LEAST` of the first."""
    return normalized(np.maximum(column, LEAST * column[0]))
