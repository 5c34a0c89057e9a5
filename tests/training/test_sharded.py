"""Training in two processes with sharded parameters (FSDP2 of PyTorch), if it is installed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from places import HELPERS
from training_runs import as_one_process

from pyaccount.errors import RunError
from pyaccount.training import TrainingRun

try:
    import torch
except ModuleNotFoundError:
    pytest.skip("PyTorch is not installed: sharded parameters are NOT tested here", allow_module_level=True)

from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch_ranks import DOCUMENT, ROUNDS

from pyaccount.training.torch import PrivateOptimizer, clipped_sum, gathered

#: No two processes of these tests take so long, in seconds.
LIMIT = 120.0


def processes(folder: Path, world: int, dies: dict[int, str], drawn: str) -> list[subprocess.CompletedProcess[str]]:
    """Train in so many processes, and wait for them; `dies` says where which of them ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    program = HELPERS / "sharded_ranks.py"
    started = [
        subprocess.Popen(
            [sys.executable, program, str(rank), str(world), folder, dies.get(rank, "never"), drawn],
            env={**os.environ, **meeting, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    ended = []
    try:
        for process in started:
            out, errors = process.communicate(timeout=LIMIT)
            ended.append(subprocess.CompletedProcess(process.args, process.returncode, out, errors))
    finally:
        for process in started:
            process.kill()
    return ended


def trained(folder: Path, world: int, drawn: str = "fixed") -> list[Any]:
    """Train to the end. Return what each process printed."""
    ended = processes(folder, world, {}, drawn)
    for process in ended:
        assert process.returncode == 0, process.stderr
    return [json.loads(process.stdout.splitlines()[-1]) for process in ended]


def test_two_processes_have_the_bits_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches, noisy means, weights and the moments of Adam are equal if one process adds up the sums of the same two parts."""
    both = trained(tmp_path / "two", 2)
    assert both[0] | {"shard": None} == both[1] | {"shard": None}
    assert both[0]["shard"] + both[1]["shard"] == both[0]["total"]
    assert min(one["shard"] for one in both) > 0.3 * both[0]["total"]
    as_one_process(tmp_path / "two", tmp_path / "one")
    # The mark is elsewhere, because the mark of the first run would refuse this one.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (alone,) = trained(tmp_path / "one", 1)
    for name in ("batches", "means", "weights", "kept"):
        assert alone[name] == both[0][name], name
    assert len(set(alone["means"])) == ROUNDS
    lines = [
        [json.loads(line) for line in (tmp_path / folder / "record.jsonl").read_text().splitlines()]
        for folder in ("one", "two")
    ]
    releases = [[line for line in some if line.get("event") == "release"] for some in lines]
    assert [len(some) for some in releases] == [ROUNDS, ROUNDS]
    # Also the tags of the sums, under the same keys.
    assert [line["sum"] for line in releases[0]] == [line["sum"] for line in releases[1]]


@pytest.mark.nightly(but=["1-computed-2-2", "0-recorded-2-3"])
@pytest.mark.parametrize(
    ("rank", "dies", "counted"),
    [(0, "computed-2", 2), (1, "computed-2", 2), (0, "summed-2", 2), (0, "recorded-2", 3)],
)
def test_nothing_is_given_out_uncounted_if_a_process_dies(tmp_path: Path, rank: int, dies: str, counted: int) -> None:
    """The other process ends with an error. Both begin anew, repeat the rounds with the same sums, and train to the end."""
    ended = processes(tmp_path / "run", 2, {rank: dies}, "new")
    assert ended[rank].returncode == 9, ended[rank].stderr
    assert ended[1 - rank].returncode == 1, ended[1 - rank].stderr
    lines = (tmp_path / "run" / "record.jsonl").read_text().splitlines()
    assert sum(json.loads(line).get("event") == "release" for line in lines) == counted
    before = [(tmp_path / f"used.{place}").read_text().splitlines() for place in (0, 1)]
    assert max(map(len, before)) <= counted
    both = trained(tmp_path / "run", 2, "new")
    assert both[0]["means"] == both[1]["means"]
    for some in before:
        assert [line.split()[1] for line in some] == both[0]["means"][: len(some)]
    with TrainingRun(DOCUMENT, tmp_path / "run", records=40, world=2, clip_norm=0.5, uncertified=True) as run:
        assert run.released == ROUNDS


@pytest.fixture
def sharded(tmp_path: Path) -> Iterator[Callable[..., torch.nn.Module]]:
    """A linear layer that is sharded over this process alone."""
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)

    def make(**options: Any) -> torch.nn.Module:
        net = torch.nn.Linear(3, 2)
        fully_shard(net, mesh=init_device_mesh("cpu", (1,)), **options)
        return net

    yield make
    distributed.destroy_process_group()


def sums(net: torch.nn.Module) -> dict[str, torch.Tensor]:
    return clipped_sum(net, torch.nn.functional.cross_entropy, torch.ones(2, 3), torch.ones(2).long(), clip_norm=1)


def test_shards_are_clipped_only_where_they_are_gathered(sharded: Callable[..., torch.nn.Module]) -> None:
    net = sharded()
    with pytest.raises(RunError, match=r"weight is sharded over processes.* clip inside of `with gathered"):
        sums(net)
    with gathered(net):
        assert set(sums(net)) == {"weight", "bias"}
        with pytest.raises(RunError, match="gathered already"), gathered(net):
            pass
        assert set(sums(net)) == {"weight", "bias"}
    # Afterwards it is sharded as before, and its own passes work.
    with pytest.raises(RunError, match="weight is sharded over processes"):
        sums(net)
    net(torch.ones(1, 3)).sum().backward()
    assert torch.equal(net.bias.grad.full_tensor(), torch.ones(2))


@pytest.mark.parametrize("cast", ["param_dtype", "output_dtype"])
def test_casts_by_the_hooks_of_shards_are_refused(sharded: Callable[..., torch.nn.Module], cast: str) -> None:
    net = sharded(mp_policy=MixedPrecisionPolicy(**{cast: torch.bfloat16}))
    with pytest.raises(RunError, match="leave it out, and use torch"), gathered(net):
        pass


def test_the_processes_of_shards_are_the_ranks_of_the_run(
    sharded: Callable[..., torch.nn.Module], tmp_path: Path
) -> None:
    """Otherwise each process would release a sum of its own, with the noise of a run of its own."""
    net = sharded()
    adam = torch.optim.AdamW(net.parameters())
    with TrainingRun(DOCUMENT, tmp_path / "run", records=40, world=2, clip_norm=0.5, uncertified=True) as run:
        with pytest.raises(RunError, match="weight is sharded over 1 processes, and the run has 2 ranks"):
            PrivateOptimizer(adam, run, net.named_parameters())
        assert run.released == 0


def test_a_model_that_is_not_sharded_stays_as_it_is() -> None:
    net = torch.nn.Linear(3, 2)
    with gathered(net) as same:
        assert same is net
        assert set(sums(net)) == {"weight", "bias"}
