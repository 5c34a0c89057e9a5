"""The rules about probabilities of single records. Which samplers can be analysed with them is for the plan to say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.reading.fields import SOLVE
from pyaccount.reading.nodes import REPORTED

if TYPE_CHECKING:
    from pyaccount.document.views import Body, Mechanism
    from pyaccount.errors import Problem


def own_probability_problems(document: Mechanism, body: Body) -> Iterator[Problem]:
    """Yield the problems of a body whose records are drawn with probabilities of their own."""
    own, path = body.own_probabilities, body.at("training", "sampling_probability")
    if own is None or body.sampler.one_probability:
        # The plan refuses samplers that need one probability for all records, with the reason.
        return
    if own.max is None and own.strata is None:
        message = "states no probability: give max, or strata"
        yield document.problem("missing-key", path, message, allowed="max or strata")
    if own.max is not None and own.strata is not None:
        message = "strata states the probability of every record, so max follows from it: leave one of the two out"
        yield document.problem("contradiction", (*path, "max"), message, allowed="max or strata")
    for name in ("expected_batch_size", "participation_rate"):
        stated = getattr(body.training, name)
        if stated not in (None, SOLVE, REPORTED):
            message = (
                f"sampling_probability has {own.key}, so the records have no common rate, and how many of them have which "
                "probability may be secret: leave this out"
            )
            yield document.problem("contradiction", body.at("training", name), message)
    if body.epochs is not None:
        message = (
            "how many iterations this is depends on the rate, which differs between records: give iterations instead"
        )
        yield document.problem("contradiction", body.at("training", "epochs"), message, allowed="iterations instead")
