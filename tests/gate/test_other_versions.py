"""`pyaccount verify` of certificates that name another version: samples may be others, what they prove may not."""

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn_once import Drawn
from gate_tools import (
    ALL,
    ASKED,
    SAMPLED,
    agreeing,
    at_most,
    changed,
    everywhere,
    golden,
    named,
    refused,
    restated,
    save,
)

import pyaccount

pytestmark = pytest.mark.usefixtures("remembered_throughout", "drawn_once")


@pytest.fixture(scope="module")
def drawn_once() -> Iterator[None]:
    """Most certificates here differ in what they say of the same samples: it is what they are held against that is tested."""
    with Drawn().used():
        yield


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_other_versions_promise_no_bits(path: Path, tmp_path: Path) -> None:
    certificate = json.loads(path.read_text(encoding="utf-8"))
    found = pyaccount.verify(save(tmp_path, changed(certificate, versions__pyaccount="0.0.9")))
    assert found.agrees, found.to_text()
    assert "pyaccount 0.0.9" in found.notes[0]
    if path.stem in SAMPLED:
        assert "equal bits are not promised" in found.notes[0]
        assert found.compared == "proven"


def from_other_samples(document: dict[str, Any]) -> dict[str, Any]:
    """An honest certificate of another version, which drew samples that the recorded seed does not give here."""
    certificate = json.loads(pyaccount.compile(document).run(seed=1).to_json())
    return changed(certificate, versions={"pyaccount": "0.0.9", "core": "0.0.9"}, evidence__sampling__seed=2)


@pytest.mark.nightly(but=["epsilon", "a claim that fails"])
@pytest.mark.parametrize("document", ASKED.values(), ids=ASKED)
def test_other_samples_of_another_version_agree(document: dict[str, Any], tmp_path: Path) -> None:
    certificate = from_other_samples(document)
    (judged,) = pyaccount.check(save(tmp_path, certificate), no_limits=True).certificates
    assert judged.rules[0].passes, judged.rules[0].remark
    found = pyaccount.verify(save(tmp_path, certificate))
    assert found.agrees, found.to_text()
    assert found.compared == "proven"
    # The samples are others indeed.
    assert "profile[0].delta_estimate" in agreeing(found)


def nearly_nothing(point: dict[str, Any]) -> None:
    point.update(epsilon=1e-3 * point["epsilon"], delta=1e-12, delta_lower=0.0, delta_estimate=1e-13)


def failing_less(certificate: dict[str, Any], factor: float) -> dict[str, Any]:
    """The certificate with a smaller failure probability, wherever it stands."""
    forged = copy.deepcopy(certificate)
    forged["guarantee"]["failure_probability"] *= factor
    for name in ("total_probability", "test_probability", "pointwise_failure_probability"):
        forged["evidence"]["sampling"][name] *= factor
    for line in forged["evidence"]["error_budget"]:
        if line["contribution"] == certificate["evidence"]["sampling"]["total_probability"]:
            line["contribution"] = forged["evidence"]["sampling"]["total_probability"]
    for test in forged["evidence"]["sampling"]["tests"]:
        test["log_target"] -= math.log(factor)
        test["log_wealth"] -= math.log(factor)
    return forged


def less(point: dict[str, Any]) -> None:
    """Below the truth, where samples tell of it."""
    point["delta"] = max(0.77 * point["delta"], point["delta_lower"])


def lower_ends(certificate: dict[str, Any], **ends: float) -> dict[str, Any]:
    forged = copy.deepcopy(certificate)
    for pair in (forged["guarantee"], forged["directions"]["remove"]):
        pair.update(ends)
    return forged


def sampling(certificate: dict[str, Any], **figures: float) -> dict[str, Any]:
    return changed(certificate, **{f"evidence__sampling__{name}": figure for name, figure in figures.items()})


VERIFIED, CONFIDENCE = golden("verified"), golden("confidence")


