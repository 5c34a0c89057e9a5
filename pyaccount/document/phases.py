"""Phases as they are written: how one stands alone, and how they are joined one after the other.

Equal consecutive phases become one phase with the rounds of both. This holds for rounds that compose. Phases with a matrix or
with a largest number of participations describe whole runs: two runs in which a record takes part once each are not one longer
run in which it does. These stay as they are. A phase that stands alone has the factor of the noise of all phases in its own
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyaccount.document.schedules import ScheduledMultiplier
from pyaccount.document.tree import Combined, Node, TrainingNode

#: A phase as it is written in a document, with its number of iterations.
RawPhase = Mapping[str, Any]


def without_length(phase: RawPhase) -> dict[str, Any]:
    """Return the phase without its number of iterations or epochs. Phases with equal rounds agree in the rest."""
    length = ("iterations", "epochs")
    return {**phase, "training": {key: value for key, value in phase["training"].items() if key not in length}}


def lasting(phase: RawPhase, rounds: int) -> dict[str, Any]:
    """Return the phase with `rounds` iterations."""
    return {**phase, "training": {**phase["training"], "iterations": rounds}}


def append(phases: list[dict[str, Any]], phase: dict[str, Any]) -> None:
    """Append a phase to the list, or add its rounds to the last phase if its rounds compose and
    equal those of the new one.

    A phase with a mechanism has no iterations; runs of equal mechanisms are added to its `count`.
    """
    if "training" not in phase:
        runs = {key: value for key, value in phase.items() if key != "count"}
        if phases and runs == {key: value for key, value in phases[-1].items() if key != "count"}:
            phase = {**runs, "count": phases.pop().get("count", 1) + phase.get("count", 1)}
    elif (
        phases
        and "training" in phases[-1]
        and not _whole_run(phase)
        and without_length(phases[-1]) == without_length(phase)
    ):
        before = phases.pop()
        phase = lasting(phase, before["training"]["iterations"] + phase["training"]["iterations"])
    phases.append(phase)


def _whole_run(phase: RawPhase) -> bool:
    """Return whether the phase is one run as a whole, so that rounds cannot be added to it."""
    return "matrix" in phase or "max_participations" in phase.get("sampler", {})


def with_own_noise(stated: Mapping[str, Any], node: Node) -> dict[str, Any]:
    """Return a phase as it is stated without the factor of all phases, which then belongs to its own numbers.

    `stated` is the phase as its document has it, and `node` the same phase as it was read.
    """
    if isinstance(node, Combined):
        phases = zip(stated[node.list_key], node.inner, strict=True)
        return {**stated, node.list_key: [with_own_noise(phase, inner) for phase, inner in phases]}
    if not isinstance(node, TrainingNode) or node.stated_noise is None:
        return dict(stated)
    multiplier: Any = node.noise.multiplier
    if isinstance(multiplier, ScheduledMultiplier):
        multiplier = {**stated["noise"]["multiplier"], "scale": multiplier.scale}
    return {**stated, "noise": {**stated["noise"], "multiplier": multiplier}}
