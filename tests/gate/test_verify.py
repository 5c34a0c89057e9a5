"""`pyaccount verify`: honest certificates agree, and whatever was changed is named."""

from __future__ import annotations

import functools
import json
import math
import operator
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from gate_tools import (
    ALL,
    RUNS,
    SAMPLED,
    agreeing,
    changed,
    forged_noise,
    golden,
    interrupted,
    leaves,
    named,
    refused,
    rehashed,
    restated,
    save,
    written,
)
from jsonschema import Draft202012Validator
from plain_documents import doc
from pydantic import BaseModel
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import schemas
from pyaccount.certificate import Certificate
from pyaccount.certificate.consistency import CONTENT
from pyaccount.errors import TIME_IS_UP
from pyaccount.execute import composed
from pyaccount.gate.agreement import Terms, differences
from pyaccount.records.amplification import AmplificationData
from pyaccount.records.certificate import CertificateModel
from pyaccount.records.fields import WHOLE, Role, marks_of


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
@pytest.mark.usefixtures("drawn_once")
def test_golden_certificates_agree(path: Path, run: Run) -> None:
    code, out, _ = run("verify", path, "--format", "json", "--threads", "1")
    found = json.loads(out)
    assert code == 0, found["differences"]
    assert found["agrees"]
    assert list(Draft202012Validator(schemas.schema("verification")).iter_errors(found)) == []
    assert found["compared"] == "equal"


