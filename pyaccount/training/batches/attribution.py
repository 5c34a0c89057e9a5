"""Whose the records are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyaccount.errors import RunError

#: The user of each record; or two rows, of records and of users, with a column for each time that a record belongs to a user.
Attributed = ArrayLike | Sequence[ArrayLike]


class Attribution:
    """Pairs of a record and a user, each once, by record and by user; users are numbered in the order of their names."""

    def __init__(self, given: Attributed) -> None:
        """From the user of each record, or from pairs. Raises `RunError` for anything else, and for records without a user."""
        records, users = _pairs(given)
        if len(records) == 0:
            raise RunError("the attribution is empty: it says of each record whose it is")
        if records.min() < 0:
            raise RunError("the attribution's first row has a record below 0: records are counted from 0")
        _, numbers = np.unique(users, return_inverse=True)
        pairs = np.unique(np.stack([records, numbers.reshape(-1).astype(np.int64)], axis=1), axis=0)
        self._records, self._users = pairs[:, 0], pairs[:, 1]
        self.records, self.users = int(self._records[-1]) + 1, int(self._users.max()) + 1
        missing = self.records - len(np.unique(self._records))
        if missing:
            raise RunError(
                f"{missing:_} of {self.records:_} records belong to nobody in the attribution: leave them out of the data "
                "set, or give each a user of its own"
            )

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return len(self._records)

    @property
    def shared(self) -> int:
        """How many records belong to several users."""
        return int((np.bincount(self._records) > 1).sum())

    def more_than(self, records: int) -> int:
        """How many users have more records than that."""
        return int((np.bincount(self._users) > records).sum())

    def by_user(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the records of each user begin, with the end of the last one's; and the records, ascending for each user."""
        return _starts(self._users, self.users), self._records[np.argsort(self._users, kind="stable")]

    def by_record(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same of the users of each record."""
        return _starts(self._records, self.records), self._users


def _starts(sorted_by: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.bincount(sorted_by, minlength=count))]).astype(np.int64)


def _pairs(given: Attributed) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Records and users, row by row."""
    try:
        table = np.asarray(given)
    except ValueError:
        table = np.empty(())
    if table.ndim == 1:
        return np.arange(len(table), dtype=np.int64), table
    if table.ndim != 2 or len(table) != 2:
        raise RunError(
            "the attribution is the user of each record, or two rows of equal length, of records and of users"
        )
    rows: Any = given
    records, users = np.asarray(rows[0]), np.asarray(rows[1])
    if not np.issubdtype(records.dtype, np.integer):
        raise RunError(
            "the attribution's first row has the numbers of records, counted from 0; its second row their users"
        )
    return records.astype(np.int64), users
