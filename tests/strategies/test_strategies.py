"""Strategy matrices: the published errors met, the optimum an optimum, every bad file refused with its reason."""

import io
import os
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, signal  # type: ignore[import-untyped]
from snapshots import Snapshot

from pyaccount.strategies.dense import (
    MatrixFileError,
    bands_of,
    column_norms,
    dense_error,
    load_dense,
    normalized_columns_max,
)
from pyaccount.strategies.sums import quotient
from pyaccount.strategies.toeplitz import (
    banded_square_root,
    log_objective,
    normalized,
    optimal_toeplitz,
    toeplitz_error,
)

# (1/n)·‖A·C⁻¹‖_F² at unit column norm, n = 2000: bands, optimal, banded square root.
REFERENCE = [
    (2, 504.234, 556.389),
    (4, 257.040, 312.297),
    (8, 134.095, 175.880),
    (16, 72.840, 99.404),
    (32, 42.025, 56.838),
    (64, 26.268, 33.518),
]


def toeplitz(coefficients: np.ndarray, size: int) -> np.ndarray:
    matrix = np.zeros((size, size))
    for lag, c in enumerate(coefficients[:size]):
        matrix += np.diag(np.full(size - lag, c), -lag)
    return matrix


def brute_force(matrix: np.ndarray) -> tuple[float, float]:
    product = np.tril(np.ones(matrix.shape)) @ np.linalg.inv(matrix)
    rows = (product**2).sum(axis=1)
    return rows.mean(), rows.max()


def unit_error(coefficients: np.ndarray, iterations: int) -> float:
    return toeplitz_error(normalized(coefficients), iterations).mean_square


# Toeplitz


@pytest.mark.parametrize(("bands", "optimal", "square_root"), REFERENCE)
def test_reference_errors(bands: int, optimal: float, square_root: float) -> None:
    # Half a unit of the last printed digit.
    assert unit_error(banded_square_root(bands), 2000) == pytest.approx(square_root, abs=5.01e-4)
    c = optimal_toeplitz(2000, bands)
    reached = toeplitz_error(c, 2000).mean_square
    assert 0.99 * optimal <= reached <= min(optimal + 5.01e-4, optimal * (1 + 1e-5))
    assert c.shape == (bands,)
    assert np.linalg.norm(c) == pytest.approx(1.0, rel=1e-15)
    assert (c >= 0).all()


@pytest.mark.parametrize("bands", [1, 2, 5, 40])
def test_quotients_of_series(bands: int) -> None:
    """Those of scipy's filter, whose order of operations they have, and near those of exact fractions."""
    rng = np.random.default_rng([20261123, bands])
    series, divisor = rng.uniform(0.0, 2.0, 30), np.concatenate(([1.7], -rng.uniform(0.0, 0.5, bands - 1)))
    found = quotient(series, divisor)
    assert found.tolist() == signal.lfilter([1.0], divisor, series).tolist()
    exact: list[Fraction] = []
    for i, a in enumerate(series.tolist()):
        known = sum(Fraction(divisor[j]) * exact[i - j] for j in range(1, min(i, bands - 1) + 1))
        exact.append((Fraction(a) - known) / Fraction(divisor[0]))
    for i, (one, other) in enumerate(zip(found.tolist(), exact, strict=True)):
        assert abs(Fraction(one) - other) <= 3 * (i + 1) * (bands + 1) * Fraction(2) ** -53 * other


def test_quotients_need_a_first_coefficient_and_overflow_openly(snapshot: Snapshot) -> None:
    for wrong in (np.array([]), np.array([0.0, 1.0])):
        snapshot.raised(quotient, np.ones(3), wrong)
    assert quotient(np.array([]), np.ones(1)).size == 0
    assert not np.isfinite(quotient(np.ones(2000), np.array([1.0, -1e300]))).all()


def test_square_root_squares_to_ones() -> None:
    c = banded_square_root(300)
    assert np.convolve(c, c)[:300] == pytest.approx(np.ones(300), rel=1e-13)
    assert banded_square_root(1).tolist() == [1.0]


@pytest.mark.parametrize("coefficients", [[1.0], [0.3, 0.2], [2.0, 0.0, 1.5, 0.1], [1.0, 3.0], list(range(9, 0, -1))])
@pytest.mark.parametrize("iterations", [1, 2, 3, 7, 12])
def test_errors_match_brute_force(coefficients: list[float], iterations: int) -> None:
    matrix = toeplitz(np.array(coefficients), iterations)
    mean, worst = brute_force(matrix)
    for error in (toeplitz_error(coefficients, iterations), dense_error(matrix)):
        assert error.mean_square == pytest.approx(mean, rel=1e-12)
        assert error.max_square == pytest.approx(worst, rel=1e-12)


