"""The oracles for `golden/public_reports.yaml`: closed forms, binomial mixtures, and a discretised composition.

This module shares no code with the package. Closed forms are those of `oracle`. `sampled_epsilon` is a plain discretisation of
the privacy loss that preserves the mean in every cell, composed by a Fourier transform; it is an estimate with a relative error
of 1e-3, not a bound.
"""

import math
from collections.abc import Sequence

import mpmath as mp
import numpy as np
import oracle
from exact_mixtures import Mixture, hockey_stick, nothing
from log_normals import quadrature
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

Array = NDArray[np.float64]
#: The rounds of a mechanism: their number, the sampling probability, and σ in clip norms; Laplace noise has a scale, no sampling.
Rounds = tuple[int, float, float]

__all__ = [
    "allocation_delta",
    "attack_sigma",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "laplace_delta",
    "laplace_epsilon",
    "math",
    "moments_epsilon",
    "once",
    "overlapping_delta",
    "replaced_allocation_delta",
    "sampled_attack",
    "sampled_delta",
    "sampled_epsilon",
    "sqrt_toeplitz_norm",
    "tree_norm",
]


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return ε at δ of N(μ, 1) against N(0, 1) (Balle & Wang 2018, Theorem 8), computed with 30 digits."""
    return float(oracle.gaussian_epsilon(mu, delta))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return δ at ε of N(μ, 1) against N(0, 1)."""
    with mp.workdps(50):
        return float(oracle.gaussian_delta(mp.mpf(mu), mp.mpf(epsilon)))


def overlapping_delta(
    rounds: tuple[int, float, int], column: Sequence[float], sigma: float, epsilon: float, records: int = 1
) -> float:
    """Return δ at ε of records that join each of n rounds with probability p while they wait for none, C with this first column.

    A record that joined waits for b − 1 rounds; `rounds` is (n, p, b). All patterns are enumerated, and integrals are those of
    `exact_mixtures`.
    """
    n, p, b = rounds
    single: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(n):
        after: dict[tuple[int, ...], float] = {}
        for taken, chance in single.items():
            if b > 1 and any(taken[-(b - 1) :]):
                after[(*taken, 0)] = chance
            else:
                after |= {(*taken, 0): chance * (1.0 - p), (*taken, 1): chance * p}
        single = after
    law = single
    for _ in range(1, records):
        together: dict[tuple[int, ...], float] = {}
        for one, first in law.items():
            for other, second in single.items():
                counts = tuple(x + y for x, y in zip(one, other, strict=True))
                together[counts] = together.get(counts, 0.0) + first * second
        law = together
    matrix = np.array([[column[i - j] if 0 <= i - j < len(column) else 0.0 for j in range(n)] for i in range(n)])
    mixture, absent = Mixture.of(law, matrix / math.hypot(*column), 1.0 / sigma), nothing(n)
    return max(hockey_stick(mixture, absent, epsilon), hockey_stick(absent, mixture, epsilon))


def gaussian_sigma(epsilon: float, delta: float, distance: float = 1.0) -> float:
    """Return the smallest σ with which a Gaussian mechanism of this sensitivity is (ε, δ)-private."""
    with mp.workdps(40):
        found = oracle.decreasing_root(
            lambda sigma: oracle.gaussian_delta(1 / sigma, mp.mpf(epsilon)) if sigma else mp.mpf(1),
            mp.mpf(delta),
            mp.mpf(1),
        )
    return distance * float(found)


def laplace_epsilon(scale: float, delta: float) -> float:
    """Return ε at δ of one Laplace release: δ(ε) = 1 − e^{(ε − 1/b)/2} below 1/b, solved for ε."""
    return 1.0 / scale + 2.0 * math.log1p(-delta)


def laplace_delta(scale: float, epsilon: float) -> float:
    """Return δ at ε of one Laplace release."""
    return -math.expm1((epsilon - 1.0 / scale) / 2.0)


