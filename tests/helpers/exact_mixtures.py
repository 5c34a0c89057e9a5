"""Exact privacy profiles of small mixtures of Gaussians, to 1e-6 or better: the oracle for mechanisms certified by sampling.

P is a mixture of N(m, I) with means m ≥ 0 in each coordinate, Q one with means m ≤ 0 (or the other way round, or a single
N(0, I)); δ(ε) = ∫ (P − e^ε Q)₊. Let u be a direction in which all of P's means point forwards and all of Q's backwards. Along u
P/N(0, I) increases and Q/N(0, I) decreases, so on every line parallel to u the set P > e^ε Q is a half-line that begins at the
only root of ln P − ln Q − ε, and the integral over it is a sum of normal probabilities. What remains is an integral over the
other dimensions of the span, of an analytic and positive function that decays like a Gaussian. For it the trapezoidal rule
converges exponentially (Trefethen & Weideman 2014), and the agreement of two steps shows how well it has converged.

The module does not use the code under test, only definitions, numpy, and scipy's normal distribution function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter  # type: ignore[import-untyped]
from scipy.special import ndtr  # type: ignore[import-untyped]

Array = NDArray[np.float64]

#: The relative agreement of two grids at which the finer one is accepted; its own error is about the square of that.
AGREEMENT = 1e-5
#: An absolute tolerance in addition: of smaller values only the order of magnitude is known.
VANISHING = 1e-40
#: The steps of the grids: the first, the factor of each next one, and the smallest.
FIRST_STEP, NARROWER, LEAST_STEP = 0.6, 0.7, 0.02
#: The share of the largest value below which the integrand is neglected, and how far around the means it is evaluated.
NEGLIGIBLE, REACH = 1e-12, 13.0
#: The number of points of the quadrature along a line, if there is no formula.
NODES = 64
#: The precision of roots before the last of Newton's steps.
ROOT = 1e-5
#: The number of points that are evaluated at a time.
CHUNK = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Σ_k w_k N(m_k, I), a row of `means` for each weight.

    The weights sum to 1 − `missing`; `missing` is not 0 if a density is replaced by a bound on it.
    """

    weights: Array
    means: Array
    missing: float = 0.0

    @classmethod
    def of(cls, law: Mapping[tuple[int, ...], float], matrix: Array, scale: float = 1.0) -> Mixture:
        """Return the law of `scale`·(C x) + N(0, I) for x from the given law. Equal means are merged, and mean 0 comes first."""
        merged: dict[tuple[float, ...], float] = {(0.0,) * len(matrix): 0.0}
        for x, weight in law.items():
            mean = tuple(float(m) for m in np.round(scale * (matrix @ np.array(x, dtype=float)), 14) + 0.0)
            merged[mean] = merged.get(mean, 0.0) + weight
        return cls(np.array(list(merged.values())), np.array(list(merged)))

    def beside(self, other: Mixture) -> Mixture:
        """Return the product of both mixtures, which are independent."""
        pairs = list(product(range(len(self.weights)), range(len(other.weights))))
        weights = np.array([self.weights[i] * other.weights[j] for i, j in pairs])
        return Mixture(weights, np.array([np.concatenate([self.means[i], other.means[j]]) for i, j in pairs]))

    @property
    def mirrored(self) -> Mixture:
        """Return the distribution of −y."""
        return Mixture(self.weights, -self.means + 0.0, self.missing)


def nothing(dimension: int) -> Mixture:
    """Return N(0, I)."""
    return Mixture(np.ones(1), np.zeros((1, dimension)))


def hockey_stick(p: Mixture, q: Mixture, epsilon: float, *, agreement: float = AGREEMENT) -> float:
    """Return ∫ (P − e^ε Q)₊ for P with means on one side of 0 and Q with means on the other.

    The relative error is far below `agreement`; of values below 1e-35 only the order of magnitude is right. Raises
    `ArithmeticError` if the grids do not agree to that precision.
    """
    lines = _Lines.of(p, q, epsilon)
    if isinstance(lines, float):
        return lines
    if lines.dimensions == 0:
        return float(lines.values(np.zeros((1, 0)))[0])
    return _across(lines, agreement)


def judged_stick(p: Mixture, above: Mixture, below: Mixture, epsilon: float, *, agreement: float = 1e-3) -> float:
    """Return ∫ P (1 − e^ε B/A)₊, for samples of P whose likelihood ratio is taken to be A/B. P and A have the same means by row.

    There is no formula for the integral along a line. Gauss-Legendre quadrature from the root on is accurate to some 1e-4.
    """
    lines = _Lines.of(above, below, epsilon)
    if isinstance(lines, float):
        return lines
    moved = np.any(p.means != 0.0, axis=1)
    rows = np.zeros(len(lines.coefficients))
    rows[: moved.sum()], rows[-1] = p.weights[moved], p.weights[~moved].sum()
    # A itself: its components with mean 0 without those of B.
    whole = np.where(np.arange(len(rows)) < moved.sum(), lines.coefficients, 0.0)
    whole[-1] = above.weights[~moved].sum()
    judged = _Judged(lines.coefficients, lines.along, lines.across, epsilon, rows, whole)
    return float(judged.values(np.zeros((1, 0)))[0]) if judged.dimensions == 0 else _across(judged, agreement)


