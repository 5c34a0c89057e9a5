"""Waves and sums as text, every number to its last bit, with a checksum: what a damaged file says is never taken for a sum."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pyaccount import _core
from pyaccount.execute.sampling.jobs import Balanced, Sums, Wave


def spelled(found: Wave | Balanced) -> str:
    """As JSON; Python's numbers are written so that they are read as the same ones."""
    if isinstance(found, Wave):
        sums = [[(list(one.log_wealth), one.value, one.square) for one in shard] for shard in found.sums]
        return json.dumps([sums, None if found.histogram is None else found.histogram.state()])
    return json.dumps(list(found))


def wave_of(text: str) -> Wave:
    """A wave again. Raises `ValueError`, `TypeError` for text that is none."""
    sums, histogram = json.loads(text)
    return Wave(
        [[Sums(tuple(log), value, square) for log, value, square in shard] for shard in sums],
        None if histogram is None else _core.LossHistogram(*_tuples(histogram)),
    )


def balanced_of(text: str) -> Balanced:
    """Sums again. Raises `ValueError`, `TypeError` for text that is none."""
    drawn, losses, values, merits, largest = json.loads(text)
    return Balanced(
        drawn,
        _pairs(losses),
        [_pairs(component) for component in values],
        [_pairs(component) for component in merits],
        largest,
    )


def checksum(text: str) -> str:
    """Of what is kept."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _pairs(found: list[list[float]]) -> list[tuple[float, float]]:
    return [(first, second) for first, second in found]


def _tuples(state: list[Any]) -> tuple[Any, ...]:
    edges, samples, bins = state
    return tuple(edges), samples, [tuple(one) for one in bins]
