"""Dense matrices in files beside a certificate. A form names them by the SHA-256 of their entries: doubles, row by row.

A file of numpy (`.npy`) ends with its entries, in this order if it is one of little-endian doubles. The form says that there are
n² of them in n rounds, and the hash that they are those that were analysed: nothing else in the file is read. Only files in the
folder itself are looked at, and no links. Series of noise or probabilities need no files, as a form has all of their values.
"""

from __future__ import annotations

import hashlib
import math
import stat
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

from .form import refused

#: The most rounds of a dense matrix, files that are looked at, and bytes before the entries.
MOST_ROUNDS, MOST_FILES, MOST_HEADER = 1000, 1000, 1 << 16


def with_columns(part: Any, folder: Path | None) -> Any:
    """Return part of a form, in which each dense matrix has its `columns`, from the diagonal down, in multiples of its `unit`."""
    if isinstance(part, list):
        return [with_columns(each, folder) for each in part]
    if not isinstance(part, dict):
        return part
    found = {key: with_columns(value, folder) for key, value in part.items()}
    if found.get("kind") == "run" and found["matrix"]["kind"] == "dense":
        rows = _rows(found["matrix"]["sha256"], found["rounds"], folder)
        parts = max(entry.as_integer_ratio()[1] for row in rows for entry in row)
        columns = [[int(Fraction(row[i]) * parts) for row in rows[i:]] for i in range(len(rows))]
        found["matrix"] |= {"columns": columns, "unit": Fraction(1, parts)}
    return found


def _rows(sha256: str, n: int, folder: Path | None) -> list[tuple[float, ...]]:
    """Return the rows of the matrix with this hash."""
    if n > MOST_ROUNDS:
        raise refused(f"a dense matrix of more than {MOST_ROUNDS} rounds")
    for path in sorted(folder.glob("*.npy"))[:MOST_FILES] if folder else []:
        entries = _end(path, 8 * n * n)
        if hashlib.sha256(entries).hexdigest() == sha256:
            break
    else:
        raise refused(
            f"a dense matrix whose file is not beside the certificate: {n} rows of doubles of the SHA-256 {sha256}"
        )
    rows = [struct.unpack_from(f"<{n}d", entries, 8 * n * i) for i in range(n)]
    if not all(0 <= each < math.inf for row in rows for each in row) or any(
        any(row[i + 1 :]) for i, row in enumerate(rows)
    ):
        raise refused("a matrix with entries that are negative, or above its diagonal")
    return rows


def _end(path: Path, size: int) -> bytes:
    """Return the last bytes of a file that may be that of the matrix, and nothing of another one."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or not size < status.st_size <= size + MOST_HEADER:
            return b""
        with path.open("rb") as file:
            file.seek(-size, 2)
            return file.read(size)
    except OSError:
        return b""
