"""The way to clip that is fastest for a model, chosen before round 0 by a trial with records that are made up.

What a model allows and how long it takes differ: `torch.func` cannot compute gradients of several records at once for some kinds
of attention, and ghost clipping wins where gradients are large beside what they are computed from. So each way that a trainer
allows clips a few records, and the fastest one is taken. An earlier one of the order stays if it is slower by less than `GAIN`.

The choice is public, since the record names it, so it must not depend on the data: the records have the columns and types of the
data, texts of one length, and numbers that have nothing to do with it. This module needs PyTorch.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pyaccount.errors import RunError, importing

with importing("torch", by=__name__):
    import torch
    from torch import Tensor, nn

#: The number of made-up records, at most; and the length of texts, that is, of rows of whole numbers.
RECORDS, LENGTH = 8, 64
#: How often each way clips them; the first time is not counted.
TIMES = 3
#: How many times as fast a way must be to be taken in place of one before it.
GAIN = 1.2

#: How the record names eager attention in addition to a way.
EAGER = " with eager attention"

_LOG = logging.getLogger(__name__)


class Way(NamedTuple):
    """A way to clip: as `clipping` of a trainer names it, and whether the model computes attention step by step for it."""

    clipping: str
    eager: bool = False

    @property
    def recorded(self) -> str:
        """The name of the way in the record of a run."""
        return self.clipping + EAGER * self.eager

    @classmethod
    def named(cls, recorded: str) -> Way:
        """Return the way with this name in a record."""
        return cls(recorded.removesuffix(EAGER), recorded.endswith(EAGER))


def made_up(record: Mapping[str, Tensor], count: int, model: nn.Module) -> dict[str, Tensor]:
    """Return `count` records with the columns and types of this one, and with nothing else of it but the sizes of its numbers.

    A row of whole numbers is a text, whose length is `LENGTH` or what the model allows.
    """
    config = getattr(model, "config", None)
    longest = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    length = min(LENGTH, longest) if isinstance(longest, int) else LENGTH
    found = {}
    for name, tensor in record.items():
        shape = [count, *tensor.shape[1:]]
        if tensor.is_floating_point():
            found[name] = torch.randn(shape).to(tensor)
            continue
        if len(shape) == 2:
            shape[1] = length
        found[name] = torch.ones(shape).to(tensor) if len(shape) > 1 else torch.zeros(shape).to(tensor)
    return found


def attention_of(model: nn.Module) -> str | None:
    """Return how a model of transformers computes attention; None for other models."""
    found = getattr(getattr(model, "config", None), "_attn_implementation", None)
    return None if found is None else str(found)


def attend(model: nn.Module, implementation: str | None) -> str | None:
    """Let a model of transformers compute attention in this way, and return the way before; None if it cannot be set."""
    before = attention_of(model)
    switch: Any = getattr(model, "set_attn_implementation", None)
    if implementation is None or before is None or switch is None:
        return None
    if before != implementation:
        switch(implementation)
    return before


def seconds_of(clip: Callable[[], Mapping[str, Tensor]]) -> float:
    """Return how long it takes to clip, at least."""
    least = math.inf
    for number in range(TIMES):
        began = time.perf_counter()
        # On an accelerator the sums are not there before they are read.
        float(next(iter(clip().values())).sum())
        if number:
            least = min(least, time.perf_counter() - began)
    return least


def fastest(ways: Sequence[Way], clip: Callable[[Way], Mapping[str, Tensor]]) -> tuple[list[Way], dict[Way, str]]:
    """Return the ways that are possible, the one to take first, and why the other ones are not.

    `clip` clips the records in a way; what it raises says that the way is not possible. It leaves the model as it was.
    """
    seconds: dict[Way, float] = {}
    reasons: dict[Way, str] = {}
    for way in ways:
        try:
            with torch.random.fork_rng():
                seconds[way] = seconds_of(lambda way=way: clip(way))  # type: ignore[misc]
        except (RunError, RuntimeError, ValueError, TypeError, NotImplementedError, IndexError, KeyError) as error:
            reasons[way] = (str(error).splitlines() or [type(error).__name__])[0][:200]
    found = list(seconds)
    for way, value in seconds.items():
        if value * GAIN < seconds[found[0]]:
            found.sort(key=lambda one, first=way: one != first)  # type: ignore[misc]
    for way, value in seconds.items():
        _LOG.info("clipping: %s takes %.3g ms for the records of the trial", way.recorded, 1e3 * value)
    for way, reason in reasons.items():
        _LOG.info("clipping: %s is not possible here: %s", way.recorded, reason)
    return found, reasons
