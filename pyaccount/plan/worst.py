"""The worst that a record's participations can be when nothing about them is secret: how far it moves the sums, and in words.

The number and its words stand side by side, so that a contrast never says what it is not about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.document import (
    FIXED_DRAWS,
    BallsInBins,
    BMinSep,
    CyclicPoisson,
    Deterministic,
    FixedSize,
    Identity,
    UserBMinSep,
    bins,
    participations,
    separation,
    truncation,
)
from pyaccount.errors import path_text
from pyaccount.plan.common import rounds, whole
from pyaccount.plan.strategy import strategy

if TYPE_CHECKING:
    from pyaccount.document import Body, Document

EVERY_ROUND = "every record in every round"
REVEALED = "participations revealed, as bad as they can be"


@dataclass(frozen=True, slots=True)
class Worst:
    """`count` releases, in each of which one record (or user) moves the sum by at most `norm()` clip norms, from above."""

    words: str
    norm: Callable[[], float]
    count: int


def worst(document: Document, body: Body) -> Worst:
    """What a body's sampler allows at worst. Where a record may be drawn several times in a round, it is counted once.

    Where batches are truncated a record that survives takes the place of another one, or of none if it is empty and not drawn:
    then the sum moves by up to 2.
    """
    words, norm, count = _of_sampler(document, body)
    if truncation(body) is None:
        return Worst(words, norm, count)
    return Worst(f"{words}, in another one's place", lambda: 2.0 * norm(), count)


def contrast_words(document: Document) -> str:
    """What the contrast of a document is about: one phrase, or one for each phase that has its own."""
    holders: dict[str, list[str]] = {}
    for body in document.bodies:
        holders.setdefault(worst(document, body).words, []).append(body.name or path_text(body.path))
    if len(holders) == 1:
        return next(iter(holders))
    return "; ".join(f"{', '.join(dict.fromkeys(named))}: {words}" for words, named in holders.items())


def _of_sampler(document: Document, body: Body) -> tuple[str, Callable[[], float], int]:
    sampler = body.sampler
    if isinstance(sampler, BallsInBins):
        turns = -(-whole(body.training.iterations) // bins(body))
        words = f"the bin known: each record in {'one round' if turns == 1 else f'up to {turns} rounds'}"
        return words, lambda: strategy(document, body).bin_gram(bins(body))[1], body.count
    if isinstance(sampler, BMinSep | UserBMinSep | CyclicPoisson):
        # All records of a user at once, whenever any may be drawn.
        records = sampler.records_per_user if isinstance(sampler, UserBMinSep) else 1
        words = REVEALED if records == 1 else f"{REVEALED}: all {records} records of a user at once"
        apart = separation(body) or 1
        return words, lambda: _moved(document, body, apart, whole(body.training.iterations), records), body.count
    apart = (sampler.min_separation or 1) if isinstance(sampler, Deterministic) else 1
    if not isinstance(body.matrix, Identity):
        return _in_order(body, apart), lambda: _moved(document, body, apart, participations(body)), body.count
    if isinstance(sampler, Deterministic):
        return _in_order(body, apart), lambda: 1.0, body.count * participations(body)
    several = isinstance(sampler, FIXED_DRAWS) and not isinstance(sampler, FixedSize)
    return "every record once in every round" if several else EVERY_ROUND, lambda: 1.0, rounds(body)


def _in_order(body: Body, apart: int) -> str:
    """A body without sampling, for which this is no contrast but the run itself."""
    most = participations(body)
    if most == whole(body.training.iterations):
        return f"{EVERY_ROUND}, without sampling"
    distance = f", {apart} or more apart" if apart > 1 and most > 1 else ""
    return f"each record in at most {most} {'round' if most == 1 else 'rounds'}{distance}, without sampling"


def _moved(document: Document, body: Body, apart: int, most: int, records: int = 1) -> float:
    """The largest ‖Cx‖ over patterns x of so many rounds so far apart, for so many records at once, from above."""
    built = strategy(document, body)
    return records * built.sensitivity(apart, most)[0] * (1.0 + built.slack)
