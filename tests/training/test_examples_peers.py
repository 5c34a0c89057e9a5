"""Runs the examples with other libraries, if these are installed, as their page says, each in a process of its own."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import EXAMPLES

from pyaccount.training.check_record import hold_record


def ran(script: str, folder: Path, *options: str) -> dict[str, Any]:
    """Run a script, check that the record agrees with the certificate, and return the last line of the output."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "integrations" / script), "--folder", str(folder / "run"), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def released(folder: Path) -> tuple[int, int]:
    """Return how many rounds the record has, and how many are certified."""
    from pyaccount import Certificate

    verdict = hold_record(folder / "run" / "record.jsonl", Certificate.load(folder / "run" / "training.cert.json"))
    assert verdict, verdict.to_text()
    return verdict.released, verdict.rounds


def needs(*modules: str) -> pytest.MarkDecorator:
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"not installed: {', '.join(missing)}: the example with it is NOT run"
    )


@needs("torch", "opacus")
@pytest.mark.parametrize(
    ("options", "rounds", "least"),
    [
        ((), 60, 0.8),
        # Only the batches are drawn here. Opacus draws the noise, and nothing is recorded.
        (("--noise", "opacus"), 0, 0.8),
        # Two of three batches are empty.
        (("--batch", "0.4", "--rounds", "30"), 30, 0.0),
    ],
    ids=["whole", "batches", "empty"],
)
def test_opacus_trains_with_the_run(options: tuple[str, ...], rounds: int, least: float, tmp_path: Path) -> None:
    found = ran("opacus_run.py", tmp_path, *options)
    assert found["released"] == rounds
    assert found["accuracy"] > least
    assert released(tmp_path) == (rounds, 30 if "30" in options else 60)


@needs("jax", "jax_privacy")
def test_jax_trains_with_the_run_as_with_jax_privacy(tmp_path: Path) -> None:
    found = ran("jax_run.py", tmp_path, "--rounds", "48")
    assert released(tmp_path) == (48, 48)
    # Guessing gives half of the labels.
    assert min(found["certified"], found["alone"]) > 0.8
