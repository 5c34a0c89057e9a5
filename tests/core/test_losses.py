"""The basis of sampling: exact log densities, proven weight bounds, unbiased values, streams that never change."""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np
import pytest
from log_sums import logsumexp
from patterns import Patterns, exact_delta, log_ratio, renewal_patterns
from places import GOLDEN
from sampled_tools import estimated, lower_toeplitz
from scipy.special import log_ndtr  # type: ignore[import-untyped]

import pyaccount
from pyaccount import _core

Array = np.ndarray
PEER = json.loads((GOLDEN / "jax_privacy.json").read_text(encoding="utf-8"))


def square_root(bands: int) -> Array:
    """Return the banded square root with columns of norm 1."""
    lags = np.arange(1, bands)
    column = np.concatenate([[1.0], np.cumprod((2 * lags - 1) / (2 * lags))])
    # The sum is exact, since a library's sum would depend on the processor.
    return np.asarray(column / math.sqrt(math.fsum(np.square(column))))


def bin_patterns(n: int, bins: int) -> Patterns:
    return np.array([np.arange(n) % bins == t for t in range(bins)], dtype=float), np.full(bins, 1.0 / bins)


def draws(patterns: Patterns, matrix: Array, seed: int) -> Array:
    """Return outcomes in units of σ: six from P, five from N(0, I), four far away."""
    rng = np.random.default_rng(seed)
    n = len(matrix)
    which = rng.choice(len(patterns[1]), size=6, p=patterns[1] / patterns[1].sum())
    likely = patterns[0][which] @ matrix.T + rng.normal(size=(6, n))
    far = rng.normal(size=(2, n)) * 12.0
    steep = np.linspace(-9.0, 9.0, n) * rng.choice([-1.0, 1.0], size=(2, n))
    return np.concatenate([likely, rng.normal(size=(5, n)), far, steep])


def check(found: list[tuple[float, float]], mixture: Array, mirrored: Array, tolerance: float) -> None:
    """The loss under zero-out is the first; under replacement it is the difference."""
    first, second = np.array(found).T
    np.testing.assert_allclose(first, mixture, rtol=0, atol=tolerance)
    np.testing.assert_allclose(second, mirrored, rtol=0, atol=tolerance)
    np.testing.assert_allclose(first - second, mixture - mirrored, rtol=0, atol=tolerance)


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 6.0])
@pytest.mark.parametrize(
    ("n", "b", "bands", "p"),
    [
        (1, 1, 1, 0.3),
        (1, 4, 1, 0.3),
        (3, 7, 3, 0.4),
        (3, 7, 1, 1.0),
        (6, 1, 1, 0.2),
        (8, 2, 2, 1.0),
        (9, 3, 3, 0.25),
        (9, 4, 2, 0.6),
        (10, 3, 1, 1e-3),
        (10, 5, 5, 0.9),
        (10, 12, 10, 0.1),
        (10, 3, 3, 1.0),
        (10, 4, 3, 1.0),
    ],
)
def test_b_min_sep_is_the_sum_over_all_patterns(
    n: int, b: int, bands: int, p: float, sigma: float, *, warm: bool
) -> None:
    patterns = renewal_patterns(n, b, p, warm=warm)
    assert patterns[1].sum() == pytest.approx(1.0, abs=1e-12)
    rng = np.random.default_rng(n + b)
    for column in (square_root(bands), rng.uniform(0.1, 1.0, bands)):
        matrix = lower_toeplitz(column, n) / sigma
        y = draws(patterns, matrix, seed=bands)
        found = _core.Inspection.log_densities(_core.Sampled.renewal(column / sigma, n, b, p, warm), y)
        check(found, log_ratio(patterns, matrix, y), log_ratio(patterns, matrix, -y), 1e-10)


def mode_products(patterns: Patterns, matrix: Array, outcomes: Array) -> Array:
    return np.asarray(outcomes @ (patterns[0] @ matrix.T).T)


def bins_of(patterns: Patterns, matrix: Array) -> _core.Sampled:
    modes = patterns[0] @ matrix.T
    return _core.Sampled.bins((modes @ modes.T).ravel(), len(matrix))