def _across(lines: _Lines, agreement: float) -> float:
    """Return the trapezoidal sum of the lines' values, with smaller steps until two agree."""
    region, last, step = _Region.of(lines), np.nan, FIRST_STEP
    while True:
        found = sum(float(lines.values(points).sum()) for points in region.points(step)) * step**lines.dimensions
        if abs(found - last) <= agreement * abs(found) + VANISHING:
            return found
        if step < LEAST_STEP:
            raise ArithmeticError(f"grids of steps {step} and {step / NARROWER} do not agree: {found}, {last}")
        last, step = found, step * NARROWER


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """P − e^ε Q on the lines parallel to u: Σ_k c_k N((a_k, s_k), I), with a_k along u and s_k across."""

    coefficients: Array
    along: Array
    across: Array
    epsilon: float

    @classmethod
    def of(cls, p: Mixture, q: Mixture, epsilon: float) -> _Lines | float:
        """Return the lines that remain to be integrated, or the result if the set is everything or empty."""
        moved = [np.any(mixture.means != 0.0, axis=1) for mixture in (p, q)]
        means = np.concatenate([p.means[moved[0]], q.means[moved[1]]])
        weights = [mixture.weights[one] for mixture, one in zip((p, q), moved, strict=True)]
        # w₀ − e^ε v₀ for the weights of mean 0. Weights sum to 1, so w₀ − v₀ is a difference of the other weights, which is
        # often far smaller.
        rest = float(q.weights[~moved[1]].sum())
        moves = [weight.sum() + mixture.missing for weight, mixture in zip(weights, (p, q), strict=True)]
        still = -rest * np.expm1(epsilon) + (moves[1] - moves[0])
        if not moved[0].any() and still <= 0.0:
            return 0.0
        if not moved[1].any() and still >= 0.0:
            return float(-np.expm1(epsilon))
        signs = np.repeat([1.0, -1.0], [len(weights[0]), len(weights[1])])
        norms = np.linalg.norm(means, axis=1)
        forwards = (signs / norms) @ means
        first = forwards / np.linalg.norm(forwards)
        # An orthonormal basis of the means' components orthogonal to u. (Orthogonalising u and a basis of the span one by one
        # would be wrong: if u is in the span of the first few, the next vector is a direction of rounding, outside of the span.)
        _, sizes, span = np.linalg.svd(means - np.outer(means @ first, first), full_matrices=False)
        turned = means @ np.vstack([first, span[sizes > 1e-9 * norms.max()]]).T
        if not np.allclose(np.linalg.norm(turned, axis=1), norms, rtol=1e-7, atol=0.0):
            raise ArithmeticError("the basis does not span the means")
        if np.any(signs * turned[:, 0] <= 0.0):
            raise ValueError("means of P must lie on one side of 0 in every coordinate, and those of Q on the other")
        coefficients = np.concatenate([weights[0], -np.exp(epsilon) * weights[1], [still]])
        turned = np.concatenate([turned, np.zeros((1, turned.shape[1]))])
        return cls(coefficients, turned[:, 0], turned[:, 1:], epsilon)

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the remaining integral."""
        return self.across.shape[1]

    def values(self, points: Array) -> Array:
        """Return the integral along the line through each point of the orthogonal space."""
        # There is a row for each mean and a column for each point, so that sums over means are along contiguous memory.
        offsets = self.across @ points.T - 0.5 * (self.across**2).sum(axis=1)[:, None]
        root = self._roots(offsets)
        density = np.exp(offsets - 0.5 * (points**2).sum(axis=1)) * (2.0 * np.pi) ** (-0.5 * self.dimensions)
        return np.asarray(self.coefficients @ (density * ndtr(self.along[:, None] - root)))

    def _roots(self, offsets: Array) -> Array:
        """Return the t at which ln Σ₊ c e^{…} = ln Σ₋ |c| e^{…} on each line.

        If each sum is replaced by its largest term, the root has a formula. The logarithms of the sums differ from those of the
        terms by at most ln K, which gives a bracket for Newton's steps. An error of the root enters squared, because the
        integrand vanishes there.
        """
        exponents = offsets - 0.5 * self.along[:, None] ** 2
        forwards, backwards = self.coefficients > 0.0, self.coefficients < 0.0
        rising, falling = (
            (exponents[one] + np.log(np.abs(self.coefficients[one]))[:, None], self.along[one])
            for one in (forwards, backwards)
        )
        roots = [
            ((falling[0] - logs) / (along - falling[1])[:, None]).max(axis=0)
            for logs, along in zip(*rising, strict=True)
        ]
        t = np.min(roots, axis=0)
        # A lower bound on the slope of the difference.
        slowest = rising[1].min() - falling[1].max()
        low, high = (t - np.log(len(rising[1])) / slowest, t + np.log(len(falling[1])) / slowest)
        for _ in range(200):
            (above, up), (below, down) = (
                _logarithm(logs + along[:, None] * t, along) for logs, along in (rising, falling)
            )
            value = above - below
            low, high = np.where(value < 0.0, t, low), np.where(value < 0.0, high, t)
            step = t - value / (up - down)
            following = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
            done = np.abs(following - t) <= ROOT * (1.0 + np.abs(t))
            t = following
            if done.all():
                return t
        raise ArithmeticError("a root was not found")


@dataclass(frozen=True, slots=True, eq=False)
class _Judged(_Lines):
    """The lines on which A > e^ε B, with the weights of P and of A in the rows of the coefficients."""

    sampled: Array
    whole: Array

    def values(self, points: Array) -> Array:
        """Return ∫ P (A − e^ε B)/A from the root on, along the line through each point."""
        squares = (0.5 * self.along**2)[:, None]
        offsets = self.across @ points.T - 0.5 * (self.across**2).sum(axis=1)[:, None] - squares
        root = np.maximum(self._roots(offsets + squares), -9.0 - np.abs(self.along).max())
        length = np.maximum(root, self.along.max()) + 9.0 - root
        density = np.exp(-0.5 * (points**2).sum(axis=1)) * (2.0 * np.pi) ** (-0.5 * (self.dimensions + 1))
        total = np.zeros(len(points))
        for node, weight in zip(*np.polynomial.legendre.leggauss(NODES), strict=True):
            t = root + 0.5 * (node + 1.0) * length
            terms = offsets + self.along[:, None] * t
            top = terms.max(axis=0)
            shares = np.exp(terms - top)
            ratio = (self.coefficients @ shares) / (self.whole @ shares)
            total += (
                0.5 * weight * length * np.exp(top - 0.5 * t * t) * (self.sampled @ shares) * np.maximum(ratio, 0.0)
            )
        return density * total


def _logarithm(terms: Array, slopes: Array) -> tuple[Array, Array]:
    """Return ln Σ e^term of each column, and its derivative if those of the terms are `slopes`."""
    if len(terms) == 1:
        return terms[0], np.broadcast_to(slopes, terms.shape[1:])
    top = terms.max(axis=0)
    shares = np.exp(terms - top)
    total = shares.sum(axis=0)
    return top + np.log(total), slopes @ shares / total


@dataclass(frozen=True, slots=True, eq=False)
class _Region:
    """The cells of side 1 that contain all of the integral except for a negligible part."""

    origin: Array
    cells: NDArray[np.bool_]

    @classmethod
    def of(cls, lines: _Lines) -> _Region:
        """Choose the cells by the values at their centres; neighbours of a chosen cell are chosen too."""
        origin = np.floor(lines.across.min(axis=0) - REACH)
        shape = (np.ceil(lines.across.max(axis=0) + REACH) - origin + 1.0).astype(int)
        indices = np.stack([axis.ravel() for axis in np.indices(shape)], axis=1)
        parts = [lines.values(indices[i : i + CHUNK] + origin) for i in range(0, len(indices), CHUNK)]
        values = np.concatenate(parts).reshape(shape)
        return cls(origin, maximum_filter(values, 3) > NEGLIGIBLE * values.max())

    def points(self, step: float) -> Iterator[Array]:
        """Yield the points of a grid that lie in the cells, in batches."""
        # The offset has no symmetry, so that no two grids share points.
        axes = [
            np.arange(o + 0.123 * step, o + n - 1.0, step) for o, n in zip(self.origin, self.cells.shape, strict=True)
        ]
        rest = (
            np.stack([axis.ravel() for axis in np.meshgrid(*axes[1:], indexing="ij")], axis=1)
            if axes[1:]
            else np.zeros((1, 0))
        )
        several = max(1, CHUNK // len(rest))
        for first in range(0, len(axes[0]), several):
            rows = axes[0][first : first + several]
            points = np.concatenate([np.repeat(rows, len(rest))[:, None], np.tile(rest, (len(rows), 1))], axis=1)
            cell = np.rint(points - self.origin).astype(int)
            yield points[self.cells[tuple(cell.T)]]
