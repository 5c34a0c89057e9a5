"""The record of a run: what was released, one line of JSON after the other, each with the hash of the one before.

A line is on the disk before what it tells of can be used, so that a crash leaves the record too high and never too low. What is
written may be published: hashes, rounds and parameters of the noise; never who took part, how many, or what was summed. The chain
shows lines that were changed, lost or put elsewhere, not a whole file that somebody wrote anew: that takes a signature.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pyaccount.errors import RunError, shown

#: Of the lines' form.
VERSION = 1

#: What the first line has for the hash of the one before.
NOTHING_BEFORE = "0" * 64

#: No line is longer; a run of 10⁷ rounds has a record of some gigabytes.
LONGEST_LINE = 1 << 20

#: What lines tell of: the run, what the arrays are that are summed, a release, and that an earlier state was taken up.
EVENTS = ("run", "layout", "release", "rewind")


#: The type, float32 or float64, and the size of each array that is summed.
Layout = Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Release:
    """One round, as recorded."""

    round: int
    attempt: int
    #: Of the noise's rows, one for each sum that was released of the batch.
    standard_deviations: tuple[float, ...]
    #: What tells the sum from every other one, and nothing about it without the run's key.
    sum: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """A whole record."""

    header: Mapping[str, Any]
    #: The type and size of each array that is summed; None before the first release.
    layout: Layout | None
    releases: tuple[Release, ...]
    #: How often an earlier state was taken up and rounds were given up.
    rewinds: int
    #: The hash of the last line, which the next one has to carry.
    last: str
    #: Bytes of whole lines; what follows was never finished, and so tells of nothing that was used.
    whole: int

    @property
    def rounds(self) -> int:
        """How many rounds were released, those given up included."""
        return len(self.releases)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a record and check its chain. Raises `RunError` with the line that is wrong, `OSError` where there is no file."""
        name = os.fsdecode(path)
        header: Mapping[str, Any] | None = None
        layout: Layout | None = None
        releases: list[Release] = []
        rewinds, previous, whole = 0, NOTHING_BEFORE, 0
        with Path(path).open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
                where = f"{name}, line {number}"
                if len(line) > LONGEST_LINE:
                    raise RunError(f"{where}: longer than any line of a record")
                if not line.endswith(b"\n"):
                    break
                event = _event(line, previous, where)
                match event:
                    case {"event": "run"} if header is None:
                        header = event
                    case {"event": "layout", "arrays": dict(arrays)} if header is not None and layout is None:
                        layout = _layout(arrays, where)
                    case {"event": "release"} if layout is not None:
                        releases.append(_release(event, len(releases), rewinds, where))
                    case {"event": "rewind", "to": int(to)} if header is not None and 0 <= to < len(releases):
                        rewinds += 1
                    case _:
                        raise RunError(f"{where}: this is no line of a record, or not where it stands")
                previous = _hash(line)
                whole += len(line)
        if header is None:
            raise RunError(f"{name}: holds no record of a run")
        return cls(header, layout, tuple(releases), rewinds, previous, whole)


class RecordWriter:
    """The end of a record's file, held by one process at a time."""

    def __init__(self, path: Path) -> None:
        """Take a record up, or begin one. Raises `RunError` if another process holds it or the record is damaged."""
        existed = path.exists()
        #: Whether everything that was added is known to be on the disk.
        self._sound = True
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            _hold(self._handle, path)
            empty = os.fstat(self._handle).st_size == 0
            #: What was recorded before; None of a new record.
            self.before = None if empty else Recorded.read(path)
            self._last, whole = (NOTHING_BEFORE, 0) if self.before is None else (self.before.last, self.before.whole)
            # A line that was not finished told of nothing that anybody has seen.
            os.ftruncate(self._handle, whole)
            os.lseek(self._handle, whole, os.SEEK_SET)
            if not existed:
                _keep_name(path.parent)
        except BaseException:
            self.close()
            raise

    def append(self, event: str, **values: Any) -> None:
        """Add a line, which is on the disk when this returns.

        Raises `OSError` if it may not be; then nothing can be added any more, and the record has to be taken up again, which
        finds out what is in it.
        """
        assert event in EVENTS
        if not self._sound:
            raise RunError(
                "the record's last line may not be on the disk: take the run up again, in a new process or by a new object"
            )
        self._sound = False
        line = _line({"event": event, **values, "previous": self._last})
        done = 0
        while done < len(line):
            done += os.write(self._handle, line[done:])
        os.fsync(self._handle)
        self._last, self._sound = _hash(line), True

    def close(self) -> None:
        """Let others go on with the record."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _hold(handle: int, path: Path) -> None:
    """Keep other processes from writing. Raises `RunError` if one does."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:  # pragma: no cover - there, whoever runs it keeps others away
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise RunError(
            f"{path}: another process goes on with this run: two would release different sums with one noise"
        ) from error


def _keep_name(folder: Path) -> None:
    """See to it that a new file's name is on the disk, as its content is."""
    if os.name != "posix":  # pragma: no cover - folders cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _line(event: Mapping[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _event(line: bytes, previous: str, where: str) -> dict[str, Any]:
    try:
        event = json.loads(line, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{where}: not JSON: {error}") from None
    if not isinstance(event, dict) or event.get("event") not in EVENTS:
        raise RunError(f"{where}: this is no line of a record")
    if event["event"] == "run" and event.get("record") != VERSION:
        raise RunError(f"{where}: a record of version {event.get('record')!r}, which is not known here")
    if event.get("previous") != previous:
        raise RunError(f"{where}: does not follow the line before: lines were changed, lost or put elsewhere")
    return event


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


def _layout(arrays: dict[str, Any], where: str) -> Layout:
    found = {}
    for name, said in arrays.items():
        match said:
            case [("float32" | "float64") as kind, int(size)] if type(size) is int and size >= 0:
                found[name] = (kind, size)
            case _:
                raise RunError(f"{where}: arrays: a type and a size are expected for {shown(name)}")
    return found


def _release(event: Mapping[str, Any], done: int, rewinds: int, where: str) -> Release:
    match event:
        case {
            "round": int(number),
            "attempt": int(attempt),
            "standard_deviations": list(deviations),
            "sum": str(tag),
        } if all(type(one) is float and one > 0.0 for one in deviations) and type(number) is int:
            if number != done:
                raise RunError(
                    f"{where}: round {number}, where round {done} is the next: a round is missing, or stands twice"
                )
            if attempt != rewinds:
                raise RunError(f"{where}: attempt {attempt} after {rewinds} rewinds")
            return Release(number, attempt, tuple(deviations), tag)
    raise RunError(f"{where}: this is no release of a round")
