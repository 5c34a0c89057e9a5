"""The rules that look at several fields of a document together, in the order in which their problems are told.

Each rule yields the problems it sees; those about a kind of sampler or matrix are the kind's own. A value that was reported
already is neither a number, nor a blank, nor absent (`None`), so that no rule asks for it or judges it. Which mechanisms can
be analysed is not decided here but by the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.blanks import choices_compare_noise, one_blank, searches_have_a_target
from pyaccount.document.epochs import counted, iterations_of
from pyaccount.document.fields import SOLVE
from pyaccount.document.ranges import DELTA, ITERATIONS
from pyaccount.document.risk import one_budget, one_target
from pyaccount.document.stated import number
from pyaccount.document.views import Body
from pyaccount.document.workload import workload_problems
from pyaccount.errors import Problem, path_text

if TYPE_CHECKING:
    from pyaccount.document.views import Mechanism


def broken_rules(document: Mechanism) -> Iterator[Problem]:
    """Every problem of the document's fields taken together."""
    yield from one_target(document)
    yield from one_budget(document)
    yield from losses_are_bounded(document)
    yield from one_blank(document)
    yield from choices_compare_noise(document)
    yield from searches_have_a_target(document)
    for body in document.bodies:
        yield from length_is_given(document, body)
        yield from epochs_say_iterations(document, body)
        yield from body.matrix.problems(document, body)
        yield from body.sampler.problems(document, body)
        yield from workload_problems(document, body, body.workload)


def losses_are_bounded(document: Mechanism) -> Iterator[Problem]:
    """Where δ is 0, pure differential privacy, every phase has noise with a bounded privacy loss.

    No ε holds at δ = 0 for Gaussian noise, with sampling or without: for every ε there are outcomes with a larger loss, if rare
    ones. A failure probability, as samples leave one, is part of δ as well; sampled mechanisms have Gaussian noise.
    """
    if number(document.stated_privacy.delta) != 0.0:
        return
    for body in document.bodies:
        # Noise that was reported already has no kind.
        if not getattr(body.noise, "bounded_loss", True):
            message = (
                f"no ε holds at δ = 0: {path_text(body.at('noise'))} is Gaussian, whose privacy loss has no bound. Give a delta "
                "greater than 0; δ = 0 is for documents where all noise is Laplace noise"
            )
            yield document.problem(
                "out-of-range", ("privacy", "delta"), message, allowed=f"a number {DELTA.describe()}"
            )
            return


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
