"""A run in PyTorch: batches for a `DataLoader`, clipped sums of gradients, and an optimizer that steps with what is released.

Needs PyTorch; nothing else imports this module, and the parts can be used by themselves: Opacus or a loop of one's own may
take the batches alone, or hand clipped sums of its own to `PrivateOptimizer.add`.
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

#: The norm of a gradient is at least this when it is divided by, so that one of zeros stays as it is.
LEAST_NORM = 1e-30


class RunBatchSampler(Sampler[list[int]]):  # type: ignore[misc, unused-ignore]
    """The batches of a run from its next round on, for `DataLoader(dataset, batch_sampler=…)`: this rank's part of each.

    Empty batches are among them: give the loader `collate(dataset)`. A loader that fetches ahead draws ahead, which counts
    nothing.
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
    """What makes a batch of examples as `usual` does, and of none the same tensors without rows."""

    def collated(examples: list[Any]) -> Any:
        return usual(examples) if examples else _without_rows(usual([dataset[0]]))

    return collated


class ClippedSums(dict[str, Tensor]):
    """Sums of clipped gradients by parameter, with what they were clipped to: the groups, and the norm of each."""

    def __init__(self, sums: Mapping[str, Tensor], groups: Sequence[tuple[Sequence[str], float]]) -> None:
        super().__init__(sums)
        #: Which parameters were clipped together, and to which norm.
        self.clipped = {(frozenset(names), norm) for names, norm in groups}


