"""Runs with schedules: each round has its own noise and its own rate, in the law, in the record and in the guarantee."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from phases import phase
from scheduled_documents import document
from snapshots import Snapshot
from training_runs import chained, go

import pyaccount
from pyaccount.training import TrainingRun
from pyaccount.training.batches import batches_of
from pyaccount.training.check_record import hold_record
from pyaccount.training.key import KEY_BYTES, RunKey
from pyaccount.training.noise import noise_of

pytestmark = pytest.mark.usefixtures("without_profiles")

NOISES = [1.0, 4.0, 0.5, 2.0]
RATES = [0.05, 0.5, 0.9, 0.2]
RECORDS = 400
#: Numbers of a round; the standard error of their variance is √(2/n), relatively.
NUMBERS = 200_000
#: The deviation in standard errors that fixed keys may show by chance.
STANDARD_ERRORS = 5.0


def scheduled(**changes: Any) -> dict[str, Any]:
    training = {"sampling_probability": {"schedule": RATES}, "dataset_size": RECORDS} | changes.pop("training", {})
    made = document("poisson", NOISES, 4, scale=2, **training) | changes
    made["privacy"]["epsilon"] = 60
    return made


def started(folder: Path, source: Any, **options: Any) -> TrainingRun:
    return TrainingRun(source, folder, **{"records": RECORDS, "normaliser": 10.0, **options})


def released(run: TrainingRun) -> list[Any]:
    return go(run, 4, lambda _: np.zeros(NUMBERS))


def far(sample: Any, deviation: float) -> float:
    """Return by how many standard errors the mean square of normal numbers differs from a variance."""
    return float(abs(np.mean(np.square(sample)) / deviation**2 - 1.0) / math.sqrt(2.0 / len(sample)))


def test_each_round_has_its_own_noise(tmp_path: Path) -> None:
    certificate = pyaccount.certify(scheduled())
    with started(tmp_path / "run", certificate) as run:
        assert [run.noise_multiplier(number) for number in range(4)] == [2.0 * noise for noise in NOISES]
        sums = [10.0 * mean for mean in released(run)]
        assert run.accountant().epsilon_spent() == pytest.approx(certificate.epsilon, rel=1e-9)
    for noise, sample in zip(NOISES, sums, strict=True):
        assert far(sample, 2.0 * noise) < STANDARD_ERRORS
        # The scale alone, or the noise of another round, is far away.
        assert far(sample, noise) > 100.0
    # The rows of different rounds are independent.
    for one in range(4):
        for other in range(one):
            correlation = np.corrcoef(sums[one], sums[other])[0, 1]
            assert abs(correlation) < STANDARD_ERRORS / math.sqrt(NUMBERS)
    record = tmp_path / "run" / "record.jsonl"
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["noise_multipliers"] == [None]
    deviations = [line["standard_deviations"][0] for line in lines if line["event"] == "release"]
    assert all(
        2.0 * noise <= found <= 2.0 * noise * (1 + 1e-12) for noise, found in zip(NOISES, deviations, strict=True)
    )
    verdict = hold_record(record, certificate)
    assert verdict.agrees
    assert verdict.problems == ()


def test_a_record_with_other_noise_does_not_agree(tmp_path: Path) -> None:
    certificate = pyaccount.certify(scheduled())
    with started(tmp_path / "run", certificate) as run:
        released(run)
    record = tmp_path / "run" / "record.jsonl"
    other = pyaccount.certify(document("poisson", [*NOISES[:3], 2.5], 4, scale=2, **scheduled()["training"]))
    assert not hold_record(record, other).agrees
    # Lines with the noise of another round contradict the certificate that they belong to.
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    lines[3]["standard_deviations"], lines[2]["standard_deviations"] = (
        lines[2]["standard_deviations"],
        lines[3]["standard_deviations"],
    )
    (problem,) = hold_record(chained(tmp_path / "changed.jsonl", lines), certificate).problems
    assert problem.startswith("round 0: the noise has standard deviation [8.0")


def test_each_round_has_its_own_rate() -> None:
    """Over many runs, the number of records of a round is binomial with the rate of that round."""
    loaded, runs = pyaccount.load(scheduled()), 300
    counts = np.zeros((runs, 4))
    for number in range(runs):
        batches = batches_of(phase(loaded), RunKey(bytes(KEY_BYTES)).derive("batches", number))
        counts[number] = [len(batches.batch(round).indices) for round in range(4)]
    for round, rate in enumerate(RATES):
        error = math.sqrt(rate * (1.0 - rate) / (RECORDS * runs))
        assert abs(counts[:, round].mean() / RECORDS - rate) < STANDARD_ERRORS * error
        variance = counts[:, round].var() / (RECORDS * rate * (1.0 - rate))
        assert abs(variance - 1.0) < STANDARD_ERRORS * math.sqrt(2.0 / runs)


@pytest.mark.parametrize("sampler", ["fixed-size", "with-replacement"])
def test_each_round_has_its_own_number_of_draws(sampler: str) -> None:
    sizes = [3, 40, 1, 200]
    source = document(sampler, NOISES, 4, expected_batch_size={"schedule": sizes})
    source["privacy"]["epsilon"] = 60
    loaded = pyaccount.load(source)
    batches = batches_of(phase(loaded), RunKey(bytes(KEY_BYTES)))
    drawn = [batches.batch(round).indices for round in range(4)]
    assert [len(batch) for batch in drawn] == sizes
    if sampler == "fixed-size":
        assert [len(set(batch.tolist())) for batch in drawn] == sizes
    assert batches.most == 200


def test_a_schedule_draws_what_its_rounds_would_draw_alone() -> None:
    """The batch of a round has the bits of a run in which all rounds have its rate, and its noise the bits times σ."""
    key, loaded = RunKey(bytes(KEY_BYTES)), pyaccount.load(scheduled())
    batches = batches_of(phase(loaded), key)
    nonces = [bytes([number]) * 32 for number in range(4)]
    rows = noise_of(phase(loaded), key, phase=0, clip_norm=0.5).stream({"w": (7,)}, dtype="float64")
    drawn = [rows.next(nonce)["w"] for nonce in nonces]
    for round, (noise, rate) in enumerate(zip(NOISES, RATES, strict=True)):
        alone = scheduled(training={"sampling_probability": rate}) | {"noise": {"multiplier": 2.0 * noise}}
        plain = pyaccount.load(alone)
        same = batches_of(phase(plain), key).batch(round).indices
        assert np.array_equal(batches.batch(round).indices, same)
        stream = noise_of(phase(plain), key, phase=0, clip_norm=0.5).stream({"w": (7,)}, dtype="float64")
        assert np.array_equal([stream.next(nonce)["w"] for nonce in nonces][round], drawn[round])


def test_a_run_goes_on_with_its_schedule(tmp_path: Path, snapshot: Snapshot) -> None:
    certificate = pyaccount.certify(scheduled())
    with started(tmp_path / "run", certificate) as run:
        go(run, 1)
    with started(tmp_path / "run", certificate) as run:
        assert run.round == 1
        assert run.noise_multiplier() == 8.0
    other = pyaccount.load(scheduled(noise={"multiplier": {"schedule": [*NOISES[:3], 3.0], "scale": 2}}))
    snapshot.raised(lambda: started(tmp_path / "run", pyaccount.certify(other)))


def test_a_file_that_changes_does_not_change_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.array(NOISES))
    source = scheduled(noise={"multiplier": {"schedule": {"file": "a.npy"}}})
    certificate = pyaccount.certify(source)
    with started(tmp_path / "run", certificate) as run:
        np.save("a.npy", np.array([9.0] * 4))
        sums = [10.0 * mean for mean in released(run)]
    for noise, sample in zip(NOISES, sums, strict=True):
        assert far(sample, noise) < STANDARD_ERRORS
    # A new run of this certificate is refused, and so is the same run without one.
    snapshot.raised(lambda: started(tmp_path / "other", certificate))
    np.save("a.npy", np.array(NOISES))
    with started(tmp_path / "plain", pyaccount.load(source), uncertified=True) as run:
        go(run, 1)
    np.save("a.npy", np.array([9.0] * 4))
    snapshot.raised(lambda: started(tmp_path / "plain", pyaccount.load(source), uncertified=True))


def test_a_schedule_of_batches_needs_a_constant_normaliser(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: TrainingRun(pyaccount.certify(scheduled()), tmp_path / "run", records=RECORDS))


def test_batches_that_no_bound_covers_are_not_drawn(snapshot: Snapshot) -> None:
    source = document("none", NOISES, 4) | {"sampler": {"kind": "none", "min_separation": 2}}
    loaded = pyaccount.load(source)
    snapshot.raised(lambda: batches_of(phase(loaded), RunKey(bytes(KEY_BYTES)), records=10))
