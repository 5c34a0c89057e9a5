"""Commits with the records of runs: what a record says, and what is credited for rounds that were not released."""

import json
from pathlib import Path
from typing import Any

import pytest
from ledger_samples import data_set, sampled
from ledger_samples import gaussian as releases
from snapshots import Snapshot
from training_runs import go

import pyaccount
from pyaccount import Certificate, Ledger, TrainingRun
from pyaccount.ledger.changing import read_record
from pyaccount.training.record import Recorded


def gaussian(mu: float, *, rounds: int, **more: Any) -> dict[str, Any]:
    """A run of full batches."""
    document = releases(mu, rounds=rounds) | more
    return document | {"training": {"iterations": rounds, "expected_batch_size": 50}}


RENYI = {"name": "r", "renyi": [{"order": order, "epsilon": 0.4} for order in (2, 8, 4)]}


def run(certificate: Certificate, folder: Path, rounds: int) -> str:
    """Release some rounds of a run; return its record."""
    with TrainingRun(certificate, folder, records=50, normaliser=1.0) as training:
        go(training, rounds)
    return str(folder / "record.jsonl")


def own_run(ledger: Ledger, entry: str, certificate: Certificate, folder: Path, *, rounds: int, end: str) -> str:
    """Release some rounds of the run that begins an entry, and close or abandon it; return its record."""
    training = TrainingRun(certificate, folder, records=50, normaliser=1.0)
    record = str(folder / "record.jsonl")
    ledger.begin(entry, run=read_record(record).run)
    go(training, rounds)
    getattr(training, end)()
    return record


def prepared(
    place: str, document: dict[str, Any], *, filter: str | None = None, begun: bool = True, **more: Any
) -> tuple[Ledger, str, Certificate]:
    ledger = Ledger(place)
    ledger.create(data_set(**more))
    certificate = pyaccount.certify(document)
    entry = ledger.reserve(certificate, who="ann", purpose="a test", filter=filter)
    if begun:
        ledger.begin(entry)
    return ledger, entry.id, certificate


def with_another_release(record: str, round: int) -> Path:
    """Append a copy of the last release of a record, as one of another round, with the right hash."""
    lines = Path(record).read_bytes().splitlines(keepends=True)
    release = next(line for line in reversed(lines) if json.loads(line)["event"] == "release")
    changed = json.loads(release) | {"previous": read_record(record).head, "round": round}
    Path(record).write_bytes(b"".join([*lines, json.dumps(changed).encode() + b"\n"]))
    return Path(record)


def spent(ledger: Ledger) -> list[float]:
    return [term.spent for term in ledger.status().data_sets[0].blocks[0].filters[0].terms]


def test_a_record_is_read_as_the_training_room_reads_it(tmp_path: Path) -> None:
    record = run(pyaccount.certify(gaussian(0.1, rounds=4)), tmp_path / "run", 3)
    found, whole = read_record(record), Recorded.read(record)
    assert (found.rounds, found.head) == (whole.rounds, whole.last) == (3, whole.last)
    assert found.document_sha256 == whole.header["document_sha256"]
    # A run that goes on keeps its first line.
    with Path(record).open("a") as lines:
        lines.write('{"event": "unfinished')
    assert read_record(record) == found


def test_the_record_of_a_whole_run(place: str, tmp_path: Path, snapshot: Snapshot) -> None:
    ledger, entry, certificate = prepared(place, gaussian(0.1, rounds=3), privacy={"mu": 1})
    record = run(certificate, tmp_path / "run", 3)
    committed = ledger.commit(entry, certificate, record=record)
    assert (committed.released_rounds, committed.record_head) == (3, read_record(record).head)
    assert spent(ledger) == pytest.approx([0.03**0.5])
    # The same certificate of another run, and the same run twice.
    again = ledger.reserve(certificate, who="ann", purpose="again")
    ledger.begin(again)
    snapshot.raised(ledger.commit, again, certificate, record=record)
    other = run(certificate, tmp_path / "other", 2)
    assert ledger.commit(again, certificate, record=other).released_rounds == 2
    # It was begun by hand, so nothing shows that there was no other run.
    assert spent(ledger) == pytest.approx([0.06**0.5])
    assert ledger.verify().intact


@pytest.mark.parametrize(
    ("budget", "document", "expected"),
    [
        # μ² = 0.01 and ρ = 0.005 of each round, of which 2 of 8 were released.
        ({"privacy": {"mu": 1}}, gaussian(0.1, rounds=8), [0.02**0.5]),
        ({"privacy": {"rho": 1}}, gaussian(0.1, rounds=8), [0.01]),
        # D_a = a·0.005 of each round.
        ({"filters": [RENYI], "filter": "r"}, gaussian(0.1, rounds=8), [0.02, 0.04, 0.08]),
    ],
)
def test_unused_rounds_are_credited_in_filters_that_add_rounds(
    place: str, tmp_path: Path, budget: dict[str, Any], document: dict[str, Any], expected: list[float]
) -> None:
    ledger, entry, certificate = prepared(place, document, begun=False, **budget)
    whole = spent(ledger)
    record = own_run(ledger, entry, certificate, tmp_path / "run", rounds=2, end="abandon")
    ledger.commit(entry, certificate, record=record)
    assert spent(ledger) == pytest.approx(expected, rel=1e-12)
    assert all(now < before for now, before in zip(spent(ledger), whole, strict=True))
    assert ledger.verify().intact


