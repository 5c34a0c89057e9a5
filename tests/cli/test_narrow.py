"""Narrow terminals: nothing is cut, no number is broken, and no line is longer than the terminal is wide."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import click
import pytest
from places import CERTIFICATES, EXAMPLES, ROOT

import pyaccount
from pyaccount import cli
from pyaccount.certificate.compared import FailedRecord
from pyaccount.certificate.comparison import Comparison
from pyaccount.certificate.reading import read_certificate
from pyaccount.certificate.report import page_of
from pyaccount.certificate.report.planned import amplification_plan_page
from pyaccount.cli.common import fitted, room
from pyaccount.document.amplification import Amplification
from pyaccount.document.loading import load_any
from pyaccount.pages.layout import TextTable, wrapped
from pyaccount.pages.page import Page
from pyaccount.pages.terminal import terminal
from pyaccount.plan.amplification import compile_amplification

FINISHED = sorted((CERTIFICATES / "v1").glob("*.json"))
WIDTHS = (40, 60, 80)


def numbers(text: str) -> set[str]:
    """The numbers of a text, each as a whole; a hash is none."""
    plain = re.sub(r"document +[0-9a-f]{8}.*?(?=pyaccount)", "", text, flags=re.DOTALL)
    return set(re.findall(r"(?<![\w.-])-?\d[\d._]*(?:e-?\d+)?(?![\w.])", plain))


def assert_fits(width: int, page: Page) -> str:
    whole, narrow = terminal(page, None), terminal(page, width)
    assert max(map(len, narrow.splitlines())) <= width
    assert "…" not in narrow.replace("…", "", whole.count("…"))
    assert numbers(whole) <= numbers(narrow)
    return narrow


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", FINISHED, ids=lambda path: path.stem)
def test_certificates(path: Path, width: int) -> None:
    assert_fits(width, page_of(read_certificate(path).any()))


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    documents = [EXAMPLES / f"{name}.yaml" for name in ("check-a-claim", "fixed-size-replace-one", "full-batch")]
    return pyaccount.compare(documents, overrides=["privacy.adjacency=zero-out", "accounting.profile=[1]"])


@pytest.mark.parametrize("width", [*WIDTHS, 110])
def test_comparisons_stand_side_by_side(comparison: Comparison, width: int) -> None:
    text = assert_fits(width, comparison.page())
    # Each row says what it is about.
    for row in comparison.rows:
        assert row.name[:10] in text
    if width == 60:
        bounds = [line for line in text.splitlines() if line.strip().startswith("ε at most")]
        assert max(len(re.findall(r"\d+\.\d+", line)) for line in bounds) >= 2


@pytest.mark.parametrize("width", [*WIDTHS, 110])
def test_what_failed_has_its_place_in_narrow_comparisons(comparison: Comparison, width: int) -> None:
    failed = FailedRecord(place=1, name="slow", file=None, why="stopped", message="no time", seconds=2.0)
    mixed = comparison.model_copy(update={"failures": [failed]})
    text = assert_fits(width, mixed.page())
    assert "slow none: stopped: no time" in " ".join(text.split())
    alone = comparison.model_copy(update={"rows": [], "failures": [failed.model_copy(update={"place": 0})]})
    assert "none:" in assert_fits(width, alone.page())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["pretrain-and-finetune", "cifar10-bandmf", "users", "one-draw"])
def test_plans(name: str, width: int) -> None:
    source = EXAMPLES / f"{name}.yaml"
    if name == "one-draw":
        document = load_any(source)
        assert isinstance(document, Amplification)
        assert_fits(width, amplification_plan_page(compile_amplification(document)))
        return
    plan = pyaccount.compile(source)
    words = re.sub(r"\s+", "", assert_fits(width, plan.page()))
    for reduction in plan.reductions:
        assert reduction.subject.replace(" ", "") in words


@pytest.mark.parametrize("command", ["", *cli.all_commands()])
def test_help(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for columns in ("60", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        assert cli.run([*command.split(), "--help"]) == 0
        texts.append(capsys.readouterr().out)
    narrow, wide = texts
    assert max(map(len, narrow.splitlines())) <= 60
    # What is said is the same; a shell reads each example as one line.
    joined = [re.sub(r"\s+", "", re.sub(r" \\\n", "", text)) for text in texts]
    assert joined[0] == joined[1]
    for line in re.findall(r"^    (pyaccount .*)", re.sub(r" \\\n *", " ", narrow), flags=re.MULTILINE):
        assert line in re.sub(r" \\\n *", " ", wide)


def test_errors_notes_and_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.yaml"
    text = (EXAMPLES / "check-a-claim.yaml").read_text(encoding="utf-8")
    bad.write_text(text.replace("delta: 1e-6", "delta: 1.5").replace("poisson", "poison"), encoding="utf-8")
    commands = [
        ["certify", str(bad)],
        ["validate", str(EXAMPLES / "cifar10-dp-sgd.yaml"), "--set", "privacy.delta=0.01"],
        ["certify", str(EXAMPLES / "cifar10-dp-sgd.yaml"), "--epsilon", "3"],
        ["check", str(FINISHED[0]), "--max-epsilon", "8", "--max-delta", "1e-5"],
        ["certify", str(EXAMPLES / "check-a-claim.yaml"), "--set", "accounting.time_limit=1e-3"],
    ]
    for command in commands:
        monkeypatch.delenv("COLUMNS", raising=False)
        code = cli.run(command)
        whole = capsys.readouterr().err
        monkeypatch.setenv("COLUMNS", "60")
        assert cli.run(command) == code
        narrow = capsys.readouterr().err
        for line in narrow.splitlines():
            # Words, such as paths, are not broken.
            assert len(line) <= 60 or " " not in line.strip()
        assert narrow.split() == whole.split()


@pytest.mark.parametrize("width", ["40", "60"])
def test_verdicts(width: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    certificate = str(CERTIFICATES / "v1" / "verified.json")
    command = ["check", certificate, "--policy", str(EXAMPLES / "policy.yaml")]
    code = cli.run(command)
    whole = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", width)
    assert cli.run(command) == code
    narrow = capsys.readouterr().out
    for line in narrow.splitlines():
        assert len(line) <= int(width) or " " not in line.strip()
    for rule in ("intact", "max_epsilon", "max_delta", "max_age"):
        for text in (whole, narrow):
            assert re.search(rf"^  (ok|FAILS) +{rule}\b", text, flags=re.MULTILINE)
    assert re.search(r"^  FAILS +max_delta +0.01 +at most 1e-5 +", whole, flags=re.MULTILINE)


def test_a_quiet_verdict_is_narrow_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    certificate = str(CERTIFICATES / "v1" / "verified.json")
    monkeypatch.setenv("COLUMNS", "60")
    assert cli.run(["check", certificate, "--policy", str(EXAMPLES / "policy.yaml"), "--quiet"]) == 1
    out = capsys.readouterr().out
    # The one rule that fails has a column of its own.
    assert re.search(
        r"^ +FAILS\n  rule +max_delta\n  certificate +0.01\n  limit +at most 1e-5\n", out, flags=re.MULTILINE
    )
    assert "ok" not in out


def on_a_terminal(columns: int, *arguments: str) -> tuple[int, str]:
    """The exit code and the output of the command on a terminal of its own."""
    ours, theirs = pty.openpty()
    # The terminal has its size before anything is printed.
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pyaccount", *arguments]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    output = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:
            break
        if not part:
            break
        output += part
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode())
    return process.wait(), text.replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [40, 60])
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["certify", str(EXAMPLES / "check-a-claim.yaml")], 0, "HOLDS"),
        (["plan", str(EXAMPLES / "check-a-claim.yaml")], 0, "question"),
        (["report", str(FINISHED[-1]), "--format", "text"], 0, "Tests"),
        (["certify", str(EXAMPLES / "check-a-claim.yaml"), "--set", "privacy.delta=2"], 2, "[out-of-range]"),
        (["--help"], 0, "Examples:"),
    ],
)
def test_a_real_terminal(columns: int, arguments: list[str], code: int, words: str) -> None:
    found, text = on_a_terminal(columns, *arguments)
    assert found == code
    assert words in text
    # click's help has 50 columns at least.
    most = max(columns, 52) if "--help" in arguments else columns
    assert [line for line in text.splitlines() if len(line) > most and " " in line.strip()] == []


def test_a_table_is_one_if_it_fits_and_else_parts_with_their_first_column() -> None:
    rows = (("0.5", "1.2345e-10", "12345678", "0.125"), ("12", "1", "2", "3"), *[("9", "1", "2", "3")] * 3)
    table = TextTable(("ε", "first column", "second", "third"), rows, (False,) * 4)

    def lines(width: int) -> list[str]:
        return [line for line, row in table.lines(width) if row is None or row < 2]

    assert lines(80) == [
        "  ε    first column      second    third",
        "0.5      1.2345e-10    12345678    0.125",
        " 12               1           2        3",
    ]
    assert lines(36) == [
        "  ε  first column    second  third",
        "0.5    1.2345e-10  12345678  0.125",
        " 12             1         2      3",
    ]
    assert lines(20) == [
        "  ε  first column",
        "0.5    1.2345e-10",
        " 12             1",
        "",
        "  ε    second  third",
        "0.5  12345678  0.125",
        " 12         2      3",
    ]


def test_a_table_of_few_rows_that_is_too_wide_has_a_column_for_each() -> None:
    table = TextTable(
        ("name", "first", "second", "third"), (("a", "1000", "2000", "3000"),), (True, False, False, False)
    )
    assert [line for line, _ in table.lines(20)] == [
        "          a",
        "first     1000",
        "second    2000",
        "third     3000",
    ]


def test_wide_letters_count_as_two_cells() -> None:
    assert wrapped("数据 data", 4) == ["数据", "data"]
    assert wrapped("数据数据", 5) == ["数据", "数据"]
    assert [line for line, _ in TextTable(("", "x"), (("数据", "1"), ("abcd", "2")), (True, False)).lines(80)] == [
        "        x",
        "数据    1",
        "abcd    2",
    ]


def test_text_is_wrapped_between_words_only() -> None:
    assert fitted("as it stands, however long it may be", None) == "as it stands, however long it may be"
    text = "place: problem\n    a message that is longer than a line of a terminal\n"
    assert fitted(text, 30) == ("place: problem\n    a message that is longer\n    than a line of a terminal\n")
    assert fitted("x" * 50, 30) == "x" * 50


def test_columns_says_how_wide_output_is(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    for value, expected in (("", None), ("60", 60), ("1", 24), ("0", None), ("wide", None), ("²", None)):
        monkeypatch.setenv("COLUMNS", value)
        assert room(stream) == expected


def test_examples_are_whole_commands() -> None:
    formatter = cli.commands.make_context("pyaccount", ["schema"], resilient_parsing=True).make_formatter()
    assert isinstance(formatter, click.HelpFormatter)
    formatter.width = 40
    formatter.write_text(
        '\b\nExamples:\n  pyaccount verify a.json --time-limit "10 min" --seed new > out.json    # more'
    )
    lines = [line.rstrip() for line in formatter.getvalue().splitlines() if line.strip()]
    assert lines == [
        "Examples:",
        "  pyaccount verify a.json \\",
        '      --time-limit "10 min" --seed new \\',
        "      > out.json",
        "      # more",
    ]
