"""First columns of unit norm around a given one, c = u/‖u‖, by few numbers a; a = 0 is that one.

Up to `FREE` bands every ratio of coefficients is free: u_j = c⁰_j + a_j for j > 0. Of more, u_j = c⁰_j·exp(Σ_k Φ_jk a_k), where Φ
has the cosines of πk·ln(1 + j)/ln(bands), k < `SMOOTH`, and the diagonal by itself: the ratio to the best known columns is
smooth, and few numbers are found well from few samples. A buffered matrix has a number for each scale and decay, in which it is
stable whatever they are: ω_j = ω⁰_j·e^{a_j}, 1 − θ_j = (1 − θ⁰_j)·e^{b_j}.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyaccount.strategies.inverse import blt
from pyaccount.strategies.toeplitz import normalized

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyaccount.document.document import Document

    Vector = NDArray[np.float64]

#: The most bands whose coefficients are all free, and the number of smooth functions and the diagonal for more.
FREE, SMOOTH = 15, 8
#: Coefficients are at least this share of the first: columns stay as long as the bands say.
LEAST = 1e-9
#: How far a parameter may go in one round: the samples of its first matrix tell little of one that is far.
REACH = 0.25
#: A parameter that can go no further than this is at its end.
AT_END = 1e-12
#: The largest ln ω and ln(1 − θ).
LARGEST_SCALE, LONGEST = 3.0, math.log1p(-1e-3)


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

    @abstractmethod
    def moved(self, a: Vector) -> ColumnFamily:
        """The columns around c(a)."""

    def written(self, document: Document) -> Document:
        """The document with the column itself for its matrix."""
        return document.with_coefficients(self.start)

    @property
    def zero(self) -> Vector:
        """The parameters of the column itself."""
        return np.zeros(len(self.bounds))

    def downhill(self, gradient: Vector) -> NDArray[np.bool_]:
        """The parameters along which a function of this gradient at a = 0 can fall: not those that are at their end."""
        low, high = np.array(self.bounds).T
        return np.asarray(((low < -AT_END) | (gradient <= 0.0)) & ((high > AT_END) | (gradient >= 0.0)))


class BandedColumns(ColumnFamily):
    """Around a column of so many coefficients."""

    def moved(self, a: Vector) -> ColumnFamily:
        """As many bands."""
        return around(self.at(a))


class FreeColumns(BandedColumns):
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


class SmoothColumns(BandedColumns):
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


@dataclass(frozen=True)
class BufferedColumns(ColumnFamily):
    """The columns of buffered matrices, u = (1, Σ ω_j, Σ ω_j θ_j, …), around one; `start` is c of its scales and decays."""

    scales: Vector
    decays: Vector

    @classmethod
    def of(cls, scales: Vector, decays: Vector, iterations: int) -> BufferedColumns:
        """Around a matrix of so many rounds, its scales and decays moved to where the search may begin."""
        low, high = np.log(LEAST), _shortest(iterations)
        scales = np.exp(np.clip(np.log(np.maximum(scales, LEAST)), low, LARGEST_SCALE))
        decays = 1.0 - np.exp(np.clip(np.log1p(-np.minimum(decays, 1.0 - 1e-15)), high, LONGEST))
        return cls(normalized(_column(scales, decays, iterations)), scales, decays)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """No scale or decay leaves its range."""
        logs = np.concatenate((np.log(self.scales), np.log1p(-self.decays)))
        ends = [(math.log(LEAST), LARGEST_SCALE)] * len(self.scales)
        ends += [(_shortest(len(self.start)), LONGEST)] * len(self.decays)
        return [
            (-min(REACH, max(0.0, one - low)), min(REACH, max(0.0, high - one)))
            for one, (low, high) in zip(logs.tolist(), ends, strict=True)
        ]

    def at(self, a: Vector) -> Vector:
        """Of the scales and decays there."""
        return normalized(_column(*self._buffers(a), len(self.start)))

    def pulled(self, a: Vector, gradient: Vector) -> Vector:
        """By ∂u_i/∂ω_j = θ_j^{i−1}, ∂u_i/∂θ_j = (i − 1)ω_j θ_j^{i−2} and ∂c/∂u = (I − ccᵀ)/‖u‖."""
        scales, decays = self._buffers(a)
        u = _column(scales, decays, len(self.start))
        size = math.sqrt(float(np.square(u).sum()))
        c = u / size
        later = ((gradient - (gradient * c).sum() * c) / size)[1:]
        steps = np.arange(len(later), dtype=np.float64)
        by_log, by_rest = [], []
        for scale, decay in zip(scales.tolist(), decays.tolist(), strict=True):
            powers = np.power(decay, steps)
            by_log.append(scale * float((powers * later).sum()))
            slopes = steps * np.power(decay, np.maximum(steps - 1.0, 0.0))
            by_rest.append(-(1.0 - decay) * scale * float((slopes * later).sum()))
        return np.array([*by_log, *by_rest])

    def moved(self, a: Vector) -> ColumnFamily:
        """As many buffers."""
        return BufferedColumns.of(*self._buffers(a), len(self.start))

    def written(self, document: Document) -> Document:
        """By scales and decays."""
        return document.with_buffers(self.scales, self.decays)

    def _buffers(self, a: Vector) -> tuple[Vector, Vector]:
        count = len(self.scales)
        return self.scales * np.exp(a[:count]), 1.0 - (1.0 - self.decays) * np.exp(a[count:])


def _column(scales: Vector, decays: Vector, iterations: int) -> Vector:
    return blt(scales.tolist(), decays.tolist(), iterations)


def _shortest(iterations: int) -> float:
    """The least ln(1 − θ): what is kept for longer than the run lasts is as good as kept for ever."""
    return -math.log(1e3 * iterations)


def family(listed: tuple[Vector, ...], iterations: int) -> ColumnFamily:
    """The columns around a matrix that is given by its coefficients, or by scales and decays."""
    if len(listed) == 1:
        return around(listed[0])
    scales, decays = listed
    return BufferedColumns.of(scales, decays, iterations)


def around(start: Vector) -> ColumnFamily:
    """The columns around one of at least two coefficients, the first positive and the others not negative."""
    kind = FreeColumns if len(start) <= FREE else SmoothColumns
    return kind(positive(start))


def positive(column: Vector) -> Vector:
    """The column of unit norm, with what is next to nothing in it raised to `LEAST` of the first."""
    return normalized(np.maximum(column, LEAST * column[0]))
