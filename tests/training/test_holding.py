"""A record beside its certificate, and who sees to each assumption."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import EXAMPLES
from plain_documents import changed

import pyaccount
from pyaccount import cli
from pyaccount.certificate import Certificate
from pyaccount.document import Document, load_any
from pyaccount.plan import compile_document
from pyaccount.training import TrainingRun
from pyaccount.training.assumptions import BEGINNINGS, held
from pyaccount.training.holding import hold_record
from pyaccount.training.record import NOTHING_BEFORE, RecordWriter, _hash, _line

BASE: dict[str, Any] = {
    "pyaccount": 1,
    "name": "held",
    "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
    "training": {"dataset_size": 40, "expected_batch_size": 8, "iterations": 4},
    "sampler": {"kind": "poisson"},
    "noise": {"multiplier": 1.5},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate and a run of three of its four rounds."""
    place = tmp_path_factory.mktemp("held")
    certificate = pyaccount.certify(BASE)
    certificate.save(place / "held.cert.json")
    with TrainingRun(certificate, place / "run", records=40, clip_norm=0.5) as run:
        for _ in range(3):
            with run.step() as step:
                step.release(np.zeros(2))
    return place


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "run" / "record.jsonl").read_text().splitlines()]


def chained(path: Path, events: list[dict[str, Any]]) -> Path:
    """A record with these lines, the chain made anew: what a person can write who wants to."""
    previous, whole = NOTHING_BEFORE, b""
    for event in events:
        line = _line({**event, "previous": previous})
        previous, whole = _hash(line), whole + line
    path.write_bytes(whole)
    return path