@pytest.mark.parametrize("sigma", [0.3, 1.0, 6.0])
@pytest.mark.parametrize(
    ("n", "bins", "bands"), [(1, 1, 1), (6, 1, 2), (10, 4, 3), (10, 3, 10), (7, 7, 2), (12, 9, 3), (30, 11, 4)]
)
def test_balls_in_bins_is_the_sum_over_all_bins(n: int, bins: int, bands: int, sigma: float) -> None:
    patterns = bin_patterns(n, bins)
    dense = np.tril(np.random.default_rng(bins).uniform(0.0, 1.0, (n, n)))
    for matrix in (lower_toeplitz(square_root(bands), n) / sigma, dense / sigma):
        y = draws(patterns, matrix, seed=n)
        found = _core.Inspection.log_densities(bins_of(patterns, matrix), mode_products(patterns, matrix, y))
        check(found, log_ratio(patterns, matrix, y), log_ratio(patterns, matrix, -y), 1e-10)


def log_recursion(column: Array, b: int, p: float, outcomes: Array, *, warm: bool) -> Array:
    """Return the result of the recursion in logarithms with numpy, with single sums in place of transforms."""
    n = outcomes.shape[1]
    f = np.zeros((n + b, len(outcomes)))
    with np.errstate(divide="ignore"):
        stay, join = np.log1p(-p), np.log(p)
    for i in reversed(range(n)):
        c = column[: n - i]
        a = outcomes[:, i : i + len(c)] @ c - 0.5 * (c @ c)
        f[i] = np.logaddexp(stay + f[i + 1], join + a + f[i + b])
    if not warm:
        return f[0]
    terms = np.concatenate([f[:1], join + f[1:b]])
    return np.asarray(logsumexp(terms, axis=0) - np.log1p((b - 1) * p))


def exact_recursion(column: Array, b: int, p: float, y: Array, *, warm: bool) -> mp.mpf:
    """Return ln dP/dR by f_i = (1 − p) f_{i+1} + p e^{a_i} f_{i+b}, with 50 digits and unbounded exponents."""
    with mp.workdps(50):
        n = len(y)
        c = [mp.mpf(float(v)) for v in column]
        z = [mp.mpf(float(v)) for v in y]
        q = mp.mpf(p)
        f = [mp.mpf(1)] * (n + b)
        for i in reversed(range(n)):
            reach = range(min(len(c), n - i))
            a = mp.fsum(c[j] * z[i + j] - c[j] ** 2 / 2 for j in reach)
            f[i] = (1 - q) * f[i + 1] + q * mp.exp(a) * f[i + b]
        if not warm:
            return mp.log(f[0])
        return mp.log((f[0] + q * mp.fsum(f[1:b])) / (1 + (b - 1) * q))


def sampled_outcome(column: Array, n: int, b: int, p: float, rng: np.random.Generator) -> Array:
    """Return one y/σ from P, with a start anywhere."""
    x = np.zeros(n)
    available = int(rng.integers(b))
    for i in range(n):
        if i >= available and rng.random() < p:
            x[i] = 1.0
            available = i + b
    return np.asarray(np.convolve(x, column)[:n] + rng.normal(size=n))


#: b, bands, and p of runs of 300 rounds.
LONG = [(1, 1, 0.05), (4, 3, 0.1), (20, 8, 0.02), (16, 16, 1.0)]