@pytest.mark.parametrize(
    ("forged", "place"),
    [
        (at_most(VERIFIED, 1.9), "guarantee.epsilon"),
        (everywhere(VERIFIED, nearly_nothing), "profile[0].delta"),
        (everywhere(VERIFIED, lambda point: point.update(epsilon=point["epsilon"] * (1 - 1e-9))), "profile[0].epsilon"),
        # Just above the lower end: refuted by nothing, and retested.
        (at_most(CONFIDENCE, CONFIDENCE["guarantee"]["epsilon_lower"] * 1.0001), "guarantee.epsilon"),
        (everywhere(CONFIDENCE, nearly_nothing), "profile[0].delta"),
        (everywhere(CONFIDENCE, less), "profile[0].delta"),
        (everywhere(CONFIDENCE, lambda point: point.update(delta_lower=0.95 * point["delta"])), "profile[0].delta_lower"),
        (sampling(CONFIDENCE, pointwise_failure_probability=0.0), "evidence.sampling.pointwise_failure_probability"),
        (sampling(CONFIDENCE, seed=8), "evidence.sampling.seed"),
        (sampling(CONFIDENCE, test_probability=1e-9), "evidence.sampling.test_probability"),
        (changed(CONFIDENCE, evidence__error_budget__1__contribution=0.0), "evidence.error_budget[1].contribution"),
        (lower_ends(CONFIDENCE, delta_lower=0.00995), "guarantee.delta_lower"),
        (lower_ends(CONFIDENCE, epsilon_lower=0.6499), "guarantee.epsilon_lower"),
        (failing_less(CONFIDENCE, 0.51), "guarantee.failure_probability"),
        (changed(VERIFIED, evidence__engine="proved by hand"), "evidence.engine"),
        (changed(VERIFIED, reductions__0__tight=False), "reductions[0].tight"),
    ],
)  # fmt: skip
def test_a_version_named_is_no_licence(forged: dict[str, Any], place: str, tmp_path: Path) -> None:
    certificate = restated(tmp_path, changed(forged, versions={"pyaccount": "0.0.9", "core": "0.0.9"}))
    found = pyaccount.verify(save(tmp_path, certificate))
    assert not found.agrees
    assert place in refused(found)


def test_naming_no_version_is_no_licence(tmp_path: Path) -> None:
    found = pyaccount.verify(save(tmp_path, restated(tmp_path, changed(at_most(VERIFIED, 0.1), versions={}))))
    assert "guarantee.epsilon" in refused(found)
    assert "made by pyaccount unknown" in found.notes[0]


def test_a_failure_probability_that_follows_from_an_estimate_is_tested_and_bounded(tmp_path: Path) -> None:
    honest = from_other_samples(ASKED["delta"])
    # Tested anew with the smaller one, the statement may hold all the same; below what any estimate gives it may not.
    found = pyaccount.verify(save(tmp_path, restated(tmp_path, failing_less(honest, 0.01))))
    assert not found.agrees
    assert "evidence.sampling.total_probability" in refused(found)
    low = 0.5 * honest["guarantee"]["delta"]
    forged = changed(
        failing_less(honest, 0.5),
        guarantee__delta=low,
        solved__value=low,
        guarantee__delta_lower=0.0,
        unamplified__delta=low,
    )
    for side in forged["directions"].values():
        side.update(delta=low, delta_lower=0.0)
    for test in forged["evidence"]["sampling"]["tests"]:
        test["threshold"] = low
    found = pyaccount.verify(save(tmp_path, restated(tmp_path, forged)))
    assert not found.agrees
    assert "guarantee.delta" in refused(found)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"assumptions": []}, "assumptions"),
        ({"guarantee__delta": 5e-3}, "guarantee.delta"),
        ({"utility__prefix_sum_mse": 1.0}, "utility.prefix_sum_mse"),
        ({"phases__0__participation_rate": 0.04}, "phases[0].participation_rate"),
        ({"guarantee__failure_probability": 1e-12}, "guarantee.failure_probability"),
    ],
)
def test_what_other_versions_do_promise(change: dict[str, Any], place: str, tmp_path: Path) -> None:
    certificate = changed(golden("confidence"), versions__pyaccount="0.0.9", **change)
    found = pyaccount.verify(save(tmp_path, certificate))
    assert not found.agrees
    assert place in {
        one.path for one in (*found.inconsistencies, *found.differences) if not getattr(one, "agrees", False)
    }


@pytest.mark.parametrize("name", ["verified", "verified-choice", "deterministic"])
def test_a_certificate_without_phases_is_compared_all_the_same(name: str, tmp_path: Path) -> None:
    found = pyaccount.verify(save(tmp_path, changed(golden(name), versions={}, phases=[])))
    assert not found.agrees
    assert "phases" in named(found)
