"""The commands of a ledger: their results, and exit codes."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from ledger_samples import Clock, data_set, gaussian
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a data set, a document and its certificate."""
    monkeypatch.chdir(tmp_path)
    Path("customers.yaml").write_text(yaml.safe_dump(data_set(privacy={"mu": 0.5})))
    Path("mean.yaml").write_text(yaml.safe_dump(gaussian(0.4)))
    pyaccount.certify("mean.yaml").save("mean.cert.json")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.run(["ledger", *words])
    out, err = capsys.readouterr()
    return code, out, err


RESERVE = ("reserve", "budgets.db", "mean.yaml", "--who", "ann", "--purpose", "a mean")


def test_a_life_of_an_entry(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "create", "budgets.db", "customers.yaml") == (0, "customers: μ = 0.5\n", "")
    assert said(capsys, *RESERVE) == (0, "e2 reserved (all: budget)\n", "")
    assert said(capsys, "begin", "budgets.db", "e2") == (0, "e2 begun (all: budget)\n", "")
    code, out, err = said(capsys, "commit", "budgets.db", "e2", "mean.cert.json", "--format", "json")
    assert (code, err) == (0, "")
    entry = json.loads(out)
    assert (entry["kind"], entry["state"], entry["who"]) == ("ledger-entry", "committed", "ann")
    code, out, _ = said(capsys, "status", "budgets.db")
    assert code == 0
    assert "customers" in out
    assert [word for word in ("reserved", "begun", "committed") if word in out]
    code, out, _ = said(capsys, "history", "budgets.db", "--format", "json")
    assert [event["event"] for event in json.loads(out)["events"]] == [
        "data-set-created",
        "reserved",
        "begun",
        "committed",
    ]
    code, out, _ = said(
        capsys, "verify", "budgets.db", "--recompute", "--expected-head", json.loads(out)["events"][1]["hash"]
    )
    assert (code, "INTACT" in out) == (0, True)


def test_a_budget_that_does_not_admit_an_entry_is_exit_code_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "create", "budgets.db", "customers.yaml")
    said(capsys, *RESERVE)
    code, out, err = said(capsys, *RESERVE)
    assert (code, out) == (1, "")
    assert "no room in the budget of μ = 0.5" in " ".join(err.split())
    code, out, _ = said(capsys, *RESERVE, "--format", "json")
    (error,) = json.loads(out)["errors"]
    assert (code, error["slug"], error["path"], error["file"]) == (
        1,
        "over-budget",
        "data_sets.customers.blocks.all",
        "budgets.db",
    )
    Path("customers.yaml").write_text(yaml.safe_dump(data_set(privacy={"mu": 0.3})))
    assert said(capsys, "change", "budgets.db", "customers.yaml")[0] == 1
    Path("customers.yaml").write_text(yaml.safe_dump(data_set(privacy={"mu": 0.6})))
    assert said(capsys, "change", "budgets.db", "customers.yaml")[:2] == (0, "customers: μ = 0.6\n")
    assert said(capsys, *RESERVE, "--id", "job")[:2] == (0, "job reserved (all: budget)\n")
    assert said(capsys, *RESERVE, "--id", "job")[:2] == (0, "job reserved (all: budget)\n")
    assert said(capsys, "release", "budgets.db", "job")[:2] == (0, "job released (all: budget, given back)\n")


@pytest.mark.parametrize(
    "words",
    [
        ("begin", "budgets.db", "e9"),
        ("status", "nowhere.db"),
        ("status", "customers.yaml"),
        ("create", "budgets.db", "mean.yaml"),
        ("create", "budgets.db", "customers.yaml"),
        ("reserve", "budgets.db", "mean.yaml", "--who", "ann"),
        (*RESERVE, "--filter", "none"),
        (*RESERVE, "--block", "north"),
        (*RESERVE, "--dataset", "none"),
        ("verify", "budgets.db", "--expected-head", "00ff"),
        ("status",),
        ("reserved",),
    ],
)
def test_exit_codes(folder: Path, run: Run, snapshot: Snapshot, words: tuple[str, ...]) -> None:
    run("ledger", "create", "budgets.db", "customers.yaml")
    snapshot(run("ledger", *words))


def test_a_damaged_ledger_is_exit_code_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "create", "budgets.db", "customers.yaml")
    with closing(sqlite3.connect("budgets.db")) as connection:
        connection.execute("UPDATE events SET content = replace(content, 'customers', 'other')")
        connection.commit()
    code, out, _ = said(capsys, "verify", "budgets.db", "--format", "json")
    assert code == 1
    assert json.loads(out)["damage"][0]["sequence"] == 1


def test_forms_of_a_status(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "create", "budgets.db", "customers.yaml")
    said(capsys, *RESERVE)
    begins: dict[str, Any] = {
        "text": "Privacy ledger",
        "markdown": "# Privacy ledger",
        "json": "{",
        "html": "<!DOCTYPE html>",
        "openmetrics": "# TYPE pyaccount_ledger_events counter",
    }
    for form, begin in begins.items():
        code, out, _ = said(capsys, "status", "budgets.db", "--format", form)
        assert code == 0
        assert out.startswith(begin)
    for file, begin in (("status.html", "<!DOCTYPE html>"), ("status.json", "{"), ("status.md", "# Privacy ledger")):
        assert said(capsys, "status", "budgets.db", "-o", file, "--dataset", "customers")[0] == 0
        assert Path(file).read_text().startswith(begin)


def test_blocks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "create", "budgets.db", "customers.yaml")
    assert said(capsys, "add-block", "budgets.db", "north") == (0, "", "")
    assert (
        said(capsys, *RESERVE, "--block", "north", "--block", "all")[1] == "e3 reserved (north: budget, all: budget)\n"
    )
    assert said(capsys, "retire-block", "budgets.db", "north") == (0, "", "")
    assert said(capsys, "begin", "budgets.db", "e3")[0] == 2


def test_validate_reads_data_sets(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["validate", "customers.yaml", "--format", "json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)["documents"]
    assert (document["kind"], document["name"], document["valid"]) == ("data-set", "customers", True)


def test_a_clock_is_amended(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    future = pyaccount.Ledger("budgets.db", clock=Clock("2099-01-01T00:00:00+00:00"))
    future.create("customers.yaml")
    code, _, err = said(capsys, *RESERVE)
    assert code == 2
    assert "pyaccount ledger amend-clock" in err
    amend = ("amend-clock", "budgets.db", "--reason", "node 7 said 2099")
    code, out, err = said(capsys, *amend)
    assert (code, err) == (0, "")
    assert "was set back from 2099-01-01T00:00:01.000000Z to 2" in out
    assert said(capsys, *amend)[0] == 2
    assert said(capsys, *RESERVE)[0] == 0
    for reader in ("history", "status"):
        assert "node 7 said 2099" in said(capsys, reader, "budgets.db")[1]
    assert said(capsys, "verify", "budgets.db")[0] == 0
