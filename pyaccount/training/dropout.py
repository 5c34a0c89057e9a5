"""Random numbers of a model, such as those of dropout, which are drawn from the run's key while gradients are computed.

Dropout takes its numbers from PyTorch's generator, one record after the other. If a record is removed, all records after it get
other numbers. With a seed that an attacker knows, such as 42 of `TrainingArguments` or the one that PyTorch begins with, a record
so moves the contributions of all others, and not only its own: several clip norms. If the numbers are independent and secret, the
released sum has the same distribution as if each record had numbers of its own. Then, whatever these are, a record moves the sum
by at most the clip norm, and a mixture of such releases is as private as each (differential privacy is jointly convex).

So each round has a state of its own of the generators, which follows from the key, the round and the rank, and the state from
before is put back afterwards: no checkpoint has it. That of a processor is that of MT19937, 624 words. That of a GPU is a seed of
64 bits (Philox). Both are made for statistics, and nobody claims that they withstand an attacker who sees their numbers; here an
attacker sees them only in noisy sums. This module needs PyTorch.
"""

from __future__ import annotations

import contextlib
import hashlib
import weakref
from collections.abc import Iterator
from typing import NamedTuple

from pyaccount.errors import importing
from pyaccount.training.run import TrainingRun

with importing("torch", by=__name__):
    import torch
    from torch import Tensor, nn

#: Where the words of MT19937 lie in the state of PyTorch's generator for processors, in units of 8 bytes, and how many they are.
_FIRST, _WORDS = 3, 624


class _Draws(NamedTuple):
    """The states of the generators within a round, after what was drawn."""

    round: int
    states: list[Tensor]


#: What was drawn last for a run, and the runs whose numbers are drawn now.
_LAST: weakref.WeakKeyDictionary[TrainingRun, _Draws] = weakref.WeakKeyDictionary()
_DRAWING: weakref.WeakSet[TrainingRun] = weakref.WeakSet()


@contextlib.contextmanager
def drawn_by_key(run: TrainingRun | None) -> Iterator[None]:
    """Let PyTorch draw from the run's key inside of the context, and go on within a round where the last such context ended.

    Without a run, or inside of such a context, nothing changes.
    """
    if run is None or run in _DRAWING:
        yield
        return
    gpus = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=gpus):
        last = _LAST.get(run)
        if last is None or last.round != run.round:
            last = _Draws(run.round, _states(run, gpus))
        torch.set_rng_state(last.states[0])
        for gpu, state in zip(gpus, last.states[1:], strict=True):
            torch.cuda.set_rng_state(state, gpu)
        _DRAWING.add(run)
        try:
            yield
        finally:
            _DRAWING.discard(run)
            states = [torch.get_rng_state(), *(torch.cuda.get_rng_state(gpu) for gpu in gpus)]
            _LAST[run] = _Draws(last.round, states)


def draw_by_key_in(model: nn.Module, run: TrainingRun) -> None:
    """Let every forward pass of the model in training draw from the run's key. A model that is made for a run keeps this."""
    entered: list[contextlib.AbstractContextManager[None]] = []

    def begin(module: nn.Module, _: object) -> None:
        if module.training:
            drawing = drawn_by_key(run)
            drawing.__enter__()
            entered.append(drawing)

    def end(*_: object) -> None:
        if entered:
            entered.pop().__exit__(None, None, None)

    model.register_forward_pre_hook(begin)
    # Also after an error, so that the program goes on with its own numbers.
    model.register_forward_hook(end, always_call=True)


def begin_draws(run: TrainingRun) -> None:
    """Let the next numbers be the first ones of their round, because its sums are computed from the beginning."""
    _LAST.pop(run, None)


def mersenne_state(secret: bytes) -> Tensor:
    """Return a state of PyTorch's generator for processors whose words are drawn from a secret. Its own seeds have 32 bits."""
    state = torch.Generator().manual_seed(0).get_state()
    drawn = torch.frombuffer(bytearray(hashlib.shake_256(secret).digest(4 * _WORDS)), dtype=torch.int32)
    words = drawn.to(torch.int64) & 0xFFFFFFFF
    state.view(torch.int64)[_FIRST : _FIRST + _WORDS] = words
    return state


def _states(run: TrainingRun, gpus: list[int]) -> list[Tensor]:
    """Return the states with which a round begins."""
    key = run._root.derive("dropout", run.round, run.rank)
    states = [mersenne_state(key.reveal())]
    for gpu in gpus:
        seed = int.from_bytes(key.derive("gpu").reveal()[:8], "little")
        states.append(torch.Generator(f"cuda:{gpu}").manual_seed(seed).get_state())
    return states
