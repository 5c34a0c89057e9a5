"""How samples are drawn is told by a certificate's own time, and what was drawn by an older rule is drawn by it once more."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import pytest
from places import ROOT

from pyaccount.certificate.history import drawing_of
from pyaccount.document.loading import load
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.session import open_session
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.drawing import NEWEST, DrawingRule

NOW = {"pyaccount": "0.1.0"}
#: The first and the last second of the rules that one version went through.
MOMENTS = [
    ("2026-11-22T04:11:23+00:00", DrawingRule.BEFORE_POWERS),
    ("2026-11-25T19:59:59+00:00", DrawingRule.BEFORE_POWERS),
    ("2026-11-25T20:00:00+00:00", DrawingRule.POWERS),
    ("2026-11-25T21:59:59+02:00", DrawingRule.BEFORE_POWERS),
]


@pytest.mark.parametrize(("created", "rule"), MOMENTS)
def test_the_rule_follows_from_the_time_of_creation(created: str, rule: DrawingRule) -> None:
    assert drawing_of(NOW, created) is rule
    assert drawing_of({}, created) is rule


def test_other_versions_and_no_times_are_told_by_what_they_say() -> None:
    assert drawing_of({"pyaccount": "0.0.9"}, "2027-01-01T00:00:00+00:00") is DrawingRule.BEFORE_POWERS
    assert drawing_of({"pyaccount": "9.0.0"}, "2026-01-01T00:00:00+00:00") is NEWEST
    assert drawing_of(NOW, "yesterday") is NEWEST


def test_rules_are_in_order_and_none_begins_in_the_future() -> None:
    """A certificate that is made now must be recomputed by the rule that it was made with."""
    keys = [(version, since or "") for version, since in (rule.value for rule in DrawingRule)]
    assert keys == sorted(keys)
    for earlier, later in pairwise(DrawingRule):
        assert later.includes(earlier)
        assert later.includes(later)
        assert not earlier.includes(later)
    version = re.search(r'^version = "([^"]+)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.M)
    assert version is not None
    made = {"pyaccount": version[1]}
    assert drawing_of(made, datetime.now().astimezone().isoformat()) is NEWEST


def test_a_session_draws_as_its_plan_says() -> None:
    plan = compile_document(load(ROOT / "examples" / "production-b-min-sep.yaml"))
    assert plan.drawing is NEWEST
    for rule in DrawingRule:
        opened = open_session(replace(plan, drawing=rule), RunOptions(threads=1, seed=1))
        assert opened.sampler.drawing is rule
