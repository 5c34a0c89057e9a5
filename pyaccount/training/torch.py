"""A run in PyTorch: batches for a `DataLoader`, clipped sums of gradients, and an optimizer that steps with the noisy mean.

This module needs PyTorch, and no other module imports it. Its parts can be used separately: Opacus or your own training loop can
use only the batches, or give clipped sums of its own to `PrivateOptimizer.add`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyaccount.errors import MissingExtraError, RunError
from pyaccount.training.run import TrainingRun

try:
    import torch
    from torch import Tensor, distributed, nn
    from torch.func import functional_call, grad, vmap
    from torch.utils.data import Sampler, default_collate
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise MissingExtraError.of("torch", "pyaccount.training.torch needs it") from error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: A lower bound on the norms by which is divided, so that a gradient of zeros stays zero.
LEAST_NORM = 1e-30


class RunBatchSampler(Sampler[list[int]]):  # type: ignore[misc, unused-ignore]
    """The batches of a run from its next round on, for `DataLoader(dataset, batch_sampler=…)`: this rank's shard of each.

    Batches may be empty, so give the loader `collate_fn=collate(dataset)`. A loader that prefetches draws batches in advance;
    that does not count any round.
    """

    def __init__(self, run: TrainingRun) -> None:
        self._run = run

    def __iter__(self) -> Iterator[list[int]]:
        run = self._run
        for number in range(run.round, run.rounds):
            yield run.batch(number).shard(run.rank, run.world).indices.tolist()

    def __len__(self) -> int:
        return self._run.rounds - self._run.round


def collate(dataset: Any, usual: Callable[[list[Any]], Any] = default_collate) -> Callable[[list[Any]], Any]:
    """Return a collate function that works like `usual`, and makes tensors without rows from an empty batch.

    The shapes and types of these tensors are taken from the first example of `dataset`.
    """

    def collated(examples: list[Any]) -> Any:
        return usual(examples) if examples else _without_rows(usual([dataset[0]]))

    return collated


class ClippedSums(dict[str, Tensor]):
    """Sums of clipped gradients by parameter, and the groups of parameters that were clipped together, with their norms."""

    def __init__(self, sums: Mapping[str, Tensor], groups: Sequence[tuple[Sequence[str], float]]) -> None:
        super().__init__(sums)
        #: Pairs of the parameters that were clipped together, and the norm to which they were clipped.
        self.clipped = {(frozenset(names), norm) for names, norm in groups}


def clipped_sum(  # noqa: PLR0913 - a model, its loss, a batch and how to clip
    model: nn.Module,
    loss: Callable[[Tensor, Tensor], Tensor],
    inputs: Tensor,
    targets: Tensor,
    *,
    run: TrainingRun | None = None,
    clip_norm: float | None = None,
    also: Mapping[str, Iterable[str]] | None = None,
    mask: Tensor | NDArray[np.bool_] | Sequence[bool] | None = None,
) -> ClippedSums:
    """Return Σ_i g_i·min(1, clip norm/‖g_i‖₂) over the examples of a batch, by parameter.

    g_i is the gradient of `loss` of example i alone, and ‖g_i‖₂ is over all trained parameters. The clip norm is that of `run`,
    or `clip_norm` if there is no run. `also` contains groups of parameters that the document releases as other sums, by their
    names in `noise.also`: the parameters of each group are clipped together to the norm that the run has for it, the remaining
    parameters to the clip norm of the run. An example whose `mask` is false contributes nothing. A batch without examples gives
    zeros. For half-precision parameters, sums, norms and contributions are float32, because roundings to half precision could
    make contributions longer than the clip norm.

    This is a reference implementation with `torch.func`. Every example is run as a batch of one, so layers cannot mix examples;
    the memory of one gradient per example is needed. Raises `RunError` if the clip norm is not that of the run, and for a model
    with batch normalisation, whose running statistics would reveal its batches.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise RunError(
                f"{name}: batch normalisation mixes the records of a batch and keeps statistics of them without noise: use group "
                "normalisation"
            )
    trained = {name: parameter.detach() for name, parameter in model.named_parameters() if parameter.requires_grad}
    groups = _clipped_together(trained, run, clip_norm, also or {})
    if len(inputs) == 0:
        return ClippedSums({name: _wide(torch.zeros_like(parameter)) for name, parameter in trained.items()}, groups)

    def alone(parameters: dict[str, Tensor], example: Tensor, target: Tensor) -> Tensor:
        return loss(functional_call(model, parameters, (example.unsqueeze(0),)), target.unsqueeze(0))

    gradients = vmap(grad(alone), in_dims=(None, 0, 0), randomness="different")(trained, inputs, targets)
    gradients = {name: _wide(gradient) for name, gradient in gradients.items()}
    clipped: dict[str, Tensor] = {}
    for names, norm in groups:
        squares = sum(gradients[name].flatten(1).square().sum(1) for name in names)
        factors = (norm / torch.as_tensor(squares).sqrt().clamp_min(LEAST_NORM)).clamp_max(1.0)
        if mask is not None:
            kept = torch.as_tensor(mask, device=factors.device).bool()
            factors = torch.where(kept, factors, torch.zeros_like(factors))
        clipped |= {name: torch.tensordot(factors, gradients[name], dims=1) for name in names}
    return ClippedSums({name: clipped[name] for name in trained}, groups)


