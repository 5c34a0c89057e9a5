"""`pyaccount verify`: honest certificates agree, and whatever was changed is named."""

from __future__ import annotations

import copy
import functools
import json
import math
import operator
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from gate_tools import ALL, ROOT, RUNS, changed, golden, interrupted, leaves, rehashed, restated, save, written
from jsonschema import Draft202012Validator

import pyaccount
from pyaccount import cli, schemas
from pyaccount.certificate import Certificate
from pyaccount.execute import Answer, Engine, Question
from pyaccount.gate.agreement import Terms, differences
from pyaccount.plan import DirectedBounds, Plan

SAMPLED = ("verified", "verified-choice", "confidence")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def named(verification: Any) -> set[str]:
    return {one.path for one in (*verification.flaws, *verification.differences)}


def refused(verification: Any) -> set[str]:
    return {one.path for one in verification.differences if not one.agrees}


def agreeing(verification: Any) -> set[str]:
    return {one.path for one in verification.differences if one.agrees}


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates of equal documents and seeds are computed once in a test: it is the comparison that is tested."""
    kept: dict[tuple[str, object], Certificate] = {}
    original = Plan.run

    def run_once(self: Plan, *, seed: int | None = None, **options: Any) -> Certificate:
        key = ((self.asked or self.document).sha256, seed)
        if key not in kept:
            kept[key] = original(self, seed=seed, **options)
        return kept[key]

    monkeypatch.setattr(Plan, "run", run_once)
    asked: dict[object, Answer] = {}
    ask = Engine.ask

    def ask_once(self: Engine, bounds: DirectedBounds, question: Question) -> Answer:
        key = (tuple(bounds.items()), question)
        if key not in asked:
            asked[key] = ask(self, bounds, question)
        return asked[key]

    monkeypatch.setattr(Engine, "ask", ask_once)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_golden_certificates_agree(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "verify", str(path), "--format", "json", "--threads", "1")
    found = json.loads(out)
    assert code == 0, found["differences"]
    assert found["agrees"]
    assert list(Draft202012Validator(schemas.verification_schema()).iter_errors(found)) == []
    assert found["compared"] == ("bits" if path.stem in SAMPLED else "digits")


def scaled(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 0.9 * value if value else 1e-3
    return "0" * 64 if value is None or re.fullmatch("[0-9a-f]{64}", value) else value + " "


@pytest.mark.parametrize("name", ["deterministic", "group-of-phases", "verified", "confidence"])
@pytest.mark.usefixtures("remembered")
def test_every_changed_field_is_named(name: str, tmp_path: Path) -> None:
    certificate = golden(name)
    silent = []
    for path in leaves(certificate):
        if path[0] in ("created", "versions") or (path[0] == "document" and name != "deterministic"):
            # What nobody can recompute; and the hash tells a changed document, whatever is computed from it.
            continue
        inside = certificate
        for part in path[:-1]:
            inside = inside[part]  # type: ignore[index]
        forged = changed(certificate, **{"__".join(map(str, path)): scaled(inside[path[-1]])})  # type: ignore[index]
        place = written(path)
        try:
            found = pyaccount.verify(save(tmp_path, forged))
        except pyaccount.CertificateError as error:
            # Refused for what it is; the message must say where.
            if place not in str(error):
                silent.append(place)
            continue
        where = "document_sha256" if path[0] == "document" else place
        if found.agrees or where not in named(found):
            silent.append(place)
    assert silent == []


@pytest.mark.usefixtures("remembered")
def test_removed_and_added_entries_are_named(tmp_path: Path) -> None:
    certificate = golden("deterministic")
    for path in ("assumptions", "profile", "reductions", "evidence__error_budget"):
        inside = certificate
        for part in path.split("__"):
            inside = inside[part]
        for entries in (inside[1:], [*inside, inside[0]]):  # type: ignore[index, misc]
            found = pyaccount.verify(save(tmp_path, changed(certificate, **{path: entries})))
            assert not found.agrees
            assert path.replace("__", ".") in named(found)


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.usefixtures("remembered")
def test_sampled_certificates_are_compared_bit_for_bit(name: str, tmp_path: Path) -> None:
    certificate = golden(name)
    estimate = certificate["profile"][0]["delta_estimate"]
    forged = changed(certificate, profile__0__delta_estimate=math.nextafter(estimate, 1.0))
    found = pyaccount.verify(save(tmp_path, forged))
    assert not found.agrees
    assert named(found) == {"profile[0].delta_estimate"}


def test_another_seed_is_another_certificate(tmp_path: Path) -> None:
    certificate = golden("verified")
    forged = changed(certificate, evidence__sampling__seed=certificate["evidence"]["sampling"]["seed"] ^ 1)
    found = pyaccount.verify(save(tmp_path, forged))
    assert not found.agrees
    assert "evidence.sampling.tests[0].mean" in named(found)


def test_threads_do_not_matter() -> None:
    for name in ("deterministic", "confidence"):
        one, two = (pyaccount.verify(RUNS[name], threads=threads) for threads in (1, 2))
        assert one == two


def forged_noise(shift: float) -> dict[str, Any]:
    """What a search that ended elsewhere would have written: the claim judged at another σ."""
    asked = golden("deterministic")
    value = asked["solved"]["value"] * (1.0 + shift)
    document = changed(asked["document"], noise__multiplier=value)
    fresh: dict[str, Any] = json.loads(pyaccount.certify(document).to_json())
    kept = {key: asked[key] for key in ("document", "document_sha256")}
    return changed(fresh, solved={**asked["solved"], "value": value}) | kept


def test_a_search_that_ended_elsewhere_within_the_tolerance_agrees(tmp_path: Path) -> None:
    found = pyaccount.verify(save(tmp_path, forged_noise(6e-5)))
    assert found.agrees, found.to_text()
    assert not found.identical
    assert "solved.value" in agreeing(found)
    assert any("put into the document" in note for note in found.notes)


@pytest.mark.parametrize(("shift", "words"), [(-9e-5, "could not be certified"), (0.01, "apart"), (-0.01, "apart")])
def test_noise_that_misses_the_claim_or_the_tolerance_does_not(shift: float, words: str, tmp_path: Path) -> None:
    found = pyaccount.verify(save(tmp_path, forged_noise(shift)))
    assert not found.agrees
    (solved,) = [one for one in found.differences if one.path == "solved.value" and not one.agrees]
    assert words in solved.reason


@pytest.mark.usefixtures("remembered")
def test_a_lowered_bound_is_refuted_even_within_the_tolerance(tmp_path: Path) -> None:
    wide = pyaccount.certify({**golden("smallest-delta")["document"], "accounting": {"tolerance": 0.2}})
    certificate = json.loads(wide.to_json())
    # The interval is much narrower than asked for: what lies below it is told apart from what moved within it.
    point = certificate["profile"][1]
    assert point["delta_lower"] * 0.95 > 0.8 * point["delta"]
    found = pyaccount.verify(save(tmp_path, changed(certificate, profile__1__delta=point["delta_lower"] * 0.95)))
    assert not found.agrees
    (lowered,) = [one for one in found.differences if one.path == "profile[1].delta"]
    assert "refuted" in lowered.reason


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_other_versions_promise_no_bits(path: Path, tmp_path: Path) -> None:
    certificate = json.loads(path.read_text(encoding="utf-8"))
    found = pyaccount.verify(save(tmp_path, changed(certificate, versions__pyaccount="0.0.9")))
    assert found.agrees, found.to_text()
    assert "pyaccount 0.0.9" in found.notes[0]
    if path.stem in SAMPLED:
        assert "bits are not promised" in found.notes[0]
        assert found.compared == "bounds"


def unseeded(name: str, **changes: Any) -> dict[str, Any]:
    """A golden document that states no seed."""
    document = changed(golden(name)["document"], **changes)
    document["accounting"].pop("seed", None)
    return document


#: Documents that are sampled, by what is asked of them.
ASKED = {
    "noise": unseeded("verified"),
    "epsilon": unseeded("confidence"),
    "delta": unseeded("confidence", privacy__epsilon=0.65, privacy__delta="solve"),
    "a claim that holds": unseeded("confidence", privacy__epsilon=0.7),
    "a claim that fails": unseeded("confidence", privacy__epsilon=0.6),
    "a claim that needs no sample": unseeded("confidence", privacy__epsilon=6.0),
    "replacement": unseeded("verified", privacy__adjacency="replace-one", privacy__epsilon=4.0),
}


def from_other_samples(document: dict[str, Any]) -> dict[str, Any]:
    """An honest certificate of another version, which drew samples that the recorded seed does not give here."""
    certificate = json.loads(pyaccount.compile(document).run(seed=1).to_json())
    return changed(certificate, versions={"pyaccount": "0.0.9", "core": "0.0.9"}, evidence__sampling__seed=2)


@pytest.mark.parametrize("document", ASKED.values(), ids=ASKED)
def test_other_samples_of_another_version_agree(document: dict[str, Any], tmp_path: Path) -> None:
    certificate = from_other_samples(document)
    (judged,) = pyaccount.check(save(tmp_path, certificate)).certificates
    assert judged.rules[0].passes, judged.rules[0].remark
    found = pyaccount.verify(save(tmp_path, certificate))
    assert found.agrees, found.to_text()
    assert found.compared == "bounds"
    # The samples are others indeed.
    assert "profile[0].delta_estimate" in agreeing(found)


def everywhere(certificate: dict[str, Any], change: Any) -> dict[str, Any]:
    """The certificate with every point of the profile and of both directions changed."""
    forged = copy.deepcopy(certificate)
    for points in (forged["profile"], *(side["profile"] for side in forged["directions"].values())):
        for point in points:
            change(point)
    return forged


def at_most(certificate: dict[str, Any], epsilon: float) -> dict[str, Any]:
    """The certificate with another ε, wherever it stands."""
    forged = changed(certificate, guarantee__epsilon=epsilon)
    if forged["solved"]["path"] == "privacy.epsilon":
        forged["solved"]["value"] = epsilon
    for side in forged["directions"].values():
        side["epsilon"] = max(min(epsilon, side["epsilon"]), side["epsilon_lower"])
    for composition in forged["evidence"]["compositions"]:
        composition["upper"] = forged["directions"]["remove"]["epsilon"]
    for test in (forged["evidence"]["sampling"] or {"tests": []})["tests"]:
        test["epsilon"] = min(epsilon, test["epsilon"])
    return forged


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
        test["log_capital"] -= math.log(factor)
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


VERIFIED, CONFIDENCE, DETERMINISTIC = (golden(name) for name in ("verified", "confidence", "deterministic"))


@pytest.mark.parametrize(
    ("forged", "place"),
    [
        (at_most(VERIFIED, 1.9), "guarantee.epsilon"),
        (everywhere(VERIFIED, nearly_nothing), "profile[0].delta"),
        (everywhere(VERIFIED, lambda point: point.update(epsilon=point["epsilon"] * (1 - 1e-9))), "profile[0].epsilon"),
        # Just above the lower end: refuted by nothing, and tested anew.
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
    assert "made, it says, by pyaccount unknown" in found.notes[0]


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
    assert place in {one.path for one in (*found.flaws, *found.differences) if not getattr(one, "agrees", False)}


@pytest.mark.parametrize("name", ["verified", "verified-choice", "deterministic"])
def test_a_certificate_without_phases_is_compared_all_the_same(name: str, tmp_path: Path) -> None:
    found = pyaccount.verify(save(tmp_path, changed(golden(name), versions={}, phases=[])))
    assert not found.agrees
    assert "phases" in named(found)


def test_auditors_may_insist_on_the_same_version(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("deterministic", "amplification"):
        honest = golden(name)
        assert run(capsys, "verify", str(save(tmp_path, honest)), "--same-version")[0] == 0
        path = save(tmp_path, changed(honest, versions={"core": honest["versions"]["core"]}))
        assert run(capsys, "verify", str(path))[0] == 0
        code, out, _ = run(capsys, "verify", str(path), "--same-version")
        assert code == 1
        assert "versions.pyaccount: DIFFERS" in out
        assert not pyaccount.verify(path, same_version=True).agrees


WIDE = {"accounting": {"tolerance": 0.5, "profile": []}}


def example(name: str, **more: Any) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "examples" / f"{name}.yaml").read_text(encoding="utf-8"))
    return document | more


def smallest(delta: float) -> Any:
    def change(certificate: dict[str, Any]) -> dict[str, Any]:
        forged = changed(certificate, guarantee__delta=delta, solved__value=delta)
        for side in forged["directions"].values():
            side["delta"] = min(delta, side["delta"])
        forged["evidence"]["compositions"][0]["upper"] = delta
        return forged

    return change


def halved(shift: float) -> Any:
    """Every δ of the profile about halved, with ε moved by a hair so that it seems another point."""

    def change(point: dict[str, Any]) -> None:
        point.update(
            epsilon=point["epsilon"] * (1.0 + shift),
            delta=0.51 * point["delta"],
            delta_lower=0.505 * point["delta_lower"],
        )

    return lambda certificate: everywhere(certificate, change)


def a_little_less(certificate: dict[str, Any]) -> dict[str, Any]:
    """Within the default tolerances of ε and of the profile."""
    forged = everywhere(
        certificate, lambda point: point.update(delta=max(0.9905 * point["delta"], point["delta_lower"]))
    )
    for pair in (forged["guarantee"], *forged["directions"].values()):
        pair["epsilon"] *= 1.0 - 9e-5
    forged["solved"]["value"] = forged["guarantee"]["epsilon"]
    return forged


def hair_less(certificate: dict[str, Any]) -> dict[str, Any]:
    """Below the proven lower ends, each at an ε of its own."""

    def change(point: dict[str, Any]) -> None:
        point.update(
            {name: 0.991 * point[name] for name in ("delta", "delta_lower")}, epsilon=point["epsilon"] * (1 - 1e-9)
        )

    return everywhere(certificate, change)


def less_unamplified(certificate: dict[str, Any]) -> dict[str, Any]:
    return changed(certificate, unamplified__epsilon=0.991 * certificate["unamplified"]["epsilon"])


def raised(certificate: dict[str, Any]) -> dict[str, Any]:
    high = certificate["guarantee"]["epsilon"] * (1.0 - 1e-6)
    return changed(certificate, guarantee__epsilon_lower=high, directions__remove__epsilon_lower=high)


@pytest.mark.parametrize(
    ("document", "forge", "place"),
    [
        # Between the ends for a theorem that is not attained: proven by nobody, refuted by no data set.
        (example("two-stage-sampling", **WIDE), lambda c: at_most(c, 0.52 * c["guarantee"]["epsilon"]), "guarantee.epsilon"),
        (example("with-replacement", **WIDE), lambda c: at_most(c, 0.68 * c["guarantee"]["epsilon"]), "guarantee.epsilon"),
        (golden("smallest-delta")["document"] | WIDE, smallest(4.9e-7), "guarantee.delta"),
        (golden("smallest-delta")["document"], halved(0.0), "profile[1].delta"),
        (golden("smallest-delta")["document"], halved(1e-9), "profile[1].delta"),
        (golden("smallest-delta")["document"], halved(-1e-9), "profile[1].epsilon"),
        (example("two-stage-sampling", accounting={"profile": [2]}), a_little_less, "guarantee.epsilon"),
        (DETERMINISTIC["document"], hair_less, "profile[1].delta"),
        (DETERMINISTIC["document"], raised, "guarantee.epsilon_lower"),
        (DETERMINISTIC["document"], less_unamplified, "unamplified.epsilon"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("remembered")
def test_a_tolerance_is_no_licence(document: dict[str, Any], forge: Any, place: str, tmp_path: Path) -> None:
    honest = json.loads(pyaccount.certify(document).to_json())
    found = pyaccount.verify(save(tmp_path, restated(tmp_path, forge(honest))))
    assert not found.agrees
    assert place in refused(found)
    assert pyaccount.verify(save(tmp_path, honest)).identical


def test_a_bound_that_promises_more_and_holds_agrees(tmp_path: Path) -> None:
    # The golden certificate, with a finer tolerance, has proven δ ≤ 6.3777e-7.
    honest = json.loads(pyaccount.certify(golden("smallest-delta")["document"] | WIDE).to_json())
    assert golden("smallest-delta")["guarantee"]["delta"] < 6.5e-7 < honest["guarantee"]["delta"]
    found = pyaccount.verify(save(tmp_path, restated(tmp_path, smallest(6.5e-7)(honest))))
    assert found.agrees, found.to_text()
    assert any(one.path == "guarantee.delta" and "judged anew" in one.reason for one in found.differences)


def zeroed(certificate: dict[str, Any]) -> dict[str, Any]:
    forged = copy.deepcopy(certificate)
    for line in forged["evidence"]["error_budget"]:
        line["contribution"] = 0.0
    for composition in forged["evidence"]["compositions"]:
        composition.update(lower=1.0, upper=1.0, spacing=0.0)
    return forged


def nudged(certificate: dict[str, Any], factor: float) -> dict[str, Any]:
    sigma = certificate["solved"]["value"] * factor
    return changed(certificate, solved__value=sigma, noise_multiplier=sigma, phases__0__noise_multiplier=sigma)


@pytest.mark.usefixtures("remembered")
def test_evidence_cannot_be_rewritten(tmp_path: Path) -> None:
    places = {"evidence.error_budget[0].contribution", "evidence.compositions[0].upper"}
    old = {"pyaccount": "0.0.9", "core": "0.0.9"}
    for forged in (nudged(zeroed(DETERMINISTIC), 1 + 4e-15), changed(zeroed(DETERMINISTIC), versions=old)):
        found = pyaccount.verify(save(tmp_path, restated(tmp_path, forged)))
        assert not found.agrees
        assert places <= refused(found)
    found = pyaccount.verify(save(tmp_path, zeroed(forged_noise(6e-5))))
    assert places <= refused(found)
    for change, place in (
        ({"reductions__0__tight": False}, "reductions[0].tight"),
        ({"evidence__engine": "proved by hand"}, "evidence.engine"),
        ({"evidence__compositions__0__bound": "upper"}, "evidence.compositions[0].bound"),
    ):
        found = pyaccount.verify(save(tmp_path, changed(DETERMINISTIC, versions=old, **change)))
        assert not found.agrees
        assert place in refused(found)


def test_closed_forms_are_upper_bounds_to_the_last_digits(tmp_path: Path) -> None:
    for factor, agrees in ((1 - 9e-7, False), (1 - 1e-14, True), (1 + 9e-7, True)):
        certificate = golden("amplification")
        certificate["eta"] *= factor
        for effect in certificate["effects"]:
            effect["amplified_epsilon"] *= factor
            effect["amplified_delta"] *= factor
        assert pyaccount.verify(save(tmp_path, certificate)).agrees == agrees


def moved_digits(value: Any, factor: float, given: set[float]) -> Any:
    """Every computed number, as another machine's last digits have it: equal numbers stay equal."""
    if isinstance(value, dict):
        return {key: item if key == "document" else moved_digits(item, factor, given) for key, item in value.items()}
    if isinstance(value, list):
        return [moved_digits(item, factor, given) for item in value]
    return value * factor if isinstance(value, float) and value not in given and not value.is_integer() else value


