"""Comparisons go on: what fails has a row that says why, and finished certificates stand beside documents as they are."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from gate_tools import RUNS, changed, golden, save
from jsonschema import Draft202012Validator
from places import CERTIFICATES, EXAMPLES
from plain_documents import doc, sectioned

import pyaccount
from pyaccount import cli, schemas
from pyaccount.running import Plan

QUICK = doc(
    "name=quick adjacency=add-remove delta=1e-6 sampling_probability=0.01 iterations=100 sampler=poisson multiplier=1.0"
)
SLOW = changed(QUICK, name="slow | one") | {"accounting": {"time_limit": 1e-3, "tolerance": 1e-8}}
INFEASIBLE = changed(QUICK, name="infeasible", privacy__epsilon=1.0, privacy__delta=1e-6) | sectioned(
    multiplier=1e-3, sampling_probability=0.01, iterations="solve"
)
CLAIM = changed(QUICK, name="claim", privacy__epsilon=0.01)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def written(folder: Path, *documents: dict[str, Any]) -> list[str]:
    return [str(save(folder, document, f"{place}.yaml")) for place, document in enumerate(documents)]


def test_a_comparison_goes_on_after_what_fails(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    slow, infeasible, quick = written(tmp_path, SLOW, INFEASIBLE, QUICK)
    code, out, err = run(capsys, "compare", slow, infeasible, quick, "--format", "json")
    assert (code, err) == (2, "")
    data = json.loads(out)
    Draft202012Validator(schemas.SCHEMAS["comparison"]()).validate(data)
    assert [row["name"] for row in data["rows"]] == ["quick"]
    first, second = data["failures"]
    assert (first["place"], first["name"], first["file"], first["why"]) == (0, "slow | one", slow, "stopped")
    assert "time limit was reached" in first["message"]
    assert (second["place"], second["why"]) == (1, "wrong")
    assert "target-infeasible" in second["message"]
    # The one that did not fail is what it is by itself.
    alone = json.loads(run(capsys, "compare", quick, "--format", "json")[1])
    (row,), (same,) = data["rows"], alone["rows"]
    assert row | {"seconds": 0} == same | {"seconds": 0}
    assert alone["failures"] == []


def test_every_form_shows_failures_beside_results(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    slow, quick, infeasible = written(tmp_path, SLOW, QUICK, INFEASIBLE)
    code, out, _ = run(capsys, "compare", slow, quick, infeasible)
    assert code == 2
    assert re.search(r"^  quick +deterministic ", out, flags=re.MULTILINE)
    assert re.search(r"^  slow \| one +none: stopped: the time limit was reached", out, flags=re.MULTILINE)
    assert re.search(r"^  infeasible +none: the document is wrong: ", out, flags=re.MULTILINE)
    code, out, _ = run(capsys, "compare", slow, quick, infeasible, "--format", "markdown")
    assert "\n| slow \\| one | none: stopped: the time limit was reached" in out
    assert "\n| infeasible | none: the document is wrong" in out
    code, out, _ = run(capsys, "compare", slow, quick, infeasible, "--format", "html")
    assert code == 2
    for words in (
        "Of 1 certificate, 1 holds.",
        "slow | one",
        "none: stopped: the time limit was reached",
        "target-infeasible",
    ):
        assert words in out
    code, out, _ = run(capsys, "compare", slow)
    assert (code, "the time limit was reached" in out) == (3, True)


@pytest.mark.parametrize(
    ("documents", "code"),
    [([QUICK], 0), ([QUICK, CLAIM], 1), ([CLAIM, SLOW], 3), ([SLOW, CLAIM, INFEASIBLE], 2), ([INFEASIBLE, QUICK], 2)],
)
def test_the_exit_code_is_honest(
    documents: list[dict[str, Any]], code: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "out.json"
    assert run(capsys, "compare", *written(tmp_path, *documents), "-o", str(target))[0] == code
    data = json.loads(target.read_text(encoding="utf-8"))
    assert len(data["rows"]) + len(data["failures"]) == len(documents)


def test_what_is_wrong_before_the_work_is_told_before_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    good, bad = written(tmp_path, QUICK, changed(QUICK, sampler={"kind": "shuffle"}))
    amplification = str(CERTIFICATES / "v1" / "amplification.json")
    torn = str(save(tmp_path, golden("deterministic") | {"guarantee": 1}, "torn.json"))
    code, out, err = run(capsys, "compare", good, bad, amplification, torn, "nowhere.json")
    assert (code, out) == (2, "")
    for words in ("unknown-kind", "certifies one draw", "torn.json: guarantee", "nowhere.json"):
        assert words in err


def test_finished_certificates_stand_as_they_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []
    original = Plan.run

    def counted(self: Plan, **options: Any) -> pyaccount.Certificate:
        ran.append(self.document.name)
        return original(self, **options)

    monkeypatch.setattr(Plan, "run", counted)
    (quick,) = written(tmp_path, QUICK)
    files = [str(RUNS[name]) for name in ("verified", "deterministic")]
    arguments = ["compare", files[0], quick, files[1], "--set", "privacy.delta=1e-7"]
    code, out, err = run(capsys, *arguments, "--format", "json")
    assert (code, ran) == (0, ["quick"])
    assert [f"{file}: a finished certificate is compared as it is" in err for file in files] == [True, True]
    data = json.loads(out)
    Draft202012Validator(schemas.SCHEMAS["comparison"]()).validate(data)
    assert [row["finished"] for row in data["rows"]] == [True, False, True]
    assert data["rows"][1]["delta"] == 1e-7
    for row, name in ((data["rows"][0], "verified"), (data["rows"][2], "deterministic")):
        said = golden(name)
        assert (row["epsilon"], row["delta"], row["epsilon_lower"]) == tuple(
            said["guarantee"][key] for key in ("epsilon", "delta", "epsilon_lower")
        )
        assert (row["noise_multiplier"], row["kind"]) == (said["noise_multiplier"], said["guarantee"]["kind"])
        assert (row["document_sha256"], row["seconds"]) == (said["document_sha256"], 0)
    for form in ("text", "markdown"):
        assert run(capsys, *arguments, "--format", form)[1].count("finished before") == 2
    # One that does not hold is told as a document's is.
    assert run(capsys, "compare", str(RUNS["claim-fails"]))[0] == 1
    # Whoever wrote it, and in whatever order.
    sorted_keys = save(tmp_path, json.dumps(golden("deterministic"), sort_keys=True))
    assert run(capsys, "compare", str(sorted_keys))[0] == 0
    assert ran == ["quick"] * 3


def test_a_certificate_that_contradicts_itself_has_no_row(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = str(save(tmp_path, changed(golden("deterministic"), guarantee__epsilon=0.5)))
    code, out, _ = run(capsys, "compare", bad, str(RUNS["deterministic"]), "--format", "json")
    data = json.loads(out)
    assert (code, len(data["rows"])) == (1, 1)
    assert (data["failures"][0]["why"], data["failures"][0]["place"]) == ("contradictory", 0)
    assert "contradicts itself" in run(capsys, "compare", bad)[1]


def test_no_certificate_is_overwritten(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = save(tmp_path, golden("deterministic"))
    before = file.read_bytes()
    code, _, err = run(capsys, "compare", str(file), "-o", str(file))
    assert (code, "is the input" in err, file.read_bytes()) == (2, True, before)


def test_python_compares_likewise(monkeypatch: pytest.MonkeyPatch) -> None:
    finished = pyaccount.Certificate.load(RUNS["verified"])
    found = pyaccount.compare([SLOW, finished, RUNS["deterministic"], QUICK, EXAMPLES / "check-a-claim.yaml"])
    assert [row.finished for row in found.rows] == [True, True, False, False]
    (failed,) = found.failures
    assert (failed.place, failed.why, failed.file) == (0, "stopped", None)
    names = [entry.name for entry in found.entries()]
    assert names == ["slow | one", *(row.name for row in found.rows)]
    assert found.rows[0].epsilon == finished.epsilon
    with pytest.raises(pyaccount.DocumentError, match="unknown-kind"):
        pyaccount.compare([QUICK, changed(QUICK, sampler={"kind": "shuffle"})])

    def interrupted(self: Plan, **options: Any) -> pyaccount.Certificate:
        raise KeyboardInterrupt

    monkeypatch.setattr(Plan, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pyaccount.compare([QUICK])
