"""Seconds of a private step, paired: Opacus and opake alone, Opacus and `torch.func` with a run's batches, noise and record, and
the same loop without privacy.

    python benchmarks/frameworks.py [--model mlp] [--repeats 15] [--width 256] [--batch 64] [--clipping]

Needs pyaccount, opacus, and torch, in an environment of their own; opake is timed if it is installed (opake-dpsgd). A round of
pairs runs one step of each on the same model and batches of one expected size; the medians of the times, of the processor time of
all threads, and of the ratios of times within rounds are printed, with quartiles. What a run adds is timed alone: its batch, its
noise and its record, beside the same step. On a busy machine times contain waiting, and processor times do not.

With `--clipping`, which needs transformers and peft too, the clipped sum of one part of records is computed by each of the ways
of `PrivateTrainer`, for a small language model with and without adapters: seconds, and the most memory of the process beside
what it had before, each in a process of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import opacus
import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.func import functional_call
from torch.utils.data import DataLoader, TensorDataset

import pyaccount
from pyaccount.integrations.opacus import PrivacyEngine
from pyaccount.training.torch import PrivateOptimizer, RunBatchSampler, clipped_sum, collate

RECORDS, FEATURES, WORDS, SIGMA = 4096, 64, 1280, 1.0

#: The network of the steps: `main` sets it.
MODEL = "mlp"


class Attention(nn.Module):
    """Attention of two heads, of layers that every library knows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.given, self.made = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        count, length, width = rows.shape
        query, key, value = self.given(rows).reshape(count, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        weights = (query @ key.transpose(2, 3) / (width // 2) ** 0.5).softmax(dim=3)
        return self.made((weights @ value).transpose(1, 2).reshape(count, length, width))


class Transformer(nn.Module):
    """A classifier of texts with one block."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.words, self.attention = nn.Embedding(WORDS, width), Attention(width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.head = nn.Linear(width, 10)

    def forward(self, texts: torch.Tensor) -> torch.Tensor:
        rows = self.words(texts)
        rows = rows + self.attention(self.first(rows))
        rows = rows + self.wide(self.second(rows))
        return self.head(rows.mean(dim=1))


def net(width: int) -> nn.Module:
    torch.manual_seed(1)
    if MODEL == "cnn":
        return nn.Sequential(
            nn.Conv2d(1, 16, 8, 2, padding=3),
            nn.ReLU(),
            nn.MaxPool2d(2, 1),
            nn.Conv2d(16, 32, 4, 2),
            nn.ReLU(),
            nn.MaxPool2d(2, 1),
            nn.Flatten(),
            nn.Linear(512, 32),
            nn.ReLU(),
            nn.Linear(32, 10),
        )
    if MODEL == "transformer":
        return Transformer()
    return nn.Sequential(
        nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    features = {
        "mlp": lambda: torch.randn(RECORDS, FEATURES, generator=generator),
        "cnn": lambda: torch.randn(RECORDS, 1, 28, 28, generator=generator),
        "transformer": lambda: torch.randint(WORDS, (RECORDS, 32), generator=generator),
    }[MODEL]()
    return TensorDataset(features, torch.randint(10, (RECORDS,), generator=generator))


def opened(folder: Path, batch: int, rounds: int) -> pyaccount.TrainingRun:
    document = {
        "pyaccount": 1,
        "name": "timed",
        "privacy": {"adjacency": "add-remove", "epsilon": 1000.0, "delta": 1e-5},
        "training": {"dataset_size": RECORDS, "expected_batch_size": batch, "iterations": rounds},
        "sampler": {"kind": "poisson"},
        "noise": {"multiplier": SIGMA},
    }
    return pyaccount.TrainingRun(document, folder, records=RECORDS, uncertified=True)


def steps(
    model: nn.Module, optimizer: Any, loader: Any, criterion: Any = nn.functional.cross_entropy
) -> Iterator[None]:
    """Make one step for each batch, as users of Opacus do."""
    while True:
        for features, labels in loader:
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.step()
            yield


def by_functions(run: pyaccount.TrainingRun, width: int) -> Iterator[None]:
    """Make steps with the clipped sums of `torch.func`."""
    model, records = net(width), data()
    optimizer = PrivateOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), run, model.named_parameters())
    for features, labels in DataLoader(records, batch_sampler=RunBatchSampler(run), collate_fn=collate(records)):
        optimizer.zero_grad()
        optimizer.add(clipped_sum(model, nn.functional.cross_entropy, features, labels, run=run))
        optimizer.step()
        yield


def plain(width: int, batch: int) -> Iterator[None]:
    """Make steps without privacy: shuffled batches of one size, and no clipping."""
    model = net(width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        for features, labels in DataLoader(data(), batch_size=batch, shuffle=True, drop_last=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
            yield


def by_opake(width: int, batch: int) -> Iterator[None]:
    """Make steps with opake's sampler, clipping and noise, as its own example does."""
    from opake.dpsgd.clipping import clipped_grad
    from opake.dpsgd.noise import gaussian_noise
    from opake.dpsgd.sampling import PoissonSampler
    from opake.random import key

    model, records = net(width), data()

    def loss(parameters: dict[str, torch.Tensor], features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(functional_call(model, parameters, (features,)), labels)

    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    gradient, clipping = clipped_grad(loss, clipping_norm=1.0, batch_argnums=(1, 2), normalize_by=batch)
    noise, state = gaussian_noise(noise_multiplier=SIGMA, key=key(1))
    while True:
        sampler = PoissonSampler(records, sample_rate=batch / RECORDS, key=key(2))
        for features, labels in DataLoader(records, batch_sampler=sampler):
            clipped, clipping = gradient(parameters, features, labels, state=clipping)
            noisy, state = noise(clipped, state)
            parameters = {name: parameter - 0.1 * noisy.pytree[name] for name, parameter in parameters.items()}
            yield


def of_the_run(run: pyaccount.TrainingRun, width: int) -> Iterator[None]:
    """Draw the batch, draw the noise and record the round: what a run adds to a step."""
    zeros = {name: np.zeros(parameter.shape, np.float32) for name, parameter in net(width).named_parameters()}
    while True:
        with run.step() as step:
            assert step.batch.indices is not None
            step.release(zeros)
        yield


#: The ways to clip of `PrivateTrainer`.
WAYS = ("vectorized", "one-by-one", "ghost")


def clipped_part(way: str, adapters: bool, repeats: int, queue: Any) -> None:
    """Put the median seconds of a clipped sum into the queue, and the MB by which the process grew at most."""
    import resource

    import peft
    import transformers

    from pyaccount.integrations.transformers import PrivateTrainer

    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    words, length, part = 2000, 128, 16
    config = transformers.LlamaConfig(
        vocab_size=words,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=length,
        attn_implementation="eager",
    )
    model: Any = transformers.LlamaForCausalLM(config)
    if adapters:
        model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
    ids = torch.randint(words, (part, length), generator=torch.Generator().manual_seed(1))
    records = [{"input_ids": row, "labels": row} for row in ids]
    with tempfile.TemporaryDirectory() as temporary:
        document = {
            "pyaccount": 1,
            "name": "timed",
            "privacy": {"adjacency": "add-remove", "epsilon": 1000.0, "delta": 1e-5},
            "training": {"dataset_size": part, "expected_batch_size": part / 2, "iterations": 10},
            "sampler": {"kind": "poisson"},
            "noise": {"multiplier": SIGMA},
        }
        with pyaccount.TrainingRun(document, Path(temporary) / "run", records=part, uncertified=True) as run:
            args = transformers.TrainingArguments(
                str(Path(temporary) / "model"), per_device_train_batch_size=part, use_cpu=True, report_to=[]
            )
            trainer = PrivateTrainer(model, args, train_dataset=records, run=run, clipping=way)
            trainer.get_train_dataloader()
            model.train()
            (one,) = trainer.parts(records)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            times = []
            for _ in range(repeats + 1):
                began = time.perf_counter()
                trainer._clipped(model, one)
                times.append(time.perf_counter() - began)
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
    queue.put((statistics.median(times[1:]), grown, trained))


def compare_clipping(repeats: int) -> None:
    """Print time and memory of the ways to clip."""
    context = multiprocessing.get_context("spawn")
    table = Table("trained", "parameters", "clipping", "median, s", "memory, MB")
    for adapters in (False, True):
        for way in WAYS:
            queue = context.Queue()
            process = context.Process(target=clipped_part, args=(way, adapters, repeats, queue))
            process.start()
            seconds, grown, trained = queue.get()
            process.join()
            what = "adapters" if adapters else "all"
            table.add_row(what, f"{trained:_}", way, f"{seconds:.3f}", f"{grown:.0f}")
    console = Console()
    console.print("16 records of 128 tokens")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--model", choices=("mlp", "cnn", "transformer"), default="mlp")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--without-opake", action="store_true", help="opake takes most of the time")
    parser.add_argument("--clipping", action="store_true")
    asked = parser.parse_args()
    if asked.clipping:
        compare_clipping(asked.repeats)
        return
    global MODEL  # noqa: PLW0603 - one network for all steps of the process
    MODEL = asked.model
    warnings.simplefilter("ignore")
    rounds = asked.repeats + 3
    with tempfile.TemporaryDirectory() as temporary:
        runs = [opened(Path(temporary) / str(number), asked.batch, rounds) for number in range(4)]
        loader, ways = DataLoader(data(), batch_size=asked.batch), dict[str, Callable[[], None]]()

        def taken(name: str, made: Iterator[None]) -> None:
            ways[name] = lambda: next(made)

        alone, ours = net(asked.width), net(asked.width)
        model, optimizer, batches = opacus.PrivacyEngine().make_private(
            module=alone,
            optimizer=torch.optim.SGD(alone.parameters(), lr=0.1),
            data_loader=loader,
            noise_multiplier=SIGMA,
            max_grad_norm=1.0,
        )
        taken("Opacus alone", steps(model, optimizer, batches))
        model, optimizer, batches = PrivacyEngine(runs[0]).make_private(
            module=ours, optimizer=torch.optim.SGD(ours.parameters(), lr=0.1), data_loader=loader
        )
        taken("Opacus with a run", steps(model, optimizer, batches))
        ghosts = net(asked.width)
        model, optimizer, criterion, batches = PrivacyEngine(runs[3]).make_private(
            module=ghosts,
            optimizer=torch.optim.SGD(ghosts.parameters(), lr=0.1),
            data_loader=loader,
            criterion=nn.CrossEntropyLoss(),
            grad_sample_mode="ghost",
        )
        taken("ghost clipping with a run", steps(model, optimizer, batches, criterion))
        taken("torch.func with a run", by_functions(runs[1], asked.width))
        taken("what a run adds", of_the_run(runs[2], asked.width))
        if importlib.util.find_spec("opake") is not None and not asked.without_opake:
            taken("opake alone", by_opake(asked.width, asked.batch))
        taken("without privacy", plain(asked.width, asked.batch))
        times: dict[str, list[float]] = {name: [] for name in ways}
        busy: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, step in ways.items():
                began, worked = time.perf_counter(), time.process_time()
                step()
                times[name].append(time.perf_counter() - began)
                busy[name].append(time.process_time() - worked)
        for run in runs:
            run.close()
    table = Table("step", "median, ms", "processor, ms", "ratio of processor times", "quartiles", "ratio of times")
    for name in times:
        cells = [f"{1e3 * statistics.median(found[name][3:]):.2f}" for found in (times, busy)]
        for measured in (busy, times):
            # The first steps warm up.
            first = measured["Opacus alone"][3:]
            ratios = [one / other for one, other in zip(measured[name][3:], first, strict=True)]
            low, _, high = statistics.quantiles(ratios, n=4)
            cells += [f"{statistics.median(ratios):.3f}", f"{low:.3f} to {high:.3f}"]
        table.add_row(name, *cells[:-1])
    parameters = sum(parameter.numel() for parameter in net(asked.width).parameters())
    console = Console(width=130)
    console.print(f"{parameters:_} parameters, batches of {asked.batch}, {torch.get_num_threads()} threads")
    console.print(table)


if __name__ == "__main__":
    main()
