"""Models whose parameters are sharded over processes by `fully_shard` of PyTorch (FSDP2): gathered for the pass of a round.

    fully_shard(model)
    optimizer = PrivateOptimizer(torch.optim.AdamW(model.parameters()), run, model.named_parameters())
    …
    with gathered(model):
        optimizer.add(clipped_sum(model, loss, features, labels, run=run))
    optimizer.step()

FSDP2 adds up the gradients of all processes layer by layer, and so of many records, before anything could be clipped. Inside of
`gathered` the model is an ordinary one instead: its parameters are whole, and nothing is added up. So each process clips its own
records in any of the ways of this package, and `PrivateOptimizer` adds up the sums of the processes, as without shards. Between
rounds each process has its shard of the parameters and of what the optimizer keeps. While a round is computed it also has all
parameters and a sum of their size, and the noisy mean is made whole in the memory of its processor.

This module needs PyTorch.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from pyaccount.errors import RunError, importing

with importing("torch", by=__name__):
    import torch
    from torch import Tensor, nn

#: What a module has of hooks that FSDP2 puts there.
_HOOKS = ("_forward_pre_hooks", "_forward_hooks")


@contextlib.contextmanager
def gathered(model: nn.Module) -> Iterator[nn.Module]:
    """Gather the parameters of a model that `fully_shard` sharded, and let it be an ordinary model until the end of the context.

    All processes must enter it in each round, also those whose part of the batch is empty: gathering is a common call. A model
    that is not sharded stays as it is.

    Raises `RunError` for a model that is gathered already, has parameters that were sharded in another way, or casts parameters
    or outputs to other types (`MixedPrecisionPolicy`), because hooks of FSDP2 do this, which do not run here.
    """
    shards = _sharded_modules(model)
    types = {name: one.dtype for name, one in model.named_parameters()}
    if shards and not any(sharding_of(one) for one in model.parameters()):
        raise RunError("the parameters of the model are gathered already: use one `with gathered(model):` for a round")
    hooks = [(hooked, dict(hooked)) for module in shards for hooked in (getattr(module, name) for name in _HOOKS)]
    try:
        for module in shards:
            module.unshard()
        for hooked, _ in hooks:
            for number in [number for number, hook in hooked.items() if _of_shards(hook)]:
                del hooked[number]
        cast = any(one.dtype != types[name] for name, one in model.named_parameters())
        if cast or any(module._get_fsdp_state()._mp_policy.output_dtype is not None for module in shards):
            raise RunError(
                "the model is sharded with a MixedPrecisionPolicy, which casts parameters, inputs or outputs by hooks that do "
                "not run here: leave it out, and use torch.autocast"
            )
        left = sorted(name for name, one in model.named_parameters() if sharding_of(one))
        if left:
            raise RunError(f"{', '.join(left[:5])}: sharded, but not by fully_shard: nothing gathers these parameters")
        yield model
    finally:
        for hooked, before in hooks:
            _put_back(hooked, before)
        for module in shards:
            for parameter in module.parameters():
                parameter.grad = None
            module.reshard()


def sharding_of(tensor: Tensor) -> tuple[Any, Any] | None:
    """Return the mesh of processes over which a tensor is spread, and how; None for a tensor that is whole."""
    mesh = getattr(tensor, "device_mesh", None)
    return None if mesh is None else (mesh, tensor.placements)  # type: ignore[attr-defined, unused-ignore]


def shard_like(whole: Tensor, parameter: Tensor) -> Tensor:
    """Return this process's shard of a tensor that all processes have, as that of the parameter; the tensor if that is whole."""
    sharding = sharding_of(parameter)
    if sharding is None:
        return whole.to(parameter)
    from torch.distributed.tensor import distribute_tensor  # few models are sharded

    local: Any = parameter
    # All processes have the same numbers, so nothing is sent.
    return distribute_tensor(whole.to(local.to_local()), *sharding, src_data_rank=None)


def check_whole(model: nn.Module) -> None:
    """Raise `RunError` if parameters of the model are sharded, so that a pass would add up what has to be clipped."""
    for name, parameter in model.named_parameters():
        if sharding_of(parameter) is not None:
            raise RunError(
                f"{name} is sharded over processes, and a pass would add up the gradients of their records before they are "
                "clipped: clip inside of `with gathered(model):` of pyaccount.training.sharded"
            )


def _sharded_modules(model: nn.Module) -> list[Any]:
    """Return the modules to which `fully_shard` was applied."""
    if not torch.distributed.is_available():
        return []
    from torch.distributed.fsdp import FSDPModule  # few models are sharded

    return [module for module in model.modules() if isinstance(module, FSDPModule)]


def _of_shards(hook: Any) -> bool:
    """Return whether a hook is one of FSDP2."""
    return type(getattr(hook, "__self__", None)).__module__.startswith("torch.distributed.fsdp.")


def _put_back(hooked: OrderedDict[int, Any], before: dict[int, Any]) -> None:
    """Put the hooks of FSDP2 back to their places among those that are there now."""
    now = dict(hooked)
    hooked.clear()
    for number, hook in before.items():
        if number in now or _of_shards(hook):
            hooked[number] = hook
    hooked.update({number: hook for number, hook in now.items() if number not in before})
