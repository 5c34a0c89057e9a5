"""The values of a schedule, one for each round of a run, wherever the document has them from, and the kinds of its rounds.

Rounds with equal noise and equal rates are one *kind*. `pyaccount.plan.scheduled` proves what their composition bounds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pyaccount.document.document import Document
from pyaccount.document.ranges import EXPECTED_BATCH_SIZE, NOISE_MULTIPLIER, PROBABILITY, SCHEDULED
from pyaccount.document.schedule_rules import length_message
from pyaccount.document.schedules import Decaying, Schedule, Scheduled, ScheduledMultiplier, ScheduleFile
from pyaccount.document.tree import TrainingNode
from pyaccount.errors import DocumentError
from pyaccount.errors import Path as DocumentPath
from pyaccount.files import InsideFile
from pyaccount.forks import cached_property
from pyaccount.plan.common import number
from pyaccount.plan.protection import Protection, RunCase
from pyaccount.reading.numerals import Range
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

#: The range of each scheduled key.
_RANGES = {
    "multiplier": NOISE_MULTIPLIER,
    "sampling_probability": PROBABILITY,
    "expected_batch_size": EXPECTED_BATCH_SIZE,
}


@dataclass(frozen=True, eq=False)
class RoundValues:
    """The values of a schedule in the order of the rounds. Two objects are equal only if they are the same object."""

    values: Vector

    @cached_property
    def least(self) -> float:
        """The smallest value."""
        return float(self.values.min())

    @cached_property
    def most(self) -> float:
        """The largest value."""
        return float(self.values.max())

    @cached_property
    def distinct(self) -> int:
        """The number of different values."""
        import numpy as np  # only documents with schedules need it

        return len(np.unique(self.values))

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the values as little-endian doubles, in the order of the rounds."""
        return hashlib.sha256(self.values.astype("<f8").tobytes()).hexdigest()


def values_of(case: RunCase, path: DocumentPath) -> RoundValues:
    """Return the values of the schedule at a path of `run.schedules()`, as they are listed: before the scale.

    The number of iterations must be known. Raises `DocumentError` for a file without a schedule, for another number of
    values than there are iterations, and for a value that is out of the range of its key.
    """
    scheduled, rounds = case.node.schedules()[path], number(case.node.training.iterations)
    if rounds not in SCHEDULED:
        message = f"a schedule has at most {int(SCHEDULED.maximum):_} values, and there are {rounds:_} iterations"
        raise DocumentError([case.asked.problem("out-of-range", path, message, allowed=SCHEDULED.describe())])
    found = _made(case.asked, path, scheduled.schedule, rounds)
    if len(found.values) != rounds:
        message = length_message(len(found.values), rounds)
        raise DocumentError(
            [case.asked.problem("contradiction", (*path, "schedule"), message, allowed=f"{rounds} values")]
        )
    _check_range(
        case.asked, path, found, _RANGES[str(path[-1])], shown=not isinstance(scheduled.schedule, ScheduleFile)
    )
    return found


def scale_of(scheduled: Scheduled) -> float:
    """Return the factor of a schedule; 1 for rates, and while it is the blank."""
    scale = scheduled.scale if isinstance(scheduled, ScheduledMultiplier) else 1.0
    return 1.0 if scale == "solve" else scale


def multiplier_range(case: RunCase, path: DocumentPath) -> None:
    """Raise `DocumentError` if the scale moves a noise multiplier of the schedule at a path out of its range."""
    scale, values = scale_of(case.node.schedules()[path]), values_of(case, path)
    for value in (values.least, values.most):
        if scale * value not in NOISE_MULTIPLIER:
            allowed = NOISE_MULTIPLIER.describe()
            of_file = isinstance(case.node.schedules()[path].schedule, ScheduleFile)
            which = "a value of the file" if of_file else shortest(value)
            product = "" if of_file else f" of {shortest(scale * value)}"
            message = f"the scale makes {which} a noise multiplier{product}, which must be {allowed}"
            raise DocumentError([case.asked.problem("out-of-range", path, message, allowed=allowed)])


def _check_range(asked: Protection, path: DocumentPath, found: RoundValues, allowed: Range, *, shown: bool) -> None:
    """Raise `DocumentError` for a value that is out of range. Only values that are `shown` are repeated, and none of a file."""
    import numpy as np

    values = found.values
    # NaN is in no range, and compares as False.
    low, high = values.min(), values.max()
    if float(low) in allowed and float(high) in allowed:
        return
    inside = (values > allowed.minimum if allowed.above else values >= allowed.minimum) & (values <= allowed.maximum)
    first = int(np.argmin(inside))
    value = f"is {shortest(float(values[first]))}" if shown else "is out of range"
    message = f"the value of round {first}, counted from 0, {value}; it must be {allowed.describe()}"
    raise DocumentError([asked.problem("out-of-range", (*path, "schedule"), message, allowed=allowed.describe())])


def _made(asked: Protection, path: DocumentPath, schedule: Schedule, rounds: int) -> RoundValues:
    if isinstance(schedule, tuple):
        return _listed(schedule)
    if isinstance(schedule, Decaying):
        return _decaying(schedule, rounds)
    key = ("schedule", schedule)
    if asked.read is None:
        return _of_file(asked, path, schedule)
    if key not in asked.read:
        asked.read[key] = _of_file(asked, path, schedule)
    kept: RoundValues = asked.read[key]
    return kept


@lru_cache(maxsize=4)
def _listed(schedule: tuple[float, ...]) -> RoundValues:
    import numpy as np

    return RoundValues(np.array(schedule, dtype=np.float64))


@lru_cache(maxsize=4)
def _decaying(schedule: Decaying, rounds: int) -> RoundValues:
    """Return start·decay^⌊t/every⌋, at least `least`, for each round t; each product is rounded to the nearest double.

    A power would depend on the machine's library; products do not.
    """
    import numpy as np

    steps = -(-rounds // schedule.every)
    factors = np.full(steps, schedule.decay)
    factors[0] = schedule.start
    with np.errstate(over="ignore", under="ignore"):
        values = np.multiply.accumulate(factors)
    if schedule.least is not None:
        values = np.maximum(values, schedule.least)
    return RoundValues(np.repeat(values, schedule.every)[:rounds])


def _of_file(asked: Protection, path: DocumentPath, schedule: ScheduleFile) -> RoundValues:
    from pyaccount.plan.schedule_files import ScheduleFileError

    file = asked.file((*path, "schedule", "file"), schedule.file)
    try:
        # The file's identity is part of the cache key: its content may change.
        status = file.path.stat() if file.path.is_file() else None
        stamp = None if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        found = _column(file, schedule.column, stamp)
    except ScheduleFileError as error:
        raise DocumentError([asked.problem("schedule-file", (*path, "schedule", "file"), str(error))]) from error
    if schedule.rounds is None:
        return found
    if schedule.rounds > len(found.values):
        message = f"the file has {len(found.values):_} values"
        place = (*path, "schedule", "rounds")
        raise DocumentError([asked.problem("contradiction", place, message, allowed=f"at most {len(found.values)}")])
    return RoundValues(found.values[: schedule.rounds])


@lru_cache(maxsize=4)
def _column(file: InsideFile, column: str | int | None, stamp: object) -> RoundValues:
    from pyaccount.plan.schedule_files import read_column

    return RoundValues(read_column(file, column))


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
