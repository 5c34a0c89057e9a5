"""First columns of unit norm around a given one, c = u/‖u‖, with few parameters a; a = 0 is the given column.

Up to `FREE` bands every ratio of coefficients is a parameter: u_j = c⁰_j + a_j for j > 0. With more bands,
u_j = c⁰_j·exp(Σ_k Φ_jk a_k), where Φ has the cosines of πk·ln(1 + j)/ln(bands), k < `SMOOTH`, and one column for the
diagonal alone: the ratio to the best known columns is smooth, and few parameters can be found well from few samples. A
buffered matrix has one parameter for each scale and each decay, for all values of which it is stable:
ω_j = ω⁰_j·e^{a_j}, 1 − θ_j = (1 − θ⁰_j)·e^{b_j}.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyaccount.document.document import Document
from pyaccount.strategies.inverse import blt
from pyaccount.strategies.sums import Vector
from pyaccount.strategies.toeplitz import normalized

#: The most bands whose coefficients are all free, and the number of parameters for more bands.
FREE, SMOOTH = 15, 8
#: Coefficients are at least this share of the first, so that columns keep their number of bands.
LEAST = 1e-9
#: How far a parameter may go in one round: samples of the round's first matrix say little about one that is far away.
REACH = 0.25
#: A parameter that can go no further than this has reached its bound.
AT_END = 1e-12
#: The largest ln ω and ln(1 − θ).
LARGEST_SCALE, LONGEST = 3.0, math.log1p(-1e-3)


@dataclass(frozen=True)
class ColumnFamily(ABC):
    """The columns around a given one. Sums are numpy's own, in the same order on any number of threads."""

    start: Vector

    @property
    @abstractmethod
    def bounds(self) -> list[tuple[float, float]]:
        """The range of each parameter."""

    @abstractmethod
    def at(self, a: Vector) -> Vector:
        """Return c(a), of unit norm."""

    @abstractmethod
    def pulled(self, a: Vector, gradient: Vector) -> Vector:
        """Return ∇_a of a function of c that has this gradient at c(a)."""

    @abstractmethod
    def moved(self, a: Vector) -> ColumnFamily:
        """Return the family around c(a)."""

    def written(self, document: Document) -> Document:
        """Return the document with the given column as its matrix."""
        return document.with_coefficients(self.start)

    @property
    def zero(self) -> Vector:
        """The parameters of the given column."""
        return np.zeros(len(self.bounds))

    def downhill(self, gradient: Vector) -> NDArray[np.bool_]:
        """Return the parameters along which a function with this gradient at a = 0 can fall within its bounds."""
        low, high = np.array(self.bounds).T
        return np.asarray(((low < -AT_END) | (gradient <= 0.0)) & ((high > AT_END) | (gradient >= 0.0)))


class BandedColumns(ColumnFamily):
    """The columns around one that is given by its coefficients."""

    def moved(self, a: Vector) -> ColumnFamily:
        """Return the family around c(a), with as many bands."""
        return family_around(self.at(a))


class FreeColumns(BandedColumns):
    """Banded columns of which every ratio of coefficients is free."""

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The range of each parameter, in which coefficients stay at least `LEAST` of the first."""
        least = LEAST * self.start[0]
        return [(-min(REACH, max(0.0, float(c - least))), REACH) for c in self.start[1:]]

    def at(self, a: Vector) -> Vector:
        """Return the column with a added to its coefficients, normalised."""
        return normalized(self._shifted(a))

    def pulled(self, a: Vector, gradient: Vector) -> Vector:
        """Return (g − ⟨g, c⟩c)/‖u‖ without its first component, since ∂c/∂u = (I − ccᵀ)/‖u‖."""
        u = self._shifted(a)
        size = math.sqrt(float(np.square(u).sum()))
        c = u / size
        return np.asarray(((gradient - (gradient * c).sum() * c) / size)[1:])

    def _shifted(self, a: Vector) -> Vector:
        return np.concatenate((self.start[:1], self.start[1:] + a))


class SmoothColumns(BandedColumns):
    """Banded columns with smooth changes of the logarithms of their coefficients."""

    @property
    def basis(self) -> Vector:
        """Φ, with a column for each parameter. Constants are not in its span: they change no normalised column."""
        bands = len(self.start)
        position = np.log1p(np.arange(bands)) / math.log(bands)
        smooth = [np.cos(math.pi * k * position) for k in range(1, SMOOTH)]
        return np.stack([*smooth, np.arange(bands) == 0], axis=1).astype(np.float64)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The range of each parameter, the same for all."""
        return [(-REACH, REACH)] * SMOOTH

    def at(self, a: Vector) -> Vector:
        """Return the column with its coefficients multiplied by exp(Φa), normalised."""
        exponent = (self.basis * a).sum(axis=1)
        return normalized(self.start * np.exp(exponent - exponent.max()))

    def pulled(self, a: Vector, gradient: Vector) -> Vector:
        """Return Φᵀ(c ∘ (g − ⟨g, c⟩c))."""
        c = self.at(a)
        tangent = c * (gradient - (gradient * c).sum() * c)
        return np.asarray((self.basis.T * tangent).sum(axis=1))


