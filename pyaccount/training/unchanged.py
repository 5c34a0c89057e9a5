"""Models whose forward passes keep records: these reach the model without noise, and are refused.

Some layers write what they see into parameters or buffers: batch normalisation and other running statistics, embeddings that are
renormalised when they are looked up, counters and caches. Nothing accounts for that. This module needs PyTorch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyaccount.errors import RunError, importing
from pyaccount.training.sharded import check_whole

with importing("torch", by=__name__):
    import torch
    from torch import Tensor, nn

#: Whole numbers by their size in bytes.
WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class TensorState(NamedTuple):
    """A parameter or buffer as it is before a forward pass."""

    #: The module that has the tensor, and its name there.
    module: nn.Module
    name: str
    tensor: Tensor
    #: How often it was written to in place, as far as PyTorch counts.
    writes: int
    #: A sum over the bits of its values, which also changes with writes that PyTorch does not count (`tensor.data`).
    bits: Tensor


def check_layers(model: nn.Module) -> None:
    """Raise `RunError` for layers that mix the records of a batch or keep something of them without noise.

    These are batch normalisation, instance normalisation with running statistics, and embeddings with a `max_norm`. Parameters
    that are sharded over processes are an error too, outside of `gathered`.
    """
    check_whole(model)
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise RunError(
                f"{name}: batch normalisation mixes the records of a batch and keeps statistics of them without noise: use group "
                "normalisation"
            )
        if isinstance(module, nn.modules.batchnorm._NormBase) and module.track_running_stats:
            raise RunError(
                f"{name}: {type(module).__name__} with track_running_stats=True keeps statistics of records without noise: use "
                "track_running_stats=False"
            )
        if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.max_norm is not None:
            raise RunError(
                f"{name}: an embedding with max_norm = {module.max_norm!r} rescales the rows of the words that it looks up, so "
                "it shows without noise which words the records have: leave max_norm out"
            )


def _state_of(model: nn.Module) -> list[TensorState]:
    """Return the parameters and buffers of a model as they are, for `_check_unchanged`.

    The vectors of spectral normalisation are left out: they change in a forward pass, and depend on weights alone.
    """
    return [TensorState(*entry, _writes(entry[2]), _bits(entry[2])) for entry in _tensors(model)]


def _check_unchanged(model: nn.Module, before: Sequence[TensorState]) -> None:
    """Raise `RunError` if a parameter or buffer is not as it was in `before`: written to, replaced, added or removed."""
    after = _tensors(model)
    kept = {(id(module), name): tensor for module, name, tensor in after}
    known = {(id(one.module), one.name) for one in before}
    changed = [(module, name) for module, name, _ in after if (id(module), name) not in known]
    alike = []
    for one in before:
        tensor = kept.get((id(one.module), one.name))
        if tensor is not one.tensor or _writes(tensor) != one.writes:
            changed.append((one.module, one.name))
        else:
            alike.append(one)
    for one, equal in zip(alike, _equal([(one.bits, _bits(one.tensor)) for one in alike]), strict=True):
        if not equal:
            changed.append((one.module, one.name))
    if changed:
        # Names are long to make, and needed only here. A module that is not there any more has none.
        names = {id(module): name for name, module in model.named_modules()}
        places = sorted(".".join(filter(None, (names.get(id(module)), name))) for module, name in changed)
        raise RunError(
            f"{', '.join(places[:5])}: the forward pass of the model changes this. What a model keeps of records has no "
            "noise, so nothing was released. Use layers that keep nothing, and go on with the model from before this forward pass"
        )


@contextlib.contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Raise `RunError` at the end if forward passes have changed a parameter or buffer of the model."""
    before = _state_of(model)
    yield
    _check_unchanged(model, before)


def watch(model: nn.Module) -> None:
    """Let every forward pass of the model in training raise `RunError` if it changes a parameter or buffer."""
    before: list[TensorState] = []

    def begin(module: nn.Module, _: object) -> None:
        before.clear()
        if module.training:
            before.extend(_state_of(module))

    def end(module: nn.Module, *_: object) -> None:
        if before:
            _check_unchanged(module, before)
        before.clear()

    model.register_forward_pre_hook(begin)
    model.register_forward_hook(end)


def _tensors(model: nn.Module) -> list[tuple[nn.Module, str, Tensor]]:
    """Return the parameters and buffers of a model, each with its module and its name there; one that is shared occurs twice."""
    found: list[tuple[nn.Module, str, Tensor]] = []
    seen, waiting = set[int](), [model]
    spectral = set[int]()
    while waiting:
        module = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        spectral |= _spectral_vectors(module)
        for tensors in (module._parameters, module._buffers):
            found.extend((module, name, tensor) for name, tensor in tensors.items() if tensor is not None)
        waiting.extend(child for child in module._modules.values() if child is not None)
    return [entry for entry in found if id(entry[2]) not in spectral] if spectral else found


def _writes(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _bits(tensor: Tensor) -> Tensor:
    """Return the sum of the values as whole numbers of as many bits; zero for tensors that are not plain, as quantized ones."""
    plain = tensor.detach()
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    size = WHOLE.get(plain.element_size())
    if size is None or type(plain) is not Tensor or plain.layout is not torch.strided or plain.is_quantized:
        return torch.zeros((), dtype=torch.int64)
    each = 8 // plain.element_size()
    if plain.is_contiguous() and plain.numel() % each == 0 and plain.storage_offset() % each == 0:
        # Eight bytes at a time take a quarter of the time.
        plain, size = plain.reshape(-1), torch.int64
    return plain.view(size).sum(dtype=torch.int64)


def _equal(pairs: Sequence[tuple[Tensor, Tensor]]) -> list[bool]:
    """Return whether the numbers of each pair are equal, with one transfer for each device."""
    devices = {pair[1].device for pair in pairs}
    found = [False] * len(pairs)
    for device in devices:
        places = [place for place, pair in enumerate(pairs) if pair[1].device == device]
        one, other = (torch.stack([pairs[place][side].to(device) for place in places]) for side in (0, 1))
        for place, equal in zip(places, (one == other).tolist(), strict=True):
            found[place] = equal
    return found


def _spectral_vectors(module: nn.Module) -> set[int]:
    """Return the ids of the vectors u and v of spectral normalisation of a module, in both of PyTorch's implementations."""
    found = set()
    if isinstance(module, nn.utils.parametrizations._SpectralNorm):
        found |= {id(tensor) for tensor in (getattr(module, "_u", None), getattr(module, "_v", None))}
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, nn.utils.spectral_norm.__globals__["SpectralNorm"]):
            found |= {id(getattr(module, f"{hook.name}_{vector}", None)) for vector in "uv"}
    return found - {id(None)} if found else found
