"""Contribution bounding: which records are kept, so that no user has more than k of them.

Records are taken greedily (Ganesh et al. 2025, arXiv:2503.03622): those with the fewest users first, and among these in the order
of a hash of the seed and the record's name; one is kept if each of its users has fewer than k kept records by then. The result is
maximal: no record that was dropped could be added. Only records of users with more than k are ever dropped, so only they are
looked at. The order is that of names, not of rows: the same pairs and seed keep the same records, and as long as no record is
shared, which records of a user are kept does not depend on any other user.

The cap k_e on neighbourhoods (Dong & Ganesh 2026, arXiv:2602.09338, Appendix C) removes records that share users with too many:
|N(e)| ≤ k_e for every record kept, N(e) the records that share a user with e, itself among them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse  # type: ignore[import-untyped]

from pyaccount.data.attribution import AttributionTable, Integers

Mask = NDArray[np.bool_]

#: Records that the greedy assignment has as Python's own numbers at a time.
PORTION = 1 << 18
#: Entries of the products of matrices that count neighbours, at a time.
ENTRIES = 1 << 22


def bounded(table: AttributionTable, limit: int, seed: int, candidates: Mask) -> Mask:
    """The candidates that are kept, so that no user has more than `limit` of them."""
    crowded = table.degrees(candidates) > limit
    contested = np.flatnonzero(candidates & table.touching(crowded))
    kept = candidates.copy()
    kept[contested] = False
    order = contested[_order(table, contested, seed)]
    alone = int((table.sizes[contested] == 1).sum())
    owners, _ = table.pairs_of(order[:alone])
    kept[order[:alone]] = _ranks(owners) < limit
    # Users that are not crowded have room for all they have.
    room = (limit - np.minimum(np.bincount(owners, minlength=table.users), limit)).tolist()
    for start in range(alone, len(order), PORTION):
        portion = order[start : start + PORTION]
        owners, ends = table.pairs_of(portion)
        counted = crowded[owners]
        before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counted, dtype=np.int64)))
        kept[portion] = _assigned(owners[counted].tolist(), before[ends].tolist(), room)
    return kept


def _ranks(owners: Integers) -> Integers:
    """How many equal numbers stand before each."""
    order = np.argsort(owners, kind="stable")
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order)) - np.searchsorted(owners[order], owners[order])
    return ranks


def _assigned(owners: Sequence[int], ends: Sequence[int], room: list[int]) -> list[bool]:
    """Whether each record is kept, in this order; what room its users have left goes down."""
    found = []
    for start, stop in pairwise(ends):
        users = owners[start:stop]
        free = all(room[user] for user in users)
        if free:
            for user in users:
                room[user] -= 1
        found.append(free)
    return found


def _order(table: AttributionTable, records: Integers, seed: int) -> NDArray[np.intp]:
    """The order in which records are considered: by the number of users, then by the hash of their names."""
    key = seed.to_bytes(8, "little")
    digests = b"".join(
        hashlib.blake2b(table.record_names[r].encode(errors="surrogatepass"), digest_size=16, key=key).digest()
        for r in records.tolist()
    )
    hashes = np.frombuffer(digests, dtype=">u8").reshape(-1, 2)
    return np.lexsort((hashes[:, 1], hashes[:, 0], table.sizes[records]))


def neighbours(table: AttributionTable, among: Mask) -> Integers:
    """|N(e)| of each of these records, and 0 for the rest: how many of them share a user with it, itself included."""
    degrees = table.degrees(among)
    counts = np.where(among, degrees[table.owners[table.starts[:-1]]], 0)
    shared = np.flatnonzero(among & (table.sizes > 1))
    if len(shared) == 0:
        return counts
    everyone = np.flatnonzero(among)
    owners, ends = table.pairs_of(everyone)
    shape = (len(everyone), table.users)
    of_user = sparse.csr_matrix((np.ones(len(owners), dtype=np.bool_), owners, ends), shape=shape).T.tocsr()
    owners, ends = table.pairs_of(shared)
    most = np.add.reduceat(degrees[owners], ends[:-1])
    for first, last in _portions(most):
        places = ends[first : last + 1] - ends[first]
        users = owners[ends[first] : ends[last]]
        rows = sparse.csr_matrix(
            (np.ones(len(users), dtype=np.bool_), users, places), shape=(last - first, table.users)
        )
        counts[shared[first:last]] = np.diff((rows @ of_user).indptr)
    return counts


def _portions(sizes: Integers) -> list[tuple[int, int]]:
    """Consecutive records, together of at most so many entries where each by itself is."""
    found, start, total = [], 0, 0
    for place, size in enumerate(sizes.tolist()):
        if place > start and total + size > ENTRIES:
            found.append((start, place))
            start, total = place, 0
        total += size
    return [*found, (start, len(sizes))]


def within_neighbourhoods(
    table: AttributionTable, limit: int, seed: int, candidates: Mask, most: int
) -> tuple[Mask, Mask]:
    """The records kept with at most `limit` for each user and |N(e)| ≤ `most`, and those that the second condition removed.

    Records that are kept and have too many neighbours stop being candidates, and the assignment is made from the rest, until
    there are none.
    """
    candidates = candidates.copy()
    removed = np.zeros_like(candidates)
    while True:
        kept = bounded(table, limit, seed, candidates)
        wide = neighbours(table, kept) > most
        if not wide.any():
            return kept, removed
        removed |= wide
        candidates &= ~wide


def rule(separation: int, probability: float) -> int:
    """k_e of the rule of thumb b·p·k_e < 1: the largest whole number below 1/(b·p), at least 1 (Appendix C, ibid.)."""
    return max(1, math.ceil(1.0 / (separation * probability)) - 1)
