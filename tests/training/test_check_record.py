"""Comparing a record with its certificate, and the status of each assumption."""

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import EXAMPLES
from plain_documents import changed, doc
from snapshots import Run, Snapshot
from training_runs import chained, go

import pyaccount
from pyaccount import cli
from pyaccount.certificate import Certificate
from pyaccount.document import tree
from pyaccount.document.document import Document
from pyaccount.document.loading import load_any
from pyaccount.plan.compiling import compile_document
from pyaccount.training import TrainingRun
from pyaccount.training.check_record import hold_record
from pyaccount.training.record import hash_of
from pyaccount.training.reporting import BEGINNINGS, held
from pyaccount.training.writing import RecordWriter

BASE: dict[str, Any] = doc(
    name="held", dataset_size=40, expected_batch_size=8, iterations=4, sampler="poisson", multiplier=1.5
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a certificate and a run of three of its four rounds."""
    place = tmp_path_factory.mktemp("held")
    certificate = pyaccount.certify(BASE)
    certificate.save(place / "held.cert.json")
    with TrainingRun(certificate, place / "run", records=40, clip_norm=0.5) as run:
        go(run, 3, lambda _: np.zeros(2))
    return place


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "run" / "record.jsonl").read_text().splitlines()]


@pytest.fixture
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the terminal so wide that nothing is wrapped."""
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.mark.usefixtures("_wide")
def test_a_record_agrees_with_its_certificate(folder: Path, run: Run, snapshot: Snapshot) -> None:
    asked = ("verify", folder / "held.cert.json", "--record", folder / "run" / "record.jsonl")
    code, out, _ = run(*asked)
    assert code == 0
    snapshot(out[out.index("record.jsonl") :])
    found = json.loads(run(*asked, "--format", "json").out)
    assert found["agrees"] is True
    assert (found["record"]["released"], found["record"]["ending"], found["record"]["at_least"]) == (3, "closed", False)
    assert {one["held"] for one in found["record"]["assumptions"]} == {"enforced", "yours"}
    assert run(*asked[:-1], folder / "none.jsonl").code != 0


def test_the_record_of_another_run_does_not(folder: Path, tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    other = pyaccount.certify(changed(BASE, {"noise": {"multiplier": 1.6}}, {}))
    verdict = hold_record(folder / "run" / "record.jsonl", other)
    assert not verdict
    assert "document_sha256: the record is that of another run" in verdict.to_text()
    other.save(tmp_path / "other.cert.json")
    command = ["verify", str(tmp_path / "other.cert.json"), "--record", str(folder / "run" / "record.jsonl")]
    snapshot(run(*command))


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[3].update(standard_deviations=[0.375]),
        lambda lines: lines[3].update(standard_deviations=[0.75, 1.0]),
        lambda lines: lines[0].update(rounds=5),
        lambda lines: lines[0].update(records=[41]),
        lambda lines: lines[0].update(clip_norms={"sum": 0.0}),
        lambda lines: lines[0].update(clip_norms={}),
        lambda lines: lines[0]["clip_norms"].update({"also: x": 1.0}),
        lambda lines: lines[0].update(noise_multipliers=[0.1]),
        lambda lines: lines[0].update(statement="private"),
        lambda lines: lines[0].update(guarantee="confidence"),
        lambda lines: lines[0].update(name="other"),
        lambda lines: lines[0].update(streams=7),
        lambda lines: lines[0].update(uncertified=True),
        lambda lines: lines[0].update(key_commitment="x"),
        lambda lines: lines[0].update(world=-3),
        lambda lines: lines[0].update(records_tag="00"),
        lambda lines: lines[3].update(sum=lines[2]["sum"]),
        lambda lines: lines[3].update(sum="00"),
        lambda lines: lines[3].update(batch=[1, 2, 3]),
        lambda lines: lines.insert(4, lines.pop(1)),
        lambda lines: lines[1].update(normaliser=9.0),
        lambda lines: lines[0].update(normalisers=[]),
        lambda lines: lines[1].update(arrays=[]),
        lambda lines: lines[1].update(arrays=[{}]),
        lambda lines: lines[1].update(arrays=[*lines[1]["arrays"], *lines[1]["arrays"]]),
        lambda lines: lines[1].update(body=1),
        lambda lines: lines[1].update(body=-1),
        lambda lines: lines[0].update(noise_source="another"),
        lambda lines: lines[3].update(noise="0" * 64),
        lambda lines: lines[3].update(nonce=lines[2]["nonce"]),
        lambda lines: lines[3].update(nonce="00"),
        lambda lines: lines[0].update(record=2),
        lambda lines: lines.insert(3, {"event": "abandoned"}),
        lambda lines: lines.pop(3),
        lambda lines: lines.insert(3, dict(lines[3])),
        lambda lines: lines[3].update(attempt=1),
        lambda lines: lines.extend(
            {**lines[4], "round": number, "nonce": f"{number:064}", "sum": f"{number:064}"} for number in (3, 4)
        ),
    ],
)
def test_what_was_not_certified_shows(folder: Path, tmp_path: Path, change: Any, snapshot: Snapshot) -> None:
    certificate, lines = pyaccount.Certificate.load(folder / "held.cert.json"), lines_of(folder)
    same = chained(tmp_path / "same.jsonl", lines)
    assert hold_record(same, certificate)
    assert same.read_bytes() == (folder / "run" / "record.jsonl").read_bytes()
    change(lines)
    verdict = hold_record(chained(tmp_path / "changed.jsonl", lines), certificate)
    assert not verdict
    snapshot(verdict.problems)


