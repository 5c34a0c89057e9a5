"""Write files as a whole or not at all, and find the files that a document may name."""

from __future__ import annotations

import errno
import functools
import os
import stat
import warnings
from pathlib import Path

#: Whether the mode of a file on this system states who else may read or write it.
HAS_MODES = os.name == "posix"


@functools.cache
def warn_without_modes() -> None:
    """Warn once, on a system without file modes, that nobody checks who else may read or write files of keys."""
    warnings.warn(
        "who else may read or write the files of keys is not checked on this system: see to it yourself",
        RuntimeWarning,
        stacklevel=2,
    )


def write_atomically(path: Path, content: str | bytes, *, overwrite: bool = True) -> None:
    """Write to a temporary file beside `path`, then move it to `path`.

    If `path` is a symbolic link, its target is replaced and the link stays. A pipe or a device is written to, because
    replacing it by a file would take it away from its other users. Without `overwrite`, an existing file stays, even if
    it was created during the write: then `FileExistsError` is raised.
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
        # mkstemp creates private files; the written file gets the permissions of any new file.
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
    """Return the file or folder that a document in `folder` names, with links resolved.

    It lies in that folder or below; otherwise `ValueError` is raised. A document from another author must not cause
    files to be read that were not supplied with it: by an absolute path, a path that leads upwards, or a link.
    """
    root = os.path.realpath(folder)
    path = Path(os.path.realpath(Path(root) / name))
    if not path.is_relative_to(root):
        raise ValueError(f"leads out of {root}: what is read for a document lies in its own folder or below")
    return path


def try_folder(folder: Path, path: Path) -> None:
    """Check whether a file like `path` can be created in a folder. Raises `OSError` if not.

    A full disk is not an error here, because it may have room when the work is done.
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
    """Create a private file in a folder; its name begins like that of `path`, and is short enough if that name is."""
    import tempfile  # this import takes long for callers that only read certificates

    return tempfile.mkstemp(dir=folder, prefix=f".{path.name[:48]}.", suffix=".tmp")


def is_no_file(path: Path) -> bool:
    """Return whether a path is a pipe, a socket or a device, which has no content of its own to replace."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    # A path in these folders leads to an open file, and its owner expects the content under another name.
    stream = path.parent in (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
    return stream or (not stat.S_ISREG(mode) and not stat.S_ISDIR(mode))


def _place(temporary: Path, path: Path) -> None:
    """Give a file its name if that name is free. Raises `FileExistsError`."""
    try:
        # Unlike a rename, a link fails if the name is taken, however recently.
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems have no links; there the name is only checked before the move.
        if path.exists() or path.is_symlink():
            raise FileExistsError(17, "File exists", str(path)) from None
        temporary.replace(path)
    else:
        temporary.unlink()