class PrivateOptimizer:
    """An optimizer whose gradients are the noisy means that a run releases.

    `add` takes clipped sums, one or several for each round (gradient accumulation). `step` adds up the sums of all ranks,
    releases the total and steps the optimizer with the noisy mean. By default noise is drawn from the run's key on the CPU and
    moved to the device of the parameters. With `DistributedDataParallel`, give the parameters of the module that it wraps; it
    does not average gradients here. Begin every round with `zero_grad`, which discards what an interrupted round has added, so
    that no record is counted twice.
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
        self._also = _groups(self._parameters, run, also or {})
        missing = sorted(set(run.also_clip_norms) - set(self._also))
        if missing:
            raise RunError(
                f"also: the document releases {', '.join(map(repr, missing))} in addition to the gradients: give the parameters "
                "of each such sum, or use run.step() and release(…, also=…) yourself"
            )
        self._clipped = {
            (frozenset(names), norm) for names, norm in _clipped_together(self._parameters, run, None, self._also)
        }
        self._sums: dict[str, Tensor] | None = None
        self._failed = False

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
            self._sums = {name: _wide(torch.zeros_like(parameter)) for name, parameter in self._parameters.items()}
        for name, sum in sums.items():
            self._sums[name] += sum

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Discard the parameters' gradients, and the sums that were added to this round."""
        self._optimizer.zero_grad(set_to_none)
        self._sums = None

    def step(self) -> None:
        """Release this round's sum and step the optimizer with the noisy mean.

        Raises the errors of `Step.release`. After an error, `step` can be called again and releases the same sum; nothing can be
        added, because the loader's next batch belongs to a later round. Or continue the run from a checkpoint, with a new loader.
        """
        if self._sums is None:
            self._check_sound()
            raise RunError(
                "no sum was added: give clipped_sum(…) to add(); loss.backward() is not used here. The sum of an empty batch "
                "consists of zeros, and is added like any other"
            )
        self._failed = True
        sums = {name: sum.clone() for name, sum in self._sums.items()}
        if self._run.world > 1:
            self._check_ranks()
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
            parameter.grad = torch.from_numpy(means[name]).to(parameter)
        self._sums, self._failed = None, False
        self._optimizer.step()
        self._optimizer.zero_grad()

    def _check_sound(self) -> None:
        if self._failed:
            raise RunError(
                "a step failed, and its sum was not released: call step() once more, which releases the same sum. Or close the "
                "run, open it again, give load_state_dict the state of a checkpoint, and make a new loader and a new optimizer; "
                "the next batch of this loader belongs to a later round"
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


def _clipped_together(
    trained: Mapping[str, object], run: TrainingRun | None, clip_norm: float | None, also: Mapping[str, Iterable[str]]
) -> list[tuple[list[str], float]]:
    """Return the groups of parameters that are clipped together, each with its norm.

    Raises `RunError` if the norm or the groups are not those of the run.
    """
    if run is None:
        if clip_norm is None or also:
            raise RunError(
                "clipped_sum(…, run=run) takes clip norms from the run; without a run give clip_norm=, and no groups (also=)"
            )
        return [(list(trained), clip_norm)]
    if clip_norm not in (None, run.clip_norm):
        raise RunError(
            f"clip_norm = {clip_norm!r} is given, and the run's clip norm is {run.clip_norm!r}: leave it out"
        )
    groups = _groups(trained, run, also)
    grouped = {name for names in groups.values() for name in names}
    return [
        ([name for name in trained if name not in grouped], run.clip_norm),
        *((names, run.also_clip_norms[what]) for what, names in groups.items()),
    ]


def _groups(trained: Mapping[str, object], run: TrainingRun, also: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return the groups of parameters after checking them: each group is a sum in `noise.also` of the document, and each
    parameter is in at most one group.
    """
    for what, names in also.items():
        if isinstance(names, str):
            raise RunError(f"also: {what!r} has the text {names!r}: give a list of parameters' names")
    groups = {what: list(names) for what, names in also.items()}
    every = [name for names in groups.values() for name in names]
    for what, names in groups.items():
        if what not in run.also_clip_norms:
            raise RunError(
                f"also: {what!r} is not in noise.also of the document, which has {sorted(run.also_clip_norms)}"
            )
        if not names:
            raise RunError(f"also: {what!r} has no parameters: leave it out of noise.also")
    unknown = sorted({name for name in every if name not in trained or every.count(name) > 1})
    if unknown:
        raise RunError(
            f"also: not trained, or in several groups: {', '.join(unknown)}. Name each trained parameter only once"
        )
    if len(every) == len(trained):
        raise RunError("also: no parameter is left for the main sum: leave one group out of noise.also")
    return groups


def _wide(tensor: Tensor) -> Tensor:
    """Return the tensor, converted to float32 if it has half precision."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _without_rows(batch: Any) -> Any:
    """Return the tensors of a batch without their rows, in the same mappings and sequences."""
    if isinstance(batch, Tensor):
        return batch[:0]
    if isinstance(batch, Mapping):
        return {name: _without_rows(part) for name, part in batch.items()}
    if isinstance(batch, Sequence) and not isinstance(batch, str):
        return [_without_rows(part) for part in batch]
    raise RunError(f"an empty batch cannot be made from {type(batch).__name__}: give a collate function of your own")
