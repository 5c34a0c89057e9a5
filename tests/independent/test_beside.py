"""Dense matrices from files: the right bytes prove, others do not, and what a pattern of participations moves is enumerated."""

import hashlib
import json
import math
import os
import random
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from normal_forms import claim, form, spaced
from scipy.stats import norm

import pyaccount
from pyaccount.independent.apart import check_apart
from pyaccount.independent.beside import with_columns
from pyaccount.independent.columns import of_dense
from pyaccount.independent.form import parsed

MATRIX = np.array([[0.9, 0, 0], [0.4, 0.8, 0], [0.1, 0.3, 1.1]])


def run(matrix: Any, participations: int = 1, separation: int = 1, normalised: str = "no") -> str:
    """Return the form of a run without sampling, σ = 2."""
    dense = {"kind": "dense", "normalised": normalised, "sha256": hashlib.sha256(matrix.tobytes()).hexdigest()}
    sampler = {"kind": "ordered", "participations": str(participations), "separation": str(separation)}
    return form({"kind": "run", "matrix": dense, "noise": ["2"], "rounds": str(len(matrix)), "sampler": sampler})


def norms(matrix: Any, most: int, apart: int) -> float:
    """Return the largest ‖Σ c_i‖ over all patterns."""
    n = len(matrix)
    patterns = (each for k in range(1, most + 1) for each in combinations(range(n), k))
    apart_enough = (each for each in patterns if all(b - a >= apart for a, b in pairwise(each)))
    return max(float(np.linalg.norm(matrix[:, each].sum(axis=1))) for each in apart_enough)


def gaussian_delta(moved: float, epsilon: float) -> float:
    """Return δ(ε) of the Gaussian mechanism that moves so many standard deviations."""
    middle = moved / 2 - epsilon / moved
    return float(norm.cdf(middle) - math.exp(epsilon) * norm.cdf(middle - moved))


def verdict(text: str, epsilon: float, delta: float, folder: Path | None) -> str:
    return str(check_apart(claim(text, epsilon, delta), 20.0, folder=folder)["verdict"])


@pytest.mark.parametrize(("normalised", "size"), [("no", math.hypot(0.3, 0.8)), ("yes", 1.0)])
def test_a_matrix_beside_a_certificate_proves_its_claim(tmp_path: Path, normalised: str, size: float) -> None:
    np.save(tmp_path / "matrix.npy", MATRIX)
    text = run(MATRIX, normalised=normalised)
    longest = norms(MATRIX, 1, 1)
    delta = gaussian_delta((size if normalised == "yes" else longest) / 2, 1.0)
    assert longest > size or normalised == "yes"
    assert verdict(text, 1.0, delta * 1.0001, tmp_path) == "proven"
    assert verdict(text, 1.0, delta * 0.99, tmp_path) == "refuted"


def with_a_changed_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def outside(path: Path) -> None:
    """Move the file out of the folder, and leave a link to it."""
    moved = path.parent.parent / "elsewhere.npy"
    path.rename(moved)
    path.symlink_to(moved)


