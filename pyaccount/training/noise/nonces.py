"""Nonces: fresh bits for the noise of each release.

Were the noise of a round a function of the run's key and the round alone, a run whose folder is put back to an earlier state
would add the same noise to another sum, and the difference of the two releases would be that of the sums, without any noise. So
every release draws a nonce, the record keeps it, and the noise of the round is a function of the key and the nonce. A nonce is
not secret: without the key it says nothing about the noise.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

from pyaccount.errors import DomainError

#: The bytes of a nonce: two of 2⁶⁴ are equal with a probability below 2⁻¹²⁸.
NONCE_BYTES = 32

#: The nonce and the seed of rounds in a record of version 1, whose noise is a function of the key and the round alone.
WITHOUT_NONCE = b"a record of version 1"


def new_nonce() -> bytes:
    """Return 256 bits from the operating system."""
    return secrets.randbits(8 * NONCE_BYTES).to_bytes(NONCE_BYTES, "little")


def check_nonces(nonces: Sequence[bytes]) -> None:
    """Raise `DomainError` unless each of these has the length of a nonce, or is `WITHOUT_NONCE`."""
    for nonce in nonces:
        if nonce != WITHOUT_NONCE and len(nonce) != NONCE_BYTES:
            raise DomainError(f"a nonce has {NONCE_BYTES} bytes, not {len(nonce)}: draw it with new_nonce()")


def seed_of(previous: str, nonce: bytes) -> bytes:
    """Return what a round of a run is drawn with: a hash of its nonce and of the hash of the record's line before.

    That line has the hash of the one before it, and so on: in a record that was joined from those of two branches of a run, no
    round after the seam is drawn as it was. There is none in a record of version 1.
    """
    if nonce == WITHOUT_NONCE:
        return WITHOUT_NONCE
    return hashlib.sha256(bytes.fromhex(previous) + nonce).digest()


def coordinates_of(seed: bytes) -> tuple[str, ...]:
    """Return what a key that is derived for one release has of its seed, for `RunKey.derive`."""
    return () if seed == WITHOUT_NONCE else (seed.hex(),)
