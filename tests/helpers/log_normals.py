"""Hockey-stick divergences of a mean of independent log-normal numbers, by quadrature: a record in one of a few rounds."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr  # type: ignore[import-untyped]

Array = NDArray[np.float64]


def call(square: float, strike: Array | float) -> Array:
    """Return E(Z − K)₊ for Z = exp(N(−s/2, s)), by the formula of Black and Scholes; E(Z − K) if K is not positive."""
    strike = np.asarray(strike, dtype=float)
    positive, root = np.maximum(strike, 1e-300), math.sqrt(square)
    d = (-np.log(positive) + square / 2) / root
    return np.where(strike > 0, ndtr(d) - positive * np.exp(log_ndtr(d - root)), 1.0 - strike)


def put(square: float, strike: Array | float) -> Array:
    """Return E(K − Z)₊, which is 0 if K is not positive."""
    strike = np.asarray(strike, dtype=float)
    positive, root = np.maximum(strike, 1e-300), math.sqrt(square)
    d = (np.log(positive) + square / 2) / root
    return np.where(strike > 0, positive * ndtr(d) - np.exp(log_ndtr(d - root)), 0.0)


def integrated(squares: list[float], last: Callable[[Array], Array]) -> float:
    """Return E last(Z_1 + … ) by the trapezoidal rule, which converges geometrically for smooth integrands that decay."""
    z = np.linspace(-12.0, 12.0, 4001 if len(squares) == 1 else 401)
    weight = np.exp(-z * z / 2)
    weight /= weight.sum()
    sums, weights = np.zeros(1), np.ones(1)
    for square in squares:
        values = np.exp(math.sqrt(square) * z - square / 2)
        sums, weights = np.add.outer(sums, values).ravel(), np.multiply.outer(weights, weight).ravel()
    return float(np.dot(weights, last(sums)))


def quadrature(squares: list[float], epsilon: float, *, reverse: bool) -> float:
    """Return δ of a record in one of these rounds: the last term has a closed form, the others are integrated by quadrature."""
    rounds, edge = len(squares), math.exp(-epsilon if reverse else epsilon) * len(squares)
    *first, last = squares
    if reverse:
        return math.exp(epsilon) / rounds * integrated(first, lambda sums: put(last, edge - sums))
    return integrated(first, lambda sums: call(last, edge - sums)) / rounds
