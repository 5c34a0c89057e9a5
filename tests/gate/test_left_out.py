"""Certificates from which fields were taken, or values: what is left out is named, and what is null does not agree."""

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from drawn_once import Drawn
from gate_tools import changed, golden, refused, save
from plain_documents import doc
from snapshots import Snapshot

import pyaccount

pytestmark = pytest.mark.usefixtures("remembered_throughout", "drawn_once")


@pytest.fixture(scope="module")
def drawn_once() -> Iterator[None]:
    """The certificates here differ in what they lack: the samples are the same."""
    with Drawn().used():
        yield


#: Correlated noise, whose lower end is of two data sets that are described; certified in no time.
DOCUMENT: dict[str, Any] = doc(
    "name=correlated dataset_size=1000 expected_batch_size=10 iterations=12 sampler=fixed-size",
    "multiplier=2.0 tolerance=0.05 profile=[0.5]",
)
MATRIX = {
    **DOCUMENT,
    "training": {"iterations": 12},
    "sampler": {"kind": "none", "max_participations": 2, "min_separation": 6},
    "matrix": {"kind": "toeplitz", "coefficients": [1, 0.5]},
}


@cache
def certified(name: str) -> str:
    return pyaccount.certify(MATRIX if name == "matrix" else DOCUMENT).to_json()


def made(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(certified(name)) if name in ("matrix", "records") else golden(name)
    return found


def without(certificate: dict[str, Any], path: str) -> dict[str, Any]:
    copied = copy.deepcopy(certificate)
    *above, last = path.split("__")
    place: Any = copied
    for part in above:
        place = place[int(part) if isinstance(place, list) else part]
    assert place[last] not in (None, [])
    del place[last]
    return copied


def written(path: str) -> str:
    text = ""
    for part in path.split("__"):
        text += f"[{part}]" if part.isdigit() else f".{part}" if text else part
    return text


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("confidence", "profile__0__delta_estimate"),
        ("confidence", "evidence__sampling__profile_failure_probability"),
        ("matrix", "phases__0__matrix__coefficients"),
        ("matrix", "directions__add__curve"),
        ("records", "phases__0__distinct_records"),
        ("records", "content_sha256"),
    ],
)
def test_a_field_that_is_left_out_is_named(name: str, path: str, tmp_path: Path, snapshot: Snapshot) -> None:
    forged = without(made(name), path)
    snapshot.raised(lambda: pyaccount.verify(save(tmp_path, forged)))


def test_what_has_no_value_is_null() -> None:
    certificate = made("records")
    assert certificate["risk"] is None
    assert certificate["evidence"]["searched"] is None
    assert certificate["phases"][0]["matrix"]["rows"] is None


@pytest.mark.parametrize(
    "null", ["directions__add__curve", "phases__0__matrix__coefficients", "phases__0__matrix__normalization"]
)
def test_null_is_as_bad_as_nothing(null: str, tmp_path: Path) -> None:
    assert written(null) in refused(pyaccount.verify(save(tmp_path, changed(made("matrix"), **{null: None}))))
