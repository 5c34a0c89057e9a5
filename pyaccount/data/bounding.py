"""Contribution bounding: selects the records to keep, so that no user has more than k of them.

Records are considered greedily (Ganesh et al. 2025, arXiv:2503.03622): those with the fewest users first, and among
these in the order of a hash of the seed and the name of the record. A record is kept if each of its users has fewer
than k kept records at that point. The result is maximal: no dropped record could be added. Only records of users with
more than k records can be dropped, so only these records are considered. The order depends on names, not on rows: the
same pairs and seed keep the same records, and if no record is shared, the kept records of a user do not depend on other
users.

The limit k_e on neighbourhoods (Dong & Ganesh 2026, arXiv:2602.09338, Appendix C) removes records that share users with
too many records: |N(e)| ≤ k_e for every record that is kept, where N(e) is the set of records that share a user with e,
including e.
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

#: The number of records that the greedy assignment converts to Python integers at a time.
PORTION = 1 << 18
#: The maximum number of entries of the matrix products that count neighbours, at a time.
ENTRIES = 1 << 22


def kept_candidates(table: AttributionTable, limit: int, seed: int, candidates: Mask) -> Mask:
    """Return the mask of candidates that are kept, so that no user has more than `limit` of them."""
    crowded = table.degrees(candidates) > limit
    contested = np.flatnonzero(candidates & table.touching(crowded))
    kept = candidates.copy()
    kept[contested] = False
    order = contested[_order(table, contested, seed)]
    alone = int((table.sizes[contested] == 1).sum())
    owners, _ = table.pairs_of(order[:alone])
    kept[order[:alone]] = _ranks(owners) < limit
    # Users that are not crowded can keep all of their records.
    room = (limit - np.minimum(np.bincount(owners, minlength=table.users), limit)).tolist()
    for start in range(alone, len(order), PORTION):
        portion = order[start : start + PORTION]
        owners, ends = table.pairs_of(portion)
        counted = crowded[owners]
        before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counted, dtype=np.int64)))
        kept[portion] = _assigned(owners[counted].tolist(), before[ends].tolist(), room)
    return kept


def _ranks(owners: Integers) -> Integers:
    """Return, for each element, how many equal elements precede it."""
    order = np.argsort(owners, kind="stable")
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order)) - np.searchsorted(owners[order], owners[order])
    return ranks


def _assigned(owners: Sequence[int], ends: Sequence[int], room: list[int]) -> list[bool]:
    """Return whether each record is kept, in this order. `room`, the remaining number of each user, is reduced."""
    kept = []
    for start, stop in pairwise(ends):
        users = owners[start:stop]
        free = all(room[user] for user in users)
        if free:
            for user in users:
                room[user] -= 1
        kept.append(free)
    return kept


def _order(table: AttributionTable, records: Integers, seed: int) -> NDArray[np.intp]:
    """Return the order in which records are considered: by the number of users, then by the hash of the name."""
    key = seed.to_bytes(8, "little")
    digests = b"".join(
        hashlib.blake2b(table.record_names[r].encode(errors="surrogatepass"), digest_size=16, key=key).digest()
        for r in records.tolist()
    )
    hashes = np.frombuffer(digests, dtype=">u8").reshape(-1, 2)
    return np.lexsort((hashes[:, 1], hashes[:, 0], table.sizes[records]))


def neighbour_count(table: AttributionTable, among: Mask) -> Integers:
    """Return |N(e)|, the number of these records that share a user with e, e included; 0 for other records."""
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
    """Divide records into consecutive ranges of at most `ENTRIES` entries; a larger record is a range of its own."""
    portions, start, total = [], 0, 0
    for index, size in enumerate(sizes.tolist()):
        if index > start and total + size > ENTRIES:
            portions.append((start, index))
            start, total = index, 0
        total += size
    return [*portions, (start, len(sizes))]


def within_neighbourhoods(
    table: AttributionTable, limit: int, seed: int, candidates: Mask, most: int
) -> tuple[Mask, Mask]:
    """Keep at most `limit` records of each user, all with |N(e)| ≤ `most`. Return the masks of kept and removed
    records.

    `removed` are those that violated the second condition. Kept records with too many neighbours are removed from the
    candidates, and the assignment is repeated with the rest until there are no such records.
    """
    candidates = candidates.copy()
    removed = np.zeros_like(candidates)
    while True:
        kept = kept_candidates(table, limit, seed, candidates)
        wide = neighbour_count(table, kept) > most
        if not wide.any():
            return kept, removed
        removed |= wide
        candidates &= ~wide


def rule(separation: int, probability: float) -> int:
    """Return k_e by the rule of thumb b·p·k_e < 1 (Appendix C, ibid.): the largest integer < 1/(b·p), at least 1."""
    return max(1, math.ceil(1.0 / (separation * probability)) - 1)
