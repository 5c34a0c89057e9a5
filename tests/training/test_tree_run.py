"""Runs with a tree: what they release has the noise of the estimates of running sums. Encoders with more rows are refused."""

import math
from pathlib import Path

import numpy as np
import pytest
from phases import phase
from snapshots import Snapshot
from training_runs import document, go

import pyaccount
from pyaccount.training import TrainingRun
from pyaccount.training.noise import noise_of
from pyaccount.training.record import Recorded


@pytest.mark.parametrize("estimation", ["honest", "efficient"])
def test_a_run_releases_sums_with_the_noise_of_the_estimates(estimation: str, tmp_path: Path) -> None:
    """The estimate of a running sum that a run releases has the variance of its blocks, by the noise that it drew itself."""
    raw = document(
        {"sampler": {"kind": "none", "max_participations": 2}},
        training={"iterations": 8},
        matrix={"kind": "tree", "estimation": estimation, "normalize": False},
    )
    size = 20_000
    with TrainingRun(raw, tmp_path, records=40) as run:
        released = [mean["w"] * 8.0 for mean in go(run, 8, lambda _: {"w": np.zeros(size)})]
        asked = pyaccount.load(raw)
        stream = noise_of(phase(asked), run._root, phase=0, clip_norm=1.0).stream({"w": (size,)}, dtype=np.float64)
        (record,) = tmp_path.glob("record.jsonl")
        nonces = [release.seed for release in Recorded.read(record).releases]
        for number, one in enumerate(released):
            assert np.abs(one - stream.next(nonces[number])["w"]).max() <= 2.0**-19
    sums = np.cumsum(released, axis=0)
    blocks = {1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0}
    if estimation == "efficient":
        blocks = {1: 1.0, 2: 2 / 3, 4: 4 / 7, 8: 8 / 15}
    for rounds in range(1, 9):
        expected = 0.25 * sum(value for block, value in blocks.items() if rounds & block)
        # Five standard deviations of an estimated variance: √(2/size) of it.
        assert np.square(sums[rounds - 1]).mean() == pytest.approx(expected, rel=5.0 * math.sqrt(2.0 / size))


def test_other_sums_beside_a_tree_get_noise_of_their_own(tmp_path: Path) -> None:
    """Their noise is independent from round to round, at their own multiplier and clip norm."""
    size = 20_000
    raw = document(
        {"sampler": {"kind": "none", "max_participations": 2}},
        training={"iterations": 4},
        matrix={"kind": "tree"},
        noise={"multiplier": 0.5, "also": [{"what": "counts", "multiplier": 3.0}]},
    )
    with TrainingRun(raw, tmp_path, records=40, also_clip_norms={"counts": 0.5}) as run:
        released = []
        for _ in range(4):
            with run.step() as step:
                step.release({"w": np.zeros(2)}, also={"counts": np.zeros(size)})
                released.append(np.asarray(step.also["counts"]))
    covariance = np.cov(np.array(released))
    # Five standard deviations of estimated variances and covariances of independent numbers of variance 1.5².
    assert np.abs(covariance - 2.25 * np.eye(4)).max() <= 5.0 * 2.25 * math.sqrt(2.0 / size)


@pytest.mark.usefixtures("in_tmp_path")
def test_a_matrix_with_more_rows_is_refused_before_anything_is_written(tmp_path: Path, snapshot: Snapshot) -> None:
    np.save(tmp_path / "encoder.npy", np.vstack([np.eye(5), np.ones((1, 5))]))
    raw = document(
        {"sampler": {"kind": "none", "max_participations": 1}},
        training={"iterations": 5},
        matrix={"kind": "dense", "file": str(tmp_path / "encoder.npy")},
    )
    snapshot.raised(lambda: TrainingRun(raw, tmp_path / "run", records=40))
    assert not (tmp_path / "run").exists()
