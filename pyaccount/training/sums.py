"""What is summed in a round: arrays by name, checked before anything is counted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyaccount.errors import RunError, shown
from pyaccount.training.record import Layout

if TYPE_CHECKING:
    from pyaccount.document import Body

#: The name of a sum that is one array.
ALONE = "sum"

Array = NDArray[np.floating[Any]]
Sums = Mapping[str, Array] | Array


def named(sums: Sums) -> dict[str, Array]:
    """The arrays of a sum by their names, sorted. Raises `RunError` for what is no floating-point array or not finite."""
    given = sums if isinstance(sums, Mapping) else {ALONE: sums}
    if not given:
        raise RunError("a sum has at least one array")
    found = {}
    for name in sorted(given):
        if not isinstance(name, str) or not name:
            raise RunError(f"the name of a summed array is a text, not {shown(name)}")
        array = np.asarray(given[name])
        if array.dtype not in (np.float32, np.float64):
            raise RunError(f"{name}: sums are arrays of float32 or float64, not of {array.dtype}")
        if not np.isfinite(array).all():
            wrong = int(np.count_nonzero(~np.isfinite(array)))
            raise RunError(
                f"{name}: {wrong} of {array.size} entries are not finite: clipping does not bound such a contribution"
            )
        found[name] = array
    return found


def others_of(body: Body, also: Mapping[str, Array]) -> dict[str, Array]:
    """The other sums that are released of a batch, in the document's order. Raises `RunError` if they are not just these."""
    names = [release.what for release in body.noise.also]
    missing, unknown = [name for name in names if name not in also], sorted(set(also) - set(names))
    if missing or unknown:
        parts = [
            *(f"{name!r} is missing" for name in missing),
            *(f"{name!r} is not in the document" for name in unknown),
        ]
        raise RunError(
            f"also: what else is released of a batch is said in noise.also of the document: {', '.join(parts)}"
        )
    found = {}
    for name in names:
        (found[name],) = named(np.asarray(also[name])).values()
    return found


def layout_of(arrays: Mapping[str, Array]) -> Layout:
    """The type and size of each."""
    return {name: (array.dtype.name, array.size) for name, array in arrays.items()}


def check_layout(found: Layout, before: Layout) -> None:
    """Raise `RunError` if these are not the arrays of the rounds before: their noise is correlated with that of these."""
    missing, added = sorted(set(before) - set(found)), sorted(set(found) - set(before))
    if missing or added:
        parts = [*(f"{name} is missing" for name in missing), *(f"{name} is new" for name in added)]
        raise RunError(f"the arrays that are summed are not those of the rounds before: {', '.join(parts)}")
    for name, (kind, size) in found.items():
        if (kind, size) != before[name]:
            raise RunError(
                f"{name}: {size} entries of {kind}, where the rounds before had {before[name][1]} of {before[name][0]}"
            )


def tag(sums: Mapping[str, Array], key: bytes) -> str:
    """What tells these arrays, bit for bit, from others: BLAKE2b keyed, so that it says nothing to whoever lacks the key."""
    state = hashlib.blake2b(digest_size=16, key=key, person=b"pyaccount sums")
    for name, array in sums.items():
        head = f"{len(name)}:{name}:{array.dtype.str}:{array.size};"
        state.update(head.encode())
        state.update(np.ascontiguousarray(array).view(np.uint8).data)
    return state.hexdigest()
