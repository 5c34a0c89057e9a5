"""Tables of records and users: what is read, and where what is wrong stands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from snapshots import Snapshot

import pyaccount
from pyaccount.data.attribution import AttributionTable
from pyaccount.data.reading import attribution_of

TEXT = "record,user\na,x\nb,x\nb,y\nc,y\na,x\n"
PAIRS = [("a", "x"), ("b", "x"), ("b", "y"), ("c", "y"), ("a", "x")]


def said(table: AttributionTable) -> tuple[list[str], list[str], list[list[str]], int]:
    owners = [
        [table.user_names[u] for u in table.owners[start:stop]]
        for start, stop in zip(table.starts, table.starts[1:], strict=False)
    ]
    return list(table.record_names), list(table.user_names), owners, table.rows


EXPECTED = (["a", "b", "c"], ["x", "y"], [["x"], ["x", "y"], ["y"]], 5)


def file_of(tmp_path: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "\ufeff" + TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", "\n\n"),
        "year,user,record\n" + "".join(f"2026,{user},{record}\n" for record, user in PAIRS),
        '"record","user"\n' + "".join(f'"{record}","{user}"\n' for record, user in PAIRS),
    ],
    ids=["plain", "windows", "blank-lines", "more-columns", "quoted"],
)
@pytest.mark.parametrize("block", [2, 1 << 14])
def test_csv_is_read_whatever_its_dialect(
    text: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyaccount.tables.BLOCK", block)
    assert said(attribution_of(file_of(tmp_path, text))) == EXPECTED


def test_names_are_any_text(tmp_path: Path) -> None:
    text = 'record,user\n"a, ""b""\nc",ü\n 7,07\n'
    assert said(attribution_of(str(file_of(tmp_path, text))))[:2] == (['a, "b"\nc', " 7"], ["ü", "07"])


def test_tables_in_memory_say_the_same() -> None:
    records, users = zip(*PAIRS, strict=True)
    columns = {"record": records, "user": users}
    structured = np.array(PAIRS, dtype=[("record", "U9"), ("user", "U9")])
    for table in (PAIRS, iter(PAIRS), columns, structured, {name: np.array(side) for name, side in columns.items()}):
        assert said(attribution_of(table)) == EXPECTED
    other = {"paper": records, "author": users}
    assert said(attribution_of(other, ("paper", "author"))) == EXPECTED


def test_whole_numbers_are_the_text_of_their_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyaccount.data.reading.BLOCK", 3)
    records, users = [12, 5, 5, -3, 12], [7, 7, 9, 9, 7]
    texts = said(attribution_of(list(zip(map(str, records), map(str, users), strict=True))))
    for kind in (np.int64, np.int16):
        assert said(attribution_of({"record": np.array(records, kind), "user": np.array(users, kind)})) == texts
    assert said(attribution_of(list(zip(records, users, strict=True)))) == texts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "record,user\n",
        "record,users\na,x\n",
        "record;user\na;x\n",
        "record\tuser\na\tx\n",
        "record,user,user\na,x,y\n",
        "record,user\na,x\n\nb\n",
        "record,user\na,x,y\n",
        "record,user\na,x\nb,\n",
        "record,user\n,x\n",
        'record,user\n"a\nb",x\n,y\n',
        f"record,user\n{'a' * 1001},y\n",
        'record,user\na,"x\n',
        b"record,user\na,\xff\n",
    ],
    ids=range(14),
)
@pytest.mark.parametrize("block", [1, 1 << 14])
def test_what_is_wrong_has_a_place(
    text: str | bytes, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.setattr("pyaccount.tables.BLOCK", block)
    snapshot.raised(attribution_of, file_of(tmp_path, text))


@pytest.mark.parametrize("name", ["", "absent.csv", "absent\0.csv"])
def test_what_is_no_file_is_said(name: str, tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: attribution_of(str(tmp_path / name)))


@pytest.mark.parametrize(
    "table",
    [7, [1, 2], [("a",)], [("a", "x", "y")], {"record": ["a"]}, {"record": ["a"], "user": ["x", "y"]}, "a,x"],
    ids=str,
)
def test_what_is_no_table_is_said(table: Any, snapshot: Snapshot) -> None:
    snapshot.raised(attribution_of, table)


@pytest.mark.parametrize("value", [None, "", 1.5, float("nan"), True, b"x"])
def test_what_names_nothing_is_said_with_its_row(value: object, snapshot: Snapshot) -> None:
    snapshot.raised(attribution_of, [("a", "x"), ("b", value)])


def test_one_column_is_not_both(snapshot: Snapshot) -> None:
    snapshot.raised(attribution_of, PAIRS, ("user", "user"))


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    snapshot.raised(lambda: attribution_of(file_of(tmp_path, b"PAR1", "table.parquet")))


def test_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: reading Parquet is NOT tested")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "table.parquet"
    records, users = zip(*PAIRS, strict=True)
    for column in (list(users), arrow.array(users).dictionary_encode()):
        parquet.write_table(arrow.table({"user": column, "year": [1] * 5, "record": list(records)}), path)
        assert said(attribution_of(path)) == EXPECTED
    parquet.write_table(arrow.table({"record": [3, 3, 1], "user": [1, 2, 2]}), path)
    assert said(attribution_of(path)) == (["3", "1"], ["1", "2"], [["1", "2"], ["2"]], 3)
    parquet.write_table(arrow.table({"record": [3, None], "user": [1, 2]}), path)
    with pytest.raises(pyaccount.TableError, match="row 2"):
        attribution_of(path)
    parquet.write_table(arrow.table({"records": [3], "user": [1]}), path)
    with pytest.raises(pyaccount.TableError, match="no column of the table"):
        attribution_of(path)
    path.write_bytes(b"no such thing")
    with pytest.raises(pyaccount.TableError, match="not Parquet"):
        attribution_of(path)