def once(weights: Sequence[float] | str, sigma: float, epsilon: float, *parameters: float, step: float = 1.0) -> float:
    """Return δ at ε of one round: Σ w_j N(j·step) against N(0), in the worse direction.

    `weights` are those of 0, 1, … participations, or `binomial` or `hypergeometric` with their parameters.
    """
    with mp.workdps(30):
        if weights == "binomial":
            found = oracle.binomial(int(parameters[0]), parameters[1])
        elif weights == "hypergeometric":
            found = oracle.hypergeometric(*map(int, parameters))
        else:
            found = [mp.mpf(weight) for weight in weights]
        p = [(weight, mp.mpf(j) * step / sigma) for j, weight in enumerate(found)]
        q = [(mp.mpf(1), mp.mpf(0))]
        e = mp.mpf(epsilon)
        remove = oracle.mixture_delta(p, q, e)
        return float(max(remove, oracle.mixture_delta(q, p, e, increasing=False)))


def allocation_delta(rounds: int, sigma: float, epsilon: float) -> float:
    """Return δ at ε of a record in one of `rounds` rounds, by quadrature of sums of log-normal numbers."""
    squares = [sigma**-2] * rounds
    return max(quadrature(squares, epsilon, reverse=reverse) for reverse in (False, True))


def replaced_allocation_delta(sigma: float, epsilon: float) -> float:
    """Return δ at ε of a record in one of two rounds that is replaced by its opposite, by quadrature over both rounds."""
    z = np.linspace(-9.0, 9.0, 1201)
    weights = np.exp(-0.5 * z * z)
    weights /= weights.sum()
    up, down = np.exp(z / sigma), np.exp(-z / sigma)
    gains = np.add.outer(up, up) - math.exp(epsilon) * np.add.outer(down, down)
    return float(weights @ np.maximum(gains, 0.0) @ weights) * 0.5 * math.exp(-0.5 / sigma**2)


def moments_epsilon(p: float, sigma: float, rounds: int, delta: float) -> float:
    """Return an upper bound on ε by Rényi divergences of whole orders (Mironov, Talwar & Zhang 2019; Balle et al. 2020,
    Theorem 21).
    """
    best = math.inf
    for order in range(2, 129):
        terms = (
            mp.binomial(order, k)
            * mp.mpf(1 - p) ** (order - k)
            * mp.mpf(p) ** k
            * mp.exp(mp.mpf(k * k - k) / (2 * sigma**2))
            for k in range(order + 1)
        )
        divergence = rounds * mp.log(mp.fsum(terms)) / (order - 1)
        epsilon = divergence + mp.log(mp.mpf(order - 1) / order) - (mp.log(delta) + mp.log(order)) / (order - 1)
        best = min(best, float(epsilon))
    return best


def _losses(p: float, sigma: float, *, remove: bool, laplace: bool) -> tuple[Array, Array]:
    """Return privacy losses of one round and their weights, by the midpoint rule; the atoms of Laplace noise are exact."""
    if laplace:
        inner = (np.arange(20_000) + 0.5) / 20_000
        weights = np.exp(-inner / sigma) / (2.0 * sigma) / 20_000
        losses = np.concatenate([(1.0 - 2.0 * inner) / sigma, [1.0 / sigma, -1.0 / sigma]])
        return losses, np.concatenate([weights, [0.5, 0.5 * math.exp(-1.0 / sigma)]])
    x = np.linspace(-12.0 * sigma, 1.0 + 12.0 * sigma, 60_001)
    added = norm.pdf(x, 1.0, sigma)
    none = norm.pdf(x, 0.0, sigma)
    ratio = np.logaddexp(math.log1p(-p) if p < 1.0 else -np.inf, math.log(p) + (2.0 * x - 1.0) / (2.0 * sigma**2))
    weights = ((1.0 - p) * none + p * added if remove else none) * (x[1] - x[0])
    return (ratio if remove else -ratio), weights


