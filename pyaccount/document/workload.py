"""The workload: the optimizer for which errors are reported and for which matrices are optimised and chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.ranges import DECAY_BELOW_ONE, LEARNING_RATE, LEARNING_RATES, WORKLOAD_ITERATIONS
from pyaccount.document.stated import StatedBody, number_or_none
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import SOLVE, Choice, Items, Number
from pyaccount.reading.kinds import AlsoCalled, Section


class StatedWorkload(Section):
    """The optimizer that receives the noisy sums. Without any keys it computes prefix sums: after each round, the sum of all
    rounds so far.
    """

    momentum: Annotated[float, Number(DECAY_BELOW_ONE)] = Field(
        default=0.0,
        description="β of heavy-ball momentum without dampening: a step is the noisy sum plus β times the previous "
        "step.",
    )
    ema_decay: Annotated[float, Number(DECAY_BELOW_ONE), AlsoCalled("polyak_decay averaging_decay")] = Field(
        default=0.0,
        description="γ of an exponential moving average of the iterates, which is used in their place: γ times the "
        "previous average plus 1 − γ times the iterate. The average starts at the initial iterate and is not "
        "debiased. 0 means the iterates themselves.",
    )
    learning_rates: Annotated[tuple[Annotated[float, Number(LEARNING_RATE)], ...] | None, Items(LEARNING_RATES)] = (
        Field(default=None, description="The learning rates, one for each iteration. Default: 1 in each iteration.")
    )
    error: Annotated[Literal["mean", "largest"], Choice(("mean", "largest"))] = Field(
        default="mean",
        description="The squared error for which matrices are optimised and chosen: the mean over the iterations, or "
        "the largest.",
    )


def workload_problems(body: StatedBody, workload: StatedWorkload | None) -> Iterator[Problem]:
    """Report too many iterations, learning rates that do not fit or are all 0, and errors that no search minimises."""
    if workload is None:
        return
    rates, rounds = workload.learning_rates, body.training.iterations
    count = number_or_none(rounds)
    if count is not None and count not in WORKLOAD_ITERATIONS:
        message = (
            f"with a workload, errors are computed row by row: the iterations must be {WORKLOAD_ITERATIONS.describe()}"
        )
        yield problem("out-of-range", body.at("workload"), message, allowed=WORKLOAD_ITERATIONS.describe())
    if not isinstance(rates, tuple):
        return
    path = body.at("workload", "learning_rates")
    if rounds == SOLVE:
        message = "learning_rates has an entry for each iteration, but the number of iterations is to be solved"
        yield problem("contradiction", path, message, allowed="iterations as a number, or no learning_rates")
    elif count is not None and count != len(rates):
        message = (
            f"learning_rates has {len(rates):_} entries, but there are {int(count):_} iterations: give one for each"
        )
        yield problem("contradiction", path, message, allowed=f"a list of {int(count):_} entries")
    if all(number_or_none(rate) == 0.0 for rate in rates):
        message = "the learning rates are all 0, so nothing is trained and there is no error"
        yield problem("contradiction", path, message, allowed="at least one rate greater than 0")
    if workload.error == "largest" and body.matrix.optimized:
        message = (
            "with learning rates, no search for the matrix with the smallest maximum error is implemented: use error: mean, or "
            "a matrix that is not optimised"
        )
        yield problem("contradiction", body.at("workload", "error"), message, allowed="mean")
