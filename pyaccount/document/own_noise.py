"""Writes a phase as it stands alone, without the factor of the noise of all phases that its document may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyaccount.document.schedules import ScheduledMultiplier
from pyaccount.document.tree import Combined, TrainingNode

if TYPE_CHECKING:
    from pyaccount.document.tree import Node


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
