"""The noise of a run's rounds: which streams its releases have, and where each of them is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyaccount.errors import RunError
from pyaccount.training.facts import ALSO
from pyaccount.training.noise import Noise, noise_of
from pyaccount.training.noise.nonces import coordinates_of
from pyaccount.training.source import RowStream, tag_of_rows
from pyaccount.training.sums import ALONE, Array

if TYPE_CHECKING:
    from pyaccount.document import Document
    from pyaccount.training.certified import BodyRun
    from pyaccount.training.key import RunKey
    from pyaccount.training.record import RecordedRelease
    from pyaccount.training.source import NoiseSource

#: The shapes of each release's arrays, by name.
Shapes = list[dict[str, tuple[int, ...]]]


class Rows(dict[tuple[int, str], Array]):
    """The noise of a round by release, 0 that of the sum, and name. It is shown nowhere: whoever has it can subtract it."""

    def __repr__(self) -> str:
        return "Rows(…)"


def noise_for(document: Document, part: BodyRun, clip_norms: Mapping[str, float], release: int, key: RunKey) -> Noise:
    """Return the noise of a release of a part, 0 the main one."""
    norm = norms_of(part, clip_norms)[release]
    return noise_of(document, part.body, key, phase=part.index, clip_norm=norm, release=release)


def norms_of(part: BodyRun, clip_norms: Mapping[str, float]) -> tuple[float, ...]:
    """Return the clip norm of each release of a batch of a part, the main one first."""
    return (clip_norms[ALONE], *(clip_norms[f"{ALSO}{other.what}"] for other in part.body.noise.also))


class RunNoise:
    """The rows of a run's noise, from its key, or those of the sums from the source that was asked for."""

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
        """Draw the noise of a round of a part with its seed, for the arrays of the main sum and of each other one.

        `released` is what is recorded so far, with the seeds of earlier rounds.
        """
        shapes = [{name: array.shape for name, array in arrays.items()} for arrays in releases]
        if self._streams is None or self._streams[0] != (part.index, shapes):
            self._streams = ((part.index, shapes), self._begun(part, shapes))
        found = Rows()
        streams = self._streams[1]
        # Should it be interrupted, the streams are made anew.
        self._streams = None
        for release, stream in streams.items():
            if stream.round != number:
                self._seek(stream, release, part.start, number, released)
            found |= {(release, name): rows for name, rows in stream.next(seed).items()}
        self._streams = ((part.index, shapes), streams)
        return found

    @property
    def from_key(self) -> bool:
        """Whether all noise is a function of the run's key and the seeds."""
        return self._source is None

    def tag(self, number: int, seed: bytes, rows: Mapping[tuple[int, str], Array]) -> str | None:
        """Return what is recorded of a round's noise, where that is not a function of the key and the seed."""
        if self._source is None:
            return None
        main = {name: row for (release, name), row in rows.items() if release == 0}
        return tag_of_rows(main, self._root.derive("rows", number, *coordinates_of(seed)))

    def forget(self) -> None:
        """Make the streams anew, at whichever round is the next."""
        self._streams = None

    def _begun(self, part: BodyRun, shapes: Shapes) -> dict[int, RowStream]:
        """A stream for each release, of double precision: sums are rounded after noise is added, not before."""
        found: dict[int, RowStream] = {}
        for release, one in enumerate(shapes):
            noise = noise_for(self._document, part, self._clip_norms, release, self._root)
            if release == 0 and self._source is not None:
                found[release] = self._source.stream(noise, one, self._root.derive("device noise", part.index))
            else:
                found[release] = noise.stream(one, dtype="float64")
        return found

    def _seek(
        self, stream: RowStream, release: int, start: int, number: int, released: Sequence[RecordedRelease]
    ) -> None:
        """Take a stream to a round. Of noise that is not the key's, the row before has to be the one that was recorded."""
        before = released[start : start + number]
        seeds = [one.seed for one in before]
        if self._source is None or release > 0 or number == 0:
            stream.seek(number, seeds)
            return
        stream.seek(number - 1, seeds)
        last = before[-1]
        rows = {(0, name): row for name, row in stream.next(last.seed).items()}
        if self.tag(last.round, last.seed, rows) != last.noise:
            raise RunError(
                f"round {last.round} was released with other noise than is drawn here now: go on where the run began, on the "
                "same device with the same software"
            )
