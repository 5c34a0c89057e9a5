"""The worst participations of a record when they are public, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.errors import path_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyaccount.plan.theorem import Theorem


def contrast_words(theorems: Iterable[Theorem]) -> str:
    """Describe the worst participations of a document: one phrase, or one for each phase that has its own."""
    holders: dict[str, list[str]] = {}
    for one in (one for phase in theorems for one in phase.on_whole_parts()):
        holders.setdefault(one.worst_words(), []).append(one.node.name or path_text(one.node.path))
    if len(holders) == 1:
        return next(iter(holders))
    return "; ".join(f"{', '.join(dict.fromkeys(named))}: {words}" for words, named in holders.items())
