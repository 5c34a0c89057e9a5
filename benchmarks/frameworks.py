"""Seconds of a private step, paired: Opacus and opake alone, Opacus and `torch.func` with a run's batches, noise and record, and
the same loop without privacy.

    python benchmarks/frameworks.py [--model mlp] [--repeats 15] [--width 256] [--batch 64] [--clipping] [--trainer]

Needs pyaccount, opacus, and torch, in an environment of their own; opake is timed if it is installed (opake-dpsgd). A round of
pairs runs one step of each on the same model and batches of one expected size; the medians of the times, of the processor time of
all threads, and of the ratios of times within rounds are printed, with quartiles. What a run adds is timed alone: its batch, its
noise and its record, beside the same step. On a busy machine times contain waiting, and processor times do not. Memory is that
by which a process of its own grows at most in a few steps, after steps with two records.

With `--trainer`, which needs transformers and peft too, a step of `PrivateTrainer` by default and the same of `Trainer` take
turns, for a small language model with adapters and 64 texts of 32 words.

With `--clipping`, which needs transformers and peft too, the clipped sum of one part of records is computed by each of the ways
of `PrivateTrainer`, for a small language model with and without adapters: seconds, and the most memory of the process beside
what it had before, each in a process of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import multiprocessing
import statistics
import tempfile
import threading
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


class Growth:
    """By how many MB the process grows at most from now on."""

    def __init__(self) -> None:
        # Linux forgets the highest value so far.
        Path("/proc/self/clear_refs").write_text("5")
        self._before = self._kilobytes("VmRSS")

    def __call__(self) -> float:
        return (self._kilobytes("VmHWM") - self._before) / 1024

    @staticmethod
    def _kilobytes(name: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def language_model(length: int, adapters: bool) -> Any:
    """Return a small language model for texts of this length."""
    import peft
    import transformers

    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=2000,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=length,
    )
    model: Any = transformers.LlamaForCausalLM(config)
    if adapters:
        model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
    return model


def texts(count: int, length: int) -> list[dict[str, torch.Tensor]]:
    ids = torch.randint(2000, (count, length), generator=torch.Generator().manual_seed(1))
    return [{"input_ids": row, "labels": row} for row in ids]


def clipped_part(way: str, adapters: bool, repeats: int, queue: Any) -> None:
    """Put the median seconds of a clipped sum into the queue, and the MB by which the process grew at most."""
    import transformers

    from pyaccount.integrations.transformers import PrivateTrainer

    warnings.simplefilter("ignore")
    part, length = 16, 128
    model = language_model(length, adapters)
    model.set_attn_implementation("eager")
    records = texts(part, length)
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
            growth = Growth()
            times = []
            for _ in range(repeats + 1):
                began = time.perf_counter()
                trainer._clipped(model, one)
                times.append(time.perf_counter() - began)
            grown = growth()
    trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
    queue.put((statistics.median(times[1:]), grown, trained))


def in_a_process(work: Callable[..., None], *given: Any) -> Any:
    """Do work in a process of its own. Return what it put into its queue, which is its last argument."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(*given, queue))
    process.start()
    found = queue.get()
    process.join()
    return found


def compare_clipping(repeats: int) -> None:
    """Print time and memory of the ways to clip."""
    table = Table("trained", "parameters", "clipping", "median, s", "memory, MB")
    for adapters in (False, True):
        for way in WAYS:
            seconds, grown, trained = in_a_process(clipped_part, way, adapters, repeats)
            what = "adapters" if adapters else "all"
            table.add_row(what, f"{trained:_}", way, f"{seconds:.3f}", f"{grown:.0f}")
    console = Console()
    console.print("16 records of 128 tokens")
    console.print(table)


def memory_of(name: str, model: str, batch: int, width: int, queue: Any) -> None:
    """Put the MB into the queue by which this process grows at most in a few steps, after steps with two records."""
    global MODEL  # noqa: PLW0603 - one network for all steps of the process
    MODEL = model
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        for expected in (2, batch):
            steps = STEPS[name](Path(temporary) / str(expected), expected, width, 4)
            growth = Growth()
            for _ in range(4):
                next(steps)
            grown = growth()
            del steps
    queue.put(grown)


