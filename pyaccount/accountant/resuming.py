"""Checks whether a saved state may be loaded, and whether its file may be replaced: no counted round is lost."""

from __future__ import annotations

import os
from pathlib import Path

from pyaccount.accountant import state as saved
from pyaccount.accountant.ledger import OpenLedger, extends, reread
from pyaccount.accountant.planned import Planned
from pyaccount.errors import StateError
from pyaccount.reading.written import sha256_of


def check_plan(found: saved.AccountantState, plan: Planned, done: int, source: str) -> None:
    """Raise `StateError` for a state that does not continue a plan of which `done` rounds are done."""
    _check_mode(found, "plan", source)
    if not _of_this_run(found, plan):
        raise StateError(f"{source}: document: this is the state of another run, with another document")
    if tuple(found.matrix_sha256) != plan.fingerprints:
        message = "the rounds done had the noise of another matrix or schedule than the one in the document's file now"
        raise StateError(f"{source}: matrix_sha256: {message}")
    if found.steps > plan.length:
        raise StateError(f"{source}: steps: {found.steps} rounds are more than the {plan.length} planned")
    if found.steps < done:
        raise _forgotten(found, done, source)


def ledger_of(found: saved.AccountantState, ledger: OpenLedger, source: str, mode: str = "ledger") -> OpenLedger:
    """Return the ledger of a state that continues this ledger. Raises `StateError`."""
    _check_mode(found, mode, source)
    if not _of_this_run(found, ledger):
        raise StateError(f"{source}: document: this is the state of another ledger: its name or budget differs")
    read = reread(ledger.head, found.document.get("phases"), source)
    if found.steps != read.steps:
        raise StateError(f"{source}: steps: {found.steps}, but the phases have {read.steps} rounds")
    if not extends(read.phases, ledger.phases):
        raise _forgotten(found, ledger.steps, source)
    return read


def check_file(path: str | os.PathLike[str], done: int, run: Planned | OpenLedger) -> None:
    """Raise `StateError` if a file is not a state, or is one of this run with rounds that are not among those done."""
    if not saved.may_be_replaced(path):
        raise StateError(f"{os.fsdecode(path)}: is there, and no state of an accountant: it is not overwritten")
    if not Path(path).is_file():
        return
    try:
        there = saved.read_state(path)
    except StateError:
        return
    if not _of_this_run(there, run):
        return
    if isinstance(run, Planned):
        kept = there.steps <= done
    else:
        phases = there.document.get("phases")
        kept = isinstance(phases, list) and extends(run.phases, phases)
    if not kept:
        raise StateError(
            f"{os.fsdecode(path)}: steps: {there.steps} rounds of this run were saved there, which are not among the {done} "
            "counted here: load that state, or save beside it"
        )


def _check_mode(found: saved.AccountantState, mode: str, source: str) -> None:
    if found.mode != mode:
        raise StateError(f"{source}: mode: this is the state of a {found.mode}, and the accountant has a {mode}")


def _of_this_run(found: saved.AccountantState, run: Planned | OpenLedger) -> bool:
    """Return whether a state has the document of a run; of a ledger only the head, as the rest describes releases."""
    if isinstance(run, Planned):
        return found.mode == "plan" and sha256_of(found.document) == sha256_of(run.document.to_mapping())
    head = {key: value for key, value in found.document.items() if key not in ("phases", "filter")}
    return found.mode != "plan" and head == run.head


def _forgotten(found: saved.AccountantState, done: int, source: str) -> StateError:
    return StateError(
        f"{source}: steps: {found.steps} rounds, without all of the {done} counted already: weights can be set back, but what "
        "was released stays released, so go on counting from here"
    )
