"""The contrast of a certificate says what its number is about: the number of each phrase is computed here by hand."""

import copy
import math
import re
from typing import Any

import numpy as np
import oracle
import pytest
from certificate_oracle import inconsistencies
from plain_documents import doc, sectioned
from report_samples import text_of
from snapshots import Snapshot

import pyaccount

DELTA = 1e-5
BASE: dict[str, Any] = doc("name=contrast dataset_size=1000 iterations=12 sampler=poisson multiplier=4.0", delta=DELTA)
#: The square root of the prefix sums, four bands of it, with columns of norm 1.
ROOT = np.array([1.0, 1 / 2, 3 / 8, 5 / 16])
ROOT /= np.linalg.norm(ROOT)
DENSE = sum(c * np.eye(12, k=-k) for k, c in enumerate(ROOT))
BANDED = {"kind": "banded-square-root", "bands": 4}


def moved(rounds: list[int]) -> float:
    """‖Cx‖ for a record in these rounds."""
    return float(np.linalg.norm(DENSE[:, rounds].sum(axis=1)))


def document(sampler: dict[str, Any], training: dict[str, Any], **sections: Any) -> dict[str, Any]:
    changed = copy.deepcopy(BASE)
    changed["sampler"] = sampler
    changed["training"] |= training
    return {**changed, **sections}


@pytest.mark.parametrize(
    ("raw", "sensitivity"),
    [
        (document({"kind": "poisson"}, {"sampling_probability": 0.1}), math.sqrt(12)),
        (document({"kind": "none", "max_participations": 3}, {}), math.sqrt(3)),
        (document({"kind": "none", "max_participations": 1}, {}), 1.0),
        (document({"kind": "none"}, {}), math.sqrt(12)),
        (document({"kind": "none", "min_separation": 5}, {}, matrix=BANDED), moved([0, 5, 10])),
        (document({"kind": "none"}, {}, matrix=BANDED), moved(list(range(12)))),
        (
            document({"kind": "cyclic-poisson", "partitions": 4}, {"sampling_probability": 0.1}, matrix=BANDED),
            moved([0, 4, 8]),
        ),
        (document({"kind": "with-replacement"}, {"expected_batch_size": 10}), math.sqrt(12)),
        (document({"kind": "poisson", "truncate_to": 200}, {"sampling_probability": 0.1}), 2 * math.sqrt(12)),
    ],
    ids=[
        "Poisson",
        "three rounds",
        "one round",
        "all rounds",
        "separated",
        "all rounds and a matrix",
        "cyclic",
        "with replacement",
        "truncated",
    ],
)
def test_the_contrast_is_about_what_it_says(raw: dict[str, Any], sensitivity: float, snapshot: Snapshot) -> None:
    contrast = pyaccount.certify(raw).data.unamplified
    snapshot(contrast.description)
    assert contrast.epsilon == pytest.approx(float(oracle.gaussian_epsilon(sensitivity / 4.0, DELTA)), rel=2e-6)


@pytest.mark.parametrize(("bins", "words"), [(4, "up to 3 rounds"), (5, "up to 3 rounds"), (12, "one round")])
def test_a_known_bin_is_not_every_round(bins: int, words: str) -> None:
    raw = document({"kind": "balls-in-bins", "bins": bins}, {}, privacy={**BASE["privacy"], "delta": 0.01})
    contrast = pyaccount.certify({**raw, "accounting": {"seed": 1}}).data.unamplified
    assert contrast.description == f"the bin known: each record in {words}"
    truth = oracle.gaussian_epsilon(math.sqrt(math.ceil(12 / bins)) / 4.0, 0.01)
    assert contrast.epsilon == pytest.approx(float(truth), rel=2e-6)


def test_phases_with_contrasts_of_their_own_are_named() -> None:
    poisson = {"sampling_probability": 0.1, "iterations": 12}
    first, second = (
        sectioned(name=name, training=poisson, sampler="poisson", multiplier=4.0) for name in ("first", "second")
    )
    statistics = sectioned(name="statistics", iterations=5, sampler="none", max_participations=2, multiplier=8.0)
    raw = doc(name="mixed", privacy=BASE["privacy"], phases=[first, statistics, second])
    contrast = pyaccount.certify(raw).data.unamplified
    assert contrast.description == (
        "first, second: every record in every round; statistics: each record in at most 2 rounds, without sampling"
    )
    truth = oracle.gaussian_epsilon(math.sqrt(24 / 16 + 2 / 64), DELTA)
    assert contrast.epsilon == pytest.approx(float(truth), rel=2e-6)
    raw["phases"] = [raw["phases"][0], raw["phases"][2]]
    assert pyaccount.certify(raw).data.unamplified.description == "every record in every round"


@pytest.mark.parametrize(
    ("kind", "adjacency", "batch"), [("with-replacement", "zero-out", 20), ("fixed-size", "add-remove", 3)]
)
def test_large_batches_of_fixed_size_may_tell_more_than_whole_ones(kind: str, adjacency: str, batch: int) -> None:
    """A record drawn several times, or in another one's place, moves a batch by more than 1: no contradiction."""
    raw = document({"kind": kind}, {"dataset_size": 4, "expected_batch_size": batch})
    raw["privacy"] = {**raw["privacy"], "adjacency": adjacency}
    data = pyaccount.certify(raw).data
    assert data.unamplified.epsilon is not None
    assert data.guarantee.epsilon_lower > data.unamplified.epsilon
    assert inconsistencies(data) == []


def test_one_is_written_as_one() -> None:
    certificate = pyaccount.certify(document({"kind": "none"}, {"iterations": 1}))
    out = certificate.to_text(200)
    assert re.search(r"iterations +1 ", out)
    assert re.search(r"rounds +1$", out, flags=re.MULTILINE)
    assert "the smallest, rounded up" in out


def test_the_smallest_of_a_loose_bound_is_the_bounds() -> None:
    from pyaccount.certificate.words import smallest

    loose = pyaccount.certify(document({"kind": "with-replacement"}, {"expected_batch_size": 10})).data
    assert smallest(loose) == "the smallest that the bound gives, rounded up"


def test_a_comparison_without_a_finite_epsilon_is_null() -> None:
    """Each release reveals everything with probability 0.02: for a group of three no ε is known at their joint δ."""
    release = {"mechanism": {"kind": "stated", "epsilon": 0.01, "delta": 0.02}, "count": 3}
    target = {"adjacency": "add-remove", "epsilon": 2, "delta": "solve", "group_size": 3}
    certificate = pyaccount.certify({"pyaccount": 1, "name": "releases", "privacy": target, **release})
    data = certificate.data
    assert data.unamplified.epsilon is None
    assert data.unamplified.delta == data.guarantee.delta
    assert data.group_lemma is not None
    assert data.group_lemma.epsilon is None
    assert inconsistencies(data) == []
    assert pyaccount.verify(certificate).agrees
    page = text_of(certificate)
    assert "no finite ε is proven at this δ" in page
    assert "no ε makes the δ for one record small enough" in page
