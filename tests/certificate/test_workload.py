"""Workloads: what documents may say, what matrices make of it, and that every error in a certificate says what it is of."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gate_tools import rehashed
from numpy.typing import NDArray
from plain_documents import doc, sectioned
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli
from pyaccount.accountant.planned import Planned
from pyaccount.certificate.saving import certificate_text
from pyaccount.execute.choose import choose
from pyaccount.execute.options import RunOptions
from pyaccount.plan.compiling import compile_document

Array = NDArray[np.float64]
N, RATES = 30, [1.0 / (1 + t) for t in range(30)]
MOMENTUM = {"momentum": 0.9}
WORKLOADS: dict[str, dict[str, Any]] = {
    "momentum": MOMENTUM,
    "all": {"momentum": 0.5, "ema_decay": 0.9, "learning_rates": RATES},
}
OPTIMAL = {"kind": "optimal-toeplitz", "bands": 4}


def document(workload: dict[str, Any] | None, **changes: Any) -> dict[str, Any]:
    """Closed forms: nothing is sampled."""
    said = {} if workload is None else {"workload": workload}
    return doc(
        "name=workload epsilon=2 sampler=none max_participations=3 min_separation=10 multiplier=solve profile=[]",
        said,
        changes,
        iterations=N,
        matrix=OPTIMAL,
    )


def as_text(certificate: pyaccount.Certificate) -> str:
    """The form for terminals, without its frame."""
    return " ".join(certificate_text(certificate.data, "text").replace("│", " ").split())


def trained(workload: dict[str, Any], noise: Array) -> Array:
    """What SGD has after each round, if the sums are nothing but noise."""
    step, iterate, average = (np.zeros(noise.shape[1]) for _ in range(3))
    seen, decay = [], workload.get("ema_decay", 0.0)
    for rate, row in zip(workload.get("learning_rates", [1.0] * len(noise)), noise, strict=True):
        step = workload.get("momentum", 0.0) * step + row
        iterate = iterate + rate * step
        average = decay * average + (1.0 - decay) * iterate
        seen.append(average)
    return np.array(seen)


@pytest.fixture(scope="module", params=WORKLOADS)
def certified(request: pytest.FixtureRequest) -> tuple[dict[str, Any], pyaccount.Certificate]:
    workload = WORKLOADS[request.param]
    return workload, pyaccount.certify(document(workload))


def test_the_errors_are_those_of_the_loop(certified: tuple[dict[str, Any], pyaccount.Certificate]) -> None:
    workload, certificate = certified
    found, sigma = certificate.data.utility, certificate.noise_multiplier
    assert found is not None
    assert found.workload is not None
    assert sigma is not None
    inverse = np.linalg.inv(certificate.matrix.dense())
    variances = sigma**2 * np.square(trained(workload, inverse)).sum(axis=1)
    assert math.isclose(found.workload.mse, variances.mean(), rel_tol=1e-10)
    assert math.isclose(found.workload.rmse, math.sqrt(variances.mean()), rel_tol=1e-10)
    assert math.isclose(found.workload.max_error, math.sqrt(variances.max()), rel_tol=1e-10)
    sums = sigma**2 * np.square(np.tril(np.ones((N, N))) @ inverse).sum(axis=1)
    assert math.isclose(found.prefix_sum_mse, sums.mean(), rel_tol=1e-10)


def test_every_form_says_what_its_errors_are_of(certified: tuple[dict[str, Any], pyaccount.Certificate]) -> None:
    _, certificate = certified
    utility = certificate.data.utility
    assert utility is not None
    assert utility.workload is not None
    forms = (as_text(certificate), certificate.to_markdown(), certificate.to_html(), certificate.to_json())
    for form in forms:
        assert utility.workload.what in " ".join(form.replace("│", " ").split())
    for form in forms[:3]:
        assert f"{utility.workload.mse:.6g}" in form


def test_a_matrix_that_is_optimal_for_it_is_better(certified: tuple[dict[str, Any], pyaccount.Certificate]) -> None:
    workload, certificate = certified
    usual = pyaccount.certify(document(None)).matrix.coefficients.tolist()
    other = pyaccount.certify(document(workload, matrix={"kind": "toeplitz", "coefficients": usual})).data.utility
    found = certificate.data.utility
    assert found is not None
    assert found.workload is not None
    assert other is not None
    assert other.workload is not None
    assert found.workload.mse < 0.999 * other.workload.mse
    assert found.prefix_sum_mse > other.prefix_sum_mse


def test_a_workload_of_prefix_sums_changes_nothing() -> None:
    data = json.loads(pyaccount.certify(document(None)).to_json())
    assert data["utility"].pop("workload") is None
    # A workload that says nothing else is that of prefix sums, and changes no figure but its own.
    other = json.loads(pyaccount.certify(document({})).to_json())
    said = other["utility"].pop("workload")
    assert said == {
        "what": "prefix sums",
        "mse": data["utility"]["prefix_sum_mse"],
        "rmse": data["utility"]["prefix_sum_rmse"],
        "max_error": data["utility"]["max_error"],
    }
    assert [other[key] for key in ("utility", "guarantee", "phases")] == [
        data[key] for key in ("utility", "guarantee", "phases")
    ]


def test_it_is_verified(certified: tuple[dict[str, Any], pyaccount.Certificate]) -> None:
    assert pyaccount.verify(certified[1]).agrees


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("utility.workload.mse", 1.0),
        ("utility.workload.rmse", 1.0),
        ("utility.workload.max_error", 1.0),
        ("utility.workload.what", "prefix sums"),
        ("utility.workload", None),
        ("document.workload", {"momentum": 0.1}),
        ("document.workload", None),
        ("document.workload", {"learning_rates": RATES[::-1]}),
    ],
)
@pytest.mark.parametrize("workload", ["momentum", "all"])
def test_a_gate_sees_what_was_changed(workload: str, path: str, value: Any, tmp_path: Path) -> None:
    raw = json.loads(pyaccount.certify(document(WORKLOADS[workload])).to_json())
    *above, last = path.split(".")
    place = raw
    for step in above:
        place = place[step]
    if path == "document.workload" and value is None:
        del place[last]
    else:
        place[last] = value
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(rehashed(raw)), encoding="utf-8")
    # Without recomputing anything.
    found = cli.run(["check", str(file), "--max-epsilon", "3", "--max-delta", "1e-4"])
    assert found == 1


def test_the_matrix_command_says_it(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    file = tmp_path / "document.yaml"
    file.write_text(json.dumps(document(MOMENTUM)), encoding="utf-8")
    snapshot(run("matrix", file))
    described = pyaccount.matrix(document(MOMENTUM))
    variances = np.square(trained(MOMENTUM, np.linalg.inv(described.matrices[0].dense()))).sum(axis=1)
    found = described.phases[0].workload
    assert found is not None
    assert math.isclose(found.mse, variances.mean(), rel_tol=1e-10)
    assert pyaccount.matrix(document(None)).phases[0].workload is None


@pytest.mark.parametrize("error", ["mean", "largest"])
def test_choices_are_made_by_it(error: str) -> None:
    """With strong momentum and averages wide matrices lose what prefix sums gain by them."""
    workload = {"momentum": 0.95, "ema_decay": 0.9, "error": error}
    raw = document(workload, matrix={"kind": "banded-square-root", "bands": {"choose": [2, 12]}})
    raw["sampler"] = {"kind": "none", "max_participations": 3, "min_separation": 6}
    plan = choose(compile_document(pyaccount.load(raw)), RunOptions(threads=1, seed=1))
    certificates = []
    for one in plan.considered:
        fixed = raw | {"matrix": {"kind": "banded-square-root", "bands": one.bands}}
        utility = pyaccount.certify(fixed).data.utility
        assert utility is not None
        assert utility.workload is not None
        expected = utility.workload.mse if error == "mean" else utility.workload.max_error**2
        assert math.isclose(one.squared_error, expected, rel_tol=1e-3)
        certificates.append((one.squared_error, one.prefix_sum_mse, one.bands))
    assert plan.document.run.matrix.diagonals() == min(certificates)[2]
    found = pyaccount.certify(raw)
    assert [one.workload_error_estimate for one in found.data.evidence.considered] == [one[0] for one in certificates]
    assert "squared error under the workload" in found.to_html()


def test_blts_follow_it() -> None:
    matrix = {"kind": "blt", "buffers": 1}
    usual, found = (pyaccount.matrix(document(one, matrix=matrix)).phases[0] for one in ({}, MOMENTUM))
    assert found.workload is not None
    assert usual.matrix.buffers != found.matrix.buffers


def test_comparisons_have_a_column_where_there_is_one() -> None:
    plain = pyaccount.compare([document(None)])
    assert "| workload | its MSE" not in plain.to_markdown()
    both = pyaccount.compare([document(None), document(MOMENTUM), document({"momentum": 0.5})])
    assert [row.workload for row in both.rows] == [None, "iterates under momentum 0.9", "iterates under momentum 0.5"]
    assert "| workload | its MSE" in both.to_markdown()
    assert "workloads differ" in both.to_markdown()


def test_prefixes_of_a_run_have_the_matrix_of_the_whole_run() -> None:
    """An accountant cuts a run short: its matrix is the leading block of the one that is optimal for the whole workload."""
    privacy = {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5}
    raw = document(WORKLOADS["all"], noise={"multiplier": 3.0}, privacy=privacy, count=3)
    plan = Planned(pyaccount.load(raw), 3 * N, sampled=False)
    matrix = pyaccount.matrix(raw).phases[0].matrix.coefficients
    found = [pyaccount.matrix(plan.prefix(rounds).to_mapping()).phases for rounds in (12, N, N + 12, 3 * N)]
    assert [len(phases) for phases in found] == [1, 1, 2, 1]
    assert all(phase.matrix.coefficients == matrix for phases in found for phase in phases)


WRONG: dict[str, Any] = {
    "length": {"workload": {"learning_rates": [0.1, 0.2]}},
    "epochs": {
            "workload": {"learning_rates": RATES},
            "training": {"dataset_size": 100, "expected_batch_size": 10, "epochs": 2},
        },
    "zeros": {"workload": {"learning_rates": [0.0] * N}},
    "unknown length": sectioned(workload={"learning_rates": RATES}, iterations="solve", multiplier=5, matrix="identity"),
    "largest": {"workload": {"learning_rates": RATES, "error": "largest"}},
    "momentum": {"workload": {"momentum": 1}},
    "rate": {"workload": {"learning_rates": [-1.0, *RATES[1:]]}},
    "word": {"workload": {"error": "max"}},
    "empty": {"workload": None},
    "key": {"workload": {"beta": 0.9}},
    "elsewhere": {"training": {"iterations": N, "momentum": 0.9}},
    "many rounds": {"workload": MOMENTUM, "training": {"iterations": 2_000_000}, "matrix": {"kind": "identity"}},
    "numbers": {"workload": MOMENTUM, "noise": {"kind": "laplace", "multiplier": "solve"}, "matrix": {"kind": "identity"}},
    "beyond a double": {"workload": {"learning_rates": [1e-300] * N}},
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_at_its_place(name: str, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.compile(document(None) | WRONG[name]))