def test_identity() -> None:
    error = toeplitz_error([1.0], 100)
    assert (error.mean_square, error.max_square) == (50.5, 100.0)
    assert toeplitz_error([4.0], 100).mean_square == 50.5 / 16


def test_error_in_high_precision() -> None:
    iterations, c = 600, optimal_toeplitz(600, 9)
    with mp.workdps(40):
        exact: list[mp.mpf] = []
        for j in range(iterations):
            known = mp.fsum(mp.mpf(float(c[i])) * exact[j - i] for i in range(1, min(j, len(c) - 1) + 1))
            exact.append((1 - known) / mp.mpf(float(c[0])))
        mean = mp.fsum((iterations - j) * s**2 for j, s in enumerate(exact)) / iterations
        assert toeplitz_error(c, iterations).mean_square == pytest.approx(float(mean), rel=1e-14)


def test_gradient_in_high_precision() -> None:
    iterations, c = 30, np.array([1.0, 0.7, 0.0, 0.4, 0.05])
    _, gradient = log_objective(iterations, len(c))(c)
    with mp.workdps(60):

        def value(coefficients: list[mp.mpf]) -> mp.mpf:
            s: list[mp.mpf] = []
            for j in range(iterations):
                known = mp.fsum(coefficients[i] * s[j - i] for i in range(1, min(j, len(coefficients) - 1) + 1))
                s.append((1 - known) / coefficients[0])
            error = mp.fsum((iterations - j) * x**2 for j, x in enumerate(s))
            return mp.log(error) + mp.log(mp.fsum(x**2 for x in coefficients))

        exact = [mp.mpf(float(x)) for x in c]
        step = mp.mpf(10) ** -20
        for i in range(len(c)):
            up, down = ([x + sign * step * (k == i) for k, x in enumerate(exact)] for sign in (1, -1))
            difference = (value(up) - value(down)) / (2 * step)
            assert gradient[i] == pytest.approx(float(difference), rel=1e-12, abs=1e-13)
        assert log_objective(iterations, len(c))(c)[0] == pytest.approx(float(value(exact)), rel=1e-14)


def test_objective_is_finite_where_the_series_overflows() -> None:
    value, gradient = log_objective(3000, 2)(np.array([1.0, 2.0]))
    assert value == pytest.approx(709.78, abs=0.01)
    assert not gradient.any()


@pytest.mark.parametrize(("iterations", "bands"), [(2, 2), (5, 3), (10, 10), (300, 7), (300, 40)])
def test_no_perturbation_is_better(iterations: int, bands: int) -> None:
    rng = np.random.default_rng(20261121)
    c = optimal_toeplitz(iterations, bands)
    best = toeplitz_error(c, iterations).mean_square
    for _ in range(200):
        size = 10 ** rng.uniform(-5, -0.5)
        other = np.maximum(c * (1 + size * rng.standard_normal(bands)), 0.0)
        assert unit_error(other, iterations) >= best * (1 - 1e-13)
    _, gradient = log_objective(iterations, bands)(c / c[0])
    assert np.abs(gradient).max() < 1e-6


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_full_optimum_needs_no_sign_constraint(size: int) -> None:
    """With b = n, derivative-free searches over all signs end at the non-negative optimum."""

    def error(tail: np.ndarray) -> float:
        matrix = toeplitz(np.concatenate(([1.0], tail)), size)
        return brute_force(matrix)[0] * float((matrix[:, 0] ** 2).sum())

    best = toeplitz_error(optimal_toeplitz(size, size), size).mean_square
    rng = np.random.default_rng(3)
    found = min(
        optimize.minimize(
            error, rng.normal(0.0, 0.5, size - 1), method="Powell", options={"xtol": 1e-7, "ftol": 1e-14}
        ).fun
        for _ in range(3)
    )
    assert best == pytest.approx(found, rel=1e-12)


def test_two_bands_against_a_scan() -> None:
    scan = min(unit_error(np.array([1.0, x]), 50) for x in np.linspace(0.0, 1.2, 2401))
    best = toeplitz_error(optimal_toeplitz(50, 2), 50).mean_square
    assert best <= scan <= best * (1 + 1e-6)