def long_outcomes(column: Array, b: int, p: float) -> Array:
    """Return one outcome that is likely, one of noise alone, and one far away."""
    rng = np.random.default_rng(b)
    return np.array([sampled_outcome(column, 300, b, p, rng), rng.normal(size=300), 20.0 * rng.normal(size=300)])


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("sigma", [0.05, 50.0])
@pytest.mark.parametrize(("b", "bands", "p"), LONG)
def test_the_recursion_in_logarithms_has_the_digits_of_doubles(
    b: int, bands: int, p: float, sigma: float, *, warm: bool
) -> None:
    """The most and the least noise for which long runs are checked below."""
    column = square_root(bands) / sigma
    (*_, outcome) = long_outcomes(column, b, p)
    expected = float(exact_recursion(column, b, p, outcome, warm=warm))
    (found,) = log_recursion(column, b, p, outcome[None, :], warm=warm)
    assert abs(found - expected) <= 1e-12 * max(1.0, abs(expected))


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("sigma", [0.05, 0.1, 0.5, 3.0, 50.0])
@pytest.mark.parametrize(("b", "bands", "p"), LONG)
def test_many_rounds_in_and_out_of_the_linear_domain(b: int, bands: int, p: float, sigma: float, *, warm: bool) -> None:
    column = square_root(bands) / sigma
    y = long_outcomes(column, b, p)
    # One at a time, since otherwise eight samples would leave the linear domain together.
    mechanism = _core.Sampled.renewal(column, y.shape[1], b, p, warm)
    found = np.concatenate([_core.Inspection.log_densities(mechanism, [outcome]) for outcome in y])
    for values, sign in zip(found.T, (1.0, -1.0), strict=True):
        expected = log_recursion(column, b, p, sign * y, warm=warm)
        assert np.all(np.abs(values - expected) <= 1e-9 * np.maximum(1.0, np.abs(expected)))


@pytest.mark.parametrize(("n", "b"), [(2, 1), (4, 1), (4, 2), (4, 3)])
@pytest.mark.parametrize("square", [600.0, 690.0, 715.0, 725.0, 730.0])
def test_p_of_one_near_the_smallest_numbers(n: int, b: int, square: float) -> None:
    """With p = 1 f may underflow step by step, and subnormal numbers have few digits."""
    c = square**0.5
    mechanism = _core.Sampled.renewal([c], n, b, 1.0, False)
    for y in 0.2 * np.random.default_rng(n).normal(size=(40, n)):
        ((found, mirrored),) = _core.Inspection.log_densities(mechanism, [y])
        assert found == pytest.approx((c * y - 0.5 * square)[::b].sum(), rel=1e-9)
        assert mirrored == pytest.approx((-c * y - 0.5 * square)[::b].sum(), rel=1e-9)


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize(
    ("n", "b", "bands", "p", "sigma"),
    [
        (100, 100, 100, 0.2, 0.7),
        (700, 150, 128, 0.05, 0.5),
        (1500, 128, 100, 0.3, 2.0),
        (3000, 256, 256, 1e-3, 0.4),
        (2500, 600, 513, 0.01, 0.2),
    ],
)
def test_long_bands(n: int, b: int, bands: int, p: float, sigma: float, *, warm: bool) -> None:
    rng = np.random.default_rng(bands)
    for raw in (square_root(bands), rng.uniform(0.5, 1.0, bands) / bands**0.5):
        column = raw / sigma
        y = np.array([sampled_outcome(column, n, b, p, rng) for _ in range(3)] + [*rng.normal(size=(4, n))])
        found = np.array(_core.Inspection.log_densities(_core.Sampled.renewal(column, n, b, p, warm), y))
        for values, sign in ((found[:, 0], 1.0), (found[:, 1], -1.0)):
            expected = log_recursion(column, b, p, sign * y, warm=warm)
            assert np.all(np.abs(values - expected) <= 1e-9 * np.maximum(1.0, np.abs(expected)))


@pytest.mark.parametrize("case", PEER["cases"], ids=lambda c: f"{c['sampler']}-{c['iterations']}-{c['seed']}")
def test_agreement_with_jax_privacy(case: dict[str, Any]) -> None:
    sigma, n = case["noise_multiplier"], case["iterations"]
    y = np.array(case["y"]) / sigma
    if case["sampler"] == "balls_in_bins":
        matrix = lower_toeplitz(np.array(case["coefficients"]), n)
        patterns = bin_patterns(n, case["bins"])
        products = mode_products(patterns, matrix / sigma, y)
        found = _core.Inspection.log_densities(bins_of(patterns, matrix / sigma), products)
    else:
        mechanism = _core.Sampled.renewal(
            np.array(case["coefficients"]) / sigma,
            n,
            case["min_separation"],
            case["sampling_probability"],
            case["start"] == "warm",
        )
        found = _core.Inspection.log_densities(mechanism, y)
    np.testing.assert_allclose([mixture for mixture, _ in found], case["loss"], rtol=0, atol=1e-9)


