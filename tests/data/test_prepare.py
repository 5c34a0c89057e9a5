"""`pyaccount.prepare` and the command: reports that are true, documents that hold, errors with a remedy."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from jsonschema import Draft202012Validator
from places import EXAMPLES
from plain_documents import doc
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli, schemas
from pyaccount.data.reading import attribution_of

AUTHORS = EXAMPLES / "authors.csv"
DOCUMENT = EXAMPLES / "users-sharing-records.yaml"
SHORT = {"min_separation": 8, "expected_batch_size": 5}


def owners_in(path: Path) -> dict[str, set[str]]:
    found = defaultdict(set)
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            found[row["record"]].add(row["user"])
    return found


def test_the_report_counts_what_was_done(tmp_path: Path) -> None:
    prepared = pyaccount.prepare(AUTHORS, records_per_user=2, **SHORT)
    prepared.save_records(tmp_path / "kept.csv")
    before, kept, said = owners_in(AUTHORS), owners_in(tmp_path / "kept.csv"), prepared.report
    assert list(kept) == prepared.records == [record for record in before if record in kept]
    # A record keeps all of its users.
    assert all(kept[record] == before[record] for record in kept)
    for counts, table in ((said.before, before), (said.kept, kept)):
        records = Counter(user for users in table.values() for user in users)
        assert (counts.records, counts.users, counts.pairs) == (len(table), len(records), records.total())
        assert (counts.most_records, counts.most_users) == (max(records.values()), max(map(len, table.values())))
        assert counts.shared_records == sum(len(users) > 1 for users in table.values())
    assert said.kept.most_records == 2
    assert said.dropped.records == len(before) - len(kept) == said.dropped.records_per_user
    assert said.dropped.users == said.before.users - said.kept.users
    assert (said.attribution, said.private, said.rows) == ("shared", False, 594)
    assert said.most_neighbours == max(sum(bool(a & b) for b in kept.values()) for a in kept.values())
    places, users = prepared.pairs()
    assert [(prepared.records[r], prepared.attribution.user_names[u]) for r, u in zip(places, users, strict=True)] == [
        (record, user)
        for record in kept
        for user in sorted(kept[record], key=prepared.attribution.user_names.index)  # type: ignore[attr-defined]
    ]


def test_every_reason_is_counted_apart() -> None:
    """Each record is dropped for the first reason that holds of it, and the reasons add up."""
    dropped = pyaccount.prepare(AUTHORS, records_per_user=2, drop_shared=True).report.dropped
    assert dropped.shared == sum(len(users) > 1 for users in owners_in(AUTHORS).values())
    report = pyaccount.prepare(AUTHORS, records_per_user=2, neighbour_limit=2).report
    assert report.dropped.neighbours > 0
    assert report.dropped.records == report.before.records - report.kept.records
    assert report.most_neighbours is not None
    assert report.most_neighbours <= 2 == report.neighbour_limit
    said = report.to_text()
    assert f"{report.dropped.neighbours} with more than 2 neighbours" in said
    assert re.search(rf"^  dropped +{report.dropped.records} records ", said, flags=re.MULTILINE)
    assert "Not private" in said


def test_the_batch_is_as_asked_for_and_simulated() -> None:
    report = pyaccount.prepare(AUTHORS, records_per_user=2, **SHORT).report
    assert report.batch is not None
    assert report.batch.simulated is not None
    assert report.batch.expected == pytest.approx(5, rel=1e-5)
    assert abs(report.batch.simulated.mean - 5) < 4.5 * report.batch.simulated.standard_error
    same = pyaccount.prepare(
        AUTHORS, records_per_user=2, min_separation=8, sampling_probability=report.sampling_probability
    )
    assert same.report == report
    assert "estimate and its standard error" in report.to_text()


def test_the_rule_of_thumb_limits_neighbourhoods() -> None:
    crowd = [(f"r{k}", f"u{k}") for k in range(200)] + [("hub", f"u{k}") for k in range(200)]
    asked: dict[str, Any] = {"records_per_user": 2, "min_separation": 10, "expected_batch_size": 2}
    without, ruled = pyaccount.prepare(crowd, **asked), pyaccount.prepare(crowd, neighbour_limit="rule", **asked)
    # b·p = 10 · 2/201, so that at most ten may share.
    assert ruled.report.neighbour_limit == 10
    assert (without.report.kept.records, ruled.report.kept.records) == (201, 200)
    assert (ruled.report.attribution, ruled.report.dropped.neighbours) == ("single", 1)


@pytest.mark.parametrize("drop", [False, True])
def test_a_document_of_users_is_filled_in(drop: bool, tmp_path: Path) -> None:
    prepared = pyaccount.prepare(
        AUTHORS, records_per_user=3, document=DOCUMENT, expected_batch_size=1, drop_shared=drop
    )
    assert prepared.document is not None
    said = prepared.document.to_mapping()
    assert said["sampler"]["records_per_user"] == 3
    assert said["sampler"]["attribution"] == ("single" if drop else "shared")
    assert said["training"]["dataset_size"] == len(prepared.records)
    assert said["training"]["sampling_probability"] == prepared.report.sampling_probability
    assert prepared.report.min_separation == 32
    rest = {section: value for section, value in said.items() if section not in ("training", "sampler")}
    assert rest == {k: v for k, v in pyaccount.load(DOCUMENT).to_mapping().items() if k in rest}
    prepared.save_document(tmp_path / "prepared.yaml")
    assert pyaccount.load(tmp_path / "prepared.yaml") == prepared.document
    assert prepared.report.document_sha256 == prepared.document.sha256


def test_what_it_says_can_be_certified() -> None:
    overrides = ["training.iterations=64", "accounting.profile=[]"]
    prepared = pyaccount.prepare(
        AUTHORS, records_per_user=2, document=DOCUMENT, overrides=overrides, expected_batch_size=1
    )
    assert prepared.document is not None
    assert pyaccount.certify(prepared.document).holds


def test_without_users_in_the_sampler_groups_of_records_are_protected() -> None:
    document = doc(
        "name=groups epsilon=8 dataset_size=400 expected_batch_size=40 iterations=10 sampler=poisson multiplier=solve"
    )
    prepared = pyaccount.prepare(AUTHORS, records_per_user=2, document=document, expected_batch_size=20)
    assert prepared.document is not None
    assert prepared.document.privacy.group_size == 2
    assert prepared.report.document == {
        "training.dataset_size": len(prepared.records), "training.expected_batch_size": 20, "privacy.group_size": 2,
    }  # fmt: skip
    assert prepared.report.batch is not None
    assert (prepared.report.batch.expected, prepared.report.batch.simulated) == (20, None)
    kept = pyaccount.prepare(AUTHORS, records_per_user=2, document=document)
    assert kept.document is not None
    assert kept.document.to_mapping()["training"]["expected_batch_size"] == 40


def test_without_a_document_the_part_of_one_is_told() -> None:
    prepared = pyaccount.prepare(AUTHORS, records_per_user=2, drop_shared=True, **SHORT)
    part = yaml.safe_load(prepared.to_yaml())
    assert part["sampler"] == {
        "kind": "user-b-min-sep", "records_per_user": 2, "attribution": "single", "min_separation": 8,
    }  # fmt: skip
    whole = pyaccount.load(EXAMPLES / "users.yaml").to_mapping()
    whole["training"].update(part["training"])
    assert pyaccount.load(whole | {"sampler": part["sampler"], "matrix": {"kind": "identity"}})
    assert prepared.document is None
    bare = yaml.safe_load(pyaccount.prepare(AUTHORS, records_per_user=2).to_yaml())
    assert "sampling_probability" not in bare["training"]


WRONG: list[Any] = [
    {"records_per_user": 0},
    {"records_per_user": 2.5},
    {"seed": -1},
    {"expected_batch_size": 5},
    {"min_separation": 0},
    {"min_separation": 8, "expected_batch_size": 0},
    {"min_separation": 8, "sampling_probability": 1.1},
    {"min_separation": 8, "sampling_probability": 0.1, "expected_batch_size": 5},
    {"min_separation": 8, "expected_batch_size": 60},
    {"min_separation": 8, "expected_batch_size": 400},
    {"document": DOCUMENT, "min_separation": 8},
    {"neighbour_limit": 0},
    {"neighbour_limit": "rules"},
    {"neighbour_limit": "rule"},
]


@pytest.mark.parametrize("asked", WRONG)
def test_what_cannot_be_asked_is_said(asked: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.prepare(AUTHORS, **{"records_per_user": 2} | asked))


def test_tables_of_which_nothing_is_left(snapshot: Snapshot) -> None:
    shared = [("a", "x"), ("a", "y")]
    snapshot.raised(pyaccount.prepare, shared, records_per_user=1, drop_shared=True)
    crowd = [(f"r{k}", "u") for k in range(3)]
    snapshot.raised(pyaccount.prepare, crowd, records_per_user=3, neighbour_limit=1)


def test_documents_that_cannot_be_filled_in(snapshot: Snapshot) -> None:
    with snapshot.raises(pyaccount.DocumentError):
        pyaccount.prepare(AUTHORS, records_per_user=2, document=EXAMPLES / "pretrain-and-finetune.yaml")
    # What has no bound is refused at its place.
    overrides = ["privacy.adjacency=add-remove", "sampler.attribution=single"]
    snapshot.raised(pyaccount.prepare, AUTHORS, records_per_user=2, document=DOCUMENT, overrides=overrides)
    chosen = ["matrix.bands={choose: [4, 8]}", "matrix.kind=banded-square-root"]
    mapping = pyaccount.load(DOCUMENT).to_mapping()
    del mapping["sampler"]["min_separation"]
    snapshot.raised(pyaccount.prepare, AUTHORS, records_per_user=2, document=mapping, overrides=chosen)


# ---- the command


def test_the_command_writes_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Run, snapshot: Snapshot
) -> None:
    command = ["prepare", str(AUTHORS), "--records-per-user", "2", "--expected-batch-size", "1"]
    where = ["--document", str(DOCUMENT), "-o", str(tmp_path / "p.yaml"), "--records", str(tmp_path / "kept.csv")]
    assert cli.run([*command, *where, "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(Draft202012Validator(schemas.schema("preparation")).iter_errors(said)) == []
    prepared = pyaccount.prepare(AUTHORS, records_per_user=2, document=DOCUMENT, expected_batch_size=1)
    assert said == json.loads(prepared.report.to_json())
    assert (tmp_path / "kept.csv").read_text(encoding="utf-8") == prepared.to_csv()
    assert pyaccount.load(tmp_path / "p.yaml").sha256 == said["document_sha256"]
    snapshot(run(*command, *where))
    assert prepared.report.to_text().count("estimate") == 1
    # What was kept once is kept whole.
    kept = pyaccount.prepare(tmp_path / "kept.csv", records_per_user=2)
    assert kept.report.dropped.records == 0


def test_columns_have_other_names(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    table, kept = tmp_path / "t.csv", tmp_path / "kept.csv"
    table.write_text("author,paper\nx,a\nx,b\n", encoding="utf-8")
    command = ["prepare", table, "--records-per-user", "1", "--records", kept]
    snapshot(run(*command))
    assert run(*command, "--record-column", "paper", "--user-column", "author").code == 0
    assert kept.read_text(encoding="utf-8").splitlines()[0] == "paper,author"


def test_the_command_takes_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same table as CSV gives the same report, document and records; what is no Parquet is said with the file."""
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: `prepare` of Parquet is NOT tested")
    parquet = pytest.importorskip("pyarrow.parquet")
    with AUTHORS.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    columns = {name: [row[name] for row in rows] for name in ("record", "user")}
    parquet.write_table(arrow.table(columns), tmp_path / "authors.parquet", row_group_size=100)
    written = []
    for table in (AUTHORS, tmp_path / "authors.parquet"):
        places = [str(tmp_path / f"{table.suffix[1:]}.{kind}") for kind in ("yaml", "kept")]
        options = ["--records-per-user", "2", "--document", str(DOCUMENT), "-o", places[0], "--records", places[1]]
        assert cli.run(["prepare", str(table), *options]) == 0
        told = capsys.readouterr().out.replace(str(table), "the table")
        written.append([told, *(Path(place).read_text(encoding="utf-8") for place in places)])
    assert written[0] == written[1]
    (tmp_path / "authors.parquet").write_bytes(AUTHORS.read_bytes())
    assert cli.run(["prepare", str(tmp_path / "authors.parquet"), "--records-per-user", "2"]) == 2
    assert "this is not Parquet" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--records-per-user", "2", "-o", str(AUTHORS)],
        ["--records-per-user", "2", "--records", "-"],
        ["--records-per-user", "2", "--set", "name=x"],
        ["--records-per-user", "2", "-o", "a.yaml", "--records", "./a.yaml"],
        ["--records-per-user", "2", "--neighbour-limit", "some"],
        ["--records-per-user", "2", "--user-column", "x"],
        *(["--records-per-user", "2", "--expected-batch-size", size] for size in ("6.000", "6,000", "some")),
        [],
    ],
)
def test_wrong_options(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, snapshot: Snapshot
) -> None:
    monkeypatch.chdir(tmp_path)
    snapshot(run("prepare", AUTHORS, *options, "--format", "json"))
    assert not list(tmp_path.iterdir())


