"""Mixtures over participation patterns: likelihood ratios as sums over all patterns, and δ(ε) by quadrature."""

import numpy as np
from log_sums import logsumexp
from sampled_tools import renewal_law
from scipy.special import ndtr  # type: ignore[import-untyped]

Array = np.ndarray
#: Participation vectors, one for each row, and their probabilities.
Patterns = tuple[Array, Array]


def renewal_patterns(n: int, b: int, p: float, *, warm: bool) -> Patterns:
    """Return every participation pattern of b-min-sep sampling with its probability."""
    rows, weights = zip(*renewal_law(n, b, p, warm=warm).items(), strict=True)
    return np.array(rows, dtype=float), np.array(weights)


def log_ratio(patterns: Patterns, matrix: Array, outcomes: Array) -> Array:
    """Return ln dP/dN(0, I) as a sum over all patterns; matrix and outcomes are in units of σ."""
    means = patterns[0] @ matrix.T
    exponents = outcomes @ means.T - 0.5 * (means**2).sum(axis=1)
    return np.asarray(logsumexp(exponents + np.log(patterns[1]), axis=1))


def exact_delta(patterns: Patterns, matrix: Array, direction: str, epsilon: float) -> float:
    """Return δ(ε) by quadrature; the densities' ratio is monotone in the first coordinate, whose integral has a closed form."""
    weights, means = patterns[1], patterns[0] @ matrix.T
    constants = np.log(weights) - 0.5 * (means**2).sum(axis=1)
    axis = np.linspace(-11.0, 11.0, 141)
    grids = np.meshgrid(*[axis] * (means.shape[1] - 1), indexing="ij")
    others = np.stack([grid.ravel() for grid in grids], axis=1)

    def ratio(first: Array, sign: float) -> Array:
        exponents = constants + sign * (first[:, None] * means[:, 0] + others @ means[:, 1:].T)
        return np.asarray(logsumexp(exponents, axis=1))

    low, high = np.full(len(others), -60.0), np.full(len(others), 60.0)
    target = -epsilon if direction == "add" else epsilon
    for _ in range(60):
        middle = 0.5 * (low + high)
        value = ratio(middle, 1.0) - (ratio(middle, -1.0) if direction == "replace" else 0.0)
        above = value > target
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    cut = 0.5 * (low + high)

    def mass(sign: float) -> Array:
        """Return the mass of each slice of Σ_x w_x N(sign·m_x, I) beyond the cut (before it for add)."""
        total = np.zeros(len(others))
        for weight, mean in zip(weights, sign * means, strict=True):
            side = cut - mean[0] if direction == "add" else mean[0] - cut
            total += weight * ndtr(side) * np.exp(-0.5 * ((others - mean[1:]) ** 2).sum(axis=1))
        return total

    reference = ndtr(cut if direction == "add" else -cut) * np.exp(-0.5 * (others**2).sum(axis=1))
    factor = np.exp(epsilon)
    value = {
        "remove": lambda: mass(1.0) - factor * reference,
        "add": lambda: reference - factor * mass(1.0),
        "replace": lambda: mass(1.0) - factor * mass(-1.0),
    }[direction]()
    step = (axis[1] - axis[0]) / np.sqrt(2.0 * np.pi)
    return float(value.sum() * step ** others.shape[1])
