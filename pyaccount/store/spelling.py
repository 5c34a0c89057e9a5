"""Converts waves and sums to text and back, bit for bit. A checksum detects damaged text, so that it is never used."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pyaccount import _core
from pyaccount.execute.sampling.jobs import Balanced, Sums, Wave


def as_json(found: Wave | Balanced) -> str:
    """Return a wave or sums as JSON. Python writes floats so that reading them returns the same value."""
    if isinstance(found, Wave):
        sums = [[(list(part.log_wealth), part.value, part.square) for part in shard] for shard in found.sums]
        return json.dumps([sums, None if found.histogram is None else found.histogram.state()])
    return json.dumps(list(found))


def wave_of(text: str) -> Wave:
    """Return the wave that `as_json` wrote. Raises `ValueError` or `TypeError` for other text."""
    sums, histogram = json.loads(text)
    return Wave(
        [[Sums(tuple(log), value, square) for log, value, square in shard] for shard in sums],
        None if histogram is None else _core.LossHistogram(*_tuples(histogram)),
    )


def balanced_of(text: str) -> Balanced:
    """Return the sums that `as_json` wrote. Raises `ValueError` or `TypeError` for other text."""
    drawn, losses, values, merits, largest = json.loads(text)
    return Balanced(
        drawn,
        _pairs(losses),
        [_pairs(component) for component in values],
        [_pairs(component) for component in merits],
        largest,
    )


def checksum(text: str) -> str:
    """Return the checksum of a stored text: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _pairs(pairs: list[list[float]]) -> list[tuple[float, float]]:
    return [(first, second) for first, second in pairs]


def _tuples(state: list[Any]) -> tuple[Any, ...]:
    edges, samples, bins = state
    return tuple(edges), samples, [tuple(row) for row in bins]
