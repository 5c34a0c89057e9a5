"""Reads arrays of numbers from open .npy files, of which the header may be hostile."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from typing import BinaryIO

    from numpy.typing import NDArray


class NpyError(ValueError):
    """The file is not a .npy file of numbers. The message repeats nothing of the file."""


class Header(NamedTuple):
    """What the header of a .npy file says."""

    shape: tuple[int, ...]
    fortran: bool
    kind: np.dtype[np.generic]


def header_of(file: BinaryIO) -> Header:
    """Read the header, and leave the file at its entries. Raises `NpyError`, also if they are not real numbers."""
    try:
        version = np.lib.format.read_magic(file)
        # Version 3.0 exists only for structured types with names beyond Latin-1, which are not numbers.
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        header = Header(*readers[version](file))
    except Exception:
        # NumPy evaluates the header as a literal of Python, and lets pass what its parser raises; its messages repeat the text.
        raise NpyError("not a .npy file of numbers") from None
    # Booleans, complex numbers, dates, text and objects are not real numbers.
    if header.kind.kind not in "iuf":
        raise NpyError(f"real numbers are expected, but their type is {header.kind.name}")
    return header


def mapped(file: BinaryIO, header: Header) -> NDArray[np.generic]:
    """Return the entries, without reading them. Raises `NpyError` if the file has fewer than the header says."""
    order = "F" if header.fortran else "C"
    try:
        return np.memmap(file, dtype=header.kind, mode="r", offset=file.tell(), shape=header.shape, order=order)  # type: ignore[call-overload, no-any-return]
    except (ValueError, OverflowError, OSError):
        raise NpyError(
            f"the header promises {header.shape} entries of type {header.kind}, which are not there"
        ) from None
