"""Schedules in documents: how they are written, and what is wrong with them, each with its place."""

from pathlib import Path
from typing import Any

import pytest
from plain_documents import sectioned
from scheduled_documents import SAMPLED, body, document, head
from snapshots import Snapshot

import pyaccount
from pyaccount.document.naming import named_files

POISSON = SAMPLED["poisson"]


def problems(source: Any) -> list[tuple[str, str]]:
    """Return the slugs and paths of the problems of a document that cannot be compiled."""
    with pytest.raises(pyaccount.DocumentError) as caught:
        pyaccount.compile(source)
    return [(problem.slug, problem.path_text) for problem in caught.value.problems]


def message(source: Any) -> str:
    with pytest.raises(pyaccount.DocumentError) as caught:
        pyaccount.compile(source)
    return caught.value.problems[0].message


@pytest.mark.parametrize(
    "schedule",
    [[1.5, 2, "2.5"], {"file": "a.csv"}, {"file": "a.csv", "column": "sigma"}, {"start": 2, "decay": 0.5, "every": 10}],
)
def test_what_is_written_is_kept(schedule: Any) -> None:
    loaded = pyaccount.load(document("poisson", schedule, 3, scale=1.5))
    again = pyaccount.load(loaded.to_mapping())
    assert again == loaded
    assert loaded.blank == ("privacy", "epsilon")
    assert pyaccount.load(document("poisson", schedule, 3, scale=1.25)) != loaded


def test_the_content_of_a_list_is_in_the_hash() -> None:
    one, other = (pyaccount.load(document("poisson", values, 2)) for values in ([1.0, 2.0], [2.0, 1.0]))
    assert one.sha256 != other.sha256


def test_lengths_that_differ_are_said_both() -> None:
    wrong = document("poisson", [1.0, 2.0], 3)
    assert problems(wrong) == [("contradiction", "noise.multiplier.schedule")]
    assert "2 values" in message(wrong)
    assert "3 iterations" in message(wrong)
    rate = document("poisson", [1.0] * 3, 3, sampling_probability={"schedule": [0.1, 0.2, 0.3, 0.4]})
    assert problems(rate) == [("contradiction", "training.sampling_probability.schedule")]
    assert "4 values" in message(rate)


@pytest.mark.parametrize(
    "multiplier",
    [
        {"schedule": [1, 0, 2]},
        {"schedule": [1, -2, "x"]},
        {"schedule": []},
        {"schedule": 3},
        {"schedule": ["solve", 1, 1]},
        {"schedule": {"start": 0, "decay": 1}},
        {"schedule": {"start": 1e-9, "decay": 1}},
        {"schedule": {"start": 1, "decay": 0}},
        {"schedule": {"start": 1}},
        {"schedule": {"start": 1, "decay": 1, "evry": 2}},
        {"schedule": {"file": "a.csv", "column": -1}},
        {"schedule": {"file": "a.csv", "column": True}},
        {"schedule": [1, 1, 1], "scale": 0},
        {"scale": 2},
        {"schedule": [1, 1, 1], "scale": "solve"},
    ],
)
def test_one_wrong_schedule(multiplier: Any, snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.compile, {**head(), **body(POISSON, 3, multiplier)})


def test_a_value_that_leaves_the_range_is_named_with_its_round() -> None:
    falls = document("poisson", {"start": 1e-4, "decay": 0.1, "every": 1}, 5)
    assert problems(falls) == [("out-of-range", "noise.multiplier.schedule")]
    assert "round 3, counted from 0" in message(falls)
    assert pyaccount.compile(document("poisson", {"start": 1e-4, "decay": 0.1, "every": 1, "least": 1e-5}, 5))
    scaled = document("poisson", [1.0, 2.0], 2, scale=1e-6)
    assert problems(document("poisson", [0.5, 2.0], 2, scale=1e-6)) == [("out-of-range", "noise.multiplier")]
    assert pyaccount.compile(scaled)
    grows = document("poisson", [1.0] * 5, 5, sampling_probability={"schedule": {"start": 0.5, "decay": 1.5}})
    assert problems(grows) == [("out-of-range", "training.sampling_probability.schedule")]


