"""The record of a run: what was released, one line of JSON after the other, each with the hash of the one before.

A line is on the disk before what it tells of can be used, so that a crash leaves the record too high and never too low. What is
written may be published: hashes, rounds and parameters of the noise; never who took part, how many, or what was summed. The chain
shows lines that were changed, lost or put elsewhere, not a whole file that somebody wrote anew: that takes a signature.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pyaccount.errors import RunError, shown

#: Of the lines' form.
VERSION = 1

#: What the first line has for the hash of the one before.
NOTHING_BEFORE = "0" * 64

#: No line is longer; a run of 10⁷ rounds has a record of some gigabytes.
LONGEST_LINE = 1 << 20

#: What lines tell of: the run, what the arrays are that are summed, a release, that an earlier state was taken up, and
#: that the folder was moved.
EVENTS = ("run", "layout", "release", "rewind", "moved")

#: How the first line begins.
FIRST = b'{"event":"run",'

#: The type, float32 or float64, and the shape of each array that is summed; for each release of a batch, the main one first.
Layout = tuple[Mapping[str, tuple[str, tuple[int, ...]]], ...]


@dataclass(frozen=True, slots=True)
class RecordedRelease:
    """One round, as recorded."""

    round: int
    attempt: int
    #: Of the noise's rows, one for each sum that was released of the batch.
    standard_deviations: tuple[float, ...]
    #: What tells the sum from every other one, and nothing about it without the run's key.
    sum: str
    #: The same of the noise's row, where that is not drawn from the run's key.
    noise: str | None = None

    def repeats(self, other: RecordedRelease) -> bool:
        """Whether it is the same sum with the same noise, in whichever attempt."""
        return replace(self, attempt=other.attempt) == other


@dataclass(frozen=True, slots=True)
class Recorded:
    """A whole record."""

    header: Mapping[str, Any]
    #: What the arrays are that are summed, for each body of the document that was begun.
    layouts: Mapping[int, Layout]
    releases: tuple[RecordedRelease, ...]
    #: What tells the file of the record from a copy, as of the last time that it was moved.
    file: object
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
        layouts: dict[int, Layout] = {}
        releases: list[RecordedRelease] = []
        rewinds, previous, whole = 0, NOTHING_BEFORE, 0
        place: object = None
        with Path(path).open("rb") as opened:
            for number, line in enumerate(iter(lambda: opened.readline(LONGEST_LINE + 1), b""), 1):
                where = f"{name}, line {number}"
                if len(line) > LONGEST_LINE:
                    raise RunError(f"{where}: longer than any line of a record")
                if not line.endswith(b"\n"):
                    break
                event = _event(line, previous, where)
                match event:
                    case {"event": "run"} if header is None:
                        header, place = event, event.get("file")
                    case {"event": "layout", "body": int(body), "arrays": list(arrays)} if header is not None and (
                        body not in layouts
                    ):
                        layouts[body] = _layout(arrays, where)
                    case {"event": "release"} if layouts:
                        releases.append(_release(event, len(releases), rewinds, where))
                    case {"event": "moved", "file": int(file)} if header is not None:
                        place = file
                    case {"event": "rewind", "to": int(to)} if header is not None and 0 <= to < len(releases):
                        rewinds += 1
                    case _:
                        raise RunError(f"{where}: this is no line of a record, or not where it stands")
                previous = _hash(line)
                whole += len(line)
        if header is None:
            raise RunError(f"{name}: holds no record of a run")
        return cls(header, layouts, tuple(releases), place, rewinds, previous, whole)


def begun(path: Path) -> bool:
    """Whether a record is there: with a whole first line, or something that is no beginning of one.

    What was cut short in its first line, or is empty, tells of nothing that was used.
    """
    if not path.exists():
        return False
    with path.open("rb") as file:
        line = file.readline(LONGEST_LINE)
    return line.endswith(b"\n") or line[: len(FIRST)] != FIRST[: len(line)]


class RecordWriter:
    """The end of a record's file, held by one process at a time."""

    def __init__(self, path: Path) -> None:
        """Take a record up, or begin one. Raises `RunError` if another process holds it or the record is damaged."""
        #: Whether everything that was added is known to be on the disk.
        self._sound = True
        self._path, self._process = path, os.getpid()
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            _hold(self._handle, path)
            #: What was recorded before; None of a new record.
            self.before = Recorded.read(path) if begun(path) else None
            self._last, whole = (NOTHING_BEFORE, 0) if self.before is None else (self.before.last, self.before.whole)
            # A line that was not finished told of nothing that anybody has seen.
            os.ftruncate(self._handle, whole)
            self._size = whole
        except BaseException:
            self.close()
            raise

    def append(self, event: str, **values: Any) -> None:
        """Add a line, which is on the disk when this returns.

        Raises `OSError` if it may not be; then nothing can be added any more, and the record has to be taken up again, which
        finds out what is in it.
        """
        assert event in EVENTS
        line = _line({"event": event, **values, "previous": self._last})
        if len(line) > LONGEST_LINE:
            raise RunError(
                f"a line of the record has at most {LONGEST_LINE:_} bytes, and this {event} has {len(line):_}"
            )
        self._check_alone()
        self._sound = False
        done = 0
        while done < len(line):
            done += os.write(self._handle, line[done:])
        os.fsync(self._handle)
        self._last, self._sound, self._size = _hash(line), True, self._size + len(line)

    @property
    def inode(self) -> int:
        """What tells the record's file from a copy of it."""
        return os.fstat(self._handle).st_ino

    def _check_alone(self) -> None:
        """Raise `RunError` if somebody else may be writing too: locks do not hold forked processes, nor on every file system."""
        check_process(self._process)
        if self._handle < 0:
            raise RunError("the run was closed: open it once more to go on")
        if not self._sound:
            raise RunError("the record's last line may not be on the disk: take the run up again")
        here, there = os.fstat(self._handle), self._path.stat()
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino) or here.st_size != self._size:
            raise RunError(
                f"{self._path}: the record was changed by somebody else while the run was open: nothing more is released"
            )

    def close(self) -> None:
        """Let others go on with the record. In a process that was forked off this lets go of its copy of the file alone."""
        if self._handle >= 0:
            if os.getpid() == self._process:
                # Closing alone would leave it held for as long as a process that was forked off has its copy open.
                _let_go(self._handle)
            os.close(self._handle)
            self._handle = -1


