"""Budgets of risk in documents: what may stand there, and every way in which it may not."""

from __future__ import annotations

from typing import Any

import pytest
from document_samples import problems_of

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
    ("privacy", "expected"),
    [
        ({}, [("missing-key", "epsilon", "or privacy.risk"), ("missing-key", "delta", "or privacy.risk")]),
        ({"risk": {"advantage": 0.1}, "epsilon": 1}, [("contradiction", "epsilon", "leave this out")]),
        ({"risk": {"advantage": 0.1}, "delta": 1e-5}, [("contradiction", "delta", "risk.report_delta")]),
        ({"risk": {}}, [("missing-key", "risk", "give advantage, true_positive_rate with")]),
        ({"risk": {"report_delta": 1e-5}}, [("missing-key", "risk", "give advantage")]),
        ({"risk": None}, [("wrong-type", "risk", "give a mapping")]),
        ({"risk": 0.1}, [("wrong-type", "risk", "must be a mapping")]),
        (
            {"risk": {"advantage": 0.1, "gaussian_mu": 1}},
            [("contradiction", "risk.gaussian_mu", "advantage is given too")],
        ),
        ({"risk": {"advantage": 0}}, [("out-of-range", "risk.advantage", "greater than 0 and less than 1")]),
        ({"risk": {"advantage": 1}}, [("out-of-range", "risk.advantage", "greater than 0 and less than 1")]),
        ({"risk": {"advantage": "solve"}}, [("wrong-type", "risk.advantage", "blanks are allowed at")]),
        ({"risk": {"gaussian_mu": 11}}, [("out-of-range", "risk.gaussian_mu", "at most 10")]),
        ({"risk": {"gaussian_mu": 1e-7}}, [("contradiction", "risk.gaussian_mu", "give a smaller report_delta")]),
        (
            {"risk": RATES | {"false_positive_rate": 1e-10}},
            [("out-of-range", "risk.false_positive_rate", "at least 1e-9")],
        ),
        ({"risk": {"true_positive_rate": 0.1}}, [("missing-key", "risk.false_positive_rate", "has both")]),
        ({"risk": {"false_positive_rate": 0.1}}, [("missing-key", "risk.true_positive_rate", "has both")]),
        (
            {"risk": {"true_positive_rate": 0.1, "false_positive_rate": 0.1}},
            [("contradiction", "risk.true_positive_rate", "must be above false_positive_rate, 0.1")],
        ),
        (
            {"risk": {"true_positive_rate": 0.95, "false_positive_rate": 0.1}},
            [("contradiction", "risk.true_positive_rate", "of 0.9 at a false_positive_rate of 0.05: write that")],
        ),
        ({"risk": {"tpr": 0.1, "false_positive_rate": 0.01}}, [("unknown-key", "risk.tpr", "no such key")]),
        ({"risk": {"advantage": 0.1}, "risks": 1}, [("unknown-key", "risks", "no such key")]),
    ],
    ids=str,
)
def test_what_is_wrong_is_told_where_it_stands(privacy: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    problems = problems_of(document(privacy))
    assert [(one.slug, one.path_text) for one in problems] == [(slug, f"privacy.{path}") for slug, path, _ in expected]
    for problem, (_, _, words) in zip(problems, expected, strict=True):
        assert words in problem.message


def test_what_a_budget_is_called_elsewhere_is_known() -> None:
    (problem,) = problems_of(document({"risk": {"mu": 1}}))
    assert problem.suggestion == "gaussian_mu"
    problems = problems_of(document({"advantage": 0.1}))
    assert [problem.suggestion for problem in problems] == ["privacy.risk.advantage"]
