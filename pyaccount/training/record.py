"""The record of a run: what was released, as lines of JSON, each with the hash of the line before.

A record may be published. It contains hashes, nonces, rounds and parameters of the noise, but never which or how many records
took part, or what was summed. The chain of hashes shows whether lines were changed, lost or moved. It does not show whether
somebody wrote a whole new file, or put the file back to an earlier state; to detect that, you need a signature or a mark that is
kept elsewhere (`mark`). This module reads records; `writing` adds lines.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, Self

from pyaccount.errors import RunError, quoted
from pyaccount.training.key import NONCE_BYTES, seed_of

#: The version of a record's format, and the number of the method by which batches and noise are drawn from a key. A change of
#: what is drawn gets a new number.
VERSION, STREAMS = 1, 1

#: What the first line has instead of the hash of the line before.
NOTHING_BEFORE = "0" * 64

#: The largest number of bytes of a line; the record of a run of 10⁷ rounds has some gigabytes.
LONGEST_LINE = 1 << 20

#: What a line can report: the run, the arrays that are summed, a release, that rounds were given up to continue from an earlier
#: state, that the folder was moved, that the run was closed, and that it was ended for good.
EVENTS = ("run", "layout", "release", "rewind", "moved", "closed", "abandoned")

#: How a record ends: with the last round; with a line that says that the run was abandoned or closed; or ("open") without such a
#: line, because the run is open, its process was killed, or lines at the end of the file are missing.
Ending = Literal["exhausted", "abandoned", "closed", "open"]

#: The keys of a line in addition to its event and the hash of the line before, by event. A release may lack `noise`, and a layout
#: `trainer`.
#: The first line is not listed; its keys are the facts of the run.
KEYS: dict[str, set[str]] = {
    "layout": {"body", "arrays", "normaliser", "trainer"},
    "release": {"round", "attempt", "standard_deviations", "sum", "noise", "nonce"},
    "rewind": {"to"},
    "moved": {"file"},
    "closed": set(),
    "abandoned": set(),
}

#: How the first line begins.
FIRST = b'{"event":"run",'

#: The type (float32 or float64) and the shape of each summed array, for each release of a batch, the main release first.
Layout = tuple[Mapping[str, tuple[str, tuple[int, ...]]], ...]


@functools.cache
def _version(library: str) -> str:
    """Return the version of an installed library. It is read from a file, which takes as long as recording a round."""
    return metadata.version(library)


@dataclass(frozen=True, slots=True)
class RecordedTrainer:
    """The integration that computed, clipped and added up the gradients of a body's rounds."""

    #: The name of the library, and its version when the body was begun.
    name: str
    version: str
    #: How contributions of single records were clipped, in the library's words.
    clipping: str

    @classmethod
    def installed(cls, name: str, clipping: str) -> Self:
        """Return the integration with the version of the library that is installed."""
        return cls(name, _version(name), clipping)

    def agrees(self, other: RecordedTrainer) -> bool:
        """Return whether both clip in the same way; another version of the library may."""
        return (self.name, self.clipping) == (other.name, other.clipping)


@dataclass(frozen=True, slots=True)
class RecordedRelease:
    """What a record says about the release of one round."""

    round: int
    #: How many rewinds the record has before this line.
    attempt: int
    #: The standard deviations of the noise, one for each sum that was released from the batch.
    standard_deviations: tuple[float, ...]
    #: A tag that distinguishes the sum from every other sum; without the run's key it reveals nothing about the sum.
    sum: str
    #: The nonce that was drawn for this release.
    nonce: bytes
    #: A hash of the nonce and of all earlier lines. Together with the run's key it determines the noise of the round.
    seed: bytes
    #: The same kind of tag as `sum` for the row of noise, if that was not drawn from the run's key.
    noise: str | None = None

    def same_sum(self, other: RecordedRelease) -> bool:
        """Return whether both releases agree, apart from `attempt` and `noise`, which may differ."""
        return replace(self, attempt=other.attempt, noise=other.noise) == other


