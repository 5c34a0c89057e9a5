"""Matrices in files beside a form, which names them by the SHA-256 of their entries, row by row as doubles of little end."""

from __future__ import annotations

import ast
import hashlib
import math
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

from .form import FormPart, refused

#: The largest file that is read, and the most files that are looked at.
MOST_BYTES, MOST_FILES = 256 << 20, 1000


def with_files(form: Any, folder: Path | None) -> Any:
    """Return a form in which each matrix of a file has its columns, as `entries`, divided by the largest norm if normalised."""
    if isinstance(form, list):
        return [with_files(each, folder) for each in form]
    if not isinstance(form, dict):
        return form
    if form.get("kind") == "dense":
        return form | {"entries": _columns(form, folder)}
    return {key: with_files(value, folder) for key, value in form.items()}


def _columns(matrix: FormPart, folder: Path | None) -> list[list[Fraction]]:
    for path in sorted(folder.glob("*.npy"))[:MOST_FILES] if folder else []:
        found = _read(path, matrix["sha256"])
        if found is not None:
            break
    else:
        raise refused(f"a matrix whose file is not beside the certificate: entries of SHA-256 {matrix['sha256']}")
    if any(each for i, row in enumerate(found) for each in row[i + 1 :]):
        raise refused("a matrix with entries above its diagonal")
    columns = [[Fraction(row[i]) for row in found[i:]] for i in range(len(found))]
    for entries in columns:
        while len(entries) > 1 and entries[-1] == 0:
            entries.pop()
    if matrix["normalised"] == "no":
        return columns
    square = max(sum((each**2 for each in entries), Fraction(0)) for entries in columns)
    # A root that is rounded down makes entries larger.
    size = Fraction(math.isqrt((square.numerator << 160) // square.denominator), 1 << 80)
    return [[each / size for each in entries] for entries in columns]


def _read(path: Path, sha256: str) -> list[tuple[float, ...]] | None:
    """Return the rows of a square matrix in a file of numpy with this hash; None if it is another one."""
    try:
        data = path.read_bytes() if path.stat().st_size <= MOST_BYTES else b""
    except OSError:
        return None
    if data[:8] != b"\x93NUMPY\x01\x00":
        return None
    length = struct.unpack("<H", data[8:10])[0]
    entries = data[10 + length :]
    if hashlib.sha256(entries).hexdigest() != sha256:
        return None
    header = ast.literal_eval(data[10 : 10 + length].decode("latin-1"))
    n = header["shape"][0]
    if header["descr"] != "<f8" or header["fortran_order"] or header["shape"] != (n, n) or len(entries) != 8 * n * n:
        raise refused("a matrix that is not square, or no doubles row by row")
    return [struct.unpack_from(f"<{n}d", entries, 8 * n * i) for i in range(n)]
