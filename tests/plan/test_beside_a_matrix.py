"""Other releases beside a matrix: the encoder stacked of all of them, by enumeration of all patterns and by its Gram matrix."""

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from certificate_oracle import inconsistencies
from numpy.typing import NDArray
from plain_documents import changed, doc, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount import Accountant
from pyaccount.document.noise import beside

Array = NDArray[np.float64]
N, DELTA, SIGMA = 10, 1e-5, 2.5
ALSO = [{"what": "counts", "multiplier": 6.0}, {"what": "losses", "multiplier": 3.0}]
BASE: dict[str, Any] = doc(
    "name='beside a matrix' sampler=none max_participations=3 min_separation=3 profile=[0.5]",
    delta=DELTA,
    iterations=N,
    multiplier=SIGMA,
    also=ALSO,
)
#: Not decreasing, so that its worst rounds are searched for.
BUMPED = [1.0, 0.2, 0.1, 0.9]
GENERAL = np.tril(np.random.default_rng(5).uniform(0.0, 1.0, (N, N))) + np.eye(N)


def toeplitz(column: list[float]) -> Array:
    return np.array([[([*column, *[0.0] * N])[i - j] if i >= j else 0.0 for j in range(N)] for i in range(N)])


def document(matrix: dict[str, Any], **sections: dict[str, Any]) -> dict[str, Any]:
    return changed({**BASE, "matrix": {"normalize": False, **matrix}}, None, sections)


def mu(c: Array, sigma: float, apart: int = 3, most: int = 3) -> float:
    """The norm of the stacked encoder [C/σ; I/σ_1; I/σ_2] times a pattern, at its largest."""
    stacked = np.vstack([c / sigma, *(np.eye(N) / one["multiplier"] for one in ALSO)])
    return max(
        float(np.linalg.norm(stacked[:, list(pattern)].sum(axis=1)))
        for size in range(1, most + 1)
        for pattern in itertools.combinations(range(N), size)
        if all(later - earlier >= apart for earlier, later in itertools.pairwise(pattern))
    )


