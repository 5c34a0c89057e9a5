"""The secret that a run's batches and noise are drawn from.

Whoever knows the key knows every batch and can subtract every noise: it is kept in a file of its own, and in no state, record,
checkpoint or message. What leaves the room is a commitment, which tells runs apart and reveals nothing of the key.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from pathlib import Path

from pyaccount.errors import RunError
from pyaccount.files import HAS_MODES, warn_without_modes

#: The bytes of a key.
KEY_BYTES = 32

#: The bytes of a key's file that are read: more than it has, so that what follows the key shows.
LONGEST = 4 * 2 * KEY_BYTES

#: Uses of a key are told apart by this and by their coordinates; a new meaning of coordinates gets another one.
_PERSON = b"pyaccount run v1"


class RunKey:
    """256 secret bits: a run's, or what was derived from them. `create` draws them from the operating system.

    They are handed around in this object, and taken out of it only where the core or a hash takes them: so a traceback with
    its variables, as some tools write them to logs, shows a commitment and not the key.
    """

    __slots__ = ("_bits",)

    def __init__(self, bits: bytes) -> None:
        """A key of these 32 bytes. Raises `RunError` for another number of them."""
        self._bits, bits = bytes(bits), b""
        if len(self._bits) != KEY_BYTES:
            raise RunError(f"a run's key has {KEY_BYTES} bytes, not {len(self._bits)}")

    @classmethod
    def drawn(cls) -> RunKey:
        """A new key from the operating system, which is in no file yet."""
        return cls(secrets.randbits(8 * KEY_BYTES).to_bytes(KEY_BYTES, "little"))

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> RunKey:
        """A new key from the operating system, as `save` writes it."""
        key = cls.drawn()
        key.save(path)
        return key

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a new file that its owner alone may read.

        Raises `FileExistsError` if something is there: a key that is replaced is lost.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="ascii") as file:
            file.write(self._bits.hex() + "\n")
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> RunKey:
        """The key in a file, as `save` wrote it: 64 hexadecimal digits.

        Raises `RunError` for a file that others may read or write, or that holds no key, and `OSError` where there is none.
        """
        name = os.fsdecode(path)
        with Path(path).open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if not HAS_MODES:
                warn_without_modes()
            elif mode & 0o077:
                raise RunError(
                    f"{name}: others may use this key (its permissions are {mode:04o}): chmod 600, and if anybody may have read "
                    "it, the run needs a new key"
                )
            with contextlib.suppress(ValueError, RunError):
                return cls(bytes.fromhex(file.read(LONGEST).decode("ascii").strip()))
        # Neither is what is there said, nor is an error the cause that would hold it: it may be a key that lost a digit.
        raise RunError(f"{name}: holds no key: {2 * KEY_BYTES} hexadecimal digits are expected")

    def derive(self, *coordinates: str | int) -> RunKey:
        """The key for one use, told by words and whole numbers: `derive("batches", phase)`.

        BLAKE2b keyed with the run's key, and personalised (Aumasson et al. 2013, 2.8: a pseudorandom function), of the
        coordinates, each with its type and length before it, so that different coordinates are different messages.
        """
        message = b"".join(_encoded(coordinate) for coordinate in coordinates)
        return RunKey(hashlib.blake2b(message, digest_size=KEY_BYTES, key=self._bits, person=_PERSON).digest())

    def reveal(self) -> bytes:
        """The secret bytes, for what draws from them: never for a variable, a message or a file."""
        return self._bits

    @property
    def commitment(self) -> str:
        """What may be published: equal for equal keys, and of no use for finding one."""
        return self.tag("commitment")

    def tag(self, *coordinates: str | int) -> str:
        """What may be published of these coordinates: it tells nothing of them to whoever lacks the key.

        Nothing else is derived with them.
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