def below(path: Path) -> None:
    """Move the file into a folder of the folder."""
    (path.parent / "data").mkdir()
    path.rename(path.parent / "data" / path.name)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a changed byte": with_a_changed_byte,
    "no file": Path.unlink,
    "a link to a file outside": outside,
    "a folder of this name": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a file below": below,
    "a cut file": lambda path: path.write_bytes(path.read_bytes()[:-8]),
    "a longer file": lambda path: path.write_bytes(path.read_bytes() + bytes(8)),
    "another order": lambda path: np.save(path, np.asfortranarray(MATRIX)),
    "other numbers": lambda path: np.save(path, MATRIX.astype("<f4")),
    "nothing but entries": lambda path: path.write_bytes(MATRIX.tobytes()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_files_prove_nothing(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "certificates"
    folder.mkdir()
    np.save(folder / "matrix.npy", MATRIX)
    assert verdict(run(MATRIX), 1.0, 0.9, folder) == "proven"
    CHANGES[name](folder / "matrix.npy")
    found = check_apart(claim(run(MATRIX), 1.0, 0.9), 20.0, folder=folder)
    assert found["verdict"] == "not checkable"
    assert "beside" in found["reason"]


def test_without_a_folder_nothing_is_looked_for() -> None:
    assert verdict(run(MATRIX), 1.0, 0.9, None) == "not checkable"


@pytest.mark.parametrize("entry", [-0.1, math.nan, math.inf])
@pytest.mark.parametrize("row", [0, 2])
def test_matrices_that_have_no_theorem_are_refused(tmp_path: Path, entry: float, row: int) -> None:
    wrong = MATRIX.copy()
    wrong[row, 2 - row] = abs(entry) if row == 0 else entry
    np.save(tmp_path / "matrix.npy", wrong)
    found = check_apart(claim(run(wrong), 1.0, 0.9), 20.0, folder=tmp_path)
    assert found["verdict"] == "not checkable"
    assert "above its diagonal" in found["reason"]


@pytest.mark.parametrize("seed", range(12))
def test_patterns_are_bounded(tmp_path: Path, seed: int) -> None:
    drawn = np.random.default_rng(seed)
    n, most, apart = int(drawn.integers(1, 9)), int(drawn.integers(1, 4)), int(drawn.integers(1, 4))
    bands = apart if seed % 2 else n
    matrix = np.triu(np.tril(drawn.uniform(0, 1, (n, n))), 1 - bands) + np.eye(n) * 0.1
    np.save(tmp_path / "matrix.npy", matrix)
    columns = with_columns(parsed(run(matrix)), tmp_path)["mechanism"]["matrix"]
    bound, exact = math.sqrt(of_dense(columns, apart, most)), norms(matrix, most, apart)
    assert bound >= exact * (1 - 1e-14)
    # Columns that are so far from each other are orthogonal; a single one is the largest.
    assert bound <= exact * (1 + (1e-14 if bands <= apart or most == 1 else 0.2))


def test_a_dense_matrix_under_sampling_is_bounded_by_a_toeplitz_matrix(tmp_path: Path) -> None:
    column = [0.9, 0.4]
    matrix = np.array([[column[i - j] if 0 <= i - j < 2 else 0 for j in range(4)] for i in range(4)])
    smaller = matrix.copy()
    smaller[3, 2] = 0.1
    toeplitz = {"column": ["0.9", "0.4"], "kind": "toeplitz", "normalised": "no"}
    deltas = {}
    for name, dense in (("toeplitz", None), ("same", matrix), ("smaller", smaller)):
        node = toeplitz
        if dense is not None:
            np.save(tmp_path / f"{name}.npy", dense)
            node = {"kind": "dense", "normalised": "no", "sha256": hashlib.sha256(dense.tobytes()).hexdigest()}
        text = form(spaced(4, 2, "0.1", node, "0.7"), "zero-out")
        deltas[name] = check_apart(claim(text, 3.0, 0.05), 4.0, folder=tmp_path)["proven"]["epsilon"]
    assert deltas["same"] == pytest.approx(deltas["toeplitz"], rel=1e-9)
    assert deltas["smaller"] == deltas["same"]


def test_a_certificate_of_a_document_with_a_file_is_proven(tmp_path: Path) -> None:
    rng = random.Random(5)
    matrix = np.array([[rng.uniform(0.1, 1) if 0 <= i - j < 3 else 0 for j in range(12)] for i in range(12)])
    np.save(tmp_path / "matrix.npy", matrix)
    document = {
        "pyaccount": 1,
        "name": "dense",
        "privacy": {"adjacency": "add-remove", "epsilon": 2, "delta": 1e-5},
        "training": {"dataset_size": 100, "expected_batch_size": 10, "iterations": 12},
        "sampler": {"kind": "none", "max_participations": 3, "min_separation": 4},
        "matrix": {"kind": "dense", "file": "matrix.npy"},
        "noise": {"multiplier": "solve"},
    }
    certificate = tmp_path / "dense.json"
    (tmp_path / "document.yaml").write_text(json.dumps(document))
    certificate.write_text(pyaccount.certify(tmp_path / "document.yaml").to_json())
    assert json.loads(json.loads(certificate.read_text())["mechanism"])["mechanism"]["matrix"]["kind"] == "dense"
    found = check_apart(certificate.read_text(), 20.0, folder=tmp_path)
    assert found["verdict"] == "proven"
    (tmp_path / "matrix.npy").unlink()
    assert check_apart(certificate.read_text(), 20.0, folder=tmp_path)["verdict"] == "not checkable"