@given(st.integers(1, 60), st.data())
def test_optimum_is_valid_and_no_worse_than_the_square_root(iterations: int, data: st.DataObject) -> None:
    bands = data.draw(st.integers(1, iterations))
    c = optimal_toeplitz(iterations, bands)
    assert c.shape == (bands,)
    assert (c >= 0).all()
    assert c[0] > 0
    reached = toeplitz_error(c, iterations).mean_square
    assert reached <= unit_error(banded_square_root(bands), iterations) * (1 + 1e-12)


def test_more_bands_never_hurt() -> None:
    errors = [toeplitz_error(optimal_toeplitz(40, bands), 40).mean_square for bands in range(1, 41)]
    assert all(more <= fewer * (1 + 1e-12) for fewer, more in pairwise(errors))


def test_optimum_at_length() -> None:
    """Long runs, where the line search leaves the stable region, still end at the optimum; twice the same."""
    for iterations, bands in [(100_000, 2), (10_000, 256)]:
        c = optimal_toeplitz(iterations, bands)
        _, gradient = log_objective(iterations, bands)(c / c[0])
        assert np.abs(gradient).max() < 1e-6
        assert np.array_equal(c, optimal_toeplitz(iterations, bands))


def test_one_band_is_the_identity() -> None:
    assert optimal_toeplitz(1, 1).tolist() == optimal_toeplitz(500, 1).tolist() == [1.0]


@pytest.mark.parametrize(("iterations", "bands"), [(0, 1), (5, 0), (5, 6), (-1, -1)])
def test_optimum_out_of_range(iterations: int, bands: int, snapshot: Snapshot) -> None:
    snapshot.raised(optimal_toeplitz, iterations, bands)


@pytest.mark.parametrize(
    "coefficients", [[], [[1.0]], [0.0, 1.0], [1.0, -0.5], [1.0, 0.0, float("nan")], [float("inf")]]
)
def test_bad_coefficients(coefficients: list[float], snapshot: Snapshot) -> None:
    for call in (normalized, lambda c: toeplitz_error(c, 5)):
        snapshot.raised(call, coefficients)


def test_bad_sizes(snapshot: Snapshot) -> None:
    snapshot.raised(banded_square_root, 0)
    snapshot.raised(toeplitz_error, [1.0], 0)


def test_scales(snapshot: Snapshot) -> None:
    """Neither an overflow nor an underflow of a square goes into an answer."""
    for scale in (1e-200, 1.0, 1e300):
        assert normalized([3.0 * scale, 4.0 * scale]) == pytest.approx([0.6, 0.8], rel=1e-15)
    assert toeplitz_error([1e-150], 3).max_square == pytest.approx(3e300)
    matrix = toeplitz(np.array([3e-200, 4e-200]), 4)
    assert column_norms(matrix) == pytest.approx([5e-200] * 3 + [3e-200], rel=1e-15)
    assert normalized_columns_max(toeplitz(np.array([1.2e308, 1.6e308]), 2))[1] == pytest.approx([0.8, 0.6])
    for coefficients, size in [([1e-200], 3), ([1e200], 3), ([1.0, 2.0], 2000)]:
        snapshot.raised(toeplitz_error, coefficients, size)
    for dense in (1e-200 * np.eye(3), 1e200 * np.eye(3), toeplitz(np.array([1.0, 1e200]), 4)):
        snapshot.raised(dense_error, dense)


# Dense


