"""Whose record is whose: pairs of numbers, and the table of names that they came from."""

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
    #: How many users there are.
    users: int

    @classmethod
    def of_pairs(cls, records: Integers, users: Integers, sizes: tuple[int, int]) -> Attribution:
        """From pairs of numbers below these sizes, in any order and possibly repeated."""
        numbered = np.sort(records * np.int64(sizes[1]) + users)
        # np.unique would hash, which takes longer than to sort what is nearly sorted.
        first = np.ones(len(numbered), dtype=np.bool_)
        first[1:] = numbered[1:] != numbered[:-1]
        of_record, owners = np.divmod(numbered[first], np.int64(sizes[1]))
        starts = np.searchsorted(of_record, np.arange(sizes[0] + 1))
        return Attribution(starts.astype(np.int64), owners, sizes[1])

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.starts) - 1

    @property
    def pairs(self) -> int:
        """How many pairs of a record and one of its users there are."""
        return len(self.owners)

    @property
    def sizes(self) -> Integers:
        """How many users each record has."""
        return np.diff(self.starts)

    @property
    def shared(self) -> int:
        """How many records belong to several users."""
        return int((self.sizes > 1).sum())

    def degrees(self, among: NDArray[np.bool_] | None = None) -> Integers:
        """How many records each user has, of these or of all."""
        owners = self.owners if among is None else self.owners[np.repeat(among, self.sizes)]
        return np.bincount(owners, minlength=self.users).astype(np.int64)

    def touching(self, users: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The records of which at least one user is among these; each has one."""
        return np.logical_or.reduceat(users[self.owners], self.starts[:-1])

    def pairs_of(self, records: Integers) -> tuple[Integers, Integers]:
        """The users of these records, one after the other, and where those of each begin (and the last ones end)."""
        sizes = self.starts[records + 1] - self.starts[records]
        ends = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
        places = np.arange(ends[-1]) + np.repeat(self.starts[records] - ends[:-1], sizes)
        return self.owners[places], ends

    def by_user(self) -> tuple[Integers, Integers]:
        """Where the records of each user begin, with the end of the last one's; and the records, ascending for each user."""
        records = np.repeat(np.arange(self.records, dtype=np.int64), self.sizes)
        starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(self.degrees())))
        return starts, records[np.argsort(self.owners, kind="stable")]


@dataclass(frozen=True, slots=True, eq=False)
class AttributionTable(Attribution):
    """The same with the names, numbered in the order of their first appearance; every record has at least one user."""

    #: The names, by number.
    record_names: Sequence[str]
    user_names: Sequence[str]
    #: The rows of the table, of which some may have said the same.
    rows: int

    @classmethod
    def of(
        cls, record_names: Sequence[str], user_names: Sequence[str], pairs: tuple[Integers, Integers]
    ) -> AttributionTable:
        """From pairs of numbers, at least one, in any order and possibly repeated."""
        found = Attribution.of_pairs(*pairs, (len(record_names), len(user_names)))
        return cls(found.starts, found.owners, found.users, record_names, user_names, len(pairs[0]))

    def only(self, records: Integers) -> AttributionTable:
        """Of these records alone, in the order of their numbers; users without a record are left out."""
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
