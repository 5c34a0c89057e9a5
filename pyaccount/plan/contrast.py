"""The worst participations of a record when they are public: how far it moves the sums, as a number and in words.

The number and its words are computed together, so that the words always describe this number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.errors import path_text
from pyaccount.plan.samplers import Worst, sampler_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyaccount.document.document import Document
    from pyaccount.document.views import Body


def worst(document: Document, body: Body) -> Worst:
    """Return the worst participations that a body's sampler allows.

    If batches are truncated, a record that survives takes the place of another one, or of none if it is empty and not
    drawn. The sum then moves by up to 2.
    """
    participation = sampler_plan(body).worst(document, body)
    if body.truncation() is None:
        return participation
    return Worst(
        f"{participation.words}, in another one's place", lambda: 2.0 * participation.norm(), participation.count
    )


def contrast_words(document: Document) -> str:
    """Describe the worst participations of a document: one phrase, or one for each phase that has its own."""
    holders: dict[str, list[str]] = {}
    for body in (one for whole in document.bodies for one in _on_whole_parts(whole)):
        holders.setdefault(worst(document, body).words, []).append(body.name or path_text(body.path))
    if len(holders) == 1:
        return next(iter(holders))
    return "; ".join(f"{', '.join(dict.fromkeys(named))}: {words}" for words, named in holders.items())


def _on_whole_parts(body: Body) -> Iterator[Body]:
    """Yield what is run on disjoint parts, and on a part one after the other; another body as it is."""
    if not body.inner or body.select is not None or body.sampler.kind != "none":
        yield body
        return
    for one in body.inner:
        yield from _on_whole_parts(one)
