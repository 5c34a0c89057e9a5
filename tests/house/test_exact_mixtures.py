"""Tests of the oracle of small mixtures: against closed forms, along other axes, and by an identity of its two directions."""

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from exact_documents import Truth, column, law_of
from exact_mixtures import Mixture, hockey_stick, nothing
from log_sums import logsumexp
from numpy.typing import NDArray
from oracle import gaussian_delta, mixture_delta
from plain_documents import sectioned
from sampled_tools import bin_law, lower_toeplitz, pair_given, phase_law, renewal_law, users_law
from scipy.integrate import quad  # type: ignore[import-untyped]
from scipy.optimize import brentq  # type: ignore[import-untyped]
from scipy.stats import norm

Array = NDArray[np.float64]

EPSILONS = (0.0, 0.7, 3.0, 9.0, 40.0)


@pytest.mark.parametrize("scale", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_gaussian_in_any_direction(epsilon: float, scale: float) -> None:
    mean = scale * np.array([[0.8, 0.5, 0.3]])
    with mp.workdps(60):
        expected = float(gaussian_delta(mp.mpf(float(np.linalg.norm(mean))), mp.mpf(epsilon)))
    one = Mixture.of({(1,): 1.0}, mean.T)
    for p, q in ((one, nothing(3)), (nothing(3), one), (one.mirrored, nothing(3))):
        # Below the smallest doubles the result is 0.
        assert hockey_stick(p, q, epsilon) == pytest.approx(expected, rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("p", [1e-7, 0.01, 0.9, 1.0])
@pytest.mark.parametrize("sigma", [0.4, 1.0, 5.0])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_round_of_poisson_sampling(epsilon: float, sigma: float, p: float) -> None:
    mixture = Mixture.of({(0,): 1.0 - p, (1,): p}, np.eye(1), 1.0 / sigma)
    with mp.workdps(40):
        present = [(1 - mp.mpf(p), mp.mpf(0)), (mp.mpf(p), 1 / mp.mpf(sigma))]
        absent = [(mp.mpf(1), mp.mpf(0))]
        e = mp.mpf(epsilon)
        remove = float(mixture_delta(present, absent, e))
        add = float(mixture_delta(absent, present, e, increasing=False))
        replace = float(mixture_delta(present, [(w, -c) for w, c in present], e))
    assert hockey_stick(mixture, nothing(1), epsilon) == pytest.approx(remove, rel=1e-9, abs=1e-290)
    assert hockey_stick(nothing(1), mixture, epsilon) == pytest.approx(add, rel=1e-9, abs=1e-290)
    assert hockey_stick(mixture, mixture.mirrored, epsilon) == pytest.approx(replace, rel=1e-9, abs=1e-290)


def plane(p: Mixture, q: Mixture, epsilon: float) -> float:
    """Return δ(ε) in two dimensions along the given axes: for each y₁ a root and a sum of tails, then adaptive quadrature."""

    def parts(mixture: Mixture, x: float, tail: Callable[[Array], Array]) -> float:
        return float((mixture.weights * norm.pdf(x - mixture.means[:, 0])) @ tail(mixture.means[:, 1]))

    def line(x: float) -> float:
        def excess(y: float) -> float:
            def density(mixture: Mixture) -> float:
                means = mixture.means
                return float(logsumexp(means @ [x, y] - 0.5 * (means**2).sum(axis=1), b=mixture.weights))

            return density(p) - density(q) - epsilon

        if excess(60.0) < 0.0:
            return 0.0
        # If even y₂ = −200 is in the set, the whole line is.
        root = -200.0 if excess(-200.0) > 0.0 else brentq(excess, -200.0, 60.0, xtol=1e-12, rtol=1e-14)
        return parts(p, x, lambda m: norm.sf(root - m)) - math.exp(epsilon) * parts(q, x, lambda m: norm.sf(root - m))

    # Outside of these pieces either mixture has a mass below 1e-15.
    pieces = [quad(line, a, a + 4.0, epsabs=1e-13, epsrel=1e-9, limit=200)[0] for a in range(-8, 16, 4)]
    return math.fsum(pieces)


SMALL = {
    "warm": Mixture.of(renewal_law(2, 2, 0.3, warm=True), lower_toeplitz(np.array([0.8, 0.6]), 2), 1 / 0.8),
    "Poisson": Mixture.of(renewal_law(2, 1, 0.02, warm=False), np.eye(2), 1.0),
    "bins": Mixture.of(bin_law(2, 2), np.array([[1.0, 0.0], [0.7, 0.5]]), 1 / 0.6),
    "users": Mixture.of(users_law(2, 1, 0.2, 2, warm=False), lower_toeplitz(np.array([0.9, 0.3]), 2), 1 / 1.4),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("epsilon", [0.0, 2.5])
def test_two_rounds_along_other_axes(name: str, epsilon: float) -> None:
    mixture = SMALL[name]
    for p, q in ((mixture, nothing(2)), (mixture, mixture.mirrored)):
        assert hockey_stick(p, q, epsilon) == pytest.approx(plane(p, q, epsilon), rel=1e-8)


LAWS = {
    "cold": (renewal_law(3, 1, 0.15, warm=False), np.eye(3), 0.7),
    "warm": (renewal_law(4, 2, 0.3, warm=True), lower_toeplitz(np.array([1.0, 0.5, 0.375, 0.3]), 4), 1.0),
    "small noise": (renewal_law(3, 2, 0.05, warm=True), lower_toeplitz(np.array([1.0, 0.5, 0.375]), 3), 0.25),
    "rare": (renewal_law(3, 1, 1e-6, warm=False), np.eye(3), 0.5),
    "phases": (phase_law(4, 2, 0.4), lower_toeplitz(np.array([1.0, 0.5]), 4), 1.0),
    "always": (renewal_law(4, 3, 1.0, warm=True), lower_toeplitz(np.array([0.8, 0.4]), 4), 1.0),
    "bins": (bin_law(5, 3), lower_toeplitz(np.array([1.0, 0.5, 0.3]), 5), 0.8),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_directions_are_one_function_of_two_signs(name: str, epsilon: float) -> None:
    """H_α(Q‖P) = 1 − α + α·H_{1/α}(P‖Q), where both sides integrate over different sets."""
    law, matrix, sigma = LAWS[name]
    assert sum(law.values()) == pytest.approx(1.0, rel=1e-14)
    p, q = Mixture.of(law, matrix, 1.0 / sigma), nothing(len(matrix))
    for one, other in ((p, q), (q, p), (p, p.mirrored)):
        reflected = -math.expm1(epsilon) + math.exp(epsilon) * hockey_stick(one, other, -epsilon)
        # The right-hand side suffers from cancellation if δ is small.
        assert hockey_stick(other, one, epsilon) == pytest.approx(reflected, rel=1e-7, abs=1e-9 * math.exp(epsilon))


@pytest.mark.parametrize("name", LAWS)
def test_finer_grids_say_the_same(name: str) -> None:
    law, matrix, sigma = LAWS[name]
    p, q = Mixture.of(law, matrix, 1.0 / sigma), nothing(len(matrix))
    for epsilon in (0.0, 2.0, 6.0):
        assert hockey_stick(p, q, epsilon) == pytest.approx(hockey_stick(p, q, epsilon, agreement=1e-9), rel=1e-7)


def test_independent_parts_are_one_mixture_on_the_product() -> None:
    """Two rounds of Poisson sampling give the same as one law of two rounds and as a product of laws."""
    both = Mixture.of(renewal_law(2, 1, 0.3, warm=False), np.eye(2), 1.0)
    one = Mixture.of(renewal_law(1, 1, 0.3, warm=False), np.eye(1), 1.0)
    assert hockey_stick(one.beside(one), nothing(2), 1.0) == pytest.approx(
        hockey_stick(both, nothing(2), 1.0), rel=1e-12
    )


@pytest.mark.parametrize("name", ["always", "bins"])
def test_few_patterns_against_random_outcomes(name: str) -> None:
    """Means that span fewer dimensions than there are rounds agree with estimates from random outcomes."""
    law, matrix, sigma = LAWS[name]
    p, q = Mixture.of(law, matrix, 1.0 / sigma), nothing(len(matrix))
    rng = np.random.default_rng(4)
    chosen = p.means[rng.choice(len(p.weights), 1_000_000, p=p.weights / p.weights.sum())]
    y = chosen + rng.normal(size=chosen.shape)
    loss = logsumexp(y @ p.means.T - 0.5 * (p.means**2).sum(axis=1), b=p.weights, axis=1)
    for epsilon in (0.5, 2.0):
        values = np.maximum(0.0, -np.expm1(epsilon - loss))
        assert abs(values.mean() - hockey_stick(p, q, epsilon)) < 4.0 * values.std() / math.sqrt(len(values))


@cache
def judged_outcomes() -> list[tuple[Mixture, Mixture, Array]]:
    """Return the pair of truncated batches in both directions, and the likelihood ratio at random outcomes of the first.

    P has means of 0, 1 and 2 columns, Q of 0 and −1.
    """
    present, absent = pair_given(renewal_law(3, 2, 0.4, warm=True), (0, 2, 3), 2)
    matrix = lower_toeplitz(np.array([0.8, 0.6]), 3)
    p, q = (Mixture.of(side, matrix, 1.0) for side in (present, absent))
    rng = np.random.default_rng(3)
    found = []
    for one, other in ((p, q), (q, p)):
        chosen = one.means[rng.choice(len(one.weights), 400_000, p=one.weights / one.weights.sum())]
        y = chosen + rng.normal(size=chosen.shape)
        densities = [np.exp(y @ m.means.T - 0.5 * (m.means**2).sum(axis=1)) @ m.weights for m in (one, other)]
        found.append((one, other, densities[1] / densities[0]))
    return found


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_means_on_both_sides_against_random_outcomes(epsilon: float) -> None:
    for one, other, ratio in judged_outcomes():
        values = np.maximum(0.0, 1.0 - math.exp(epsilon) * ratio)
        error = float(values.std()) / math.sqrt(len(values))
        assert abs(float(values.mean()) - hockey_stick(one, other, epsilon)) < 4.0 * error


@pytest.mark.parametrize("direction", ["remove", "add", "replace"])
@pytest.mark.parametrize("kind", ["b-min-sep", "user-b-min-sep"])
def test_enclosures_against_random_outcomes(kind: str, direction: str, tmp_path: Path) -> None:
    """Estimates from samples of the true law, with the two likelihood ratios that enclose the true one, agree with the oracle."""
    sampler = {"kind": kind, "min_separation": 1, "records_per_user": 2, "start": "cold"}
    document = sectioned(
        "adjacency=zero-out iterations=3 sampling_probability=0.3 matrix=blt scales=[0.5] decays=[0.7] multiplier=1.3",
        sampler=sampler,
    )
    truth = Truth(document, tmp_path)
    law, matrix = law_of(document), lower_toeplitz(column(document["matrix"], 3), 3)
    matrix = matrix / np.linalg.norm(matrix, axis=0).max() / 1.3
    points, weights = np.array(list(law), dtype=float), np.array(list(law.values()))
    means, squares = points @ matrix.T, (matrix**2).sum(axis=0)
    gram = matrix.T @ matrix
    charges = (gram - np.diag(np.diag(gram))).sum(axis=1)
    rng = np.random.default_rng(8)
    size = 400_000
    y = rng.normal(size=(size, 3))
    if direction != "add":
        y += means[rng.choice(len(weights), size, p=weights / weights.sum())]

    extras = {"none": np.zeros(3), "charged": charges}

    def ratios(sign: float) -> dict[str, Array]:
        """Return the likelihood ratios by the numbers that are added to the squared norms of columns."""
        factors = {name: weights * np.exp(-0.5 * (points**2) @ (squares + extra)) for name, extra in extras.items()}
        return dict(zip(factors, (np.exp(sign * (y @ means.T)) @ np.stack([*factors.values()], axis=1)).T, strict=True))

    up, down = ratios(1.0), ratios(-1.0) if direction == "replace" else {}
    for epsilon in (0.3, 2.0):
        enclosed = truth.enclosure(direction, epsilon)
        assert enclosed is not None
        if direction != "replace":
            assert enclosed[0] <= truth.delta(direction, epsilon) <= enclosed[1]
        for expected, above, below in zip(enclosed, ("charged", "none"), ("none", "charged"), strict=True):
            loss = {
                "remove": lambda above, _: np.log(up[above]),
                "add": lambda _, below: -np.log(up[below]),
                "replace": lambda above, below: np.log(up[above]) - np.log(down[below]),
            }[direction](above, below)
            values = np.maximum(0.0, -np.expm1(epsilon - loss))
            # If no sample shows a value, it is small.
            assert abs(float(values.mean()) - expected) < 4.0 * float(values.std()) / math.sqrt(size) + 1e-6