def test_the_peers_goldens_say_where_they_come_from() -> None:
    assert "2.0.0" in PEER["provenance"]["version"]
    assert len(PEER["cases"]) >= 15
    shipped_differently = [case for case in PEER["cases"] if case["loss"] != case["loss_as_shipped"]]
    # As the provenance says: long columns in b-min-sep, single precision in bins.
    assert shipped_differently
    for case in shipped_differently:
        assert case["sampler"] == "balls_in_bins" or len(case["coefficients"]) >= 3


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("p", [1e-3, 0.4, 1.0])
def test_separation_of_one_is_a_product_of_poisson_rounds(p: float, *, warm: bool) -> None:
    c, y = 0.8, np.random.default_rng(0).normal(size=(6, 40))
    found = _core.Inspection.log_densities(_core.Sampled.renewal([c], 40, 1, p, warm), y)
    for values, sign in zip(np.array(found).T, (1.0, -1.0), strict=True):
        expected = np.log1p(p * np.expm1(sign * c * y - 0.5 * c * c)).sum(axis=1)
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize(("n", "bins", "bands"), [(24, 6, 6), (25, 6, 3), (13, 5, 1), (40, 12, 9), (5, 8, 4)])
def test_warm_certain_sampling_is_balls_in_bins(n: int, bins: int, bands: int) -> None:
    column = square_root(bands) / 0.9
    patterns, matrix = bin_patterns(n, bins), lower_toeplitz(column, n)
    y = draws(patterns, matrix, seed=3)
    renewal = np.array(_core.Inspection.log_densities(_core.Sampled.renewal(column, n, bins, 1.0, True), y))
    in_bins = np.array(_core.Inspection.log_densities(bins_of(patterns, matrix), mode_products(patterns, matrix, y)))
    np.testing.assert_allclose(renewal, in_bins, rtol=0, atol=1e-10)


DOCUMENT = """
pyaccount: 1
name: losses
privacy: {{adjacency: {adjacency}, epsilon: 2, delta: solve}}
training: {{{training}}}
sampler: {{{sampler}}}
matrix: {{{matrix}}}
noise: {{multiplier: {sigma}}}
"""


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("start", ["cold", "warm"])
def test_documents_scale_the_coefficients_by_the_noise(
    adjacency: str, sigma: float, start: str, tmp_path: Path
) -> None:
    n, b, p = 9, 3, 0.25
    text = DOCUMENT.format(
        adjacency=adjacency,
        sigma=sigma,
        training=f"dataset_size: 1000, iterations: {n}, sampling_probability: {p}",
        sampler=f"kind: b-min-sep, min_separation: {b}, start: {start}",
        matrix="kind: toeplitz, coefficients: [1, 0.5, 0.25], normalize: false",
    )
    (tmp_path / "document.yaml").write_text(text, encoding="utf-8")
    mechanism = pyaccount.compile(tmp_path / "document.yaml").at().mechanism()
    assert set(mechanism.directions) == ({"replace"} if adjacency == "replace-one" else {"remove", "add"})
    patterns = renewal_patterns(n, b, p, warm=start == "warm")
    matrix = lower_toeplitz(np.array([1.0, 0.5, 0.25]), n) / sigma
    y = draws(patterns, matrix, seed=1)
    check(
        _core.Inspection.log_densities(mechanism.core, y),
        log_ratio(patterns, matrix, y),
        log_ratio(patterns, matrix, -y),
        1e-10,
    )