TRAINERS = ("Trainer", "PrivateTrainer")


def trainer_of(name: str, folder: Path, rounds: int, callback: Any = None) -> Any:
    """Return a trainer with 64 texts of 32 words in a batch: on average, if it is private."""
    import transformers

    from pyaccount.integrations.transformers import PrivateTrainer

    model, records = language_model(32, adapters=True), texts(RECORDS, 32)
    args = transformers.TrainingArguments(
        str(folder / "model"),
        per_device_train_batch_size=64,
        max_steps=rounds,
        logging_steps=10_000,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    callbacks = [] if callback is None else [callback]
    if name == "Trainer":
        return transformers.Trainer(model, args, train_dataset=records, callbacks=callbacks)
    run = opened(folder / "run", 64, rounds)
    return PrivateTrainer(model, args, train_dataset=records, run=run, callbacks=callbacks)


def memory_of_trainer(name: str, queue: Any) -> None:
    """Put the MB into the queue by which this process grows at most when it trains a few steps."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        trainer = trainer_of(name, Path(temporary), 5)
        growth = Growth()
        trainer.train()
        grown = growth()
    queue.put(grown)


def compare_trainers(repeats: int) -> None:
    """Print times and memory of steps of two trainers, which take turns."""
    import transformers

    warnings.simplefilter("ignore")
    logging.getLogger("pyaccount").setLevel(logging.INFO)
    rounds = repeats + 3
    turns = {name: threading.Semaphore(number == 0) for number, name in enumerate(TRAINERS)}
    times: dict[str, list[float]] = {name: [] for name in TRAINERS}
    busy: dict[str, list[float]] = {name: [] for name in TRAINERS}

    class Turns(transformers.TrainerCallback):  # type: ignore[misc, unused-ignore]
        """Waits after each step until the other trainer has made one. A step is all that a trainer does until the next one."""

        def __init__(self, name: str) -> None:
            self._name, self._after = name, next(one for one in TRAINERS if one != name)
            self._began = self._worked = 0.0

        def _wait(self) -> None:
            turns[self._name].acquire()
            self._began, self._worked = time.perf_counter(), time.process_time()

        def on_train_begin(self, *_: Any, **__: Any) -> None:
            self._wait()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            times[self._name].append(time.perf_counter() - self._began)
            busy[self._name].append(time.process_time() - self._worked)
            turns[self._after].release()
            self._wait()

        def on_train_end(self, *_: Any, **__: Any) -> None:
            turns[self._after].release()

    with tempfile.TemporaryDirectory() as temporary:
        trainers = [trainer_of(name, Path(temporary) / name, rounds, Turns(name)) for name in TRAINERS]
        # The private one tries the ways to clip before its first step, while the other one waits for it.
        threads = [threading.Thread(target=trainer.train) for trainer in reversed(trainers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    grown = {name: in_a_process(memory_of_trainer, name) for name in TRAINERS}
    show(
        {name: some[3:rounds] for name, some in times.items()},
        {name: some[3:rounds] for name, some in busy.items()},
        grown,
        "a language model with adapters, 64 texts of 32 words",
    )


def show(times: dict[str, list[float]], busy: dict[str, list[float]], grown: dict[str, float], title: str) -> None:
    """Print medians, ratios to the first step within rounds with quartiles, and memory."""
    table = Table(
        "step", "median, ms", "processor, ms", "ratio of processor times", "quartiles", "ratio of times", "MB"
    )
    first = next(iter(times))
    for name in times:
        cells = [f"{1e3 * statistics.median(found[name]):.2f}" for found in (times, busy)]
        for measured in (busy, times):
            ratios = [one / other for one, other in zip(measured[name], measured[first], strict=True)]
            low, _, high = statistics.quantiles(ratios, n=4)
            cells += [f"{statistics.median(ratios):.3f}", f"{low:.3f} to {high:.3f}"]
        table.add_row(name, *cells[:-1], f"{grown[name]:.0f}")
    console = Console(width=130)
    console.print(f"{title}, {torch.get_num_threads()} threads")
    console.print(table)


def of_opacus(folder: Path, batch: int, width: int, rounds: int) -> Iterator[None]:
    """Make steps with Opacus's own batches and noise."""
    model = net(width)
    return steps(
        *opacus.PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(data(), batch_size=batch),
            noise_multiplier=SIGMA,
            max_grad_norm=1.0,
        )
    )


