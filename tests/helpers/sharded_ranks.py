"""One process of a training with shards (FSDP2): a program whose arguments are its rank, the number of ranks, and a folder.

With one rank the model is whole, and the sums of two parts of each batch are added up, as two ranks would. The program prints the
batches, the noisy means as hashes, the weights and what the optimizer keeps. Further arguments: where it dies, as `summed-2`, or
`never`; and whether nonces are `fixed` or `new`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch_ranks import DOCUMENT, RECORDS, WIDTH, data
from training_runs import fixed_draws

from pyaccount.training import TrainingRun
from pyaccount.training import folder as folder_module
from pyaccount.training.folder import RunFolder
from pyaccount.training.torch import PrivateOptimizer, clipped_sum, gathered

#: So many parts has each batch.
PARTS = 2


class Death:
    """Ends the process at a place of a round: before the sums are added up, before the round is recorded, or after that."""

    def __init__(self, where: str) -> None:
        self._place, _, number = where.partition("-")
        self._number = int(number)
        #: The round that is computed.
        self.round = -1

    def install(self, patch: pytest.MonkeyPatch) -> None:
        add, record = distributed.all_reduce, RunFolder.release

        def added(*given: Any, **named: Any) -> Any:
            self._reach("computed")
            return add(*given, **named)

        def recorded(folder: RunFolder, release: Any) -> None:
            self._reach("summed")
            record(folder, release)
            self._reach("recorded")

        patch.setattr(distributed, "all_reduce", added)
        patch.setattr(RunFolder, "release", recorded)

    def _reach(self, place: str) -> None:
        if (place, self.round) == (self._place, self._number):
            os._exit(9)


def model(world: int) -> nn.Module:
    torch.manual_seed(3)
    # No layer can be cut into equal shards.
    net = nn.Sequential(nn.Linear(WIDTH, 5), nn.Tanh(), nn.Linear(5, 3, bias=False), nn.Tanh(), nn.Linear(3, 2))
    if world > 1:
        mesh = init_device_mesh("cpu", (world,))
        for layer in (net[0], net[2], net):
            fully_shard(layer, mesh=mesh)
    return net


def whole(tensor: Any) -> Tensor:
    return (tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor).detach()


def numbers(tensors: Any) -> list[str]:
    """Return tensors by their bits."""
    return [whole(tensor).numpy().tobytes().hex() for tensor in tensors]


def train(rank: int, world: int, folder: Path, where: str | None, used: Path) -> dict[str, Any]:
    """Train to the end. Write a line into `used` for each round that the model has seen."""
    patch, dying = pytest.MonkeyPatch(), None
    if where is not None:
        dying = Death(where)
        dying.install(patch)
    records, batches, means = data(), [], []
    features, labels = records.tensors
    with TrainingRun(DOCUMENT, folder, records=RECORDS, rank=rank, world=world, clip_norm=0.5, uncertified=True) as run:
        net = model(world)
        adam = torch.optim.AdamW(net.parameters(), lr=0.1)
        optimizer = PrivateOptimizer(adam, run, net.named_parameters())
        run.load_state_dict({**run.state_dict(), "rounds": 0})
        while run.round < run.rounds:
            number = run.round
            if dying is not None:
                dying.round = number
            optimizer.zero_grad()
            batches.append(run.batch(number).indices.tolist())
            with gathered(net):
                for part in range(PARTS) if world == 1 else [rank]:
                    chosen = run.batch(number).shard(part, PARTS).indices
                    optimizer.add(
                        clipped_sum(net, nn.functional.cross_entropy, features[chosen], labels[chosen], run=run)
                    )
            optimizer.release()
            gradients = [parameter.grad for parameter in net.parameters()]
            means.append(hashlib.sha256("".join(numbers(gradients)).encode()).hexdigest())
            adam.step()
            with used.open("a") as file:
                file.write(f"{number} {means[-1]}\n")
        kept = [state[name] for state in adam.state.values() for name in ("exp_avg", "exp_avg_sq")]
        shards = sum(parameter.to_local().numel() for parameter in net.parameters()) if world > 1 else None
        total = sum(parameter.numel() for parameter in net.parameters())
        return {
            "batches": batches,
            "means": means,
            "weights": numbers(net.parameters()),
            "kept": numbers(kept),
            "shard": shards,
            "total": total,
        }


if __name__ == "__main__":
    rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    dies, drawn = sys.argv[4:]
    if drawn == "fixed":
        # With fixed nonces, runs with different numbers of ranks draw the same noise.
        fixed_draws(pytest.MonkeyPatch())
    # The process that is left does not wait long for one that has died.
    folder_module.PATIENCE = 3.0
    if world > 1:
        distributed.init_process_group("gloo", init_method="env://", rank=rank, world_size=world)
    used = folder.parent / f"used.{rank}"
    print(json.dumps(train(rank, world, folder, None if dies == "never" else dies, used)))
