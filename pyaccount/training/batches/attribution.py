"""Reads an attribution, which says to which users the records of a run belong: arrays, or the result of `pyaccount.prepare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyaccount.data.attribution import Attribution
from pyaccount.errors import RunError

#: The user of each record; or two rows, of records and of users, with a column for each pair of a record and one of its users;
#: or the attribution of what `pyaccount.prepare` returned.
Attributed = ArrayLike | Sequence[ArrayLike] | Attribution


def attributed(given: Attributed) -> Attribution:
    """Return the pairs of a record and a user, each once; users are numbered in the order of their names.

    Raises `RunError` if `given` has another form, and for records without a user.
    """
    if isinstance(given, Attribution):
        return given
    records, users = _pairs(given)
    if len(records) == 0:
        raise RunError("the attribution is empty: it must name a user for each record")
    if records.min() < 0:
        raise RunError("the attribution's first row has a negative record: records are counted from 0")
    count = int(records.max()) + 1
    missing = count - len(np.unique(records))
    if missing:
        raise RunError(
            f"{missing:_} of {count:_} records have no user in the attribution: leave them out of the data set, or give each a "
            "user of its own"
        )
    names, numbers = np.unique(users, return_inverse=True)
    return Attribution.of_pairs(records, numbers.reshape(-1).astype(np.int64), (count, len(names)))


def _pairs(given: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return two arrays of equal length, the records and their users."""
    try:
        table = np.asarray(given)
    except ValueError:
        table = np.empty(())
    if table.ndim == 1:
        return np.arange(len(table), dtype=np.int64), table
    if table.ndim != 2 or len(table) != 2:
        raise RunError(
            "the attribution has another form than expected: give the user of each record, or two rows of equal length, of "
            "records and of users"
        )
    records, users = np.asarray(given[0]), np.asarray(given[1])
    if not np.issubdtype(records.dtype, np.integer):
        raise RunError(
            "the attribution's first row must contain the numbers of records, counted from 0, and its second row their users"
        )
    return records.astype(np.int64), users
