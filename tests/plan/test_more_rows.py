"""Matrices from files with more rows than columns: only CᵀC matters for privacy, and the error is that of least squares."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from certificate_oracle import inconsistencies
from numpy.typing import NDArray
from plain_documents import changed, doc
from snapshots import Snapshot

import pyaccount
from pyaccount.strategies.dense import MOST_ROWS, MatrixFileError, dense_error, load_dense
from pyaccount.strategies.measure import Workload
from pyaccount.strategies.workload import dense_workload

Array = NDArray[np.float64]
N, ROWS, DELTA, SIGMA = 9, 15, 1e-5, 2.0
#: Rows in no order, one of them empty; the first entry is 0.
ENCODER = np.random.default_rng(11).uniform(0.0, 1.0, (ROWS, N)) * (np.random.default_rng(12).random((ROWS, N)) < 0.5)
ENCODER[0, 0], ENCODER[4] = 0.0, 0.0
BASE: dict[str, Any] = doc(
    "name='more rows' sampler=none max_participations=3 min_separation=2 matrix=dense file=encoder.npy",
    "normalize=False profile=[]",
    delta=DELTA,
    iterations=N,
    multiplier=SIGMA,
)


def document(**sections: dict[str, Any]) -> dict[str, Any]:
    return changed(BASE, None, sections)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    np.save(tmp_path / "encoder.npy", ENCODER)
    np.savetxt(tmp_path / "encoder.csv", ENCODER, delimiter=",", fmt="%.17g")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def worst(c: Array, apart: int, most: int) -> float:
    return max(
        float(np.linalg.norm(c[:, list(pattern)].sum(axis=1)))
        for size in range(1, most + 1)
        for pattern in itertools.combinations(range(N), size)
        if all(later - earlier >= apart for earlier, later in itertools.pairwise(pattern))
    )


@pytest.mark.parametrize("file", ["encoder.npy", "encoder.csv"])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("apart", "most"), [(1, 1), (2, 3), (1, N)])
def test_the_guarantee_is_that_of_the_worst_pattern(file: str, normalize: bool, apart: int, most: int) -> None:
    sampler = {"max_participations": most, "min_separation": apart}
    data = pyaccount.certify(document(sampler=sampler, matrix={"file": file, "normalize": normalize})).data
    norm = worst(ENCODER, apart, most) / (np.linalg.norm(ENCODER, axis=0).max() if normalize else 1.0)
    exact = float(oracle.gaussian_epsilon(norm / SIGMA, DELTA))
    assert data.guarantee.epsilon_lower <= exact <= data.guarantee.epsilon
    assert data.guarantee.epsilon == pytest.approx(exact, rel=2e-4)
    assert data.reductions[0].tight
    assert any("C⁺Z" in text for text in data.assumptions)
    assert not inconsistencies(data)


def test_an_orthogonal_transform_of_the_rows_changes_nothing(folder: Path, snapshot: Snapshot) -> None:
    """Only CᵀC matters: the lower-triangular root of the same Gram matrix has the same ε and the same error."""
    # The root of a random Gram matrix may have negative entries, so the encoder is made of a root without.
    root = np.tril(np.random.default_rng(4).uniform(0.1, 1.0, (N, N)))
    turned = np.linalg.qr(np.random.default_rng(5).normal(size=(ROWS, ROWS)))[0][:, :N] @ root
    assert (turned < 0.0).any()
    stacked = np.vstack([root / math.sqrt(2.0), root[::-1] / math.sqrt(2.0)])
    found = []
    for c in (root, stacked):
        np.save(folder / "one.npy", c)
        data = pyaccount.certify(document(matrix={"file": "one.npy"})).data
        assert data.utility is not None
        found.append((data.guarantee.epsilon, data.utility.prefix_sum_mse, data.utility.max_error))
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    np.save(folder / "one.npy", turned)
    snapshot.raised(lambda: pyaccount.compile(document(matrix={"file": "one.npy"})))


@pytest.mark.parametrize("workload", [Workload(), Workload(0.9, 0.5, tuple(np.linspace(0.1, 1.0, N).tolist()))])
def test_the_error_is_that_of_the_pseudo_inverse(workload: Workload) -> None:
    rows = np.square(dense_workload(workload, N) @ np.linalg.pinv(ENCODER)).sum(axis=1)
    found = dense_error(ENCODER, workload)
    assert found.mean_square == pytest.approx(rows.mean(), rel=1e-10)
    assert found.max_square == pytest.approx(rows.max(), rel=1e-10)


def test_the_certificate_states_the_matrix(snapshot: Snapshot) -> None:
    certificate = pyaccount.certify(document(matrix={"normalize": True}))
    record = certificate.data.phases[0].matrix
    assert (record.size, record.rows, record.bands) == (N, ROWS, None)
    matrix = certificate.matrix
    assert matrix is not None
    assert np.allclose(matrix.dense(), ENCODER / np.linalg.norm(ENCODER, axis=0).max(), rtol=1e-15)
    assert np.array_equal(matrix.encoder(), matrix.dense())
    snapshot.raised(matrix.dense, 3)
    assert "15 rows" in certificate.to_markdown()
    described = pyaccount.matrix(document(noise={"multiplier": 1.0}))
    assert "(C⁺)_tr" in described.phases[0].generation


def test_a_long_matrix_is_known_by_its_file(folder: Path, snapshot: Snapshot) -> None:
    long = np.vstack([np.tril(np.ones((40, 40))), np.eye(40)])
    np.save(folder / "long.npy", long)
    certificate = pyaccount.certify(document(training={"iterations": 40}, matrix={"file": "long.npy"}))
    assert certificate.data.phases[0].matrix.entries is None
    assert certificate.matrix is not None
    assert np.array_equal(certificate.matrix.dense(file="long.npy"), long)
    snapshot.raised(certificate.matrix.dense)


@pytest.mark.parametrize(
    ("sampler", "training"),
    [
        ({"kind": "b-min-sep", "min_separation": 3}, {"sampling_probability": 0.1}),
        ({"kind": "balls-in-bins", "bins": 3}, {}),
        ({"kind": "cyclic-poisson", "partitions": 3}, {"sampling_probability": 0.1}),
    ],
)
def test_sampling_is_refused(sampler: dict[str, Any], training: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.compile(document(training=training) | {"sampler": sampler}))


def test_dependent_columns_are_refused(folder: Path, snapshot: Snapshot) -> None:
    """Two rounds that are always added up with the same weights cannot be told apart."""
    dependent = ENCODER.copy()
    dependent[:, 3] = dependent[:, 2] * 0.5
    np.save(folder / "encoder.npy", dependent)
    snapshot.raised(lambda: pyaccount.compile(document()))


def test_too_many_rows_are_refused_unread(folder: Path) -> None:
    np.save(folder / "encoder.npy", np.ones((MOST_ROWS + 1, 1)))
    with pytest.raises(MatrixFileError, match=f"{MOST_ROWS + 1} rows; .* may have {MOST_ROWS}"):
        load_dense(folder / "encoder.npy", 1)
