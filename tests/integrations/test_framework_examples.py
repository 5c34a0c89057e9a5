"""Runs the examples with trainers of other libraries, if these are installed, as their page says."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_snippets import frameworks, needs, python_snippets
from places import EXAMPLES, ROOT

from pyaccount import Certificate
from pyaccount.training.check_record import hold_record

FOLDER = EXAMPLES / "integrations"


def ran(script: str, folder: Path, *options: str, to: str = "out") -> dict[str, Any]:
    """Run a script in a process of its own, and return the last line of its output."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(FOLDER / script), "--folder", str(folder / to), *options],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def released(folder: Path, certificate: str = "training.cert.json") -> tuple[int, int]:
    """Return how many rounds the record has, and how many are certified, after comparing them."""
    verdict = hold_record(folder / "run" / "record.jsonl", Certificate.load(folder / certificate))
    assert verdict, verdict.to_text()
    return verdict.released, verdict.rounds


@needs("torch", "transformers", "accelerate", "peft")
def test_a_language_model_is_fine_tuned_from_certificate_to_gate(tmp_path: Path) -> None:
    found = ran("transformers_run.py", tmp_path)
    assert found["passes"] is True
    # A model that knows nothing has ln 128 = 4.85.
    assert found["after"] < found["before"] - 0.2
    assert released(tmp_path / "out", "model/training.cert.json") == (40, 40)
    # Another ε is another certificate, and its gate another limit.
    assert ran("transformers_run.py", tmp_path / "less", "--epsilon", "1", "--rounds", "3")["passes"] is True


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
    found = ran("opacus_run.py", tmp_path, *options, to="run")
    assert found["released"] == rounds
    assert found["accuracy"] > least
    assert released(tmp_path, "run/training.cert.json") == (rounds, 30 if "30" in options else 60)


@needs("torch", "opacus")
def test_opacus_trains_with_correlated_noise(tmp_path: Path) -> None:
    found = ran("opacus_engine.py", tmp_path)
    assert found["accuracy"] > 0.9
    assert found["epsilon"] == Certificate.load(tmp_path / "out" / "training.cert.json").epsilon
    assert released(tmp_path / "out") == (100, 100)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "snippet",
    [
        pytest.param(text, marks=needs(*frameworks(text)), id="-".join(frameworks(text)))
        for text in python_snippets(ROOT / "docs" / "frameworks.md")
        if frameworks(text)
    ],
)
def test_snippets_of_the_page_run(snippet: str) -> None:
    exec(compile(snippet, "docs/frameworks.md", "exec"), {})  # the page's own code


@needs("torch", "lightning")
def test_lightning_is_interrupted_and_resumed(tmp_path: Path) -> None:
    found = ran("lightning_run.py", tmp_path)
    assert found["accuracy"] > 0.9
    assert released(tmp_path / "out") == (60, 60)
    lines = (tmp_path / "out" / "run" / "record.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    # Rounds 20 to 29 were repeated after the checkpoint, which releases nothing.
    assert events.count("release") == 60


@needs("jax", "jax_privacy")
def test_jax_trains_with_the_run_as_with_jax_privacy(tmp_path: Path) -> None:
    found = ran("jax_run.py", tmp_path, "--rounds", "48", to="run")
    assert released(tmp_path, "run/training.cert.json") == (48, 48)
    # Guessing gives half of the labels.
    assert min(found["certified"], found["alone"]) > 0.8


@needs("jax", "jax_privacy")
def test_an_execution_plan_is_interrupted_and_continued(tmp_path: Path) -> None:
    found = ran("jax_plan.py", tmp_path)
    assert found["accuracy"] > 0.9
    certificate = Certificate.load(tmp_path / "out" / "training.cert.json")
    assert found["epsilon_so_far_upper"] == found["epsilon_upper"] == certificate.epsilon
    assert released(tmp_path / "out") == (64, 64)


@needs("flwr")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_flower_fits_a_line_of_all_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example's server and client, with messages handed over in this process: Flower's simulation needs Ray."""
    from flwr.app import Context, RecordDict
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    example = runpy.run_path(str(FOLDER / "flower_run.py"))

    class Here:
        """Hands messages to the example's client."""

        def get_node_ids(self) -> list[int]:
            return list(range(100, 100 + example["CLIENTS"]))

        def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> list[Any]:
            answers = []
            for message in messages:
                node = message.metadata.dst_node_id
                own = {"partition-id": node - 100}
                answers.append(example["client"](message, Context(1, node, own, RecordDict(), {})))
            return answers

    certificate = example["certified"](8.0, 20)
    example["train"](Here(), certificate, tmp_path)
    certificate.save(tmp_path / "training.cert.json")
    with np.load(tmp_path / "model.npz") as saved:
        line = saved["model/line"]
    assert released(tmp_path) == (20, 20)
    assert np.abs(line - [example["SLOPE"], example["OFFSET"]]).max() < 0.75


@needs("flwr", "ray")
@pytest.mark.skipif("CI" in os.environ, reason="starting Ray takes a minute: the simulation with it is NOT run")
def test_flowers_simulation_runs_the_example(tmp_path: Path) -> None:
    found = ran("flower_run.py", tmp_path, "--rounds", "2")
    assert found["released"] == 2
    assert released(tmp_path / "out") == (2, 2)
