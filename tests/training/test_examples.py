"""The examples that train, cut short: they run, and learn something."""

from __future__ import annotations

import runpy
import sys
from typing import Any

import pytest
from places import EXAMPLES

import pyaccount


def rows(printed: str) -> list[list[str]]:
    """The cells of the table that a script prints."""
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in printed.splitlines() if "│" in line]


@pytest.fixture(autouse=True)
def one_other_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates have their other δ at one ε: the scripts neither print nor use that table."""
    certify = pyaccount.certify

    def certified(document: dict[str, Any]) -> pyaccount.Certificate:
        return certify({**document, "accounting": {**document.get("accounting", {}), "profile": [1]}})

    monkeypatch.setattr(pyaccount, "certify", certified)


@pytest.mark.parametrize(
    ("script", "options", "count", "place"),
    [
        ("train_digits.py", ("--epsilon", "8", "--runs", "1", "--trials", "1", "--epochs", "2"), 3, 5),
        ("digits_samplers.py", ("--runs", "1", "--trials", "1", "--epochs", "1"), 6, 4),
        ("digits_users.py", ("--epsilon", "16", "--runs", "1", "--trials", "1", "--rounds", "24"), 2, 5),
    ],
)
def test_an_example_trains(  # noqa: PLR0917 - a script, its options, and what is seen of it
    script: str,
    options: tuple[str, ...],
    count: int,
    place: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", [script, *options])
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    found = rows(capsys.readouterr().out)
    assert len(found) == count
    # Of ten digits one in ten is guessed right; the noise of these keys leaves far more than that.
    assert all(float(row[place]) > 0.25 for row in found)
