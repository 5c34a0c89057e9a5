"""Epochs from the plan to the gate, and what is certified for shuffled epochs."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
import yaml
from certificate_oracle import inconsistencies
from gate_tools import changed
from places import EXAMPLES, ROOT
from plain_documents import doc, sectioned
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli
from pyaccount.document.notes import notes
from pyaccount.draft.interview import completed, default
from pyaccount.draft.interview import drafted as drafted_text
from pyaccount.draft.questions import Answers, DraftQuestion
from pyaccount.errors import DocumentError
from pyaccount.rounding import up

EXAMPLE = EXAMPLES / "shuffled-epochs.yaml"
POISSON = doc(
    "name='ten epochs' adjacency=add-remove dataset_size=50_000 expected_batch_size=256 epochs=10",
    "sampler=poisson multiplier=1.0 profile=[1]",
)
LENGTH = "A run has 1954 rounds, 10.00448 epochs: 10 epochs of 195.3125 rounds each, rounded up to a whole round."


@pytest.fixture(scope="module")
def certificate() -> Any:
    return pyaccount.certify(POISSON)


def test_a_certificate_says_how_many_rounds_and_epochs(certificate: Any) -> None:
    (phase,) = certificate.data.phases
    assert (phase.iterations, phase.epochs) == (1954, 10.00448)
    assert certificate.data.assumptions[-1] == LENGTH
    assert certificate.data.document["training"] == POISSON["training"]
    for page in (certificate.to_text(), certificate.to_markdown(), certificate.to_html()):
        assert "10.00448" in page
    # The rounds are all that counts.
    counted = changed(POISSON, training={"dataset_size": 50_000, "expected_batch_size": 256, "iterations": 1954})
    other = pyaccount.certify(counted)
    assert other.data.guarantee == certificate.data.guarantee
    assert other.data.phases[0].epochs is None
    assert other.data.assumptions == certificate.data.assumptions[:-1]


def test_the_plan_says_it_before_anything_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert pyaccount.compile(POISSON).reductions[0].assumptions[-1] == LENGTH
    file = tmp_path / "training.yaml"
    file.write_text(yaml.safe_dump(POISSON), encoding="utf-8")
    assert cli.run(["plan", str(file)]) == 0
    printed = " ".join(re.sub(r"[│]", " ", capsys.readouterr().out).split())
    assert f"epochs {LENGTH}" in printed
    assert cli.run(["plan", str(file), "--set", "training.epochs=256"]) == 0
    printed = " ".join(re.sub(r"[│]", " ", capsys.readouterr().out).split())
    assert "A run has 50000 rounds: 256 epochs of 195.3125 rounds each." in printed


def test_a_gate_holds_the_epochs_against_the_rounds(certificate: Any, tmp_path: Path) -> None:
    data = json.loads(certificate.to_json())
    assert not inconsistencies(certificate.data)
    for change in ({"phases__0__iterations": 195}, {"phases__0__epochs": 1.0}, {"phases__0__epochs": None}):
        forged = pyaccount.certificate.CertificateModel.model_validate(changed(data, **change))
        (name,) = change
        assert name.replace("phases__0__", "phases[0].") in {flaw.path for flaw in inconsistencies(forged)}
    file = tmp_path / "certificate.json"
    file.write_text(certificate.to_json(), encoding="utf-8")
    assert cli.run(["check", str(file), "--no-limits"]) == 0
    assert cli.run(["verify", str(file)]) == 0


SAMPLERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "poisson"}, {"sampling_probability": 0.07, "epochs": 3.5}),
    ({"kind": "fixed-size"}, {"dataset_size": 1000, "expected_batch_size": 30, "epochs": 2}),
    ({"kind": "b-min-sep", "min_separation": 1}, {"sampling_probability": 0.05, "epochs": 2}),
    ({"kind": "cyclic-poisson", "partitions": 4}, {"sampling_probability": 0.3, "epochs": 2}),
    ({"kind": "cyclic-poisson"}, {"sampling_probability": 0.3, "epochs": 2}),
    ({"kind": "none", "max_participations": 3}, {"dataset_size": 1000, "expected_batch_size": 30, "epochs": 3}),
]


@pytest.mark.parametrize(("sampler", "training"), SAMPLERS)
def test_a_gate_knows_the_epochs_of_every_sampler(sampler: dict[str, Any], training: dict[str, Any]) -> None:
    sections: dict[str, Any] = {"sampler": sampler, "training": training}
    if sampler["kind"] == "cyclic-poisson" and "partitions" not in sampler:
        sections["matrix"] = {"kind": "banded-square-root", "bands": 4}
    found = pyaccount.certify(
        POISSON | sections | {"privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5}}
    )
    assert not inconsistencies(found.data)
    assert found.data.phases[0].epochs is not None


def test_an_accountant_of_a_plan_in_epochs() -> None:
    accountant = pyaccount.Accountant(POISSON)
    assert accountant.planned_steps == 1954
    accountant.step(100)
    assert accountant.document()["training"] == {"dataset_size": 50_000, "expected_batch_size": 256, "iterations": 100}
    accountant.step(1854)
    assert accountant.document()["training"] == POISSON["training"]


def test_a_ledger_counts_steps_and_no_epochs(snapshot: Snapshot) -> None:
    ledger = pyaccount.Accountant(adjacency="add-remove", delta=1e-5)
    snapshot.raised(ledger.step, 5, noise_multiplier=1, sampling_probability=0.1, epochs=3)
    assert ledger.steps == 0


def test_groups_are_compared_with_one_record_in_as_many_rounds() -> None:
    """The lemma's chain passes through smaller data sets, in which epochs would be fewer rounds."""
    document = POISSON | sectioned("adjacency=add-remove epsilon=solve delta=1e-5 group_size=3 sampler=fixed-size")
    in_epochs = pyaccount.certify(document)
    rounds = {"dataset_size": 50_000, "expected_batch_size": 256, "iterations": 1954}
    in_rounds = pyaccount.certify(document | {"training": rounds})
    assert in_epochs.data.group_lemma == in_rounds.data.group_lemma
    assert in_epochs.data.guarantee == in_rounds.data.guarantee


