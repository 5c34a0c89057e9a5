"""The matrix inside a certificate: enough to train with, and held against the document and the error it is said to have."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificate_oracle import inconsistencies
from gate_tools import changed, golden, save
from plain_documents import doc
from snapshots import Snapshot

import pyaccount
from pyaccount.errors import CertificateError

N = 60
BASE: dict[str, Any] = doc("name=matrix epsilon=4 sampler=none min_separation=20 multiplier=solve", iterations=N)
MATRICES: dict[str, dict[str, Any]] = {
    "root": {"kind": "banded-square-root", "bands": 8},
    "wide": {"kind": "banded-square-root", "bands": 8, "normalize": False},
    "optimal": {"kind": "optimal-toeplitz", "bands": 6},
    "given": {"kind": "toeplitz", "coefficients": [2, 1, 0.5, 0]},
    "inverse": {"kind": "banded-inverse", "bands": 4},
    "inverse-given": {"kind": "banded-inverse", "inverse_coefficients": [2, -0.8, -0.2], "normalize": False},
    "blt": {"kind": "blt", "buffers": 2},
    "blt-given": {"kind": "blt", "scales": [0.5, 0.2], "decays": [0.9, 0.5]},
}
_CERTIFIED: dict[str, pyaccount.Certificate] = {}


def certified(name: str) -> pyaccount.Certificate:
    if name not in _CERTIFIED:
        _CERTIFIED[name] = pyaccount.certify({**BASE, "matrix": MATRICES[name]})
    return _CERTIFIED[name]


def toeplitz(column: np.ndarray, size: int) -> np.ndarray:
    full = np.zeros(size)
    full[: len(column)] = column[:size]
    return np.array([[full[i - j] if i >= j else 0.0 for j in range(size)] for i in range(size)])


def error(matrix: np.ndarray) -> float:
    """(1/n)‖AC⁻¹‖_F² by dense linear algebra."""
    return float(np.sum((np.tril(np.ones(matrix.shape)) @ np.linalg.inv(matrix)) ** 2)) / len(matrix)


def column_of(record: dict[str, Any]) -> np.ndarray:
    """The first column from the JSON form alone, as its fields describe it."""
    if record["buffers"] is not None:
        scales, decays = np.array(record["buffers"]["scales"]), np.array(record["buffers"]["decays"])
        rest = [float(scales @ decays ** (i - 1)) for i in range(1, N)]
        return np.array(record["normalization"] * np.array([1.0, *rest]))
    return np.array(record["coefficients"])


@pytest.mark.parametrize("name", list(MATRICES))
def test_the_certificate_alone_says_what_to_train_with(name: str) -> None:
    certificate = certified(name)
    data = json.loads(certificate.to_json())
    record = data["phases"][0]["matrix"]
    matrix = toeplitz(column_of(record), N)
    sigma = data["noise_multiplier"]
    assert sigma**2 * error(matrix) == pytest.approx(data["utility"]["prefix_sum_mse"], rel=1e-10)
    rows = np.linalg.norm(np.tril(np.ones((N, N))) @ np.linalg.inv(matrix), axis=1)
    assert sigma * rows.max() == pytest.approx(data["utility"]["max_error"], rel=1e-10)
    assert np.linalg.norm(matrix, axis=0).max() == pytest.approx(record["column_norm"], rel=1e-12)
    normalised = MATRICES[name].get("normalize", True)
    assert record["column_norm"] == pytest.approx(1.0) if normalised else record["normalization"] == 1.0
    if record["inverse_coefficients"] is not None:
        inverse = toeplitz(np.array(record["inverse_coefficients"]), N)
        np.testing.assert_allclose(inverse @ matrix, np.eye(N), atol=1e-12)
    again = pyaccount.Certificate.from_json(certificate.to_json())
    assert again.matrix is not None
    np.testing.assert_allclose(again.matrix.dense(), matrix, rtol=1e-13)
    np.testing.assert_array_equal(again.matrix.dense(7), again.matrix.dense()[:7, :7])
    assert again.matrix == certificate.matrix
    if record["coefficients"] is not None:
        # Every bit survives the text.
        assert again.matrix.coefficients.tolist() == record["coefficients"]
        assert certificate.data.phases[0].matrix.coefficients == record["coefficients"]


def test_the_coefficients_are_those_that_the_document_describes() -> None:
    record = certified("given").data.phases[0].matrix
    norm = math.hypot(2, 1, 0.5)
    assert record.coefficients == pytest.approx([2 / norm, 1 / norm, 0.5 / norm], rel=1e-15)
    assert record.normalization == pytest.approx(1 / norm, rel=1e-15)
    record = certified("inverse-given").data.phases[0].matrix
    assert record.inverse_coefficients == [2.0, -0.8, -0.2]


@pytest.mark.parametrize("rows", [20, 40])
def test_a_matrix_from_a_file_is_inside_or_known_by_its_hash(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.chdir(tmp_path)
    raw = np.tril(np.random.default_rng(5).random((rows, rows))) + np.eye(rows)
    np.save(tmp_path / "c.npy", raw)
    (tmp_path / "document.json").write_text("")
    document = {**BASE, "training": {"iterations": rows}, "matrix": {"kind": "dense", "file": str(tmp_path / "c.npy")}}
    certificate = pyaccount.certify(document)
    data, matrix = certificate.data, certificate.matrix
    assert matrix is not None
    record = data.phases[0].matrix
    assert record.size == rows
    assert (record.entries is None) == (rows > 32)
    if rows > 32:
        snapshot.raised(matrix.dense)
        np.save(tmp_path / "other.npy", raw + np.eye(rows))
        snapshot.raised(lambda: matrix.dense(file=tmp_path / "other.npy"))
    built = matrix.dense(file=tmp_path / "c.npy")
    np.testing.assert_allclose(built, raw / np.linalg.norm(raw, axis=0).max(), rtol=1e-14)
    assert data.utility is not None
    assert data.noise_multiplier is not None
    assert data.noise_multiplier**2 * error(built) == pytest.approx(data.utility.prefix_sum_mse, rel=1e-10)
    assert np.linalg.norm(built, axis=0).max() == pytest.approx(1.0)
    with snapshot.raises(CertificateError):
        _ = matrix.coefficients
    certificate.save(tmp_path / "c.json")
    assert pyaccount.check(tmp_path / "c.json", no_limits=True).passes
    assert pyaccount.verify(tmp_path / "c.json").agrees
    if rows <= 32:
        forged = json.loads(certificate.to_json())
        forged["phases"][0]["matrix"]["entries"][5][2] *= 1.01
        assert "phases[0].matrix.entries" in flaws_in(tmp_path, forged)


def test_phases_have_their_own_matrices() -> None:
    body = {key: BASE[key] for key in ("training", "sampler")}
    phases: list[dict[str, Any]] = [
        {**body, "name": "one", "noise": {"multiplier": 5.0}, "matrix": MATRICES["root"]},
        {**body, "name": "two", "noise": {"multiplier": 4.0}},
    ]
    document = {**{k: BASE[k] for k in ("pyaccount", "name")}, "privacy": {**BASE["privacy"], "epsilon": "solve"}}
    certificate = pyaccount.certify({**document, "phases": phases})
    assert certificate.matrix is None
    one, two = certificate.matrices
    assert one.coefficients.shape == (8,)
    assert (two.kind, two.coefficients.tolist(), two.normalization) == ("identity", [1.0], 1.0)
    np.testing.assert_array_equal(two.dense(3), np.eye(3))
    phases[1]["matrix"] = MATRICES["root"]
    shared = pyaccount.certify({**document, "phases": phases}).matrix
    assert shared is not None
    assert shared.coefficients.tolist() == one.coefficients.tolist()


def test_coefficients_that_are_not_stated_are_missed(snapshot: Snapshot) -> None:
    damaged = golden("verified")
    damaged["phases"][0]["matrix"] |= {"normalization": None, "coefficients": None}
    matrix = pyaccount.Certificate.from_json(json.dumps(damaged)).matrix
    assert matrix is not None
    assert matrix.kind == "banded-square-root"
    with snapshot.raises(CertificateError):
        _ = matrix.coefficients
    plain = pyaccount.Certificate.from_json(json.dumps(golden("deterministic"))).matrix
    assert plain is not None
    assert plain.dense(2).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("size", [0, N + 1, -1, "3"])
def test_only_leading_blocks_are_built(size: Any, snapshot: Snapshot) -> None:
    matrix = certified("root").matrix
    assert matrix is not None
    snapshot.raised(matrix.dense, size)


def flaws_in(folder: Path, certificate: dict[str, Any]) -> str:
    """What the oracle finds; a gate finds by the hash that something was changed."""
    (judged,) = pyaccount.check(save(folder, certificate, "forged.json", careless=True), no_limits=True).certificates
    assert not judged.passes
    data = pyaccount.Certificate.from_json(json.dumps(certificate)).data
    return "\n".join(f"{one.path}: {one.message}" for one in inconsistencies(data))


def times(field: str, index: int, factor: float) -> Callable[[dict[str, Any]], None]:
    def forge(record: dict[str, Any]) -> None:
        place = record
        for key in field.split("."):
            place = place[key]
        place[index] *= factor  # type: ignore[index]

    return forge


def swap(record: dict[str, Any]) -> None:
    """The same norm."""
    column = record["coefficients"]
    column[1], column[2] = column[2], column[1]


def rescaled(record: dict[str, Any]) -> None:
    record["coefficients"] = [2.0 * c for c in record["coefficients"]]
    record["column_norm"] = 2.0
    record["normalization"] *= 2.0


FORGERIES: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("root", times("coefficients", 3, 1.0 + 1e-6), "coefficients[3]"),
    ("wide", times("coefficients", 3, 1.0 + 1e-6), "coefficients[3]"),
    ("given", times("coefficients", 1, 0.99), "coefficients[1]"),
    ("optimal", times("coefficients", 2, 1.01), "coefficients"),
    ("optimal", swap, "coefficients"),
    ("inverse", times("inverse_coefficients", 1, 1.001), "inverse_coefficients[1]"),
    ("inverse", times("coefficients", 30, 1.001), "coefficients[30]"),
    ("inverse-given", times("inverse_coefficients", 2, 1.001), "inverse_coefficients[2]"),
    ("blt", times("buffers.scales", 1, 1.01), "buffers"),
    ("blt-given", times("buffers.decays", 0, 0.999), "buffers.decays[0]"),
    ("root", rescaled, "column_norm"),
    ("wide", lambda record: record.update(normalization=0.5), "normalization"),
    ("root", lambda record: record["coefficients"].append(0.0), "coefficients"),
    ("root", times("coefficients", 0, -1.0), "coefficients"),
    ("root", lambda record: record.update(kind="optimal-toeplitz"), "kind"),
]


@pytest.mark.parametrize(("name", "forge", "place"), FORGERIES)
def test_a_forged_matrix_is_named_at_once(
    name: str, forge: Callable[[dict[str, Any]], None], place: str, tmp_path: Path
) -> None:
    honest = json.loads(certified(name).to_json())
    assert pyaccount.check(save(tmp_path, honest), no_limits=True).passes
    forge(honest["phases"][0]["matrix"])
    assert f"phases[0].matrix.{place}" in flaws_in(tmp_path, honest)


def test_verify_builds_every_matrix_anew(tmp_path: Path) -> None:
    """Where no error is stated, a column of the same norm contradicts nothing."""
    certificate = pyaccount.certify({**BASE, "matrix": MATRICES["optimal"], "count": 2})
    honest = json.loads(certificate.to_json())
    assert pyaccount.verify(save(tmp_path, honest)).agrees
    forged = json.loads(certificate.to_json())
    swap(forged["phases"][0]["matrix"])
    assert pyaccount.check(save(tmp_path, forged), no_limits=True).passes
    found = pyaccount.verify(save(tmp_path, forged))
    wrong = {one.path for one in found.differences if not one.agrees}
    assert wrong == {"phases[0].matrix.coefficients[1]", "phases[0].matrix.coefficients[2]"}
    # What another library's search would move does not count.
    moved = json.loads(certificate.to_json())
    moved["phases"][0]["matrix"]["coefficients"][5] += 1e-9
    assert pyaccount.verify(save(tmp_path, moved)).agrees


def test_forms_for_people_mention_it() -> None:
    certificate = certified("root")
    for form in (certificate.to_text(), certificate.to_html(), certificate.to_markdown()):
        assert "coefficients, in the field " in form
    assert "coefficients" not in pyaccount.certify(changed(BASE)).to_text()


def test_a_gate_holds_a_matrix_without_numerics(tmp_path: Path) -> None:
    path = save(tmp_path, certified("root").to_json())
    script = f"import sys, pyaccount; assert pyaccount.check({str(path)!r}, no_limits=True); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
