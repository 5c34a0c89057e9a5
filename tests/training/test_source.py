"""Noise that is not drawn from the run's key: the run continues only if the same numbers come out, and the record names it."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_documents import changed, doc
from snapshots import Snapshot
from training_runs import go as released

import pyaccount
from pyaccount.errors import RunError
from pyaccount.training import RunKey, TrainingRun
from pyaccount.training.check_record import hold_record
from pyaccount.training.noise import Noise
from pyaccount.training.record import Recorded

BASE: dict[str, Any] = doc(
    "name=source epsilon=300.0 dataset_size=40 expected_batch_size=8 iterations=6 sampler=poisson multiplier=0.5"
)


class Rows:
    """Independent noise from numpy's generator, one round after the other."""

    def __init__(self, noise: Noise, shapes: Mapping[str, tuple[int, ...]], seed: int, factor: float) -> None:
        self._noise, self._shapes, self._seed, self._factor = noise, shapes, seed, factor
        self.round = 0

    def next(self, nonce: bytes) -> dict[str, Any]:
        generator = np.random.default_rng([self._seed, *nonce])
        self.round += 1
        scale = self._factor * self._noise.standard_deviation
        return {name: scale * generator.standard_normal(shape) for name, shape in self._shapes.items()}

    def seek(self, round: int, nonces: Sequence[bytes]) -> None:
        self.round = round


@dataclass
class Source:
    """numpy's generator as a noise source; optionally with other last digits, as on another machine."""

    name: str = "numpy, for tests"
    factor: float = 1.0

    def stream(self, noise: Noise, shapes: Mapping[str, tuple[int, ...]], key: RunKey) -> Rows:
        return Rows(noise, shapes, int.from_bytes(key.reveal()[:8], "little"), self.factor)


def started(folder: Path, source: Source | None) -> TrainingRun:
    return TrainingRun(changed(BASE, {}, {}), folder, records=40, device_noise=source)


def go(run: TrainingRun, rounds: int) -> list[Any]:
    return released(run, rounds, lambda round: np.full(30, float(round)))


def test_it_is_the_noise_of_the_run_and_taken_up_with_it(tmp_path: Path) -> None:
    with started(tmp_path, Source()) as run:
        state = run.state_dict()
        first = go(run, 4)
        nonces = [release.seed for release in Recorded.read(tmp_path / "record.jsonl").releases]
        seed = int.from_bytes(run._root.derive("device noise", 0).reveal()[:8], "little")
    for number, mean in enumerate(first):
        drawn = 0.5 * np.random.default_rng([seed, *nonces[number]]).standard_normal(30)
        # The tolerance is half a step of the grid.
        assert np.abs(mean * 8.0 - number - drawn).max() <= 2.0**-22 + 1e-12
    with started(tmp_path, Source()) as run:
        rest = go(run, 1)
        run.load_state_dict(state)
        assert all(np.array_equal(one, two) for one, two in zip(go(run, 5), [*first, *rest], strict=True))
        assert run.released == 5


@pytest.mark.parametrize("back", [True, False])
def test_other_last_digits_do_not_go_on(tmp_path: Path, back: bool, snapshot: Snapshot) -> None:
    """A repeated round would be released with two noises, and with a matrix later rounds would not fit the earlier ones."""
    with started(tmp_path, Source()) as run:
        state = run.state_dict()
        go(run, 3)
    with started(tmp_path, Source(factor=1.0 + 2.0**-52)) as run:
        if back:
            run.load_state_dict(state)
        snapshot.raised(go, run, 1)
        assert run.released == 3


def test_a_record_that_lost_its_tag_does_not_go_on(tmp_path: Path, snapshot: Snapshot) -> None:
    """A release without a tag of its noise, in the record of a run with another source, cannot be compared with the noise."""
    with started(tmp_path, Source()) as run:
        go(run, 1)
        run._folder.releases[0] = dataclasses.replace(run._folder.releases[0], noise=None)
        run._noise.forget()
        snapshot.raised(go, run, 1)


def test_the_source_is_that_of_the_record(tmp_path: Path, snapshot: Snapshot) -> None:
    started(tmp_path / "key", None).close()
    header = json.loads((tmp_path / "key" / "record.jsonl").read_text().splitlines()[0])
    assert header["noise_source"] == "the run's key"
    started(tmp_path / "other", Source()).close()
    for folder, source in (("key", Source()), ("other", None), ("other", Source("another version"))):
        with snapshot.raises(RunError):
            started(tmp_path / folder, source)


def test_such_noise_is_left_to_whoever_trains(tmp_path: Path) -> None:
    certificate = pyaccount.certify(changed(BASE, {}, {}))
    for folder, source, held in (("key", None, "enforced"), ("other", Source(), "yours")):
        with TrainingRun(certificate, tmp_path / folder, records=40, device_noise=source) as run:
            go(run, 2)
        record = tmp_path / folder / "record.jsonl"
        verdict = hold_record(record, certificate)
        assert verdict
        (noise,) = [one for one in verdict.assumptions if one.text.startswith("Fresh Gaussian noise")]
        assert noise.held == held
        assert ("numpy, for tests" in noise.how) is (source is not None)
        lines = [json.loads(line) for line in record.read_text().splitlines() if '"event":"release"' in line]
        assert all(("noise" in line) is (source is not None) for line in lines)