@pytest.mark.parametrize("name", sorted(set(RUNS) - set(SAMPLED)))
@pytest.mark.parametrize("factor", [1 - 1e-12, 1 + 1e-12])
@pytest.mark.usefixtures("remembered")
def test_last_digits_of_another_machine_agree(name: str, factor: float, tmp_path: Path) -> None:
    document = golden(name)["document"]
    given: set[Any] = {
        functools.reduce(operator.getitem, path, document)  # type: ignore[arg-type]
        for path in leaves(document)
    }
    # A profile's ε are read off the certified one with two digits.
    given |= {point["epsilon"] for point in golden(name)["profile"]}
    certificate = restated(tmp_path, moved_digits(golden(name), factor, given))
    found = pyaccount.verify(save(tmp_path, certificate))
    assert found.agrees, found.to_text()
    assert "directions.add.epsilon" in agreeing(found)


def test_the_document_or_the_hash_was_changed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    certificate = golden("deterministic")
    path = save(tmp_path, changed(certificate, document__privacy__delta=1e-5))
    code, out, _ = run(capsys, "verify", str(path))
    assert code == 1
    assert "document_sha256: contradicts" in out
    assert "guarantee.delta: DIFFERS" in out
    # With the hash alone, all figures agree.
    found = pyaccount.verify(save(tmp_path, changed(certificate, document_sha256="f" * 64)))
    assert [flaw.path for flaw in found.flaws] == ["document_sha256"]
    assert found.differences[0].path == "document_sha256"
    assert len(found.differences) == 1