def _composed(rounds: Sequence[Rounds | tuple[str, int, float]], *, remove: bool) -> tuple[Array, Array]:
    """Return the privacy loss of all rounds on a lattice. Each loss is split between neighbours so that its mean is preserved,
    and errors are of second order.
    """
    found = []
    for one in rounds:
        laplace = one[0] == "laplace"
        count, p, sigma = (one[1], 1.0, one[2]) if laplace else one  # type: ignore[misc]
        found.append((int(count), *_losses(float(p), float(sigma), remove=remove, laplace=laplace)))
    mean = sum(count * float(losses @ weights) for count, losses, weights in found)
    variance = sum(count * float((losses - losses @ weights) ** 2 @ weights) for count, losses, weights in found)
    largest = max(float(np.abs(losses[weights > 1e-14]).max()) for _, losses, weights in found)
    half = 12.0 * math.sqrt(variance) + abs(mean) + 2.0 * largest
    size = 1 << 17
    step = 2.0 * half / size
    transform = np.ones(size // 2 + 1, dtype=complex)
    for count, losses, weights in found:
        places = losses / step
        left = np.floor(places)
        share = places - left
        cells = np.zeros(size)
        np.add.at(cells, left.astype(np.int64) % size, weights * (1.0 - share))
        np.add.at(cells, (left.astype(np.int64) + 1) % size, weights * share)
        transform *= np.fft.rfft(cells) ** count
    masses = np.maximum(np.fft.irfft(transform, size), 0.0)
    lattice = np.fft.fftfreq(size, 1.0 / size) * step
    return lattice, masses


def _profile(rounds: Sequence[Rounds | tuple[str, int, float]]) -> list[tuple[Array, Array]]:
    return [_composed(rounds, remove=remove) for remove in (True, False)]


def _delta(profile: Sequence[tuple[Array, Array]], epsilon: float) -> float:
    return max(
        float(masses @ np.maximum(-np.expm1(np.minimum(epsilon - lattice, 0.0)), 0.0)) for lattice, masses in profile
    )


def sampled_epsilon(delta: float, *rounds: Rounds | tuple[str, int, float]) -> float:
    """Return ε at δ of rounds with Poisson sampling under add-remove, or of Laplace releases; to about 1e-3 for δ above 1e-9."""
    profile = _profile(rounds)
    if _delta(profile, 0.0) <= delta:
        return 0.0
    return float(
        brentq(lambda e: math.log(max(_delta(profile, e), 1e-300) / delta), 0.0, 0.98 * float(profile[0][0].max()))
    )


def sampled_delta(epsilon: float, *rounds: Rounds | tuple[str, int, float]) -> float:
    """Return δ at ε of the same rounds."""
    return _delta(_profile(rounds), epsilon)


def sampled_attack(false_positives: float, *rounds: Rounds) -> float:
    """Return the largest true-positive rate of attacks at a false-positive rate under add-remove: min over ε of e^ε α + δ(ε)."""
    profile = _profile(rounds)
    return max(
        minimize_scalar(
            lambda e, one=one: math.exp(e) * false_positives + _delta([one], e), bounds=(0.0, 6.0), method="bounded"
        ).fun
        for one in profile
    )


def attack_sigma(true_positives: float, false_positives: float) -> float:
    """Return the σ of one Gaussian release at which the best attack has these rates: Φ⁻¹(TPR) − Φ⁻¹(FPR) = 1/σ."""
    return 1.0 / float(norm.ppf(true_positives) - norm.ppf(false_positives))


def tree_matrix(leaves: int) -> Array:
    """Return a lower-triangular C with CᵀC = TᵀT, where T is the complete binary tree over `leaves` rounds; its rows are sums."""
    rows = []
    width = 1
    while width <= leaves:
        rows += [[float(start <= j < start + width) for j in range(leaves)] for start in range(0, leaves, width)]
        width *= 2
    tree = np.array(rows)
    # The Cholesky factor of the reversed Gram matrix, after reversing it back, is lower triangular with CᵀC = TᵀT.
    factor = np.linalg.cholesky((tree.T @ tree)[::-1, ::-1])
    return np.asarray(factor[::-1, ::-1].T, dtype=np.float64)


def tree_norm(participations: int) -> float:
    """Return the largest norm of a sum of columns of the tree over 64 rounds; two leaves of a pair share all nodes above them."""
    return math.sqrt({1: 7.0, 2: 26.0}[participations])


def sqrt_toeplitz(rounds: int) -> Array:
    """Return the lower-triangular square root of the matrix of ones, with coefficients binom(2k, k)/4ᵏ."""
    coefficients = [math.comb(2 * k, k) / 4.0**k for k in range(rounds)]
    return np.array([[coefficients[i - j] if i >= j else 0.0 for j in range(rounds)] for i in range(rounds)])


def sqrt_toeplitz_norm(rounds: int) -> float:
    """Return the norm of the first column of this square root, which is the longest."""
    return math.sqrt(sum((math.comb(2 * k, k) / 4.0**k) ** 2 for k in range(rounds)))