def test_a_torn_end_is_the_run_before_it(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    whole = (folder / "run" / "record.jsonl").read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:-1])[:-5])
    certificate = pyaccount.Certificate.load(folder / "held.cert.json")
    assert hold_record(path, certificate).released == 2
    RecordWriter(path).close()
    assert hold_record(path, certificate).released == 2


@pytest.mark.usefixtures("_wide")
def test_a_cut_record_is_told_from_a_whole_one(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], run: Run, snapshot: Snapshot
) -> None:
    certificate, record = str(folder / "held.cert.json"), folder / "run" / "record.jsonl"
    lines = record.read_bytes().splitlines(keepends=True)
    heads = [hash_of(line) for line in lines]
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(lines[:-2]))
    assert cli.run(["verify", certificate, "--record", str(cut), "--expected-head", heads[-3]]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "at least 2 of 4 rounds as far as this file goes: it has no closing line" in printed
    assert f"head {heads[-3]} the hash of the record's last line" in printed
    assert hold_record(cut, Certificate.load(certificate)).to_mapping()["at_least"] is True
    for head in (heads[-1], "0" * 64, "3f"):
        snapshot(run("verify", certificate, "--record", cut, "--expected-head", head))
    # An older noted head is sufficient, even if the run has continued since.
    for head in heads:
        assert hold_record(record, Certificate.load(certificate), expected_head=head.upper())
    snapshot(run("verify", certificate, "--expected-head", heads[0]))
    # A record that lost rounds and its closing line may still end with an earlier closing line.
    page = tmp_path / "cut.html"
    assert cli.run(["report", certificate, "--record", str(cut), "-o", str(page)]) == 0
    assert "at least 2 of 4 rounds" in unescaped(re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8")))


def test_a_run_that_began_without_a_certificate_is_said_to(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    document = changed(BASE, {"privacy": {**BASE["privacy"], "epsilon": 2.0}}, {})
    certificate = pyaccount.certify(document)
    certificate.save(tmp_path / "later.cert.json")
    folders = {"opened": False, "uncertified": True}
    for name, uncertified in folders.items():
        with TrainingRun(document, tmp_path / name, records=40, uncertified=uncertified) as training:
            go(training, 1)
    record = tmp_path / "uncertified" / "record.jsonl"
    assert json.loads(record.read_text().splitlines()[0])["uncertified"] is True
    snapshot(run("verify", tmp_path / "later.cert.json", "--record", record, "--quiet"))
    for form in ("html", "text", "markdown"):
        later, page = str(tmp_path / "later.cert.json"), tmp_path / "page"
        assert cli.run(["report", later, "--record", str(record), "--format", form, "-o", str(page)]) == 0
        text = page.read_text(encoding="utf-8")
        assert unescaped(text).count("UNCERTIFIED") >= 2
        # Badges are beside the title of a page.
        first = unescaped(re.sub(r"<style.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL))[:120]
        assert "UNCERTIFIED" in (first if form == "html" else text.splitlines()[0])
    # Writing the hash of a certificate into the record afterwards does not remove the badge either.
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    lines[0]["certificate_sha256"] = "0" * 64
    assert "UNCERTIFIED" in hold_record(chained(tmp_path / "pasted.jsonl", lines), certificate).to_text()
    # If a document was certified when the run was opened, its certificate is beside the record.
    opened = tmp_path / "opened"
    asked = ["verify", str(opened / "certificate.json"), "--record", str(opened / "record.jsonl")]
    snapshot(run(*asked))


def test_every_assumption_of_the_examples_has_somebody() -> None:
    """Every assumption is listed; otherwise the page would say of an enforced one that nothing in the run knows of it."""
    used = set()
    for path in sorted(EXAMPLES.glob("*.yaml")):
        if "kind: policy" in path.read_text(encoding="utf-8"):
            continue
        document = load_any(path)
        # A run refuses documents with phases that are no training.
        if not isinstance(document, Document) or any(
            not isinstance(phase, tree.TrainingNode) for phase in document.phases
        ):
            continue
        for reduction in compile_document(document).reductions:
            for text in reduction.assumptions:
                beginnings = [beginning for beginning in BEGINNINGS if text.startswith(beginning)]
                assert len(beginnings) <= 1, text
                assert beginnings or held(text).held == "yours"
                assert beginnings or "Laplace" in text, text
                used.update(beginnings)
    assert len(used) > len(BEGINNINGS) - 4, set(BEGINNINGS) - used


@pytest.mark.usefixtures("_wide")
@pytest.mark.parametrize("form", ["html", "markdown", "text"])
def test_a_report_tells_of_the_run(folder: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    record = folder / "run" / "record.jsonl"
    certificate = str(folder / "held.cert.json")
    assert cli.run(["report", certificate, "--record", str(record), "--format", form]) == 0
    # Text is wrapped, and HTML has tags between the words.
    found = " ".join(re.sub(r"<[^>]*>", "", capsys.readouterr().out).split())
    assert re.search(r"3(\[\^\w+\])* of 4 rounds", found)
    verdict = hold_record(record, Certificate.load(certificate))
    assert {one.held for one in verdict.assumptions} == {"enforced", "yours"}
    for one in verdict.assumptions:
        words = unescaped(found)
        assert one.held in words
        assert unescaped(one.text) in words
        assert unescaped(one.how) in words
    # Each assumption is shown once, with its status, and not in the usual checklist as well.
    assert unescaped(found).count(unescaped(verdict.assumptions[0].text)) == 1
    places = [unescaped(found).index(unescaped(one.text)) for one in verdict.assumptions if one.held == "yours"]
    others = [unescaped(found).index(unescaped(one.text)) for one in verdict.assumptions if one.held == "enforced"]
    assert max(places) < min(others)


def unescaped(text: str) -> str:
    """Return only the words, because escaping differs between the formats."""
    return " ".join(re.sub(r"[\\`*|]", "", html.unescape(text)).split())


@pytest.mark.parametrize("form", ["html", "markdown", "text"])
def test_a_report_of_a_record_that_does_not_agree_says_so_and_nothing_of_who_holds_what(
    folder: Path, tmp_path: Path, form: str, run: Run, snapshot: Snapshot
) -> None:
    events = lines_of(folder)
    record = chained(tmp_path / "other.jsonl", [*events[:3], {**events[3], "standard_deviations": [0.3]}])
    output = tmp_path / "report"
    asked = ["report", str(folder / "held.cert.json"), "--record", str(record), "--format", form, "-o", str(output)]
    snapshot(run(*asked))
    found = unescaped(re.sub(r"<[^>]*>", "", output.read_text(encoding="utf-8")))
    assert "DOES NOT AGREE" in found
    assert "the noise has standard deviation" in found
    assert "enforced" not in found


def test_a_certificate_in_json_tells_of_no_run(folder: Path, run: Run, snapshot: Snapshot) -> None:
    record = str(folder / "run" / "record.jsonl")
    asked = ["report", str(folder / "held.cert.json"), "--record", record, "--format", "json"]
    snapshot(run(*asked))
    snapshot(run("report", folder / "held.cert.json", "--record", folder / "none.jsonl"))
