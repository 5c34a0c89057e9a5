"""A run as accounted: what it releases, what it counts, and what it refuses."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nightly import NIGHTLY
from phases import phase
from places import ROOT
from plain_documents import changed, sectioned
from snapshots import Snapshot
from training_runs import BASE, CORRELATED, SIZE, document, failing, go, same, started, sums

import pyaccount
from pyaccount.errors import PlanExceededError, RunError
from pyaccount.training import TrainingRun
from pyaccount.training.batches import batches_of
from pyaccount.training.check_record import hold_record
from pyaccount.training.noise import noise_of
from pyaccount.training.record import Recorded


@pytest.mark.parametrize("changes", [{}, CORRELATED], ids=["identity", "correlated"])
def test_a_release_is_the_noisy_sum_over_the_expected_batch_size(tmp_path: Path, changes: dict[str, Any]) -> None:
    run = started(tmp_path, changes, clip_norm=2.0)
    assert run.normaliser() == 8.0
    assert run.noise_multiplier() == 0.5
    found = go(run, 12)
    asked = pyaccount.load(document(changes))
    stream = noise_of(phase(asked), run._root, phase=0, clip_norm=2.0).stream({"bias": (2,)}, dtype=np.float64)
    nonces = [release.seed for release in Recorded.read(tmp_path / "record.jsonl").releases]
    for number, released in enumerate(found):
        exact = sums(number)["bias"] + stream.next(nonces[number])["bias"]
        # The tolerance is half a step of the grid, which is 2⁻²⁰ for a standard deviation of 1 or slightly more.
        assert np.abs(released["bias"] * 8.0 - exact).max() <= 2.0**-21
        assert np.array_equal(released["bias"] * 2.0**23, np.rint(released["bias"] * 2.0**23))
        assert released["weight"].dtype == np.float32
        assert released["weight"].shape == (SIZE, 2)


def test_one_array_gives_one_array(tmp_path: Path) -> None:
    run = started(tmp_path)
    with run.step() as step:
        assert isinstance(step.release(np.zeros((2, 3))), np.ndarray)


def test_a_certificate_is_run(tmp_path: Path) -> None:
    certificate = pyaccount.certify(document(privacy={"epsilon": "solve"}))
    path = tmp_path / "run.cert.json"
    certificate.save(path)
    with TrainingRun(path, tmp_path / "one", records=40) as run:
        assert run.guarantee == certificate.statement
        go(run, 3)
    with TrainingRun(certificate, tmp_path / "one", records=40) as run:
        assert run.round == 3
        accountant = run.accountant()
    assert accountant.steps == 3
    assert accountant.epsilon_spent() < certificate.epsilon
    # The certified claim is given as a document.
    with TrainingRun(document(privacy={"epsilon": certificate.epsilon}), tmp_path / "one", records=40) as run:
        assert run.round == 3


def test_a_failed_claim_and_a_blank_are_refused(tmp_path: Path, snapshot: Snapshot) -> None:
    certificate = pyaccount.certify(document(privacy={"epsilon": 0.1}))
    assert not certificate.holds
    snapshot.raised(TrainingRun, certificate, tmp_path, records=40)
    snapshot.raised(lambda: TrainingRun(document(privacy={"epsilon": "solve"}), tmp_path, records=40))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("changes", [{}, CORRELATED], ids=["identity", "correlated"])
def test_resumed_at_every_round_it_is_the_same_run(tmp_path: Path, changes: dict[str, Any]) -> None:
    key = tmp_path / "kept"
    with started(tmp_path / "whole", changes) as run:
        batches = [run.batch(number).indices for number in range(12)]
        key.write_bytes((tmp_path / "whole" / "run.key").read_bytes())
        key.chmod(0o600)
        whole, state = go(run, 12), run.state_dict() | {"rounds": 0}
    parts = []
    for number in range(12):
        with started(tmp_path / "whole", changes, key=key) as run:
            assert np.array_equal(run.batch(number).indices, batches[number])
            run.load_state_dict(state | {"rounds": number})
            parts += go(run, 1)
    assert same(whole, parts)


def test_more_rounds_than_certified_are_refused(tmp_path: Path, snapshot: Snapshot) -> None:
    run = started(tmp_path)
    go(run, 12)
    snapshot.raised(run.step)
    snapshot.raised(run.batch, 12)
    run.close()
    with started(tmp_path) as again, pytest.raises(PlanExceededError):
        again.step()


def test_phases_follow_one_another(tmp_path: Path) -> None:
    body = {name: BASE[name] for name in ("training", "sampler", "noise")}
    first = changed({"name": "first", **body}, None, {"training": {"iterations": 3}})
    second = changed({"name": "second", **body, **CORRELATED, "count": 2}, None, {"training": {"iterations": 4}})
    whole = {name: BASE[name] for name in ("pyaccount", "name", "privacy")} | {"phases": [first, second]}
    with TrainingRun(whole, tmp_path, records=[40, 40], uncertified=True) as run:
        assert run.rounds == 11
        found = go(run, 11)
        drawn = [tuple(run.batch(number).indices) for number in range(11)]
    with TrainingRun(whole, tmp_path, records=40, uncertified=True) as run:
        assert run.round == 11
    assert len(set(drawn)) > 8
    assert not np.array_equal(found[3]["bias"] - sums(3)["bias"] / 8, found[7]["bias"] - sums(7)["bias"] / 8)


def test_other_sums_of_a_batch_have_their_own_noise(tmp_path: Path, snapshot: Snapshot) -> None:
    noise = {"multiplier": 0.5, "also": [{"what": "a count", "multiplier": 30.0}]}
    run = TrainingRun(document({"noise": noise}), tmp_path, records=40, also_clip_norms={"a count": 100.0})
    with run.step() as step:
        mean = step.release(np.zeros(3), also={"a count": np.zeros(1)})
        assert mean.shape == (3,)
        assert 1.0 < abs(step.also["a count"][0]) < 3e4
    with run.step() as step:
        snapshot.raised(lambda: step.release(np.zeros(3)))
        step.release(np.zeros(3), also={"a count": np.zeros(1)})
    snapshot.raised(lambda: TrainingRun(document({"noise": noise}), tmp_path / "other", records=40))


# Rounds that must not be counted, and rounds that must be.


def test_nothing_is_counted_of_a_sum_that_is_wrong(tmp_path: Path, snapshot: Snapshot) -> None:
    run = started(tmp_path)
    go(run, 1)
    wrong = [
        {"bias": np.zeros(2)},
        sums(1) | {"more": np.zeros(1)},
        *(
            sums(1) | {"bias": bias}
            for bias in (np.zeros(3), np.zeros(2, np.float32), np.array([1.0, np.nan]), np.array([1.0, np.inf]))
        ),
        *(sums(1) | {"bias": bias} for bias in (np.zeros((2, 1)), np.zeros(2, np.int64))),
    ]
    with run.step() as step:
        for sum in wrong:
            snapshot.raised(step.release, sum)
        assert run.released == 1
        step.release(sums(1))
        snapshot.raised(lambda: step.release(sums(1)))
    assert run.released == run.round == 2
    assert Recorded.read(tmp_path / "record.jsonl").rounds == 2


def test_a_skipped_batch_is_refused_and_stays_the_next_one(tmp_path: Path, snapshot: Snapshot) -> None:
    run = started(tmp_path)
    batch = run.batch(0).indices
    with pytest.raises(RunError, match="even if it is empty or not wanted"), run.step():
        pass
    assert run.round == 0
    with pytest.raises(ZeroDivisionError), run.step():
        raise ZeroDivisionError
    with run.step() as step:
        assert np.array_equal(step.batch.indices, batch)
        with pytest.raises(RunError, match="round 0 is still open"), run.step():
            pass
        step.release(sums(0))
    snapshot.raised(lambda: step.release(sums(0)))


def test_a_round_is_recorded_before_its_sum_is_given(tmp_path: Path) -> None:
    run = started(tmp_path)
    go(run, 1)
    state = run.state_dict()
    with failing(os, "fsync", OSError(28, "No space left on device")):
        go(run, 1)
    with pytest.raises(RunError, match=r"may not be on the disk: close\(\) the run"):
        go(run, 1)
    run.close()
    # The line was written, even if perhaps not to the disk. So it counts, and the same sum gets the same noise.
    with started(tmp_path) as again:
        assert again.round == 2
        again.load_state_dict(state)
        go(again, 1)
        assert again.released == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process of its own that is killed")
def test_a_killed_run_never_loses_a_round(tmp_path: Path) -> None:
    kills = 200 if NIGHTLY else 60
    program = [sys.executable, str(ROOT / "tests" / "helpers" / "killed_training.py"), str(tmp_path), str(kills)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == kills
    # At most the round that was interrupted is counted without having been used.
    assert all(used <= counted <= used + 1 for used, counted in found)
    assert max(used for used, _ in found) > 0
    unfinished = next(place for place, (_, counted) in enumerate(found) if counted < 12)
    with started(tmp_path / str(unfinished)) as again:
        assert again.round == found[unfinished][1]
        go(again, 1)


def test_nobody_else_goes_on_with_an_open_run(tmp_path: Path, snapshot: Snapshot) -> None:
    run = started(tmp_path)
    snapshot.raised(started, tmp_path)
    program = "import pathlib, sys\nfrom pyaccount.training.writing import RecordWriter\nRecordWriter(pathlib.Path(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "record.jsonl")], capture_output=True, text=True, check=False
    )
    assert "another process has this run open" in done.stderr
    run.close()
    started(tmp_path).close()


# Checkpoints.


def test_rounds_after_a_checkpoint_are_repeated_bit_for_bit(tmp_path: Path) -> None:
    for name, changes in (("identity", {}), ("correlated", CORRELATED)):
        with started(tmp_path / name, changes) as run:
            before = go(run, 4)
            state = json.loads(json.dumps(run.state_dict()))
            after = go(run, 3)
        with started(tmp_path / name, changes) as run:
            run.load_state_dict(state)
            assert (run.round, run.released) == (4, 7)
            assert same(go(run, 3), after)
            assert run.released == 7
            assert len(go(run, 5)) == 5
        assert Recorded.read(tmp_path / name / "record.jsonl").rounds == 12
        assert len(before) == 4


def test_another_sum_with_the_same_noise_is_refused(tmp_path: Path, snapshot: Snapshot) -> None:
    run = started(tmp_path, CORRELATED)
    state = run.state_dict()
    go(run, 2)
    run.load_state_dict(state)
    with run.step() as step:
        snapshot.raised(lambda: step.release(sums(0) | {"bias": np.array([0.0, 1e-9])}))
        step.release(sums(0))
    snapshot.raised(run.load_state_dict, state, give_up=True)


def test_given_up_rounds_stay_counted(tmp_path: Path, snapshot: Snapshot) -> None:
    run = started(tmp_path)
    state = run.state_dict()
    first = go(run, 5)
    run.load_state_dict(state, give_up=True)
    assert run.round == run.released == 5
    more = go(run, 7)
    assert not np.array_equal(first[0]["bias"] - sums(0)["bias"] / 8, more[0]["bias"] - sums(5)["bias"] / 8)
    snapshot.raised(run.step)
    recorded = Recorded.read(tmp_path / "record.jsonl")
    assert (recorded.rounds, recorded.rewinds) == (12, 1)
    assert [release.attempt for release in recorded.releases] == [0] * 5 + [1] * 7


def test_states_of_other_runs_are_refused(tmp_path: Path, snapshot: Snapshot) -> None:
    run = started(tmp_path / "one")
    go(run, 2)
    state = run.state_dict()
    assert "key" not in {name for name in state if name != "key_commitment"}
    other = started(tmp_path / "two")
    snapshot.raised(other.load_state_dict, state)
    wrong = [
        *({"rounds": rounds} for rounds in (3, -1, True)),
        *({"version": 3}, {"head": "0" * 64}, {"head": None}),
        *({"kind": "pyaccount-accountant"}, {"document_sha256": "0"}),
    ]
    for change in wrong:
        with snapshot.raises(RunError):
            run.load_state_dict(state | change)
    assert run.round == 2


# Arguments of a run.


@pytest.mark.parametrize(
    "options",
    [
        {"changes": {"noise": {"multiplier": 0.4}}},
        {"changes": CORRELATED},
        {"changes": {"training": {**BASE["training"], "expected_batch_size": 9}}},
        {"changes": {"training": {**BASE["training"], "iterations": 13}}},
        {"clip_norm": 2.0},
        {"normaliser": 7.0},
        {"world": 2},
    ],
)
def test_a_folder_has_one_run(tmp_path: Path, options: dict[str, Any], snapshot: Snapshot) -> None:
    started(tmp_path).close()
    snapshot.raised(started, tmp_path, **options)


@pytest.mark.usefixtures("in_tmp_path")
def test_another_matrix_in_the_same_file_is_refused(tmp_path: Path, snapshot: Snapshot) -> None:
    """The document is the same, but its matrix is not."""
    matrix = {"matrix": {"kind": "dense", "file": str(tmp_path / "c.npy")}, "sampler": {"kind": "none"}}
    np.save(tmp_path / "c.npy", np.eye(12))
    with started(tmp_path / "run", matrix) as run:
        go(run, 2)
    with started(tmp_path / "run", matrix) as run:
        assert run.round == 2
    np.save(tmp_path / "c.npy", np.eye(12) + 0.1 * np.eye(12, k=-1))
    snapshot.raised(lambda: started(tmp_path / "run", matrix))


def test_a_confidence_statement_about_a_noise_is_run_and_said(tmp_path: Path) -> None:
    """For given noise, sampling gives an ε with a stated confidence; such a certificate can be run like any other."""
    changes = CORRELATED | sectioned(seed=5, tolerance=0.1, privacy={**BASE["privacy"], "epsilon": "solve"})
    certificate = pyaccount.certify(document(changes))
    assert certificate.data.guarantee.kind == "confidence"
    with TrainingRun(certificate, tmp_path, records=40) as run:
        assert run.guarantee == certificate.statement
        go(run, 1)
    header = json.loads((tmp_path / "record.jsonl").read_text().splitlines()[0])
    assert (header["guarantee"], header["statement"]) == ("confidence", certificate.statement)
    assert hold_record(tmp_path / "record.jsonl", certificate)


def test_the_normaliser_is_a_constant_and_not_the_size_of_a_batch(tmp_path: Path) -> None:
    """With negligible noise and batches of all sizes, the releases are the sums divided by one constant."""
    run = started(tmp_path, {"noise": {"multiplier": 1e-6}, "privacy": {**BASE["privacy"], "epsilon": 1e6}})
    found = []
    for _ in range(12):
        with run.step() as step:
            found.append((len(step.batch), float(step.release(np.array([len(step.batch)], dtype=float))[0])))
    assert len({size for size, _ in found}) > 3
    assert all(mean == pytest.approx(size / 8, abs=1e-5) for size, mean in found)


def test_data_of_another_size_is_refused(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot.raised(started, tmp_path, records=41)
    snapshot.raised(started, tmp_path, records=[40, 40])
    snapshot.raised(started, tmp_path, records=None)
    started(tmp_path / "numpy", records=np.int64(40)).close()
    shutil.rmtree(tmp_path / "numpy")
    for name, value in (("records", 0), ("clip_norm", 0.0), ("clip_norm", np.inf), ("normaliser", -1.0), ("rank", 1)):
        snapshot.raised(started, tmp_path, **{name: value})
    assert not list(tmp_path.iterdir())


RATE = {"training": {"sampling_probability": 0.2, "iterations": 12}}


@pytest.mark.parametrize(
    "sampler",
    [
        {"kind": "poisson"},
        {"kind": "b-min-sep", "min_separation": 3},
        {"kind": "balls-in-bins", "bins": 4},
        {"kind": "random-allocation", "iterations_per_allocation": 4},
        {"kind": "cyclic-poisson", "partitions": 3},
    ],
    ids=lambda sampler: sampler["kind"],
)
def test_a_rate_is_enough_for_samplers_that_go_by_it(
    tmp_path: Path, sampler: dict[str, Any], snapshot: Snapshot
) -> None:
    """The batches are those of a document that states the size. The record has only a tag of the size."""
    training = {"iterations": 12} | (
        {} if sampler["kind"] in {"balls-in-bins", "random-allocation"} else RATE["training"]
    )
    asked = {name: BASE[name] for name in ("pyaccount", "name", "privacy", "noise")} | sectioned(
        training=training, sampler=sampler
    )
    snapshot.raised(TrainingRun, asked, tmp_path, records=40, uncertified=True)
    with TrainingRun(asked, tmp_path, records=40, uncertified=True, normaliser=8) as run:
        go(run, 2)
        stated = pyaccount.load(asked | {"training": training | {"dataset_size": 40}})
        drawn = batches_of(phase(stated), run._root.derive("batches", 0))
        assert all(np.array_equal(run.batch(t).indices, drawn.batch(t).indices) for t in range(12))
    for size in (39, 41):
        snapshot.raised(TrainingRun, asked, tmp_path, records=size, uncertified=True, normaliser=8)
    with TrainingRun(asked, tmp_path, records=40, uncertified=True, normaliser=8) as run:
        assert run.round == 2
    header = json.loads((tmp_path / "record.jsonl").read_text().splitlines()[0])
    assert header["records"] == [None]
    assert 40 not in header.values()
    with TrainingRun(asked, tmp_path / "other", records=40, uncertified=True, normaliser=8) as run:
        other = json.loads((tmp_path / "other" / "record.jsonl").read_text().splitlines()[0])
    assert len(header["records_tag"]) == 64
    assert other["records_tag"] != header["records_tag"]


def test_a_stated_size_is_recorded_as_it_is(tmp_path: Path) -> None:
    started(tmp_path).close()
    header = json.loads((tmp_path / "record.jsonl").read_text().splitlines()[0])
    assert header["records"] == [40]
    assert "records_tag" not in header


def test_names_do_not_hide_a_sum(tmp_path: Path) -> None:
    noise = {"multiplier": 0.5, "also": [{"what": "x", "multiplier": 30.0}]}
    run = TrainingRun(document({"noise": noise}), tmp_path, records=40, also_clip_norms={"x": 1.0})
    state = run.state_dict()
    with run.step() as step:
        step.release({"also: x": np.zeros(2)}, also={"x": np.zeros(2)})
    run.load_state_dict(state)
    with pytest.raises(RunError, match="would reveal their difference"), run.step() as step:
        step.release({"also: x": np.full(2, 7.0)}, also={"x": np.zeros(2)})


def test_last_digits_do_not_tell_of_the_sum(tmp_path: Path) -> None:
    """Without rounding, one value in eight of 0 plus float32 noise is not a multiple of 2⁻²⁵, but every value near 0 of 1/4 plus
    noise is.
    """
    for number, value in enumerate((0.0, 0.25)):
        run = started(tmp_path / str(number))
        with run.step() as step:
            found = np.asarray(step.release(np.full(2**14, value, np.float32))) * 8.0
        assert np.array_equal(found * 2.0**21, np.rint(found * 2.0**21))


def test_phases_may_sum_other_arrays(tmp_path: Path) -> None:
    body = {name: BASE[name] for name in ("training", "sampler")}
    first = {"name": "a", **body, "noise": {"multiplier": 1, "also": [{"what": "x", "multiplier": 30.0}]}}
    second = {"name": "b", **body, "noise": {"multiplier": 1}}
    for one in (first, second):
        one["training"] = {**BASE["training"], "iterations": 1}
    whole = {name: BASE[name] for name in ("pyaccount", "name", "privacy")} | {"phases": [first, second]}
    run = TrainingRun(whole, tmp_path, records=40, uncertified=True, also_clip_norms={"x": 1.0})
    with run.step() as step:
        step.release(np.zeros(2), also={"x": np.zeros(1)})
    with run.step() as step:
        step.release({"other": np.zeros(3)})
    assert run.released == run.rounds


def test_what_a_later_phase_refuses_is_refused_at_once(tmp_path: Path, snapshot: Snapshot) -> None:
    body = {name: BASE[name] for name in ("training", "sampler", "noise")}
    count = {"name": "count", "training": {"dataset_size": 40, "expected_batch_size": 40, "iterations": 1}}
    laplace = {**count, "sampler": {"kind": "none"}, "noise": {"kind": "laplace", "multiplier": 2}}
    whole = {name: BASE[name] for name in ("pyaccount", "name", "privacy")} | {
        "phases": [{"name": "a", **body}, laplace]
    }
    snapshot.raised(TrainingRun, whole, tmp_path, records=40, uncertified=True)
    assert not list(tmp_path.iterdir())
