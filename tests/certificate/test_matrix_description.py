"""`pyaccount matrix`: what it writes is enough to train with, and is what the certificate states."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plain_documents import doc, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount import cli
from pyaccount.plan.matrices import PLANS

Array = NDArray[np.float64]
N = 12
DENSE = np.tril(np.random.default_rng(3).random((N, N))) + np.eye(N)
MATRICES: dict[str, dict[str, Any]] = {
    "identity": {},
    "banded-square-root": {"bands": 4},
    "optimal-toeplitz": {"bands": 3},
    "toeplitz": {"coefficients": [2.0, 1.0], "normalize": False},
    "banded-inverse": {"bands": 3},
    "blt": {"buffers": 2},
    "tree": {"restart_every": 7},
    "dense": {"file": "matrix.npy"},
}


def document(kind: str, **changes: Any) -> dict[str, Any]:
    return (
        doc(
            "name='to train with' epsilon=2 sampler=none max_participations=2 min_separation=4 multiplier=solve",
            iterations=N,
            matrix={"kind": kind, **MATRICES[kind]},
        )
        | changes
    )


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    np.save(tmp_path / "matrix.npy", DENSE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def banded(matrix: dict[str, Any], w: Array) -> Array:
    c, z = matrix["coefficients"], np.zeros_like(w)
    for t in range(len(w)):
        z[t] = (w[t] - sum(c[j] * z[t - j] for j in range(1, len(c)) if t >= j)) / c[0]
    return z


def inverse(matrix: dict[str, Any], w: Array) -> Array:
    d = matrix["inverse_coefficients"]
    return np.array([sum(d[j] * w[t - j] for j in range(len(d)) if t >= j) for t in range(len(w))])


def buffered(matrix: dict[str, Any], w: Array) -> Array:
    scales, decays = (np.array(matrix["buffers"][name]) for name in ("scales", "decays"))
    z, s = np.zeros_like(w), np.zeros((len(scales), w.shape[1]))
    for t in range(len(w)):
        z[t] = w[t] / matrix["normalization"] - scales @ s
        s = decays[:, None] * s + z[t]
    return z


def substituted(matrix: dict[str, Any], w: Array) -> Array:
    z = np.zeros_like(w)
    for t in range(len(w)):
        row = DENSE[t] * matrix["normalization"]
        z[t] = (w[t] - row[:t] @ z[:t]) / row[t]
    return z


def blocks(matrix: dict[str, Any], w: Array) -> Array:
    z = np.zeros_like(w)
    for t in range(len(w)):
        p = t % matrix["restart_every"] + 1
        a = max(h for h in range(4) if p % 2**h == 0)
        z[t] = (w[t] - sum(w[t - 2**j] for j in range(a))) / matrix["normalization"]
    return z


#: The words that say how noise is made, and the same as a program, from the JSON alone.
PROGRAMS: dict[str, tuple[str, Any]] = {
    "identity": ("z_t = w_t;", lambda _matrix, w: w),
    "banded-square-root": ("/ c_0, j = 1 … 3", banded),
    "optimal-toeplitz": ("the last 2 rows z are kept", banded),
    "toeplitz": ("the last row z is kept", banded),
    "banded-inverse": ("z_t = Σ_j d_j·w_{t−j}, j = 0 … 2", inverse),
    "blt": ("s_k becomes θ_k·s_k + z_t", buffered),
    "tree": ("p = t mod 7 + 1 and 2^a the largest power of two", blocks),
    "dense": ("/ C_tt, s < t", substituted),
}


def test_every_kind_is_here() -> None:
    assert set(MATRICES) == set(PROGRAMS) == set(PLANS)


@pytest.mark.parametrize("kind", MATRICES)
def test_noise_made_as_it_says_is_that_of_the_matrix(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """C⁻¹w by linear algebra with the matrix that the Python API builds, whose entries are the document's for a file."""
    Path("document.yaml").write_text(json.dumps(document(kind)), encoding="utf-8")
    assert cli.run(["matrix", "document.yaml", "-o", "coefficients.json"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    written = json.loads(Path("coefficients.json").read_text(encoding="utf-8"))
    (phase,) = written["phases"]
    words, program = PROGRAMS[kind]
    assert words in phase["generation"]
    assert words in printed
    w = np.random.default_rng(1).standard_normal((N, 3))
    z = program(phase["matrix"], w)
    described = pyaccount.matrix(document(kind))
    (built,) = described.matrices
    dense = built.dense()
    assert np.allclose(dense @ z, w, rtol=1e-12, atol=1e-12)
    if kind == "dense":
        assert np.allclose(dense, DENSE / np.sqrt(np.square(DENSE).sum(axis=0).max()), rtol=1e-12)
    # The errors are those of prefix sums: A C⁻¹, A the lower triangle of ones.
    sums = np.square(np.tril(np.ones((N, N))) @ np.linalg.inv(dense)).sum(axis=1)
    assert phase["mean_square_error"] == pytest.approx(sums.mean(), rel=1e-10)
    assert phase["max_square_error"] == pytest.approx(sums.max(), rel=1e-10)
    assert json.loads(described.to_json())["phases"] == written["phases"]


def test_efficient_estimates_of_a_tree_are_made_as_it_says() -> None:
    """One error of each size is kept, and the next is made of these and of one new row."""
    raw = document("tree")
    raw["matrix"] |= {"estimation": "efficient", "restart_every": 7}
    described = pyaccount.matrix(raw)
    (phase,), (built,) = described.phases, described.matrices
    assert "√((2^{a+1} + 1)/(3(2^{a+1} − 1)))·w_t" in phase.generation
    w = np.random.default_rng(2).standard_normal((N, 3))
    z, e = np.zeros_like(w), np.zeros((4, 3))
    for t in range(N):
        p = t % 7 + 1
        a = max(h for h in range(4) if p % 2**h == 0)
        made = np.sqrt((2 ** (a + 1) + 1) / (3 * (2 ** (a + 1) - 1))) * w[t]
        made += sum((2 ** (j + 1) - 1) / (2 ** (a + 1) - 1) * e[j] for j in range(a))
        z[t] = (made - e[:a].sum(axis=0)) / phase.matrix.normalization
        e[a] = made
    assert np.allclose(built.dense() @ z, w, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["optimal-toeplitz", "blt"])
def test_the_certificate_states_the_same_matrix(kind: str) -> None:
    certified = pyaccount.certify(document(kind)).data
    (phase,) = pyaccount.matrix(document(kind)).phases
    assert phase.matrix == certified.phases[0].matrix
    assert certified.utility is not None
    assert certified.noise_multiplier is not None
    expected = certified.noise_multiplier**2 * phase.mean_square_error
    assert certified.utility.prefix_sum_mse == pytest.approx(expected, rel=1e-12)


def test_choices_are_made_first_and_several_phases_have_one_each() -> None:
    chosen = pyaccount.matrix(
        document("banded-square-root", matrix={"kind": "optimal-toeplitz", "bands": {"choose": [1, 3]}})
    )
    assert [one.bands for one in chosen.considered] == [1, 3]
    best = min(chosen.considered, key=lambda one: one.prefix_sum_mse_estimate)
    assert chosen.phases[0].matrix.bands == best.bands
    head = document("identity")
    phases = [
        {
            "name": name,
            **{key: head[key] for key in ("training", "sampler")},
            "noise": {"multiplier": 9},
            "matrix": matrix,
        }
        for name, matrix in (("one", head["matrix"]), ("two", document("blt")["matrix"]))
    ]
    found = pyaccount.matrix({key: head[key] for key in ("pyaccount", "name")} | {
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5}, "phases": phases,
    })  # fmt: skip
    assert [(one.name, one.matrix.kind) for one in found.phases] == [("one", "identity"), ("two", "blt")]


def test_a_matrix_that_is_searched_for_is_found_first() -> None:
    """The same as the certificate's, for both begin with the same seed."""
    raw = document("identity", matrix={"kind": "optimal-toeplitz", "bands": 2, "optimize_for": "sampling"}) | sectioned(
        "adjacency=zero-out epsilon=1 delta=1e-2 participation_rate=0.1 sampler=b-min-sep seed=20261123",
        "profile=[] tolerance=0.2",
        iterations=N,
    )
    found, certified = pyaccount.matrix(raw), pyaccount.certify(raw).data
    assert found.phases[0].matrix == certified.phases[0].matrix
    assert found.searched == certified.evidence.searched is not None


def test_a_matrix_of_unknown_size_is_refused_at_its_place(snapshot: Snapshot) -> None:
    raw = document("identity", training={"iterations": "solve"}, noise={"multiplier": 30})
    snapshot.raised(pyaccount.matrix, raw)