@pytest.mark.parametrize("sigma", [0.4, 3.0])
def test_documents_put_records_in_bins(sigma: float, tmp_path: Path) -> None:
    n, bins = 10, 4
    matrix = np.tril(np.random.default_rng(5).uniform(0.1, 1.0, (n, n)))
    np.save(tmp_path / "matrix.npy", matrix)
    text = DOCUMENT.format(
        adjacency="zero-out",
        sigma=sigma,
        training=f"dataset_size: 1000, iterations: {n}",
        sampler=f"kind: balls-in-bins, bins: {bins}",
        matrix="kind: dense, file: matrix.npy, normalize: false",
    )
    (tmp_path / "document.yaml").write_text(text, encoding="utf-8")
    core = pyaccount.compile(tmp_path / "document.yaml").at().mechanism().core
    patterns = bin_patterns(n, bins)
    y = draws(patterns, matrix / sigma, seed=2)
    found = _core.Inspection.log_densities(core, mode_products(patterns, matrix / sigma, y))
    check(found, log_ratio(patterns, matrix / sigma, y), log_ratio(patterns, matrix / sigma, -y), 1e-10)


def short_bands() -> _core.Sampled:
    return _core.Sampled.renewal(square_root(5) / 0.8, 77, 9, 0.1, True)


def long_bands() -> _core.Sampled:
    return _core.Sampled.renewal(square_root(200) / 0.6, 1000, 230, 0.05, True)


def some_bins() -> _core.Sampled:
    return bins_of(bin_patterns(30, 11), lower_toeplitz(square_root(6), 30) / 0.9)


#: Mechanism, its own parameter, and another one.
MECHANISMS: dict[str, tuple[Callable[[], _core.Sampled], float, float]] = {
    "direct": (short_bands, 0.1, 0.2),
    "transform": (long_bands, 0.05, 0.08),
    "bins": (some_bins, 0.0, 0.1),
}
#: The mean scale of plain sampling, and another one.
STRETCHES = {"remove": (1.0, 1.3), "add": (0.0, -0.4), "replace": (1.0, 1.3)}


