"""A training run refuses documents with phases that are no training, and says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyaccount.errors import DocumentError
from pyaccount.training import TrainingRun

TRAINING = {
    "training": {"iterations": 2, "dataset_size": 10, "expected_batch_size": 2},
    "sampler": {"kind": "poisson"},
    "noise": {"multiplier": 3},
}


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
