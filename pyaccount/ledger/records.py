"""Reads what a ledger asks of the record of a training run: whose run it is, and how many rounds it released.

The room `training` writes records and checks everything in them (`pyaccount verify --record`). A ledger needs the first line, the
number of releases, and a whole chain of hashes; rounds that were given up and repeated count each time.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from pyaccount.errors import LedgerError, Problem

#: The largest number of bytes of a line.
_LONGEST = 1 << 20


class ReleasedRounds(NamedTuple):
    """What a record says of a run."""

    file: str
    document_sha256: str
    rounds: int
    #: The hash of the last line, which identifies the record at this length.
    head: str
    #: The hash of the first line, which identifies the run.
    run: str
    #: Whether the run was abandoned, so that it releases nothing more. One that was only closed may be continued.
    ended: bool


def read_record(path: str | os.PathLike[str]) -> ReleasedRounds:
    """Read the record of a run. Raises `LedgerError` if it is not one, and `OSError` if it cannot be read."""
    file = os.fsdecode(path)
    previous, document, rounds, run, ended = "0" * 64, None, 0, None, False
    with Path(path).open("rb") as lines:
        for number, line in enumerate(iter(lambda: lines.readline(_LONGEST + 1), b""), 1):
            if not line.endswith(b"\n"):
                if len(line) > _LONGEST:
                    raise _wrong(file, number, "is longer than any line of a record")
                # An unfinished line, which nobody has used.
                break
            try:
                event = json.loads(line)
                kind, before = event["event"], event["previous"]
            except (ValueError, KeyError, TypeError, RecursionError):
                raise _wrong(file, number, "is not a line of a record") from None
            if before != previous:
                raise _wrong(file, number, "does not follow the line before: lines were changed, lost or moved")
            if (kind == "run") != (number == 1):
                raise _wrong(file, number, "is not allowed at this place: the first line, and no other, begins the run")
            previous = hashlib.sha256(line).hexdigest()
            if kind == "run":
                document, run = event.get("document_sha256"), previous
            if ended and kind != "closed":
                raise _wrong(file, number, "follows the end of the run")
            ended = ended or kind == "abandoned"
            rounds += kind == "release"
    if run is None or not isinstance(document, str):
        raise _wrong(file, 1, "does not begin a run")
    return ReleasedRounds(file, document, rounds, previous, run, ended)


def _wrong(file: str, line: int, what: str) -> LedgerError:
    message = f"this line {what}, so that the file does not show what was released: give the record that the run wrote"
    return LedgerError([Problem("other-document", message, (), file, line)])
