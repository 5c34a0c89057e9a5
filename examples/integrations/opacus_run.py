"""A certified run with Opacus: its gradients of single records and its clipping, the batches and the noise of the certificate.

    python examples/integrations/opacus_run.py [--rounds 60] [--epsilon 8] [--folder runs/opacus] [--noise run|opacus]

Needs `pip install "pyaccount-dp[opacus]"`. A small network on records drawn here, Poisson batches, add-remove of one record at
δ = 1e-5. Two parts, each of which can be taken alone:

* `loader`: the run's batches, exact and from the run's key, in the place of Opacus's own `DPDataLoader`. Empty batches are among
  them, as they are in what Opacus accounts for.
* `RunOptimizer`: Opacus's `DPOptimizer`, whose noise is the run's: each round is recorded before its noisy sum is used, and its
  noise is correlated if the document has a matrix. `BatchMemoryManager` cuts batches into physical ones as usual.

With `--noise opacus` the batches are taken alone: Opacus draws noise of the certificate's σ, and no round is recorded.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pyaccount
from pyaccount.training.torch import RunBatchSampler, collate

RECORDS, FEATURES, CLIP, RATE = 2000, 8, 1.0, 0.5


def records() -> TensorDataset:
    """Features, and labels that follow from them."""
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(RECORDS, FEATURES, generator=generator)
    return TensorDataset(features, (features @ torch.linspace(-1.0, 1.0, FEATURES) > 0.0).long())


def document(asked: argparse.Namespace) -> dict[str, Any]:
    """The mechanism document."""
    return {
        "pyaccount": 1,
        "name": "opacus",
        "privacy": {"adjacency": "add-remove", "epsilon": asked.epsilon, "delta": 1e-5},
        "training": {"dataset_size": RECORDS, "expected_batch_size": asked.batch, "iterations": asked.rounds},
        "sampler": {"kind": "poisson"},
        "noise": {"multiplier": "solve"},
    }


def certify(asked: dict[str, Any], folder: Path) -> pyaccount.Certificate:
    """The certificate of the run in a folder, made if it is not there: a run goes on with its own."""
    path = folder / "training.cert.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        pyaccount.certify(asked).save(path)
    return pyaccount.Certificate.load(path)


def loader(run: pyaccount.TrainingRun, data: TensorDataset) -> DataLoader[Any]:
    """The batches of the run, from its next round on."""
    return DataLoader(data, batch_sampler=RunBatchSampler(run), collate_fn=collate(data))


class RunOptimizer(DPOptimizer):
    """Opacus's optimizer with the releases of a run: clipped and summed by Opacus, counted, noised and divided by the run."""

    def __init__(self, optimizer: torch.optim.Optimizer, run: pyaccount.TrainingRun, module: nn.Module) -> None:
        super().__init__(
            optimizer,
            noise_multiplier=run.noise_multiplier(),
            max_grad_norm=run.clip_norm,
            # The run divides by its normaliser.
            expected_batch_size=None,
            loss_reduction="sum",
        )
        self.run = run
        self.names = {id(parameter): name for name, parameter in module.named_parameters()}

    def add_noise(self) -> None:
        """Release the sums of this round."""
        with self.run.step() as step:
            means = step.release({self.names[id(p)]: p.summed_grad.detach().cpu().numpy() for p in self.params})
        for parameter in self.params:
            parameter.grad = torch.from_numpy(means[self.names[id(parameter)]]).to(parameter)


def train(run: pyaccount.TrainingRun, noise: str, physical: int) -> float:
    """Train, and tell the accuracy on the records trained on, which is enough to see that something was learned."""
    torch.manual_seed(3)
    data = records()
    model = GradSampleModule(nn.Sequential(nn.Linear(FEATURES, 8), nn.Tanh(), nn.Linear(8, 2)), loss_reduction="mean")
    plain = torch.optim.SGD(model.parameters(), lr=RATE)
    optimizer = (
        RunOptimizer(plain, run, model)
        if noise == "run"
        else DPOptimizer(
            plain,
            noise_multiplier=run.noise_multiplier(),
            max_grad_norm=run.clip_norm,
            expected_batch_size=run.normaliser(),
        )
    )
    limit = {"max_physical_batch_size": physical, "optimizer": optimizer}
    with BatchMemoryManager(data_loader=loader(run, data), **limit) as batches:
        for features, labels in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
    with torch.no_grad():
        features, labels = data.tensors
        return float((model(features).argmax(1) == labels).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--batch", type=float, default=50.0)
    parser.add_argument("--physical", type=int, default=32)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--noise", choices=("run", "opacus"), default="run")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary) / "run"
        certificate = certify(document(asked), folder)
        print(certificate.statement)
        with pyaccount.TrainingRun(certificate, folder, records=RECORDS, clip_norm=CLIP) as run:
            accuracy = train(run, asked.noise, asked.physical)
            print(json.dumps({"accuracy": accuracy, "released": run.released}))


if __name__ == "__main__":
    main()
