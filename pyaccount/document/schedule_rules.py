"""The rules about schedules, and about a factor of the noise of several phases.

Values in a file are not known here; the plan reads it and applies the same rules to it. Which samplers and matrices can
be analysed with a schedule is for the plan to say, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.schedules import (
    Decaying,
    Scheduled,
    ScheduledBatch,
    ScheduledProbability,
    ScheduleFile,
    readable,
)
from pyaccount.document.stated import number_or_none
from pyaccount.errors import Path, Problem, path_text, problem
from pyaccount.reading.fields import SOLVE

if TYPE_CHECKING:
    from pyaccount.document.tree import TrainingNode
    from pyaccount.document.views import Mechanism

#: The keys under `training` that state a rate.
_RATES = ("sampling_probability", "expected_batch_size", "participation_rate")


def schedule_problems(run: TrainingNode) -> Iterator[Problem]:
    """Yield the problems of the schedules of a run."""
    for path, scheduled in run.schedules().items():
        yield from _length(run, path, scheduled)
    yield from _one_rate(run)
    if run.epochs is not None and run.rates_scheduled:
        message = (
            "how many iterations this is depends on the rate, which is scheduled and differs from round to round: give "
            "iterations instead"
        )
        yield problem("contradiction", run.at("training", "epochs"), message, allowed="iterations instead")


def shared_noise_problems(document: Mechanism) -> Iterator[Problem]:
    """Report a factor that multiplies nothing, and a phase whose noise is the blank although a factor multiplies it.

    The value of that blank would not be the phase's σ.
    """
    if document.shared_noise is None:
        return
    runs = list(document.runs())
    if document.phases and not runs:
        message = (
            "this multiplies the noise of training runs, and all phases here are mechanisms with noise of their own: leave it "
            "out"
        )
        yield document.problem("contradiction", ("noise", "scale"), message, allowed="no factor of the noise")
    if document.shared_noise.scale == SOLVE:
        return
    for run in runs:
        if getattr(run.stated_noise, "multiplier", None) == SOLVE:
            message = (
                "this is to be solved, but noise.scale beside the phases multiplies it: leave noise.scale out, or give a number "
                "here and write `noise: {scale: solve}` beside `phases`"
            )
            yield document.problem("contradiction", run.at("noise", "multiplier"), message, allowed="a number")


def length_message(values: int, rounds: int) -> str:
    """Return the message about a schedule whose number of values is not the number of rounds."""
    return (
        f"the schedule has {values:_} {'value' if values == 1 else 'values'}, but there are {rounds:_} iterations: a schedule "
        "has one value for each iteration of a run"
    )


def _length(run: TrainingNode, path: Path, scheduled: Scheduled) -> Iterator[Problem]:
    """Report a list of another length than the number of iterations, and iterations that are to be solved for a list."""
    schedule, rounds = readable(scheduled), run.training.iterations
    if schedule is None or isinstance(schedule, Decaying):
        return
    if rounds == SOLVE:
        message = (
            f"the number of iterations is to be solved, but {path_text(path)} lists one value for each of them: give the number, "
            "or a schedule that goes on, {start: …, decay: …, every: …}"
        )
        yield problem("contradiction", run.at("training", "iterations"), message, allowed="a number")
        return
    listed = schedule.rounds if isinstance(schedule, ScheduleFile) else len(schedule)
    count = number_or_none(listed)
    if count is not None and number_or_none(rounds) is not None and count != rounds:
        message = length_message(int(count), int(rounds))
        yield problem("contradiction", (*path, "schedule"), message, allowed=f"{rounds} values")


def _one_rate(run: TrainingNode) -> Iterator[Problem]:
    """Report a second statement of a rate that is scheduled."""
    given = {name: getattr(run.training, name) for name in _RATES}
    given = {name: value for name, value in given.items() if value is not None}
    scheduled = [name for name, value in given.items() if isinstance(value, ScheduledProbability | ScheduledBatch)]
    for name in given:
        if scheduled and name != scheduled[0]:
            message = f"{scheduled[0]} has a schedule, which states the rate of each round: leave this out"
            yield problem("contradiction", run.at("training", name), message)
