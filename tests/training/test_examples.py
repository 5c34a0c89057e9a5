"""The training examples, shortened, run and learn something."""

import runpy
import sys
from typing import Any

import pytest
from places import EXAMPLES

import pyaccount


def rows(printed: str) -> list[list[str]]:
    """Return the cells of the table that a script prints."""
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in printed.splitlines() if "│" in line]


@pytest.fixture(autouse=True)
def one_other_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give certificates only one point of the profile, because the scripts neither print nor use it."""
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
def test_an_example_trains(
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
    # Guessing among ten digits is right in one case of ten; with these keys the accuracy is far higher.
    assert all(float(row[place]) > 0.25 for row in found)
