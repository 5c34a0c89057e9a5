"""Only certified runs are opened: documents are certified when a run begins, or the record says that they were not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gate_tools import sealed
from plain_documents import sectioned
from snapshots import Snapshot
from training_runs import BASE, CORRELATED, document, go

import pyaccount
from pyaccount.errors import RunError
from pyaccount.training import TrainingRun, opening
from pyaccount.training.check_record import hold_record

#: A document whose ε is 48.2 at this σ.
FALSE = sectioned(
    adjacency="zero-out", epsilon=1.0, delta=1e-5, training={**BASE["training"], "iterations": 50}, multiplier=0.3
)


def first_line(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "record.jsonl").read_text().splitlines()[0])
    return found


def test_a_false_claim_is_not_run(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: TrainingRun(document(FALSE), tmp_path, records=40))
    assert not list(tmp_path.iterdir())
    with TrainingRun(document(FALSE), tmp_path, records=40, uncertified=True) as run:
        assert run.guarantee is None
        go(run, 1)
    line = first_line(tmp_path)
    assert (line["uncertified"], line["certificate_sha256"], line["statement"]) == (True, None, None)
    # The run cannot be continued as if it had been certified either.
    snapshot.raised(lambda: TrainingRun(document(FALSE), tmp_path, records=40))


def test_a_document_is_certified_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    with TrainingRun(document(), tmp_path, records=40) as run:
        go(run, 2)
        guarantee = run.guarantee
    certificate = pyaccount.Certificate.load(tmp_path / "certificate.json")
    assert certificate.holds
    assert certificate.statement == guarantee == first_line(tmp_path)["statement"]
    monkeypatch.setattr(opening, "_certificate", lambda document: pytest.fail("certified again"))
    with TrainingRun(document(), tmp_path, records=40) as run:
        assert run.round == 2
        go(run, 1)
    # The certificate may be given instead of the document.
    with TrainingRun(tmp_path / "certificate.json", tmp_path, records=40) as run:
        assert run.round == 3
    snapshot.raised(lambda: TrainingRun(document({"noise": {"multiplier": 0.6}}), tmp_path, records=40))
    snapshot.raised(lambda: TrainingRun(document(), tmp_path, records=40, uncertified=True))


def test_the_same_claim_may_be_certified_more_than_once(tmp_path: Path, snapshot: Snapshot) -> None:
    """Certificates contain a date, so their hashes differ. Each rank, or each run of a script, may make its own certificate."""
    certificates = []
    for year in ("2031", "2032"):
        made = json.loads(pyaccount.certify(document()).to_json())
        dated = sealed({**made, "created": year + made["created"][4:]})
        certificates.append(pyaccount.Certificate.from_json(json.dumps(dated)))
    with TrainingRun(certificates[0], tmp_path, records=40) as run:
        go(run, 1)
    with TrainingRun(certificates[1], tmp_path, records=40) as run:
        go(run, 1)
    for certificate in certificates:
        assert hold_record(tmp_path / "record.jsonl", certificate)
    # The document needs no certificate then either, unless it needs samples.
    with TrainingRun(document(), tmp_path, records=40) as run:
        go(run, 1)
    with snapshot.raises(RunError):
        TrainingRun(pyaccount.certify(document({"noise": {"multiplier": 0.6}})), tmp_path, records=40)
    with TrainingRun(document(), tmp_path / "uncertified", records=40, uncertified=True) as run:
        go(run, 1)
    snapshot.raised(lambda: TrainingRun(document(), tmp_path / "uncertified", records=40))


def test_a_matrix_is_looked_for_beside_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    """The certificate in the run's folder contains the document, but not the path from which it was read."""
    place = tmp_path / "documents"
    place.mkdir()
    np.save(place / "c.npy", np.eye(12))
    asked = document({"matrix": {"kind": "dense", "file": "c.npy"}, "sampler": {"kind": "none"}})
    (place / "run.json").write_text(json.dumps(asked))
    monkeypatch.chdir(tmp_path)
    for expected in (0, 1):
        with TrainingRun(place / "run.json", tmp_path / "run", records=40) as run:
            assert run.round == expected
            go(run, 1)
    np.save(place / "c.npy", 2.0 * np.eye(12))
    snapshot.raised(lambda: TrainingRun(place / "run.json", tmp_path / "run", records=40))


def test_what_takes_samples_takes_its_certificate(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: TrainingRun(document(CORRELATED), tmp_path, records=40))
    certificate = pyaccount.certify(document())
    snapshot.raised(TrainingRun, certificate, tmp_path, records=40, uncertified=True)


def test_what_takes_too_long_takes_its_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.setattr(opening, "MOST_SECONDS", 1e-6)
    snapshot.raised(lambda: TrainingRun(document(), tmp_path, records=40))


def test_other_ranks_take_the_certificate_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    runs = [TrainingRun(document(), tmp_path, records=40, rank=rank, world=2) for rank in (0, 1)]
    assert [go(run, 1) is not None for run in runs] == [True, True]
    assert runs[0].guarantee == runs[1].guarantee is not None
    monkeypatch.setattr(opening, "PATIENCE", 0.0)
    snapshot.raised(lambda: TrainingRun(document(), tmp_path / "other", records=40, rank=1, world=2))
