"""Points of a profile that share their compositions, compared with points that are asked for one by one."""

from typing import Any

import pytest
from plain_documents import sectioned

import pyaccount
from pyaccount.directions import DIRECTIONS
from pyaccount.execute.engine import Engine, Question
from pyaccount.execute.shared_points import MANY, points_of, share_compositions

_ROUNDS = {"dataset_size": 1000, "expected_batch_size": 10}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "rounds above and below": sectioned(
        "adjacency=zero-out epsilon=solve delta=1e-5 sampler=poisson truncate_to=15 multiplier=1.0",
        training={**_ROUNDS, "iterations": 50},
    ),
    "many kinds": {
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
        "phases": [
            sectioned(name=f"p{k}", training={**_ROUNDS, "iterations": 1}, sampler="poisson", multiplier=0.8 + 0.01 * k)
            for k in range(MANY)
        ],
    },
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_points_that_share_compositions_are_those_asked_for_one_by_one(name: str) -> None:
    bounds = pyaccount.compile({"pyaccount": 1, "name": "shared", **DOCUMENTS[name]}).at().bounds()
    assert share_compositions(bounds)
    engine, points, tolerance = Engine(), (0.0, 2.0, 0.3, 1.0, 4.0, 0.3), 0.01
    found = points_of(engine, bounds, points, tolerance)
    for point, answer in zip(points, found, strict=True):
        assert answer.question == Question(point, None, tolerance)
        alone = engine.ask(bounds, answer.question)
        for side in DIRECTIONS:
            one, other = answer.directions[side], alone.directions[side]
            # Both enclose the range between the mechanism's bounds.
            assert one.lower <= other.upper
            assert other.lower <= one.upper
            for account, single in ((one.upper_account, other.upper_account), (one.lower_account, other.lower_account)):
                assert account.upper - account.lower <= tolerance * account.upper
                assert max(account.lower, single.lower) <= min(account.upper, single.upper)


def test_points_of_few_kinds_are_asked_for_one_by_one() -> None:
    document = {**DOCUMENTS["many kinds"], "phases": DOCUMENTS["many kinds"]["phases"][: MANY - 1]}
    assert not share_compositions(pyaccount.compile({"pyaccount": 1, "name": "alone", **document}).at().bounds())
