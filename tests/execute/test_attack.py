"""A small share of `benchmarks/attack.py`: random small documents of every sampled kind against their exact δ(ε)."""

from collections import Counter
from contextlib import nullcontext
from typing import NamedTuple

import pytest
from attack_checks import FAR, Attack, Finding, Outcome
from attack_documents import KINDS, draw
from attack_powers import wherever_possible


class Attacked(NamedTuple):
    """A group's kinds, the number of its documents, what became of them, and how often each way of sampling a power was tried."""

    kinds: tuple[str, ...]
    documents: int
    outcome: Outcome
    sorts: Counter[str]


#: The seeds of documents that take a fraction of a second: each kind, every blank, every adjacency, extreme p, noise and ε.
SEEDS: dict[str, tuple[int, ...]] = {
    "b-min-sep": (7, 14),
    "b-min-sep, blt": (6, 12),
    "b-min-sep, banded-inverse": (1, 8),
    "b-min-sep, dense": (14,),
    "user-b-min-sep": (3, 13),
    "user-b-min-sep, long columns": (4,),
    "balls-in-bins": (4, 8, 12, 15),
    "cyclic-poisson": (2, 6),
    "random-allocation": (4,),
    "poisson": (6, 16),
    "poisson, matrix": (2, 9),
    "poisson, group": (2, 5),
    "b-min-sep, group": (8, 11),
    "random-allocation, matrix": (7, 14),
    "truncated b-min-sep": (3,),
    "truncated bins": (1, 11),
    "beside composed": (9, 14),
    "two sampled": (8, 12),
    "b-min-sep, powers": (8, 10, 18, 24),
    "b-min-sep, blocks": (17, 21, 27),
}
#: More of them, which are judged together with the others at night.
MORE_SEEDS: dict[str, tuple[int, ...]] = {
    "b-min-sep": (3, 8, 10, 15),
    "b-min-sep, blt": (9, 15),
    "b-min-sep, banded-inverse": (11,),
    "user-b-min-sep": (1, 6, 11),
    "user-b-min-sep, long columns": (7,),
    "balls-in-bins": (2, 7),
    "cyclic-poisson": (7, 10, 13, 15),
    "random-allocation": (3, 7, 11),
    "poisson": (1, 7),
    "poisson, matrix": (3, 7, 10),
    "poisson, group": (1, 3, 11),
    "b-min-sep, group": (3, 7, 9, 12),
    "random-allocation, matrix": (6, 9, 13),
    "truncated b-min-sep": (6,),
    "truncated bins": (6, 7),
    "beside composed": (2, 5),
    "b-min-sep, powers": (3, 15),
    "b-min-sep, blocks": (1, 26),
}
#: Kinds whose tests draw from powers, by blocks, and clip samples if possible.
SPECIAL = ("b-min-sep, powers", "b-min-sep, blocks")
#: What is counted of grids.
ONCE = "grids with a direction tested once"
#: The kinds whose documents are judged together. Each group takes about as long as every other, and they run beside each other.
GROUPS: dict[str, tuple[str, ...]] = {
    "records": ("b-min-sep", "b-min-sep, blt", "b-min-sep, banded-inverse", "b-min-sep, dense", "balls-in-bins"),
    "users and parts": ("user-b-min-sep", "user-b-min-sep, long columns", "cyclic-poisson", "random-allocation"),
    "truncated": ("truncated b-min-sep", "truncated bins", "poisson"),
    "overlapping, and groups": ("poisson, matrix", "poisson, group", "b-min-sep, group", "random-allocation, matrix"),
    "several, and powers": ("beside composed", "two sampled", *SPECIAL),
}


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param((group, (SEEDS,)), id=group) for group in GROUPS),
        *(
            pytest.param((group, (SEEDS, MORE_SEEDS)), id=f"{group}, more", marks=pytest.mark.nightly)
            for group in GROUPS
        ),
    ],
)
def attack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Attacked:
    """Return the outcomes of a group's documents, and the kinds of the special tests."""
    folder, total, sorts = tmp_path_factory.mktemp("matrices"), Outcome(), Counter[str]()
    group, seeds = request.param
    attacked = [(kind, seed) for some in seeds for kind in GROUPS[group] for seed in some.get(kind, ())]
    for kind, seed in attacked:
        truth = draw(kind, seed, folder)
        assert truth is not None, (kind, seed)
        with wherever_possible(seed) if kind in SPECIAL else nullcontext(Counter[str]()) as counts:
            total.add(Attack(truth, time_limit=3600.0).run())
        sorts.update(counts)
    return Attacked(GROUPS[group], len(attacked), total, sorts)


@pytest.fixture(scope="module")
def found(attack: Attacked) -> Outcome:
    return attack.outcome


def far(scores: list[tuple[float, Finding]]) -> list[tuple[float, Finding]]:
    return [pair for pair in scores if abs(pair[0]) > FAR]


def test_every_kind_is_in_a_group() -> None:
    assert sorted(kind for kinds in GROUPS.values() for kind in kinds) == sorted(SEEDS)
    assert set(SEEDS) == set(KINDS)


def test_every_document_is_attacked(attack: Attacked) -> None:
    found = attack.outcome
    assert not found.refused
    assert found.documents == attack.documents > 0
    assert found.bounds > 40 * found.documents
    # Most documents list the points of a profile, which are then estimated.
    assert len(found.scores) > 7 * found.documents


def test_every_way_of_sampling_a_power_is_attacked(attack: Attacked) -> None:
    special = set(attack.kinds) & set(SPECIAL)
    for sort in ("power, round by round", "power, blocks of 2", "power with a floor", "clipped", ONCE):
        assert (attack.sorts[sort] > 3) == bool(special), attack.sorts


def test_no_bound_is_beaten(found: Outcome) -> None:
    assert not found.beaten


def test_estimates_lie_in_their_own_intervals(found: Outcome) -> None:
    assert not found.outside


def test_standard_errors_say_how_far_off_estimates_are(found: Outcome) -> None:
    assert len(far(found.scores)) <= 0.02 * len(found.scores), far(found.scores)


def test_means_of_tests_are_of_what_is_tested(found: Outcome) -> None:
    # A test stops when its samples happen to be small, so a few more estimates are far off.
    assert len(far(found.tests)) <= 0.03 * len(found.tests), far(found.tests)


def test_no_estimate_is_certain_but_an_exact_one(found: Outcome) -> None:
    assert not found.sure


def test_the_pilot_finds_the_noise(found: Outcome) -> None:
    missed = [one for one in found.roots if abs(one[0]) > 0.01]
    assert not missed
