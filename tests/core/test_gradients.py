"""Derivatives of δ in the matrix and in σ: against closed forms, quadrature, enumeration and differences."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from patterns import Patterns, exact_delta, renewal_patterns
from sampled_tools import Law, bin_law, lower_toeplitz, phase_law, users_law
from scipy.stats import norm  # type: ignore[import-untyped]
from snapshots import Snapshot

from pyaccount import _core

Array = np.ndarray
Mechanism = Callable[[Array], _core.Sampled]

#: Plain samples, tilted ones to either side, and a scaled law.
REMOVE: list[tuple[int, list[float], float]] = [(48, [], 0.0), (48, [], 0.75), (32, [0.4], 1.4)]
ADD: list[tuple[int, list[float], float]] = [(48, [], 0.0), (48, [], -0.75), (32, [0.4], -0.4)]


def gradient(mechanism: _core.Sampled, direction: str, epsilon: float, **options: Any) -> _core.DeltaGradient:
    arguments: dict[str, Any] = {
        "origin": None,
        "key": (11, 3, 0, 0),
        "first": 0,
        "count": 64,
        "threads": 2,
        "time_limit": None,
        "components": REMOVE if direction == "remove" else ADD,
    }
    arguments.update(options)
    return mechanism.gradient(direction, arguments.pop("components"), epsilon, **arguments)


def patterns_of(law: Law) -> Patterns:
    return np.array(list(law), dtype=float), np.array(list(law.values()))


def gram(column: Array, n: int, bins: int) -> Array:
    """Return the Gram matrix of the modes of a Toeplitz matrix with this first column."""
    modes = np.array([lower_toeplitz(column, n) @ np.array(x, dtype=float) for x in bin_law(n, bins)])
    return np.asarray(modes @ modes.T)


#: A mechanism by its first column, the patterns of two rounds (bins: the two bins), and the column.
CASES: dict[str, tuple[Mechanism, Patterns, list[float]]] = {
    "no matrix": (
        lambda c: _core.Sampled.renewal(c.tolist(), 2, 1, 0.3, False),
        renewal_patterns(2, 1, 0.3, warm=False),
        [1.2],
    ),
    "cold": (
        lambda c: _core.Sampled.renewal(c.tolist(), 2, 2, 0.4, False),
        renewal_patterns(2, 2, 0.4, warm=False),
        [1.1, 0.6],
    ),
    "warm": (
        lambda c: _core.Sampled.renewal(c.tolist(), 2, 3, 0.5, True),
        renewal_patterns(2, 3, 0.5, warm=True),
        [1.1, 0.6],
    ),
    "users": (
        lambda c: _core.Sampled.users(c.tolist(), 2, 2, 0.3, 2, True),
        patterns_of(users_law(2, 2, 0.3, 2, warm=True)),
        [0.9, 0.5],
    ),
    "phases": (lambda c: _core.Sampled.phases(c.tolist(), 2, 2, 0.5), patterns_of(phase_law(2, 2, 0.5)), [1.1, 0.6]),
    "bins": (
        lambda c: _core.Sampled.bins(gram(c, 3, 2).ravel().tolist(), 3),
        (np.eye(2), np.array([0.5, 0.5])),
        [1.1, 0.6, 0.2],
    ),
}


def exact(name: str, direction: str, epsilon: float, column: Array) -> float:
    """Return δ by quadrature. Two modes of three rounds span a plane, so only their Gram matrix matters."""
    patterns = CASES[name][1]
    matrix = np.linalg.cholesky(gram(column, 3, 2)).T if name == "bins" else lower_toeplitz(column, 2)
    return exact_delta(patterns, matrix, direction, epsilon)


def by_coefficients(name: str, found: _core.DeltaGradient, column: Array) -> tuple[Array, Array]:
    """Return derivatives in the coefficients with their standard errors; those of bins by the chain rule."""
    derivatives, errors = np.array(found.derivatives), np.array(found.standard_errors)
    if name != "bins":
        return derivatives, errors
    h = 1e-6 * np.eye(len(column))
    change = np.array([(gram(column + one, 3, 2) - gram(column - one, 3, 2)).ravel() / 2e-6 for one in h])
    return change @ derivatives, np.abs(change) @ errors


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_derivatives_are_those_of_quadrature(name: str, direction: str) -> None:
    make, _, coefficients = CASES[name]
    column, epsilon = np.array(coefficients), 0.4

    def at(where: Array) -> float:
        return exact(name, direction, epsilon, where)

    found = gradient(make(column), direction, epsilon)
    assert abs(found.delta[0] - at(column)) < 4.0 * found.delta[1]
    own, errors = by_coefficients(name, found, column)
    h = 1e-4
    for j, one in enumerate(h * np.eye(len(column))):
        expected = (at(column + one) - at(column - one)) / (2.0 * h)
        assert abs(own[j] - expected) < 4.0 * errors[j], j
        assert errors[j] < 0.05 * abs(expected), "the test says something"
    expected = (at(column / (1.0 + h)) - at(column / (1.0 - h))) / (2.0 * h)
    assert abs(found.log_noise[0] - expected) < 4.0 * found.log_noise[1]
    assert found.log_noise[1] < 0.03 * abs(expected)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
def test_one_round_is_the_closed_form(epsilon: float) -> None:
    """δ = p·G_ĉ(α), α = 1 + (e^ε − 1)/p; the derivative of a Gaussian's profile in its sensitivity is φ(ĉ/2 − ln α/ĉ)."""
    p, c = 0.3, 1.7
    alpha = 1.0 + (math.exp(epsilon) - 1.0) / p
    found = gradient(_core.Sampled.renewal([c], 1, 1, p, False), "remove", epsilon)
    expected = p * norm.pdf(0.5 * c - math.log(alpha) / c)
    assert abs(found.derivatives[0] - expected) < 4.0 * found.standard_errors[0]
    assert found.standard_errors[0] < 0.02 * expected
    # The same as one bin if the record always takes part.
    bins = gradient(_core.Sampled.bins([c * c], 1), "remove", epsilon, components=[(64, [], 0.0), (64, [], 0.5)])
    expected = norm.pdf(0.5 * c - epsilon / c)
    assert abs(2.0 * c * bins.derivatives[0] - expected) < 4.0 * 2.0 * c * bins.standard_errors[0]


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_derivatives_are_those_of_the_enumeration(direction: str) -> None:
    """Six rounds: other samples, every pattern's density and its derivative written down."""
    n, b, p, epsilon, column = 6, 3, 0.3, 0.5, np.array([0.9, 0.5, 0.25])
    patterns, weights = renewal_patterns(n, b, p, warm=True)
    means = patterns @ lower_toeplitz(column, n).T
    rng = np.random.default_rng(8)
    y = rng.normal(size=(200_000, n))
    if direction == "remove":
        y += means[rng.choice(len(weights), size=len(y), p=weights / weights.sum())]
    terms = weights * np.exp(y @ means.T - 0.5 * (means**2).sum(axis=1))
    f = terms.sum(axis=1)
    # Coefficient j moves the mean of a pattern x along the pattern itself, j rounds later.
    moves = [patterns @ np.eye(n, k=j) for j in range(len(column))]
    steps = np.array([((y @ move.T - (means * move).sum(axis=1)) * terms).sum(axis=1) / f for move in moves])
    weight = np.where(f > math.exp(epsilon), 1.0, 0.0)
    if direction == "add":
        weight = np.where(math.exp(epsilon) * f < 1.0, -math.exp(epsilon) * f, 0.0)
    expected, spread = (weight * steps).mean(axis=1), (weight * steps).std(axis=1) / math.sqrt(len(y))
    found = gradient(_core.Sampled.renewal(column.tolist(), n, b, p, True), direction, epsilon)
    for own, error, other, further in zip(found.derivatives, found.standard_errors, expected, spread, strict=True):
        assert abs(own - other) < 4.0 * math.hypot(error, further)
        assert math.hypot(error, further) < 0.05 * abs(other)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_derivatives_are_those_of_the_estimate_itself(name: str, direction: str) -> None:
    """The derivatives are central differences of the estimate, for one matrix from the samples of another."""
    make, _, coefficients = CASES[name]
    origin, column, h = make(np.array(coefficients)), 1.03 * np.array(coefficients), 2e-6

    def at(where: Array) -> _core.DeltaGradient:
        return gradient(make(where), direction, 0.4, origin=origin, count=2)

    own, _ = by_coefficients(name, at(column), column)
    for j, one in enumerate(h * np.eye(len(column))):
        difference = (at(column + one).delta[0] - at(column - one).delta[0]) / (2.0 * h)
        # The chain rule of bins is itself a difference, with steps of 1e-6.
        assert own[j] == pytest.approx(difference, rel=1e-6, abs=1e-6 * max(abs(own))), j


