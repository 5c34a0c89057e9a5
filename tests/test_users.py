"""Users with several records each under b-min-sep sampling: enumeration, identities, the bound with shared records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import toeplitz  # type: ignore[import-untyped]
from scipy.special import logsumexp  # type: ignore[import-untyped]
from scipy.stats import binom

from pyaccount import _core

Array = np.ndarray[Any, np.dtype[np.float64]]


def patterns(n: int, b: int, p: float, k: int, *, warm: bool) -> tuple[Array, Array]:
    """Every vector of participation counts with its probability, by going through the rounds."""
    counts = binom.pmf(np.arange(k + 1), k, p)
    joins = 1.0 - counts[0]
    total = 1.0 + (b - 1) * joins
    starts = [1.0 / total, *[joins / total] * (b - 1)] if warm else [1.0]
    found: list[tuple[list[int], float]] = []
    for start, weight in enumerate(starts):
        open_ends = [([0] * n, start, weight)]
        while open_ends:
            taken, now, probability = open_ends.pop()
            if now >= n:
                found.append((taken, probability))
                continue
            open_ends.append((taken, now + 1, probability * counts[0]))
            for j in range(1, k + 1):
                joined = taken.copy()
                joined[now] = j
                open_ends.append((joined, now + b, probability * counts[j]))
    rows, weights = zip(*[item for item in found if item[1] > 0], strict=True)
    return np.array(rows, dtype=float), np.array(weights)


def matrix(column: Array, n: int) -> Array:
    full = np.zeros(n)
    full[: len(column)] = column
    return np.asarray(toeplitz(full, np.zeros(n)))


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize(
    ("n", "b", "bands", "p", "k"),
    [
        (1, 1, 1, 0.3, 3),
        (5, 1, 1, 0.2, 2),
        (6, 2, 2, 0.4, 3),
        (7, 3, 3, 0.25, 2),
        (7, 4, 2, 1.0, 3),
        (8, 4, 4, 0.05, 5),
    ],
)
@pytest.mark.parametrize("sigma", [0.5, 1.0, 6.0])
def test_densities_are_the_sum_over_all_patterns(  # noqa: PLR0917
    n: int, b: int, bands: int, p: float, k: int, sigma: float, warm: bool
) -> None:
    rows, weights = patterns(n, b, p, k, warm=warm)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    rng = np.random.default_rng(n + b)
    column = np.sort(rng.uniform(0.1, 1.0, bands))[::-1]
    means = rows @ matrix(column, n).T / sigma
    likely = means[rng.choice(len(weights), 6, p=weights / weights.sum())] + rng.normal(size=(6, n))
    y = np.concatenate([likely, rng.normal(size=(4, n)), 12.0 * rng.normal(size=(3, n))])
    mechanism = _core.Sampled.users((column / sigma).tolist(), n, b, p, k, warm)
    for sign, computed in zip((1.0, -1.0), np.array(mechanism.log_densities(y.tolist())).T, strict=True):
        exponents = sign * y @ means.T - 0.5 * (means**2).sum(axis=1) + np.log(weights)
        np.testing.assert_allclose(computed, logsumexp(exponents, axis=1), rtol=0, atol=1e-10)


def test_one_record_is_the_plain_sampler() -> None:
    column = [0.8, 0.5, 0.3]
    y = np.random.default_rng(3).normal(size=(9, 40)).tolist()
    for warm in (False, True):
        users = _core.Sampled.users(column, 40, 5, 0.2, 1, warm)
        assert users.log_densities(y) == _core.Sampled.renewal(column, 40, 5, 0.2, warm).log_densities(y)


def test_proposals_agree_with_plain_samples_and_obey_their_caps() -> None:
    mechanism = _core.Sampled.users([0.6, 0.3], 30, 4, 0.05, 3, True)
    joins = 1 - 0.95**3
    for direction, plain, stretched in (("remove", 1.0, 1.6), ("add", 0.0, -0.8), ("replace", 1.0, 1.3)):
        found = []
        for stretch, parameter in ((plain, joins), (stretched, 0.25)):
            cap, _, _ = mechanism.bounds(direction, parameter, stretch, 1.0)
            shards, _ = mechanism.simulate(
                direction,
                parameter,
                stretch,
                [(1.0, cap, [])],
                edges=None,
                key=(3, 1, 1, 0),
                first=0,
                count=96,
                threads=0,
                time_limit=None,
            )
            count = 96 * _core.SHARD_SIZE
            mean = sum(shard[0][1] for shard in shards) / count
            square = sum(shard[0][2] for shard in shards) / count
            # V is at most the cap, so its mean square is at most the cap times its mean.
            assert square <= cap * mean * (1 + 1e-9)
            found.append((mean, np.sqrt((square - mean**2) / count)))
        (first, error), (second, other) = found
        assert abs(first - second) < 4.5 * np.hypot(error, other), direction
        assert second > 0.0


def test_samples_come_from_the_law() -> None:
    """The mean of the plain losses' δ against quadrature, where one round decides: Bin(j; 3, p) N(j) against N(0)."""
    p, k, sigma, epsilon = 0.3, 3, 1.5, 0.4
    mechanism = _core.Sampled.users([1 / sigma], 1, 1, p, k, False)
    exact = _core.Profile.poisson(k, p, sigma, two_sided=False, reverse=False).at(epsilon)[0]
    shards, _ = mechanism.simulate(
        "remove",
        1 - (1 - p) ** k,
        1.0,
        [(epsilon, 1.0, [])],
        edges=None,
        key=(5, 1, 1, 0),
        first=0,
        count=64,
        threads=0,
        time_limit=None,
    )
    count = 64 * _core.SHARD_SIZE
    mean = sum(shard[0][1] for shard in shards) / count
    square = sum(shard[0][2] for shard in shards) / count
    assert abs(mean - exact) < 4.5 * np.sqrt((square - mean**2) / count)
