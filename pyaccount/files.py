"""Write files as a whole or not at all, and find the files that a document may name."""

from __future__ import annotations

import errno
import functools
import os
import stat
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

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


@dataclass(frozen=True, slots=True)
class InsideFile:
    """A file or folder in `root` or below, both with links resolved."""

    root: Path
    path: Path

    def open(self) -> BinaryIO:
        """Open the file for reading. Raises `OSError` if it is not a regular file, or if a link was put into its way since.

        From the root on, each part of the way is opened by itself, and none may be a link: what is opened is in the root, also
        if somebody changes the folders meanwhile. Nothing waits for a pipe or a device.
        """
        handle = _descended(self.root, self.path.relative_to(self.root).parts)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.EINVAL, "it is not a regular file", str(self.path))
        return os.fdopen(handle, "rb")


def opened(source: Path | InsideFile) -> BinaryIO:
    """Open a regular file for reading, by a path that the user gave, or by one that a document gave and that was found inside.

    Raises `OSError`; its `strerror` says what is wrong with the file.
    """
    if isinstance(source, InsideFile):
        return source.open()
    try:
        path = Path(os.path.realpath(source))
    except ValueError as error:  # a null character in the name
        raise OSError(errno.EINVAL, str(error), str(source)) from error
    return InsideFile(path.parent, path).open()


def lines_of(file: BinaryIO, largest: int) -> Iterator[str]:
    """Yield the lines of a text in UTF-8 without blank ones, comments from # on, and the space around them.

    Raises `OSError` after `largest` bytes, since some files do not state how long they are, and `UnicodeDecodeError`, whose
    start is counted from the beginning of the file. May be called again.
    """
    file.seek(0)
    read = 0
    # One more than may be read, so that what is too long is seen.
    while line := file.readline(largest + 1 - read):
        try:
            # Spreadsheets write a byte-order mark.
            text = line.decode("utf-8" if read else "utf-8-sig")
        except UnicodeDecodeError as error:
            error.start += read
            raise
        read += len(line)
        if read > largest:
            raise OSError(errno.EFBIG, f"it has more than {largest} bytes")
        for part in text.split("\r"):
            if kept := part.partition("#")[0].strip():
                yield kept


def file_inside(folder: Path, name: str, *, further: Sequence[Path] = ()) -> InsideFile:
    """Return the file or folder that a document in `folder` names, with links resolved.

    It lies in that folder or below, or in one of the `further`; a relative name is looked for in each of them in turn. Otherwise
    `ValueError` is raised. A document from another author must not cause files to be read that were not supplied with it: by an
    absolute path, a path that leads upwards, or a link.
    """
    roots = [Path(os.path.realpath(one)) for one in (folder, *further)]
    paths = [Path(os.path.realpath(start / name)) for start in roots]
    inside = [InsideFile(root, path) for path in paths for root in roots if path.is_relative_to(root)]
    for found in inside:
        if found.path.exists():
            return found
    # A file that is not there yet is one of the document's own folder.
    for found in inside:
        if found.path == paths[0]:
            return found
    allowed = ", or in a folder that is allowed" if further else ""
    raise ValueError(f"leads out of {roots[0]}: what is read for a document lies in its own folder or below{allowed}")


def _descended(root: Path, parts: tuple[str, ...]) -> int:
    """Return the descriptor of a file below a folder, without following a link."""
    flags = os.O_RDONLY | _flag("O_CLOEXEC", "O_BINARY", "O_NONBLOCK", "O_NOFOLLOW")
    if os.open not in os.supports_dir_fd or not parts:
        return os.open(root.joinpath(*parts), flags)
    here = os.open(root, os.O_RDONLY | _flag("O_CLOEXEC", "O_DIRECTORY"))
    try:
        for part in parts[:-1]:
            below = os.open(part, flags | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
        return os.open(parts[-1], flags, dir_fd=here)
    finally:
        os.close(here)


def _flag(*names: str) -> int:
    """Return the union of the flags that this system has."""
    found = 0
    for name in names:
        found |= getattr(os, name, 0)
    return found


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
