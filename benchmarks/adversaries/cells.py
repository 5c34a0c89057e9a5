"""The masses of cells of sums with Gaussian, Laplace, discrete and Skellam noise, and the law of sums over drawn batches.

A mass is a difference of two values of a distribution function on the side where it is small, so that its relative error stays
below `ERROR` for cells that are not much narrower than a hundredth of the noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import ndtr

from adversaries.laws import Array, Law, finite, merged, positive

#: A bound on the relative error of the masses of cells.
ERROR = 1e-10
#: The means of a sum (one number, or one for each coordinate), with their probabilities.
Sums = Mapping[tuple[float, ...], float]


def gaussian(p: Sums, q: Sums, noise: float | Sequence[float] = 1.0, base: Sums | None = None, cells: int = 500) -> Law:
    """Return the law of a vector with independent Gaussian noise, whose means are drawn."""
    size = len(next(iter(p)))
    noises = [float(noise)] * size if isinstance(noise, int | float) else list(noise)
    laws = [sums for sums in (p, q, base) if sums is not None]
    edges = []
    for axis in range(size):
        means = sorted({mean[axis] for sums in laws for mean in sums})
        number = {1: cells, 2: 80, 3: 30, 4: 16}[size]
        edges.append(_edges(means[0], means[-1], noises[axis], number))
    masses = [_mixture(sums, edges, noises) for sums in laws]
    low = high = None
    if size == 1:
        low, high = _inside(p, q, edges[0], noises[0])
    made = Law(masses[0], masses[1], ERROR * size, low, high, masses[2] if base is not None else None)
    return merged(positive(made), 1500)


def _edges(low: float, high: float, noise: float, number: int) -> Array:
    """Return edges of cells: even ones where the mass is, wider ones in the tails, and two that reach to infinity."""
    near, far = 7.0, 36.0
    inner = np.linspace(low - near * noise, high + near * noise, max(number - number // 4, 8))
    tail = near + (far - near) * (np.linspace(0.0, 1.0, max(number // 8, 3))[1:])
    return np.concatenate([[-np.inf], low - noise * tail[::-1], inner, high + noise * tail, [np.inf]])


def _cells(edges: Array, mean: float, noise: float) -> Array:
    at = (edges - mean) / noise
    left, right = at[:-1], at[1:]
    flip = left > 0.0
    return np.where(flip, ndtr(-left) - ndtr(-right), ndtr(right) - ndtr(left))


def _mixture(sums: Sums, edges: Sequence[Array], noises: Sequence[float]) -> Array:
    total: Array | float = 0.0
    for means, weight in sums.items():
        mass: Array = np.array([float(weight)])
        for axis, mean in enumerate(means):
            mass = np.multiply.outer(mass, _cells(edges[axis], mean, noises[axis])).ravel()
        total = total + mass
    return np.asarray(total)


def _inside(p: Sums, q: Sums, edges: Array, noise: float) -> tuple[Array, Array]:
    """Return bounds on the losses within cells, if the ratio is monotone; otherwise no bounds are known there.

    It is monotone if all means of one law are on one side of all means of the other one.
    """
    rising = min(mean[0] for mean in p) >= max(mean[0] for mean in q) - 1e-15
    falling = max(mean[0] for mean in p) <= min(mean[0] for mean in q) + 1e-15
    with np.errstate(invalid="ignore"):
        at = np.concatenate(
            [
                [_at_infinity(p, q, -1.0)],
                _log(p, edges[1:-1], noise) - _log(q, edges[1:-1], noise),
                [_at_infinity(p, q, 1.0)],
            ]
        )
    if rising:
        return at[:-1] - 1e-9, at[1:] + 1e-9
    if falling:
        return at[1:] - 1e-9, at[:-1] + 1e-9
    return np.full(len(at) - 1, -np.inf), np.full(len(at) - 1, np.inf)


def _at_infinity(p: Sums, q: Sums, side: float) -> float:
    """Return the limit of the loss towards −∞ or ∞."""
    ends = [(max if side > 0 else min)(mean[0] for mean, weight in sums.items() if weight) for sums in (p, q)]
    if ends[0] == ends[1]:
        weights = [
            next(w for mean, w in sums.items() if mean[0] == end) for sums, end in zip((p, q), ends, strict=True)
        ]
        return math.log(weights[0] / weights[1])
    return math.inf if (ends[0] > ends[1]) == (side > 0) else -math.inf


def _log(sums: Sums, y: Array, noise: float) -> Array:
    """Return the logarithm of the density of a mixture, without what all densities have in common."""
    terms = np.array([math.log(w) - (y - mean[0]) ** 2 / (2.0 * noise * noise) for mean, w in sums.items() if w])
    top = np.max(terms, axis=0)
    return np.asarray(top + np.log(np.sum(np.exp(terms - top), axis=0)))


def laplace(p: Sums, q: Sums, scale: float, base: Sums | None = None, cells: int = 300) -> Law:
    """Return the law of one number with Laplace noise, whose mean is drawn. Outside of all means losses are constant."""
    laws = [sums for sums in (p, q, base) if sums is not None]
    means = sorted({mean[0] for sums in laws for mean in sums})
    edges = [-np.inf]
    each = max(4, cells // max(len(means) - 1, 1))
    for one, other in itertools.pairwise(means):
        edges.extend(np.linspace(one, other, each + 1)[:-1])
    edges.extend([means[-1], np.inf])
    at = np.array(edges)

    def mass(mean: float) -> Array:
        left, right = (at[:-1] - mean) / scale, (at[1:] - mean) / scale
        with np.errstate(over="ignore", invalid="ignore"):
            above = 0.5 * np.exp(-left) * -np.expm1(left - right)
            below = 0.5 * np.exp(right) * -np.expm1(left - right)
        return np.where(left >= -1e-14, above, below)

    masses = [np.sum([float(w) * mass(mean[0]) for mean, w in sums.items()], axis=0) for sums in laws]
    low = high = None
    if len(p) == len(q) == 1:
        shift = [[abs(y - next(iter(q))[0]) - abs(y - next(iter(p))[0]) for y in at[1:-1]]]
        ends = np.array([shift[0][0], *shift[0], shift[0][-1]]) / scale
        low, high = np.minimum(ends[:-1], ends[1:]) - 1e-12, np.maximum(ends[:-1], ends[1:]) + 1e-12
    # Means that cells are ends of are doubles, so that their differences are off by some units.
    return Law(masses[0], masses[1], 1e-12, low, high, masses[2] if base is not None else None)


def discrete_gaussian(shift: int, sigma: float) -> Law:
    """Return the law of an integer with discrete Gaussian noise, moved by `shift`."""
    reach = math.ceil(37.0 * sigma) + 2
    x = np.arange(-reach, reach + shift + 1, dtype=np.float64)
    total = math.fsum(np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2.0 * sigma * sigma)))
    p, q = (np.exp(-((x - at) ** 2) / (2.0 * sigma * sigma)) / total for at in (shift, 0))
    return merged(positive(finite(list(p), list(q), 1e-12)), 1500)


def skellam(shift: int, variance: float) -> Law:
    """Return the law of an integer with the difference of two Poisson variables as its noise, moved by `shift`.

    Every pair of values of the two variables is summed; terms are positive.
    """
    mean = 0.5 * variance
    # Beyond it there is less than any double.
    length = math.ceil(mean + 45.0 * math.sqrt(mean)) + 200
    poisson = np.exp(-mean) * np.cumprod(np.concatenate([[1.0], mean / np.arange(1.0, length)]))
    return _moved(np.convolve(poisson, poisson[::-1]), shift)


def several_gaussians(shift: int, sigma: float, parties: int) -> Law:
    """Return the law of an integer with the discrete Gaussian noise of several parties, moved by `shift`.

    One party after the other is added.
    """
    x = np.arange(-math.ceil(37.0 * sigma) - 1, math.ceil(37.0 * sigma) + 2, dtype=np.float64)
    one = np.exp(-(x**2) / (2.0 * sigma * sigma))
    law = one
    for _ in range(parties - 1):
        law = np.convolve(law, one)
    return _moved(law / math.fsum(law), shift)


def _moved(noise: Array, shift: int) -> Law:
    """Return the law of noise that is moved against the noise itself, without outcomes that doubles do not resolve."""
    noise = np.where(noise > 1e-290, noise, 0.0)
    p, q = np.concatenate([np.zeros(shift), noise]), np.concatenate([noise, np.zeros(shift)])
    return merged(positive(finite(list(p), list(q), 1e-11)), 1500)


def discrete_laplace(shift: int, scale: float) -> Law:
    """Return the law of an integer with discrete Laplace noise, moved by `shift`. Ends are sums of geometric series."""
    x = np.arange(0, shift + 1, dtype=np.float64)
    ratio = math.exp(-1.0 / scale)
    weight = -math.expm1(-1.0 / scale) / (1.0 + ratio)

    def law(at: float) -> Array:
        masses = weight * np.exp(-np.abs(x - at) / scale)
        masses[0] /= -math.expm1(-1.0 / scale)
        masses[-1] /= -math.expm1(-1.0 / scale)
        return masses

    return finite(list(law(shift)), list(law(0.0)), 1e-12)
