"""`RunNoise`, which draws the noise of a run's rounds and keeps one stream for each release of a batch.

`NoiseSource` is the protocol of generators that draw the noise of a run's sums instead of the run's key. Such a generator draws
the same rows of C⁻¹Z at the certificate's σ. The record contains its name, because everyone who verifies the record has to decide
whether to trust it. `aside` computes something in a thread while its caller computes something else.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from pyaccount.errors import RunError
from pyaccount.training.facts import ALSO
from pyaccount.training.noise import Noise, NoiseStream, noise_of
from pyaccount.training.noise.noise import DrawnRow
from pyaccount.training.sums import ALONE, Array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyaccount.document.document import Document
    from pyaccount.training.certified import BodyRun
    from pyaccount.training.key import RunKey
    from pyaccount.training.record import RecordedRelease

#: The name in the record of noise that is drawn from the run's key.
FROM_KEY = "the run's key"


class RowStream(Protocol):
    """A stream of rows of C⁻¹Z by name, one round after the other. `NoiseStream`, which draws from the key, is one too."""

    @property
    def round(self) -> int:
        """The round whose row `next` draws, counted from 0."""

    def next(self, nonce: bytes) -> dict[str, NDArray[Any]]:
        """Draw the rows of this round with its nonce, in the shapes of their arrays, and advance by one round."""

    def seek(self, round: int, nonces: Sequence[bytes]) -> None:
        """Go to a round, given the nonces of the rounds before it."""


class NoiseSource(Protocol):
    """A generator that draws noise instead of the run's key."""

    @property
    def name(self) -> str:
        """The name of the generator in the record: everything on which its numbers depend, except for its seed."""

    def stream(self, noise: Noise, shapes: Mapping[str, tuple[int, ...]], key: RunKey) -> RowStream:
        """Return a stream of the rows of this noise for arrays of these shapes, in double precision.

        It is seeded from `key`, which is used for nothing else.
        """


def _tag_of_rows(rows: Mapping[str, NDArray[Any]], key: RunKey) -> str:
    """Return a tag that distinguishes these rows, bit for bit, from all others; it reveals nothing without the round's key."""
    state = hashlib.blake2b(digest_size=32, key=key.reveal(), person=b"pyaccount rows")
    for name in sorted(rows):
        state.update(f"{len(name)}:{name}:{rows[name].shape};".encode())
        state.update(np.ascontiguousarray(rows[name]).reshape(-1).view(np.uint8).data)
    return state.hexdigest()


#: The shapes of the arrays of each release, by name.
Shapes = list[dict[str, tuple[int, ...]]]


class Rows(dict[tuple[int, str], Array | DrawnRow]):
    """The noise of a round by release (0 is the main sum) and name. Its repr is empty, because noise must stay secret."""

    def __repr__(self) -> str:
        return "Rows(…)"


def noise_for(part: BodyRun, clip_norms: Mapping[str, float], release: int, key: RunKey) -> Noise:
    """Return the noise of a release of a part of the run; release 0 is the main sum."""
    norm = norms_of(part, clip_norms)[release]
    return noise_of(part.case, key, phase=part.index, clip_norm=norm, release=release)


def norms_of(part: BodyRun, clip_norms: Mapping[str, float]) -> tuple[float, ...]:
    """Return the clip norm of each release of a batch in this part of the run, that of the main sum first."""
    return (clip_norms[ALONE], *(clip_norms[f"{ALSO}{other.what}"] for other in part.body.noise.also))


class RunNoise:
    """Draws the rows of a run's noise from its key; if a `source` is given, those of the main sums are drawn from it instead."""

    def __init__(
        self, document: Document, clip_norms: Mapping[str, float], root: RunKey, source: NoiseSource | None
    ) -> None:
        self._document, self._clip_norms, self._root, self._source = document, clip_norms, root, source
        self._streams: tuple[tuple[int, Shapes], dict[int, RowStream]] | None = None

    def rows(
        self,
        part: BodyRun,
        number: int,
        releases: Sequence[Mapping[str, Array]],
        seed: bytes,
        released: Sequence[RecordedRelease],
    ) -> Rows:
        """Draw the noise of a round with its seed, for the arrays of each release.

        `number` is the number of the round within the part, counted from 0. `released` contains the recorded releases of the
        whole run, with the seeds of earlier rounds. Raises `RunError` if the noise of another source cannot be repeated here.
        """
        shapes = [{name: array.shape for name, array in arrays.items()} for arrays in releases]
        if self._streams is None or self._streams[0] != (part.index, shapes):
            self._streams = ((part.index, shapes), self._begun(part, shapes))
        noise = Rows()
        streams = self._streams[1]
        # After an interruption the streams are made anew.
        self._streams = None
        for release, stream in streams.items():
            if stream.round != number:
                self._seek(stream, release, part.start, number, released)
            drawn = stream.draw(seed) if isinstance(stream, NoiseStream) else stream.next(seed)
            noise |= {(release, name): row for name, row in drawn.items()}
        self._streams = ((part.index, shapes), streams)
        return noise

    @property
    def from_key(self) -> bool:
        """Whether all noise is a function of the run's key and the seeds, that is, whether there is no other source."""
        return self._source is None

    def tag(self, number: int, seed: bytes, rows: Mapping[tuple[int, str], Array | DrawnRow]) -> str | None:
        """Return the tag that is recorded for a round's noise if it comes from another source, otherwise None."""
        if self._source is None:
            return None
        main = {name: row for (release, name), row in rows.items() if release == 0 and isinstance(row, np.ndarray)}
        return _tag_of_rows(main, self._root.derive("rows", number, seed.hex()))

    def forget(self) -> None:
        """Discard the streams; the next call of `rows` makes them anew, for whatever round it draws."""
        self._streams = None

    def _begun(self, part: BodyRun, shapes: Shapes) -> dict[int, RowStream]:
        """Return a stream for each release, in double precision, because sums are rounded only after noise is added."""
        streams: dict[int, RowStream] = {}
        for release, arrays in enumerate(shapes):
            noise = noise_for(part, self._clip_norms, release, self._root)
            if release == 0 and self._source is not None:
                streams[release] = self._source.stream(noise, arrays, self._root.derive("device noise", part.index))
            else:
                streams[release] = noise.stream(arrays, dtype="float64")
        return streams

    def _seek(
        self, stream: RowStream, release: int, start: int, number: int, released: Sequence[RecordedRelease]
    ) -> None:
        """Move a stream to a round of the part.

        For noise from another source, draw the row of the round before once more, and raise `RunError` if its tag is not the
        recorded one.
        """
        before = released[start : start + number]
        seeds = [earlier.seed for earlier in before]
        if self._source is None or release > 0 or number == 0:
            stream.seek(number, seeds)
            return
        stream.seek(number - 1, seeds)
        last = before[-1]
        rows = {(0, name): row for name, row in stream.next(last.seed).items()}
        if self.tag(last.round, last.seed, rows) != last.noise:
            raise RunError(
                f"round {last.round} was released with other noise than is drawn here now: continue on the kind of device on "
                "which the run began, with the same software"
            )


T = TypeVar("T")


def aside(function: Callable[..., T], *arguments: Any) -> Callable[[], T]:
    """Begin to compute `function(*arguments)` in a thread, and return a function that waits for the result and returns it.

    If the computation raises an error, that function raises it. The function must not change anything that somebody else reads: a
    caller that is interrupted does not wait for it.
    """
    found: Future[T] = Future()

    def compute() -> None:
        try:
            found.set_result(function(*arguments))
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=compute, daemon=True).start()
    return found.result
