"""A small share of `benchmarks/attack.py`: random small documents of every sampled kind against their exact δ(ε)."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import pytest
from attack_checks import FAR, Attack, Finding, Outcome
from attack_documents import KINDS, draw
from attack_powers import wherever_possible

#: The seeds of documents that take a fraction of a second: each kind, every blank, extreme values of p, noise and ε.
SEEDS: dict[str, tuple[int, ...]] = {
    "b-min-sep": (3, 7, 8, 10, 14, 15),
    "b-min-sep, blt": (6, 9, 12, 15),
    "b-min-sep, banded-inverse": (1, 8, 11),
    "b-min-sep, dense": (14,),
    "user-b-min-sep": (1, 3, 6, 11, 13),
    "user-b-min-sep, long columns": (4, 7),
    "balls-in-bins": (2, 4, 7, 8, 12, 15),
    "cyclic-poisson": (2, 6, 7, 10, 13, 15),
    "random-allocation": (3, 4, 7, 11),
    "poisson": (1, 6, 7, 16),
    "truncated b-min-sep": (3, 6),
    "truncated bins": (1, 6, 7, 11),
    "beside composed": (2, 5, 9, 14),
    "two sampled": (8, 12),
    "b-min-sep, powers": (3, 8, 10, 18, 24),
    "b-min-sep, blocks": (1, 17, 21, 26, 27),
}
#: Kinds whose tests draw from powers, by blocks, and clip samples if possible.
SPECIAL = ("b-min-sep, powers", "b-min-sep, blocks")


@pytest.fixture(scope="module")
def attack(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Counter[str]]:
    """Return all documents' outcomes, and the kinds of the special tests."""
    folder, total, sorts = tmp_path_factory.mktemp("matrices"), Outcome(), Counter[str]()
    for kind, seeds in SEEDS.items():
        for seed in seeds:
            truth = draw(kind, seed, folder)
            assert truth is not None, (kind, seed)
            with wherever_possible(seed) if kind in SPECIAL else nullcontext(Counter[str]()) as counts:
                total.add(Attack(truth, time_limit=3600.0).run())
            sorts.update(counts)
    return total, sorts


@pytest.fixture(scope="module")
def found(attack: tuple[Outcome, Counter[str]]) -> Outcome:
    return attack[0]


def far(scores: list[tuple[float, Finding]]) -> list[tuple[float, Finding]]:
    return [pair for pair in scores if abs(pair[0]) > FAR]


def test_every_kind_is_attacked(found: Outcome) -> None:
    assert set(SEEDS) == set(KINDS)
    assert not found.refused
    assert found.documents == sum(len(seeds) for seeds in SEEDS.values())
    assert found.bounds > 40 * found.documents
    assert len(found.scores) > 15 * found.documents


def test_every_way_of_sampling_a_power_is_attacked(attack: tuple[Outcome, Counter[str]]) -> None:
    _, sorts = attack
    for sort in ("power, round by round", "power, blocks of 2", "clipped", "grids with a direction tested once"):
        assert sorts[sort] > 3, sorts


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