def test_a_broken_document_is_unreadable_or_tampered(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = changed(golden("deterministic"), document__privacy__delta=2)
    code, out, _ = run(capsys, "verify", str(save(tmp_path, broken)))
    assert code == 1
    assert "document.privacy.delta" in out
    assert "document_sha256" in out
    code, _, err = run(capsys, "verify", str(save(tmp_path, rehashed(broken))))
    assert code == 2
    assert "privacy.delta = 2 [out-of-range]" in err


def test_a_claim_that_nothing_reaches_does_not_agree(tmp_path: Path) -> None:
    forged = rehashed(changed(golden("deterministic"), document__privacy__epsilon=0, document__privacy__delta=1e-200))
    found = pyaccount.verify(save(tmp_path, forged))
    assert not found.agrees
    assert "document.noise.multiplier" in named(found)


def test_a_matrix_file_lies_beside_the_certificate(tmp_path: Path) -> None:
    matrix = [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.25, 0.5, 1.0]]
    text = "\n".join(",".join(map(str, row)) for row in matrix)
    (tmp_path / "matrix.csv").write_text(text, encoding="utf-8")
    document = {
        "pyaccount": 1,
        "name": "dense",
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-6},
        "training": {"iterations": 3},
        "sampler": {"kind": "none", "max_participations": 1, "min_separation": 3},
        "matrix": {"kind": "dense", "file": "matrix.csv"},
        "noise": {"multiplier": 2},
    }
    path = tmp_path / "dense.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    target = tmp_path / "dense.json"
    pyaccount.certify(path).save(target)
    assert pyaccount.verify(target).identical
    (tmp_path / "matrix.csv").write_text(text.replace("0.25", "0.3"), encoding="utf-8")
    assert "phases[0].matrix.sha256" in named(pyaccount.verify(target))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "matrix.csv").write_text(text, encoding="utf-8")
    assert pyaccount.verify(target, folder=elsewhere).identical
    (tmp_path / "matrix.csv").unlink()
    with pytest.raises(pyaccount.DocumentError, match="no such file"):
        pyaccount.verify(target)


