"""The rules that check several fields of a document together, in the order in which their problems are reported.

Each rule yields the problems that it detects; rules about a kind of sampler or matrix belong to that kind. A value that
was reported already is neither a number, nor a blank, nor absent (`None`), so no rule asks for it or reports it again.
The plan decides which mechanisms can be analysed, and with which samplers, not this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.blanks import choices_compare_noise, one_blank, searches_have_a_target
from pyaccount.document.ranges import DELTA, ITERATIONS
from pyaccount.document.rates import epochs_text, iterations_of
from pyaccount.document.risk import one_budget, one_target
from pyaccount.document.samplers.base import disagreements
from pyaccount.document.schedule_rules import schedule_problems, shared_noise_problems
from pyaccount.document.stated import number_or_none
from pyaccount.document.tree import MechanismRelease, Node, Parts, TrainingNode
from pyaccount.document.workload import workload_problems
from pyaccount.errors import Problem, path_text, problem, quoted
from pyaccount.reading.fields import SOLVE
from pyaccount.reading.nodes import REPORTED

if TYPE_CHECKING:
    from pyaccount.document.views import Mechanism


def _disjoint_problems(node: Parts) -> Iterator[Problem]:
    """Report a list of one part, and two parts with one name."""
    if len(node.inner) == 1:
        message = (
            "this has one part, so every record is in it: write the part itself as the phase, without parallel, or give the "
            "other parts too"
        )
        yield problem("contradiction", node.at("parallel"), message, allowed="at least 2 entries")
    seen: dict[str, Node] = {}
    for part in node.inner:
        if not isinstance(part.name, str):
            continue
        name = " ".join(part.name.casefold().split())
        if name in seen:
            message = (
                f"two parts have the name {quoted(part.name)}, but a record belongs to exactly one part, so parts may not "
                "overlap: write what is run on the same records as one part, `{name: …, phases: [ … ]}`, or give the parts "
                "different names"
            )
            yield problem("contradiction", part.at("name"), message, allowed="another name")
        seen[name] = part


def _own_probability_problems(node: Node) -> Iterator[Problem]:
    """Yield the problems of a node whose records are drawn with probabilities of their own."""
    own, path = node.own_probabilities, node.at_probability()
    run = node if isinstance(node, TrainingNode) else None
    if own is None or (run is not None and run.sampler.one_probability):
        # The plan refuses samplers that need one probability for all records, with the reason.
        return
    if own.max is None and own.strata is None:
        message = "states no probability: give max, or strata"
        yield problem("missing-key", path, message, allowed="max or strata")
    if own.max is not None and own.strata is not None:
        message = "strata states the probability of every record, so max follows from it: leave one of the two out"
        yield problem("contradiction", (*path, "max"), message, allowed="max or strata")
    if run is None:
        return
    for name in ("expected_batch_size", "participation_rate"):
        stated = getattr(run.training, name)
        if stated not in (None, SOLVE, REPORTED):
            message = (
                f"sampling_probability has {own.key}, so the records have no common rate, and how many of them have which "
                "probability may be secret: leave this out"
            )
            yield problem("contradiction", run.at("training", name), message)
    if run.epochs is not None:
        message = (
            "how many iterations this is depends on the rate, which differs between records: give iterations instead"
        )
        yield problem("contradiction", run.at("training", "epochs"), message, allowed="iterations instead")


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
        yield from _own_probability_problems(node)
        if isinstance(node, Parts):
            yield from _disjoint_problems(node)
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
