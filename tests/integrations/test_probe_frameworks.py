"""Probes of loops with PyTorch and Opacus, and of the examples with trainers of other libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from page_snippets import needs
from places import EXAMPLES, HELPERS

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
FLOWER = """
import sys
from pathlib import Path

import numpy as np
from flower_grid import OneProcess
from flwr.app import Array, ArrayRecord, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

import pyaccount
from pyaccount.integrations.flower import PrivateFedAvg

document = {
    "pyaccount": 1,
    "name": "clients",
    "privacy": {"adjacency": "add-remove", "epsilon": 60, "delta": 1e-5},
    "training": {"dataset_size": 30, "expected_batch_size": 8, "iterations": 6},
    "sampler": {"kind": "poisson"},
    "noise": {"multiplier": 1.0},
}
TaskIdentity._task_id = TaskIdentity._run_id = TaskIdentity._node_id = 1
points = np.random.default_rng(1).normal(size=(30, 2))


def answer(node, message):
    line = message.content.array_records["arrays"]["line"].numpy()
    PRINTED
    return Message(RecordDict({"arrays": ArrayRecord({"line": Array(points[node] - 0.5 * line)})}), reply_to=message)


with pyaccount.TrainingRun(document, Path(sys.argv[1]) / "run", records=30, clip_norm=0.5, uncertified=True) as run:
    PrivateFedAvg(run, clients=list(range(30))).start(
        OneProcess(range(30), answer), ArrayRecord({"line": Array(np.zeros(2))})
    )
"""
TRL = """
import os
import sys
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
import datasets
import transformers
import trl
from tokenizers import Tokenizer, models, pre_tokenizers

import pyaccount
from pyaccount.integrations.trl import PrivatePairs, PrivateTraining, private_trainer

WORDS = ["<pad>", "<eos>", "the", "cat", "dog", "sees", "hears", "."]
inner = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="<pad>"))
inner.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>")
data = datasets.Dataset.from_list(
    [{"prompt": "the " + WORDS[3 + k % 2], "chosen": " sees" + " ." * (k % 3), "rejected": " hears"} for k in range(40)]
)
document = {
    "pyaccount": 1,
    "name": "preferences",
    "privacy": {"adjacency": "add-remove", "epsilon": 300, "delta": 1e-5},
    "training": {"dataset_size": 40, "expected_batch_size": 6, "iterations": 12},
    "sampler": {"kind": "poisson"},
    "noise": {"multiplier": 0.5},
}


def model():
    transformers.set_seed(3)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(WORDS),
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            pad_token_id=0,
            eos_token_id=1,
        )
    )


folder = Path(sys.argv[1])
options = {"bf16": False, "gradient_checkpointing": False, "save_strategy": "no", "report_to": [], "disable_tqdm": True}
args = trl.DPOConfig(str(folder / "model"), use_cpu=True, logging_steps=1, **options)
CHANGED
with pyaccount.TrainingRun(document, folder / "run", records=40, clip_norm=0.7, uncertified=True) as run:
    trainer = private_trainer(trl.DPOTrainer)(
        model(), ref_model=model(), args=args, train_dataset=data, processing_class=tokenizer, run=run
    )
    trainer.train()
"""


def probes(folder: Path, *scripts: str) -> list[Any]:
    paths = []
    for number, text in enumerate(scripts):
        paths.append(folder / f"{number}.py")
        paths[-1].write_text(text, encoding="utf-8")
    command = [sys.executable, "-W", "ignore", str(HELPERS / "probe_scripts.py"), "6"]
    known = {"PYTHONPATH": os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [*command, *map(str, paths)], env={**os.environ, **known}, capture_output=True, text=True, check=False
    )
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


@needs("flwr")
def test_a_federation_passes_unless_it_prints_who_takes_part(tmp_path: Path) -> None:
    printed = FLOWER.replace("PRINTED", "print(node)")
    wrong, right = probes(tmp_path, printed, FLOWER.replace("PRINTED", "pass"))
    assert ["output", next(k for k, line in enumerate(printed.split("\n"), 1) if "print(" in line)] in wrong
    assert right == []


@pytest.mark.nightly
@needs("torch", "trl")
def test_preferences_pass_unless_their_metrics_are_logged(tmp_path: Path) -> None:
    """What trl computes in the loss of a pair would be in its logs, if it were not forgotten."""
    wrong, right = probes(
        tmp_path,
        TRL.replace("CHANGED", "PrivatePairs.training_step = PrivateTraining.training_step"),
        TRL.replace("CHANGED", ""),
    )
    assert {kind for kind, _ in wrong} >= {"output"}
    assert right == []


PROBED = [
    ("train_digits.py", "--runs 1 --trials 1 --epochs 2 --epsilon 8", ["sklearn"]),
    ("digits_users.py", "--runs 1 --trials 1 --rounds 24 --epsilon 16", ["sklearn"]),
    ("integrations/opacus_engine.py", "", ["torch", "opacus"]),
    ("integrations/opacus_run.py", "", ["torch", "opacus"]),
    ("integrations/lightning_run.py", "", ["torch", "lightning"]),
    ("integrations/transformers_run.py", "", ["torch", "transformers", "peft"]),
    ("integrations/jax_run.py", "", ["jax", "optax"]),
    ("integrations/jax_plan.py", "", ["jax", "jax_privacy"]),
]


@pytest.mark.nightly(but=["train_digits.py"])
@pytest.mark.parametrize(
    ("script", "options"),
    [pytest.param(script, options, marks=needs(*modules), id=Path(script).name) for script, options, modules in PROBED],
)
def test_nothing_is_found_in_an_example(script: str, options: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "pyaccount", "probe", "--format", "json"]
    done = subprocess.run(
        [*command, str(EXAMPLES / script), *options.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["rounds"] == 10
