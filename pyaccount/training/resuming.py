"""The state of a run in a checkpoint, the position at which a run continues from it, and the check that all ranks agree.

This module does not communicate between processes. The training loop has a way to do that, and gathers the state of each rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyaccount.errors import RunError, quoted
from pyaccount.training.record import contains

#: The kind and the version of a state.
KIND, VERSION = "pyaccount-training-run", 1

#: The keys of the record's first line that identify the run of a state.
WHICH = ("document_sha256", "certificate_sha256", "key_commitment")


def run_state(header: Mapping[str, Any], done: int, head: str) -> dict[str, Any]:
    """Return the state of a run, given the record's first line, the number of rounds in the model, and the last line's hash."""
    return {"kind": KIND, "version": VERSION, "rounds": done, "head": head, **{name: header[name] for name in WHICH}}


def position_of(state: Mapping[str, Any], header: Mapping[str, Any], released: int, record: Path) -> int:
    """Return the number of rounds in a state, after comparing it with the record, which has `released` rounds.

    Raises `RunError` if the state is that of another run, or has rounds that the record does not have.
    """
    if not isinstance(state, Mapping) or state.get("kind") != KIND:
        raise RunError(f"this is not the state of a training run: {quoted(state)}")
    if state.get("version") != VERSION:
        raise RunError(f"the state has version {quoted(state.get('version'))}, which this pyaccount cannot read")
    for name in WHICH:
        if state.get(name) != header[name]:
            raise RunError(
                f"{name}: this is the state of another run: {quoted(state.get(name))}, and not {quoted(header[name])}. A "
                "checkpoint continues the run in the folder that it was trained with: open that folder, or begin without a "
                "checkpoint, and count the rounds of both runs"
            )
    done = state.get("rounds")
    if type(done) is not int or done < 0:
        raise RunError(f"rounds: a whole number is expected, not {quoted(done)}")
    if done > released:
        raise RunError(
            f"rounds: the state has {done} rounds, and the record only {released}: it lacks rounds that were released. Find the "
            "record that belongs to this state; without it the run cannot continue as accounted"
        )
    head = state.get("head")
    if not (isinstance(head, str) and contains(record, head)):
        raise RunError(
            f"head: the record does not contain the line {quoted(head)}, which was its last one when the state was written: the "
            "record was put back to an earlier state and has continued from there. Find the record that contains the line"
        )
    return done


#: The state of a rank: its number, the next round, how many rounds were released, and a part of the seed of the last one, which
#: distinguishes the branches of a run whose folder was put back. Nothing of it is secret.
RankState = tuple[int, int, int, int]


def check_ranks(gathered: Iterable[Sequence[int]], world: int) -> None:
    """Raise `RunError` unless every rank occurs exactly once and all are at the same round of the same branch.

    Otherwise they would add up shards of different batches. `gathered` contains the `RankState` of each process.
    """
    states = [tuple(int(number) for number in state) for state in gathered]
    if sorted(rank for rank, *_ in states) != list(range(world)):
        ranks = ", ".join(str(rank) for rank, *_ in states)
        raise RunError(
            f"the ranks of the processes are {ranks}: every process needs a rank of its own, from 0 to {world - 1}"
        )
    if len({tuple(rest) for _, *rest in states}) > 1:
        raise RunError("the ranks are at different rounds: load the same checkpoint in all of them")