@pytest.mark.parametrize("name", ["warm", "bins"])
def test_standard_errors_are_the_spread_of_fresh_samples(name: str) -> None:
    make, _, coefficients = CASES[name]
    mechanism = make(np.array(coefficients))
    runs = [gradient(mechanism, "remove", 0.4, key=(k, 3, 0, 0), count=8) for k in range(48)]
    for of in (
        lambda run: run.delta,
        lambda run: run.log_noise,
        lambda run: (run.derivatives[0], run.standard_errors[0]),
        lambda run: (run.derivatives[1], run.standard_errors[1]),
    ):
        values, errors = np.array([of(run) for run in runs]).T
        assert 0.65 < values.std(ddof=1) / np.sqrt(np.mean(errors**2)) < 1.45


def test_parts_agree_with_one_another() -> None:
    column = np.array([0.9, 0.5, 0.2])
    found = gradient(_core.Sampled.renewal(column.tolist(), 40, 4, 0.2, True), "remove", 1.0, count=4)
    assert found.samples == 4 * 1024
    assert 0.0 < found.effective_samples < found.samples
    assert found.log_noise[0] == pytest.approx(-column @ found.derivatives, rel=1e-12)
    assert -column @ found.covariances == pytest.approx(found.log_noise[1] ** 2, rel=1e-9)
    # A single shard gives no standard error of bins.
    alone = gradient(CASES["bins"][0](column), "remove", 0.4, count=1)
    assert set(alone.standard_errors) == {math.inf}
    assert math.isfinite(alone.delta[1])


