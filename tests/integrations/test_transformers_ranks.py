"""Fine-tuning with transformers in two processes, as `torchrun` and `accelerate launch` start them, if it is installed."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from places import HELPERS
from training_runs import as_one_process

MISSING = [name for name in ("torch", "transformers", "accelerate") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)}: two processes of transformers are NOT tested here"
)


def trained(folder: Path, world: int) -> list[tuple[list[float], int]]:
    """Train in so many processes. Return the weights of each, and how many records it had."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = {
        "WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "ACCELERATE_USE_CPU": "true",
    }
    started = [
        subprocess.Popen(
            [sys.executable, HELPERS / "transformers_ranks.py", folder],
            env={**os.environ, **meeting, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    outputs = [process.communicate() for process in started]
    for process, (_, errors) in zip(started, outputs, strict=True):
        assert process.returncode == 0, errors
    return [json.loads(output.splitlines()[-1]) for output, _ in outputs]


def test_two_processes_train_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its part of the batches, and both get the weights of a single process with the same key."""
    (one, several), (other, more) = trained(tmp_path / "two", 2)
    assert one == other
    assert min(several, more) > 0
    as_one_process(tmp_path / "two" / "run", tmp_path / "one" / "run")
    # The mark is elsewhere, because the mark of the first run would refuse this one.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ((weights, seen),) = trained(tmp_path / "one", 1)
    assert seen == several + more
    np.testing.assert_allclose(one, weights, rtol=1e-4, atol=1e-5)
    assert (tmp_path / "two" / "model" / "checkpoint-3" / "pyaccount_run.json").exists()