@dataclass(frozen=True)
class BufferedColumns(ColumnFamily):
    """The columns of buffered matrices, u = (1, Σ ω_j, Σ ω_j θ_j, …), around that of given scales and decays."""

    scales: Vector
    decays: Vector

    @classmethod
    def of(cls, scales: Vector, decays: Vector, iterations: int) -> BufferedColumns:
        """Return the family around a buffered matrix, its scales and decays moved into the ranges that are searched."""
        low, high = np.log(LEAST), _shortest(iterations)
        scales = np.exp(np.clip(np.log(np.maximum(scales, LEAST)), low, LARGEST_SCALE))
        decays = 1.0 - np.exp(np.clip(np.log1p(-np.minimum(decays, 1.0 - 1e-15)), high, LONGEST))
        return cls(normalized(_column(scales, decays, iterations)), scales, decays)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The range of each parameter, in which scales and decays stay in theirs."""
        logs = np.concatenate((np.log(self.scales), np.log1p(-self.decays)))
        ends = [(math.log(LEAST), LARGEST_SCALE)] * len(self.scales)
        ends += [(_shortest(len(self.start)), LONGEST)] * len(self.decays)
        return [
            (-min(REACH, max(0.0, one - low)), min(REACH, max(0.0, high - one)))
            for one, (low, high) in zip(logs.tolist(), ends, strict=True)
        ]

    def at(self, a: Vector) -> Vector:
        """Return the column of the scales and decays at a."""
        return normalized(_column(*self._buffers(a), len(self.start)))

    def pulled(self, a: Vector, gradient: Vector) -> Vector:
        """Return ∇_a, by ∂u_i/∂ω_j = θ_j^{i−1}, ∂u_i/∂θ_j = (i − 1)ω_j θ_j^{i−2} and ∂c/∂u = (I − ccᵀ)/‖u‖."""
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
        """Return the family around c(a), with as many buffers."""
        return BufferedColumns.of(*self._buffers(a), len(self.start))

    def written(self, document: Document) -> Document:
        """Return the document with the scales and decays as its matrix."""
        return document.with_buffers(self.scales, self.decays)

    def _buffers(self, a: Vector) -> tuple[Vector, Vector]:
        count = len(self.scales)
        return self.scales * np.exp(a[:count]), 1.0 - (1.0 - self.decays) * np.exp(a[count:])


def _column(scales: Vector, decays: Vector, iterations: int) -> Vector:
    return blt(scales.tolist(), decays.tolist(), iterations)


def _shortest(iterations: int) -> float:
    """Return the least ln(1 − θ): a buffer that decays more slowly than the run lasts hardly decays at all."""
    return -math.log(1e3 * iterations)


def family(listed: tuple[Vector, ...], iterations: int) -> ColumnFamily:
    """Return the family around a matrix that is given by its coefficients, or by scales and decays."""
    if len(listed) == 1:
        return family_around(listed[0])
    scales, decays = listed
    return BufferedColumns.of(scales, decays, iterations)


def family_around(start: Vector) -> ColumnFamily:
    """Return the family around a column of at least two coefficients, the first positive and none negative."""
    kind = FreeColumns if len(start) <= FREE else SmoothColumns
    return kind(positive(start))


def positive(column: Vector) -> Vector:
    """Return the column of unit norm, with coefficients below `LEAST` of the first raised to that."""
    return normalized(np.maximum(column, LEAST * column[0]))
