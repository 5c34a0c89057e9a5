"""Phases one after the other: equal neighbours are one phase with the rounds of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: A phase as a document writes it, with its number of iterations.
RawPhase = Mapping[str, Any]


def without_length(phase: RawPhase) -> dict[str, Any]:
    """The phase without its number of iterations, or epochs: what its rounds are like."""
    length = ("iterations", "epochs")
    return {**phase, "training": {key: value for key, value in phase["training"].items() if key not in length}}


def lasting(phase: RawPhase, rounds: int) -> dict[str, Any]:
    """The phase with so many iterations."""
    return {**phase, "training": {**phase["training"], "iterations": rounds}}


def append(phases: list[dict[str, Any]], phase: dict[str, Any]) -> None:
    """Put a phase behind the others, or its rounds into the last one where they are like that one's."""
    if phases and without_length(phases[-1]) == without_length(phase):
        before = phases.pop()
        phase = lasting(phase, before["training"]["iterations"] + phase["training"]["iterations"])
    phases.append(phase)