def test_limits_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "verify", str(RUNS["verified"]), "--time-limit", "1e-3 s")
    assert (code, out) == (3, "")
    assert "time limit" in err
    for bad in ("soon", "-1", "nan", "inf", "0"):
        assert run(capsys, "verify", str(RUNS["deterministic"]), "--time-limit", bad)[0] == 2
    assert run(capsys, "verify", str(RUNS["deterministic"]), "--quiet") == (0, "", "")


def test_ctrl_c_interrupts(tmp_path: Path) -> None:
    slow = rehashed(
        changed(
            golden("deterministic"),
            document__privacy={"adjacency": "add-remove", "group_size": 60, "epsilon": "solve", "delta": 1e-6},
            document__training={"sampling_probability": 0.01, "iterations": 100_000_000},
            document__noise={"multiplier": 30.0},
            document__accounting={"tolerance": 1e-8},
        )
    )
    command = [sys.executable, "-m", "pyaccount.cli", "verify", str(save(tmp_path, slow))]
    out, err, code = interrupted(command)
    assert (code, out) == (130, "")
    assert "Traceback" not in err


def test_precision_is_relative_to_what_is_stated() -> None:
    stated = golden("deterministic")
    epsilon, lower = stated["guarantee"]["epsilon"], stated["guarantee"]["epsilon_lower"]
    cases = [
        ({"guarantee__epsilon": epsilon * (1 - 9e-5)}, 1e-4, True),
        ({"guarantee__epsilon": epsilon * (1 - 9e-5)}, 1e-5, False),
        # No tolerance is wide enough for an upper end below, or a lower end above, the recomputed one.
        ({"guarantee__epsilon": epsilon * (1 + 9e-5)}, 0.5, False),
        ({"guarantee__epsilon": epsilon * (1 + 1e-13)}, 0.5, True),
        ({"guarantee__epsilon_lower": lower * (1 + 9e-5)}, 1e-4, True),
        ({"guarantee__epsilon_lower": lower * (1 - 9e-5)}, 0.5, False),
        ({"guarantee__epsilon_lower": lower * (1 - 1e-13)}, 0.5, True),
    ]
    for change, tolerance, agrees in cases:
        (found,) = differences(stated, changed(stated, **change), Terms("digits", tolerance, same_version=True))
        assert (found.path, found.agrees) == (next(iter(change)).replace("__", "."), agrees)


