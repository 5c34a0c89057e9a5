"""Records that hardly ever take part: one round against high precision, many rounds against an inverse Fourier transform."""

from __future__ import annotations

import functools
import itertools
import math

import mpmath
import numpy as np
import pytest

from pyaccount import _core

Group = tuple[int, float, float]  # rounds, sampling probability, noise multiplier


def one_round(probability: float, noise_multiplier: float, *, reverse: bool) -> _core.RoundProfile:
    return _core.RoundProfile.poisson(1, probability, noise_multiplier, two_sided=False, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("noise_multiplier", [0.2, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("probability", [9e-6, 1e-9])
def test_one_round_is_right_to_a_share_of_its_probability(
    probability: float, noise_multiplier: float, reverse: bool
) -> None:
    profile = one_round(probability, noise_multiplier, reverse=reverse)
    with mpmath.workdps(60):
        p, c = mpmath.mpf(probability), 1 / mpmath.mpf(noise_multiplier)
        for share in (
            -1e5,
            -2,
            -1,
            -1 + 1e-13,
            -1 + 1e-6,
            -0.9,
            -0.5,
            0,
            0.5,
            0.9,
            1 - 1e-9,
            1,
            1 + 1e-12,
            3,
            100,
            1e5,
        ):
            epsilon = share * probability
            exact = exact_delta(mpmath.mpf(epsilon), p, c, reverse=reverse)
            delta, error, _, _ = _core.Inspection.profile(profile, epsilon)
            assert abs(delta - exact) <= error
            assert error <= 1e-11 * max(float(exact), 1e-3 * probability) + 1e-11 * probability


def exact_delta(epsilon: mpmath.mpf, p: mpmath.mpf, c: mpmath.mpf, *, reverse: bool) -> mpmath.mpf:
    """δ from the two tails of P and Q themselves, with no formula of the code under test."""
    alpha = mpmath.exp(epsilon)
    ratio = ((1 / alpha if reverse else alpha) - (1 - p)) / p
    if ratio <= 0:
        return mpmath.mpf(0) if reverse else 1 - alpha
    y = mpmath.log(ratio) / c + c / 2
    if reverse:
        return mpmath.ncdf(y) - alpha * ((1 - p) * mpmath.ncdf(y) + p * mpmath.ncdf(y - c))
    return (1 - p) * mpmath.ncdf(-y) + p * mpmath.ncdf(c - y) - alpha * mpmath.ncdf(-y)


@functools.cache
def _outcomes() -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre nodes for an outcome y of one round, in panels that a Gaussian density is smooth on."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    panels = np.arange(-10.0, 14.0, 0.5)
    return (panels[:, None] + 0.25 * (nodes + 1.0)).ravel(), np.tile(0.25 * weights, len(panels))


def log_moment(s: np.ndarray, probability: float, noise_multiplier: float, *, reverse: bool) -> np.ndarray:
    """ln E e^{sL} of one round at complex s: E (e^{sL} − 1) by quadrature, in which nothing cancels."""
    y, weights = _outcomes()
    c = 1.0 / noise_multiplier
    excess = np.expm1(c * y - 0.5 * c * c)
    loss = np.log1p(probability * excess) * (-1.0 if reverse else 1.0)
    density = weights * np.exp(-0.5 * y * y) / math.sqrt(2.0 * math.pi)
    if not reverse:
        density = density * (1.0 + probability * excess)
    x = np.outer(s.real, loss)
    turned = np.outer(s.imag, loss)
    real = np.expm1(x) * np.cos(turned) - 2.0 * np.sin(0.5 * turned) ** 2
    return np.log1p((real + 1j * np.exp(x) * np.sin(turned)) @ density)


def inverted_delta(epsilon: float, groups: tuple[Group, ...], tilt: float, *, reverse: bool) -> float:
    """δ(ε) = e^{−aε}/π ∫ Re e^{−iuε} E e^{(a+iu)S} / ((a+iu)(a+1+iu)) du, for any a > 0: independent of every lattice."""
    nodes, weights = np.polynomial.legendre.leggauss(160)
    # Up to where the sum of the rounds has no more frequencies, or they weigh nothing.
    edges = np.concatenate([[0.0], 2.0 ** np.arange(0.0, 21.0, 0.5)])
    total = 0.0
    for low, high in itertools.pairwise(edges):
        u = low + 0.5 * (high - low) * (nodes + 1.0)
        s = tilt + 1j * u
        exponent = sum(count * log_moment(s, p, sigma, reverse=reverse) for count, p, sigma in groups) - s * epsilon
        total += 0.5 * (high - low) * float(weights @ (np.exp(exponent) / (s * (s + 1.0))).real)
        if np.max(exponent.real) < -45.0:
            break
    return total / math.pi


def epsilon_of(groups: tuple[Group, ...], delta: float, tolerance: float, *, reverse: bool) -> _core.ProvenInterval:
    rounds = [(one_round(p, sigma, reverse=reverse), count) for count, p, sigma in groups]
    return _core.answer_all([(rounds, None, delta, tolerance)], threads=2)[0]


CASES: list[tuple[tuple[Group, ...], float, bool]] = [
    (((10**6, 1e-6, 0.5),), 1e-6, False),
    (((10**6, 1e-7, 0.5),), 1e-7, False),
    (((10**6, 1e-7, 0.5),), 1e-7, True),
    (((10**6, 1e-9, 0.5),), 1e-9, False),
]


@pytest.mark.parametrize(("groups", "delta", "reverse"), CASES)
def test_an_interval_has_two_sides_and_holds_the_truth(groups: tuple[Group, ...], delta: float, reverse: bool) -> None:
    found = epsilon_of(groups, delta, 1e-4, reverse=reverse)
    assert 0.98 * found.upper <= found.lower <= found.upper
    # δ falls with ε, and the quadrature is good to 1e-6 of it.
    at_lower, at_upper = (inverted_delta(end, groups, 4.0, reverse=reverse) for end in (found.lower, found.upper))
    assert at_upper <= delta * (1.0 + 1e-6)
    assert at_lower >= delta * (1.0 - 1e-6)
