"""One rank of a training run in PyTorch: a program whose arguments are its rank, the number of ranks, and the run's folder.

The model is wrapped by `DistributedDataParallel`, as in existing training loops. The program prints the weights.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plain_documents import doc
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from training_runs import fixed_draws

from pyaccount.errors import RunError
from pyaccount.training import TrainingRun
from pyaccount.training.torch import PrivateOptimizer, RunBatchSampler, clipped_sum, collate

RECORDS, WIDTH, ROUNDS = 40, 3, 6
DOCUMENT: dict[str, Any] = doc(
    "name=ranks epsilon=300.0 expected_batch_size=5 sampler=b-min-sep min_separation=2",
    "matrix=banded-square-root bands=2 multiplier=0.5",
    dataset_size=RECORDS,
    iterations=ROUNDS,
)


def data() -> torch.utils.data.TensorDataset:
    """Return features and labels."""
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(RECORDS, WIDTH, generator=generator)
    return torch.utils.data.TensorDataset(features, (features.sum(1) > 0).long())


def train(rank: int, world: int, folder: Path) -> tuple[int, list[float]]:
    """Train to the end. Return the number of records that this rank had, and the weights."""
    torch.manual_seed(3)
    model = nn.Linear(WIDTH, 2)
    module = DistributedDataParallel(model).module if world > 1 else model
    seen = 0
    with TrainingRun(DOCUMENT, folder, records=RECORDS, rank=rank, world=world, clip_norm=0.5, uncertified=True) as run:
        optimizer = PrivateOptimizer(torch.optim.SGD(model.parameters(), lr=0.5), run, module.named_parameters())
        loader = torch.utils.data.DataLoader(data(), batch_sampler=RunBatchSampler(run), collate_fn=collate(data()))
        for features, labels in loader:
            seen += len(features)
            # A micro-batch may also be empty.
            for part in (slice(None, 2), slice(2, None)):
                optimizer.add(
                    clipped_sum(
                        module, nn.functional.cross_entropy, features[part], labels[part], clip_norm=run.clip_norm
                    )
                )
            optimizer.step()
    return seen, np.concatenate([parameter.detach().numpy().ravel() for parameter in model.parameters()]).tolist()


if __name__ == "__main__":
    # With fixed nonces, runs with different numbers of ranks draw the same noise.
    fixed_draws(pytest.MonkeyPatch())
    rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    claimed = int(sys.argv[4]) if len(sys.argv) > 4 else rank
    if world > 1:
        distributed.init_process_group("gloo", f"file://{folder}.store", rank=rank, world_size=world)
    try:
        print(json.dumps(train(claimed, world, folder)))
    except RunError as error:
        print(json.dumps(str(error)))