# ---- shuffled epochs


def test_shuffled_epochs_are_one_gaussian_mechanism() -> None:
    """Twenty participations at σ = 2: μ = √20/2, in the closed form of Balle & Wang at high precision."""
    found = pyaccount.certify(EXAMPLE, overrides=["accounting.profile=[1]"])
    exact = float(oracle.gaussian_epsilon(20**0.5 / 2, 1e-5))
    assert found.data.guarantee.epsilon_lower <= exact * (1 + 1e-9)
    assert exact <= found.epsilon <= exact * (1 + 2e-4)
    assert (found.data.phases[0].iterations, found.data.phases[0].epochs) == (2000, 20)
    assert not list(notes(pyaccount.load(EXAMPLE)))


def test_the_published_lower_bound_is_met() -> None:
    """Chua et al. 2024: σ = 0.5, 10⁴ batches, one epoch, δ = 1e-6: Poisson ε near 1.95, shuffled at least 10.99."""
    privacy = {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-6}
    sampled = POISSON | {"privacy": privacy, "noise": {"multiplier": 0.5}}
    sampled["training"] = {"sampling_probability": 1e-4, "epochs": 1}
    assert pyaccount.certify(sampled).epsilon == pytest.approx(1.953, abs=1e-3)
    dealt = sampled | sectioned(iterations=10_000, sampler="none", max_participations=1)
    assert 10.99 <= pyaccount.certify(dealt).epsilon <= 11.0


