"""The record of a run: what was released, one line of JSON after the other, each with the hash of the one before.

What is written may be published: hashes, nonces, rounds and parameters of the noise; never who took part, how many, or what was
summed. The chain shows lines that were changed, lost or moved. It does not show a whole file that somebody wrote anew, nor one
that was put back to an earlier state: that takes a signature, or a mark that is kept elsewhere (`mark`). `writing` adds lines.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from pyaccount.errors import RunError, shown
from pyaccount.training.noise.nonces import NONCE_BYTES, WITHOUT_NONCE, seed_of

#: Versions of the lines' form. Version 1 had no nonces, and did not say how a run ended; a run that began with it goes on with
#: it.
VERSION, VERSIONS = 2, (1, 2)

#: How batches and noise are drawn from a key, by the record's version: another number for other numbers.
STREAMS = {1: 1, 2: 2}

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

#: What a line has beside its event and the hash of the one before. Of a release `noise` may be missing; the first line has facts.
KEYS: dict[tuple[str, int], set[str]] = {
    ("layout", 1): {"body", "arrays"},
    ("layout", 2): {"body", "arrays", "normaliser"},
    ("release", 1): {"round", "attempt", "standard_deviations", "sum", "noise"},
    ("release", 2): {"round", "attempt", "standard_deviations", "sum", "noise", "nonce"},
    **{("rewind", version): {"to"} for version in VERSIONS},
    **{("moved", version): {"file"} for version in VERSIONS},
    ("closed", 2): set(),
    ("abandoned", 2): set(),
}

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
    #: Drawn for this release; `WITHOUT_NONCE` in a record of version 1.
    nonce: bytes = WITHOUT_NONCE
    #: With the run's key it gives the noise of the round: a hash of the nonce and of all lines before.
    seed: bytes = WITHOUT_NONCE

    def same_sum(self, other: RecordedRelease) -> bool:
        """Return whether it is the same sum, in whichever attempt and whatever was drawn for it."""
        return replace(self, attempt=other.attempt, noise=other.noise) == other


class Recorded:
    """What a record says, as far as it was read. It can be read on as the file grows."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Make a record of this file, of which nothing was read yet."""
        self._path = path
        #: The first line; empty before it was read.
        self.header: Mapping[str, Any] = {}
        #: What the arrays are that are summed, for each body of the document that was begun.
        self.layouts: dict[int, Layout] = {}
        #: A body whose layout no release has followed yet, so that another one may stand for it.
        self.unused_layout: int | None = None
        #: What the sums of each of these bodies are divided by; not in a record of version 1.
        self.normalisers: dict[int, float] = {}
        #: How many rounds had been released when a body's layout was recorded.
        self.layout_after: dict[int, int] = {}
        self.releases: list[RecordedRelease] = []
        #: What tells the file of the record from a copy, as of the last time that it was moved.
        self.file: object = None
        #: How often an earlier state was taken up and rounds were given up, and the rounds that were.
        self.rewound: list[range] = []
        #: The hash of the last line, which the next one has to carry.
        self.last = NOTHING_BEFORE
        #: Whole lines and their bytes; what follows was never finished, and so reports nothing that was used.
        self.lines = self.whole = 0
        #: The event of the last line.
        self.last_event = ""
        #: Whether the run was given up for good.
        self.abandoned = False

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a record and check its chain.

        Raises `RunError` with the first line that is wrong, and `OSError` if the file cannot be read.
        """
        record = cls(path)
        record.follow()
        if not record.header:
            raise RunError(f"{os.fsdecode(path)}: holds no record of a run")
        return record

    @property
    def version(self) -> int:
        """The version of the lines' form."""
        return int(self.header["record"])

    @property
    def ending(self) -> Ending:
        """Return how the record ends."""
        if self.abandoned:
            return "abandoned"
        if self.rounds == self.header.get("rounds"):
            return "exhausted"
        return "closed" if self.last_event == "closed" else "open"

    @property
    def rounds(self) -> int:
        """How many rounds were released, those given up included."""
        return len(self.releases)

    @property
    def rewinds(self) -> int:
        """How often an earlier state was taken up and rounds were given up."""
        return len(self.rewound)

    def follow(self) -> None:
        """Read the lines that were added since the last call.

        Raises `RunError` if the file does not continue what was read before.
        """
        if Path(self._path).stat().st_size < self.whole:
            raise RunError(
                f"{os.fsdecode(self._path)}: the record was put back to an earlier state while it was followed: open the run anew"
            )
        for line in _whole_lines(self._path, self.whole, self.lines):
            self.take(line)

    def take(self, line: bytes) -> None:
        """Take in the next line. Raises `RunError` if it is not one; the record is then as before."""
        where = f"{os.fsdecode(self._path)}, line {self.lines + 1}"
        event = _event(line, self.last, where)
        if event["event"] == "run":
            self._begin(event, where)
        else:
            self._go_on(event, where)
        self.last, self.last_event = hash_of(line), event["event"]
        self.whole += len(line)
        self.lines += 1

    def _begin(self, event: dict[str, Any], where: str) -> None:
        if self.header:
            raise RunError(f"{where}: this line begins another run")
        self.header, self.file = event, event.get("file")

    def _go_on(self, event: dict[str, Any], where: str) -> None:
        wrong = RunError(f"{where}: this is no line of a record, or not where it stands")
        keys = KEYS.get((event["event"], self.version)) if self.header else None
        if keys is None or not keys - {"noise"} <= set(event) - {"event", "previous"} <= keys:
            raise wrong
        if self.abandoned and event["event"] != "closed":
            raise RunError(f"{where}: the run was abandoned before this line")
        match event:
            case {"event": "closed"}:
                pass
            case {"event": "layout", "body": int(body), "arrays": list(arrays)} if (
                body not in self.layouts or body == self.unused_layout
            ):
                layout = _layout(arrays, self.version, where)
                if self.version > 1:
                    self.normalisers[body] = _normaliser(event, where)
                self.layouts[body], self.unused_layout = layout, body
                self.layout_after[body] = self.rounds
            case {"event": "release"} if self.layouts:
                self.releases.append(_release(event, self, where))
                self.unused_layout = None
            case {"event": "moved", "file": int() | list() as file}:
                self.file = file
            case {"event": "rewind", "to": int(to)} if 0 <= to < self.rounds:
                self.rewound.append(range(to, self.rounds))
            case {"event": "abandoned"}:
                self.abandoned = True
            case _:
                raise wrong


