"""The state of a run as a checkpoint holds it, where the run goes on from one, and that all its processes are at the same round.

Nothing here lets processes talk: whoever trains has a way to, and gathers what each rank says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyaccount.errors import RunError, shown
from pyaccount.training.record import contains

#: Of a state. In version 1 it did not say how far the record had got.
KIND, VERSION, VERSIONS = "pyaccount-training-run", 2, (1, 2)

#: What of the record's first line says which run a state is of.
WHICH = ("document_sha256", "certificate_sha256", "key_commitment")


def state_of(header: Mapping[str, Any], done: int, head: str) -> dict[str, Any]:
    """Return the state of a run of which so many rounds are in the model, and whose record's last line has this hash."""
    return {"kind": KIND, "version": VERSION, "rounds": done, "head": head, **{name: header[name] for name in WHICH}}


def position_of(state: Mapping[str, Any], header: Mapping[str, Any], released: int, record: Path) -> int:
    """Return how many rounds a state has, of a run of which so many were released.

    Raises `RunError` for the state of another run, and for one with rounds that the record does not have.
    """
    if not isinstance(state, Mapping) or state.get("kind") != KIND:
        raise RunError(f"this is not the state of a training run: {shown(state)}")
    if state.get("version") not in VERSIONS:
        raise RunError(f"a state of version {shown(state.get('version'))}, which is not known here")
    for name in WHICH:
        if state.get(name) != header[name]:
            raise RunError(
                f"{name}: this is the state of another run: {shown(state.get(name))}, and not {shown(header[name])}"
            )
    done = state.get("rounds")
    if type(done) is not int or done < 0:
        raise RunError(f"rounds: a whole number is expected, not {shown(done)}")
    if done > released:
        raise RunError(
            f"rounds: the state has {done} rounds, and the record {released}: rounds were released that are not in it. Find the "
            "record that belongs to this state; without it the run cannot go on as accounted"
        )
    head = state.get("head")
    if state["version"] > 1 and not (isinstance(head, str) and contains(record, head)):
        raise RunError(
            f"head: the record does not contain the line {shown(head)}, which was its last one when the state was taken: the "
            "record was put back to an earlier state and has gone on from there. Find the record that contains the line"
        )
    return done


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
