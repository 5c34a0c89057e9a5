"""Records that a loader reads, as tensors in parts whose gradients fit into memory. This module needs PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyaccount.errors import RunError, importing

with importing("torch", by=__name__):
    import torch
    from torch import Tensor

#: Tensors by name, or by their place in a tuple. The first dimension counts the records.
Tensors = dict[str, Tensor]


def parts_of(examples: Sequence[Any], collate: Callable[[list[Any]], Any], most: int) -> Iterator[Tensors]:
    """Yield the records in parts of one shape, of at most `most` records each, after collating each record alone.

    So neither the padding nor anything else of a record's tensors depends on other records: its contribution to the sum must not.
    Texts that are padded to a few lengths need few parts.

    Raises `RunError` if the collator does not make tensors with one row of one record.
    """
    alike: dict[tuple[Any, ...], list[Tensors]] = {}
    for example in examples:
        one = _by_name(collate([example]))
        for name, tensor in one.items():
            if not isinstance(tensor, Tensor) or tensor.dim() == 0 or len(tensor) != 1:
                raise RunError(
                    f"{name}: the collator makes {_described(tensor)} of one record, and not a tensor whose first dimension has "
                    "one row for it: records must not be joined or packed, and every column must be a tensor"
                )
        shape = tuple((name, tensor.shape, tensor.dtype) for name, tensor in sorted(one.items()))
        alike.setdefault(shape, []).append(one)
    for several in alike.values():
        # Parts of nearly equal sizes: a small one takes nearly as long as a full one.
        size = -(-len(several) // -(-len(several) // most))
        for start in range(0, len(several), size):
            some = several[start : start + size]
            yield {name: torch.cat([one[name] for one in some]) for name in some[0]}


def tried_of(records: Iterable[Tensors]) -> list[Tensors]:
    """Return what to try a way to clip with: pairs of different records of one shape, then single records, in their order.

    Each record is in one pair at most. Records that are equal are no pair, since what they mix does not show.
    """
    every, pairs = list(records), []
    waiting: dict[tuple[Any, ...], Tensors] = {}
    for one in every:
        shape = tuple((name, tensor.shape, tensor.dtype) for name, tensor in sorted(one.items()))
        other = waiting.get(shape)
        if other is None:
            waiting[shape] = one
        elif any(not torch.equal(one[name], other[name]) for name in one):
            pairs.append({name: torch.cat([other[name], one[name]]) for name in one})
            del waiting[shape]
    return [*pairs, *every]


def _by_name(batch: Any) -> dict[str, Any]:
    """Return the tensors of a batch by their names; those of a tuple by their places, a single one by the place 0."""
    if isinstance(batch, Mapping):
        return dict(batch)
    several = batch if isinstance(batch, tuple | list) else (batch,)
    return {str(place): tensor for place, tensor in enumerate(several)}


def _described(value: Any) -> str:
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
