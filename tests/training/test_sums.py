"""Sums that no batch can have are refused by a public bound, which does not depend on the draws, and nothing is counted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from phases import phase
from snapshots import Snapshot
from training_runs import BASE, document, started

import pyaccount
from pyaccount.errors import RunError
from pyaccount.training import RunKey, TrainingRun
from pyaccount.training.batches import batches_of
from pyaccount.training.record import Recorded
from pyaccount.training.sums import check_norm

TRAINING = BASE["training"]
#: A sampler, its training section, and the largest number of contributions to a batch.
MOST: list[tuple[dict[str, Any], dict[str, Any], int]] = [
    ({"kind": "poisson"}, TRAINING, 40),
    ({"kind": "poisson", "draws_per_iteration": 3}, TRAINING, 120),
    ({"kind": "poisson", "truncate_to": 12}, TRAINING, 12),
    ({"kind": "fixed-size"}, TRAINING, 8),
    ({"kind": "with-replacement"}, TRAINING, 8),
    ({"kind": "must-ow", "subset_size": 20}, TRAINING, 8),
    ({"kind": "balls-in-bins", "bins": 4}, {"dataset_size": 40, "iterations": 12}, 40),
    ({"kind": "b-min-sep", "min_separation": 3}, TRAINING, 40),
    ({"kind": "random-allocation", "iterations_per_allocation": 4}, {"dataset_size": 40, "iterations": 12}, 40),
    ({"kind": "none"}, TRAINING, 8),
    # A size that may be secret does not enter the bound.
    ({"kind": "poisson"}, {"sampling_probability": 0.2, "iterations": 12}, 10**15),
]


@pytest.mark.parametrize(("sampler", "training", "most"), MOST, ids=lambda value: str(value)[:40])
def test_the_most_contributions_are_a_public_number(
    sampler: dict[str, Any], training: dict[str, Any], most: int
) -> None:
    asked = {name: BASE[name] for name in ("pyaccount", "name", "privacy", "noise")}
    read = pyaccount.load(asked | {"training": training, "sampler": sampler})
    batches = batches_of(phase(read), RunKey(bytes(32)), records=40)
    assert batches.most == most
    assert max(len(batches.batch(number)) for number in range(12)) <= most


def test_wild_sums_are_refused_and_not_counted(tmp_path: Path, snapshot: Snapshot) -> None:
    """A batch has at most 40 contributions of norm 1, and the bound has a small margin for roundings."""
    run = started(tmp_path)
    with run.step() as step:
        for wild in (1e6, 1e308, 41.0):
            with snapshot.raises(RunError) as caught:
                step.release(np.array([0.0, wild]))
            # The message does not contain the norm of the sum.
            assert f"{wild:g}" not in str(caught.value).replace("40", "")
        snapshot.raised(lambda: step.release({"a": np.full(3, 20.0, np.float32), "b": np.full(2, -30.0)}))
        snapshot.raised(lambda: step.release(np.full(100, 3e38, np.float32)))
        snapshot.raised(lambda: step.release(np.array([0.0, np.nan])))
        step.release(np.array([24.0, 32.0]))
    assert run.released == 1
    assert Recorded.read(tmp_path / "record.jsonl").rounds == 1


def test_every_sum_has_a_bound_of_its_own(tmp_path: Path, snapshot: Snapshot) -> None:
    noise = {"multiplier": 0.5, "also": [{"what": "a count", "multiplier": 30.0}]}
    run = started(tmp_path, {"noise": noise}, also_clip_norms={"a count": 0.5})
    with run.step() as step:
        snapshot.raised(lambda: step.release(np.zeros(3), also={"a count": np.array([-21.0])}))
        step.release(np.zeros(3), also={"a count": np.array([-20.0])})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_norm_is_that_of_all_arrays_together(dtype: Any, snapshot: Snapshot) -> None:
    generator = np.random.default_rng(4)
    arrays = {
        name: generator.normal(size=shape).astype(dtype) for name, shape in (("a", (300, 7)), ("b", ()), ("c", 900))
    }
    arrays["a"] = arrays["a"].T[::2]
    norm = float(np.sqrt(sum(np.sum(np.square(array, dtype=np.float64)) for array in arrays.values())))
    check_norm(arrays, norm / 10 / 1.015, 10)
    snapshot.raised(lambda: check_norm(arrays, norm / 10 / 1.016, 10))
    check_norm({"none": np.zeros(0, dtype)}, 1e-30, 1)


def test_groups_of_parameters_have_clip_norms_and_noise_of_their_own(tmp_path: Path) -> None:
    """A sum in `noise.also` may consist of several arrays, each with the noise of its group."""
    noise = {"multiplier": 0.5, "also": [{"what": "head", "multiplier": 8.0}]}
    asked = document({"noise": noise}, privacy={"epsilon": 300.0})
    size = 5000
    seen: dict[str, list[Any]] = {"body": [], "bias": [], "weight": []}
    with TrainingRun(asked, tmp_path, records=40, clip_norm=2.0, also_clip_norms={"head": 0.25}) as run:
        assert run.also_clip_norms == {"head": 0.25}
        for _ in range(12):
            with run.step() as step:
                zeros = {"bias": np.zeros(size), "weight": np.zeros((2, size), np.float32)}
                mean = step.release({"body": np.zeros(size)}, also={"head": zeros})
            head = step.also["head"]
            assert isinstance(mean, dict)
            assert isinstance(head, dict)
            assert {name: (array.dtype, array.shape) for name, array in head.items()} == {
                name: (array.dtype, array.shape) for name, array in zeros.items()
            }
            seen["body"].append(mean["body"] * run.normaliser(step.round))
            seen["bias"].append(head["bias"])
            seen["weight"].append(head["weight"])
    found = {name: float(np.std(np.array(rows, np.float64))) for name, rows in seen.items()}
    # The standard deviations are 0.5·2 and 8·0.25, to five standard errors.
    for name, sigma in (("body", 1.0), ("bias", 2.0), ("weight", 2.0)):
        assert abs(found[name] / sigma - 1.0) < 5.0 / np.sqrt(2.0 * 12 * size), name
    correlation = np.corrcoef(np.array(seen["body"]).ravel(), np.array(seen["bias"]).ravel())[0, 1]
    assert abs(correlation) < 5.0 / np.sqrt(12 * size)
