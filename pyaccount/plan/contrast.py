"""The worst that a record's participations can be when nothing about them is secret: how far it moves the sums, and in words.

The number and its words stand side by side, so that a contrast never says what it is not about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.errors import path_text
from pyaccount.plan.samplers import Worst, sampler_plan

if TYPE_CHECKING:
    from pyaccount.document import Body, Document


def worst(document: Document, body: Body) -> Worst:
    """What a body's sampler allows at worst.

    Where batches are truncated a record that survives takes the place of another one, or of none if it is empty and not drawn:
    then the sum moves by up to 2.
    """
    found = sampler_plan(body).worst(document, body)
    if body.truncation() is None:
        return found
    return Worst(f"{found.words}, in another one's place", lambda: 2.0 * found.norm(), found.count)


def contrast_words(document: Document) -> str:
    """What the contrast of a document is about: one phrase, or one for each phase that has its own."""
    holders: dict[str, list[str]] = {}
    for body in document.bodies:
        holders.setdefault(worst(document, body).words, []).append(body.name or path_text(body.path))
    if len(holders) == 1:
        return next(iter(holders))
    return "; ".join(f"{', '.join(dict.fromkeys(named))}: {words}" for words, named in holders.items())
