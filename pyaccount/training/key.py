"""`RunKey`, the secret from which a run's batches and noise are drawn, and the nonces of releases.

Anyone who knows the key knows every batch and can subtract all noise. So the key is kept in a file of its own, and in no state,
record, checkpoint or message. Others see only a commitment, which distinguishes runs and reveals nothing about the key.

Suppose the noise of a round were a function of the run's key and the round only. Then a run whose folder was put back to an
earlier state would add the same noise to another sum, and the difference of the two releases would be the difference of the sums,
without any noise. So every release draws a nonce, fresh bits, which the record contains, and the noise of the round is a function
of the key and the nonce. A nonce is not secret: without the key it reveals nothing about the noise.

**Two branches of one run** are two continuations from the state before round j. Before round j they have the same noise and the
same sums. From round j on every release has its own nonce, and two of N nonces are equal with a probability below N²·2⁻²⁵⁷. So
the rows of Z of the two branches are independent from round j on, up to that probability and the advantage against the
generator. For runs without sampling, and for certificates whose pair is the mixture below (not for truncated batches), both
branches together have the guarantee that is certified at σ/√2, and r branches the guarantee at σ/√r:

*Without sampling.* Let x and x′ be the differences that the one record makes to the sums of the two branches, with x_t = x′_t
for t < j. C is lower triangular and known. So the released values can be computed from the rows of Cg + w of the first branch
and the rows t ≥ j of Cg′ + w′ of the second branch, where g and g′ are the sums, and all entries of w and of these rows of w′
are independent N(0, σ²). This is a Gaussian mechanism whose shifts, over σ, have the squared norm

    μ² ≤ (‖(Cx)_{<j}‖² + ‖(Cx)_{≥j}‖² + ‖(Cx′)_{≥j}‖²)/σ² ≤ 2·sens²/σ².

The second step holds on every path, since each branch by itself is a run with the certified participation. So the bound also
holds for sums that are chosen after looking at releases (a filter of Gaussian steps: Smith & Thakurta 2022, arXiv:2210.17520).

*With sampling.* Both branches have the same batches, because batches are drawn from the key and do not depend on nonces. Let s
be the participation pattern of the record. In round t of either branch the shift has at most the norm (Cs)_t, for the
nonnegative C of the certificate. By Lemma D.1 of Dong & Ganesh 2026 (arXiv:2602.09338), whose rows may be chosen adaptively, the
released values are dominated by the mixture over s of N(((Cs)_{t<n}, (Cs)_{t≥j}), σ²I) against N(0, σ²I), or under replace-one
against the mixture of the same means with the other sign. Two observations of one mean at σ are equivalent to one at σ/√2,
because their sum is a sufficient statistic. A single observation at σ follows from one at σ/√2 by adding noise. So what is
certified at σ/√2 dominates both branches together, and σ/√r dominates r branches, where r counts the branches at their ends.
With `noise.also` the σ of every sum is divided in this way. Phases are independent of one another.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

from pyaccount.errors import DomainError, RunError
from pyaccount.files import HAS_MODES, warn_without_modes

#: The number of bytes of a key.
KEY_BYTES = 32

#: The number of bytes that are read of a key's file: more than a key has, so that anything after the key is noticed.
LONGEST = 4 * 2 * KEY_BYTES

#: The personalisation of all hashes of a key. If coordinates get a new meaning, it must change.
_PERSON = b"pyaccount run v1"


class RunKey:
    """256 secret bits: the key of a run, or one derived from it. `create` draws a new key from the operating system.

    The bits are passed around in this object, and taken out only in the call that gives them to the core or to a hash. So a
    traceback with variables, as some tools write to logs, shows a commitment and not the key.
    """

    __slots__ = ("_bits",)

    def __init__(self, bits: bytes) -> None:
        """Make a key of these 32 bytes. Raises `RunError` for another number of bytes."""
        self._bits, bits = bytes(bits), b""
        if len(self._bits) != KEY_BYTES:
            raise RunError(f"a run's key has {KEY_BYTES} bytes, not {len(self._bits)}")

    @classmethod
    def drawn(cls) -> RunKey:
        """Return a new key from the operating system, which is not saved yet."""
        return cls(secrets.randbits(8 * KEY_BYTES).to_bytes(KEY_BYTES, "little"))

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> RunKey:
        """Draw a new key from the operating system, save it to this file and return it. Raises the errors of `save`."""
        key = cls.drawn()
        key.save(path)
        return key

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a new file that only its owner may read.

        Raises `FileExistsError` if the file exists, because overwriting a key would destroy it.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="ascii") as file:
            file.write(self._bits.hex() + "\n")
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> RunKey:
        """Return the key in a file, which `save` wrote: 64 hexadecimal digits.

        Raises `RunError` if others may read or write the file, or if it does not contain a key; `OSError` if it cannot be read.
        """
        name = os.fsdecode(path)
        with Path(path).open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if not HAS_MODES:
                warn_without_modes()
            elif mode & 0o077:
                raise RunError(
                    f"{name}: others may use this key, because its permissions are {mode:04o}: set them with chmod 600. If "
                    "anybody may have read it, begin a new run with a new key"
                )
            with contextlib.suppress(ValueError, RunError):
                return cls(bytes.fromhex(file.read(LONGEST).decode("ascii").strip()))
        # Neither the message nor a chained error may contain the file's text, which may be a key that lost a digit.
        raise RunError(f"{name}: this file does not contain a key: {2 * KEY_BYTES} hexadecimal digits are expected")

    def derive(self, *coordinates: str | int) -> RunKey:
        """Return the key for one use, which is named by words and whole numbers: `derive("batches", phase)`.

        It is BLAKE2b of the coordinates, keyed with this key and personalised, which is a pseudorandom function (Aumasson et al.
        2013, 2.8). Each coordinate is preceded by its type and length, so that different coordinates are different messages.
        """
        message = b"".join(_encoded(coordinate) for coordinate in coordinates)
        return RunKey(hashlib.blake2b(message, digest_size=KEY_BYTES, key=self._bits, person=_PERSON).digest())

    def reveal(self) -> bytes:
        """Return the secret bytes, to be passed on directly: never store them in a variable, a message or a file."""
        return self._bits

    @property
    def commitment(self) -> str:
        """A text that may be published: it is the same for the same key, and reveals nothing about the key."""
        return self.tag("commitment")

    def tag(self, *coordinates: str | int) -> str:
        """Return a tag of these coordinates, which may be published: it reveals nothing to anyone who lacks the key.

        Do not derive a key with the same coordinates, because the tag consists of its bytes.
        """
        return self.derive(*coordinates).reveal().hex()

    def __repr__(self) -> str:
        return f"RunKey(commitment={self.commitment[:16]}…)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a run's key is not pickled: give other processes the path of its file")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunKey) and secrets.compare_digest(self._bits, other._bits)

    def __hash__(self) -> int:
        return hash(self.commitment)


def _encoded(coordinate: str | int) -> bytes:
    data = coordinate.encode() if isinstance(coordinate, str) else str(int(coordinate)).encode()
    kind = b"t" if isinstance(coordinate, str) else b"n"
    return kind + len(data).to_bytes(8, "little") + data


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