@pytest.mark.parametrize("stretched", [False, True], ids=["plain", "stretched"])
@pytest.mark.parametrize("direction", STRETCHES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_instruction_sets_agree_bit_for_bit(name: str, direction: str, *, stretched: bool) -> None:
    build, own, other = MECHANISMS[name]
    mechanism, stretch = build(), STRETCHES[direction][stretched]
    for shard in (0, 7):
        answers = [
            _core.Inspection.probe(
                mechanism,
                direction,
                other if stretched else own,
                stretch,
                key=(5, 1, 2, 0),
                shard=shard,
                instruction_set=instruction_set,
            )
            for instruction_set in _core.Inspection.INSTRUCTION_SETS
        ]
        assert "portable" in _core.Inspection.INSTRUCTION_SETS
        assert answers[0] is not None
        assert np.all(np.isfinite(answers[0]))
        assert all(answer == answers[0] for answer in answers)


PINNED: dict[tuple[str, str], tuple[list[str], list[str], list[str]]] = {
    ("direct", "remove"): (
        ["0x1.36c460e558da5p+1", "0x1.aeb4b9caccc4cp-6"],
        ["0x0.0p+0", "0x0.0p+0"],
        ["0x1.7fac9c49ef91ep+1", "-0x1.5853636d4ebcbp+0"],
    ),
    ("direct", "add"): (
        ["-0x1.72162eb13c5c8p+0", "-0x1.7ee95746cf1b6p+1"],
        ["0x0.0p+0", "0x0.0p+0"],
        ["0x1.073ac6f2772dfp-2", "0x1.9df5ed9155951p-1"],
    ),
    ("transform", "remove"): (
        ["0x1.0b481b2d1bbc3p+1", "0x1.3973276a69d0cp+1"],
        ["0x0.0p+0", "0x0.0p+0"],
        ["0x1.617a8ae9e9057p+1", "0x1.126fecc46e374p+1"],
    ),
    ("transform", "replace"): (
        ["0x1.0b481b2d1bbc3p+1", "0x1.3973276a69d0cp+1"],
        ["-0x1.2eda1520d85d0p+2", "-0x1.41ad913d9ca50p+2"],
        ["0x1.617a8ae9e9057p+1", "0x1.126fecc46e374p+1"],
    ),
    ("bins", "remove"): (
        ["0x1.33b542ff25380p+2", "0x1.7e1bc59648a94p+1"],
        ["0x0.0p+0", "0x0.0p+0"],
        ["0x1.9118e6956ecf4p+2", "0x1.d08c47e4d219bp+1"],
    ),
    ("bins", "replace"): (
        ["0x1.33b542ff25380p+2", "0x1.7e1bc59648a94p+1"],
        ["-0x1.720a0fdb7d82cp+1", "-0x1.febb18c1c3aa6p+1"],
        ["0x1.9118e6956ecf4p+2", "0x1.d08c47e4d219bp+1"],
    ),
}


@pytest.mark.parametrize(("name", "direction"), PINNED)
def test_streams_never_change(name: str, direction: str) -> None:
    """A change here changes the samples of a recorded seed, so it needs a line in the changelog."""
    build, _, other = MECHANISMS[name]
    found = _core.Inspection.probe(
        build(), direction, other, STRETCHES[direction][1], key=(20, 1, 3, 0), shard=4, instruction_set="portable"
    )
    assert found is not None
    assert tuple([value.hex() for value in values[:2]] for values in found) == PINNED[name, direction]


#: Tiny mechanisms whose δ is an integral in few dimensions: patterns of (n, b, p, warm) or (n, bins), and the column/σ.
TINY: dict[str, tuple[Patterns, Array, tuple[int, int, float, bool] | None]] = {
    "two rounds": (
        renewal_patterns(2, 2, 0.3, warm=False),
        lower_toeplitz(np.array([0.9, 0.5]), 2),
        (2, 2, 0.3, False),
    ),
    "three rounds": (
        renewal_patterns(3, 2, 0.2, warm=True),
        lower_toeplitz(np.array([1.2, 0.4]), 3),
        (3, 2, 0.2, True),
    ),
    "two bins": (bin_patterns(2, 2), lower_toeplitz(np.array([1.0, 0.6]), 2), None),
    "two uneven bins": (bin_patterns(3, 2), lower_toeplitz(np.array([0.8, 0.3, 0.2]), 3), None),
}
#: Direction, mean scale, and how the parameter differs from the sampler's own (p times it; the bins' exponent).
PROPOSALS = [
    ("remove", 1.0, 1.0, 0.0),
    ("remove", 1.4, 1.0, 0.0),
    ("remove", 1.4, 1.7, 0.3),
    ("add", 0.0, 1.0, 0.0),
    ("add", -0.6, 1.0, 0.0),
    ("add", -0.6, 0.6, -0.2),
    ("replace", 1.0, 1.0, 0.0),
    ("replace", 1.3, 1.5, 0.2),
]


def tiny(name: str) -> _core.Sampled:
    patterns, matrix, renewal = TINY[name]
    if renewal is None:
        return bins_of(patterns, matrix)
    n, b, p, warm = renewal
    return _core.Sampled.renewal(matrix[:, 0][:b], n, b, p, warm)


def test_the_quadrature_is_right_for_one_gaussian() -> None:
    matrix = lower_toeplitz(np.array([0.7, 0.4]), 2)
    patterns = (np.array([[1.0, 0.0]]), np.array([1.0]))
    mu, epsilon = float(np.linalg.norm(matrix[:, 0])), 0.4
    for direction, shift in (("remove", mu), ("add", mu), ("replace", 2.0 * mu)):
        tails = [log_ndtr(side * 0.5 * shift - epsilon / shift) for side in (1.0, -1.0)]
        expected = np.exp(tails[0]) - np.exp(epsilon + tails[1])
        assert exact_delta(patterns, matrix, direction, epsilon) == pytest.approx(expected, rel=1e-9)


def other_law(name: str, factor: float, exponent: float) -> tuple[float, Patterns]:
    """Return the parameter of a proposal and its law."""
    patterns, matrix, renewal = TINY[name]
    if renewal is not None:
        n, b, p, warm = renewal
        return p * factor, renewal_patterns(n, b, p * factor, warm=warm)
    squares = ((patterns[0] @ matrix.T) ** 2).sum(axis=1)
    raw = patterns[1] * np.exp(exponent * squares)
    return exponent, (patterns[0], raw / raw.sum())


@cache
def truth(name: str, direction: str, epsilon: float) -> float:
    """Return a tiny mechanism's δ by quadrature; it is the same for every proposal."""
    patterns, matrix, _ = TINY[name]
    return exact_delta(patterns, matrix, direction, epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 0.4])
