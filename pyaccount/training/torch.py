"""A run in PyTorch: batches for a `DataLoader`, clipped sums of gradients, and an optimizer that steps with the noisy mean.

This module needs PyTorch, and no other module imports it. Its parts can be used separately: Opacus or your own training loop can
use only the batches, or give clipped sums of its own to `PrivateOptimizer.add`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyaccount.errors import RunError, importing
from pyaccount.training.run import TrainingRun

with importing("torch", by=__name__):
    import torch
    from torch import Tensor, distributed, nn
    from torch.utils.data import Sampler, default_collate

from pyaccount.training.clipping import (
    ClippedSums,
    clipped_sum,
    clipped_sums_of,
    clipped_together,
    groups_of,
    wide,
)
from pyaccount.training.dropout import begin_draws, drawn_by_key
from pyaccount.training.sharded import gathered, shard_like, sharding_of

__all__ = [
    "ClippedSums",
    "PrivateOptimizer",
    "RunBatchSampler",
    "clipped_sum",
    "clipped_sums_of",
    "collate",
    "drawn_by_key",
    "gathered",
]


class RunBatchSampler(Sampler[list[int]]):  # type: ignore[misc, unused-ignore]
    """The batches of a run from its next round on, for `DataLoader(dataset, batch_sampler=…)`: this rank's shard of each.

    Batches may be empty, so give the loader `collate_fn=collate(dataset)`. A loader that prefetches draws batches in advance;
    that does not count any round. With `most`, an iteration has at most that many rounds, such as an epoch of another library.
    """

    def __init__(self, run: TrainingRun, most: int | None = None) -> None:
        self._run, self._most = run, most

    def __iter__(self) -> Iterator[list[int]]:
        run = self._run
        for number in range(run.round, run.round + len(self)):
            yield run.batch(number).shard(run.rank, run.world).indices.tolist()

    def __len__(self) -> int:
        left = self._run.rounds - self._run.round
        return left if self._most is None else min(left, self._most)


def collate(dataset: Any, usual: Callable[[list[Any]], Any] = default_collate) -> Callable[[list[Any]], Any]:
    """Return a collate function that works like `usual`, and makes tensors without rows from an empty batch.

    The shapes and types of these tensors are taken from the first example of `dataset`.
    """

    def collated(examples: list[Any]) -> Any:
        return usual(examples) if examples else _without_rows(usual([dataset[0]]))

    return collated


class PrivateOptimizer:
    """An optimizer whose gradients are the noisy means that a run releases.

    `add` takes clipped sums, one or several for each round (gradient accumulation). `step` adds up the sums of all ranks,
    releases the total and steps the optimizer with the noisy mean. By default noise is drawn from the run's key on the CPU and
    moved to the device of the parameters. With `DistributedDataParallel`, give the parameters of the module that it wraps; it
    does not average gradients here. With `fully_shard`, compute the sums inside of `gathered`. Begin every round with
    `zero_grad`, which discards what an interrupted round has added, so that no record is counted twice.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        run: TrainingRun,
        parameters: Iterable[tuple[str, nn.Parameter]],
        *,
        also: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        """Wrap an optimizer for the named parameters of a model, as `model.named_parameters()` returns them.

        `also` contains groups of parameters that the document releases as other sums, with clip norms and noise of their own, as
        for `clipped_sum`. Raises `RunError` if the optimizer has a trainable parameter that is not among those given, or if the
        groups are not those of the document.
        """
        self._optimizer, self._run = optimizer, run
        self._parameters = {name: parameter for name, parameter in parameters if parameter.requires_grad}
        known = {id(parameter) for parameter in self._parameters.values()}
        for group in optimizer.param_groups:
            if any(id(parameter) not in known for parameter in group["params"] if parameter.requires_grad):
                raise RunError(
                    "the optimizer has parameters that are not among those given, and their gradients would have no noise: give "
                    "all parameters that it changes"
                )
        self._check_meshes()
        self._also = groups_of(self._parameters, run, also or {})
        missing = sorted(set(run.also_clip_norms) - set(self._also))
        if missing:
            raise RunError(
                f"also: the document releases {', '.join(map(repr, missing))} in addition to the gradients: give the parameters "
                "of each such sum, or use run.step() and release(…, also=…) yourself"
            )
        self._clipped = {
            (frozenset(names), norm) for names, norm in clipped_together(self._parameters, run, None, self._also)
        }
        self._sums: dict[str, Tensor] | None = None
        self._failed = False
        #: The round whose release was begun last.
        self._begun = run.round

    def add(self, sums: Mapping[str, Tensor] | Tensor) -> None:
        """Add clipped sums to this round, by the parameters' names; a tensor if there is only one parameter.

        Raises `RunError` if they are not sums of exactly the trained parameters, or if `clipped_sum` clipped them to other norms
        or in other groups than those of the run.
        """
        self._check_sound()
        if isinstance(sums, ClippedSums) and sums.clipped != self._clipped:
            raise RunError(
                "these sums were clipped to other norms, or in other groups of parameters, than the run releases: give "
                "clipped_sum the same run= and also= as the optimizer"
            )
        if isinstance(sums, Tensor):
            if len(self._parameters) != 1:
                raise RunError(
                    f"a single tensor is given, and {len(self._parameters)} parameters are trained: give a mapping from their "
                    "names to the sums, as clipped_sum returns it"
                )
            sums = dict.fromkeys(self._parameters, sums)
        missing, unknown = sorted(set(self._parameters) - set(sums)), sorted(set(sums) - set(self._parameters))
        if missing:
            raise RunError(
                f"there is no sum for {', '.join(missing)}: give the sums of all parameters that were trainable when the "
                "optimizer was made"
            )
        if unknown:
            raise RunError(
                f"there is a sum for {', '.join(unknown)}, which was not trainable when the optimizer was made: leave it out"
            )
        for name, sum in sums.items():
            if sum.shape != self._parameters[name].shape:
                shapes = tuple(sum.shape), tuple(self._parameters[name].shape)
                raise RunError(f"{name}: the sum has shape {shapes[0]}, and the parameter has shape {shapes[1]}")
        if self._sums is None:
            self._sums = {
                name: wide(torch.zeros(one.shape, dtype=one.dtype, device=one.device))
                for name, one in self._parameters.items()
            }
        for name, sum in sums.items():
            self._sums[name] += sum

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Discard the parameters' gradients, and the sums that were added to this round."""
        self._optimizer.zero_grad(set_to_none)
        self._sums = None
        begin_draws(self._run)

    def step(self) -> None:
        """Release this round's sum and step the optimizer with the noisy mean.

        Raises the errors of `Step.release`. After an error, `step` can be called again and releases the same sum; nothing can be
        added, because the loader's next batch belongs to a later round. Or continue the run from a checkpoint, with a new loader.
        """
        self.release()
        self._optimizer.step()
        self._optimizer.zero_grad()

    def release(self) -> None:
        """Release this round's sum and make the noisy mean the gradients of the parameters, without a step of the optimizer.

        This is for a trainer that steps the optimizer itself. Errors are those of `step`.
        """
        if self._sums is None:
            self._check_sound()
            raise RunError(
                "no sum was added: give clipped_sum(…) to add(); loss.backward() is not used here. The sum of an empty batch "
                "consists of zeros, and is added like any other"
            )
        if self._failed and self._run.round == self._begun + 1:
            # The round was counted, and what came after it failed: the same sum gets the same release once more.
            self._run.load_state_dict({**self._run.state_dict(), "rounds": self._begun})
        elif self._failed and self._run.round != self._begun:
            self._check_sound()
        self._failed, self._begun = True, self._run.round
        sums = dict(self._sums)
        if self._run.world > 1:
            self._check_ranks()
            # After an error the sums of this rank are still needed.
            sums = {name: sum.clone() for name, sum in sums.items()}
            for name in sorted(sums):
                distributed.all_reduce(sums[name])
        arrays = {name: sum.detach().cpu().numpy() for name, sum in sums.items()}
        grouped = {name for names in self._also.values() for name in names}
        with self._run.step() as step:
            means = step.release(
                {name: array for name, array in arrays.items() if name not in grouped},
                also={what: {name: arrays[name] for name in names} for what, names in self._also.items()},
            )
        assert isinstance(means, dict)
        normaliser = self._run.normaliser(step.round)
        for group in step.also.values():
            assert isinstance(group, dict)
            means |= {name: array / array.dtype.type(normaliser) for name, array in group.items()}
        for name, parameter in self._parameters.items():
            parameter.grad = shard_like(torch.from_numpy(means[name]), parameter)
        self._sums, self._failed = None, False

    def _check_sound(self) -> None:
        if self._failed:
            raise RunError(
                "a step failed, and its sum was not released: call step() once more, which releases the same sum. Or close the "
                "run, open it again, give load_state_dict the state of a checkpoint, and make a new loader and a new optimizer; "
                "the next batch of this loader belongs to a later round"
            )

    def _check_meshes(self) -> None:
        """Raise `RunError` if parameters are spread over other processes than the ranks of the run."""
        for name, parameter in self._parameters.items():
            sharding = sharding_of(parameter)
            if sharding is not None and sharding[0].size() != self._run.world:
                raise RunError(
                    f"{name} is sharded over {sharding[0].size()} processes, and the run has {self._run.world} "
                    f"rank{'s' * (self._run.world > 1)}: open it in each process with its rank= and world="
                )

    def _check_ranks(self) -> None:
        run = self._run
        if not distributed.is_initialized() or distributed.get_world_size() != run.world:
            raise RunError(
                f"the run has {run.world} ranks: initialise torch.distributed with the same number of processes"
            )
        states: list[Any] = [None] * run.world
        distributed.all_gather_object(states, run.rank_state)
        run.check_ranks(states)


def _without_rows(batch: Any) -> Any:
    """Return the tensors of a batch without their rows, in the same mappings and sequences."""
    if isinstance(batch, Tensor):
        return batch[:0]
    if isinstance(batch, Mapping):
        return {name: _without_rows(part) for name, part in batch.items()}
    if isinstance(batch, Sequence) and not isinstance(batch, str):
        return [_without_rows(part) for part in batch]
    raise RunError(f"an empty batch cannot be made from {type(batch).__name__}: give a collate function of your own")
