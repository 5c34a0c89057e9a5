"""Audits of small runs with worst-case canaries find less than the certified ε, and more if the noise was halved.

Every record is a canary with a coordinate of its own. If its coin says so, it contributes its whole clip norm to that coordinate
whenever it is drawn. Records and coordinates are independent, so each canary is as good as one in a run of its own.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_documents import doc, sectioned

import pyaccount
from pyaccount.training import TrainingRun, drawing

CANARIES, ROUNDS, SIGMA, RATE = 30_000, 16, 4.0, 0.5
DOCUMENTS: dict[str, dict[str, Any]] = {
    "poisson": sectioned(dataset_size=CANARIES, sampling_probability=RATE, iterations=ROUNDS, sampler="poisson"),
    # Every second round has a batch; which rounds these are is public.
    "banded": {
        "training": {"dataset_size": CANARIES, "sampling_probability": 1.0, "iterations": ROUNDS},
        "sampler": {"kind": "cyclic-poisson", "partitions": 2},
        "matrix": {"kind": "banded-square-root", "bands": 2},
    },
}


def scores(name: str, seen: Any, matrix: Any) -> Any:
    """Return the log-likelihood ratio of each coordinate from the noisy sums of all rounds, which is the best test statistic."""
    z = matrix @ seen
    if name == "poisson":
        return np.log1p(RATE * np.expm1((z - 0.5) / SIGMA**2)).sum(axis=0)
    means = np.tile([matrix[:, start::2].sum(axis=1) for start in (0, 1)], (CANARIES // 2, 1))
    return ((z.T - means / 2) * means).sum(axis=1) / SIGMA**2


@pytest.mark.parametrize("name", DOCUMENTS)
def test_half_of_the_noise_is_found_in_a_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = pyaccount.certify(doc(DOCUMENTS[name], name=name, delta=1e-3, multiplier=SIGMA))
    column = [1.0] if certificate.matrix is None else certificate.matrix.coefficients.tolist()
    matrix = sum(entry * np.eye(ROUNDS, k=-lag) for lag, entry in enumerate(column))
    coins = np.random.default_rng(5).random(CANARIES) < 0.5

    def told(folder: str) -> Any:
        seen = np.empty((ROUNDS, CANARIES))
        with TrainingRun(certificate, tmp_path / folder, records=CANARIES) as run:
            for number in range(ROUNDS):
                with run.step() as step:
                    sums = np.zeros(CANARIES)
                    sums[step.batch.indices] = 1.0
                    # The two parts are the even and the odd records.
                    assert name == "poisson" or sums[number % 2 :: 2].all()
                    seen[number] = step.release(sums * coins)
                seen[number] *= run.normaliser(number)
        return scores(name, seen, matrix)

    def audited(folder: str) -> Any:
        # The thresholds for guesses are chosen with a run that is not counted.
        threshold = float(np.quantile(told(f"{folder}, tried")[~coins], 0.98))
        options: dict[str, Any] = {"runs": "many", "confidence": 0.999, "threshold": threshold}
        return pyaccount.audit(certificate, told(folder), coins, **options)

    honest = audited("honest")
    assert honest
    assert 0.3 * certificate.epsilon < honest.epsilon_lower < certificate.epsilon
    usual = drawing.noise_of

    def halved(*arguments: Any, **options: Any) -> Any:
        noise = usual(*arguments, **options)
        return dataclasses.replace(noise, standard_deviation=noise.standard_deviation / 2)

    monkeypatch.setattr(drawing, "noise_of", halved)
    cheated = audited("cheated")
    assert not cheated
    assert cheated.epsilon_lower > certificate.epsilon
