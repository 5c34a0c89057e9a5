"""What is summed in a round: arrays by name, checked before anything is counted."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyaccount.errors import RunError, shown
from pyaccount.training.key import RunKey
from pyaccount.training.record import Layout

if TYPE_CHECKING:
    from pyaccount.document import Body

#: The grid that noisy sums are rounded to: so many binary digits below the noise's standard deviation.
GRID = 20

#: By how much roundings may make a sum longer than its contributions: those of a bfloat16 are 2⁻⁸.
SLACK = 1.0 + 2.0**-6

#: The name of a sum that is one array.
ALONE = "sum"

Array = NDArray[np.floating[Any]]
RoundSums = Mapping[str, Array] | Array


def named(sums: RoundSums, alone: str = ALONE) -> dict[str, Array]:
    """Return copies of the arrays of a sum by their names, sorted; a sum that is one array gets the name `alone`.

    Raises `RunError` for what is no floating-point array.
    """
    given = sums if isinstance(sums, Mapping) else {alone: sums}
    if not given:
        raise RunError("a sum has at least one array")
    found = {}
    for name in sorted(given):
        if not isinstance(name, str) or not name:
            raise RunError(f"the name of a summed array is a text, not {shown(name)}")
        # A copy: what is tagged, checked and released is one sum, whoever writes to what was given meanwhile.
        array = np.array(given[name])
        if array.dtype not in (np.float32, np.float64):
            raise RunError(
                f"{name}: sums are arrays of float32 or float64, not of {array.dtype}: convert it, by array.astype('float32')"
            )
        found[name] = array
    return found


def also_of(body: Body, also: Mapping[str, RoundSums]) -> tuple[dict[str, Array], ...]:
    """Return the arrays of the other sums that are released of a batch, in the document's order.

    Raises `RunError` if they are not just these.
    """
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
    return tuple(named(also[name], alone=name) for name in names)


def check_norm(arrays: Mapping[str, Array], clip_norm: float, most: int) -> None:
    """Raise `RunError` for a sum that no batch can have: one that is not finite, or longer than `most` clip norms.

    The bound is public, and its message does not say how long the sum is. That a sum is refused still tells something of the
    data, so it is for whoever trains alone.
    """
    # In the arrays' own precision, which is enough for a bound with this slack.
    total = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for array in arrays.values():
            flat = array.reshape(-1)
            total += float(np.dot(flat, flat))
    if math.sqrt(total) <= most * clip_norm * SLACK:
        return
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise RunError(
                f"{name}: not all entries are finite, and clipping does not bound such a contribution: give zeros for a record "
                "whose gradient is not finite. Nothing was counted"
            )
    raise RunError(
        f"{', '.join(arrays)}: the sum's ℓ₂ norm is beyond {most:_} contributions of clip norm {clip_norm:g}, the most that a "
        "batch can have: clip each contribution, and add up those of this round's batch alone. Nothing was counted"
    )


def as_recorded(
    releases: Sequence[Mapping[str, Array]], also: Sequence[str], version: int
) -> Sequence[Mapping[str, Array]]:
    """Return the releases of a batch as a record of this version lists them. Raises `RunError` if it cannot.

    In version 1 all sums but the main one were one release, with one array each, named as in the document: `also`.
    """
    if version > 1:
        return releases
    main, *rest = releases
    if any(list(arrays) != [name] for name, arrays in zip(also, rest, strict=True)):
        raise RunError("also: this run began with an earlier version, whose other sums are one array each")
    return (main, {name: array for arrays in rest for name, array in arrays.items()})


def layout_of(releases: Sequence[Mapping[str, Array]]) -> Layout:
    """Return the type and shape of each array of each release, the main sum's first and then those of the rest."""
    return tuple({name: (array.dtype.name, array.shape) for name, array in arrays.items()} for arrays in releases)


def check_layout(found: Layout, before: Layout) -> None:
    """Raise `RunError` if these are not the arrays of the rounds before: their noise is correlated with that of these."""
    if len(found) != len(before):
        raise RunError(
            f"{len(found)} sums of a batch, where the rounds before had {len(before)}: the record is of another run"
        )
    for one, earlier in zip(found, before, strict=True):
        missing, added = sorted(set(earlier) - set(one)), sorted(set(one) - set(earlier))
        if missing or added:
            parts = [*(f"{name} is missing" for name in missing), *(f"{name} is new" for name in added)]
            raise RunError(f"the arrays that are summed are not those of the rounds before: {', '.join(parts)}")
        for name, said in one.items():
            if said != earlier[name]:
                raise RunError(
                    f"{name}: {said[0]} of shape {said[1]}, where the rounds before had {earlier[name][0]} of {earlier[name][1]}"
                )


def tag(releases: Sequence[Mapping[str, Array]], key: RunKey) -> str:
    """What tells these arrays, bit for bit, from others, under a key of their round.

    BLAKE2b keyed is a pseudorandom function: with a key for each round, of which no two sums are released, tags tell nothing to
    whoever lacks the key, not even which rounds had the same sum.
    """
    state = hashlib.blake2b(digest_size=32, key=key.reveal(), person=b"pyaccount sums")
    for release, arrays in enumerate(releases):
        for name, array in arrays.items():
            head = f"{release}:{len(name)}:{name}:{array.dtype.str}:{array.shape};"
            state.update(head.encode())
            state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def noisy(sum: Array, noise: Array, deviation: float) -> Array:
    """Return the sum and its noise, rounded to a grid that depends on the noise's standard deviation alone.

    Added in double precision, then rounded to multiples of 2^(⌊log₂ deviation⌋ − `GRID`), and last to the sum's type.
    Floating-point numbers are finer near 0, so that the last digits of an unrounded s + z would tell of s (Mironov 2012); of a
    rounded one all values lie on one grid, whatever s is. What is left is that z itself takes finitely many values:
    docs/noise.md. The noise, in double precision, is overwritten: nobody needs it any more, and no copy of it stays.
    """
    step = 2.0 ** (math.floor(math.log2(deviation)) - GRID)
    exact = noise.reshape(sum.shape)
    exact += sum
    # Multiplying by powers of two is exact.
    exact /= step
    np.rint(exact, out=exact)
    exact *= step
    return exact.astype(sum.dtype, copy=False)
