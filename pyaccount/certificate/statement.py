"""The guarantee in one sentence that can be quoted by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyaccount.certificate.rounding import down, plain, up

if TYPE_CHECKING:
    from pyaccount.certificate.model import Guarantee
    from pyaccount.document import Document

NEIGHBOURS = {
    "add-remove": "adding or removing {group}",
    "zero-out": "replacing the contribution of {group} by zero",
    "replace-one": "replacing {group} by arbitrary others",
}


def unit_of(document: Document) -> Literal["record", "user"]:
    """What is protected: users if the sampler knows them."""
    return "user" if any(body.sampler.kind == "user-b-min-sep" for body in document.bodies) else "record"


def statement(document: Document, guarantee: Guarantee, *, holds: bool) -> str:
    """One English sentence; every number in it is rounded so that the sentence stays true."""
    privacy = document.privacy
    unit = unit_of(document)
    group = f"one {unit}" if privacy.group_size == 1 else f"up to {privacy.group_size} {unit}s"
    neighbours = NEIGHBOURS[privacy.adjacency].format(group=group)
    proven = (
        f"({up(guarantee.epsilon)}, {up(guarantee.delta)})-differentially private with respect to {neighbours}, provided that "
        "the run satisfies the assumptions listed"
    )
    if guarantee.kind == "confidence":
        proven += (
            f" (with probability at least 1 − {up(guarantee.failure_probability)} over the accountant's own randomness)"
        )
    if holds:
        return f"The training run “{document.name}” is {proven}."
    claim = f"({plain(float(privacy.epsilon))}, {plain(float(privacy.delta))})-differentially private"
    refuted = guarantee.epsilon_lower > float(privacy.epsilon) if privacy.epsilon != "solve" else False
    chance = (
        f" (with probability at least 1 − {up(guarantee.failure_probability)})"
        if guarantee.kind == "confidence"
        else ""
    )
    verdict = (
        f"is not {claim}: no ε below {down(guarantee.epsilon_lower)} holds at δ = {plain(guarantee.delta)}{chance}"
        if refuted
        else f"could not be certified as {claim}"
    )
    return f"The training run “{document.name}” {verdict}; it is {proven}."
