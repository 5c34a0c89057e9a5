"""The arguments of an accountant's methods, checked: counts, targets, and what a round of an open ledger is."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, SupportsIndex

from pyaccount.errors import DomainError

if TYPE_CHECKING:
    from pyaccount.document.ranges import Range


def arguments_of(round: Mapping[str, Any]) -> dict[str, Any]:
    """What a round is: Poisson sampling where a rate is given, no sampling otherwise."""
    allowed = (
        "noise_multiplier",
        "sampling_probability",
        "expected_batch_size",
        "dataset_size",
        "sampler",
        "noise",
        "also",
    )
    unknown = [key for key in round if key not in allowed]
    if unknown or "noise_multiplier" not in round:
        wrong = f"no {', '.join(unknown)}" if unknown else "a noise_multiplier"
        raise TypeError(f"a round of an open ledger has {wrong}; it is described by {', '.join(allowed)}")
    rated = any(round.get(key) is not None for key in ("sampling_probability", "expected_batch_size"))
    return {"sampler": "poisson" if rated else "none", **round}


def count_of(count: SupportsIndex) -> int:
    """A number of rounds, at least 1. Raises `DomainError`."""
    if isinstance(count, bool):
        raise DomainError(f"a number of rounds is a whole number, not {count}")
    try:
        number = operator.index(count)
    except TypeError as error:
        raise DomainError(f"a number of rounds is a whole number, not {count!r}") from error
    if number < 1:
        raise DomainError(f"a number of rounds is at least 1, not {number}")
    return number


def inside(name: str, value: float, allowed: Range) -> float:
    """A number in its range. Raises `DomainError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in allowed:
        raise DomainError(f"{name} = {value!r} is outside its domain: {allowed.describe()}")
    return float(value)
