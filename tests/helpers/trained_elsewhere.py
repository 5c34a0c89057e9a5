"""Short runs by which trainers of other libraries are tested: their documents, runs that can be compared, and a loop by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from plain_documents import changed, doc, sectioned
from training_runs import fixed_draws

from pyaccount import TrainingRun


def trained(name: str, records: int, rounds: int) -> dict[str, Any]:
    """Return a document of Poisson batches of six records on average, with little noise, so that a test sees the gradients."""
    return doc(
        "adjacency=add-remove epsilon=300.0 expected_batch_size=6 sampler=poisson multiplier=0.5",
        name=name,
        dataset_size=records,
        iterations=rounds,
    )


#: What makes the noise of such a run correlated.
CORRELATED = sectioned(sampler="b-min-sep", min_separation=2, matrix="banded-square-root", bands=2)


def with_batches(document: dict[str, Any], size: float) -> dict[str, Any]:
    """Return what changes the expected batch size of a document; for a size below one, most batches are empty."""
    return {"training": {**document["training"], "expected_batch_size": size}}


def starting(document: dict[str, Any], below: str = ".") -> Callable[..., TrainingRun]:
    """Return a function that opens a run of the document, with changes of its sections, in a folder below the one given."""

    def started(folder: Path, changes: dict[str, Any] | None = None, **options: Any) -> TrainingRun:
        usual = {"records": document["training"]["dataset_size"], "clip_norm": 0.7, "uncertified": True}
        return TrainingRun(changed(document, changes or {}, {}), folder / below, **{**usual, **options})

    return started


def with_key(run: TrainingRun, key: list[Any], patch: pytest.MonkeyPatch | None = None) -> TrainingRun:
    """Let a run draw from the key of the first one, so that runs in different folders can be compared.

    With `patch` its nonces are those with which every run begins; without it, those after the ones that were drawn last.
    """
    if patch is not None:
        fixed_draws(patch)
    key.append(run._root)
    run._root = run._noise._root = key[0]
    return run


def by_hand(run: TrainingRun, net: Any, loss_of: Callable[[Any, int], Any], steps: Iterable[Any] | None = None) -> None:
    """Train a model of PyTorch with a backward pass for each record; `loss_of(net, index)` is the loss of a record.

    `steps` are the optimizer and what else makes a step after each round, by default plain gradient descent with rate 0.1.
    """
    import torch

    named = dict(net.train().named_parameters())
    steps = [torch.optim.SGD(net.parameters(), lr=0.1)] if steps is None else list(steps)
    while run.round < run.rounds:
        with run.step() as step:
            total = {name: torch.zeros_like(parameter) for name, parameter in named.items()}
            for index in step.batch.indices.tolist():
                net.zero_grad()
                loss_of(net, index).backward()
                norm = float(torch.sqrt(sum((parameter.grad**2).sum() for parameter in named.values())))
                for name, parameter in named.items():
                    total[name] += parameter.grad * min(1.0, run.clip_norm / norm)
            means = step.release({name: tensor.numpy() for name, tensor in total.items()})
        for name, parameter in named.items():
            parameter.grad = torch.from_numpy(means[name])
        for one in steps:
            one.step()
