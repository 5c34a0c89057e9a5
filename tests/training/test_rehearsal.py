"""A rehearsal: a whole training that releases noise alone, and that nothing counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_samples import data_set
from training_runs import CORRELATED, document, started

import pyaccount
from pyaccount import TrainingRun
from pyaccount.errors import PlanExceededError, RunError
from pyaccount.ledger import Ledger

ROUNDS = 12


@pytest.mark.parametrize("changes", [{}, CORRELATED], ids=["identity", "correlated"])
def test_its_releases_are_noise_alone(tmp_path: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with started(tmp_path, changes, clip_norm=100.0, normaliser=1.0) as run:
        before = (tmp_path / "record.jsonl").read_bytes()
        with run.rehearse() as rehearsal:
            folder, found = rehearsal.folder, []
            assert (rehearsal.rounds, rehearsal.clip_norm, rehearsal.normaliser()) == (ROUNDS, 100.0, 1.0)
            for _ in range(ROUNDS):
                with rehearsal.step() as step:
                    # As much as the clip norms of all records of the batch allow.
                    most = 100.0 * len(step.batch.indices)
                    found.append(step.release(np.array([most, 0.0, 0.0])))
            with pytest.raises(PlanExceededError):
                rehearsal.step()
        assert not folder.exists()
        assert (tmp_path / "record.jsonl").read_bytes() == before
        assert run.released == run.round == 0
    noise = np.concatenate([np.asarray(one, dtype=float) for one in found])
    deviation = 100.0 * 0.5  # σ of the document times the clip norm
    assert 0.5 * deviation < float(np.std(noise)) < 2.0 * deviation
    assert max(abs(float(np.asarray(one)[0])) for one in found) < 5.0 * deviation


def test_it_makes_the_same_checks(tmp_path: Path) -> None:
    with started(tmp_path) as run, run.rehearse() as rehearsal, rehearsal.step() as step:
        with pytest.raises(RunError, match="clip"):
            step.release(np.full(3, 1e6))
        step.release(np.zeros(3))
    with started(tmp_path / "ranks", world=2) as run, pytest.raises(RunError, match="the run has 2 ranks"):
        run.rehearse()


def test_its_certificate_is_that_of_the_run_and_no_ledger_counts_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "budgets.db")
    ledger.create(data_set(privacy={"adjacency": "zero-out", "epsilon": 60, "delta": 1e-3}))
    certificate = pyaccount.certify(document(privacy={"epsilon": "solve"}))
    with TrainingRun(certificate, tmp_path / "run", records=40, ledger=ledger) as run:
        events = len(ledger.history().events)
        with run.rehearse() as rehearsal:
            assert rehearsal.certificate == certificate
            with rehearsal.step() as step:
                step.release(np.zeros(3))
            assert rehearsal.accountant().epsilon_spent() > 0.0
        assert len(ledger.history().events) == events
