"""Batches of a fixed size under a matrix: real runs of few records, whose batches are enumerated, against what is certified."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pyaccount
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.normal_form import normal_form

Array = NDArray[np.float64]
#: What a record contributes in the second round, by the first output.
Second = Callable[[Array], Array]

MATRIX = np.array([[1.0, 0.0], [0.5, 1.0]])
SIGMA, RECORDS, BATCH = 1.6, 4, 2
STEP = 0.04
GRID = np.arange(-17.0, 17.0, STEP)


def written(**changes: Any) -> dict[str, Any]:
    """Return a document of two rounds with two bands."""
    return {
        "pyaccount": 1,
        "name": "overlapping",
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 0.1} | changes.pop("privacy", {}),
        "training": {"iterations": 2, "dataset_size": RECORDS, "expected_batch_size": BATCH},
        "sampler": {"kind": "fixed-size"},
        "matrix": {"kind": "toeplitz", "coefficients": [1.0, 0.5], "normalize": False},
        "noise": {"multiplier": SIGMA},
        "accounting": {"seed": 1, "tolerance": 0.01},
        **changes,
    }


def densities(first: list[float], second: list[Second]) -> Array:
    """Return the density of two outputs on a grid if every batch of BATCH of these records is as likely as any other."""
    total = np.zeros((len(GRID), len(GRID)))
    batches = list(itertools.combinations(range(len(first)), BATCH))
    later = [
        sum((second[k](GRID) for k in batch), np.zeros(len(GRID)))  # by the first output
        for batch in batches
    ]
    for one in batches:
        sum_of_first = sum(first[k] for k in one)
        before = np.exp(-0.5 * ((GRID - MATRIX[0, 0] * sum_of_first) / SIGMA) ** 2)
        for sums in later:
            mean = MATRIX[1, 0] * sum_of_first + MATRIX[1, 1] * sums
            total += before[:, None] * np.exp(-0.5 * ((GRID[None, :] - mean[:, None]) / SIGMA) ** 2)
    return total * (STEP / SIGMA) ** 2 / (2.0 * np.pi * len(batches) ** 2)


def delta(first: list[float], second: list[Second], epsilon: float) -> float:
    """Return the larger δ of the two orders; the last record is the one that is added or removed."""
    p, q = densities(first, second), densities(first[:-1], second[:-1])
    return float(max(np.maximum(a - np.exp(epsilon) * b, 0.0).sum() for a, b in ((p, q), (q, p))))


def always(value: float) -> Second:
    return lambda output: np.full(len(output), value)


#: The record contributes 1, and all others −1.
OPPOSED: tuple[list[float], list[Second]] = (
    [-1.0] * (RECORDS - 1) + [1.0],
    [always(-1.0)] * (RECORDS - 1) + [always(1.0)],
)


def test_opposed_gradients_attain_the_interval() -> None:
    certificate = json.loads(pyaccount.certify(written()).to_json())["guarantee"]
    assert delta(*OPPOSED, certificate["epsilon"]) <= 0.1 <= delta(*OPPOSED, certificate["epsilon_lower"])
    assert certificate["epsilon_lower"] >= 0.93 * certificate["epsilon"]
    # Draws that displace nobody hide more: a bound without doubled shifts would be false, and this finds it.
    plain = written(sampler={"kind": "poisson"})
    assert delta(*OPPOSED, pyaccount.certify(plain).epsilon) > 0.15


def test_no_other_gradients_exceed_it() -> None:
    epsilon, random = pyaccount.certify(written()).epsilon, np.random.default_rng(5)
    for _ in range(12):
        first = [float(value) for value in random.choice([-1.0, -0.5, 0.0, 1.0], RECORDS)]
        second: list[Second] = []
        for _record in range(RECORDS):
            below, above, at = random.choice([-1.0, 0.0, 1.0]), random.choice([-1.0, 0.3, 1.0]), random.normal()
            second.append(lambda output, a=below, b=above, at=at: np.where(output < at, a, b))  # type: ignore[misc]
        assert delta(first, second, epsilon) <= 0.1


def test_it_is_poisson_sampling_with_half_of_the_noise() -> None:
    ours = compile_document(pyaccount.load(written(privacy={"epsilon": 1.0})))
    theirs = compile_document(
        pyaccount.load(
            written(privacy={"epsilon": 1.0}, sampler={"kind": "poisson"}, noise={"multiplier": 0.5 * SIGMA})
        )
    )
    assert ours.at().mechanism().recipe == theirs.at().mechanism().recipe
    (reduction,) = ours.reductions
    assert reduction.tight
    assert "2Cx" in reduction.pair
    assert any("lower bound on the number of records" in text for text in reduction.assumptions)
    # If participations are public, the record takes another one's place in each of its rounds.
    (both,) = ours.theorems[0].public()["remove"].upper
    (once,) = theirs.theorems[0].public()["remove"].upper
    assert both.profile.sensitivity / SIGMA == once.profile.sensitivity / (0.5 * SIGMA)


def test_it_has_no_normal_form() -> None:
    assert normal_form(compile_document(pyaccount.load(written(privacy={"epsilon": 1.0}))).at()) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": {"adjacency": "zero-out"}},
        {"privacy": {"adjacency": "replace-one"}},
        {"privacy": {"group_size": 2}},
        {"training": {"iterations": 2, "dataset_size": 4, "expected_batch_size": 4}},
        {"privacy": {"epsilon": 1.0}, "training": {"iterations": 2, "dataset_size": 4, "expected_batch_size": "solve"}},
        {
            "matrix": {"kind": "banded-square-root", "bands": 13},
            "training": {"iterations": 40, "dataset_size": 4, "expected_batch_size": 1},
        },
    ],
)
def test_what_is_not_covered_is_refused(changes: dict[str, Any], snapshot: Any) -> None:
    snapshot.raised(lambda: compile_document(pyaccount.load(written(**changes))))
