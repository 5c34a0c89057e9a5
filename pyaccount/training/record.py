"""The record of a run: what was released, one line of JSON after the other, each with the hash of the one before.

A line is on the disk before what it reports can be used, so that a crash leaves the record too high and never too low. What is
written may be published: hashes, nonces, rounds and parameters of the noise; never who took part, how many, or what was summed.
The chain shows lines that were changed, lost or moved. It does not show a whole file that somebody wrote anew, nor one that was
put back to an earlier state: that takes a signature, or a mark that is kept elsewhere (`mark`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pyaccount import _core
from pyaccount.errors import RunError, shown
from pyaccount.training.noise.nonces import NONCE_BYTES, WITHOUT_NONCE

#: Of the lines' form. Version 1 had no nonces, and did not say how a run ended; a run that began with it goes on with it.
VERSION, VERSIONS = 2, (1, 2)

#: What the first line has for the hash of the one before.
NOTHING_BEFORE = "0" * 64

#: No line is longer; a run of 10⁷ rounds has a record of some gigabytes.
LONGEST_LINE = 1 << 20

#: What lines report: the run, what the arrays are that are summed, a release, that an earlier state was taken up, that the folder
#: was moved, that the run was closed, and that it was given up for good.
EVENTS = ("run", "layout", "release", "rewind", "moved", "closed", "abandoned")

#: How a record ends: with the last round, with a line that says that the run was abandoned or closed, or without such a line.
#: Then the run is open, or its process was killed, or lines at the end of the file are missing.
Ending = Literal["exhausted", "abandoned", "closed", "open"]

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
    #: With the run's key it gives the noise of the round; `WITHOUT_NONCE` in a record of version 1.
    nonce: bytes = WITHOUT_NONCE

    def repeats(self, other: RecordedRelease) -> bool:
        """Whether it is the same sum with the same noise, in whichever attempt."""
        return replace(self, attempt=other.attempt) == other


@dataclass(frozen=True, slots=True)
class Recorded:
    """A whole record."""

    header: Mapping[str, Any]
    #: What the arrays are that are summed, for each body of the document that was begun.
    layouts: Mapping[int, Layout]
    #: What the sums of each of these bodies are divided by; not in a record of version 1.
    normalisers: Mapping[int, float]
    releases: tuple[RecordedRelease, ...]
    #: What tells the file of the record from a copy, as of the last time that it was moved.
    file: object
    #: How often an earlier state was taken up and rounds were given up.
    rewinds: int
    #: The hash of the last line, which the next one has to carry.
    last: str
    #: Bytes of whole lines; what follows was never finished, and so reports nothing that was used.
    whole: int
    #: The event of the last line.
    last_event: str
    #: Whether the run was given up for good.
    abandoned: bool

    @property
    def version(self) -> int:
        """Of the lines' form."""
        return int(self.header["record"])

    @property
    def ending(self) -> Ending:
        """How the record ends."""
        if self.abandoned:
            return "abandoned"
        if self.rounds == self.header.get("rounds"):
            return "exhausted"
        return "closed" if self.last_event == "closed" else "open"

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
        normalisers: dict[int, float] = {}
        releases: list[RecordedRelease] = []
        rewinds, previous, whole = 0, NOTHING_BEFORE, 0
        place: object = None
        last, abandoned, version = "", False, VERSION
        for number, line in enumerate(_whole_lines(path), 1):
            where = f"{name}, line {number}"
            event = _event(line, previous, where)
            match event:
                case {"event": "run"} if header is None:
                    header, place, version = event, event.get("file"), event["record"]
                case {"event": "closed"} if header is not None and version > 1:
                    pass
                case _ if abandoned:
                    raise RunError(f"{where}: the run was abandoned before this line")
                case {"event": "layout", "body": int(body), "arrays": list(arrays)} if header is not None and (
                    body not in layouts
                ):
                    layouts[body] = _layout(arrays, version, where)
                    if version > 1:
                        normalisers[body] = _normaliser(event, where)
                case {"event": "release"} if layouts:
                    releases.append(_release(event, version, len(releases), rewinds, where))
                case {"event": "moved", "file": int() | list() as file} if header is not None:
                    place = file
                case {"event": "rewind", "to": int(to)} if header is not None and 0 <= to < len(releases):
                    rewinds += 1
                case {"event": "abandoned"} if header is not None and version > 1:
                    abandoned = True
                case _:
                    raise RunError(f"{where}: this is no line of a record, or not where it stands")
            previous, last = _hash(line), event["event"]
            whole += len(line)
        if header is None:
            raise RunError(f"{name}: holds no record of a run")
        return cls(header, layouts, normalisers, tuple(releases), place, rewinds, previous, whole, last, abandoned)


