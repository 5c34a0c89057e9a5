"""Samplers that draw the same batches at the ends of their parameters: equal laws, enumerated, have equal bounds."""

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import pytest
from plain_documents import doc
from snapshots import Snapshot

import pyaccount

#: Records of small data sets, and how many draws.
N, DRAWS = 3, 2


def two_stages(subsets: list[tuple[int, ...]], draws: int) -> dict[tuple[int, ...], Fraction]:
    """The law of the batch, as sorted records: one of the equally likely subsets, then so many draws from it."""
    law: dict[tuple[int, ...], Fraction] = {}
    for subset in subsets:
        for slots in product(subset, repeat=draws):
            batch = tuple(sorted(slots))
            law[batch] = law.get(batch, Fraction(0)) + Fraction(1, len(subsets) * len(subset) ** draws)
    return law


@pytest.mark.parametrize("b", [1, 2, 3])
def test_one_draw_from_a_subset_is_one_from_the_data_set(b: int) -> None:
    uniform = two_stages([tuple(range(N))], 1)
    assert two_stages(list(combinations(range(N), b)), 1) == uniform
    assert two_stages(list(product(range(N), repeat=b)), 1) == uniform


def test_a_subset_of_all_records_is_the_data_set() -> None:
    assert two_stages(list(combinations(range(N), N)), DRAWS) == two_stages([tuple(range(N))], DRAWS)
    # Any smaller one ties the draws to one another, and so does a subset that was drawn with replacement.
    assert two_stages(list(combinations(range(N), N - 1)), DRAWS) != two_stages([tuple(range(N))], DRAWS)
    assert two_stages(list(product(range(N), repeat=N)), DRAWS) != two_stages([tuple(range(N))], DRAWS)


def epsilon(adjacency: str, sampler: dict[str, Any], batch: int | None, *, group: int = 1) -> float:
    """The ε certified for 20 rounds on 1000 records."""
    training: dict[str, Any] = {"dataset_size": 1000, "iterations": 20}
    certificate = pyaccount.certify(
        doc(
            "name='equal laws' delta=1e-6 multiplier=1.0 profile=[]",
            adjacency=adjacency,
            group_size=group,
            training=training if batch is None else training | {"expected_batch_size": batch},
            sampler=sampler,
        )
    )
    return certificate.epsilon


EVERYWHERE = ("add-remove", "zero-out", "replace-one")
PUBLIC_SIZE = EVERYWHERE[1:]
Drawn = tuple[dict[str, Any], int | None]


def subsets(kind: str, size: int, draws: int) -> Drawn:
    """A two-stage sampler and its batch."""
    return {"kind": kind, "subset_size": size}, draws


def called(kind: str, batch: int | None, **fields: int) -> Drawn:
    """Another sampler and its batch."""
    return {"kind": kind, **fields}, batch


#: Two samplers, where both are the same, and the relative distance of two intervals of one number (0: the same rounds).
PAIRS: list[tuple[Drawn, Drawn, tuple[str, ...], float]] = [
    (subsets("must-ow", 10, 1), called("with-replacement", 1), EVERYWHERE, 0.0),
    (subsets("must-ww", 10, 1), called("with-replacement", 1), EVERYWHERE, 0.0),
    (subsets("must-wo", 10, 5), called("with-replacement", 5), EVERYWHERE, 0.0),
    (subsets("must-ow", 1000, 5), called("with-replacement", 5), PUBLIC_SIZE, 0.0),
    (subsets("must-ow", 1, 5), subsets("must-ww", 1, 5), EVERYWHERE, 1e-9),
    (called("fixed-size", 1), called("with-replacement", 1), EVERYWHERE, 1e-9),
    (called("fixed-size", 1000), called("none", None), PUBLIC_SIZE, 1e-4),
    (called("poisson", 1000), called("none", None), EVERYWHERE, 0.0),
    (called("balls-in-bins", 1000, bins=1), called("none", None), EVERYWHERE, 1e-4),
    (
        called("random-allocation", None, iterations_per_allocation=20, participations=20),
        called("none", None),
        ("add-remove", "zero-out"),
        1e-4,
    ),
    (called("b-min-sep", 50, min_separation=1), called("poisson", 50), EVERYWHERE, 0.0),
    (called("cyclic-poisson", 50, partitions=1), called("poisson", 50), EVERYWHERE, 0.0),
]
CASES = [(adjacency, one, other, apart) for one, other, where, apart in PAIRS for adjacency in where]


@pytest.mark.parametrize(
    ("adjacency", "one", "other", "apart"),
    CASES,
    ids=[f"{adjacency}-{one[0]['kind']}-{other[0]['kind']}" for adjacency, one, other, _ in CASES],
)
def test_equal_laws_have_equal_bounds(adjacency: str, one: Drawn, other: Drawn, apart: float) -> None:
    assert epsilon(adjacency, *one) == pytest.approx(epsilon(adjacency, *other), rel=apart, abs=0.0)


def test_groups_are_covered_where_draws_are_those_with_replacement(snapshot: Snapshot) -> None:
    for adjacency in EVERYWHERE:
        found = epsilon(adjacency, {"kind": "must-ow", "subset_size": 10}, 1, group=2)
        assert found == epsilon(adjacency, {"kind": "with-replacement"}, 1, group=2)
    snapshot.raised(epsilon, "add-remove", {"kind": "must-ow", "subset_size": 10}, 2, group=2)
