"""The attribution of records to users: as pairs of numbers, and as a table with their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Records and their users, numbered from 0.

    The users of record r are `owners[starts[r]:starts[r + 1]]`, ascending and each once.
    """

    starts: Integers
    owners: Integers
    #: The number of users.
    users: int

    @classmethod
    def of_pairs(cls, records: Integers, users: Integers, sizes: tuple[int, int]) -> Attribution:
        """Create an attribution from pairs of a record and a user, in any order and possibly repeated.

        `sizes` are the numbers of records and of users.
        """
        numbered = np.sort(records * np.int64(sizes[1]) + users)
        # np.unique would hash, which takes longer than sorting numbers that are nearly sorted.
        first = np.ones(len(numbered), dtype=np.bool_)
        first[1:] = numbered[1:] != numbered[:-1]
        of_record, owners = np.divmod(numbered[first], np.int64(sizes[1]))
        starts = np.searchsorted(of_record, np.arange(sizes[0] + 1))
        return Attribution(starts.astype(np.int64), owners, sizes[1])

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.starts) - 1

    @property
    def pairs(self) -> int:
        """The number of pairs of a record and one of its users."""
        return len(self.owners)

    @property
    def sizes(self) -> Integers:
        """The number of users of each record."""
        return np.diff(self.starts)

    @property
    def shared(self) -> int:
        """The number of records that belong to several users."""
        return int((self.sizes > 1).sum())

    def degrees(self, among: NDArray[np.bool_] | None = None) -> Integers:
        """Return the number of records of each user, counting all records or only those in the mask `among`."""
        owners = self.owners if among is None else self.owners[np.repeat(among, self.sizes)]
        return np.bincount(owners, minlength=self.users).astype(np.int64)

    def touching(self, users: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the mask of records with at least one user in the mask. Every record must have a user."""
        return np.logical_or.reduceat(users[self.owners], self.starts[:-1])

    def pairs_of(self, records: Integers) -> tuple[Integers, Integers]:
        """Return the users of these records, concatenated, and the offsets between which those of each record are."""
        sizes = self.starts[records + 1] - self.starts[records]
        ends = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
        places = np.arange(ends[-1]) + np.repeat(self.starts[records] - ends[:-1], sizes)
        return self.owners[places], ends

    def by_user(self) -> tuple[Integers, Integers]:
        """Return the offsets of each user's records (and the end), and the records, ascending for each user."""
        records = np.repeat(np.arange(self.records, dtype=np.int64), self.sizes)
        starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(self.degrees())))
        return starts, records[np.argsort(self.owners, kind="stable")]


@dataclass(frozen=True, slots=True, eq=False)
class AttributionTable(Attribution):
    """An attribution with names, numbered in the order of first appearance. Every record has at least one user."""

    #: The names of records and of users, by number.
    record_names: Sequence[str]
    user_names: Sequence[str]
    #: The number of rows of the table, repeated ones included.
    rows: int

    @classmethod
    def of(
        cls, record_names: Sequence[str], user_names: Sequence[str], pairs: tuple[Integers, Integers]
    ) -> AttributionTable:
        """Create a table from pairs of numbers (at least one), in any order and possibly repeated."""
        numbered = Attribution.of_pairs(*pairs, (len(record_names), len(user_names)))
        return cls(numbered.starts, numbered.owners, numbered.users, record_names, user_names, len(pairs[0]))

    def only(self, records: Integers) -> AttributionTable:
        """Return the table of only these records, in the order of their numbers, without users that have none."""
        owners, ends = self.pairs_of(records)
        users, numbers = np.unique(owners, return_inverse=True)
        return AttributionTable(
            ends,
            numbers.astype(np.int64),
            len(users),
            [self.record_names[r] for r in records],
            [self.user_names[u] for u in users],
            len(owners),
        )