def _whole_lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The lines of a record up to one that was never finished. Raises `RunError` for one that is longer than any."""
    with Path(path).open("rb") as opened:
        for number, line in enumerate(iter(lambda: opened.readline(LONGEST_LINE + 1), b""), 1):
            if len(line) > LONGEST_LINE:
                raise RunError(f"{os.fsdecode(path)}, line {number}: longer than any line of a record")
            if not line.endswith(b"\n"):
                return
            yield line


def version_of(path: Path) -> int | None:
    """Return the version that the first line of a record states, None if it states none."""
    try:
        first = json.loads(next(_whole_lines(path)))
    except (ValueError, StopIteration):
        return None
    version = first.get("record") if isinstance(first, dict) else None
    return version if isinstance(version, int) else None


def contains(path: str | os.PathLike[str], head: str) -> bool:
    """Return whether a line of the file has this hash, so that the record is one that has gone on from there."""
    return any(_hash(line) == head for line in _whole_lines(path))


def begun(path: Path) -> bool:
    """Whether a record is there: with a whole first line, or something that is no beginning of one.

    What was cut short in its first line, or is empty, reports nothing that was used.
    """
    if not path.exists():
        return False
    with path.open("rb") as file:
        line = file.readline(LONGEST_LINE)
    return line.endswith(b"\n") or line[: len(FIRST)] != FIRST[: len(line)]


class RecordWriter:
    """The end of a record's file, held by one process at a time."""

    #: Those of this process.
    _open: ClassVar[weakref.WeakSet[RecordWriter]] = weakref.WeakSet()

    def __init__(self, path: Path) -> None:
        """Take a record up, or begin one. Raises `RunError` if somebody else holds it or the record is damaged."""
        #: Whether everything that was added is known to be on the disk.
        self._sound = True
        self._path, self._process = path, os.getpid()
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            self._hold()
            #: What was recorded before; None of a new record.
            self.before = Recorded.read(path) if begun(path) else None
            #: The hash of the last line.
            self.last, whole = (NOTHING_BEFORE, 0) if self.before is None else (self.before.last, self.before.whole)
            #: Of the lines' form.
            self.version = VERSION if self.before is None else self.before.version
            # A line that was not finished reported nothing that anybody has seen.
            os.ftruncate(self._handle, whole)
            self._size = whole
        except BaseException:
            self.close()
            raise
        self._open.add(self)

    def _hold(self) -> None:
        """Keep others from writing. Raises `RunError` if somebody does."""
        if _held(self._handle):
            return
        here = os.fstat(self._handle)
        for other in self._open:
            if other._handle >= 0 and other._process == os.getpid() and os.path.samestat(os.fstat(other._handle), here):
                raise RunError(
                    f"{self._path}: this process has opened this run already, and goes on with it there: close() that one first"
                )
        raise RunError(f"{self._path}: another process goes on with this run: one at a time can hold its record")

    def append(self, event: str, **values: Any) -> None:
        """Add a line, which is on the disk when this returns.

        Raises `OSError` if it may not be; then nothing can be added any more, and the record has to be taken up again, which
        finds out what is in it.
        """
        assert event in EVENTS
        line = _line({"event": event, **values, "previous": self.last})
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
        self.last, self._sound, self._size = _hash(line), True, self._size + len(line)

    @property
    def file(self) -> int | list[int | None]:
        """What tells the record's file from a copy: its number, and in nanoseconds when it was made, where that is known.

        Numbers of deleted files are given out again. In a record of version 1 this is the number alone.
        """
        number = os.fstat(self._handle).st_ino
        return number if self.version == 1 else [number, _core.created(self._path)]

    def is_file(self, recorded: object) -> bool:
        """Return whether this is the file that is recorded."""
        here = self.file
        if isinstance(here, int):
            return recorded == here
        if not isinstance(recorded, list) or len(recorded) != len(here):
            return False
        # A file system may not know when a file was made, or be asked through one that does not.
        return all(old == new or None in (old, new) for old, new in zip(recorded, here, strict=True))

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
        raise RunError("another process opened this run: it alone goes on with it")


def _held(handle: int) -> bool:
    """Keep others from writing; whether nobody did."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:  # pragma: no cover - there, whoever runs it keeps others away
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


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
    if event["event"] == "run" and event.get("record") not in VERSIONS:
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


def _layout(releases: list[Any], version: int, where: str) -> Layout:
    found = []
    for number, arrays in enumerate(releases):
        # In version 1 all sums but the main one stand together, and there may be none.
        none = version == 1 and number == 1
        if not isinstance(arrays, dict) or not (arrays or none):
            raise RunError(f"{where}: arrays: at least one array is expected for each release, by name")
        found.append({name: _array(name, said, where) for name, said in arrays.items()})
    if not found:
        raise RunError(f"{where}: arrays: no release has any")
    return tuple(found)


def _normaliser(event: Mapping[str, Any], where: str) -> float:
    found = event.get("normaliser")
    if type(found) is not float or not 0.0 < found < float("inf"):
        raise RunError(f"{where}: normaliser: a positive number is expected, not {shown(found)}")
    return found


def _array(name: str, said: object, where: str) -> tuple[str, tuple[int, ...]]:
    match said:
        case [("float32" | "float64") as kind, list(shape)] if all(type(size) is int and size >= 0 for size in shape):
            return kind, tuple(shape)
    raise RunError(f"{where}: arrays: a type and a shape are expected for {shown(name)}")


def _release(event: Mapping[str, Any], version: int, done: int, rewinds: int, where: str) -> RecordedRelease:
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
            nonce = WITHOUT_NONCE if version == 1 else _nonce(event, where)
            return RecordedRelease(number, attempt, tuple(deviations), tag, event.get("noise"), nonce)
    raise RunError(f"{where}: this is no release of a round")


def _nonce(event: Mapping[str, Any], where: str) -> bytes:
    said = event.get("nonce")
    try:
        found = bytes.fromhex(said) if isinstance(said, str) else b""
    except ValueError:
        found = b""
    if len(found) != NONCE_BYTES:
        raise RunError(f"{where}: nonce: {2 * NONCE_BYTES} hexadecimal digits are expected, not {shown(said)}")
    return found
