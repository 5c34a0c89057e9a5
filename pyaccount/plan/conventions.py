"""Sentences: the units of multipliers and scales, and the worst participations of a record when they are public."""

from __future__ import annotations

from collections.abc import Iterable

from pyaccount.document.tree import MechanismRelease
from pyaccount.errors import path_text
from pyaccount.plan.laplace import SCALE
from pyaccount.plan.protection import Protection
from pyaccount.plan.theorem import Theorem

INDEPENDENT = (
    "σ is the standard deviation of the noise added to each released sum, in units of the clip norm of one record."
)

CORRELATED = (
    "σ is the standard deviation of the rows of Z in units of the clip norm of one record, where training adds C⁻¹Z; "
    "the largest column norm of C is stated with each phase, 1 unless the document says otherwise."
)

ALSO = (
    "Where a batch has several releases σ is that of the main one; the others are stated with each phase, each in units of its "
    "own clip norm, and the effective multiplier is that of all of them together."
)

OF_MECHANISMS = "The scale of a mechanism is in the unit of what it releases, as its sensitivity is."


def conventions(asked: Protection) -> str:
    """Return the sentences that state the units of a document's multipliers, each once."""
    runs = [case.node for case in asked.runs()]
    sentences = []
    if any(run.noise.kind == "gaussian" for run in runs):
        sentences.append(INDEPENDENT if all(run.matrix.kind == "identity" for run in runs) else CORRELATED)
        sentences += [ALSO] if any(run.noise.also for run in runs) else []
    if any(run.noise.kind == "laplace" for run in runs):
        sentences.append(SCALE)
    if any(isinstance(node, MechanismRelease) for node in asked.every_node()):
        sentences.append(OF_MECHANISMS)
    return " ".join(sentences)


def contrast_words(theorems: Iterable[Theorem]) -> str:
    """Describe the worst participations of a document: one phrase, or one for each phase that has its own."""
    holders: dict[str, list[str]] = {}
    for one in (one for phase in theorems for one in phase.on_whole_parts()):
        holders.setdefault(one.worst_words(), []).append(one.node.name or path_text(one.node.path))
    if len(holders) == 1:
        return next(iter(holders))
    return "; ".join(f"{', '.join(dict.fromkeys(named))}: {words}" for words, named in holders.items())
