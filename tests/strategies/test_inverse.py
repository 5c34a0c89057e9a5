"""Matrices with banded inverses and buffered linear Toeplitz matrices: identities, optimality, and bad input."""

from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from phases import phase
from plain_documents import doc, sectioned
from scipy import linalg, optimize  # type: ignore[import-untyped]
from snapshots import Snapshot

import pyaccount
from pyaccount.plan.matrices import strategy
from pyaccount.strategies.inverse import banded_inverse, blt, inverse_square_root, optimal_blt
from pyaccount.strategies.toeplitz import banded_square_root, normalized, optimal_toeplitz, toeplitz_error


def matrix(column: Any) -> Any:
    return linalg.toeplitz(column, np.zeros(len(column)))


def test_inverses_are_inverses(snapshot: Snapshot) -> None:
    for bands in (1, 2, 5, 40):
        d = inverse_square_root(bands)
        column = banded_inverse(d.tolist(), 40)
        inverse = np.concatenate([d, np.zeros(40 - bands)])
        assert matrix(column) @ matrix(inverse) == pytest.approx(np.eye(40), abs=1e-13)
        assert (column > 0).all() or bands == 1
    # With every band it is the square root itself.
    assert banded_inverse(inverse_square_root(40).tolist(), 40) == pytest.approx(banded_square_root(40), rel=1e-12)
    snapshot.raised(banded_inverse, [1.0, 0.5], 10)
    snapshot.raised(banded_inverse, [0.0, -0.5], 10)


@pytest.mark.parametrize(("root", "power", "n"), [(0.99969, 5, 3000), (0.9985, 6, 1500), (0.9, 2, 50)])
@pytest.mark.parametrize("scale", [1.0, 2.0**20, 2.0**-400, 2.0**400])
def test_inverses_whose_terms_cancel(root: float, power: int, n: int, scale: float) -> None:
    """The coefficients of (1 − rx)^−k grow where those of its inverse alternate: in floating point 3e−4 of the norm was lost."""
    d = [1.0]
    for _ in range(power):
        d = np.convolve(d, [1.0, -root]).tolist()
    with mpmath.workprec(600):
        exact = [mpmath.mpf(1)]
        for i in range(1, n):
            exact.append(-sum(mpmath.mpf(d[j]) * exact[i - j] for j in range(1, min(i, power) + 1)))
        assert min(exact) > 0
        found = banded_inverse([value * scale for value in d], n) * scale
        assert max(abs(f / e - 1) for f, e in zip(found.tolist(), exact, strict=True)) < 1e-15


def test_the_certificate_of_an_inverse_whose_terms_cancel() -> None:
    d = [1.0]
    for _ in range(5):
        d = np.convolve(d, [1.0, -0.99969]).tolist()
    # Noise multipliers are not larger than 1e9.
    n, scale = 3000, 2.0**20
    with mpmath.workprec(600):
        exact = [mpmath.mpf(1)]
        for i in range(1, n):
            exact.append(-sum(mpmath.mpf(d[j]) * exact[i - j] for j in range(1, min(i, 5) + 1)))
        sensitivity = mpmath.sqrt(sum(c * c for c in exact)) / scale
        sigma = float(sensitivity)
        mu, delta = sensitivity / sigma, mpmath.mpf(1e-6)
        truth = mpmath.findroot(
            lambda e: mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu) - delta, 4.9
        )
    raw = doc(
        "name=cancelling adjacency=add-remove delta=1e-6 sampler=none max_participations=1",
        iterations=n,
        matrix={"kind": "banded-inverse", "inverse_coefficients": [c * scale for c in d], "normalize": False},
        multiplier=sigma,
    )
    certificate = pyaccount.certify(raw)
    assert certificate.epsilon_lower <= truth <= certificate.epsilon < truth * (1 + 1e-6)


