"""Probes of loops with PyTorch and Opacus, and of the examples with trainers of other libraries."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import EXAMPLES, ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a probe forks")

HEAD = """
import sys

import torch
from torch import nn

import pyaccount

document = {
    "pyaccount": 1,
    "name": "planted",
    "privacy": {"adjacency": "zero-out", "epsilon": 60, "delta": 1e-5},
    "training": {"dataset_size": 64, "expected_batch_size": 16, "iterations": 12},
    "sampler": {"kind": "poisson"},
    "noise": {"multiplier": 2.0},
}
torch.manual_seed(1)
features, labels = torch.randn(64, 4), torch.randint(0, 2, (64,))
"""
TORCH = (
    HEAD
    + """
model = nn.Sequential(nn.Linear(4, 8), LAYER, nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
with pyaccount.TrainingRun(document, sys.argv[1], records=64, clip_norm=0.1, uncertified=True) as run:
    while run.round < run.rounds:
        with run.step() as step:
            batch = torch.from_numpy(step.batch.indices)
            sums = {name: torch.zeros_like(parameter) for name, parameter in model.named_parameters()}
            losses = nn.functional.cross_entropy(model(features[batch]), labels[batch], reduction="none")  # kept
            for loss in losses:
                gradients = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
                norm = torch.sqrt(sum((one**2).sum() for one in gradients))
                for total, one in zip(sums.values(), gradients):
                    total += one / max(1.0, float(norm) / run.clip_norm)
            means = step.release({name: one.numpy() for name, one in sums.items()})  # mixed
        for name, parameter in model.named_parameters():
            parameter.grad = torch.from_numpy(means[name])
        optimizer.step()
"""
)
OPACUS = (
    HEAD
    + """
from pyaccount.integrations.opacus import PrivacyEngine

net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.ReLU(), nn.Linear(8, 2))
sgd = torch.optim.Adam(net.parameters(), lr=0.01)
data = torch.utils.data.TensorDataset(features, labels)
with pyaccount.TrainingRun(document, sys.argv[1], records=64, clip_norm=0.1, uncertified=True) as run:
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    model, optimizer, loader = PrivacyEngine(run).make_private(module=net, optimizer=sgd, data_loader=loader)
    for epoch in range(3):
        for rows, targets in loader:
            optimizer.zero_grad()
            losses = nn.functional.cross_entropy(model(rows), targets)
            losses.backward()
            optimizer.step()
            PRINTED
"""
)


def needs(*modules: str) -> pytest.MarkDecorator:
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def probes(folder: Path, *scripts: str) -> list[Any]:
    paths = []
    for number, text in enumerate(scripts):
        paths.append(folder / f"{number}.py")
        paths[-1].write_text(text, encoding="utf-8")
    command = [sys.executable, "-W", "ignore", str(ROOT / "tests" / "helpers" / "probe_scripts.py"), "6"]
    done = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@needs("torch")
def test_batch_normalisation_mixes_records_and_keeps_them(tmp_path: Path) -> None:
    wrong, right = probes(
        tmp_path, TORCH.replace("LAYER", "nn.BatchNorm1d(8)"), TORCH.replace("LAYER", "nn.LayerNorm(8)")
    )
    kept, mixed = (
        next(k for k, line in enumerate(TORCH.split("\n"), 1) if line.endswith(mark)) for mark in ("# kept", "# mixed")
    )
    assert {kind for kind, line in wrong if line == mixed} & {"mixing", "sensitivity"}
    assert ["state", kept] in wrong
    assert right == []


@needs("torch", "opacus")
def test_a_loop_with_opacus_passes_unless_it_prints_its_loss(tmp_path: Path) -> None:
    printed = OPACUS.replace("PRINTED", "print(round(float(losses), 4))")
    wrong, right = probes(tmp_path, printed, OPACUS.replace("PRINTED", "pass"))
    assert wrong == [["output", next(k for k, line in enumerate(printed.split("\n"), 1) if "print(" in line)]]
    assert right == []


@pytest.mark.nightly(but=["train_digits.py"])
@pytest.mark.parametrize(
    ("script", "options", "modules"),
    [
        pytest.param(
            "train_digits.py", "--runs 1 --trials 1 --epochs 2 --epsilon 8", ["sklearn"], id="train_digits.py"
        ),
        pytest.param(
            "digits_users.py", "--runs 1 --trials 1 --rounds 24 --epsilon 16", ["sklearn"], id="digits_users.py"
        ),
        pytest.param("integrations/opacus_engine.py", "", ["torch", "opacus"], id="opacus_engine.py"),
        pytest.param("integrations/opacus_run.py", "", ["torch", "opacus"], id="opacus_run.py"),
        pytest.param("integrations/lightning_run.py", "", ["torch", "lightning"], id="lightning_run.py"),
        pytest.param(
            "integrations/transformers_run.py", "", ["torch", "transformers", "peft"], id="transformers_run.py"
        ),
        pytest.param("integrations/jax_run.py", "", ["jax", "optax"], id="jax_run.py"),
        pytest.param("integrations/jax_plan.py", "", ["jax", "jax_privacy"], id="jax_plan.py"),
    ],
)
def test_nothing_is_found_in_an_example(script: str, options: str, modules: list[str], tmp_path: Path) -> None:
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    command = [sys.executable, "-W", "ignore", "-m", "pyaccount", "probe", "--format", "json"]
    done = subprocess.run(
        [*command, str(EXAMPLES / script), *options.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["rounds"] == 10
