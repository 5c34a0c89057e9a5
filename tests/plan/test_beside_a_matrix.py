"""Other releases beside a matrix, without sampling: the encoder stacked of all of them, by enumeration of all patterns."""

from __future__ import annotations

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
from plain_documents import changed

import pyaccount
from pyaccount.document.releases import beside
from pyaccount.errors import DocumentError

Array = NDArray[np.float64]
N, DELTA, SIGMA = 10, 1e-5, 2.5
ALSO = [{"what": "counts", "multiplier": 6.0}, {"what": "losses", "multiplier": 3.0}]
BASE: dict[str, Any] = {
    "pyaccount": 1,
    "name": "beside a matrix",
    "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": DELTA},
    "training": {"iterations": N},
    "sampler": {"kind": "none", "max_participations": 3, "min_separation": 3},
    "noise": {"multiplier": SIGMA, "also": ALSO},
    "accounting": {"profile": [0.5]},
}
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


def test_a_target_that_the_other_releases_exceed_alone_is_refused() -> None:
    raw = document({"kind": "tree"}, noise={"multiplier": "solve"}, privacy={"epsilon": 0.5})
    with pytest.raises(DocumentError) as caught:
        pyaccount.certify(raw)
    assert [problem.slug for problem in caught.value.problems] == ["target-infeasible"]


def test_a_matrix_is_not_optimised_beside_other_releases() -> None:
    raw = document(
        {"kind": "optimal-toeplitz", "bands": 3, "optimize_for": "sampling"},
        noise={"multiplier": "solve"},
        privacy={"epsilon": 3.0},
    )
    del raw["matrix"]["normalize"]
    with pytest.raises(DocumentError, match="several sums of a batch") as caught:
        pyaccount.compile(raw)
    assert caught.value.problems[0].path_text == "noise.also"


def test_what_is_added_for_each_round() -> None:
    truth = sum(Fraction(0.7) ** 2 / Fraction(sigma) ** 2 for sigma in (0.3, 11.0, 1e-3))
    assert beside(0.7, [0.3, 11.0, 1e-3]) == pytest.approx(float(truth), rel=1e-15)