def random_strategy(size: int, seed: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.tril(rng.uniform(0.0, 0.3, (size, size)), -1) + np.diag(rng.uniform(0.5, 1.5, size))


def test_dense_error_of_any_matrix() -> None:
    for size in (1, 2, 5, 30):
        matrix = random_strategy(size)
        error = dense_error(matrix)
        assert (error.mean_square, error.max_square) == pytest.approx(brute_force(matrix), rel=1e-11)


def test_dense_error_leaves_its_argument_alone() -> None:
    matrix = random_strategy(6)
    before = matrix.copy()
    dense_error(matrix)
    normalized_columns_max(matrix)
    assert np.array_equal(matrix, before)


def test_column_norms() -> None:
    matrix = random_strategy(20)
    assert column_norms(matrix) == pytest.approx(np.linalg.norm(matrix, axis=0), rel=1e-14)
    assert column_norms(normalized_columns_max(matrix)).max() == pytest.approx(1.0, rel=1e-15)
    assert normalized_columns_max(3.0 * matrix) == pytest.approx(normalized_columns_max(matrix), rel=1e-14)


def test_bands() -> None:
    for bands in range(1, 9):
        matrix = toeplitz(banded_square_root(bands), 8)
        assert bands_of(matrix) == bands
    hollow = np.eye(5)
    hollow[4, 1] = 5e-324
    assert bands_of(hollow) == 4


@pytest.mark.parametrize("kind", ["f8", ">f8", "f4", "f2", "i8", "u1", "g"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_load_npy(tmp_path: Path, kind: str, order: str) -> None:
    expected = np.tril(np.arange(1.0, 26.0).reshape(5, 5))
    np.save(tmp_path / "c.npy", np.array(expected, dtype=kind, order=order))  # type: ignore[call-overload]
    matrix = load_dense(tmp_path / "c.npy", 5)
    assert np.array_equal(matrix, expected)
    assert matrix.dtype == np.float64
    assert matrix.flags.c_contiguous
    assert matrix.flags.writeable
    assert type(matrix) is np.ndarray


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.csv", "1,0,0\n0.5,1,0\n0.25,5e-1,1\n"),
        ("c.CSV", "\ufeff1, 0, 0\r\n0.5, 1, 0\r\n0.25, 0.5, 1"),
        ("c.txt", "# C\n\n1 0 0\n  0.5\t1 0  # second\n \n0.25 0.5 1\n\n"),
        ("c.txt", "1,0,0\n0.5,1,-0.0\n0.25,0.5,1"),
    ],
)
def test_load_text(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    assert load_dense(tmp_path / name, 3).tolist() == [[1, 0, 0], [0.5, 1, 0], [0.25, 0.5, 1]]


def test_text_keeps_every_digit(tmp_path: Path) -> None:
    matrix = random_strategy(40)
    text = "\n".join(",".join(map(repr, row)) for row in matrix.tolist())
    (tmp_path / "c.csv").write_text(text, encoding="utf-8")
    assert np.array_equal(load_dense(tmp_path / "c.csv", 40), matrix)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "1 0 0\n0 1 0\n",
        "1 0 0\n0 1 0\n0 0 1\n",
        "1\n0\n0\n",
        "1 0\n0 1\n0 -1\n",
        "1 0\n2 0\n3 0\n",
        "1,0\n0\n",
        "1,0\n0,x\n",
        "1,0\n,1\n",
        "1;0 0\n0 1\n",
        "1 0\n1+2j 1\n",
        "1,0\n0 0,1\n",
        "1 0\nnan 1\n",
        "1 inf\nnan 1\n",
        "1 0\n1e999 1\n",
        "1 0.5\n-1 0\n",
        "0 0\n-1 1\n",
        "1 0\n1 0\n",
    ],
)
def test_bad_text(tmp_path: Path, text: str, snapshot: Snapshot) -> None:
    (tmp_path / "c.csv").write_text(text, encoding="utf-8")
    snapshot.raised(load_dense, tmp_path / "c.csv", 2)


def test_text_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_bytes("1 0\n0 1\n".encode("utf-16"))
    with pytest.raises(MatrixFileError, match="not UTF-8 text"):
        load_dense(tmp_path / "c.txt", 2)


@pytest.mark.parametrize(
    "array",
    [
        np.ones((2, 2), dtype=complex),
        np.eye(2, dtype=bool),
        np.array([["1", "0"], ["0", "1"]]),
        np.zeros((2, 2), dtype="m8[s]"),
        np.zeros((2, 2), dtype=[("a", "f8")]),
        np.array(1.0),
        np.ones(4),
        np.ones((2, 3)),
        np.ones((2, 2, 1)),
        np.eye(3),
        np.zeros((0, 0)),
        np.array([[1.0, 0.0], [np.nan, 1.0]]),
        np.ones((2, 2)),
        np.array([[1, 0], [-3, 1]]),
        np.array([[-1, 0], [0, 1]]),
        np.diag([1.0, 0.0]),
    ],
)
def test_bad_npy(tmp_path: Path, array: np.ndarray, snapshot: Snapshot) -> None:
    np.save(tmp_path / "c.npy", array)
    snapshot.raised(load_dense, tmp_path / "c.npy", 2)


def test_objects_are_not_unpickled(tmp_path: Path, snapshot: Snapshot) -> None:
    np.save(tmp_path / "c.npy", np.array([[1, 0], [0, None]], dtype=object), allow_pickle=True)
    snapshot.raised(load_dense, tmp_path / "c.npy", 2)
    (tmp_path / "pickle.npy").write_bytes(b"\x80\x04]\x94.")
    snapshot.raised(load_dense, tmp_path / "pickle.npy", 2)


