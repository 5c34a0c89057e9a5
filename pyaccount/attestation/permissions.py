"""Who else may read a private key, or write what is trusted. Only POSIX says so; elsewhere a warning says that."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pyaccount.errors import DomainError, printable
from pyaccount.files import HAS_MODES, warn_without_modes

_ALL, _GROUP, _WRITE_BY_ALL = 0o007, 0o070, 0o002


def check_private(path: Path) -> None:
    """Refuse a private key that others may read or replace, as ssh does. Raises `DomainError`.

    A key that belongs to somebody else, as where a service mounts it, may be given to this process by its group.
    """
    status = _status(path)
    if status is None:
        return
    mode = stat.S_IMODE(status.st_mode)
    own = status.st_uid == os.geteuid()
    if mode & (_ALL | (_GROUP if own else 0)):
        raise DomainError(
            f"key {printable(str(path))}: others may use this key (its permissions are {mode:04o}) and sign in its holder's "
            "name: chmod 600, and if anybody may have read it, make a new one"
        )


def check_trusted(path: Path) -> None:
    """Refuse a folder or a file of trusted keys that everybody may write: anybody could add a key. Raises `DomainError`."""
    status = _status(path)
    if status is not None and status.st_mode & _WRITE_BY_ALL:
        mode, what = stat.S_IMODE(status.st_mode), "folder" if stat.S_ISDIR(status.st_mode) else "file"
        raise DomainError(
            f"trusted_keys: everybody may write to the {what} {printable(str(path))} (its permissions are {mode:04o}), and so "
            "decide which keys are trusted: chmod o-w"
        )


def _status(path: Path) -> os.stat_result | None:
    """What the system says of a file; None where it says nothing of permissions, or where reading it will say what is wrong."""
    if not HAS_MODES:
        warn_without_modes()
        return None
    try:
        return path.stat()
    except (OSError, ValueError):
        return None