@pytest.mark.parametrize("proposal", PROPOSALS, ids=str)
@pytest.mark.parametrize("name", TINY)
def test_values_have_the_mean_they_should(name: str, proposal: tuple[str, float, float, float], epsilon: float) -> None:
    direction, stretch, factor, exponent = proposal
    mechanism, (parameter, _) = tiny(name), other_law(name, factor, exponent)
    cap, generator, rounding = mechanism.bounds(direction, parameter, stretch, epsilon)
    assert 0.0 <= generator < 1e-9
    assert 0.0 <= rounding < 1e-9
    mean, error, _ = estimated(mechanism, direction, parameter, stretch, epsilon, cap, 200)
    expected = truth(name, direction, epsilon)
    assert abs(mean - expected) <= 5.0 * error
    assert error < 0.1 * expected


@cache
def attacked(name: str) -> tuple[Array, Array, Array]:
    """Return outcomes on a grid and at random, with the log ratios of P and of its mirror image there."""
    patterns, matrix, _ = TINY[name]
    n = len(matrix)
    side = np.linspace(-14.0, 14.0, 281 if n == 2 else 57)
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*[side] * n)], axis=1)
    outcomes = np.concatenate([grid, np.random.default_rng(4).normal(size=(20_000, n)) * 3.0])
    return outcomes, log_ratio(patterns, matrix, outcomes), log_ratio(patterns, matrix, -outcomes)


@cache
def log_proposal(name: str, stretch: float, factor: float, exponent: float) -> Array:
    """Return ln of a proposal's density at the outcomes of `attacked`, over that of N(0, I)."""
    (rows, weights), matrix = other_law(name, factor, exponent)[1], TINY[name][1]
    means, outcomes = rows @ matrix.T, attacked(name)[0]
    exponents = stretch * (outcomes @ means.T) - 0.5 * stretch**2 * (means**2).sum(axis=1)
    return np.asarray(logsumexp(exponents + np.log(weights), axis=1))


def values_of(name: str, proposal: tuple[str, float, float, float], epsilon: float) -> Array:
    """Return V from its definition, at the outcomes of `attacked`."""
    direction, *departure = proposal
    _, log_f, mirrored = attacked(name)
    numerator = {
        "remove": lambda: np.exp(log_f) - np.exp(epsilon),
        "add": lambda: 1.0 - np.exp(epsilon + log_f),
        "replace": lambda: np.exp(log_f) - np.exp(epsilon + mirrored),
    }[direction]()
    return np.asarray(np.maximum(numerator, 0.0) * np.exp(-log_proposal(name, *departure)))


@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 1.0, 3.0])
@pytest.mark.parametrize("proposal", PROPOSALS, ids=str)
@pytest.mark.parametrize("name", TINY)
def test_caps_hold_everywhere(name: str, proposal: tuple[str, float, float, float], epsilon: float) -> None:
    direction, stretch, factor, exponent = proposal
    parameter, _ = other_law(name, factor, exponent)
    cap, _, _ = tiny(name).bounds(direction, parameter, stretch, epsilon)
    assert values_of(name, proposal, epsilon).max() <= cap * (1.0 + 1e-12)


@pytest.mark.parametrize(
    ("direction", "stretch"), [("remove", 1.5), ("remove", 2.5), ("add", -0.5), ("add", -2.0), ("replace", 1.8)]
)
def test_weight_bounds_are_attained_by_a_single_pattern(direction: str, stretch: float) -> None:
    c, epsilon = 0.9, 0.7
    cap, _, _ = _core.Sampled.renewal([c], 1, 1, 1.0, False).bounds(direction, 1.0, stretch, epsilon)
    y = np.linspace(-20.0, 20.0, 400_001)
    log_f, log_g = c * y - 0.5 * c * c, stretch * c * y - 0.5 * (stretch * c) ** 2
    minuend, subtrahend = {
        "remove": (log_f, 0.0 * y),
        "add": (0.0 * y, log_f),
        "replace": (log_f, log_f - 2.0 * c * y),
    }[direction]
    values = np.exp(minuend - log_g) - np.exp(epsilon + subtrahend - log_g)
    assert values.max() == pytest.approx(cap, rel=1e-6)


