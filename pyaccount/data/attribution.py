"""Whose record is whose: a table of pairs, each record and each user as a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AttributionTable:
    """Records and their users, numbered from 0 in the order of their first appearance; every record has at least one user.

    The users of record r are `owners[starts[r]:starts[r + 1]]`, ascending and each once.
    """

    #: The names, by number.
    record_names: Sequence[str]
    user_names: Sequence[str]
    starts: Integers
    owners: Integers
    #: The rows of the table, of which some may have said the same.
    rows: int

    @classmethod
    def of(
        cls, record_names: Sequence[str], user_names: Sequence[str], pairs: tuple[Integers, Integers]
    ) -> AttributionTable:
        """From pairs of numbers, at least one, in any order and possibly repeated."""
        records, users = pairs
        numbered = np.sort(records * np.int64(len(user_names)) + users)
        # np.unique would hash, which takes longer than to sort what is nearly sorted.
        first = np.concatenate((np.ones(1, dtype=np.bool_), numbered[1:] != numbered[:-1]))
        of_record, owners = np.divmod(numbered[first], np.int64(len(user_names)))
        starts = np.searchsorted(of_record, np.arange(len(record_names) + 1))
        return cls(record_names, user_names, starts.astype(np.int64), owners, len(records))

    @property
    def sizes(self) -> Integers:
        """How many users each record has."""
        return np.diff(self.starts)

    def degrees(self, among: NDArray[np.bool_]) -> Integers:
        """How many of these records each user has."""
        return np.bincount(self.owners[np.repeat(among, self.sizes)], minlength=len(self.user_names)).astype(np.int64)

    def touching(self, users: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The records of which at least one user is among these."""
        return np.logical_or.reduceat(users[self.owners], self.starts[:-1])

    def pairs_of(self, records: Integers) -> tuple[Integers, Integers]:
        """The users of these records, one after the other, and where those of each begin (and the last ones end)."""
        sizes = self.sizes[records]
        ends = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
        places = np.arange(ends[-1]) + np.repeat(self.starts[records] - ends[:-1], sizes)
        return self.owners[places], ends

    def only(self, records: Integers) -> AttributionTable:
        """Of these records alone, in the order of their numbers; users without a record are left out."""
        owners, ends = self.pairs_of(records)
        users, numbers = np.unique(owners, return_inverse=True)
        return AttributionTable(
            [self.record_names[r] for r in records],
            [self.user_names[u] for u in users],
            ends,
            numbers.astype(np.int64),
            len(owners),
        )
