"""Several processes of one run: that every rank is there once, and all are at the same round.

The room has no way to talk between processes: whoever trains has, and gathers what each rank says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyaccount.errors import RunError

#: What a rank says of itself: its number, the next round, how many were released, and a part of the last one's seed, by which
#: branches of a run whose folder was put back are told apart. Nothing of it is secret.
RankState = tuple[int, int, int, int]


def check_ranks(gathered: Iterable[Sequence[int]], world: int) -> None:
    """Raise `RunError` unless every rank is there once, and at the same round: shards of other batches do not add up.

    `gathered` has a `RankState` of each process.
    """
    states = [tuple(int(number) for number in state) for state in gathered]
    if sorted(rank for rank, *_ in states) != list(range(world)):
        ranks = ", ".join(str(rank) for rank, *_ in states)
        raise RunError(f"every process needs a rank of its own, 0 to {world - 1}, and these are here: {ranks}")
    if len({tuple(rest) for _, *rest in states}) > 1:
        raise RunError("the ranks are at different rounds: take the same checkpoint up in all of them")