def test_a_rate_is_stated_once_and_epochs_need_one_rate() -> None:
    rate = {"schedule": [0.1, 0.2]}
    twice = document("poisson", [1.0, 1.0], 2, sampling_probability=rate, participation_rate=0.1)
    assert problems(twice) == [("contradiction", "training.participation_rate")]
    both = document(
        "poisson", [1.0, 1.0], 2, sampling_probability=rate, dataset_size=10, expected_batch_size={"schedule": [1, 2]}
    )
    assert problems(both) == [("contradiction", "training.expected_batch_size")]
    epochs = document(
        "poisson", {"start": 1, "decay": 1}, 2, sampling_probability={"schedule": {"start": 0.1, "decay": 1}}
    )
    del epochs["training"]["iterations"]
    epochs["training"]["epochs"] = 3
    assert problems(epochs) == [("contradiction", "training.epochs")]


def test_iterations_can_be_solved_for_only_if_the_schedule_goes_on() -> None:
    listed = document("poisson", [1.0, 2.0], 2)
    listed["training"]["iterations"], listed["privacy"]["epsilon"] = "solve", 3
    assert problems(listed) == [("contradiction", "training.iterations")]
    listed["noise"]["multiplier"] = {"schedule": {"start": 1.0, "decay": 0.99, "every": 5}}
    certificate = pyaccount.certify(listed)
    assert certificate.data.solved is not None
    rounds = int(certificate.data.solved.value)
    listed["privacy"]["epsilon"] = "solve"
    for iterations, holds in ((rounds, True), (rounds + 1, False)):
        listed["training"]["iterations"] = iterations
        assert (pyaccount.certify(listed).epsilon_lower <= 3.0) is holds


def test_what_is_not_analysed_with_a_schedule_is_refused() -> None:
    banded = document("poisson", [1.0, 2.0], 2) | sectioned(
        sampler="b-min-sep", min_separation=2, matrix="banded-square-root", bands=2
    )
    assert problems(banded) == [("no-valid-bound", "noise.multiplier")]
    assert "matrix" in message(banded)
    none = document("none", [1.0, 2.0], 2) | {"matrix": {"kind": "banded-square-root", "bands": 2}}
    assert problems(none) == [("no-valid-bound", "noise.multiplier")]
    bins = document("poisson", [1.0, 2.0], 2) | {"sampler": {"kind": "balls-in-bins", "bins": 2}}
    bins["training"] = {"iterations": 2}
    assert problems(bins) == [("no-valid-bound", "noise.multiplier")]
    sampled = document("poisson", [1.0, 2.0], 2) | {"accounting": {"method": "monte-carlo"}}
    assert problems(sampled) == [("no-valid-bound", "accounting.method")]
    apart = document("none", [1.0, 2.0], 2) | {"sampler": {"kind": "none", "min_separation": 2}}
    assert problems(apart) == [("no-valid-bound", "sampler.min_separation")]
    truncated = document("poisson", [1.0, 2.0], 2, dataset_size=50, sampling_probability={"schedule": [0.1, 0.2]})
    truncated["sampler"] = {"kind": "poisson", "truncate_to": 20}
    assert problems(truncated) == [("no-valid-bound", "sampler.truncate_to")]
    workload = document("poisson", [1.0, 2.0], 2) | {"workload": {"momentum": 0.9}}
    assert problems(workload) == [("no-valid-bound", "workload")]
    in_order = document("none", [1.0, 2.0], 2, expected_batch_size={"schedule": [1, 2]})
    assert problems(in_order) == [("no-valid-bound", "training.expected_batch_size")]


def test_batches_fit_the_data_set_and_are_whole_where_they_are_drawn() -> None:
    large = document("poisson", [1.0, 2.0], 2, dataset_size=10, expected_batch_size={"schedule": [5, 11]})
    del large["training"]["sampling_probability"]
    assert problems(large) == [("contradiction", "training.expected_batch_size.schedule")]
    broken = document("fixed-size", [1.0, 2.0], 2, expected_batch_size={"schedule": [5, 5.5]})
    assert problems(broken) == [("fractional-batch", "training.expected_batch_size.schedule")]
    assert "round 1" in message(broken)