@pytest.mark.parametrize("name", ["users", "bins"])
def test_the_answer_does_not_depend_on_threads(name: str) -> None:
    make, _, coefficients = CASES[name]
    mechanism, origin = make(1.02 * np.array(coefficients)), make(np.array(coefficients))
    one, two = (gradient(mechanism, "add", 0.2, origin=origin, threads=k, count=11) for k in (1, 2))
    fields = ("samples", "effective_samples", "delta", "log_noise", "derivatives", "standard_errors", "covariances")
    for field in fields:
        assert getattr(one, field) == getattr(two, field)


def test_what_is_far_from_where_samples_were_drawn_is_told() -> None:
    column = np.array([0.9, 0.5, 0.2])

    def at(scale: float) -> float:
        mechanism = _core.Sampled.renewal((scale * column).tolist(), 40, 4, 0.2, True)
        origin = _core.Sampled.renewal(column.tolist(), 40, 4, 0.2, True)
        return gradient(mechanism, "remove", 1.0, origin=origin, count=8).effective_samples

    assert at(1.0) > at(1.4) > at(2.0)


def test_what_has_no_gradient_is_refused(snapshot: Snapshot) -> None:
    good = _core.Sampled.renewal([0.8, 0.4], 9, 3, 0.2, True)
    bins = _core.Sampled.bins([1.0, 0.2, 0.2, 1.0], 9)
    gradient(good, "remove", 1.0, count=1)
    snapshot.raised(gradient, good, "replace", 1.0, count=1, components=REMOVE)
    snapshot.raised(gradient, good, "both", 1.0, count=1)
    snapshot.raised(lambda: gradient(good.truncated(40, 6), "remove", 1.0, count=1, components=[(128, [], 0.0)]))
    snapshot.raised(lambda: gradient(_core.Sampled.together([(good, 2)]), "remove", 1.0, count=1))
    snapshot.raised(gradient, good, "remove", 1.0, count=1, origin=bins)
    snapshot.raised(gradient, good, "remove", math.nan, count=1)
    snapshot.raised(gradient, good, "remove", 1.0, count=0)
    snapshot.raised(gradient, good, "remove", 1.0, count=1, components=[(128, [], 1.0)])
    snapshot.raised(gradient, bins, "remove", 1.0, count=1, components=[(64, [], 0.0), (64, [0.1, 0.1], 1.5)])
