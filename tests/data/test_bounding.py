"""Contribution bounding against the definitions, by sets: at most k, maximal, fewest users first, and nothing else decides."""

import random
from collections import Counter, defaultdict

import numpy as np
import pytest

from pyaccount.data.attribution import AttributionTable
from pyaccount.data.bounding import kept_candidates, neighbour_count, rule, within_neighbourhoods
from pyaccount.data.reading import attribution_of

Pairs = list[tuple[str, str]]


def table_of(pairs: Pairs) -> AttributionTable:
    return attribution_of(pairs)


def users_of(pairs: Pairs) -> dict[str, set[str]]:
    found = defaultdict(set)
    for record, user in pairs:
        found[record].add(user)
    return found


def kept_by(pairs: Pairs, limit: int, seed: int = 0) -> set[str]:
    table = table_of(pairs)
    kept = kept_candidates(table, limit, seed, np.ones(len(table.record_names), dtype=np.bool_))
    return {table.record_names[r] for r in np.flatnonzero(kept)}


def random_pairs(seed: int, records: int = 60, users: int = 12) -> Pairs:
    chance = random.Random(seed)
    return [
        (f"r{r}", f"u{chance.randrange(users)}") for r in range(records) for _ in range(chance.choice([1, 1, 2, 3]))
    ]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("limit", [1, 2, 5, 50])
def test_no_user_has_more_and_no_record_could_be_added(seed: int, limit: int) -> None:
    pairs = random_pairs(seed)
    owners, kept = users_of(pairs), kept_by(pairs, limit)
    counts = Counter(user for record in kept for user in owners[record])
    assert max(counts.values()) <= limit
    for record in owners.keys() - kept:
        assert any(counts[user] == limit for user in owners[record])
        # Fewest users first: of those that are in its way some have no more users than it.
        assert any(
            limit == sum(user in owners[one] and len(owners[one]) <= len(owners[record]) for one in kept)
            for user in owners[record]
        )
    crowded = Counter(user for users in owners.values() for user in users)
    assert {r for r in owners if all(crowded[user] <= limit for user in owners[r])} <= kept


def test_the_order_of_rows_and_repeated_rows_decide_nothing() -> None:
    pairs = random_pairs(3)
    shuffled = [*pairs, *pairs[::3]]
    random.Random(1).shuffle(shuffled)
    assert kept_by(shuffled, 2) == kept_by(pairs, 2)
    assert len({frozenset(kept_by(pairs, 2, seed)) for seed in range(5)}) > 1


def test_without_shared_records_no_user_decides_about_another() -> None:
    """A user who is removed with all records leaves what is kept of the rest as it was, as add-remove asks for."""
    pairs = [(f"r{k}", f"u{k % 7}") for k in range(70)]
    kept, owners = kept_by(pairs, 3), users_of(pairs)
    for gone in {user for _, user in pairs}:
        rest = [pair for pair in pairs if pair[1] != gone]
        assert kept_by(rest, 3) == {record for record in kept if gone not in owners[record]}


def test_every_record_of_a_user_is_kept_as_often() -> None:
    """By the hash of the seed, the first of ten records is as likely to be kept as any: 400 seeds, five standard deviations."""
    pairs = [(f"r{k}", "u") for k in range(10)]
    counts = Counter(record for seed in range(400) for record in kept_by(pairs, 3, seed))
    assert sum(counts.values()) == 1200
    assert all(abs(count - 120) <= 5 * (400 * 0.3 * 0.7) ** 0.5 for count in counts.values())


def around(pairs: Pairs, among: set[str]) -> dict[str, int]:
    """|N(e)| by sets."""
    owners = users_of(pairs)
    return {one: sum(bool(owners[one] & owners[other]) for other in among) for one in among}


@pytest.mark.parametrize("seed", range(4))
def test_neighbours_are_counted_once_each(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyaccount.data.bounding.ENTRIES", 7)
    pairs = random_pairs(seed)
    table = table_of(pairs)
    chance = np.random.default_rng(seed)
    for share in (0.0, 0.5, 1.0):
        among = chance.random(len(table.record_names)) < share
        counted = neighbour_count(table, among)
        expected = around(pairs, {table.record_names[r] for r in np.flatnonzero(among)})
        found = {table.record_names[r]: int(count) for r, count in enumerate(counted) if among[r]}
        assert found == expected
        assert not counted[~among].any()


def test_more_neighbours_than_a_byte_counts() -> None:
    pairs = [(f"r{k}", user) for k in range(512) for user in ("u", "v")]
    table = table_of(pairs)
    assert set(neighbour_count(table, np.ones(512, dtype=np.bool_)).tolist()) == {512}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [2, 4, 8])
def test_neighbourhoods_are_kept_small(seed: int, most: int) -> None:
    pairs = random_pairs(seed, records=80, users=40)
    table = table_of(pairs)
    everyone = np.ones(len(table.record_names), dtype=np.bool_)
    kept, removed = within_neighbourhoods(table, 3, 0, everyone, most)
    names = {table.record_names[r] for r in np.flatnonzero(kept)}
    assert max(around(pairs, names).values()) <= most
    assert not (kept & removed).any()
    # What was removed left room, which was used.
    assert (kept == kept_candidates(table, 3, 0, everyone & ~removed)).all()
    if most == 8 and not removed.any():
        assert (kept == kept_candidates(table, 3, 0, everyone)).all()


def test_a_record_that_all_share_goes_and_theirs_stay() -> None:
    """The toy example of the paper's Appendix C."""
    pairs = [(f"r{k}", f"u{k}") for k in range(50)] + [("hub", f"u{k}") for k in range(50)]
    table = table_of(pairs)
    kept, removed = within_neighbourhoods(table, 2, 0, np.ones(51, dtype=np.bool_), 10)
    assert [table.record_names[r] for r in np.flatnonzero(removed)] == ["hub"]
    assert kept.sum() == 50


@pytest.mark.parametrize(("b", "p"), [(8, 0.01), (4, 0.0625), (1, 0.3), (100, 0.5), (3, 1 / 3)])
def test_the_rule_of_thumb(b: int, p: float) -> None:
    most = rule(b, p)
    assert most == 1 or b * p * most < 1.0
    assert b * p * (most + 1) >= 1.0
