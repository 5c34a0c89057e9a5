"""Budgets of risk in documents: what may stand there, and every way in which it may not."""

from typing import Any

import pytest
from document_samples import problems_of
from snapshots import Snapshot

from pyaccount.document.loading import load
from pyaccount.document.risk import usual_delta

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
