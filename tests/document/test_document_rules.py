"""The rules between fields, and the rates and batches that a body states."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from document_samples import BASE, edited, found, load_text, outcome, problems_of, written
from snapshots import Snapshot

from pyaccount.document.loading import load
from pyaccount.document.risk import usual_delta

HEAD = """\
pyaccount: 1
name: rules
privacy: {adjacency: add-remove, epsilon: 4, delta: 1e-6}
noise: {multiplier: 1}
"""

ACCEPTED = [
    # the sampler, the training section, the rate, and the batch of fixed-size sampling
    ("poisson", "sampling_probability: 0.01", 0.01, None),
    ("poisson", "participation_rate: 0.01", 0.01, None),
    ("poisson", "dataset_size: 200, expected_batch_size: 3", 0.015, None),
    ("poisson", "dataset_size: 200, expected_batch_size: 2.5", 0.0125, None),
    ("poisson", "dataset_size: 200, expected_batch_size: 200", 1.0, None),
    ("poisson", "dataset_size: 200, sampling_probability: 0.015, expected_batch_size: 3", 0.015, None),
    ("poisson", "sampling_probability: 0.25, participation_rate: 0.25", 0.25, None),
    ("poisson", "dataset_size: 3, expected_batch_size: 1, sampling_probability: 0.3333333333", 1 / 3, None),
    ("poisson", "expected_batch_size: 3, sampling_probability: 0.25", 0.25, None),
    ("fixed-size", "dataset_size: 50_000, expected_batch_size: 500", 0.01, 500),
    ("fixed-size", "dataset_size: 50_000, expected_batch_size: 5e2", 0.01, 500),
    ("fixed-size", "dataset_size: 50_000, sampling_probability: 0.01", 0.01, 500),
    ("fixed-size", "dataset_size: 50_000, participation_rate: 0.01", 0.01, 500),
    ("fixed-size", "dataset_size: 60_000, participation_rate: 0.0042666667", 256 / 60_000, 256),
    ("fixed-size", f"dataset_size: 3e14, sampling_probability: {1 / 3!r}", 1 / 3, 10**14),
    ("fixed-size", "dataset_size: 1, expected_batch_size: 1", 1.0, 1),
]


@pytest.mark.parametrize(("sampler", "training", "rate", "batch"), ACCEPTED)
def test_rates(sampler: str, training: str, rate: float, batch: int | None, tmp_path: Path, snapshot: Snapshot) -> None:
    text = f"{HEAD}sampler: {{kind: {sampler}}}\ntraining: {{iterations: 10, {training}}}\n"
    body = load_text(tmp_path, text).run
    assert body.sampling_probability() == pytest.approx(rate, rel=1e-15)
    if batch is None:
        snapshot.raised(body.batch_size)
    else:
        assert body.batch_size() == batch
        assert isinstance(body.batch_size(), int)


REFUSED = [
    # the sampler, the training section
    ("poisson", "iterations: 9"),
    ("poisson", "dataset_size: 9, iterations: 9"),
    ("poisson", "expected_batch_size: 9, iterations: 9"),
    ("poisson", "expected_batch_size: solve, iterations: 9"),
    ("poisson", "iterations: 9, sampling_probability: 0.1, participation_rate: 0.2"),
    ("poisson", "iterations: 9, participation_rate: 0.2, sampling_probability: 0.1"),
    ("poisson", "iterations: 9, expected_batch_size: 3, dataset_size: 9, participation_rate: 0.2"),
    (
        "poisson",
        "participation_rate: 0.2, sampling_probability: 0.1, expected_batch_size: 3, dataset_size: 9, iterations: 9",
    ),
    ("poisson", "iterations: 9, participation_rate: 0.2, expected_batch_size: 10, dataset_size: 9"),
    ("poisson", "expected_batch_size: solve, dataset_size: 9, sampling_probability: 0.1, iterations: 9"),
    ("fixed-size", "iterations: 9"),
    ("fixed-size", "iterations: 9, expected_batch_size: 9"),
    ("fixed-size", "iterations: 9, sampling_probability: 0.5"),
    ("fixed-size", "iterations: 9, dataset_size: 9"),
    ("fixed-size", "iterations: 9, dataset_size: 9, expected_batch_size: 1.5"),
    ("fixed-size", "iterations: 9, dataset_size: 9, sampling_probability: 0.5"),
    ("fixed-size", "iterations: 9, dataset_size: 9, sampling_probability: 1e-12"),
    ("fixed-size", "iterations: 9, dataset_size: 1e15, sampling_probability: 0.12345678901234567"),
    ("fixed-size", "iterations: 9, dataset_size: 10, expected_batch_size: 1, participation_rate: 0.2"),
    ("none", "iterations: 9, sampling_probability: 0.2, participation_rate: 0.2"),
    ("none", "iterations: 9, dataset_size: 9, expected_batch_size: solve"),
    ("none", "iterations: 9, dataset_size: 9, expected_batch_size: 10"),
    ("none, max_participations: 10", "iterations: 9"),
    ("none, max_participations: 9", "iterations: 9"),
    ("none, max_participations: 3, min_separation: 2", "iterations: 9, dataset_size: 9, expected_batch_size: 3"),
]


@pytest.mark.parametrize(("sampler", "training"), REFUSED)
def test_rules(sampler: str, training: str, tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(outcome(tmp_path, f"{HEAD}sampler: {{kind: {sampler}}}\ntraining: {{{training}}}\n"))


def test_a_contradiction_shows_both_numbers(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(problems_of(written(tmp_path, edited({10: "  iterations: 5\n  sampling_probability: 0.02"}))))


@pytest.mark.parametrize("pair", list(itertools.combinations(range(5), 2)))
def test_two_blanks(pair: tuple[int, int], tmp_path: Path, snapshot: Snapshot) -> None:
    fields = ((5, "epsilon"), (6, "delta"), (9, "expected_batch_size"), (10, "iterations"), (14, "multiplier"))
    changes: dict[int, str | None] = {line: f"  {field}: solve" for line, field in (fields[index] for index in pair)}
    snapshot(problems_of(written(tmp_path, edited({14: "  multiplier: 1", **changes}))))


def test_three_blanks_name_each_other(tmp_path: Path, snapshot: Snapshot) -> None:
    text = edited({5: "  epsilon: solve", 6: "  delta: solve\n  group_size: solve", 14: "  multiplier: 1"})
    snapshot(problems_of(written(tmp_path, text)))


def test_a_blank_batch_has_no_rate_yet(tmp_path: Path, snapshot: Snapshot) -> None:
    changes: dict[int, str | None] = {9: "  expected_batch_size: solve", 14: "  multiplier: 1"}
    for kind in ("poisson", "fixed-size"):
        document = load_text(tmp_path, edited({**changes, 12: f"  kind: {kind}"}))
        assert document.blank == ("training", "expected_batch_size")
        snapshot.raised(document.run.sampling_probability)
        filled = document.with_value(("training", "expected_batch_size"), 250)
        assert filled.run.sampling_probability() == 0.005


def test_a_deterministic_order_has_no_rate(tmp_path: Path, snapshot: Snapshot) -> None:
    document = load_text(tmp_path, edited({12: "  kind: none"}))
    snapshot.raised(document.run.sampling_probability)


def test_rules_stay_silent_about_what_was_reported(tmp_path: Path) -> None:
    """A wrong rate is no missing rate, a wrong size no contradiction, a wrong blank no second blank."""
    lines: dict[int, str | None] = {
        8: "  dataset_size: many",
        9: "  expected_batch_size: 5e4",
        10: "  iterations: solv",
        12: "  kind: none\n  max_participations: 3",
    }
    assert [it[0:2] for it in found(tmp_path, edited(lines))] == [
        ("wrong-type", "training.dataset_size"),
        ("wrong-type", "training.iterations"),
    ]
    assert load(written(tmp_path, BASE)).name == "cifar10"


# ---- Budgets of risk in documents: what may stand there, and every way in which it may not


RATES = {"true_positive_rate": 0.01, "false_positive_rate": 1e-3}


def document(privacy: dict[str, Any], **training: Any) -> dict[str, Any]:
    return {
        "pyaccount": 1,
        "name": "budget",
        "privacy": {"adjacency": "add-remove", **privacy},
        "training": {"sampling_probability": 0.01, "iterations": 100, **training},
        "sampler": {"kind": "poisson"},
        "noise": {"multiplier": "solve"},
    }


@pytest.mark.parametrize("risk", [{"advantage": 0.1}, RATES, {"gaussian_mu": "0.5"}, RATES | {"report_delta": 1e-7}])
def test_a_budget_asks_for_epsilon_at_the_delta_told(risk: dict[str, Any]) -> None:
    read = load(document({"risk": risk}))
    assert (read.privacy.epsilon, read.privacy.delta) == ("solve", risk.get("report_delta", 1e-6))
    assert read.blank == ("noise", "multiplier")
    assert set(read.to_mapping()["privacy"]) == {"adjacency", "risk"}
    assert load(read.to_mapping()) == read
    claimed = read.claiming(1.5, 1e-4)
    assert claimed.risk is None
    assert claimed.to_mapping()["privacy"] == {"adjacency": "add-remove", "epsilon": 1.5, "delta": 1e-4}


@pytest.mark.parametrize(("records", "delta"), [(None, "1e-6"), (50_000, "1e-5"), (10_000, "1e-5"), (9_999, "1e-4")])
def test_the_usual_delta_is_below_one_over_the_records(records: int | None, delta: str) -> None:
    assert usual_delta(records) == delta
    if records is not None:
        read = load(document({"risk": {"advantage": 0.1}}, dataset_size=records))
        assert read.privacy.delta == float(delta)


@pytest.mark.parametrize(
    "privacy",
    [
        {},
        {"risk": {"advantage": 0.1}, "epsilon": 1},
        {"risk": {"advantage": 0.1}, "delta": 1e-5},
        {"risk": {}},
        {"risk": {"report_delta": 1e-5}},
        {"risk": None},
        {"risk": 0.1},
        {"risk": {"advantage": 0.1, "gaussian_mu": 1}},
        {"risk": {"advantage": 0}},
        {"risk": {"advantage": 1}},
        {"risk": {"advantage": "solve"}},
        {"risk": {"gaussian_mu": 11}},
        {"risk": {"gaussian_mu": 1e-7}},
        {"risk": RATES | {"false_positive_rate": 1e-10}},
        {"risk": {"true_positive_rate": 0.1}},
        {"risk": {"false_positive_rate": 0.1}},
        {"risk": {"true_positive_rate": 0.1, "false_positive_rate": 0.1}},
        {"risk": {"true_positive_rate": 0.95, "false_positive_rate": 0.1}},
        {"risk": {"tpr": 0.1, "false_positive_rate": 0.01}},
        {"risk": {"advantage": 0.1}, "risks": 1},
    ],
)
def test_what_is_wrong_is_told_where_it_stands(privacy: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot(problems_of(document(privacy)))


def test_what_a_budget_is_called_elsewhere_is_known(snapshot: Snapshot) -> None:
    snapshot(problems_of(document({"risk": {"mu": 1}})))
    snapshot(problems_of(document({"advantage": 0.1})))