def test_absent_fields_of_older_certificates_are_told_and_agree() -> None:
    stated = golden("deterministic")
    del stated["phases"][0]["distinct_records"]
    (found,) = differences(stated, golden("deterministic"), Terms("digits", 1e-4, same_version=True))
    assert (found.path, found.agrees, found.reason) == (
        "phases[0].distinct_records",
        True,
        "not stated by the certificate",
    )


def test_a_failed_claim_that_agrees_is_said_to_fail() -> None:
    found = pyaccount.verify(RUNS["claim-fails"])
    assert found.agrees
    assert "does not hold" in found.to_text()


def test_certificates_in_memory_and_progress() -> None:
    assert pyaccount.verify(Certificate.load(RUNS["deterministic"]), progress=True).agrees


def test_a_hair_of_epsilon_may_be_any_factor_of_delta(tmp_path: Path) -> None:
    """Laplace noise has (1, 0) and nothing near it: 9e-7 below, δ is 4.5e-7."""
    document = {
        "pyaccount": 1,
        "name": "cliff",
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-15},
        "training": {"iterations": 1},
        "sampler": {"kind": "none"},
        "noise": {"kind": "laplace", "multiplier": 1.0},
        "accounting": {"profile": [0.5]},
    }
    honest = json.loads(pyaccount.certify(document).to_json())
    forged = copy.deepcopy(honest)
    value = honest["guarantee"]["epsilon"] * (1 - 9e-7)
    for ends in (forged["guarantee"], *forged["directions"].values()):
        ends["epsilon"], ends["epsilon_lower"] = value, min(ends["epsilon_lower"], value)
    forged["solved"] |= {"value": value, "fails_at": forged["guarantee"]["epsilon_lower"]}
    for composition in forged["evidence"]["compositions"]:
        composition["upper"] = value
    found = pyaccount.verify(save(tmp_path, restated(tmp_path, forged)))
    assert not found.agrees
    assert "guarantee.epsilon" in {one.path for one in found.differences if not one.agrees}


