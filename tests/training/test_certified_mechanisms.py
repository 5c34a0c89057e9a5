"""A training run refuses documents with phases that are no training, and says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plain_documents import sections

from pyaccount.document.loading import load
from pyaccount.errors import DocumentError
from pyaccount.training import TrainingRun
from pyaccount.training.batches import batches_of
from pyaccount.training.key import RunKey

TRAINING = sections(iterations=2, dataset_size=10, expected_batch_size=2, sampler="poisson", multiplier=3)


@pytest.mark.parametrize(
    ("phase", "path"),
    [
        ({"mechanism": {"kind": "gaussian", "sigma": 3}}, "phases[1].mechanism"),
        ({"sampler": {"kind": "poisson", "sampling_probability": 0.1}, "phases": [TRAINING]}, "phases[1].phases"),
        ({"select": {"kind": "poisson", "mean": 2}, "phases": [TRAINING]}, "phases[1].select"),
        ({"parallel": [TRAINING, TRAINING]}, "phases[1].parallel"),
    ],
)
def test_a_phase_that_is_no_training_run_is_refused(phase: dict[str, Any], path: str, tmp_path: Path) -> None:
    privacy = {"adjacency": "zero-out", "epsilon": 9, "delta": 1e-5}
    document = {"pyaccount": 1, "name": "run", "privacy": privacy, "phases": [TRAINING, phase]}
    with pytest.raises(DocumentError) as caught:
        TrainingRun(document, tmp_path / "run", records=10)
    (problem,) = caught.value.problems
    assert (problem.path_text, problem.slug) == (path, "not-drawn")
    assert ("the run of each part" in problem.message) == path.endswith("parallel")
    assert not (tmp_path / "run").exists()


def test_records_with_different_probabilities_are_not_drawn(tmp_path: Path) -> None:
    """A run knows records by their numbers, and not to which stratum each belongs."""
    training = {"iterations": 2, "dataset_size": 10, "sampling_probability": {"strata": {"rare": 0.2, "common": 0.1}}}
    document = {
        "pyaccount": 1,
        "name": "run",
        "privacy": {"adjacency": "zero-out", "epsilon": 9, "delta": 1e-5},
        **TRAINING,
        "training": training,
    }
    with pytest.raises(DocumentError, match="draw each record by a coin of its own with a secret generator") as caught:
        TrainingRun(document, tmp_path / "run", records=10, normaliser=2)
    (problem,) = caught.value.problems
    assert (problem.path_text, problem.slug) == ("training.sampling_probability", "not-drawn")
    assert not (tmp_path / "run").exists()
    loaded = load(document)
    with pytest.raises(DocumentError, match="does not know the stratum"):
        batches_of(loaded, loaded.bodies[0], RunKey(bytes(range(32))).derive("batches", 0))
