"""The short answer: five lines that programs can take apart, whose numbers are those of the certificate, on the safe side."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from places import EXAMPLES
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli

NAMES = ["statement", "solved", "σ", "ε", "δ"]


def brief(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, str], str]:
    """The exit code, the lines by their names, and stderr."""
    code = cli.run(["certify", *arguments, "--brief"])
    told = capsys.readouterr()
    return code, {line.split("  ")[0]: line.split("  ", 1)[1].strip() for line in told.out.splitlines()}, told.err


def number(text: str, before: str) -> float:
    return float(text.split(before, 1)[1].split(",", maxsplit=1)[0].split(" ", maxsplit=1)[0])


@pytest.mark.parametrize(
    ("example", "options", "solved"),
    [
        ("cifar10-dp-sgd", [], "noise.multiplier = "),
        ("check-a-claim", [], "nothing, since the document has no blank: its claim holds"),
        (
            "check-a-claim",
            ["--set", "privacy.epsilon=2"],
            "nothing, since the document has no blank: its claim does not hold",
        ),
        ("largest-group", [], "privacy.group_size = 7 (8 does not meet the target)"),
        ("check-a-claim", ["--set", "privacy.epsilon=solve"], "privacy.epsilon = "),
    ],
)
def test_five_lines(example: str, options: list[str], solved: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / f"{example}.yaml")
    code, lines, _ = brief(capsys, path, *options)
    certificate = pyaccount.certify(path, overrides=[one for one in options if one != "--set"])
    assert list(lines) == NAMES
    assert code == (0 if certificate.holds else 1)
    assert lines["statement"] == certificate.statement
    assert lines["solved"].startswith(solved)
    guarantee = certificate.data.guarantee
    assert number(lines["ε"], "at most ") >= guarantee.epsilon
    assert number(lines["ε"], "at least ") <= guarantee.epsilon_lower
    assert number(lines["ε"], "at δ = ") == guarantee.delta
    assert number(lines["δ"], "at most ") >= guarantee.delta
    assert number(lines["δ"], "at least ") <= guarantee.delta_lower
    assert number(lines["δ"], "at ε = ") == guarantee.epsilon
    # More noise is no worse: what is said is no less than what was certified.
    noise = certificate.noise_multiplier
    assert noise is not None
    assert 0.0 <= float(lines["σ"]) - noise <= 1e-7 * noise


def test_phases_have_their_own_noise(capsys: pytest.CaptureFixture[str]) -> None:
    _, lines, _ = brief(capsys, str(EXAMPLES / "count-and-train.yaml"))
    assert lines["σ"].startswith("Laplace b = 4 (count), ")
    assert lines["σ"].endswith(" (training)")


def test_one_draw_has_a_line_for_each_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / "one-draw.yaml")
    code, lines, _ = brief(capsys, path)
    found = pyaccount.amplify(path)
    assert code == 0
    assert len(lines) == 1 + len(found.effects)
    for line, row in zip(list(lines.values())[1:], found.effects, strict=True):
        assert number(line, "ε′ at most ") >= row.amplified_epsilon
        assert line.endswith(row.effect)


def test_a_file_gets_the_whole_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "whole.json"
    code, lines, err = brief(capsys, str(EXAMPLES / "check-a-claim.yaml"), "-o", str(file), "--quiet")
    assert (code, list(lines), err) == (0, NAMES, "")
    assert json.loads(file.read_text(encoding="utf-8"))["statement"] == lines["statement"]


@pytest.mark.parametrize("options", [["--format", "json"], ["--format", "html"], ["-o", "-"]])
def test_two_answers_on_stdout_are_refused(options: list[str], run: Run, snapshot: Snapshot) -> None:
    snapshot(run("certify", EXAMPLES / "check-a-claim.yaml", "--brief", *options))


def shown(source: Any) -> tuple[str, str]:
    certificate = pyaccount.certify(source) if not isinstance(source, pyaccount.Certificate) else source
    return repr(certificate), re.sub(r"<[^>]+>", " ", certificate._repr_html_())


def test_python_shows_what_was_solved() -> None:
    for text in shown(EXAMPLES / "cifar10-dp-sgd.yaml"):
        assert re.search(r"solved:? +noise.multiplier +=  ?0.643", text)
    short, whole = shown(EXAMPLES / "check-a-claim.yaml")
    assert "its claim holds" in short
    assert "HOLDS" in whole
    failing = pyaccount.certify(EXAMPLES / "check-a-claim.yaml", overrides={"privacy.epsilon": 2})
    assert "its claim does not hold" in repr(failing)


@pytest.mark.parametrize("example", ["cifar10-dp-sgd", "production-b-min-sep", "pretrain-finetune-and-count"])
def test_a_plan_shows_no_function(example: str) -> None:
    plan = pyaccount.compile(EXAMPLES / f"{example}.yaml")
    text = repr(plan)
    assert "nothing is computed yet" in text
    assert plan.reductions[0].subject in text
    for one in (text, repr(plan.theorems), repr(pyaccount.certify(EXAMPLES / "check-a-claim.yaml").profile)):
        assert "<function" not in one
        assert " at 0x" not in one
