"""The sums of a round: arrays by name, which are checked before anything is counted."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyaccount.errors import RunError, quoted
from pyaccount.training.key import RunKey
from pyaccount.training.record import Layout

if TYPE_CHECKING:
    from pyaccount.document.tree import TrainingNode
    from pyaccount.training.noise.noise import DrawnRow

#: Noisy sums are rounded to a grid that is this many binary digits finer than the noise's standard deviation.
GRID = 20

#: The factor by which roundings may make a sum longer than its contributions allow; a bfloat16 rounds by up to 2⁻⁸.
SLACK = 1.0 + 2.0**-6

#: The name of a sum that is a single array without a name.
ALONE = "sum"

Array = NDArray[np.floating[Any]]
RoundSums = Mapping[str, Array] | Array


def named(sums: RoundSums, alone: str = ALONE) -> dict[str, Array]:
    """Return copies of the arrays of a sum by their names, sorted; a single array gets the name `alone`.

    Raises `RunError` for anything but arrays of float32 or float64.
    """
    given = sums if isinstance(sums, Mapping) else {alone: sums}
    if not given:
        raise RunError("the sum has no arrays: give at least one")
    arrays = {}
    for name in sorted(given):
        if not isinstance(name, str) or not name:
            raise RunError(f"the name of a summed array is a text that is not empty, not {quoted(name)}")
        # The array is copied, so that the same numbers are checked, tagged and released even if the caller changes its array.
        array = np.array(given[name], order="C")
        if array.dtype not in (np.float32, np.float64):
            raise RunError(
                f"{name}: sums are arrays of float32 or float64, not of {array.dtype}: convert it with array.astype('float32')"
            )
        arrays[name] = array
    return arrays


def also_of(run: TrainingNode, also: Mapping[str, RoundSums]) -> tuple[dict[str, Array], ...]:
    """Return the arrays of the other sums that the document releases from a batch, in the document's order.

    Raises `RunError` if one of them is missing, or `also` contains a sum that the document does not name.
    """
    names = [release.what for release in run.noise.also]
    missing, unknown = [name for name in names if name not in also], sorted(set(also) - set(names))
    if missing or unknown:
        parts = [
            *(f"{name!r} is missing" for name in missing),
            *(f"{name!r} is not in the document" for name in unknown),
        ]
        raise RunError(f"also must contain exactly the sums that noise.also of the document names: {', '.join(parts)}")
    return tuple(named(also[name], alone=name) for name in names)


def check_norm(arrays: Mapping[str, Array], clip_norm: float, most: int) -> None:
    """Raise `RunError` for a sum that no batch can have: one that is not finite, or has a norm above `most` clip norms.

    The bound is public, and the message does not say how long the sum is. But the refusal itself reveals something about the
    data, so only the person who trains may see it.
    """
    # The norm is computed in the precision of the arrays, which is enough for a bound with this slack.
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
                f"{name}: not all entries are finite, and clipping does not bound such a contribution: use zeros as the "
                "contribution of a record whose gradient is not finite. Nothing was counted"
            )
    raise RunError(
        f"{', '.join(arrays)}: the sum's ℓ₂ norm is larger than {most:_} contributions of clip norm {clip_norm:g}, the most that "
        "a batch can have: clip each contribution, and add up only those of this round's batch. Nothing was counted"
    )


def layout_of(releases: Sequence[Mapping[str, Array]]) -> Layout:
    """Return the type and shape of each array of each release, the main release first."""
    return tuple({name: (array.dtype.name, array.shape) for name, array in arrays.items()} for arrays in releases)


def check_layout(found: Layout, before: Layout) -> None:
    """Raise `RunError` if the arrays differ from those of earlier rounds, with whose noise their noise may be correlated."""
    if len(found) != len(before):
        raise RunError(
            f"this batch has {len(found)} sums, and earlier rounds have {len(before)}: the record is that of another run"
        )
    for release, earlier in zip(found, before, strict=True):
        missing, added = sorted(set(earlier) - set(release)), sorted(set(release) - set(earlier))
        if missing or added:
            parts = [*(f"{name} is missing" for name in missing), *(f"{name} is new" for name in added)]
            raise RunError(f"the summed arrays are not those of earlier rounds: {', '.join(parts)}")
        for name, (kind, shape) in release.items():
            if (kind, shape) != earlier[name]:
                raise RunError(
                    f"{name}: this array is {kind} of shape {shape}, and in earlier rounds it was {earlier[name][0]} of "
                    f"{earlier[name][1]}: all rounds need the same arrays"
                )


def tag(releases: Sequence[Mapping[str, Array]], key: RunKey) -> str:
    """Return a tag that distinguishes these arrays, bit for bit, from all others, under a key of their round.

    Keyed BLAKE2b is a pseudorandom function. Each round has a key of its own, and no two sums are released with one key, so tags
    reveal nothing to anyone who lacks the key, not even which rounds had the same sum.
    """
    state = hashlib.blake2b(digest_size=32, key=key.reveal(), person=b"pyaccount sums")
    for release, arrays in enumerate(releases):
        for name, array in arrays.items():
            head = f"{release}:{len(name)}:{name}:{array.dtype.str}:{array.shape};"
            state.update(head.encode())
            state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def another_sum(number: int, *, repeated: bool) -> RunError:
    """Return the error for a round whose sum or noise is not the recorded one."""
    if repeated:
        return RunError(
            f"round {number} was released with another sum or noise: two sums with the same noise would reveal their "
            "difference. Repeat the sums bit for bit, with the model, the seeds and the data of the first try, or skip these "
            "rounds with give_up=True, of load_state_dict or of the trainer"
        )
    return RunError(
        f"round {number}: the first rank released another sum or noise: add up the sums of all ranks before you release"
    )


def noisy(sum: Array, noise: Array | DrawnRow, deviation: float, divisor: float = 1.0) -> Array:
    """Return the sum plus its noise, rounded to a grid that depends only on the noise's standard deviation, over `divisor`.

    They are added in double precision, then rounded to multiples of 2^(⌊log₂ deviation⌋ − `GRID`), and finally to the sum's type,
    in which they are divided. Floating-point numbers are denser near 0, so the last digits of an unrounded s + z would reveal
    something about s (Mironov 2012); after rounding, all values are on the same grid, whatever s is. What remains is that z
    itself takes finitely many values (docs/training.md). The arrays `sum` and `noise` may be overwritten, so that no copy of the
    noise stays in memory.
    """
    step = 2.0 ** (math.floor(math.log2(deviation)) - GRID)
    if not isinstance(noise, np.ndarray):
        exact = np.asarray(sum, order="C")
        noise.add_to(exact.reshape(-1), step, divisor)
        return exact
    exact = noise.reshape(sum.shape)
    exact += sum
    # Multiplying by powers of two is exact.
    exact /= step
    np.rint(exact, out=exact)
    exact *= step
    rounded: Array = exact.astype(sum.dtype, copy=False)
    rounded /= sum.dtype.type(divisor)
    return rounded