def test_inverses_that_cannot_be_computed_are_refused(snapshot: Snapshot) -> None:
    snapshot.raised(lambda: banded_inverse([1.0] + [-1e-5, 1e-6] * 3000, 10_000))
    snapshot.raised(banded_inverse, [1.0, -3.0, 0.5], 2000)


def test_buffers_by_their_definition() -> None:
    """The recursion that training runs: each buffer decays by θ and takes up the newest input; ω weighs the buffers."""
    scales, decays = [0.3, 0.1], [0.5, 0.99]
    column = blt(scales, decays, 30)
    rng = np.random.default_rng(1)
    z, out, buffers = rng.normal(size=30), np.zeros(30), np.zeros(2)
    for i in range(30):
        out[i] = z[i] + np.dot(scales, buffers)
        buffers = np.asarray(decays) * buffers + z[i]
    assert matrix(column) @ z == pytest.approx(out, rel=1e-12)
    assert blt(scales, decays, 1).tolist() == [1.0]


def spread(column: Any, apart: int, participations: int) -> float:
    """Error times squared sensitivity, of a record with so many participations so far apart."""
    n = len(column)
    rounds = [k * apart for k in range(participations) if k * apart < n]
    moved = sum(np.concatenate([np.zeros(r), column[: n - r]]) for r in rounds)
    return float(toeplitz_error(column, n).mean_square * np.sum(np.square(moved)))


@pytest.mark.parametrize(
    ("n", "buffers", "apart", "participations"),
    [(60, 1, 60, 1), (60, 2, 60, 1), (300, 2, 300, 1), (96, 2, 24, 4), (96, 3, 16, 6), (100, 2, 30, 2)],
)
def test_optimal_buffers_are_optimal(n: int, buffers: int, apart: int, participations: int) -> None:
    """A search without derivatives, from other starts and in other coordinates, finds nothing better."""
    scales, decays = optimal_blt(n, buffers, apart, participations)
    ours = spread(blt(scales, decays, n), apart, participations)

    def objective(parameters: Any) -> float:
        d = len(parameters) // 2
        column = blt(np.abs(parameters[:d]), 1 / (1 + np.exp(-np.asarray(parameters[d:]))), n)
        return spread(column, apart, participations)

    rng = np.random.default_rng(n + buffers)
    for _ in range(6):
        start = np.concatenate([rng.uniform(0.02, 0.6, buffers), rng.uniform(0.0, 6.0, buffers)])
        found = optimize.minimize(objective, start, method="Nelder-Mead", options={"maxiter": 4000})
        assert ours <= found.fun * (1 + 1e-6)


def test_more_buffers_approach_the_optimum() -> None:
    n = 512
    best = toeplitz_error(optimal_toeplitz(n, n), n).mean_square
    errors = [toeplitz_error(normalized(blt(*optimal_blt(n, d), n)), n).mean_square for d in (1, 2, 3, 4)]
    assert errors == sorted(errors, reverse=True) or errors[2] == pytest.approx(errors[3], rel=1e-6)
    assert best <= errors[2] < 1.003 * best


def document(**changes: Any) -> dict[str, Any]:
    return doc("name=matrix iterations=96 sampler=none min_separation=24 matrix=blt buffers=2 multiplier=2.0") | changes


@pytest.mark.parametrize("kind", [{"kind": "blt", "buffers": 3}, {"kind": "banded-inverse", "bands": 8}])
def test_the_same_matrix_listed_gives_the_same_certificate(kind: dict[str, Any]) -> None:
    """As a list of Toeplitz coefficients, without sampling and with balls in bins."""
    columns = {
        "blt": blt(*optimal_blt(96, 3, 24, 4), 96),
        "banded-inverse": banded_inverse(inverse_square_root(8).tolist(), 96),
    }
    column = columns[kind["kind"]]
    listed = {"kind": "toeplitz", "coefficients": column.tolist()}
    for sampler in ({"kind": "none", "min_separation": 24}, {"kind": "balls-in-bins", "bins": 24}):
        privacy = {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-2}
        accounting = {"seed": 5, "profile": [], "tolerance": 0.02}
        first, second = (
            pyaccount.certify(document(matrix=one, sampler=sampler, privacy=privacy, accounting=accounting)).data
            for one in (kind, listed)
        )
        assert first.guarantee == second.guarantee
        assert first.utility == second.utility


