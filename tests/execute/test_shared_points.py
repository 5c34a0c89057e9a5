"""Points of a profile that share their compositions, compared with points that are asked for one by one."""

from typing import Any

import pytest
from plain_documents import sectioned

import pyaccount
from pyaccount.directions import DIRECTIONS
from pyaccount.execute.engine import Engine, Question
from pyaccount.execute.shared_points import at_its_upper_end, points_of

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
            for k in range(32)
        ],
    },
    # In the direction add, δ at the ε of the direction remove is about 1e-25.
    "far directions": {
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
        "phases": [
            {"mechanism": {"kind": "stated", "epsilon": 0.0043}, "count": 24},
            {"mechanism": {"kind": "laplace", "scale": 3.22}, "count": 2},
            {
                "mechanism": {
                    "kind": "mixture-of-gaussians",
                    "sigma": 4.4642,
                    "sensitivities": [0, 0.3, 3],
                    "probabilities": [0.5, 0.3, 0.2],
                },
                "count": 5,
            },
            {
                "mechanism": {"kind": "laplace", "scale": 5.996},
                "sampler": {"kind": "poisson", "sampling_probability": 0.341},
                "count": 7,
            },
        ],
    },
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_points_that_share_compositions_are_those_asked_for_one_by_one(name: str) -> None:
    bounds = pyaccount.compile({"pyaccount": 1, "name": "shared", **DOCUMENTS[name]}).at().bounds()
    engine, points, tolerance = Engine(), (0.0, 2.0, 0.3, 1.0, 4.0, 0.3), 0.01
    points = points[:4] if name == "far directions" else points
    found = points_of(engine, bounds, points, tolerance, 0.0)
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


def test_what_is_not_resolved_is_bounded_from_both_sides() -> None:
    bounds = pyaccount.compile({"pyaccount": 1, "name": "far", **DOCUMENTS["far directions"]}).at().bounds()
    engine, ignored = Engine(), 1e-11
    at_delta = engine.ask(bounds, Question(None, 1e-5, 1e-4))
    found = at_its_upper_end(engine, bounds, at_delta, 0.01, ignored)
    (among_others,) = points_of(engine, bounds, [at_delta.upper], 0.01, ignored)
    alone = engine.ask(bounds, found.question)
    for side in DIRECTIONS:
        exact, coarse = alone.directions[side], found.directions[side]
        assert coarse.lower <= exact.upper
        assert exact.lower <= coarse.upper
        assert coarse.upper - coarse.lower <= max(0.01 * coarse.upper, ignored)
        assert max(coarse.lower, among_others.directions[side].lower) <= exact.upper
    assert found.directions["remove"].upper > 9e-6
    assert engine.compositions < 10
