"""Runs with a matrix whose participations may overlap: Poisson sampling, allocations, and groups of records."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr  # type: ignore[import-untyped]

import pyaccount
from pyaccount.errors import DocumentError
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.normal_form import normal_form
from pyaccount.plan.samplers.b_min_sep import ways

Array = NDArray[np.float64]


def written(sampler: dict[str, Any], matrix: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a document of a short run with two bands."""
    privacy = {"adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-3} | changes.pop("privacy", {})
    training = {"iterations": 8, "sampling_probability": 0.1} | changes.pop("training", {})
    return {
        "pyaccount": 1,
        "name": "overlapping",
        "privacy": privacy,
        "training": {key: value for key, value in training.items() if value is not None},
        "sampler": sampler,
        "matrix": matrix or {"kind": "toeplitz", "coefficients": [1.0, 0.5], "normalize": False},
        "noise": {"multiplier": 2.0},
        "accounting": {"seed": 1},
        **changes,
    }


def plan(document: dict[str, Any]) -> Any:
    return compile_document(pyaccount.load(document))


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(DocumentError) as caught:
        plan(document)
    return "; ".join(one.message for one in caught.value.problems)


# ---- gradients that are chosen after looking


def best_of_two_rounds(chances: dict[tuple[int, int], float], matrix: Array, epsilon: float, first: float) -> float:
    """Return the largest ∫ (P − e^ε R)₊ over gradients of two rounds, the second one chosen after the first output.

    P = Σ_x w_x N((C_00 x_0 g_0, C_10 x_0 g_0 + C_11 x_1 g_1(y_0)), I) and R = N(0, I). For each y_0 the best g_1 of a grid is
    taken; the integral over y_1 is a sum of normal probabilities on both sides of the roots of P/R, found on a fine grid.
    """
    step = 0.1
    y0 = np.arange(-9.0, 11.0, step)
    y1 = np.arange(-12.0, 14.0, 0.02)
    best = np.zeros(len(y0))
    for second in np.linspace(-1.0, 1.0, 9):
        densities = np.zeros((len(y0), len(y1)))
        for (x0, x1), weight in chances.items():
            m0 = matrix[0, 0] * x0 * first
            m1 = matrix[1, 0] * x0 * first + matrix[1, 1] * x1 * second
            exponent = (m0 * y0 - 0.5 * m0 * m0)[:, None] + (m1 * y1 - 0.5 * m1 * m1)[None, :]
            densities += weight * np.exp(exponent)
        gain = np.maximum(densities - np.exp(epsilon), 0.0) @ (np.exp(-0.5 * y1 * y1) / np.sqrt(2 * np.pi) * 0.02)
        best = np.maximum(best, gain)
    return float(best @ (np.exp(-0.5 * y0 * y0) / np.sqrt(2 * np.pi) * step))


@pytest.mark.parametrize(
    ("chances", "epsilon"),
    [
        ({(0, 0): 0.49, (0, 1): 0.21, (1, 0): 0.21, (1, 1): 0.09}, 0.4),
        ({(0, 0): 0.7, (1, 1): 0.3}, 0.4),
        ({(0, 1): 0.5, (1, 0): 0.5}, 0.2),
        ({(0, 0): 0.5, (1, 0): 0.3, (2, 1): 0.2}, 1.0),
    ],
)
def test_no_gradients_chosen_after_looking_are_worse_than_ones(
    chances: dict[tuple[int, int], float], epsilon: float
) -> None:
    matrix = np.array([[0.9, 0.0], [0.6, 0.8]])
    ones = best_of_two_rounds(chances, matrix, epsilon, 1.0)
    for first in (-1.0, -0.6, -0.2, 0.3, 0.8):
        assert best_of_two_rounds(chances, matrix, epsilon, first) <= ones * (1.0 + 1e-6)
    # With a negative entry other gradients are worse, which the search finds: so it can.
    signed = np.array([[0.9, 0.0], [-0.6, 0.8]])
    if all(chances.get(x, 0.0) > 0.0 for x in ((0, 0), (1, 1))) and chances.get((1, 0), 0.0) == 0.0:
        mixed = best_of_two_rounds(chances, signed, epsilon, 1.0)
        constant = sum_of_ones(chances, signed, epsilon)
        assert mixed > constant * 1.05


def sum_of_ones(chances: dict[tuple[int, int], float], matrix: Array, epsilon: float) -> float:
    """Return ∫ (P − e^ε R)₊ for gradients of 1, where P has one mean besides 0, by the formula of two normal laws."""
    ((pattern, weight),) = [(x, w) for x, w in chances.items() if any(x)]
    mean = float(np.linalg.norm(matrix @ np.array(pattern)))
    level = (np.exp(epsilon) - (1.0 - weight)) / weight
    threshold = np.log(level) / mean + 0.5 * mean
    return float(weight * (ndtr(mean - threshold) - level * ndtr(-threshold)))


# ---- what is certified, and how


def test_draws_and_records_of_a_group_are_coins_alike() -> None:
    twice = written({"kind": "poisson", "draws_per_iteration": 2}, training={"sampling_probability": 0.05})
    group = written({"kind": "poisson"}, privacy={"group_size": 2}, training={"sampling_probability": 0.05})
    recipes = [plan(document).at().mechanism().recipe for document in (twice, group)]
    assert recipes[0] == recipes[1]
    assert recipes[0].constructor == "Sampled.windows"


def test_a_single_band_needs_no_windows() -> None:
    document = written({"kind": "poisson"}, {"kind": "toeplitz", "coefficients": [1.0]})
    assert plan(document).at().mechanism().recipe.constructor == "Sampled.renewal"


def test_few_windows_are_counted_exactly() -> None:
    few = plan(written({"kind": "poisson"}, {"kind": "banded-square-root", "bands": 12}, training={"iterations": 40}))
    (reduction,) = few.reductions
    assert reduction.tight
    assert reduction.remark is None


def test_large_groups_are_not_counted() -> None:
    one_band = {"kind": "toeplitz", "coefficients": [1.0]}
    for group, probability in ((65, 0.1), (64, 1e-5)):
        privacy, training = {"group_size": group}, {"sampling_probability": probability}
        assert "too many patterns" in refusal(
            written({"kind": "poisson"}, one_band, privacy=privacy, training=training)
        )
    # Without a matrix they are counted by their logarithms.
    document = written({"kind": "poisson"}, privacy={"group_size": 65}, accounting={"seed": 1, "method": "monte-carlo"})
    del document["matrix"]
    assert plan(document).at().mechanism().recipe.constructor == "Sampled.overlapping"


def test_normal_forms_say_what_was_analysed() -> None:
    def form(document: dict[str, Any]) -> Any:
        text = normal_form(plan(document).at())
        return None if text is None else json.loads(text)["mechanism"]

    sampler = form(written({"kind": "poisson"}))["sampler"]
    assert sampler == {"kind": "spaced", "probability": "0.1", "separation": "1", "start": "cold"}
    assert form(written({"kind": "poisson", "draws_per_iteration": 2})) is None
    allocation = {"kind": "random-allocation", "iterations_per_allocation": 4}
    # Columns reach from one allocation into the next, so two of them are not one of them twice.
    assert form(written(allocation, training={"iterations": 8, "sampling_probability": None})) is None
    once = form(written(allocation, training={"iterations": 4, "sampling_probability": None}))
    assert (once["kind"], once["rounds"]) == ("run", "4")


@pytest.mark.parametrize(
    ("sampler", "changes", "words"),
    [
        (
            {"kind": "poisson", "truncate_to": 4},
            {"privacy": {"adjacency": "zero-out"}, "training": {"dataset_size": 20}},
            "with a matrix, truncated batches",
        ),
        ({"kind": "poisson"}, {"accounting": {"method": "pld"}}, "no privacy loss distribution"),
        (
            {"kind": "poisson"},
            {"matrix": {"kind": "banded-square-root", "bands": 13}, "training": {"iterations": 40}},
            "too many patterns",
        ),
        (
            {"kind": "poisson"},
            {"matrix": {"kind": "banded-square-root", "bands": 7}, "privacy": {"group_size": 3}},
            "too many patterns",
        ),
        (
            {"kind": "poisson"},
            {"matrix": {"kind": "blt", "scales": [0.1], "decays": [0.5]}},
            "a banded Toeplitz matrix",
        ),
        ({"kind": "b-min-sep", "min_separation": 60}, {"privacy": {"group_size": 3}}, "too many combinations"),
        ({"kind": "b-min-sep", "min_separation": 2}, {"privacy": {"group_size": "solve"}}, "give the size"),
        (
            {"kind": "random-allocation", "iterations_per_allocation": 4, "participations": 4},
            {"training": {"sampling_probability": None}},
            "nothing is sampled",
        ),
        (
            {"kind": "random-allocation", "iterations_per_allocation": 4},
            {"training": {"sampling_probability": None}, "privacy": {"group_size": 2}},
            "groups of records",
        ),
        (
            {"kind": "with-replacement"},
            {"training": {"sampling_probability": None, "dataset_size": 20, "expected_batch_size": 2}},
            "use poisson",
        ),
    ],
)
def test_what_is_not_covered_is_refused(sampler: dict[str, Any], changes: dict[str, Any], words: str) -> None:
    assert words in refusal(written(sampler, **changes))


def test_the_ways_of_a_group_are_counted() -> None:
    for b, g in ((1, 3), (2, 1), (3, 2), (5, 3)):
        states: set[tuple[int, ...]] = {(b,) * g}
        todo, total = [(b,) * g], 0
        while todo:
            ages = todo.pop()
            free = ages.count(b)
            total += free + 1
            for joined in range(free + 1):
                rest = [age + 1 for age in ages if age < b]
                after = tuple(sorted([*rest, *[b] * (free - joined), *[min(b, 1)] * joined]))
                if after not in states:
                    states.add(after)
                    todo.append(after)
        assert total <= ways(b, g)
        if g <= b - 1 or b == 1:
            assert total == ways(b, g)
