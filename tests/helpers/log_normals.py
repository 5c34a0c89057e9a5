"""One of a few rounds, by quadrature: the hockey-stick divergences of a mean of independent log-normal numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr  # type: ignore[import-untyped]

Array = NDArray[np.float64]


def call(square: float, strike: Array | float) -> Array:
    """E(Z − K)₊ for Z = exp(N(−s/2, s)): Black and Scholes, Z − K where K is not positive."""
    strike = np.asarray(strike, dtype=float)
    positive, root = np.maximum(strike, 1e-300), math.sqrt(square)
    d = (-np.log(positive) + square / 2) / root
    return np.where(strike > 0, ndtr(d) - positive * np.exp(log_ndtr(d - root)), 1.0 - strike)


def put(square: float, strike: Array | float) -> Array:
    """E(K − Z)₊; nothing where K is not positive."""
    strike = np.asarray(strike, dtype=float)
    positive, root = np.maximum(strike, 1e-300), math.sqrt(square)
    d = (np.log(positive) + square / 2) / root
    return np.where(strike > 0, positive * ndtr(d) - np.exp(log_ndtr(d - root)), 0.0)


def integrated(squares: list[float], last: Callable[[Array], Array]) -> float:
    """E last(Z_1 + … ) by the trapezoidal rule, which converges geometrically for what is smooth and decays."""
    z = np.linspace(-12.0, 12.0, 4001 if len(squares) == 1 else 401)
    weight = np.exp(-z * z / 2)
    weight /= weight.sum()
    sums, weights = np.zeros(1), np.ones(1)
    for square in squares:
        values = np.exp(math.sqrt(square) * z - square / 2)
        sums, weights = np.add.outer(sums, values).ravel(), np.multiply.outer(weights, weight).ravel()
    return float(np.dot(weights, last(sums)))


def quadrature(squares: list[float], epsilon: float, *, reverse: bool) -> float:
    """δ of one of so many rounds: the last term in closed form, the others by quadrature."""
    rounds, edge = len(squares), math.exp(-epsilon if reverse else epsilon) * len(squares)
    *first, last = squares
    if reverse:
        return math.exp(epsilon) / rounds * integrated(first, lambda sums: put(last, edge - sums))
    return integrated(first, lambda sums: call(last, edge - sums)) / rounds
