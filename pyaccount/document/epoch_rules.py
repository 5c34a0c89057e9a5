"""The rules about how long a run is: in iterations, or in epochs that say how many these are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.epochs import counted, iterations_of
from pyaccount.document.fields import SOLVE
from pyaccount.document.ranges import ITERATIONS
from pyaccount.document.stated import number
from pyaccount.document.views import Body
from pyaccount.errors import Problem

if TYPE_CHECKING:
    from pyaccount.document.views import Mechanism


def length_is_given(document: Mechanism, body: Body) -> Iterator[Problem]:
    """A run has a number of rounds."""
    if body.training.iterations is None and body.training.epochs is None and body.epochs is None:
        path = body.at("training", "iterations")
        message = "training.iterations is required, or training.epochs"
        allowed = f"a whole number {ITERATIONS.describe()}, or solve"
        yield document.problem("missing-key", path, message, allowed=allowed)


def epochs_say_iterations(document: Mechanism, body: Body) -> Iterator[Problem]:
    """Epochs are so many iterations: no others than are given beside them, and as many as a run can have."""
    if body.epochs is None:
        return
    path, stated, length = body.at("training", "epochs"), body.training.iterations, body.epoch()
    if stated == SOLVE:
        message = "iterations is to be solved, which this would fix: leave this out"
        yield document.problem("contradiction", path, message)
        return
    if length is None:
        yield from _epoch_is_known(document, body)
        return
    said = iterations_of(body.epochs, length)
    if said not in ITERATIONS:
        message = f"this makes {said:_} iterations; their number must be {ITERATIONS.describe()}"
        yield document.problem("out-of-range", path, message)
    elif number(stated) is not None and stated != said:
        message = (
            f"{counted(body.epochs)} of {float(length):.10g} rounds are {said:_} iterations, but iterations says "
            f"{stated:_}: leave one of the two out"
        )
        yield document.problem("contradiction", path, message)


def _epoch_is_known(document: Mechanism, body: Body) -> Iterator[Problem]:
    """How many rounds an epoch has, where no other rule asks for what says it."""
    if body.training.expected_batch_size == SOLVE:
        message = (
            "how many iterations this is depends on expected_batch_size, which is to be solved: give iterations instead"
        )
        path = body.at("training", "epochs")
        yield document.problem("contradiction", path, message, allowed="iterations instead")
    else:
        yield from body.sampler.epoch_problems(document, body)