def scaled(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        # A tenth of the smallest double is nothing.
        return (0.9 * value if 0.9 * value != value else 0.0) if value else 1e-3
    return "0" * 64 if value is None or re.fullmatch("[0-9a-f]{64}", value) else value + " "


@pytest.mark.nightly(but=["deterministic", "verified", "confidence"])
@pytest.mark.parametrize("name", ["deterministic", "group-of-phases", "verified", "confidence"])
@pytest.mark.usefixtures("remembered", "drawn_once")
def test_every_changed_field_is_named(name: str, tmp_path: Path) -> None:
    certificate = golden(name)
    silent = []
    for path in leaves(certificate):
        if path[0] in ("created", "versions", CONTENT) or (path[0] == "document" and name != "deterministic"):
            # What nobody can recompute, or `save` sets; and the hash tells a changed document, whatever is computed from it.
            continue
        inside = certificate
        for part in path[:-1]:
            inside = inside[part]  # type: ignore[index]
        value = scaled(inside[path[-1]])  # type: ignore[index]
        if path[-1] == "delta" and inside.get("delta_lower") == 0.0:  # type: ignore[attr-defined]
            # Far below the certified δ nothing is resolved, and a slightly smaller upper bound is proven too.
            value = 1e-200
        forged = changed(certificate, **{"__".join(map(str, path)): value})
        place = written(path)
        try:
            found = pyaccount.verify(save(tmp_path, forged))
        except pyaccount.CertificateError as error:
            # Refused for what it is; the message must say where.
            if place not in str(error):
                silent.append(place)
            continue
        where = "document_sha256" if path[0] == "document" else place
        if "curve" in path and "epsilon" in path:
            # Points may be anywhere: that there are others is said of the whole curve.
            where = place.split(".epsilon")[0]
        # A lower point of the curve may be proven too.
        if (found.agrees and "curve" not in path) or where not in named(found):
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
@pytest.mark.usefixtures("remembered", "drawn_once")
def test_sampled_certificates_are_compared_bit_for_bit(name: str, tmp_path: Path) -> None:
    certificate = golden(name)
    estimate = certificate["profile"][0]["delta_estimate"]
    forged = changed(certificate, profile__0__delta_estimate=math.nextafter(estimate, 1.0))
    found = pyaccount.verify(save(tmp_path, forged))
    assert not found.agrees
    assert refused(found) == {"profile[0].delta_estimate"}


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


def test_a_search_that_ended_elsewhere_within_the_tolerance_agrees(tmp_path: Path) -> None:
    found = pyaccount.verify(save(tmp_path, forged_noise(6e-5)))
    assert found.agrees, found.to_text()
    assert not found.identical
    assert "solved.value" in agreeing(found)
    assert any("value of the blank was filled in" in note for note in found.notes)


@pytest.mark.parametrize(
    ("shift", "words"), [(-9e-5, "could not be certified"), (0.01, "differs by"), (-0.01, "differs by")]
)
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


def test_auditors_may_insist_on_the_same_version(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    for name in ("deterministic", "amplification"):
        honest = golden(name)
        assert run("verify", save(tmp_path, honest), "--same-version")[0] == 0
        path = save(tmp_path, changed(honest, versions={"core": honest["versions"]["core"]}))
        assert run("verify", path)[0] == 0
        snapshot(run("verify", path, "--same-version"))
        assert not pyaccount.verify(path, same_version=True).agrees


def moved_digits(value: Any, factor: float, given: set[float]) -> Any:
    """Every computed number, as another machine's last digits have it: equal numbers stay equal."""
    if isinstance(value, dict):
        return {key: item if key == "document" else moved_digits(item, factor, given) for key, item in value.items()}
    if isinstance(value, list):
        return [moved_digits(item, factor, given) for item in value]
    return value * factor if isinstance(value, float) and value not in given and not value.is_integer() else value


@pytest.mark.nightly(but=["deterministic-up", "claim-fails-down", "smallest-delta-up"])
@pytest.mark.parametrize("factor", [1 - 1e-12, 1 + 1e-12], ids=["down", "up"])
@pytest.mark.parametrize("name", sorted(set(RUNS) - set(SAMPLED)))
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


def test_the_document_or_the_hash_was_changed(tmp_path: Path, run: Run) -> None:
    certificate = golden("deterministic")
    path = save(tmp_path, changed(certificate, document__privacy__delta=1e-5))
    code, out, _ = run("verify", path)
    assert code == 1
    contradictions, differences = out.split("Contradictions in the certificate")[1].split("\nDifferences\n")
    assert "  document_sha256 " in contradictions
    assert re.search(r"guarantee.delta +DIFFERS: ", differences)
    # With the hash alone, all figures agree.
    found = pyaccount.verify(save(tmp_path, changed(certificate, document_sha256="f" * 64)))
    assert [flaw.path for flaw in found.inconsistencies] == ["document_sha256"]
    assert named(found) == {"document_sha256"}


def test_a_broken_document_is_unreadable_or_tampered(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    broken = changed(golden("deterministic"), document__privacy__delta=2)
    snapshot(run("verify", save(tmp_path, broken)))
    snapshot(run("verify", save(tmp_path, rehashed(broken))))


def test_a_claim_that_nothing_reaches_does_not_agree(tmp_path: Path) -> None:
    forged = rehashed(changed(golden("deterministic"), document__privacy__epsilon=0, document__privacy__delta=1e-200))
    found = pyaccount.verify(save(tmp_path, forged))
    assert not found.agrees
    assert "document.noise.multiplier" in named(found)


def test_a_matrix_file_lies_beside_the_certificate(tmp_path: Path, snapshot: Snapshot) -> None:
    matrix = [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.25, 0.5, 1.0]]
    text = "\n".join(",".join(map(str, row)) for row in matrix)
    (tmp_path / "matrix.csv").write_text(text, encoding="utf-8")
    document = doc(
        "name=dense delta=1e-6 iterations=3 sampler=none max_participations=1 min_separation=3 matrix=dense",
        "file=matrix.csv multiplier=2",
    )
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
    # What is beside the certificate comes first.
    assert not pyaccount.verify(target, folders=[elsewhere]).agrees
    (tmp_path / "matrix.csv").unlink()
    assert pyaccount.verify(target, folders=[tmp_path / "none", elsewhere]).identical
    snapshot.raised(pyaccount.verify, target)


def test_what_time_left_out_does_not_differ(monkeypatch: pytest.MonkeyPatch, run: Run, snapshot: Snapshot) -> None:
    def late(*_: object) -> None:
        raise pyaccount.LimitError(TIME_IS_UP)

    monkeypatch.setattr(composed, "curves", late)
    snapshot(run("verify", RUNS["deterministic"], "--time-limit", "1h"))


def test_limits_and_time(tmp_path: Path, run: Run) -> None:
    code, out, err = run("verify", RUNS["verified"], "--time-limit", "1e-3 s")
    assert (code, out) == (3, "")
    assert "time limit" in err
    for bad in ("soon", "-1", "nan", "inf", "0"):
        assert run("verify", RUNS["deterministic"], "--time-limit", bad)[0] == 2
    assert run("verify", RUNS["deterministic"], "--quiet") == (0, "", "")
    looser = golden("deterministic")["unamplified"]["epsilon"] * (1 + 1e-7)
    wrong = save(tmp_path, changed(golden("deterministic"), statement="x", unamplified__epsilon=looser))
    for more, told in ((), True), (("--quiet",), False):
        code, out, _ = run("verify", wrong, *more)
        contradictions, _, differences = out.partition("\nDifferences\n")
        assert (code, " agrees: " in differences) == (1, told)
        assert "\n  statement " in contradictions


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
    command = [sys.executable, "-m", "pyaccount", "verify", str(save(tmp_path, slow))]
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
        models = (CertificateModel.model_validate(one) for one in (stated, changed(stated, **change)))
        (found,) = differences(*models, Terms(tolerance=tolerance))
        assert (found.path, found.agrees) == (next(iter(change)).replace("__", "."), agrees)


def test_a_failed_claim_that_agrees_is_said_to_fail() -> None:
    found = pyaccount.verify(RUNS["claim-fails"])
    assert found.agrees
    assert "does not hold" in found.to_text()


def test_certificates_in_memory_and_progress() -> None:
    assert pyaccount.verify(Certificate.load(RUNS["deterministic"]), progress=True).agrees


def test_a_field_that_contradicts_the_certificate_is_not_said_to_agree(tmp_path: Path) -> None:
    found = pyaccount.verify(save(tmp_path, changed(golden("deterministic"), statement="All is well.")))
    assert not found
    assert [flaw.path for flaw in found.inconsistencies] == ["statement"]
    assert [one for one in found.differences if one.path == "statement" and one.agrees] == []
    assert "statement: agrees" not in found.to_text()


def test_a_missing_matrix_is_told_where_it_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, snapshot: Snapshot
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").write_text("1,0\n1,1\n", encoding="utf-8")
    document = doc(name="matrix", delta=1e-6, iterations=2, sampler="none", matrix="dense", file="s.csv", multiplier=3)
    pyaccount.certify(document).save(tmp_path / "c.json")
    (tmp_path / "s.csv").rename(tmp_path / "moved.csv")
    snapshot(run("verify", "c.json"))
    snapshot.raised(pyaccount.verify, "c.json")


# ---- What the types of a certificate's fields say: bounds are bounds, from the side that their descriptions say


#: The roles of fields that are described as bounds. What is about the computation is not promised, but must be as it was.
BOUNDS = {"Upper bound": {Role.UPPER, Role.CONTRAST, Role.LEMMA}, "Lower bound": {Role.LOWER}}


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the records that a field may have."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for one in get_args(annotation):
        yield from models_in(one)


def fields_of(
    model: type[BaseModel], above: Role = Role.FOLLOWS, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, Role, str]]:
    """Yield the path, the role and the description of every field that is no record."""
    for name, field in model.model_fields.items():
        role = above if above in WHOLE else marks_of(model)[name].role or above
        below = list(models_in(field.annotation))
        for one in below:
            yield from fields_of(one, role, (*path, name))
        if not below:
            yield ".".join((*path, name)), role, field.description or ""


@pytest.mark.parametrize("model", [CertificateModel, AmplificationData])
def test_what_is_described_as_a_bound_is_compared_as_one(model: type[BaseModel]) -> None:
    found = [one for one in fields_of(model) if not one[0].startswith("evidence")]
    assert len(found) > 10
    for path, role, description in found:
        for words, roles in BOUNDS.items():
            assert not description.startswith(words) or role in roles, path
    # And the other way round: nothing else promises anything.
    promised = {path for path, role, _ in found if role in (Role.UPPER, Role.LOWER)}
    described = {path for path, _, words in found if words.startswith(("Upper bound", "Lower bound", "Upper bounds"))}
    contrasts = {"unamplified.epsilon", "composed_bound.epsilon", "group_lemma.epsilon"}
    assert promised == described - contrasts


def test_what_samples_decide_is_under_the_sampling() -> None:
    drawn = {path for path, role, _ in fields_of(CertificateModel) if role is Role.DRAWN}
    outside = {path for path in drawn if not path.startswith("evidence.sampling.")}
    assert outside == {
        *("evidence.within_tolerance", "profile.standard_error"),
        *(f"directions.{side}.profile.standard_error" for side in ("remove", "add")),
    }
