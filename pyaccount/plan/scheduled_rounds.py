"""The rounds of bodies whose noise or rate differs from round to round: their kinds, and the values of each round.

Rounds with equal noise and equal rates are one *kind*. `pyaccount.plan.scheduled` proves what their composition bounds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pyaccount.plan.common import number
from pyaccount.plan.protection import Protection, RunCase
from pyaccount.plan.schedule_values import RoundValues, scale_of, values_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from pyaccount.document.document import Document
    from pyaccount.document.tree import TrainingNode


class KindOfRounds(NamedTuple):
    """Rounds that are alike: what is scheduled, by its key and without the scale, and how many rounds there are."""

    values: tuple[tuple[str, float], ...]
    rounds: int


def kinds_of(case: RunCase) -> tuple[KindOfRounds, ...]:
    """Return the kinds of rounds of one run of a run with schedules, in a fixed order.

    Without sampling, these are the rounds with the least noise, as many as a record takes part in. The number of
    iterations must be known. Raises `DocumentError` as `values_of` does.
    """
    listed = tuple((str(path[-1]), values_of(case, path)) for path in case.node.schedules())
    return _counted(listed, case.node.participations())


@lru_cache(maxsize=8)
def _counted(listed: tuple[tuple[str, RoundValues], ...], most: int) -> tuple[KindOfRounds, ...]:
    import numpy as np  # only documents with schedules need it

    keys = [key for key, _ in listed]
    columns = [found.values for _, found in listed]
    if most < len(columns[0]):
        # `refusals` let only the noise of a fixed order come here.
        (noise,) = columns
        columns = [np.sort(noise)[:most]]
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        found, places = np.unique(column, return_inverse=True)
        code = np.unique(code * len(found) + places, return_inverse=True)[1]
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    rows = zip(*(column[first].tolist() for column in columns), strict=True)
    return tuple(
        KindOfRounds(tuple(zip(keys, row, strict=True)), int(count))
        for row, count in zip(rows, counts.tolist(), strict=True)
    )


def runs_of_kinds(case: RunCase) -> Iterator[TrainingNode]:
    """Yield a run for each kind of rounds, in which all rounds are alike. Its length is the number of these rounds."""
    scale = next((scale_of(one) for path, one in case.node.schedules().items() if path[-1] == "multiplier"), 1.0)
    sampler = case.node.sampler.without_limits()
    for kind in kinds_of(case):
        values = dict(kind.values)
        noise = case.node.noise
        if "multiplier" in values:
            noise = noise.model_copy(update={"multiplier": scale * values.pop("multiplier")})
        training = case.node.training.model_copy(update={**values, "iterations": kind.rounds})
        yield replace(case.node, training=training, sampler=sampler, noise=noise)


def segments(case: RunCase, most: int) -> tuple[tuple[int, int], ...] | None:
    """Return where rounds that are alike begin, and how many follow one another, in order; None for more than `most`."""
    import numpy as np  # only documents with schedules need it

    columns = [values_of(case, path).values for path in case.node.schedules()]
    changed = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    starts = [0, *(np.flatnonzero(changed)[:most] + 1).tolist()]
    if len(starts) > most:
        return None
    return tuple((start, end - start) for start, end in pairwise([*starts, len(columns[0])]))


def multipliers_of(case: RunCase) -> NDArray[np.float64] | None:
    """Return σ of each round of one run of a run, in order; None if all rounds have the same."""
    found = _scaled(case, "multiplier")
    return None if found is None else found[0] * found[1]


def rates_of(case: RunCase, key: str) -> NDArray[np.float64] | None:
    """Return the scheduled `sampling_probability` or `expected_batch_size` of each round; None if it is not scheduled."""
    found = _scaled(case, key)
    return None if found is None else found[1]


def multipliers_of_blank(document: Document) -> tuple[float, float]:
    """Return the smallest and the largest σ that a document whose blank is a scale has at scale 1."""
    assert document.blank is not None
    own = document.blank[:-3]
    least, most = [], []
    filled = Protection.of(document.filled(1.0))
    for case in filled.runs():
        run = case.node
        if document.blank == ("noise", "scale") or run.path == own:
            found = multipliers_of(case)
            least.append(number(run.noise.multiplier) if found is None else float(found.min()))
            most.append(number(run.noise.multiplier) if found is None else float(found.max()))
    return min(least), max(most)


def _scaled(case: RunCase, key: str) -> tuple[float, NDArray[np.float64]] | None:
    for path, scheduled in case.node.schedules().items():
        if path[-1] == key:
            return scale_of(scheduled), values_of(case, path).values
    return None


def at_round(case: RunCase, round: int) -> TrainingNode:
    """Return the run with the noise and the rate of one round of a run, counted from 0."""
    noise, training = case.node.noise, {}
    for path, scheduled in case.node.schedules().items():
        value = scale_of(scheduled) * float(values_of(case, path).values[round])
        if path[-1] == "multiplier":
            noise = noise.model_copy(update={"multiplier": value})
        else:
            training[str(path[-1])] = value
    return replace(case.node, noise=noise, training=case.node.training.model_copy(update=training))


def constant_multiplier(case: RunCase) -> float | None:
    """Return σ of every round of a run; None if it differs from round to round."""
    found = multipliers_of(case)
    if found is None:
        return number(case.node.noise.multiplier)
    return float(found[0]) if bool((found == found[0]).all()) else None
