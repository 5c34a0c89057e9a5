"""Gradients of single examples in PyTorch, clipped and summed.

The sums are what a run releases; this module draws and releases nothing. It needs PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyaccount.errors import RunError, importing
from pyaccount.training.run import TrainingRun

with importing("torch", by=__name__):
    import torch
    from torch import Tensor, nn
    from torch.func import functional_call, grad_and_value, vmap

from pyaccount.training.dropout import drawn_by_key
from pyaccount.training.precision import weighted_sums, without_autocast
from pyaccount.training.unchanged import check_layers, unchanged

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: A lower bound on the norms by which is divided, so that a gradient of zeros stays zero.
LEAST_NORM = 1e-30

#: About so many numbers of single gradients are in memory at once on a processor. More of them are slower: they are in no cache,
#: and the memory is fetched from the system anew in every step.
TOGETHER = 1 << 23


class ClippedSums(dict[str, Tensor]):
    """Sums of clipped gradients by parameter, and the groups of parameters that were clipped together, with their norms."""

    def __init__(
        self, sums: Mapping[str, Tensor], groups: Sequence[tuple[Sequence[str], float]], losses: Tensor | None = None
    ) -> None:
        super().__init__(sums)
        #: The loss of each example, if it is known. It has no noise: nothing accounts for it.
        self.losses = losses
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
    parameters to the clip norm of the run. An example whose `mask` is false contributes nothing, and neither does one whose
    gradient is not finite: like clipping, this looks at the example alone. A batch without examples gives zeros. For
    half-precision parameters and inside of `torch.autocast`, sums, norms and contributions are float32, because roundings to half
    precision could make contributions longer than the clip norm. The losses of the examples are in `losses` of the result,
    without noise.

    Gradients are computed with `torch.func`. Every example is run as a batch of one, so layers cannot mix examples. The memory of
    one gradient per example is needed on an accelerator; on a processor, that of some `TOGETHER` numbers or of one gradient.
    Raises `RunError` if the clip norm is not that of the run, and for a model whose forward pass keeps something of the records
    without noise: batch normalisation and other running statistics, embeddings with `max_norm`, and every change of a parameter
    or buffer.
    """

    def loss_of(net: nn.Module, example: dict[str, Tensor]) -> Tensor:
        return loss(net(example["inputs"]), example["targets"])

    batch = {"inputs": inputs, "targets": targets}
    return clipped_sums_of(model, loss_of, batch, run=run, clip_norm=clip_norm, also=also, mask=mask)


def clipped_sums_of(  # noqa: PLR0913 - a model, its loss, a batch and how to clip
    model: nn.Module,
    loss_of: Callable[[nn.Module, dict[str, Tensor]], Tensor],
    batch: Mapping[str, Tensor],
    *,
    run: TrainingRun | None = None,
    clip_norm: float | None = None,
    also: Mapping[str, Iterable[str]] | None = None,
    mask: Tensor | NDArray[np.bool_] | Sequence[bool] | None = None,
    one_by_one: bool = False,
) -> ClippedSums:
    """Return the same sum as `clipped_sum` for a model whose batch is a mapping, such as those of `transformers`.

    The first dimension of every tensor of `batch` counts the examples. `loss_of(model, example)` gets a batch with one example
    and returns its loss, so it cannot mix examples; it may not depend on anything else of the batch. With `one_by_one` there is
    a backward pass for each example, which every model allows and which needs the memory of one gradient; otherwise examples are
    run together by `torch.func.vmap`, as in `clipped_sum`, which refuses models that decide by the values of tensors.

    Raises the errors of `clipped_sum`, and `RunError` if the tensors differ in their number of examples.
    """
    check_layers(model)
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    groups = clipped_together(trained, run, clip_norm, also or {})
    sizes = {name: len(tensor) for name, tensor in batch.items()}
    if len(set(sizes.values())) > 1:
        raise RunError(f"the tensors of the batch have different numbers of examples: {sizes}")
    total: dict[str, Tensor] = {}
    count = next(iter(sizes.values()), 0)
    if count == 0:
        total = {name: wide(torch.zeros_like(parameter, requires_grad=False)) for name, parameter in trained.items()}
        return ClippedSums(total, groups, next(iter(total.values())).new_zeros(0))
    kept = None if mask is None else torch.as_tensor(mask).bool()
    losses: list[Tensor] = []
    done = 0
    with unchanged(model), drawn_by_key(run):
        for gradients, loss in (_alone if one_by_one else _together)(model, loss_of, batch, trained, count):
            losses.append(loss)
            before, done = done, done + len(loss)
            for names, norm in groups:
                factors = _factors(gradients, names, norm)
                finite = factors > 0.0  # false for a norm that is infinite or not a number
                if not bool(finite.all()):
                    factors = torch.where(finite, factors, torch.zeros_like(factors))
                    for name in names:
                        # Zero times infinity is not a number.
                        rows = finite.view(-1, *[1] * trained[name].dim())
                        gradients[name] = gradients[name].masked_fill(~rows, 0.0)
                if kept is not None:
                    factors = factors * kept[before:done].to(factors)
                _add(total, factors, gradients, names)
    return ClippedSums({name: total[name] for name in trained}, groups, torch.cat(losses).detach())


