"""A small share of `benchmarks/forge.py`: changed certificates of some kinds, none of which is proven that is false."""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Behind the helpers of tests: two benchmarks have the names of helpers.
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from forge import forgery, names
from forging.certificates import Claim, claiming, meant, text
from forging.changes import Changes
from forging.checking import Answer, Checker
from forging.house import House
from forging.judging import Forger
from forging.starts import donors, kinds, start

from pyaccount.certificate.consistency import content_sha256
from pyaccount.certificate.model import CertificateModel

#: Kinds that are quick, and how many forgeries there are of each. Other seeds are for the nights.
KINDS = (
    "mechanism gaussian", "mechanism stated", "mechanism laplace", "sampler must-ow", "matrix toeplitz", "document shared scale",
    "document a tree with a count", "document cyclic, choices", "document bins, matrix", "golden smallest-delta",
)  # fmt: skip
FORGERIES, SEED = 10, 501


class Credulous(Checker):
    """A checker that proves everything."""

    def answer(self, text: str) -> Answer:
        return Answer("proven", None, 0.0)


@pytest.fixture(scope="module")
def changes() -> Changes:
    return Changes(donors(), names())


@pytest.fixture
def forger(changes: Changes) -> Iterator[Forger]:
    with Checker(0.2) as checker, House(5.0) as house:
        yield Forger(changes, checker, house)


@pytest.fixture
def credulous(changes: Changes) -> Iterator[Forger]:
    with House(5.0) as house:
        yield Forger(changes, Credulous(0.2), house)


def faults(forger: Forger, kind: str, number: int = FORGERIES) -> list[str]:
    one = start(kind, SEED, 10.0)
    assert one is not None
    return [forgery(forger, one, kind, SEED, i).fault for i in range(number)]


@pytest.mark.parametrize("kind", KINDS)
def test_no_forgery_is_proven(kind: str, forger: Forger) -> None:
    assert kind in kinds()
    assert [one for one in faults(forger, kind) if one] == []


def test_a_checker_that_proves_everything_is_found_out(credulous: Forger) -> None:
    found = faults(credulous, "mechanism gaussian", 40)
    for words in ("false: δ(", "false: data sets attain", "no document"):
        assert any(one.startswith(words) for one in found), words


def test_changes_are_drawn_by_their_seed(changes: Changes) -> None:
    tree = {
        "privacy": {"epsilon": 1, "delta": 1e-5},
        "phases": [{"count": 2, "mechanism": {"kind": "gaussian", "sigma": 3}}],
    }
    before, seen = copy.deepcopy(tree), set[str]()
    for seed in range(300):
        changed, how = changes.changed(tree, random.Random(seed))
        assert (changed, how) == changes.changed(tree, random.Random(seed))
        seen |= {one.split()[0] for one in how}
    assert tree == before
    assert {"dropped", "added", "renamed", "swapped", "scaled", "set", "another", "merged"} <= seen


def test_hashes_are_renewed_as_the_house_computes_them(forger: Forger) -> None:
    one = start("golden deterministic", 0, 1.0)
    assert one is not None
    written: dict[str, Any] = json.loads(text(claiming(one.certificate, Claim(1.0, 1e-9))))
    assert written["guarantee"]["epsilon"] == 1.0
    assert written["content_sha256"] == content_sha256(CertificateModel.model_validate(written))
    same = json.loads(text(one.certificate))
    assert same["document_sha256"] == one.certificate["document_sha256"]


def test_what_is_meant_has_no_blank(tmp_path: Path) -> None:
    one = start("document cyclic, choices", 0, 10.0)
    assert one is not None
    document = meant(one.certificate, tmp_path)
    assert document["noise"]["multiplier"] == one.certificate["solved"]["value"]
    assert document["matrix"]["kind"] == "toeplitz"
    assert "solve" not in json.dumps(document)
