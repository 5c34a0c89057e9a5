"""The saved state of an accountant: plain JSON data with a version, which is read as strictly as a certificate.

A state is loaded, and its file replaced, only if no counted round is lost by that.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from pyaccount.accountant.ledger import OpenLedger, extends, reread
from pyaccount.accountant.planned import Planned
from pyaccount.errors import StateError, path_text, quoted
from pyaccount.reading.written import sha256_of
from pyaccount.records.fields import Record

#: The maximum size of a state file in bytes; the state of the largest document is smaller.
LARGEST_FILE = 1 << 26

VERSION: Literal[1] = 1

KIND: Literal["accountant-state"] = "accountant-state"


class AccountantState(Record):
    """The state of an accountant: its document, and the number of rounds that were released."""

    kind: Literal["accountant-state"]
    version: Literal[1] = Field(description="The version of this format.")
    mode: Literal["plan", "ledger", "adaptive"] = Field(
        description="plan: document describes the whole planned run, of which the first steps were released. ledger: "
        "document describes what was released, with its phases in order; there may be no phases yet. adaptive: as ledger, for "
        "rounds that were chosen by looking at results; document.filter is the filter that keeps the budget, once there are "
        "phases."
    )
    document: dict[str, Any] = Field(description="The mechanism document.")
    matrix_sha256: list[str] = Field(
        description="The SHA-256 of the entries of each matrix, and of the values of each schedule, that the document names as "
        "a file, in the order of the document; of each, row by row as doubles."
    )
    steps: int = Field(
        ge=0, description="The number of rounds released so far. A round is an optimizer step, not a micro-batch."
    )
    sha256: str = Field(
        description="The SHA-256 of everything else in the state, as canonical JSON: sorted keys, no spaces, and "
        "integral numbers as integers."
    )


def accountant_state(
    mode: Literal["plan", "ledger", "adaptive"], document: dict[str, Any], steps: int, matrices: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the state as plain data."""
    content = {
        "kind": KIND,
        "version": VERSION,
        "mode": mode,
        "document": document,
        "matrix_sha256": list(matrices),
        "steps": steps,
    }
    return AccountantState.model_validate(content | {"sha256": sha256_of(content)}).model_dump(mode="json")


def checked(raw: object, source: str = "state") -> AccountantState:
    """Return a state from plain data after its hash is compared. Raises `StateError` with the position of the error."""
    if not isinstance(raw, Mapping):
        raise StateError(f"{source}: not the state of an accountant: a mapping is expected, not {quoted(raw)}")
    if raw.get("kind") != KIND:
        raise StateError(f"{source}: kind: not the state of an accountant, but {quoted(raw.get('kind'))}")
    if type(raw.get("version")) is not int or raw["version"] != VERSION:
        raise StateError(
            f"{source}: version: this is {quoted(raw.get('version'))}, and version {VERSION} is read here: another version of "
            "pyaccount wrote it"
        )
    try:
        state = AccountantState.model_validate(dict(raw), strict=True)
        fingerprint = sha256_of(state.model_dump(exclude={"sha256"}))
    except ValidationError as error:
        found = [
            f"{path_text(one['loc'])}: {one['msg']}" for one in error.errors(include_url=False, include_input=False)
        ]
        raise StateError("\n".join(f"{source}: {line}" for line in found[:20])) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"{source}: document: not plain JSON data: {error}") from error
    if fingerprint != state.sha256:
        raise StateError(f"{source}: sha256: the state has the hash {fingerprint}: it was changed after it was saved")
    return state


def read_state(path: str | os.PathLike[str]) -> AccountantState:
    """Return the state in a file. Raises `StateError`."""
    file = os.fsdecode(path)
    try:
        if Path(file).stat().st_size > LARGEST_FILE:
            raise StateError(f"{file}: a state has at most {LARGEST_FILE:_} bytes")
        text = Path(file).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise StateError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except ValueError as error:  # the name contains a null character
        raise StateError(f"{file!r}: cannot be read: {error}") from error
    try:
        raw = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise StateError(f"{file}: not the state of an accountant: not JSON: {error}") from error
    return checked(raw, file)


def _may_be_replaced(path: str | os.PathLike[str]) -> bool:
    """Return whether a path has no regular file, an empty one, or a state, even if damaged or of another version."""
    file = Path(path)
    try:
        if not file.is_file() or file.stat().st_size == 0:
            # The writer reports folders and impossible names; it writes to pipes.
            return True
        if file.stat().st_size > LARGEST_FILE:
            return False
        raw = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(raw, Mapping) and raw.get("kind") == KIND


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{quoted(text)} is too large")
    return value


def check_plan(found: AccountantState, plan: Planned, done: int, source: str) -> None:
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


def ledger_of(found: AccountantState, ledger: OpenLedger, source: str, mode: str = "ledger") -> OpenLedger:
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
    if not _may_be_replaced(path):
        raise StateError(f"{os.fsdecode(path)}: is there, and no state of an accountant: it is not overwritten")
    if not Path(path).is_file():
        return
    try:
        there = read_state(path)
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


def _check_mode(found: AccountantState, mode: str, source: str) -> None:
    if found.mode != mode:
        raise StateError(f"{source}: mode: this is the state of a {found.mode}, and the accountant has a {mode}")


def _of_this_run(found: AccountantState, run: Planned | OpenLedger) -> bool:
    """Return whether a state has the document of a run; of a ledger only the head, as the rest describes releases."""
    if isinstance(run, Planned):
        return found.mode == "plan" and sha256_of(found.document) == sha256_of(run.document.to_mapping())
    head = {key: value for key, value in found.document.items() if key not in ("phases", "filter")}
    return found.mode != "plan" and head == run.head


def _forgotten(found: AccountantState, done: int, source: str) -> StateError:
    return StateError(
        f"{source}: steps: {found.steps} rounds, without all of the {done} counted already: weights can be set back, but what "
        "was released stays released, so go on counting from here"
    )