def clipped_sum(  # noqa: PLR0913 - a model, its loss and a batch
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
    """Return Σ_i g_i·min(1, clip norm/‖g_i‖) over the examples of a batch, by parameter.

    g_i is the gradient of `loss` of example i alone, and ‖g_i‖ is over all parameters that are trained. The clip norm is that of
    the `run`, or `clip_norm` where there is none. `also` has groups of parameters that the document releases as other sums, by
    their names in `noise.also`: the parameters of a group are clipped together, to the group's norm in the run, and the rest to
    the run's. Where `mask` is false an example counts for nothing; a batch without examples gives zeros. Of half-precision
    parameters the sums are float32, and so are norms and contributions, which roundings to half precision would make longer than
    the clip norm.

    A reference by `torch.func`: every example is run as a batch of one, so that layers which mix examples (batch normalisation)
    do not; it takes the memory of a gradient for each example. Raises `RunError` for a clip norm that is not the run's, and for a
    model that keeps running statistics, which would reveal its batches.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise RunError(
                f"{name}: batch normalisation mixes the records of a batch and keeps statistics of them: use group normalisation"
            )
    trained = {name: parameter.detach() for name, parameter in model.named_parameters() if parameter.requires_grad}
    groups = _clipped_together(trained, run, clip_norm, also or {})
    if len(inputs) == 0:
        return ClippedSums({name: _wide(torch.zeros_like(parameter)) for name, parameter in trained.items()}, groups)

    def alone(parameters: dict[str, Tensor], one: Tensor, target: Tensor) -> Tensor:
        return loss(functional_call(model, parameters, (one.unsqueeze(0),)), target.unsqueeze(0))

    gradients = vmap(grad(alone), in_dims=(None, 0, 0), randomness="different")(trained, inputs, targets)
    gradients = {name: _wide(gradient) for name, gradient in gradients.items()}
    found: dict[str, Tensor] = {}
    for names, norm in groups:
        squares = sum(gradients[name].flatten(1).square().sum(1) for name in names)
        factors = (norm / torch.as_tensor(squares).sqrt().clamp_min(LEAST_NORM)).clamp_max(1.0)
        if mask is not None:
            kept = torch.as_tensor(mask, device=factors.device).bool()
            factors = torch.where(kept, factors, torch.zeros_like(factors))
        found |= {name: torch.tensordot(factors, gradients[name], dims=1) for name in names}
    return ClippedSums({name: found[name] for name in trained}, groups)


class PrivateOptimizer:
    """An optimizer whose gradients are the releases of a run.

    `add` takes clipped sums, one or several for a round (gradient accumulation); `step` adds up those of all ranks, releases the
    sum and makes the optimizer's step with the noisy mean. Noise is drawn from the run's key on the processor, and moved to
    where the parameters are. With `DistributedDataParallel` give the module inside of it: gradients are not averaged by it here.
    Begin every round with `zero_grad`: what an interrupted one has added is forgotten, and counts no record twice.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        run: TrainingRun,
        parameters: Iterable[tuple[str, nn.Parameter]],
        *,
        also: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        """For the named parameters of a model, as `model.named_parameters()` gives them.

        `also` has groups of them that the document releases as other sums, with clip norms and noise of their own, as for
        `clipped_sum`. Raises `RunError` if the optimizer changes a parameter that is not among those that are trained, or a group
        is not in the document.
        """
        self._optimizer, self._run = optimizer, run
        self._parameters = {name: parameter for name, parameter in parameters if parameter.requires_grad}
        known = {id(parameter) for parameter in self._parameters.values()}
        for group in optimizer.param_groups:
            if any(id(parameter) not in known for parameter in group["params"] if parameter.requires_grad):
                raise RunError(
                    "the optimizer has parameters that are not among those given: their gradients would have no noise"
                )
        self._also = _groups(self._parameters, run, also or {})
        missing = sorted(set(run.also_clip_norms) - set(self._also))
        if missing:
            raise RunError(
                f"also: the document releases {', '.join(map(repr, missing))} beside the gradients: give the parameters of each "
                "such sum, or use run.step() and release(…, also=…) yourself"
            )
        self._clipped = {
            (frozenset(names), norm) for names, norm in _clipped_together(self._parameters, run, None, self._also)
        }
        self._sums: dict[str, Tensor] | None = None
        self._failed = False

    def add(self, sums: Mapping[str, Tensor] | Tensor) -> None:
        """Add clipped sums of this round, by the parameters' names; of a single parameter a tensor.

        Raises `RunError` if they are not of the trained parameters, or `clipped_sum` has clipped them in another way than the run
        says.
        """
        self._check_sound()
        if isinstance(sums, ClippedSums) and sums.clipped != self._clipped:
            raise RunError(
                "these sums were clipped to other norms, or in other groups of parameters, than the run releases: give "
                "clipped_sum the "
                "same run= and also= as the optimizer"
            )
        if isinstance(sums, Tensor):
            if len(self._parameters) != 1:
                raise RunError(
                    f"a tensor is the sum of one parameter, and {len(self._parameters)} are trained: give a mapping from their "
                    "names to the sums, as clipped_sum returns it"
                )
            sums = dict.fromkeys(self._parameters, sums)
        missing, unknown = sorted(set(self._parameters) - set(sums)), sorted(set(sums) - set(self._parameters))
        if missing:
            raise RunError(
                f"there is no sum for {', '.join(missing)}: sums are of all parameters that were trainable when the optimizer "
                "was made"
            )
        if unknown:
            raise RunError(
                f"there is a sum for {', '.join(unknown)}, which was not trainable when the optimizer was made"
            )
        for name, sum in sums.items():
            if sum.shape != self._parameters[name].shape:
                shapes = tuple(sum.shape), tuple(self._parameters[name].shape)
                raise RunError(f"{name}: a sum of shape {shapes[0]}, where the parameter has {shapes[1]}")
        if self._sums is None:
            self._sums = {name: _wide(torch.zeros_like(parameter)) for name, parameter in self._parameters.items()}
        for name, sum in sums.items():
            self._sums[name] += sum

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the parameters' gradients, and the sums that were added to this round."""
        self._optimizer.zero_grad(set_to_none)
        self._sums = None

    def step(self) -> None:
        """Release this round's sum and step with it.

        Raises as `Step.release`. After that the same sum may be released by another `step`, and nothing can be added: a loader's
        next batch would be released as that of this round. Or take the run up from a checkpoint, with a loader of its own.
        """
        if self._sums is None:
            self._check_sound()
            raise RunError(
                "no sum was added: give clipped_sum(…) to add(); loss.backward() is not used here. The sum of an empty batch is "
                "of zeros, and is added as any other"
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
                "a step failed, and its sum was not released: call step() once more, which releases that very sum. Or close the "
                "run, open it again, load_state_dict the state of a checkpoint, and make a new loader and a new optimizer: the "
                "next batch of this loader belongs to a later round"
            )

    def _check_ranks(self) -> None:
        run = self._run
        if not distributed.is_initialized() or distributed.get_world_size() != run.world:
            raise RunError(f"the run has {run.world} ranks, and torch.distributed is not set up for as many")
        found: list[Any] = [None] * run.world
        distributed.all_gather_object(found, run.rank_state)
        run.check_ranks(found)


def _clipped_together(
    trained: Mapping[str, object], run: TrainingRun | None, clip_norm: float | None, also: Mapping[str, Iterable[str]]
) -> list[tuple[list[str], float]]:
    """The groups of parameters that are clipped together, and what to. Raises `RunError` for what a run does not say so."""
    if run is None:
        if clip_norm is None or also:
            raise RunError(
                "clipped_sum(…, run=run) takes clip norms from the run; without one give clip_norm=, and no groups"
            )
        return [(list(trained), clip_norm)]
    if clip_norm not in (None, run.clip_norm):
        raise RunError(f"clip_norm = {clip_norm!r}, and the run's is {run.clip_norm!r}: leave it out")
    groups = _groups(trained, run, also)
    grouped = {name for names in groups.values() for name in names}
    return [
        ([name for name in trained if name not in grouped], run.clip_norm),
        *((names, run.also_clip_norms[what]) for what, names in groups.items()),
    ]


def _groups(trained: Mapping[str, object], run: TrainingRun, also: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Groups of parameters, checked: each is another sum of the document, and each parameter is in one at most."""
    for what, names in also.items():
        if isinstance(names, str):
            raise RunError(f"also: {what!r} has the text {names!r}: give a list of parameters' names")
    found = {what: list(names) for what, names in also.items()}
    every = [name for names in found.values() for name in names]
    for what, names in found.items():
        if what not in run.also_clip_norms:
            raise RunError(
                f"also: {what!r} is not in noise.also of the document, which has {sorted(run.also_clip_norms)}"
            )
        if not names:
            raise RunError(f"also: {what!r} has no parameters: leave it out of noise.also")
    unknown = sorted({name for name in every if name not in trained or every.count(name) > 1})
    if unknown:
        raise RunError(f"also: each parameter that is trained is in one group at most; not so {', '.join(unknown)}")
    if len(every) == len(trained):
        raise RunError("also: no parameter is left for the main sum: leave one group out of noise.also")
    return found


def _wide(tensor: Tensor) -> Tensor:
    """The tensor, float32 instead of half precision."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _without_rows(batch: Any) -> Any:
    """The tensors of a batch without their rows, in the same mappings and sequences."""
    if isinstance(batch, Tensor):
        return batch[:0]
    if isinstance(batch, Mapping):
        return {name: _without_rows(part) for name, part in batch.items()}
    if isinstance(batch, Sequence) and not isinstance(batch, str):
        return [_without_rows(part) for part in batch]
    raise RunError(f"an empty batch cannot be made of {type(batch).__name__}: give a collate function of your own")