def holder(direction: str, n: int, laws: tuple[float, float], c: float, at: tuple[float, float]) -> Any:
    """Return the bound of Hölder's inequality for n independent rounds, from the product formula with 60 digits."""
    with mp.workdps(60):
        p, v, s, k, e = (mp.mpf(value) for value in (*laws, c * c, *at))

        def total(power: Any, exponent: Any) -> Any:
            idle, joined = (a**power * b ** (1 - power) for a, b in ((1 - p, 1 - v), (p, v)))
            return n * mp.log(idle + joined * mp.exp(exponent * s))

        if direction == "add":
            tau = -k
            log_prefix = -(1 + tau) * total(tau / (1 + tau), -tau / 2) - tau * e
            return mp.exp(log_prefix) * tau**tau / (1 + tau) ** (1 + tau)
        large = total(k / (k - 1), k / 2)
        if direction == "remove":
            return mp.exp((k - 1) * (large - e)) * (k - 1) ** (k - 1) / k**k
        overlap, h = n * mp.log(1 - p + p * mp.exp(-s / 2)), (k - 1) / 2
        return mp.exp((k - 1) * (large - e / 2 - overlap)) * h**h / (1 + h) ** (1 + h)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("direction", ["remove", "add", "replace"])
def test_caps_of_many_runs_are_not_lost_to_rounding(direction: str, seed: int) -> None:
    """Each run's error is counted as often as the run occurs, and so is its power."""
    rng = np.random.default_rng(seed)
    n, runs = 10 ** int(rng.integers(1, 5)), 10 ** int(rng.integers(3, 9))
    p, c = 10.0 ** rng.uniform(-5.0, -1.0), 10.0 ** rng.uniform(-4.5, -2.0)
    v, stretch = p * 10.0 ** rng.uniform(-0.05, 0.05), rng.uniform(1.5, 13.0) * (-1.0 if direction == "add" else 1.0)
    core = _core.Sampled.together([(_core.Sampled.renewal([c], n, 1, p, False), runs)])
    cap, truth = core.bounds(direction, [v], stretch, 2.0)[0], holder(direction, n * runs, (p, v), c, (stretch, 2.0))
    assert cap >= truth
    # If each run may be off by 1e-10, a hundred million of them to the 12th power have a large allowance for error.
    assert cap <= truth * mp.exp(1e-12 * n * runs * abs(stretch)) * (1 + 1e-9) or cap == np.inf


def test_what_has_no_cap_says_so() -> None:
    mechanism = short_bands()
    assert mechanism.bounds("remove", 0.1, 1.0, 1.0)[0] == 1.0
    assert mechanism.bounds("add", 0.3, 0.0, 1.0)[0] == 1.0
    for direction, parameter, stretch in (("remove", 0.2, 1.0), ("remove", 0.1, 0.9), ("add", 0.1, 0.2)):
        assert mechanism.bounds(direction, parameter, stretch, 1.0)[0] == np.inf


@pytest.mark.parametrize("direction", STRETCHES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_threads_change_nothing(name: str, direction: str) -> None:
    build, _, other = MECHANISMS[name]
    mechanism, stretch = build(), STRETCHES[direction][1]
    cap, _, _ = mechanism.bounds(direction, other, stretch, 0.5)
    tables = [(0.5, cap, [(0.01, 0.2 / cap), (0.02, -1.0)]), (1.5, cap, [])]

    def run(first: int, count: int, threads: int) -> tuple[Any, Any]:
        return mechanism.simulate(
            direction,
            other,
            stretch,
            tables,
            edges=(-3.0, 0.25),
            key=(3, 1, 0, 1),
            first=first,
            count=count,
            threads=threads,
            time_limit=None,
        )

    one, two = run(0, 9, 1), run(0, 9, 2)
    assert one[0] == two[0]
    assert one[1].samples == two[1].samples
    assert _core.Inspection.bins(one[1]) == _core.Inspection.bins(two[1])
    assert run(5, 3, 2)[0] == one[0][5:8]
