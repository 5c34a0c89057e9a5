"""Nonces: fresh bits for the noise of each release.

Suppose the noise of a round were a function of the run's key and the round only. Then a run whose folder was put back to an
earlier state would add the same noise to another sum, and the difference of the two releases would be the difference of the sums,
without any noise. So every release draws a nonce, which the record contains, and the noise of the round is a function of the key
and the nonce. A nonce is not secret: without the key it reveals nothing about the noise.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

from pyaccount.errors import DomainError

#: The number of bytes of a nonce. The probability that two of 2⁶⁴ nonces are equal is below 2⁻¹²⁸.
NONCE_BYTES = 32


def new_nonce() -> bytes:
    """Return a new nonce, 256 random bits from the operating system."""
    return secrets.randbits(8 * NONCE_BYTES).to_bytes(NONCE_BYTES, "little")


def check_nonces(nonces: Sequence[bytes]) -> None:
    """Raise `DomainError` unless each of these has the length of a nonce."""
    for nonce in nonces:
        if len(nonce) != NONCE_BYTES:
            raise DomainError(f"a nonce has {NONCE_BYTES} bytes, not {len(nonce)}: draw it with new_nonce()")


def seed_of(previous: str, nonce: bytes) -> bytes:
    """Return the seed with which a round of a run is drawn: a hash of its nonce and of the hash of the record's previous line.

    Each line contains the hash of the line before it, so the seed depends on all earlier lines. If somebody joins the records of
    two branches of a run, the rounds after the seam get other seeds than those with which they were drawn.
    """
    return hashlib.sha256(bytes.fromhex(previous) + nonce).digest()
