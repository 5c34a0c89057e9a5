"""Opacus's training loop, with correlated noise: DP-FTRL in the three lines of `make_private`.

    python examples/integrations/opacus_engine.py [--folder runs/opacus] [--sigma 2]

Needs `pip install "pyaccount-dp[opacus]"`. A small network on records drawn here; every record takes part in every 25th round at
most once, and the noise of later rounds cancels part of that of earlier ones.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import torch
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pyaccount
from pyaccount.integrations.opacus import PrivacyEngine

RECORDS, FEATURES, EPOCHS = 2000, 8, 4


def records() -> TensorDataset:
    """Features, and labels that follow from them."""
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(RECORDS, FEATURES, generator=generator)
    return TensorDataset(features, (features @ torch.linspace(-1.0, 1.0, FEATURES) > 0.0).long())


def document(sigma: float) -> dict[str, object]:
    """DP-FTRL: batches of 80 in a fixed order, again and again, and noise correlated by a matrix with 25 bands."""
    return {
        "pyaccount": 1,
        "name": "DP-FTRL with Opacus",
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
        "training": {"dataset_size": RECORDS, "expected_batch_size": 80, "iterations": 25 * EPOCHS},
        "sampler": {"kind": "none", "max_participations": EPOCHS, "min_separation": 25},
        "matrix": {"kind": "banded-square-root", "bands": 25},
        "noise": {"multiplier": sigma},
    }


def train(run: pyaccount.TrainingRun) -> tuple[float, float]:
    """Train as with Opacus. Return the accuracy on the records trained on, and ε of all rounds."""
    torch.manual_seed(3)
    data = records()
    net = nn.Sequential(nn.Linear(FEATURES, 8), nn.Tanh(), nn.Linear(8, 2))
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)

    engine = PrivacyEngine(run)
    model, optimizer, loader = engine.make_private(
        module=net, optimizer=sgd, data_loader=DataLoader(data, batch_size=80)
    )

    for _ in range(EPOCHS):
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=32, optimizer=optimizer) as batches:
            for features, labels in batches:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(features), labels).backward()
                optimizer.step()
    with torch.no_grad():
        features, labels = data.tensors
        return float((net(features).argmax(1) == labels).float().mean()), engine.get_epsilon()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--sigma", type=float, default=2.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        certificate = pyaccount.certify(document(asked.sigma))
        print(certificate.statement)
        with pyaccount.TrainingRun(certificate, folder / "run", records=RECORDS, clip_norm=1.0) as run:
            accuracy, epsilon = train(run)
        certificate.save(folder / "training.cert.json")
        print(json.dumps({"accuracy": accuracy, "epsilon": epsilon, "released": run.released}))


if __name__ == "__main__":
    main()
