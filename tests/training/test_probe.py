"""A probe finds the mistakes that people make in training loops, with their lines, and nothing in loops without them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import ROOT
from planted_mistakes import BATCH, HEAD, LOOP, PLANTED, RIGHT, Planted

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a probe forks")

ROUNDS = 6


def probe(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with a state directory of its own."""
    command = [sys.executable, "-m", "pyaccount", "probe", *arguments]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "COLUMNS": "120"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def script(folder: Path, body: str, before: str = "") -> None:
    Planted("", "", RIGHT + body, before).write(folder / "train.py", wrong=False)


def test_mistakes_are_found_in_their_lines_and_not_in_their_twins(tmp_path: Path) -> None:
    scripts, lines = [], {}
    for name, planted in PLANTED.items():
        wrong, right = tmp_path / name / "wrong.py", tmp_path / name / "right.py"
        wrong.parent.mkdir()
        lines[name] = planted.write(wrong, wrong=True)
        assert planted.write(right, wrong=False) is None
        scripts += [str(wrong), str(right)]
    command = [sys.executable, str(ROOT / "tests" / "helpers" / "probe_scripts.py"), str(ROUNDS)]
    done = subprocess.run([*command, *scripts], capture_output=True, text=True, check=True)
    found = iter(map(json.loads, done.stdout.splitlines()))
    for name, planted in PLANTED.items():
        assert [planted.kind, lines[name]] in next(found), name
        assert next(found) == [], name


def test_it_says_what_it_saw_and_leaves_nothing(tmp_path: Path, snapshot: Any) -> None:
    # The script writes a log and a folder; the folder of the run is in its argument.
    body = (
        "AFTER open('log.txt', 'a').write(f'{np.linalg.norm(weights)}\\n')\n"
        "AFTER print(f'{losses().sum():.4g}')\nAFTER logging.warning(len(batch))\n"
    )
    script(tmp_path, body, "import logging, os\nos.makedirs('made')\n")
    text = probe(tmp_path, "--rounds", "3", "train.py", "runs/first")
    assert (text.returncode, text.stderr) == (1, "")
    snapshot(text.stdout)
    data = probe(tmp_path, "--rounds", "3", "--format", "json", "train.py", "runs/first")
    assert data.returncode == 1
    found = json.loads(data.stdout)
    assert {(one["kind"], one["line"].split(":")[0]) for one in found["findings"]} == {("output", "train.py")}
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_nothing_found_is_no_proof(tmp_path: Path) -> None:
    # Durations are not compared, since the clock differs between equal replays; here one stands for data.
    script(tmp_path, "AFTER print(f'finished in {abs(losses().sum()):.2f} s')\n")
    done = probe(tmp_path, "--rounds", "3", "train.py", "run")
    assert done.returncode == 0
    assert "Nothing found in 3 steps" in done.stdout
    assert "proves nothing" in done.stdout
    assert "correct" not in done.stdout


REFUSED = {
    "nothing-is-opened": "print('no run')\n",
    "it-fails": "import numpy\n\nraise ValueError('of the script')\n",
    "it-overwrites": "open('kept.txt', 'w').write('lost')\n",
    "it-opens-a-ledger": "import sqlite3\n\nsqlite3.connect('kept.txt')\n",
    "nothing-is-released": HEAD + "run.step()\n",
    "it-is-not-repeated": HEAD
    + "import os\n"
    + LOOP
    + f"            {BATCH}            step.release(np.frombuffer(os.urandom(32), np.uint8) / 1e3)\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_probed_is_located(name: str, tmp_path: Path, snapshot: Any) -> None:
    (tmp_path / "train.py").write_text(REFUSED[name], encoding="utf-8")
    (tmp_path / "kept.txt").write_text("kept", encoding="utf-8")
    done = probe(tmp_path, "train.py", "run")
    assert (done.returncode, done.stdout) == (2, "")
    snapshot(" ".join(done.stderr.replace(str(tmp_path.resolve()), "FOLDER").split()))
    assert (tmp_path / "kept.txt").read_text(encoding="utf-8") == "kept"


def test_limits_and_options(tmp_path: Path) -> None:
    script(tmp_path, "AFTER __import__('time').sleep(60)\n")
    done = probe(tmp_path, "--time-limit", "3 s", "train.py", "run")
    assert (done.returncode, done.stdout) == (3, "")
    assert "the time limit was reached" in done.stderr
    assert probe(tmp_path, "absent.py").returncode == 2
    assert probe(tmp_path, "--rounds", "0", "train.py").returncode == 2


STEP = """
import sys

import numpy as np

import pyaccount

document = {
    "pyaccount": 1,
    "name": "step",
    "privacy": {"adjacency": "zero-out", "epsilon": 60, "delta": 1e-5},
    "training": {"dataset_size": 60, "expected_batch_size": 12, "iterations": 8},
    "sampler": {"kind": "poisson"},
    "noise": {"multiplier": 2.0},
}
data, mean = np.random.default_rng(1).normal(size=(60, 3)), np.zeros(3)


def step(opened):
    rows = data[opened.batch.indices] - mean
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    mean[:] += opened.release((rows / np.maximum(1.0, norms)).sum(axis=0))


def wrong(opened):
    mean[:] += opened.release((data[opened.batch.indices] - mean).sum(axis=0))


with pyaccount.TrainingRun(document, sys.argv[1], records=60, clip_norm=1.0, uncertified=True) as run:
    before = (run.folder / "record.jsonl").read_bytes()
    print(run.probe(step, rounds=4).statement)
    print([(one.kind, one.line.split(":")[-1]) for one in run.probe(wrong, rounds=4).findings])
    assert (run.folder / "record.jsonl").read_bytes() == before
    assert run.round == run.released == 0
    assert not mean.any()
    with run.step() as opened:
        step(opened)
    assert run.released == 1
"""


def test_a_step_is_probed_beside_its_run(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(STEP, encoding="utf-8")
    command = [sys.executable, "steps.py", "run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    line = next(
        k for k, text in enumerate(STEP.split("\n"), 1) if text.startswith("    mean[:] += opened.release((data")
    )
    assert done.stdout.splitlines() == ["nothing found in 4 steps", f"[('sensitivity', '{line}')]"]
