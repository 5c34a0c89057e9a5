"""`pyaccount verify` of certificates from which optional fields were taken: what is lost is named, and does not agree."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from drawn_once import Drawn
from gate_tools import changed, golden, refused, save

import pyaccount

pytestmark = pytest.mark.usefixtures("remembered_throughout", "drawn_once")


@pytest.fixture(scope="module")
def drawn_once() -> Iterator[None]:
    """The certificates here differ in what they lack: the samples are the same."""
    with Drawn().used():
        yield


#: Correlated noise, whose lower end is of two data sets that are described; certified in no time.
DOCUMENT: dict[str, Any] = {
    "pyaccount": 1,
    "name": "correlated",
    "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
    "training": {"dataset_size": 1000, "expected_batch_size": 10, "iterations": 12},
    "sampler": {"kind": "fixed-size"},
    "noise": {"multiplier": 2.0},
    "accounting": {"tolerance": 0.05, "profile": [0.5]},
}
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


@pytest.mark.parametrize("version", [None, "0.0.9"])
@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("confidence", ["profile__0__delta_estimate", "directions__remove__profile__1__standard_error"]),
        ("matrix", ["phases__0__matrix__coefficients", "phases__0__matrix__normalization", "directions__add__curve"]),
        ("records", ["phases__0__distinct_records", "directions__remove__curve"]),
    ],
)
def test_what_is_left_out_is_named(name: str, paths: list[str], version: str | None, tmp_path: Path) -> None:
    forged = made(name)
    for path in paths:
        forged = without(forged, path)
    if version is not None:
        # An earlier version, by its own word: only what it did not have yet may be missing.
        forged = changed(forged, versions__pyaccount=version)
        assert not pyaccount.verify(save(tmp_path, forged), same_version=True)
    found = pyaccount.verify(save(tmp_path, forged))
    younger = {written(path) for path in paths if path.endswith(("curve", "coefficients", "normalization"))}
    may_be = younger if version is not None else set()
    told = {one.path for one in found.differences if one.reason == "not stated by the certificate"}
    assert may_be <= told
    assert refused(found) & {written(path) for path in paths} == {written(path) for path in paths} - may_be
    assert found.agrees == (refused(found) == set())


def test_a_lower_end_in_words_is_missed(tmp_path: Path) -> None:
    """It is younger than the first certificates, which lack it and agree."""
    certificate: dict[str, Any] = json.loads(pyaccount.certify(REPLACED).to_json())
    forged = without(certificate, "reductions__0__lower_end")
    assert refused(pyaccount.verify(save(tmp_path, forged))) == {"reductions[0].lower_end"}
    older = changed(forged, created="2026-11-22T13:46:21+00:00")
    assert pyaccount.verify(save(tmp_path, older))


def test_kinds_of_records_are_missed(tmp_path: Path) -> None:
    """Certificates of strata did not have them at first, and agree."""
    strata = {"sampling_probability": {"strata": {"rare": 0.02, "common": 0.01}}, "iterations": 12}
    document = {**DOCUMENT, "training": strata, "sampler": {"kind": "poisson"}}
    certificate: dict[str, Any] = json.loads(pyaccount.certify(document).to_json())
    forged = without(certificate, "records")
    assert refused(pyaccount.verify(save(tmp_path, forged))) == {"records"}
    assert pyaccount.verify(save(tmp_path, changed(forged, created="2026-11-28T12:46:21+00:00")))


#: A bound that is not attained: its lower end is of other data sets, in words.
REPLACED = {**DOCUMENT, "privacy": {"adjacency": "replace-one", "epsilon": "solve", "delta": 1e-5}}


@pytest.mark.parametrize("null", ["directions__add__curve", "phases__0__matrix__coefficients"])
def test_null_is_as_bad_as_nothing(null: str, tmp_path: Path) -> None:
    assert written(null) in refused(pyaccount.verify(save(tmp_path, changed(made("matrix"), **{null: None}))))
