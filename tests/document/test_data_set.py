"""Documents of kind data-set: what they state, and what is wrong with them."""

from typing import Any

import jsonschema
import pytest
import yaml
from ledger_samples import data_set
from places import EXAMPLES
from snapshots import Snapshot

import pyaccount
from pyaccount.document.data_set import is_period, load_data_set
from pyaccount.schemas import SCHEMAS


def test_the_example_is_valid_and_keeps_the_schema() -> None:
    path = EXAMPLES / "ledger" / "customers.yaml"
    found = load_data_set(path)
    assert (found.name, found.way, found.blocks, found.filtered) == ("customers", "epsilon", ("all",), False)
    assert found.filters["analysts"] == {"mu": 0.5}
    assert found.filters["training"]["renyi"][0] == {"order": 2.0, "epsilon": 0.25}
    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), SCHEMAS["data-set"]())
    assert load_data_set(found.to_mapping()) == found


@pytest.mark.parametrize(
    ("privacy", "way", "words"),
    [
        ({"epsilon": 3, "delta": 1e-6}, "epsilon", "ε = 3 at δ = 1e-6"),
        ({"epsilon": 3, "delta": 0}, "epsilon", "ε = 3 at δ = 0"),
        ({"rho": 0.5}, "rho", "ρ = 0.5"),
        ({"mu": 1}, "mu", "μ = 1"),
        ({"risk": {"advantage": 0.1}}, "risk", "advantage 0.1"),
    ],
)
def test_budgets(privacy: dict[str, Any], way: str, words: str) -> None:
    found = load_data_set(data_set(privacy=privacy))
    assert (found.way, found.budget_words(), found.filtered) == (way, words, way in ("rho", "mu"))
    assert list(found.filters) == (["budget"] if found.filtered else [])


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": {}},
        {"privacy": {"epsilon": 1}},
        {"privacy": {"delta": 1e-6, "mu": 1}},
        {"privacy": {"epsilon": 1, "delta": 1e-6, "mu": 1}},
        {"privacy": {"epsilon": "solve", "delta": 1e-6}},
        {"privacy": {"epsilon": 1, "delta": 2}},
        {"privacy": {"mu": 1, "adjacency": "neighbours"}},
        {"privacy": {"risk": {}}},
        {"privacy": {"risk": {"advantage": 0.1, "gaussian_mu": 1}}},
        {"privacy": {"risk": {"true_positive_rate": 0.1}}},
        {"privacy": {"mu": 1, "adjacency": "replace-one"}, "blocks": [{"name": "a"}, {"name": "b"}]},
        {"filters": [{"name": "a"}]},
        {"filters": [{"name": "a", "mu": 1}, {"name": "a", "mu": 1}]},
        {"filters": [{"name": "a", "mu": 1}], "privacy": {"rho": 1}},
        {"filters": [{"name": "a", "renyi": [{"order": 1, "epsilon": 1}]}]},
        {"filters": [{"mu": 1}]},
        {"blocks": [{"name": "a"}, {"name": "a"}]},
        {"blocks": [{"nam": "a"}]},
        {"periods": {"every": "week", "since": "2026"}},
        {"periods": {"every": "month", "since": "2026"}},
        {"periods": {"every": "month", "since": "2026-13"}},
        {"limits": {}},
        {"kind": "dataset"},
    ],
)
def test_what_is_wrong_is_located(changes: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(
        load_data_set, data_set() | {key: value for key, value in data_set(**changes).items() if key in changes}
    )


def test_it_is_not_certified(snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.certify(data_set()))


@pytest.mark.parametrize(
    ("name", "every", "expected"),
    [
        ("2026-02-28", "day", True),
        ("2026-02-29", "day", False),
        ("2026-2", "month", False),
        ("2026-12", "month", True),
        ("2026-12-01", "month", False),
        ("0000", "year", False),
        ("2026\n", "year", False),
    ],
)
def test_periods_exist(name: str, every: str, expected: bool) -> None:
    assert is_period(name, every) is expected