@pytest.mark.parametrize(
    "given", [{"bands": 4}, {"inverse_coefficients": inverse_square_root(4).tolist()}], ids=["bands", "coefficients"]
)
def test_certificates_count_the_bands_of_the_inverse(given: dict[str, Any]) -> None:
    certificate = pyaccount.certify(
        document(
            matrix={"kind": "banded-inverse", **given},
            sampler={"kind": "none"},
            privacy={"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
        )
    )
    matrix = certificate.data.phases[0].matrix
    assert (matrix.bands, matrix.inverse_bands) == (96, 4)
    for text in (certificate.to_text(), certificate.to_markdown()):
        assert "4 bands of the inverse" in text
        assert "96 bands" not in text


def test_the_modes_of_a_full_matrix_are_its_sums_of_columns() -> None:
    """Balls in bins: m_t = Σ_e c_{eT+t}, with n no multiple of T."""
    column = blt([0.3, 0.1], [0.5, 0.95], 23)
    coefficients = {"kind": "blt", "scales": [0.3, 0.1], "decays": [0.5, 0.95], "normalize": False}
    loaded = pyaccount.load(
        document(matrix=coefficients, training={"iterations": 23}, sampler={"kind": "balls-in-bins", "bins": 5})
    )
    gram, largest = strategy(phase(loaded)).bin_gram(5)
    modes = np.array([matrix(column)[:, t::5].sum(axis=1) for t in range(5)])
    assert np.reshape(gram, (5, 5)) == pytest.approx(modes @ modes.T, rel=1e-13)
    assert largest >= np.linalg.norm(modes, axis=1).max()


def test_a_bad_inverse_is_found_before_anything_runs(snapshot: Snapshot) -> None:
    bad = {"kind": "banded-inverse", "inverse_coefficients": [1, 0.5]}
    snapshot.raised(lambda: pyaccount.compile(document(matrix=bad, sampler={"kind": "balls-in-bins", "bins": 24})))


def test_certificates_hold_the_buffers() -> None:
    data = pyaccount.certify(document()).data.phases[0].matrix
    assert data.buffers is not None
    column = normalized(blt(data.buffers.scales, data.buffers.decays, 96))
    assert np.linalg.norm(column) == pytest.approx(data.column_norm)
    stated = {"kind": "blt", "scales": data.buffers.scales, "decays": data.buffers.decays}
    assert pyaccount.certify(document(matrix=stated)).epsilon == pyaccount.certify(document()).epsilon


WRONG: list[Any] = [
    {"matrix": {"kind": "blt"}},
    {"matrix": {"kind": "blt", "scales": [0.1]}},
    {"matrix": {"kind": "blt", "scales": [0.1], "decays": [0.5, 0.6]}},
    {"matrix": {"kind": "blt", "buffers": 2, "scales": [0.1], "decays": [0.5]}},
    {"matrix": {"kind": "blt", "scales": [-0.1], "decays": [0.5]}},
    {"matrix": {"kind": "blt", "scales": [0.1], "decays": [1.5]}},
    {"matrix": {"kind": "blt", "buffers": 99}},
    {"matrix": {"kind": "banded-inverse"}},
    {"matrix": {"kind": "banded-inverse", "bands": 97}},
    {"training": {"iterations": 20_000}},
    {"matrix": {"kind": "banded-inverse", "inverse_coefficients": [1, 0.5]}},
    sectioned(sampler="cyclic-poisson", partitions=24, iterations=96, participation_rate=0.01),
]


@pytest.mark.parametrize("changes", WRONG)
def test_what_is_wrong_is_located(changes: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.certify(document(**changes)))