@pytest.mark.parametrize("coefficients", [[1.0, 0.5, 0.375], [1.0, 0.2, 0.8], [0.5, 1.0]])
def test_a_matrix_is_bounded_for_every_way_to_reshuffle(coefficients: list[float]) -> None:
    """Every pattern of one round in each of three epochs of three, by enumeration; some are neighbours."""
    rounds, length = 9, 3
    matrix = {"kind": "toeplitz", "coefficients": coefficients, "normalize": False}
    document = POISSON | sectioned(
        "adjacency=zero-out epsilon=solve delta=1e-5 dataset_size=30 expected_batch_size=10 epochs=3",
        "sampler=none max_participations=3",
        matrix=matrix,
    )
    (rounds_of_run,) = pyaccount.compile(document).at().bounds()["remove"].upper
    bound = rounds_of_run.profile.sensitivity  # type: ignore[attr-defined]
    columns = sum(c * np.eye(rounds, k=-lag) for lag, c in enumerate(coefficients))
    norms = {
        pattern: float(np.linalg.norm(columns[:, list(pattern)].sum(axis=1)))  # type: ignore[index]
        for pattern in itertools.product(*(range(start, start + length) for start in range(0, rounds, length)))
    }
    assert max(norms.values()) <= bound
    # An epoch between participations would be too little.
    apart = document | {"sampler": {"kind": "none", "max_participations": 3, "min_separation": length}}
    (rounds_of_run,) = pyaccount.compile(apart).at().bounds()["remove"].upper
    assert rounds_of_run.profile.sensitivity < max(norms.values())  # type: ignore[attr-defined]


PAGE = (ROOT / "docs" / "samplers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("blank", "column", "sections"),
    [
        ("epsilon", 2, {"noise": {"multiplier": 1.0}}),
        ("epsilon", 3, {"noise": {"multiplier": 2.0}}),
        ("noise", 1, {"privacy": {"adjacency": "zero-out", "epsilon": 1, "delta": 1e-5}}),
        ("noise", 4, {"privacy": {"adjacency": "zero-out", "epsilon": 8, "delta": 1e-5}}),
    ],
)
def test_the_cost_that_the_page_tells(blank: str, column: int, sections: dict[str, Any]) -> None:
    """Three digits, rounded up, as the certificates of the example with another sampler give them."""
    document = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8")) | {"accounting": {"profile": []}} | sections
    document["noise"] = {"multiplier": "solve"} if blank == "noise" else document["noise"]
    heading = "certified ε, given σ" if blank == "epsilon" else "σ needed, given ε"
    table = PAGE[PAGE.index(f"| {heading}") :].split("\n\n")[0].splitlines()
    rows = {line.split("|")[1].strip(): line.split("|")[column + 1].strip() for line in table[2:]}
    for label, sampler in (
        ("shuffled epochs, as `none`", {"kind": "none", "max_participations": 20}),
        ("`poisson`", {"kind": "poisson"}),
    ):
        found = pyaccount.certify(document | {"sampler": sampler})
        value = found.epsilon if blank == "epsilon" else found.noise_multiplier
        assert value is not None
        assert up(value, 3) == rows[label]


NAMES = ("shuffle", "shuffled", "random-reshuffling", "Shuffle once", "reshuffling", "random_permutation", "shufled")
RUNS: list[tuple[dict[str, Any], str]] = [
    ({"dataset_size": 50_000, "expected_batch_size": 256, "epochs": 10}, "10"),
    ({"dataset_size": 50_000, "expected_batch_size": 256, "epochs": "2.5"}, "3"),
    ({"dataset_size": 50_000, "expected_batch_size": 256, "iterations": 1960}, "10"),  # the last batch is kept
    ({"dataset_size": 50_000, "expected_batch_size": 256, "iterations": 1950}, "10"),  # or dropped
    ({"dataset_size": 50_000, "expected_batch_size": 256, "iterations": 1951}, "11"),
    ({"dataset_size": "50_000", "expected_batch_size": "500", "iterations": "2_000"}, "20"),
    ({"sampling_probability": 1 / 196, "iterations": 1960}, "10"),
    ({"iterations": 2000}, "EPOCHS"),
    ({"dataset_size": 50_000, "expected_batch_size": 500, "iterations": "solve"}, "EPOCHS"),
    ({"dataset_size": 5, "expected_batch_size": 500, "iterations": 7}, "EPOCHS"),
]


