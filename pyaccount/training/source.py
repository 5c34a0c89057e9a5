"""`NoiseSource`, the protocol of generators that draw the noise of a run's sums instead of the run's key.

Such a generator draws the same rows of C⁻¹Z at the certificate's σ. The record contains its name, because everyone who verifies
the record has to decide whether to trust it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyaccount.training.key import RunKey
    from pyaccount.training.noise import Noise

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


def tag_of_rows(rows: Mapping[str, NDArray[Any]], key: RunKey) -> str:
    """Return a tag that distinguishes these rows, bit for bit, from all others; it reveals nothing without the round's key."""
    state = hashlib.blake2b(digest_size=32, key=key.reveal(), person=b"pyaccount rows")
    for name in sorted(rows):
        state.update(f"{len(name)}:{name}:{rows[name].shape};".encode())
        state.update(np.ascontiguousarray(rows[name]).reshape(-1).view(np.uint8).data)
    return state.hexdigest()
