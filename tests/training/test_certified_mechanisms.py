"""A training run refuses documents with phases that are no training, and says what to do."""

from pathlib import Path
from typing import Any

import pytest
from phases import phase
from plain_documents import sectioned
from snapshots import Snapshot

from pyaccount.document.loading import load
from pyaccount.training import TrainingRun
from pyaccount.training.batches import batches_of
from pyaccount.training.key import RunKey

TRAINING = sectioned(iterations=2, dataset_size=10, expected_batch_size=2, sampler="poisson", multiplier=3)


@pytest.mark.parametrize(
    "phase",
    [
        {"mechanism": {"kind": "gaussian", "sigma": 3}},
        {"sampler": {"kind": "poisson", "sampling_probability": 0.1}, "phases": [TRAINING]},
        {"select": {"kind": "poisson", "mean": 2}, "phases": [TRAINING]},
        {"parallel": [TRAINING, TRAINING]},
    ],
)
def test_a_phase_that_is_no_training_run_is_refused(phase: dict[str, Any], tmp_path: Path, snapshot: Snapshot) -> None:
    privacy = {"adjacency": "zero-out", "epsilon": 9, "delta": 1e-5}
    document = {"pyaccount": 1, "name": "run", "privacy": privacy, "phases": [TRAINING, phase]}
    snapshot.raised(lambda: TrainingRun(document, tmp_path / "run", records=10))
    assert not (tmp_path / "run").exists()


def test_records_with_different_probabilities_are_not_drawn(tmp_path: Path, snapshot: Snapshot) -> None:
    """A run knows records by their numbers, and not to which stratum each belongs."""
    training = {"iterations": 2, "dataset_size": 10, "sampling_probability": {"strata": {"rare": 0.2, "common": 0.1}}}
    document = {
        "pyaccount": 1,
        "name": "run",
        "privacy": {"adjacency": "zero-out", "epsilon": 9, "delta": 1e-5},
        **TRAINING,
        "training": training,
    }
    snapshot.raised(lambda: TrainingRun(document, tmp_path / "run", records=10, normaliser=2))
    assert not (tmp_path / "run").exists()
    loaded = load(document)
    snapshot.raised(lambda: batches_of(phase(loaded), RunKey(bytes(range(32))).derive("batches", 0)))