class Recorded:
    """The content of a record, as far as it was read. `follow` reads the lines that were added since."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Make an empty record for this file; nothing is read yet."""
        self._path = path
        #: The first line; empty before it was read.
        self.header: Mapping[str, Any] = {}
        #: The layout of the summed arrays, for each body of the document that was begun.
        self.layouts: dict[int, Layout] = {}
        #: The body whose layout was recorded last, if no release has followed; another layout may still replace it.
        self.unused_layout: int | None = None
        #: The constants by which the sums of these bodies are divided.
        self.normalisers: dict[int, float] = {}
        #: The integration that trained these bodies; None for a loop of somebody's own.
        self.trainers: dict[int, RecordedTrainer | None] = {}
        #: How many rounds had been released when a body's layout was recorded.
        self.layout_after: dict[int, int] = {}
        self.releases: list[RecordedRelease] = []
        #: The identity of the record's file (`RecordWriter.file`) since it was last moved, which distinguishes it from a copy.
        self.file: object = None
        #: The rounds that were given up, one range for each time that the run continued from an earlier state.
        self.rewound: list[range] = []
        #: The hash of the last line, which the next line must contain.
        self.last = NOTHING_BEFORE
        #: The number of complete lines, and of their bytes. What follows them is an unfinished line, which nobody has used.
        self.lines = self.whole = 0
        #: The event of the last line.
        self.last_event = ""
        #: Whether the run was ended for good.
        self.abandoned = False

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a record and check its chain of hashes.

        Raises `RunError` naming the first line that is wrong, and `OSError` if the file cannot be read.
        """
        record = cls(path)
        record.follow()
        if not record.header:
            raise RunError(f"{os.fsdecode(path)}: this file does not contain the record of a run")
        return record

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
        """The number of rounds that were released, including those given up."""
        return len(self.releases)

    @property
    def rewinds(self) -> int:
        """How often rounds were given up to continue from an earlier state."""
        return len(self.rewound)

    def follow(self) -> None:
        """Read the lines that were added since the last call.

        Raises `RunError` if the file does not continue what was read before.
        """
        if Path(self._path).stat().st_size < self.whole:
            raise RunError(
                f"{os.fsdecode(self._path)}: the record was put back to an earlier state while it was read: open the run anew"
            )
        for line in _whole_lines(self._path, self.whole, self.lines):
            self.take(line)

    def take(self, line: bytes) -> None:
        """Add the next line. Raises `RunError` if it is not a valid next line; the record is then unchanged."""
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
        wrong = RunError(f"{where}: this is not a line of a record, or is not allowed at this position")
        keys = KEYS.get(event["event"]) if self.header else None
        if keys is None or not keys - {"noise", "trainer"} <= set(event) - {"event", "previous"} <= keys:
            raise wrong
        if self.abandoned and event["event"] != "closed":
            raise RunError(f"{where}: the run was abandoned before this line")
        match event:
            case {"event": "closed"}:
                pass
            case {"event": "layout", "body": int(body), "arrays": list(arrays)} if (
                body not in self.layouts or body == self.unused_layout
            ):
                layout, self.normalisers[body] = _layout(arrays, where), _normaliser(event, where)
                self.layouts[body], self.unused_layout = layout, body
                self.trainers[body] = _trainer(event.get("trainer"), where)
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
    """Yield the complete lines of a record from byte `start` on; `before` is the number of lines before that byte.

    Raises `RunError` for a line that is longer than any line of a record.
    """
    with Path(path).open("rb") as opened:
        opened.seek(start)
        for number, line in enumerate(iter(lambda: opened.readline(LONGEST_LINE + 1), b""), before + 1):
            if len(line) > LONGEST_LINE:
                raise RunError(f"{os.fsdecode(path)}, line {number}: this line is longer than any line of a record")
            if not line.endswith(b"\n"):
                return
            yield line


def contains(path: str | os.PathLike[str], head: str) -> bool:
    """Return whether a line of the file has this hash, that is, whether the record contains or continues that line."""
    return any(hash_of(line) == head for line in _whole_lines(path))


def begun(path: Path) -> bool:
    """Return whether the file is a record with a complete first line, or something else that must not be overwritten.

    A file that is empty or was cut within its first line may be overwritten, because it reports nothing that was used.
    """
    if not path.exists():
        return False
    with path.open("rb") as file:
        line = file.readline(LONGEST_LINE)
    return line.endswith(b"\n") or line[: len(FIRST)] != FIRST[: len(line)]


def event_line(event: Mapping[str, Any]) -> bytes:
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
        raise RunError(f"{where}: this is not a line of a record")
    if event["event"] == "run" and (type(event.get("record")) is not int or event["record"] != VERSION):
        raise RunError(f"{where}: the record has version {event.get('record')!r}, which this pyaccount cannot read")
    if event.get("previous") != previous:
        raise RunError(f"{where}: this line does not follow the line before: lines were changed, lost or moved")
    return event


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a key occurs twice")
    return mapping


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def _layout(releases: list[Any], where: str) -> Layout:
    layouts = []
    for arrays in releases:
        if not isinstance(arrays, dict) or not arrays:
            raise RunError(f"{where}: arrays: at least one array is expected for each release, by name")
        layouts.append({name: _array(name, layout, where) for name, layout in arrays.items()})
    if not layouts:
        raise RunError(f"{where}: arrays: the list of releases is empty")
    return tuple(layouts)


def _normaliser(event: Mapping[str, Any], where: str) -> float:
    normaliser = event.get("normaliser")
    if type(normaliser) is not float or not 0.0 < normaliser < float("inf"):
        raise RunError(f"{where}: normaliser: a positive number is expected, not {quoted(normaliser)}")
    return normaliser


def _trainer(value: object, where: str) -> RecordedTrainer | None:
    match value:
        case None:
            return None
        case {"name": str(name), "version": str(version), "clipping": str(clipping), **more} if not more:
            return RecordedTrainer(name, version, clipping)
    raise RunError(f"{where}: trainer: its name, version and clipping are expected")


def _array(name: str, layout: object, where: str) -> tuple[str, tuple[int, ...]]:
    match layout:
        case [("float32" | "float64") as kind, list(shape)] if all(type(size) is int and size >= 0 for size in shape):
            return kind, tuple(shape)
    raise RunError(f"{where}: arrays: a type and a shape are expected for {quoted(name)}")


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
                    f"{where}: round {number} is recorded, and round {done} would be next: a round is missing, or occurs twice"
                )
            if attempt != rewinds:
                raise RunError(f"{where}: attempt {attempt} is recorded after {rewinds} rewinds; both must be equal")
            nonce = _nonce(event, where)
            return RecordedRelease(
                number, attempt, tuple(deviations), tag, nonce, seed_of(before.last, nonce), event.get("noise")
            )
    raise RunError(f"{where}: this is not a valid release of a round")


def _nonce(event: Mapping[str, Any], where: str) -> bytes:
    text = event.get("nonce")
    try:
        nonce = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        nonce = b""
    if len(nonce) != NONCE_BYTES:
        raise RunError(f"{where}: nonce: {2 * NONCE_BYTES} hexadecimal digits are expected, not {quoted(text)}")
    return nonce