def test_broken_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.eye(2))
    whole = (tmp_path / "c.npy").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "c.npy").write_bytes(whole[:length])
        with pytest.raises(MatrixFileError, match=r"c\.npy"):
            load_dense(tmp_path / "c.npy", 2)
    for header in (whole.replace(b"{", b"(", 1), whole.replace(b"descr", b"d\0scr"), b"\x93NUMPY\x03\x00" + whole[8:]):
        (tmp_path / "c.npy").write_bytes(header)
        with pytest.raises(MatrixFileError, match=r"c\.npy"):
            load_dense(tmp_path / "c.npy", 2)
    np.savez(tmp_path / "c.npz", np.eye(2))
    (tmp_path / "c.npz").rename(tmp_path / "c.npy")
    with pytest.raises(MatrixFileError, match=r"not a \.npy file"):
        load_dense(tmp_path / "c.npy", 2)


def sparse_npy(path: Path, side: int) -> None:
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (side, side)})
        start = file.tell()
    os.truncate(path, start + 8 * side * side)


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each read of a file gives; NumPy may not read or map a file at all."""
    counts: list[int] = []

    class Counted(io.FileIO):
        def readinto(self, buffer: Any) -> int | None:
            count = super().readinto(buffer)
            counts.append(count or 0)
            return count

    def open_counted(handle: int, mode: str) -> Any:
        assert mode == "rb"
        return io.BufferedReader(Counted(handle, "r"))

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("the entries were asked for")

    monkeypatch.setattr(os, "fdopen", open_counted)
    for name in ("load", "fromfile", "memmap", "loadtxt"):
        monkeypatch.setattr(np, name, refused)
    return counts


@pytest.mark.parametrize("iterations", [2000, 71000])
def test_of_a_40_gb_file_only_the_header_is_read(
    tmp_path: Path, iterations: int, request: pytest.FixtureRequest, snapshot: Snapshot
) -> None:
    sparse_npy(tmp_path / "c.npy", 71000)
    assert (tmp_path / "c.npy").stat().st_size > 40e9
    bytes_read = request.getfixturevalue("bytes_read")
    snapshot.raised(load_dense, tmp_path / "c.npy", iterations)
    assert 0 < sum(bytes_read) < 2**20


def test_of_a_large_text_file_nothing_is_read(tmp_path: Path, bytes_read: list[int]) -> None:
    (tmp_path / "c.csv").touch()
    os.truncate(tmp_path / "c.csv", 40 * 10**9)
    with pytest.raises(MatrixFileError, match="40000000000 bytes"):
        load_dense(tmp_path / "c.csv", 2)
    assert bytes_read == []


def test_reads_are_counted(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "c.csv").write_bytes(b"1 0 0\n" * 3)
    bytes_read = request.getfixturevalue("bytes_read")
    with pytest.raises(MatrixFileError, match="shape 3 × 3"):
        load_dense(tmp_path / "c.csv", 2)
    assert sum(bytes_read) == 18


def test_paths_that_are_not_matrix_files(tmp_path: Path) -> None:
    (tmp_path / "folder.npy").mkdir()
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "c.mat").touch()
    (tmp_path / "plain").touch()
    (tmp_path / "loop.npy").symlink_to(tmp_path / "loop.npy")
    for path, message in [
        (tmp_path / "absent.npy", "no such file"),
        (tmp_path / "folder.npy", "not a regular file"),
        (tmp_path / "pipe.npy", "not a regular file"),
        (tmp_path / "c.mat", "ends in .npy, .csv or .txt, not in '.mat'"),
        (tmp_path / "plain", "not in ''"),
        (tmp_path / "loop.npy", "cannot be read"),
        (tmp_path / "c.mat" / "c.npy", "cannot be read"),
        (Path("a\0b.npy"), "cannot be read"),
    ]:
        with pytest.raises(MatrixFileError, match=message):
            load_dense(path, 2)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_unreadable_file(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.eye(2))
    (tmp_path / "c.npy").chmod(0)
    with pytest.raises(MatrixFileError, match="no permission"):
        load_dense(tmp_path / "c.npy", 2)


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.eye(2))
    (tmp_path / "link.npy").symlink_to(tmp_path / "c.npy")
    assert np.array_equal(load_dense(tmp_path / "link.npy", 2), np.eye(2))
