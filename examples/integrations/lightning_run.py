"""A certified training with Lightning, which is interrupted and resumed.

    python examples/integrations/lightning_run.py [--folder runs/lightning] [--epsilon 8] [--rounds 60]

Needs `pip install "pyaccount-dp[lightning]"`. A small network on records drawn here.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import pyaccount
from pyaccount.integrations.lightning import PrivateModule, PrivateRun, run_loader

RECORDS, FEATURES = 2000, 8


def records() -> TensorDataset:
    """Features, and labels that follow from them."""
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(RECORDS, FEATURES, generator=generator)
    return TensorDataset(features, (features @ torch.linspace(-1.0, 1.0, FEATURES) > 0.0).long())


class Model(PrivateModule):
    """A small network. `example_loss` is in the place of `training_step`, and sees one record."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATURES, 8), nn.Tanh(), nn.Dropout(0.05), nn.Linear(8, 2))

    def example_loss(self, batch: Any) -> Tensor:
        features, labels = batch
        return nn.functional.cross_entropy(self.net(features), labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.5, momentum=0.5)


def fit(run: pyaccount.TrainingRun, model: Model, folder: Path, most: int, checkpoint: Path | None) -> None:
    """Train until so many rounds are done."""
    saves = ModelCheckpoint(folder, every_n_train_steps=20, filename="{step}", save_top_k=-1)
    trainer = lightning.Trainer(
        max_steps=most, callbacks=[PrivateRun(run), saves], logger=False, enable_progress_bar=False, accelerator="cpu"
    )
    trainer.fit(model, run_loader(run, records(), physical=64), ckpt_path=checkpoint)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=60)
    asked = parser.parse_args()
    document = {
        "pyaccount": 1,
        "name": "Lightning",
        "privacy": {"adjacency": "add-remove", "epsilon": asked.epsilon, "delta": 1e-5},
        "training": {"dataset_size": RECORDS, "expected_batch_size": 50, "iterations": asked.rounds},
        "sampler": {"kind": "poisson"},
        "noise": {"multiplier": "solve"},
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        certificate = pyaccount.certify(document)
        print(certificate.statement)
        folder.mkdir(parents=True, exist_ok=True)
        certificate.save(folder / "training.cert.json")
        for most in (
            asked.rounds // 2,
            asked.rounds,
        ):  # two sessions: the second goes on from the first one's checkpoint
            lightning.seed_everything(3)
            model = Model()
            saved = sorted((folder / "checkpoints").glob("*.ckpt"), key=lambda path: path.stat().st_mtime)
            with pyaccount.TrainingRun(certificate, folder / "run", records=RECORDS, clip_norm=1.0) as run:
                fit(run, model, folder / "checkpoints", most, saved[-1] if saved else None)
        with torch.no_grad():
            features, labels = records().tensors
            accuracy = float((model.eval().net(features).argmax(1) == labels).float().mean())
        print(json.dumps({"accuracy": accuracy, "released": run.released}))


if __name__ == "__main__":
    main()