def test_a_document_that_names_a_file_stays_beside_it(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    np.savetxt(tmp_path / "c.csv", np.eye(8), delimiter=",")
    np.save(tmp_path / "c.npy", np.eye(8))
    mapping = pyaccount.load(DOCUMENT).to_mapping()
    mapping["training"] |= {"iterations": 8, "sampling_probability": 0.01}
    mapping["sampler"] |= {"min_separation": 2}
    mapping["matrix"] = {"kind": "dense", "file": "c.npy"}
    (tmp_path / "doc.yaml").write_text(json.dumps(mapping), encoding="utf-8")
    (tmp_path / "below").mkdir()
    command = ["prepare", str(AUTHORS), "--records-per-user", "2", "--document", str(tmp_path / "doc.yaml"), "-o"]
    snapshot(run(*command, tmp_path / "below" / "p.yaml"))
    assert cli.run([*command, str(tmp_path / "p.yaml")]) == 0


def test_the_kept_table_reads_as_it_was_written() -> None:
    pairs = [('a, "b"\nc', "ü"), ("=1", "x y"), ("7", "07")]
    prepared = pyaccount.prepare(pairs, records_per_user=1)
    rows = list(csv.reader(prepared.to_csv().splitlines(keepends=True)))
    assert rows == [["record", "user"], *map(list, pairs)]
    assert attribution_of(pairs).rows == 3


@pytest.mark.parametrize("written", ["5", "0.5e1", "0_5"])
def test_a_batch_is_spelled_as_in_documents(run: Run, written: str) -> None:
    options = ["--records-per-user", "2", "--min-separation", "8", "--expected-batch-size", written]
    code, out, _ = run("prepare", AUTHORS, *options, "--format", "json")
    expected = pyaccount.prepare(AUTHORS, records_per_user=2, min_separation=8, expected_batch_size=5)
    assert (code, out) == (0, expected.report.to_json())