def test_one_factor_for_several_phases() -> None:
    phases = [body(POISSON, 3, 2.0), body(POISSON, 3, {"schedule": [1, 2, 3], "scale": 2})]
    shared = {**head(epsilon=3), "noise": {"scale": "solve"}, "phases": phases}
    loaded = pyaccount.load(shared)
    assert loaded.blank == ("noise", "scale")
    filled = loaded.filled(1.5)
    assert next(iter(filled.runs())).noise.multiplier == 3.0
    assert getattr(list(filled.runs())[1].noise.multiplier, "scale", None) == 3.0
    assert filled == pyaccount.load(shared | {"noise": {"scale": 1.5}})
    also_solved = {**shared, "phases": [body(POISSON, 3, "solve"), phases[1]]}
    assert problems(also_solved) == [("several-blanks", "phases[0].noise.multiplier")]
    given = {**also_solved, "noise": {"scale": 2}}
    assert problems(given) == [("contradiction", "phases[0].noise.multiplier")]
    misplaced = {**head(), "noise": {"scale": 2, "multiplier": 1}, "phases": phases}
    assert problems(misplaced) == [("contradiction", "noise")]
    both = {**head(epsilon=3), "phases": [body(POISSON, 3, "solve"), body(POISSON, 2, "solve")]}
    assert "noise: {scale: solve}" in message(both)


def test_files_of_schedules_are_named_and_confined(tmp_path: Path, snapshot: Snapshot) -> None:
    (tmp_path / "inside").mkdir()
    for place in (tmp_path, tmp_path / "inside"):
        (place / "sigmas.csv").write_text("1\n2\n", encoding="utf-8")
    inside = document("poisson", {"file": "sigmas.csv"}, 2)
    loaded = pyaccount.load(inside, folders=[tmp_path / "inside"])
    assert named_files(loaded) == [tmp_path / "inside" / "sigmas.csv"]
    assert pyaccount.compile(loaded)
    outside = document("poisson", {"file": "../sigmas.csv"}, 2)
    snapshot.raised(lambda: pyaccount.load(outside, folders=[tmp_path / "inside"]))


def test_a_factor_of_phases_is_solved_only_where_rounds_compose() -> None:
    spaced = {"sampler": {"kind": "b-min-sep", "min_separation": 2}, "training": {"sampling_probability": 0.1}}
    banded = {"matrix": {"kind": "banded-square-root", "bands": 2}}
    asked = {**head(epsilon=3), "noise": {"scale": "solve"}, "phases": [body(spaced, 6, 2.0) | banded]}
    assert problems(asked) == [("no-valid-bound", "noise.scale")]
    choosing = {
        **asked,
        "phases": [body(spaced, 6, 2.0) | {"matrix": banded["matrix"] | {"bands": {"choose": [1, 2]}}}],
    }
    assert problems(choosing) == [("contradiction", "phases[0].matrix.bands")]
    # A given factor is only a number.
    asked["noise"], asked["privacy"]["epsilon"] = {"scale": 1.5}, "solve"
    assert pyaccount.compile(asked).document.run.noise.multiplier == 3.0


def test_a_factor_needs_a_training_run() -> None:
    release = {"mechanism": {"kind": "laplace", "scale": 2.0, "sensitivity": 1.0}}
    inside = {"sampler": {"kind": "poisson", "sampling_probability": 0.1}, "phases": [release]}
    factor = {**head(epsilon=3), "noise": {"scale": "solve"}}
    assert problems({**factor, "phases": [release, inside]}) == [("contradiction", "noise.scale")]
    trained = {**factor, "phases": [release, {**inside, "phases": [body(POISSON, 3, 2.0)]}]}
    assert pyaccount.load(trained).blank == ("noise", "scale")
    # Beside a mechanism at the top level, `noise` is that of a training run.
    assert problems({**head(), **release, "noise": {"scale": 2}}) == [("contradiction", "noise")]


def test_files_of_schedules_inside_of_phases_are_confined(tmp_path: Path, snapshot: Snapshot) -> None:
    inside = body(POISSON, 2, {"schedule": {"file": "../sigmas.csv"}})
    phases = [{"sampler": {"kind": "poisson", "sampling_probability": 0.1}, "phases": [inside]}]
    with snapshot.raises(pyaccount.DocumentError) as caught:
        pyaccount.load({**head(), "phases": phases}, folders=[tmp_path])
    (problem,) = caught.value.problems
    path = "phases[0].phases[0].noise.multiplier.schedule.file"
    assert (problem.slug, problem.path_text) == ("outside-folder", path)