def check_process(opener: int) -> None:
    """Raise `RunError` in every process but the one that opened the run, such as one that was forked off it."""
    if os.getpid() != opener:
        raise RunError("another process opened this run: two of them would release different sums with one noise")


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


def _let_go(handle: int) -> None:
    """Let other processes write, whoever else has the file open."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:  # pragma: no cover - nothing was held
        return
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)


def keep_names(folder: Path) -> None:
    """See to it that the names of new files are on the disk, as their content is."""
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


def _layout(releases: list[Any], where: str) -> Layout:
    found = []
    for arrays in releases:
        if not isinstance(arrays, dict):
            raise RunError(f"{where}: arrays: a mapping is expected for each release")
        found.append({name: _array(name, said, where) for name, said in arrays.items()})
    return tuple(found)


def _array(name: str, said: object, where: str) -> tuple[str, tuple[int, ...]]:
    match said:
        case [("float32" | "float64") as kind, list(shape)] if all(type(size) is int and size >= 0 for size in shape):
            return kind, tuple(shape)
    raise RunError(f"{where}: arrays: a type and a shape are expected for {shown(name)}")


def _release(event: Mapping[str, Any], done: int, rewinds: int, where: str) -> RecordedRelease:
    match event:
        case {
            "round": int(number),
            "attempt": int(attempt),
            "standard_deviations": list(deviations),
            "sum": str(tag),
        } if (
            all(type(one) is float and one > 0.0 for one in deviations)
            and type(number) is int
            and isinstance(event.get("noise"), str | None)
        ):
            if number != done:
                raise RunError(
                    f"{where}: round {number}, where round {done} is the next: a round is missing, or stands twice"
                )
            if attempt != rewinds:
                raise RunError(f"{where}: attempt {attempt} after {rewinds} rewinds")
            return RecordedRelease(number, attempt, tuple(deviations), tag, event.get("noise"))
    raise RunError(f"{where}: this is no release of a round")
