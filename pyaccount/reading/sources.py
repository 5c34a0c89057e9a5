"""Reads the tree of a document from any source: a file, bytes, a mapping or another document.

Before a file is read, it must turn out to be a regular file of a sensible size. So a pipe, a device or a data set that is given
by mistake is refused at once.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from pyaccount.errors import DocumentError, Problem
from pyaccount.reading.nodes import Place, Scalar, Table, TreeNode, from_value, located, value_under
from pyaccount.reading.spelling import nearest, nearest_value
from pyaccount.reading.written import Written

#: The maximum size of a document in bytes, far above that of any document that a person writes.
LARGEST_FILE = 1 << 20

# The characters that YAML does not allow. A file with one of them is not a text, or hides something.
_NOT_PRINTABLE = re.compile("[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _read_file(name: str) -> str:
    """Return the text of a document's file, without a byte order mark. Raises `DocumentError`."""
    if "\0" in name:
        _refuse("file-not-found", "no file can have this name", name)
    if "\n" in name:
        message = "this looks like YAML text, but the path of a file or a mapping is expected"
        _refuse("file-not-found", message, "document")
    if name in ("-", "/dev/stdin"):
        message = "only the commands read standard input; give a path, or a mapping such as yaml.safe_load returns"
        _refuse("not-a-file", message, name)
    path = Path(name)
    try:
        _check_regular(name, path.stat())
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        _refuse("file-not-found", "no such file", name, suggestion=_similar_file(path))
    except PermissionError:
        _refuse("permission-denied", "this user has no permission to read the file", name)
    except OSError as error:
        _refuse("unreadable-file", f"the file cannot be read: {error.strerror or error}", name)
    return decoded(name, data)


def decoded(name: str, data: bytes) -> str:
    """Decode UTF-8 bytes, without a byte order mark; errors call the source `name`. Raises `DocumentError`."""
    _check_size(name, len(data))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        _refuse("not-text", "the file is UTF-16; save it as UTF-8", name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # A decoder that skips the byte order mark starts counting after it, as the columns of an editor do.
        before = error.object[: error.start].decode()
        odd_byte = f"the byte 0x{error.object[error.start]:02x} is not UTF-8 text: save the file as UTF-8"
        _refuse("not-text", odd_byte, name, **_end(before))
    if odd := _NOT_PRINTABLE.search(text):
        before = text[: odd.start()]
        message = f"the control character U+{ord(odd[0]):04X} does not belong in a text"
        _refuse("not-text", message, name, **_end(before))
    return text


def _check_regular(name: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        _refuse("not-a-file", "this is a folder; give the YAML file in it", name)
    if not stat.S_ISREG(status.st_mode):
        message = "this is not a regular file but a pipe, a socket or a device; `-` is standard input"
        _refuse("not-a-file", message, name)
    _check_size(name, status.st_size)


def _check_size(name: str, size: int) -> None:
    if size > LARGEST_FILE:
        _refuse("file-too-large", f"a mechanism document has at most {LARGEST_FILE:_} bytes", name)


def _end(before: str) -> dict[str, int]:
    """Return the line and the column after a text."""
    return {"line": before.count("\n") + 1, "column": len(before) - before.rfind("\n")}


def _similar_file(path: Path) -> str | None:
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, 1000)]
    except OSError:
        return None
    similar = nearest(path.name, names)
    return str(path.with_name(similar)) if similar is not None else None


def _refuse(slug: str, message: str, name: str, **where: Any) -> NoReturn:
    raise DocumentError([Problem(slug, message, file=name, **where)])


#: What a document is read from: the path of a YAML file, or a mapping.
Source = str | os.PathLike[str] | Mapping[str, Any]

#: Folders whose files a document may name, besides its own.
Folders = Sequence[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class Handed:
    """The bytes of a document that does not come from a file, with the name that errors use for it, such as `<stdin>`.

    Files that the document names are found relative to this name, that is, in the working folder.
    """

    name: str
    data: bytes


def tree_of(source: object) -> tuple[str | None, TreeNode, list[Problem]]:
    """Return the file name (or `None`), tree and problems of a source: a file name, bytes, mapping or document."""
    if isinstance(source, Written):
        return source.file, source.root, []
    if isinstance(source, Mapping):
        return None, *from_value(source, Place())
    if not isinstance(source, str | os.PathLike | Handed):
        kind = type(source).__name__
        raise TypeError(f"a document is the path of a YAML file, a mapping or a Document, not {kind}")
    from pyaccount.reading.reader import read_tree

    if isinstance(source, Handed):
        file, text = source.name, decoded(source.name, source.data)
    else:
        file = os.fsdecode(source)
        text = _read_file(file)
    root, problems = read_tree(text, file)
    return file, Scalar(None, Place(file)) if root is None else root, problems


def of_kind(source: object, kind: str, message: str, of_another: str = "") -> tuple[Table, str | None, list[Problem]]:
    """Return the tree, the file name and the problems of a document that must be of a kind. Raises `DocumentError`.

    `message` says what such a document has; `of_another`, if it is given, is for a document that states another kind.
    """
    file, root, problems = tree_of(source)
    if not isinstance(root, Table):
        raise DocumentError([*problems, not_a_mapping(root, file)])
    word = value_under(root, "kind")
    if word != kind:
        suggestion = kind if isinstance(word, str) and nearest_value(word, (kind,)) else None
        text = message if word is None else of_another or message
        problem = Problem("unknown-kind", text, ("kind",), allowed=kind, suggestion=suggestion)
        raise DocumentError([*problems, located(root, problem)])
    return root, file, problems


def not_a_mapping(root: TreeNode, file: str | None) -> Problem:
    """Return the problem of a document that is a list, a single value or empty."""
    place = root.place
    if isinstance(root, Scalar) and root.value is None:
        return Problem("empty-document", "the file has no content; a document starts with `pyaccount: 1`", file=file)
    kind = "a single value" if isinstance(root, Scalar) else "a list"
    message = f"a document is a mapping that starts with `pyaccount: 1`; this is {kind}"
    return Problem("not-a-mapping", message, (), file, place.line, place.column)
