"""The rules that check several fields of a document together, in the order in which their problems are reported.

Each rule yields the problems that it detects; rules about a kind of sampler or matrix belong to that kind. A value that
was reported already is neither a number, nor a blank, nor absent (`None`), so no rule asks for it or reports it again.
The plan decides which mechanisms can be analysed, not this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.blanks import choices_compare_noise, one_blank, searches_have_a_target
from pyaccount.document.disjoint import disjoint_problems
from pyaccount.document.epochs import epochs_text, iterations_of
from pyaccount.document.own_probability_rules import own_probability_problems
from pyaccount.document.ranges import DELTA, ITERATIONS
from pyaccount.document.risk import one_budget, one_target
from pyaccount.document.samplers.base import disagreements
from pyaccount.document.schedule_rules import schedule_problems, shared_noise_problems
from pyaccount.document.stated import number_or_none
from pyaccount.document.tree import MechanismRelease, Parts, TrainingNode
from pyaccount.document.workload import workload_problems
from pyaccount.errors import Problem, path_text, problem
from pyaccount.reading.fields import SOLVE

if TYPE_CHECKING:
    from pyaccount.document.views import Mechanism


def broken_rules(document: Mechanism) -> Iterator[Problem]:
    """Yield the problems that concern several fields of the document together."""
    yield from one_target(document)
    yield from one_budget(document)
    yield from _losses_are_bounded(document)
    yield from one_blank(document)
    yield from shared_noise_problems(document)
    yield from choices_compare_noise(document)
    yield from searches_have_a_target(document)
    for node in document.every_node():
        yield from own_probability_problems(node)
        if isinstance(node, Parts):
            yield from disjoint_problems(node)
        if isinstance(node, MechanismRelease):
            yield from node.mechanism.problems(node)
    for run in document.runs():
        yield from _length_is_given(run)
        yield from _epochs_say_iterations(run)
        yield from schedule_problems(run)
        yield from run.matrix.problems(run)
        yield from run.sampler.problems(run)
        yield from disagreements(run, document.position)
        yield from workload_problems(run, run.workload)


def _losses_are_bounded(document: Mechanism) -> Iterator[Problem]:
    """Report a document with δ = 0 (pure differential privacy) if the noise of a phase has an unbounded privacy loss.

    With Gaussian noise no ε holds at δ = 0, with or without sampling: for every ε there are outcomes with a larger
    loss, even if they are rare. The failure probability of a test on samples is part of δ too; mechanisms that are
    sampled have Gaussian noise.
    """
    if number_or_none(document.stated_privacy.delta) != 0.0:
        return
    for node in document.every_node():
        if not node.bounded_loss:
            place = path_text(node.at("noise" if node.key == "training" else node.key))
            kind = node.released_kind
            # What a statement leaves open may be bounded; noise that has no bound has none.
            unbounded = node.key != "select" and kind != "stated"
            loss = f"{place} ({kind}) is unbounded" if unbounded else f"{place} has no bound that is implemented"
            message = (
                f"no ε holds at δ = 0: the privacy loss of {loss}. Give a delta greater than 0; δ = 0 is for documents in which "
                "every phase has bounded losses, such as those of Laplace noise"
            )
            yield document.problem(
                "out-of-range", ("privacy", "delta"), message, allowed=f"a number {DELTA.describe()}"
            )
            return


def _length_is_given(run: TrainingNode) -> Iterator[Problem]:
    """Report a run that states neither iterations nor epochs."""
    if run.training.iterations is None and run.training.epochs is None and run.epochs is None:
        path = run.at("training", "iterations")
        message = "training.iterations is required, or training.epochs"
        allowed = f"a whole number {ITERATIONS.describe()}, or solve"
        yield problem("missing-key", path, message, allowed=allowed)


def _epochs_say_iterations(run: TrainingNode) -> Iterator[Problem]:
    """Report epochs that contradict `iterations`, or whose number of iterations is unknown or out of range."""
    if run.epochs is None:
        return
    path, stated, length = run.at("training", "epochs"), run.training.iterations, run.epoch()
    if stated == SOLVE:
        message = "iterations is to be solved, but epochs would fix it: leave epochs out"
        yield problem("contradiction", path, message)
        return
    if length is None:
        yield from _epoch_is_known(run)
        return
    rounds = iterations_of(run.epochs, length)
    if rounds not in ITERATIONS:
        message = f"this makes {rounds:_} iterations; their number must be {ITERATIONS.describe()}"
        yield problem("out-of-range", path, message)
    elif number_or_none(stated) is not None and stated != rounds:
        message = (
            f"{epochs_text(run.epochs)} of {float(length):.10g} rounds are {rounds:_} iterations, but iterations says "
            f"{stated:_}: leave one of the two out"
        )
        yield problem("contradiction", path, message)


def _epoch_is_known(run: TrainingNode) -> Iterator[Problem]:
    """Report that the length of an epoch is unknown, unless another rule already asks for the missing value."""
    if run.training.expected_batch_size == SOLVE:
        message = (
            "how many iterations this is depends on expected_batch_size, which is to be solved: give iterations instead"
        )
        path = run.at("training", "epochs")
        yield problem("contradiction", path, message, allowed="iterations instead")
    else:
        yield from run.sampler.epoch_problems(run)