MATRICES: dict[str, tuple[dict[str, Any], Array]] = {
    "decreasing": (
        {"kind": "toeplitz", "coefficients": [1.0, 0.6, 0.5, 0.3, 0.3]},
        toeplitz([1.0, 0.6, 0.5, 0.3, 0.3]),
    ),
    "bands within the separation": ({"kind": "toeplitz", "coefficients": [1.0, 0.1, 0.4]}, toeplitz([1.0, 0.1, 0.4])),
    "increasing somewhere": ({"kind": "toeplitz", "coefficients": BUMPED}, toeplitz(BUMPED)),
    "one band": ({"kind": "toeplitz", "coefficients": [2.0]}, 2.0 * np.eye(N)),
    "dense": ({"kind": "dense", "file": "general.npy"}, GENERAL),
    "tree": (
        {"kind": "tree"},
        np.array([[float(f <= t < f + s) for t in range(N)] for s in (1, 2, 4, 8) for f in range(0, N - s + 1, s)]),
    ),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize(("adjacency", "factor"), [("zero-out", 1), ("replace-one", 2)])
def test_the_stacked_encoder_is_what_moves(
    name: str, adjacency: str, factor: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("general.npy", GENERAL)
    matrix, c = MATRICES[name]
    data = pyaccount.certify(document(matrix, privacy={"adjacency": adjacency})).data
    exact = float(oracle.gaussian_epsilon(factor * mu(c, SIGMA), DELTA))
    assert data.guarantee.epsilon_lower <= exact <= data.guarantee.epsilon
    assert data.guarantee.epsilon == pytest.approx(exact, rel=2e-4)
    assert all(reduction.tight for reduction in data.reductions)
    # The worst case without sampling is the run itself.
    assert data.unamplified.epsilon == pytest.approx(data.guarantee.epsilon, rel=1e-6)
    assert data.phases[0].also is not None
    assert data.phases[0].effective_noise_multiplier is None
    assert not inconsistencies(data)


def test_long_increasing_columns_are_enclosed() -> None:
    """More rounds than are searched for: the bounds enclose evenly spaced rounds, and charge every round once."""
    n, bumped = 600, [1.0, 0.2, 0.1, 0.9, 0.5, 0.7, 0.1]
    raw = changed(
        {**BASE, "matrix": {"kind": "toeplitz", "coefficients": bumped, "normalize": False}},
        {"training": {"iterations": n}},
        {"sampler": {"max_participations": 5, "min_separation": 2}},
    )
    data = pyaccount.certify(raw).data
    column = np.array([*bumped, *[0.0] * n])
    moved = sum(np.concatenate([np.zeros(3 * k), column[: n - 3 * k]]) for k in range(5))
    attained = math.sqrt(float(moved @ moved) / SIGMA**2 + 5 * (1 / 36 + 1 / 9))
    assert not data.reductions[0].tight
    assert float(oracle.gaussian_epsilon(attained, DELTA)) * (1 - 1e-6) <= data.guarantee.epsilon
    assert data.guarantee.epsilon_lower <= data.guarantee.epsilon


def test_sigma_is_solved_for_beside_the_other_releases() -> None:
    raw = document({"kind": "tree"}, noise={"multiplier": "solve"}, privacy={"epsilon": 3.0})
    assert "√(" in pyaccount.compile(raw).reductions[0].pair
    data = pyaccount.certify(raw).data
    assert data.noise_multiplier is not None
    c = MATRICES["tree"][1]
    target = oracle.gaussian_epsilon(mu(c, data.noise_multiplier), DELTA)
    assert float(target) == pytest.approx(3.0, rel=1e-3)
    assert float(target) <= 3.0
    # Without the other releases less noise would do.
    alone = pyaccount.certify({**raw, "noise": {"multiplier": "solve"}}).data
    assert alone.noise_multiplier is not None
    assert alone.noise_multiplier < 0.99 * data.noise_multiplier


def test_a_target_that_the_other_releases_exceed_alone_is_refused(snapshot: Snapshot) -> None:
    raw = document({"kind": "tree"}, noise={"multiplier": "solve"}, privacy={"epsilon": 0.5})
    snapshot.raised(pyaccount.certify, raw)


def test_a_matrix_is_not_optimised_beside_other_releases(snapshot: Snapshot) -> None:
    raw = document(
        {"kind": "optimal-toeplitz", "bands": 3, "optimize_for": "sampling"},
        noise={"multiplier": "solve"},
        privacy={"epsilon": 3.0},
    )
    del raw["matrix"]["normalize"]
    snapshot.raised(pyaccount.compile, raw)


def test_what_is_added_for_each_round() -> None:
    truth = sum(Fraction(0.7) ** 2 / Fraction(sigma) ** 2 for sigma in (0.3, 11.0, 1e-3))
    assert beside(0.7, [0.3, 11.0, 1e-3]) == pytest.approx(float(truth), rel=1e-15)


ADDED = sum((SIGMA / one["multiplier"]) ** 2 for one in ALSO)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_fixed_parts_compose_with_longer_columns(adjacency: str) -> None:
    """The same as phases of Poisson sampling without a matrix, one for each norm √(‖c_i‖² + Σ(σ/σ_i)²) of the first part."""
    head = {
        **BASE,
        "privacy": {**BASE["privacy"], "adjacency": adjacency},
        "accounting": {"profile": [], "tolerance": 1e-5},
    }
    raw = changed(
        {**head, "sampler": {"kind": "cyclic-poisson", "partitions": 3}, "matrix": {"kind": "toeplitz"}},
        None,
        {"matrix": {"coefficients": [1.0, 0.1, 0.7], "normalize": False}, "training": {"sampling_probability": 0.1}},
    )
    # Rounds 0, 3 and 6 have whole columns; that of round 9 has only its first entry.
    phases = [
        {
            "name": name,
            "training": {"sampling_probability": 0.1 * 3, "iterations": rounds},
            "sampler": {"kind": "poisson"},
            "noise": {"multiplier": SIGMA / math.sqrt(square + ADDED)},
        }
        for name, square, rounds in (("whole", 1.5, 3), ("cut", 1.0, 1))
    ]
    raw["training"] = {"iterations": N, "sampling_probability": 0.3}
    other = {key: head[key] for key in ("pyaccount", "name", "privacy", "accounting")} | {"phases": phases}
    found, composed = pyaccount.certify(raw).data, pyaccount.certify(other).data
    assert found.guarantee.epsilon == pytest.approx(composed.guarantee.epsilon, rel=1e-6)
    assert found.guarantee.epsilon_lower == pytest.approx(composed.guarantee.epsilon_lower, rel=1e-6)
    assert found.phases[0].effective_noise_multiplier is None
    assert not inconsistencies(found)
    # The worst case is the first part with known participations.
    moved = math.sqrt(3 * 1.5 + 1.0 + 4 * ADDED) / SIGMA
    factor = 2 if adjacency == "replace-one" else 1
    assert found.unamplified.epsilon == pytest.approx(float(oracle.gaussian_epsilon(factor * moved, DELTA)), rel=2e-4)


def lower_root(gram: Array) -> Array:
    """The lower-triangular C with this Gram matrix: Cholesky's factor from the last row up."""
    return np.tril(np.linalg.cholesky(gram[::-1, ::-1]).T[::-1, ::-1])


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_bins_are_those_of_a_matrix_with_the_same_products(adjacency: str, tmp_path: Path, monkeypatch: Any) -> None:
    """As many bins as rounds: the square matrix with the stacked encoder's Gram matrix, as a file, without other releases."""
    monkeypatch.chdir(tmp_path)
    c = np.array([[1.0, 0.0, 0.0], [0.6, 1.0, 0.0], [0.2, 0.6, 1.0]])
    root = lower_root(c.T @ c + ADDED * np.eye(3))
    assert root.min() >= 0.0
    np.save("root.npy", root)
    head = {
        **BASE,
        "privacy": {**BASE["privacy"], "adjacency": adjacency, "delta": 0.01},
        "training": {"iterations": 3},
        "sampler": {"kind": "balls-in-bins", "bins": 3},
        "accounting": {"profile": [], "seed": 5},
    }
    stacked = {**head, "matrix": {"kind": "toeplitz", "coefficients": [1.0, 0.6, 0.2], "normalize": False}}
    square = {
        **head,
        "matrix": {"kind": "dense", "file": "root.npy", "normalize": False},
        "noise": {"multiplier": SIGMA},
    }
    found, same = pyaccount.certify(stacked).data, pyaccount.certify(square).data
    assert found.guarantee.kind == same.guarantee.kind == "confidence"
    # Both intervals enclose one number.
    assert found.guarantee.epsilon_lower <= same.guarantee.epsilon
    assert same.guarantee.epsilon_lower <= found.guarantee.epsilon
    assert found.guarantee.epsilon == pytest.approx(same.guarantee.epsilon, rel=0.01)
    assert found.guarantee.epsilon_lower == pytest.approx(same.guarantee.epsilon_lower, rel=0.01)
    assert found.unamplified.epsilon == pytest.approx(same.unamplified.epsilon, rel=1e-6)
    alone = pyaccount.certify({**stacked, "noise": {"multiplier": SIGMA}}).data
    assert alone.guarantee.epsilon < 0.9 * found.guarantee.epsilon
    assert not inconsistencies(found)


@pytest.mark.parametrize("kind", ["toeplitz", "dense"])
def test_bins_that_move_no_coordinate_in_common_have_longer_modes(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five rounds in two bins, of 3 and 2 turns: the same as the matrix with longer modes, in closed form or from samples."""
    monkeypatch.chdir(tmp_path)
    c = np.eye(5) + np.diag([0.5] * 3, -2)
    np.save("apart.npy", c)
    matrix = (
        {"kind": "toeplitz", "coefficients": [1.0, 0.0, 0.5]}
        if kind == "toeplitz"
        else {"kind": "dense", "file": "apart.npy"}
    )
    # A diagonal matrix with the same norms of modes: of bins 0 and 1, by their rounds 0, 2, 4 and 1, 3.
    modes = [float(np.square(c[:, t::2].sum(axis=1)).sum()) + ADDED * turns for t, turns in ((0, 3), (1, 2))]
    np.save("diagonal.npy", np.diag([math.sqrt(modes[0] / 3), math.sqrt(modes[1] / 2)] * 2 + [math.sqrt(modes[0] / 3)]))
    head = {
        **BASE,
        "privacy": {**BASE["privacy"], "delta": 0.01},
        "training": {"iterations": 5},
        "sampler": {"kind": "balls-in-bins", "bins": 2},
    }
    found = pyaccount.certify({**head, "matrix": {**matrix, "normalize": False}}).data
    diagonal = {"kind": "dense", "file": "diagonal.npy", "normalize": False}
    same = pyaccount.certify({**head, "matrix": diagonal, "noise": {"multiplier": SIGMA}}).data
    assert found.guarantee.kind == same.guarantee.kind == "deterministic"
    assert found.guarantee.epsilon == pytest.approx(same.guarantee.epsilon, rel=1e-6)
    assert found.guarantee.epsilon_lower == pytest.approx(same.guarantee.epsilon_lower, rel=1e-6)
    assert found.unamplified.epsilon == pytest.approx(same.unamplified.epsilon, rel=1e-6)
    assert not inconsistencies(found)


@pytest.mark.parametrize("name", ["tree", "blt"])
@pytest.mark.parametrize("steps", [4, 7, N])
def test_the_first_rounds_of_a_run_have_the_other_releases_too(name: str, steps: int) -> None:
    """A prefix is written with another σ where the matrix is normalised; the other releases stay as they are."""
    if name == "tree":
        matrix: dict[str, Any] = {"kind": "tree"}
        c = np.array([row[:steps] for row in MATRICES["tree"][1] if not row[steps:].any()])
        scale = math.sqrt(4)  # the first of ten rounds is in blocks of 1, 2, 4 and 8
    else:
        matrix = {"kind": "blt", "scales": [0.3], "decays": [0.5]}
        whole = toeplitz([1.0, *(0.3 * 0.5**i for i in range(N - 1))])
        c, scale = whole[:steps, :steps], float(np.linalg.norm(whole[:, 0]))
    raw = document(matrix | {"normalize": True}, privacy={"epsilon": 20.0})
    accountant = Accountant(raw)
    accountant.step(steps)
    stacked = np.vstack([c / scale / SIGMA, *(np.eye(steps) / one["multiplier"] for one in ALSO)])
    largest = max(
        float(np.linalg.norm(stacked[:, list(pattern)].sum(axis=1)))
        for size in range(1, 4)
        for pattern in itertools.combinations(range(steps), size)
        if all(later - earlier >= 3 for earlier, later in itertools.pairwise(pattern))
    )
    exact = float(oracle.gaussian_epsilon(largest, DELTA))
    guarantee = accountant.certificate().data.guarantee
    assert guarantee.epsilon_lower <= exact * (1 + 1e-9)
    assert exact <= guarantee.epsilon <= exact * (1 + 3e-4)


def test_truncated_batches_beside_a_matrix_are_refused(snapshot: Snapshot) -> None:
    raw = document({"kind": "toeplitz", "coefficients": [1.0, 0.5]}) | sectioned(
        sampler="balls-in-bins", bins=5, truncate_to=4, iterations=N, dataset_size=10
    )
    snapshot.raised(pyaccount.compile, raw)


def test_sigma_is_solved_for_in_bins() -> None:
    """The answer with σ known, as a claim, holds."""
    matrix = {"kind": "toeplitz", "coefficients": [1.0, 0.5], "normalize": False}
    head = document(matrix, privacy={"epsilon": 2.0, "delta": 0.01}) | sectioned(
        sampler="balls-in-bins", bins=5, profile=[], seed=2, tolerance=0.05
    )
    solved = pyaccount.certify({**head, "noise": {"multiplier": "solve", "also": ALSO}}).data
    assert solved.holds
    assert solved.noise_multiplier is not None
    more = {"multiplier": solved.noise_multiplier * 1.05, "also": ALSO}
    assert pyaccount.certify({**head, "noise": more}).data.holds
    less = {"multiplier": solved.noise_multiplier * 0.9, "also": ALSO}
    assert not pyaccount.certify({**head, "noise": less}).data.holds