def test_a_record_agrees_with_its_certificate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate, record = str(folder / "held.cert.json"), str(folder / "run" / "record.jsonl")
    assert cli.run(["verify", certificate, "--record", record]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "record.jsonl: agrees 3 of 4 rounds were released: the run so far" in printed
    assert "enforced: Every record enters every batch independently" in printed
    assert "yours: Each record's contribution to a batch is clipped" in printed
    assert cli.run(["verify", certificate, "--record", record, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["agrees"] is True
    assert found["record"]["released"] == 3
    assert {one["held"] for one in found["record"]["assumptions"]} == {"enforced", "yours"}
    assert cli.run(["verify", certificate, "--record", str(folder / "none.jsonl")]) != 0


def test_the_record_of_another_run_does_not(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = pyaccount.certify(changed(BASE, {"noise": {"multiplier": 1.6}}, {}))
    verdict = hold_record(folder / "run" / "record.jsonl", other)
    assert not verdict
    assert "certificate_sha256: the record is of another run" in verdict.to_text()
    other.save(tmp_path / "other.cert.json")
    command = ["verify", str(tmp_path / "other.cert.json"), "--record", str(folder / "run" / "record.jsonl")]
    assert cli.run(command) == 1
    assert "DOES NOT AGREE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[3].update(standard_deviations=[0.375]), r"round 1: noise of standard deviation \[0.375\]"),
        (lambda lines: lines[3].update(standard_deviations=[0.75, 1.0]), "round 1: noise"),
        (lambda lines: lines[0].update(rounds=5), "rounds: the record is of another run: 5"),
        (lambda lines: lines[0].update(records=[41]), "records: the record is of another run"),
        (lambda lines: lines[0].update(clip_norms={"sum": 0.0}), "clip_norms: no norms"),
        (lambda lines: lines[0].update(clip_norms={}), "none is recorded of 'sum'"),
        (lambda lines: lines.pop(3), "a round is missing, or stands twice"),
        (lambda lines: lines.insert(3, dict(lines[3])), "a round is missing, or stands twice"),
        (lambda lines: lines[3].update(attempt=1), "attempt 1 after 0 rewinds"),
        (
            lambda lines: lines.extend({**lines[4], "round": number} for number in (3, 4)),
            "5 rounds were released, and 4 are certified",
        ),
    ],
)
def test_what_was_not_certified_shows(folder: Path, tmp_path: Path, change: Any, message: str) -> None:
    certificate, lines = pyaccount.Certificate.load(folder / "held.cert.json"), lines_of(folder)
    same = chained(tmp_path / "same.jsonl", lines)
    assert hold_record(same, certificate)
    assert same.read_bytes() == (folder / "run" / "record.jsonl").read_bytes()
    change(lines)
    verdict = hold_record(chained(tmp_path / "changed.jsonl", lines), certificate)
    assert not verdict
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(verdict.to_text())


def test_a_torn_end_is_the_run_before_it(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    path.write_bytes((folder / "run" / "record.jsonl").read_bytes()[:-5])
    certificate = pyaccount.Certificate.load(folder / "held.cert.json")
    assert hold_record(path, certificate).released == 2
    RecordWriter(path).close()
    assert hold_record(path, certificate).released == 2


def test_every_assumption_of_the_examples_has_somebody() -> None:
    """None falls through: that would say of one that the run enforces that nobody knows of it."""
    used = set()
    for path in sorted(EXAMPLES.glob("*.yaml")):
        if "kind: policy" in path.read_text(encoding="utf-8"):
            continue
        document = load_any(path)
        if not isinstance(document, Document):
            continue
        for reduction in compile_document(document).reductions:
            for text in reduction.assumptions:
                beginnings = [beginning for beginning in BEGINNINGS if text.startswith(beginning)]
                assert len(beginnings) <= 1, text
                assert beginnings or held(text).held == "yours"
                assert beginnings or "Laplace" in text, text
                used.update(beginnings)
    assert len(used) > len(BEGINNINGS) - 4, set(BEGINNINGS) - used


@pytest.mark.parametrize("form", ["html", "markdown", "text"])
def test_a_report_tells_of_the_run(folder: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    record = folder / "run" / "record.jsonl"
    certificate = str(folder / "held.cert.json")
    assert cli.run(["report", certificate, "--record", str(record), "--format", form]) == 0
    # Text is wrapped, HTML has tags between the words.
    found = " ".join(re.sub(r"<[^>]*>", "", capsys.readouterr().out).split())
    assert re.search(r"3(\[\^\w+\])* of 4 rounds", found)
    verdict = hold_record(record, Certificate.load(certificate))
    assert {one.held for one in verdict.assumptions} == {"enforced", "yours"}
    for one in verdict.assumptions:
        words = unescaped(found)
        assert one.held in words
        assert unescaped(one.text) in words
        assert unescaped(one.how) in words
    if form != "text":
        # Once, with who sees to it, and not as a list to check as well.
        assert unescaped(found).count(unescaped(verdict.assumptions[0].text)) == 1
        places = [unescaped(found).index(unescaped(one.text)) for one in verdict.assumptions if one.held == "yours"]
        others = [unescaped(found).index(unescaped(one.text)) for one in verdict.assumptions if one.held == "enforced"]
        assert max(places) < min(others)


def unescaped(text: str) -> str:
    """Words alone: what is escaped differs from form to form."""
    return " ".join(re.sub(r"[\\`*|]", "", html.unescape(text)).split())


@pytest.mark.parametrize("form", ["html", "markdown", "text"])
def test_a_report_of_a_record_that_does_not_agree_says_so_and_nothing_of_who_holds_what(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    events = lines_of(folder)
    record = chained(tmp_path / "other.jsonl", [*events[:3], {**events[3], "standard_deviations": [0.3]}])
    output = tmp_path / "report"
    asked = ["report", str(folder / "held.cert.json"), "--record", str(record), "--format", form, "-o", str(output)]
    assert cli.run(asked) == 0
    assert "does not agree with" in capsys.readouterr().err
    found = unescaped(re.sub(r"<[^>]*>", "", output.read_text(encoding="utf-8")))
    assert "DOES NOT AGREE" in found
    assert "noise of standard deviation" in found
    assert "enforced" not in found


def test_a_certificate_in_json_tells_of_no_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = str(folder / "run" / "record.jsonl")
    asked = ["report", str(folder / "held.cert.json"), "--record", record, "--format", "json"]
    assert cli.run(asked) == 2
    assert "verify --record" in capsys.readouterr().err
    assert cli.run(["report", str(folder / "held.cert.json"), "--record", str(folder / "none.jsonl")]) != 0
    assert "none.jsonl" in capsys.readouterr().err
