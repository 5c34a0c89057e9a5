"""The files that an attestation is about."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyaccount.errors import DomainError, printable


@dataclass(frozen=True, slots=True)
class Subject:
    """A file: its name, and the SHA-256 of its bytes, which identifies it."""

    name: str
    sha256: str


def subjects_of(files: Iterable[str | os.PathLike[str]]) -> tuple[Subject, ...]:
    """Files by their digests. Each is called by its name, or as it was given where two share one. Raises `DomainError`."""
    paths = [os.fsdecode(file) for file in files]
    names = [Path(path).name for path in paths]
    return tuple(
        Subject(name if names.count(name) == 1 else path, _digest(path))
        for path, name in zip(paths, names, strict=True)
    )


def _digest(path: str) -> str:
    """The SHA-256 of a regular file, read piece by piece."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise DomainError(f"subject {printable(path)}: not a regular file; give each file of the model by itself")
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except DomainError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DomainError(f"subject {printable(path)}: cannot be read: {reason or error}") from error
