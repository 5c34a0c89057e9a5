"""How far one record moves a run whose matrix has no structure: exact where that can be known, else enclosed.

The truth is an enumeration of all sets of rounds, or counted on a tree; ε follows by the Gaussian mechanism's closed form.
"""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from numpy.typing import NDArray
from plain_documents import doc

import pyaccount
from pyaccount import _core
from pyaccount.plan.matrices.sensitivity import dense_sensitivity, toeplitz_sensitivity

Array = NDArray[np.float64]
LEAVES = 64


def shared_nodes(i: int, j: int) -> int:
    """The nodes of the complete tree above two leaves: their paths to the root meet, and go on together."""
    return int(math.log2(LEAVES)) + 1 - (i ^ j).bit_length()


def tree_gram() -> Array:
    return np.array([[float(shared_nodes(i, j)) for j in range(LEAVES)] for i in range(LEAVES)])


def tree_root() -> Array:
    """The lower-triangular C ≥ 0 with CᵀC the Gram matrix of the tree: Cholesky's factor from the last row up."""
    factor = np.linalg.cholesky(tree_gram()[::-1, ::-1])
    root = np.tril(factor.T[::-1, ::-1])
    assert root.min() > -1e-12
    return np.asarray(np.maximum(root, 0.0) * (root > 1e-12))


def toeplitz(column: list[float], n: int) -> Array:
    padded = [*column, *([0.0] * n)][:n]
    return np.array([[padded[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])


def worst(gram: Array, b: int, most: int) -> float:
    """The largest Σ G_ij over sets of at most `most` rounds at least b apart, by trying all of the largest size and fewer."""
    return max(
        gram[np.ix_(rounds, rounds)].sum()
        for size in range(1, most + 1)
        for rounds in itertools.combinations(range(len(gram)), size)
        if all(later - earlier >= b for earlier, later in itertools.pairwise(rounds))
    )


def certified(matrix: Array, folder: Path, most: int, *, normalize: bool, sigma: float = 3.0) -> Any:
    np.save(folder / "matrix.npy", matrix)
    return pyaccount.certify(
        doc(
            "name='from a file' sampler=none matrix=dense profile=[]",
            iterations=len(matrix),
            max_participations=most,
            file=str(folder / "matrix.npy"),
            normalize=normalize,
            multiplier=sigma,
        )
    )


@pytest.mark.parametrize(("most", "square", "epsilon"), [(1, 7, 3.7868), (2, 26, 8.1958)])
@pytest.mark.usefixtures("in_tmp_path")
def test_a_tree_costs_the_nodes_that_a_record_is_in(most: int, square: int, epsilon: float, tmp_path: Path) -> None:
    """No separation: at one participation ε was 22.4 where the truth is 3.79, at two 36.0 where it is 8.20."""
    gram = tree_gram()
    patterns = itertools.combinations(range(LEAVES), most)
    assert square == round(max(gram[np.ix_(some, some)].sum() for some in patterns))
    certificate = certified(tree_root(), tmp_path, most, normalize=False)
    truth = float(oracle.gaussian_epsilon(math.sqrt(square) / 3.0, 1e-5))
    assert truth == pytest.approx(epsilon, abs=5e-5)
    assert certificate.epsilon >= truth * (1.0 - 1e-9)
    assert certificate.epsilon == pytest.approx(truth, rel=1e-5)
    (reduction,) = certificate.to_dict()["reductions"]
    assert reduction["tight"]


@pytest.mark.usefixtures("in_tmp_path")
def test_a_square_root_from_a_file_costs_what_its_coefficients_do(tmp_path: Path) -> None:
    """One participation: ε was 12.1, at a column of norm 1."""
    roots = np.cumprod([1.0, *((2 * j - 1) / (2 * j) for j in range(1, LEAVES))])
    matrix = toeplitz(roots.tolist(), LEAVES)
    truth = float(oracle.gaussian_epsilon(1.0 / 2.0, 1e-5))
    assert certified(matrix, tmp_path, 1, normalize=True, sigma=2.0).epsilon == pytest.approx(truth, rel=1e-5)
    for most in (1, 2, 7, 40):
        sums = matrix[:, :most].sum(axis=1)
        assert dense_sensitivity(matrix, 1, most) == pytest.approx((float(np.linalg.norm(sums)),) * 2, rel=1e-12)
        # The same but for the last digits, so that no coefficients are seen.
        noisy = matrix * (1.0 + 1e-13 * np.random.default_rng(most).random(matrix.shape))
        above, below = dense_sensitivity(noisy, 1, most)
        assert below == pytest.approx(float(np.linalg.norm(sums)), rel=1e-9)
        assert below <= above <= below * (1.0 + (1e-9 if most < 10 else 0.01))


@pytest.mark.parametrize("seed", range(4))
def test_few_rounds_are_known_exactly(seed: int) -> None:
    rng, n = np.random.default_rng(seed), 11
    matrix = np.tril(rng.random((n, n)) * (rng.random((n, n)) < 0.6)) + np.eye(n)
    for b, most in ((1, 1), (1, 2), (1, 4), (1, 8), (2, 3), (3, 2), (4, 3), (11, 1)):
        above, below = dense_sensitivity(matrix, b, most)
        assert above == below == pytest.approx(math.sqrt(worst(matrix.T @ matrix, b, most)), rel=1e-12)


def test_many_rounds_are_enclosed_and_no_looser_than_columns_with_their_nearest() -> None:
    """√(k·max_i (G_ii + the k − 1 largest others of row i)) bounds every pattern; ours is never above it."""
    rng, n, most = np.random.default_rng(5), 150, 12
    matrix = np.tril(rng.random((n, n)))
    gram = matrix.T @ matrix
    others = np.sort(gram - np.diag(gram.diagonal()), axis=1)[:, -(most - 1) :].sum(axis=1)
    upper, lower, rounds = _core.worst_rounds(gram, n, 1, most, 10**6)
    assert upper <= most * (gram.diagonal() + others).max() * (1.0 + 1e-12)
    assert lower == pytest.approx(gram[np.ix_(rounds, rounds)].sum(), rel=1e-12)
    assert len(rounds) <= most
    for _ in range(300):
        some = rng.choice(n, most, replace=False)
        assert gram[np.ix_(some, some)].sum() <= upper
    assert upper <= 1.01 * lower


def test_long_toeplitz_runs_count_each_pair_once() -> None:
    """Two rounds two apart share most: 2(‖c‖² + c_0 c_2), where each product was counted with both of its columns."""
    column = (1.0, 0.2, 0.9)
    square = 2.0 * (1.0 + 0.04 + 0.81 + 0.9)
    for n in (400, 2000):
        assert toeplitz_sensitivity(column, n, 1, 2) == pytest.approx((math.sqrt(square),) * 2, rel=1e-12)
    assert toeplitz_sensitivity((0.5, 1.0), 2000, 1, 1) == pytest.approx((math.sqrt(1.25),) * 2, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e250])
def test_no_square_vanishes_or_overflows(scale: float) -> None:
    above, below = dense_sensitivity(tree_root() * scale, 1, 2)
    assert above == below == pytest.approx(scale * math.sqrt(26.0), rel=1e-12)
