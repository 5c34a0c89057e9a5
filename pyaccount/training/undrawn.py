"""Refuses batches that a run cannot draw although they have a certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.errors import DocumentError

if TYPE_CHECKING:
    from pyaccount.plan.protection import RunCase


def refuse_own_probabilities(case: RunCase) -> None:
    """Raise `DocumentError` for a body whose records have different probabilities: a run knows records only by their numbers."""
    body = case.node
    if body.own_probabilities is not None:
        message = (
            "a run draws records by their numbers and does not know the stratum of a record, so it cannot draw each with its own "
            "probability: write one probability, or draw each record by a coin of its own with a secret generator, and use the "
            "certificate without a run"
        )
        path = body.at("training", "sampling_probability")
        raise DocumentError([case.asked.problem("not-drawn", path, message, allowed="one number")])