class _WithLoss(nn.Module):  # type: ignore[misc, unused-ignore]
    """A model whose output is its loss, so that `functional_call` replaces parameters in whatever computes the loss."""

    def __init__(self, model: nn.Module, loss_of: Callable[[nn.Module, dict[str, Tensor]], Tensor]) -> None:
        super().__init__()
        self.model, self._loss_of = model, loss_of

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        return self._loss_of(self.model, batch)


def _together(
    model: nn.Module,
    loss_of: Callable[[nn.Module, dict[str, Tensor]], Tensor],
    batch: Mapping[str, Tensor],
    trained: Mapping[str, Tensor],
    count: int,
) -> Iterator[tuple[dict[str, Tensor], Tensor]]:
    """Yield the gradients and the losses of the examples of one part after the other, the examples being the first dimension."""
    whole = _WithLoss(model, loss_of)

    def alone(parameters: dict[str, Tensor], example: dict[str, Tensor]) -> Tensor:
        given = {name: tensor.unsqueeze(0) for name, tensor in example.items()}
        return functional_call(whole, {f"model.{name}": tensor for name, tensor in parameters.items()}, (given,))

    each = vmap(grad_and_value(alone), in_dims=(None, 0), randomness="different")
    fixed = {name: parameter.detach() for name, parameter in trained.items()}
    for part in _parts(count, fixed):
        gradients, losses = each(fixed, {name: tensor[part] for name, tensor in batch.items()})
        yield {name: wide(gradient) for name, gradient in gradients.items()}, losses


def _alone(
    model: nn.Module,
    loss_of: Callable[[nn.Module, dict[str, Tensor]], Tensor],
    batch: Mapping[str, Tensor],
    trained: Mapping[str, Tensor],
    count: int,
) -> Iterator[tuple[dict[str, Tensor], Tensor]]:
    """Yield the gradient and the loss of one example after the other, with a first dimension of one."""
    for index in range(count):
        loss = loss_of(model, {name: tensor[index : index + 1] for name, tensor in batch.items()})
        found = torch.autograd.grad(loss, list(trained.values()), allow_unused=True, materialize_grads=True)
        yield {name: wide(gradient)[None] for name, gradient in zip(trained, found, strict=True)}, loss.detach()[None]


def _parts(count: int, trained: Mapping[str, Tensor]) -> Iterator[slice]:
    """Yield the ranges of examples whose gradients are in memory at once: all of them on an accelerator."""
    most = count
    if all(parameter.device.type == "cpu" for parameter in trained.values()):
        most = max(1, TOGETHER // max(1, sum(parameter.numel() for parameter in trained.values())))
    # Parts of nearly one size: a small rest would cost as much as a part.
    parts = -(-count // most)
    for number in range(parts):
        yield slice(number * count // parts, (number + 1) * count // parts)


def _factors(gradients: Mapping[str, Tensor], names: Sequence[str], norm: float) -> Tensor:
    """Return min(1, norm/‖g_i‖₂) for each example, over the parameters of a group.

    The norm is that of the norms of rows, which is as exact as a sum of all squares and writes no copy of the gradients.
    """
    rows = []
    with without_autocast(gradients[name] for name in names):
        for name in names:
            gradient = gradients[name]
            row = torch.linalg.vector_norm(gradient if gradient.dim() > 1 else gradient[:, None], dim=-1)
            rows.append(row.flatten(1) if row.dim() > 1 else row[:, None])
        return (norm / torch.linalg.vector_norm(torch.cat(rows, 1), dim=1).clamp_min(LEAST_NORM)).clamp_max(1.0)


def _add(total: dict[str, Tensor], factors: Tensor, gradients: Mapping[str, Tensor], names: Iterable[str]) -> None:
    """Add the clipped gradients of a part to the sums."""
    for name, clipped in weighted_sums(factors, {name: gradients[name] for name in names}).items():
        if name in total:
            total[name] += clipped
        else:
            total[name] = clipped


def clipped_together(
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
    groups = groups_of(trained, run, also)
    grouped = {name for names in groups.values() for name in names}
    return [
        ([name for name in trained if name not in grouped], run.clip_norm),
        *((names, run.also_clip_norms[what]) for what, names in groups.items()),
    ]


def groups_of(
    trained: Mapping[str, object], run: TrainingRun, also: Mapping[str, Iterable[str]]
) -> dict[str, list[str]]:
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


def wide(tensor: Tensor) -> Tensor:
    """Return the tensor, converted to float32 if it has half precision."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
