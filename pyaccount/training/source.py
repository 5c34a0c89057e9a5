"""Where the noise of a run's sums may come from instead of the run's key, as a run asks for it.

The rows are those of C⁻¹Z at the certificate's σ whatever they are drawn with. What draws them says its name, which the record
keeps: such noise is not the key's, and whoever verifies the record has to judge it.
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

#: What the record says of noise that is drawn from the run's key.
FROM_KEY = "the run's key"


class RowStream(Protocol):
    """Rows of C⁻¹Z, one round after the other, by name: what the key's `NoiseStream` is too."""

    @property
    def round(self) -> int:
        """The round whose row `next` draws."""

    def next(self, nonce: bytes) -> dict[str, NDArray[Any]]:
        """Draw the rows of this round with its nonce, in the shapes of their arrays; the stream goes on by one round."""

    def seek(self, round: int, nonces: Sequence[bytes]) -> None:
        """Go to a round, by the nonces of the rounds before it."""


class NoiseSource(Protocol):
    """What draws noise that is not from the run's key."""

    @property
    def name(self) -> str:
        """What the record says of it: all that its numbers depend on beside its seed."""

    def stream(self, noise: Noise, shapes: Mapping[str, tuple[int, ...]], key: RunKey) -> RowStream:
        """The rows of this noise in double precision, for arrays of these shapes, seeded from a key that nothing else uses."""


def tag_of_rows(rows: Mapping[str, NDArray[Any]], key: RunKey) -> str:
    """What tells these rows from others, bit for bit, and tells nothing of them to whoever lacks the key of their round."""
    state = hashlib.blake2b(digest_size=32, key=key.reveal(), person=b"pyaccount rows")
    for name in sorted(rows):
        state.update(f"{len(name)}:{name}:{rows[name].shape};".encode())
        state.update(np.ascontiguousarray(rows[name]).reshape(-1).view(np.uint8).data)
    return state.hexdigest()