def of_opacus_and_run(folder: Path, batch: int, width: int, rounds: int) -> Iterator[None]:
    """Make steps with Opacus's gradients and clipping, and a run."""
    model = net(width)
    engine = PrivacyEngine(opened(folder / "opacus", batch, rounds))
    optimizer, loader = torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data(), batch_size=batch)
    return steps(*engine.make_private(module=model, optimizer=optimizer, data_loader=loader))


def of_ghosts_and_run(folder: Path, batch: int, width: int, rounds: int) -> Iterator[None]:
    """Make steps with ghost clipping, and a run."""
    model = net(width)
    private, optimizer, criterion, loader = PrivacyEngine(opened(folder / "ghost", batch, rounds)).make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(data(), batch_size=batch),
        criterion=nn.CrossEntropyLoss(),
        grad_sample_mode="ghost",
    )
    return steps(private, optimizer, loader, criterion)


#: How steps are made: of a folder, an expected batch, a width and a number of rounds. Ratios are to the first.
STEPS: dict[str, Callable[[Path, int, int, int], Iterator[None]]] = {
    "Opacus alone": of_opacus,
    "Opacus with a run": of_opacus_and_run,
    "ghost clipping with a run": of_ghosts_and_run,
    "torch.func with a run": lambda folder, batch, width, rounds: by_functions(
        opened(folder / "functions", batch, rounds), width
    ),
    "what a run adds": lambda folder, batch, width, rounds: of_the_run(opened(folder / "alone", batch, rounds), width),
    "without privacy": lambda folder, batch, width, rounds: plain(width, batch),
}
if importlib.util.find_spec("opake") is not None:
    STEPS["opake alone"] = lambda folder, batch, width, rounds: by_opake(width, batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--model", choices=("mlp", "cnn", "transformer"), default="mlp")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--without-opake", action="store_true", help="opake takes most of the time")
    parser.add_argument("--clipping", action="store_true")
    parser.add_argument("--trainer", action="store_true")
    asked = parser.parse_args()
    if asked.clipping:
        compare_clipping(asked.repeats)
        return
    if asked.trainer:
        compare_trainers(asked.repeats)
        return
    global MODEL  # noqa: PLW0603 - one network for all steps of the process
    MODEL = asked.model
    warnings.simplefilter("ignore")
    names = [name for name in STEPS if "opake" not in name or not asked.without_opake]
    with tempfile.TemporaryDirectory() as temporary:
        made = {name: STEPS[name](Path(temporary), asked.batch, asked.width, asked.repeats + 3) for name in names}
        times: dict[str, list[float]] = {name: [] for name in names}
        busy: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(asked.repeats + 3):
            for name, step in made.items():
                began, worked = time.perf_counter(), time.process_time()
                next(step)
                times[name].append(time.perf_counter() - began)
                busy[name].append(time.process_time() - worked)
    grown = {name: in_a_process(memory_of, name, asked.model, asked.batch, asked.width) for name in names}
    # The first steps warm up.
    show(
        {name: some[3:] for name, some in times.items()},
        {name: some[3:] for name, some in busy.items()},
        grown,
        f"{sum(one.numel() for one in net(asked.width).parameters()):_} parameters, batches of {asked.batch}",
    )


if __name__ == "__main__":
    main()