@pytest.mark.parametrize(("training", "most"), RUNS)
def test_the_error_shows_what_to_write(training: dict[str, Any], most: str) -> None:
    written = POISSON | {"training": training, "sampler": {"kind": "shuffle"}, "noise": {"multiplier": 1}}
    with pytest.raises(DocumentError) as refused:
        pyaccount.load(written)
    problem = next(problem for problem in refused.value.problems if problem.path_text == "sampler.kind")
    assert problem.slug == "unknown-kind"
    shown = re.search(r"`sampler: (\{.*?\})`, and `adjacency: zero-out`", problem.message)
    assert shown is not None
    assert f"max_participations: {most}}}" in shown[1]
    if most == "EPOCHS" or "sampling_probability" in training:
        return
    # What is shown is a document.
    fixed = written | sectioned(sampler=yaml.safe_load(shown[1]), adjacency="zero-out", epsilon="solve", delta=1e-5)
    assert pyaccount.compile(fixed).reductions


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_it_is_known(name: str, run: Run, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.load(POISSON | {"sampler": {"kind": name}}))
    snapshot(run("init", "-", "--yes", "--sampler", name, "--epochs", "10"))


def test_one_draw_has_no_epochs_to_take_part_in() -> None:
    source = yaml.safe_load((EXAMPLES / "one-draw.yaml").read_text(encoding="utf-8"))
    with pytest.raises(DocumentError) as refused:
        pyaccount.amplify(source | {"sampler": {"kind": "shuffle"}})
    assert "max_participations" not in str(refused.value)
    assert "no theorem" in str(refused.value)


# ---- init


def drafted(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert cli.run(["init", "-", "--yes", *options]) == 0
    document: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)
    return document


SIZES = ("--dataset-size", "50_000", "--batch-size", "256")


def test_init_drafts_in_epochs(capsys: pytest.CaptureFixture[str]) -> None:
    for length in (("--epochs", "10"), ("--iterations", "10 epochs")):
        document = drafted(capsys, *SIZES, *length, "--epsilon", "8")
        assert document["training"] == {"dataset_size": "50_000", "expected_batch_size": 256, "epochs": 10} or (
            document["training"] == {"dataset_size": 50_000, "expected_batch_size": 256, "epochs": 10}
        )
    document = drafted(capsys, "--sampler", "balls-in-bins", "--bins", "50", "--epochs", "4", "--epsilon", "8")
    assert document["training"] == {"epochs": 4}


def test_whoever_is_asked_for_iterations_may_answer_in_epochs() -> None:
    asked: list[str] = []

    def answer(question: DraftQuestion, answers: Answers) -> str:
        asked.append(question.name)
        told = {"iterations": "2.5 epochs", "dataset_size": "1000", "batch_size": "300", "epsilon": "8"}
        return question.read(told.get(question.name) or default(question, answers) or "", answers)

    found = completed({"name": "a run"}, answer)
    assert "iterations" in asked
    assert "epochs" not in asked
    assert found["epochs"] == "2.5"
    assert "iterations" not in found
    assert "\n  epochs: 2.5\n" in drafted_text(found)


def test_init_invents_no_participations(capsys: pytest.CaptureFixture[str], run: Run, snapshot: Snapshot) -> None:
    """That every record comes once in an epoch is a fact about the loader, which has no default."""
    shuffled = ("--sampler", "none", "--epochs", "10", "--noise-multiplier", "2", "--adjacency", "zero-out")
    snapshot(run("init", "-", "--yes", *SIZES, *shuffled))
    snapshot(run("init", "-", "--yes", *shuffled, "--max-participations", "10"))
    document = drafted(capsys, *SIZES, *shuffled, "--max-participations", "10")
    assert document["sampler"] == {"kind": "none", "max_participations": 10, "min_separation": 1} or document[
        "sampler"
    ] == {"kind": "none", "max_participations": 10}
    assert document["training"]["epochs"] == 10


def test_init_tells_two_lengths_apart(run: Run, snapshot: Snapshot) -> None:
    both = ("--epochs", "10", "--iterations", "2000", "--epsilon", "8")
    snapshot(run("init", "-", "--yes", *SIZES, *both))
    blank = ("--epochs", "10", "--solve", "iterations", "--epsilon", "8", "--noise-multiplier", "1")
    snapshot(run("init", "-", "--yes", *SIZES, *blank))
    snapshot(run("init", "-", "--yes", *SIZES, "--iterations", "no epochs", "--epsilon", "8"))
