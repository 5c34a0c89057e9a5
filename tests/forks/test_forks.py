"""Processes that are forked off go on, and end with the right answers: so do those that they come from.

What forks is a program of its own, `forked_questions.py`, and every child of it that hangs is ended there.
"""

import json
import os
import re
import subprocess
import sys

import pytest
from places import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")


def outcomes(scene: str, *arguments: str) -> dict[str, str]:
    program = [sys.executable, str(ROOT / "tests" / "helpers" / "forked_questions.py"), scene, *arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    assert found, done.stderr
    return found


@pytest.mark.parametrize(
    "scene",
    [
        ["children"],
        ["busy", "5"],
        # In the middle of the imports, of building validators, or of what comes then.
        ["first", "0.2"],
        ["interrupted"],
        ["handler"],
        ["connected"],
        ["training"],
    ],
    ids=" ".join,
)
def test_forked_processes_and_those_they_come_from_go_on(scene: list[str]) -> None:
    wrong = {what: outcome for what, outcome in outcomes(*scene).items() if outcome != "right"}
    assert wrong == {}


def test_values_that_are_computed_once_have_no_lock_that_a_child_inherits() -> None:
    """`functools.cached_property` of Python 3.11 holds a lock while it computes, and a child would wait for it for ever."""
    users = [
        path.name
        for path in (ROOT / "pyaccount").rglob("*.py")
        if re.search(r"from functools import .*cached_property|functools\.cached_property", path.read_text("utf-8"))
    ]
    assert users == ["forks.py"]
