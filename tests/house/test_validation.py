"""docs/validation.md is the output of its script, and its numbers are up to date."""

import dataclasses
import importlib
import json
import runpy
import sys
from typing import Any

import pytest
from places import ROOT

SCRIPT = ROOT / "benchmarks" / "validation.py"


@pytest.fixture(scope="module")
def script() -> Any:
    before = list(sys.path)
    found = runpy.run_path(str(SCRIPT))
    found |= vars(importlib.import_module("validating.page"))
    sys.path[:] = before
    return found


@pytest.fixture(scope="module")
def kept() -> Any:
    return json.loads((ROOT / "docs" / "validation.json").read_text(encoding="utf-8"))


def test_the_page_shows_the_numbers(script: Any, kept: Any) -> None:
    shown = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    assert shown == script["page"](kept), "run python benchmarks/validation.py --page"
    assert len(kept["rows"]) > 25


def test_what_disagrees_has_a_reason(kept: Any) -> None:
    for row in kept["rows"]:
        high = float("inf") if row["oracle_upper"] is None else row["oracle_upper"]
        assert row["agrees"] is (row["oracle_lower"] <= row["upper"] and row["lower"] <= high)
        assert row["agrees"] or row["why"]
        assert row["lower"] <= row["upper"]


@pytest.mark.parametrize("group", ["closed", "allocated", "papers"])
def test_the_numbers_are_computed_again(group: str, script: Any, kept: Any) -> None:
    """Only oracles that are quick and need no other accountant are used; other machines may round the last digits differently."""
    rows = {(row["mechanism"], row["setting"], row["asked"]): row for row in kept["rows"]}
    # The sampled one takes as long as all others together.
    for check in (one for one in script["GROUPS"][group]() if one.document["sampler"]["kind"] != "b-min-sep"):
        seen = dataclasses.asdict(script["seen"](check))
        row = rows[check.mechanism, check.setting, check.asked]
        assert seen["agrees"] is not bool(check.why)
        for name in ("lower", "upper", "oracle_lower", "oracle_upper"):
            assert seen[name] == pytest.approx(row[name], rel=1e-6)


def test_what_is_a_little_off_disagrees(script: Any) -> None:
    check = script["closed_forms"]()[0]
    low, high = check.answer()
    for factor in (1.0 - 1e-9, 1.0 + 1e-9):
        planted = dataclasses.replace(check, answer=lambda factor=factor: (low * factor, high * factor))
        assert not script["seen"](planted).agrees


def test_ends_are_rounded_outwards(script: Any) -> None:
    assert script["rounded"](1.23456789, 6, True) == "1.23457"
    assert script["rounded"](1.23456789, 6, False) == "1.23456"
    assert script["rounded"](9.9999999e-7, 6, True) == "1e-06"
    assert script["told"](0.0, 2.5388979) == "at most 2.5389"
    assert script["told"](1.0, 1.5) == "1 to 1.5"