def _whole_lines(path: str | os.PathLike[str], start: int = 0, before: int = 0) -> Iterator[bytes]:
    """Yield the lines of a record from a byte on, up to one that was never finished; `before` lines come before it.

    Raises `RunError` for a line that is longer than any line of a record.
    """
    with Path(path).open("rb") as opened:
        opened.seek(start)
        for number, line in enumerate(iter(lambda: opened.readline(LONGEST_LINE + 1), b""), before + 1):
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
    """Return whether a line of the file has this hash: then the record has gone on from that line."""
    return any(hash_of(line) == head for line in _whole_lines(path))


def begun(path: Path) -> bool:
    """Return whether the file is a record with a whole first line, or something else that must not be overwritten.

    A file that is empty, or was cut within its first line, reports nothing that was used.
    """
    if not path.exists():
        return False
    with path.open("rb") as file:
        line = file.readline(LONGEST_LINE)
    return line.endswith(b"\n") or line[: len(FIRST)] != FIRST[: len(line)]


def line_of(event: Mapping[str, Any]) -> bytes:
    """Return an event as a line of JSON."""
    return json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def hash_of(line: bytes) -> str:
    """Return the hash of a line, which the next line carries."""
    return hashlib.sha256(line).hexdigest()


def _event(line: bytes, previous: str, where: str) -> dict[str, Any]:
    try:
        event = json.loads(line, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{where}: not JSON: {error}") from None
    if not isinstance(event, dict) or event.get("event") not in EVENTS:
        raise RunError(f"{where}: this is no line of a record")
    if event["event"] == "run" and (type(event.get("record")) is not int or event["record"] not in VERSIONS):
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


def _release(event: Mapping[str, Any], before: Recorded, where: str) -> RecordedRelease:
    done, rewinds = before.rounds, before.rewinds
    match event:
        case {
            "round": int(number),
            "attempt": int(attempt),
            "standard_deviations": list(deviations),
            "sum": str(tag),
        } if (
            all(type(one) is float and 0.0 < one < float("inf") for one in deviations)
            and type(number) is int
            and isinstance(event.get("noise"), str | None)
        ):
            if number != done:
                raise RunError(
                    f"{where}: round {number}, where round {done} is the next: a round is missing, or stands twice"
                )
            if attempt != rewinds:
                raise RunError(f"{where}: attempt {attempt} after {rewinds} rewinds")
            nonce = WITHOUT_NONCE if before.version == 1 else _nonce(event, where)
            seed = seed_of(before.last, nonce)
            return RecordedRelease(number, attempt, tuple(deviations), tag, event.get("noise"), nonce, seed)
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
