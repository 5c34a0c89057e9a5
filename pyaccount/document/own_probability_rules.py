"""The rules about probabilities of single records. Which samplers can be analysed with them is for the plan to say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.tree import TrainingNode
from pyaccount.errors import problem
from pyaccount.reading.fields import SOLVE
from pyaccount.reading.nodes import REPORTED

if TYPE_CHECKING:
    from pyaccount.document.tree import Node
    from pyaccount.errors import Problem


def own_probability_problems(node: Node) -> Iterator[Problem]:
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