def test_sampled_rounds_are_credited_in_a_filter_of_divergences(place: str, tmp_path: Path) -> None:
    document = sampled(rounds=40, rate=0.02, multiplier=2.0)
    ledger, entry, certificate = prepared(place, document, filters=[RENYI], filter="r", begun=False)
    whole = spent(ledger)
    ledger.commit(
        entry, certificate, record=own_run(ledger, entry, certificate, tmp_path / "run", rounds=10, end="abandon")
    )
    assert spent(ledger) == pytest.approx([one / 4 for one in whole], rel=1e-9)


def test_a_run_without_a_release_costs_nothing_in_a_filter(place: str, tmp_path: Path) -> None:
    ledger, entry, certificate = prepared(place, gaussian(0.1, rounds=8), privacy={"mu": 1}, begun=False)
    ledger.commit(
        entry, certificate, record=own_run(ledger, entry, certificate, tmp_path / "run", rounds=0, end="abandon")
    )
    assert spent(ledger) == [0.0]


def test_a_run_that_may_go_on_keeps_its_whole_price(place: str, tmp_path: Path) -> None:
    """A record is a valid one after every round: nothing is credited before the run has ended for good."""
    ledger, entry, certificate = prepared(place, gaussian(0.1, rounds=8), privacy={"mu": 1}, begun=False)
    whole = spent(ledger)
    record = own_run(ledger, entry, certificate, tmp_path / "run", rounds=1, end="close")
    committed = ledger.commit(entry, certificate, record=record)
    assert (committed.state, committed.released_rounds, spent(ledger)) == ("committed", 1, whole)
    assert ledger.verify().intact


def test_the_record_of_another_run_of_the_same_document(place: str, tmp_path: Path, snapshot: Snapshot) -> None:
    ledger, entry, certificate = prepared(place, gaussian(0.1, rounds=8), privacy={"mu": 1}, begun=False)
    own_run(ledger, entry, certificate, tmp_path / "run", rounds=4, end="close")
    other = run(certificate, tmp_path / "other", 1)
    snapshot.raised(ledger.commit, entry, certificate, record=other)
    # A second run does not begin what the first one spends; the first may go on.
    snapshot.raised(lambda: ledger.begin(entry, run=read_record(other).run))
    assert ledger.begin(entry, run=read_record(tmp_path / "run" / "record.jsonl").run).state == "begun"


def test_nothing_follows_the_end_of_a_run(place: str, tmp_path: Path, snapshot: Snapshot) -> None:
    ledger, entry, certificate = prepared(place, gaussian(0.1, rounds=8), privacy={"mu": 1}, begun=False)
    abandoned = own_run(ledger, entry, certificate, tmp_path / "run", rounds=1, end="abandon")
    record = with_another_release(abandoned, 1)
    snapshot.raised(ledger.commit, entry, certificate, record=record)


@pytest.mark.parametrize(
    ("budget", "document"),
    [
        # A plan that was fixed, and a filter that counts the run as one mechanism.
        ({}, gaussian(0.1, rounds=8)),
        ({"filters": [{"name": "v", "epsilon": 2, "delta": 1e-6}], "filter": "v"}, gaussian(0.1, rounds=8)),
        # Rounds that share their noise.
        ({"privacy": {"mu": 1}}, gaussian(0.1, rounds=8, matrix={"kind": "toeplitz", "coefficients": [1, 0.5]})),
    ],
)
def test_other_entries_keep_their_price(
    place: str, tmp_path: Path, budget: dict[str, Any], document: dict[str, Any]
) -> None:
    ledger, entry, certificate = prepared(place, document, **budget)
    before = ledger.status().data_sets[0].blocks
    ledger.commit(entry, certificate, record=run(certificate, tmp_path / "run", 2))
    assert ledger.entry(entry).released_rounds == 2
    assert ledger.status().data_sets[0].blocks == before


def test_a_record_that_ran_over(place: str, tmp_path: Path, snapshot: Snapshot) -> None:
    ledger, entry, certificate = prepared(place, gaussian(0.1, rounds=2), privacy={"mu": 1})
    record = with_another_release(run(certificate, tmp_path / "run", 2), 2)
    snapshot.raised(ledger.commit, entry, certificate, record=record)
    assert ledger.entry(entry).state == "begun"


def test_records_of_something_else(place: str, tmp_path: Path, snapshot: Snapshot) -> None:
    ledger, entry, certificate = prepared(place, gaussian(0.1, rounds=2), privacy={"mu": 1})
    record = Path(run(pyaccount.certify(gaussian(0.2, rounds=2)), tmp_path / "run", 2))
    whole = record.read_bytes()
    lines = whole.splitlines(keepends=True)
    for content in (
        whole,
        whole.replace(b'"release"', b'"releases"', 1),
        b"".join(lines[:1] + lines[2:]),
        b"",
        b"{}\n",
        b"text\n",
    ):
        record.write_bytes(content)
        snapshot.raised(ledger.commit, entry, certificate, record=record)
    with pytest.raises(FileNotFoundError):
        ledger.commit(entry, certificate, record=tmp_path / "nowhere.jsonl")
    assert ledger.entry(entry).state == "begun"
