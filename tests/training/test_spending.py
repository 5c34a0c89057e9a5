"""Runs that are entered in a ledger: reserved on opening, begun at the first release, committed with their record."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_samples import data_set, gaussian
from snapshots import Snapshot
from training_runs import go

import pyaccount
from pyaccount import BudgetError, Ledger, LedgerError, TrainingRun


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "budgets.db")
    made.create(data_set(privacy={"mu": 0.5}))
    return made


def document(rounds: int = 4, mu: float = 0.1) -> dict[str, Any]:
    stated = gaussian(mu, rounds=rounds, epsilon=8)
    return stated | {"training": {"iterations": rounds, "expected_batch_size": 20}}


def opened(source: Any, folder: Path, ledger: Any, **more: Any) -> TrainingRun:
    return TrainingRun(source, folder, records=20, ledger=ledger, **more)


def go_on(run: TrainingRun, rounds: int) -> None:
    go(run, rounds, lambda _: np.zeros(2))


def states(ledger: Ledger) -> list[str]:
    return [event.event for event in ledger.history().events][1:]


def spent(ledger: Ledger) -> float:
    return ledger.status().data_sets[0].blocks[0].filters[0].terms[0].spent


def test_a_run_is_reserved_begun_and_committed(ledger: Ledger, tmp_path: Path) -> None:
    certificate = pyaccount.certify(document())
    with opened(certificate, tmp_path / "run", ledger) as run:
        assert states(ledger) == ["reserved"]
        assert run.entry is not None
        assert run.entry.purpose == "mean"
        go_on(run, 1)
        assert states(ledger) == ["reserved", "begun"]
        go_on(run, 3)
        assert states(ledger) == ["reserved", "begun"]
    assert states(ledger) == ["reserved", "begun", "committed"]
    entry = ledger.entry(run.entry.id)
    assert (entry.state, entry.released_rounds) == ("committed", 4)
    run.close()
    assert states(ledger) == ["reserved", "begun", "committed"]
    assert ledger.verify().intact


def test_a_run_that_is_continued_has_one_entry(ledger: Ledger, tmp_path: Path) -> None:
    """Also if its process was killed, and if it was opened from a document, which is certified then."""
    for rounds in (0, 1, 1):
        run = opened(document(), tmp_path / "run", str(tmp_path / "budgets.db"))
        go_on(run, rounds)
        run.close()
    assert states(ledger) == ["reserved", "begun"]
    with opened(document(), tmp_path / "run", ledger) as run:
        go_on(run, 2)
    assert states(ledger) == ["reserved", "begun", "committed"]
    # After the end nothing more is released, and opening it again changes nothing.
    opened(document(), tmp_path / "run", ledger).close()
    assert states(ledger) == ["reserved", "begun", "committed"]


def test_an_abandoned_run_gets_its_unused_rounds_back(ledger: Ledger, tmp_path: Path) -> None:
    run = opened(document(rounds=16), tmp_path / "run", ledger)
    go_on(run, 4)
    assert spent(ledger) == pytest.approx(0.4)
    run.abandon()
    assert states(ledger) == ["reserved", "begun", "committed"]
    assert spent(ledger) == pytest.approx(0.2)


def test_a_run_that_does_not_fit_releases_nothing(ledger: Ledger, tmp_path: Path, snapshot: Snapshot) -> None:
    certificate = pyaccount.certify(document(rounds=26))
    for _ in range(2):
        with snapshot.raises(BudgetError):
            opened(certificate, tmp_path / "run", ledger)
    assert states(ledger) == []
    # Its folder is not locked: with a larger budget it begins there.
    ledger.change(data_set(privacy={"mu": 0.6}))
    with opened(certificate, tmp_path / "run", ledger) as run:
        go_on(run, 1)
    assert states(ledger)[1:] == ["reserved", "begun"]


def test_a_reservation_that_was_made_before(ledger: Ledger, tmp_path: Path, snapshot: Snapshot) -> None:
    certificate = pyaccount.certify(document())
    reserved = ledger.reserve(certificate, who="ann", purpose="p")
    other = ledger.reserve(document(mu=0.05), who="ann", purpose="p")
    snapshot.raised(lambda: opened(certificate, tmp_path / "run", ledger, entry=other.id))
    snapshot.raised(lambda: opened(certificate, tmp_path / "run", ledger))
    assert states(ledger) == ["reserved", "reserved"]
    with opened(certificate, tmp_path / "run", ledger, entry=reserved.id) as run:
        go_on(run, 4)
    assert ledger.entry(reserved.id).state == "committed"
    ledger.release(other)
    with opened(document(mu=0.05), tmp_path / "other", ledger, entry=other.id) as run, pytest.raises(LedgerError):
        go_on(run, 1)
    assert run.released == 0


def test_a_run_is_continued_as_another_user_by_the_name_of_its_entry(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    certificate = pyaccount.certify(document())
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    with opened(certificate, tmp_path / "run", ledger) as run:
        go_on(run, 1)
    assert run.entry is not None
    monkeypatch.setattr("getpass.getuser", lambda: "bob")
    snapshot.raised(lambda: opened(certificate, tmp_path / "run", ledger))
    with opened(certificate, tmp_path / "run", ledger, entry=run.entry.id) as run:
        go_on(run, 3)
    assert states(ledger) == ["reserved", "begun", "committed"]
    assert ledger.entry(run.entry.id).who == "ann"


def test_an_entry_of_the_same_document_with_another_value_in_its_blank_is_refused(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    """Two certificates of one document may state different solved values, and the entry is the price of one of them."""
    certificate = pyaccount.certify(document())
    reserved = ledger.reserve(certificate, who="ann", purpose="p")
    monkeypatch.setattr(ledger, "entry", lambda _: replace(reserved, phases_sha256="0" * 64))
    snapshot.raised(lambda: opened(certificate, tmp_path / "run", ledger, entry=reserved.id))


def test_an_entry_is_the_price_of_one_run(ledger: Ledger, tmp_path: Path) -> None:
    """A job that starts again with an empty disk has another key, so that its noise and batches are new."""
    certificate = pyaccount.certify(document())
    entry = ledger.reserve(certificate, who="ann", purpose="p").id
    with opened(certificate, tmp_path / "run", ledger, entry=entry) as run:
        go_on(run, 2)
    with (
        opened(certificate, tmp_path / "again", ledger, entry=entry) as again,
        pytest.raises(LedgerError, match="an entry is the price of one run"),
    ):
        go_on(again, 1)
    assert again.released == 0
    # One that was begun by hand belongs to nobody.
    by_hand = ledger.reserve(certificate, who="ann", purpose="p").id
    ledger.begin(by_hand)
    with (
        opened(certificate, tmp_path / "third", ledger, entry=by_hand) as third,
        pytest.raises(LedgerError, match="was begun by hand"),
    ):
        go_on(third, 1)
    with opened(certificate, tmp_path / "run", ledger, entry=entry) as run:
        go_on(run, 2)
    assert ledger.entry(entry).state == "committed"


def test_a_commit_by_somebody_else_covers_all_rounds_of_the_run(ledger: Ledger, tmp_path: Path) -> None:
    certificate = pyaccount.certify(document(rounds=10))
    run = opened(certificate, tmp_path / "run", ledger)
    go_on(run, 1)
    assert run.entry is not None
    before = spent(ledger)
    ledger.commit(run.entry.id, certificate, record=tmp_path / "run" / "record.jsonl")
    assert spent(ledger) == before
    go_on(run, 1)
    run.close()
    assert spent(ledger) == before


def test_only_the_first_rank_enters_a_run(ledger: Ledger, tmp_path: Path) -> None:
    certificate = pyaccount.certify(document())
    first = opened(certificate, tmp_path / "run", ledger, world=2)
    second = opened(certificate, tmp_path / "run", ledger, rank=1, world=2)
    assert (second.entry, states(ledger)) == (None, ["reserved"])
    second.close()
    first.close()


def test_a_run_without_a_certificate_is_not_entered(ledger: Ledger, tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: opened(document(), tmp_path / "run", ledger, uncertified=True))
