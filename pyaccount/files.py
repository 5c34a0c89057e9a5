"""Files that are written whole or not at all, and those that a document may name."""

from __future__ import annotations

import errno
import functools
import os
import stat
import warnings
from pathlib import Path

#: Whether the system says by a file's mode who else may read or write it.
HAS_MODES = os.name == "posix"


@functools.cache
def warn_without_modes() -> None:
    """Warn once that nobody checks who else may read or write files of keys, on a system where their modes do not say it."""
    warnings.warn(
        "who else may read or write the files of keys is not checked on this system: see to it yourself",
        RuntimeWarning,
        stacklevel=2,
    )


def write_atomically(path: Path, content: str | bytes, *, overwrite: bool = True) -> None:
    """Write to a temporary file beside `path`, then move it into place.

    Where a symbolic link stands, the file that it leads to is replaced and the link stays. A pipe or a device is written to: to
    put a file in its place would take it from everybody else. Without `overwrite` a file that is there already stays,
    whenever it came there: raises `FileExistsError`.
    """
    data = content.encode() if isinstance(content, str) else content
    if overwrite:
        if is_no_file(path):
            with path.open("wb") as stream:
                stream.write(data)
            return
        if path.is_symlink():
            path = Path(os.path.realpath(path, strict=False))
    handle, temporary = _temporary(path.parent, path)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp creates private files; what is written gets the permissions any new file would.
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        if overwrite:
            Path(temporary).replace(path)
        else:
            _place(Path(temporary), path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def file_inside(folder: Path, name: str) -> Path:
    """The file or folder that a document in `folder` names, links followed: in that folder or below. Raises `ValueError`.

    A document from elsewhere shall not be able to have files read that nobody gave with it, by an absolute path, one that leads
    upwards, or a link.
    """
    root = os.path.realpath(folder)
    path = Path(os.path.realpath(Path(root) / name))
    if not path.is_relative_to(root):
        raise ValueError(f"leads out of {root}: what is read for a document lies in its own folder or below")
    return path


def try_folder(folder: Path, path: Path) -> None:
    """Find out whether a file like `path` can come into being in a folder. Raises `OSError` if not.

    That a disk is full now says nothing about when the work is done.
    """
    try:
        handle, temporary = _temporary(folder, path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return
        raise
    os.close(handle)
    Path(temporary).unlink(missing_ok=True)


def _temporary(folder: Path, path: Path) -> tuple[int, str]:
    """A new private file in a folder; its name begins like that of `path`, and is not too long where that is not."""
    import tempfile  # much for those who only read certificates

    return tempfile.mkstemp(dir=folder, prefix=f".{path.name[:48]}.", suffix=".tmp")


def is_no_file(path: Path) -> bool:
    """Whether something is there that holds no content of its own to be replaced: a pipe, a socket or a device."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    # What stands here leads to an open file, and whoever opened it waits for it under another name.
    stream = path.parent in (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
    return stream or (not stat.S_ISREG(mode) and not stat.S_ISDIR(mode))


def _place(temporary: Path, path: Path) -> None:
    """Give a file its name if that is free."""
    try:
        # Unlike a rename, a link fails where the name is taken, however recently.
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems have no links; on these the name is only looked at first.
        if path.exists() or path.is_symlink():
            raise FileExistsError(17, "File exists", str(path)) from None
        temporary.replace(path)
    else:
        temporary.unlink()