def test_the_epsilon_of_an_effect_is_the_documents(tmp_path: Path) -> None:
    """Laplace noise is (1, 0)-private: a bit below, its δ is 4.5e-7 and not next to 0."""
    forged = golden("amplification")
    forged["effects"][1]["epsilon"] *= 1 - 9e-7
    found = pyaccount.verify(save(tmp_path, forged))
    assert [one.path for one in found.differences if not one.agrees] == ["effects[1].epsilon"]


def test_a_direction_at_a_delta_beyond_all_questions(tmp_path: Path) -> None:
    document = {
        "pyaccount": 1,
        "name": "tiny",
        "privacy": {"adjacency": "add-remove", "epsilon": 37.2, "delta": "solve"},
        "training": {"iterations": 1},
        "sampler": {"kind": "none"},
        "noise": {"multiplier": 1.0},
        "accounting": {"profile": [1]},
    }
    honest = json.loads(pyaccount.certify(document).to_json())
    assert pyaccount.verify(save(tmp_path, honest)).agrees
    forged = copy.deepcopy(honest)
    for direction in forged["directions"].values():
        # At a δ of 1e-280 this holds; at the guarantee's, below it, ε is 37.2.
        direction["epsilon"] = 36.5
    assert not pyaccount.verify(save(tmp_path, forged)).agrees


def test_where_no_sample_tells_of_delta_it_is_not_known_to_be_small(tmp_path: Path) -> None:
    document = copy.deepcopy(golden("confidence")["document"])
    document["accounting"] = {"tolerance": 0.05, "profile": [1, 3, 4.5, 6, 10], "seed": 1}
    forged = json.loads(pyaccount.certify(document).to_json())
    forged["versions"] = {"pyaccount": "0.0.9", "core": "0.0.9"}
    for curve in (forged["profile"], *(direction["profile"] for direction in forged["directions"].values())):
        for point in curve[2:]:
            point |= {"delta": 0.0, "delta_lower": 0.0, "delta_estimate": 0.0, "standard_error": 0.0}
    found = pyaccount.verify(save(tmp_path, forged))
    assert "profile[4].delta" in {one.path for one in found.differences if not one.agrees}
