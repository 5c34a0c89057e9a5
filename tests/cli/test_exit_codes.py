"""Exit codes as promised, whatever the locale, the reader of stdout and the bug."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gate_tools import RUNS
from places import EXAMPLES, ROOT
from snapshots import Run, Snapshot
from warm_commands import COMMAND, COMMANDS_READ, warm

from pyaccount import cli
from pyaccount.cli.common import BUG, EXIT_CODES, FAILS, HOLDS, STOPPED, WRONG

EXAMPLE = str(EXAMPLES / "check-a-claim.yaml")
CERTIFICATE = str(RUNS["deterministic"])
ME = f"{sys.executable} -m pyaccount"


def bash(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["bash", "-c", command], capture_output=True, check=False, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def forked() -> Iterator[Path]:
    """Return the command, run in forks: a reader goes while a command runs, not while Python starts."""
    with warm(COMMAND, *COMMANDS_READ) as client:
        yield client


def in_forks(lines: list[str], folder: Path, closed: tuple[str, ...] = (), **environment: str) -> dict[str, list[Any]]:
    """Run command lines in forks of one process: their exit codes, whether there was a traceback, and whether all was UTF-8."""
    asked = folder / "asked.json"
    asked.write_text(json.dumps([(shlex.split(line), closed) for line in lines]), encoding="utf-8")
    program = [sys.executable, str(ROOT / "tests" / "helpers" / "forked_commands.py"), str(asked)]
    done = subprocess.run(program, cwd=folder, capture_output=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return dict(zip(lines, json.loads(done.stdout), strict=True))


@pytest.mark.nightly(but=["ascii", "C"])
@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "cp1252"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["cp1252", "ascii", "C"],
)
def test_any_locale_does(environment: dict[str, str], tmp_path: Path) -> None:
    codes = {
        f"certify {EXAMPLE}": HOLDS,
        f"certify {EXAMPLE} --set privacy.epsilon=2": FAILS,
        f"check {CERTIFICATE} --max-epsilon 8 --max-delta 1e-5": HOLDS,
        f"report {CERTIFICATE} --format text": HOLDS,
        "certify --help": HOLDS,
    }
    answers = in_forks(list(codes), tmp_path, **environment)
    assert answers == {line: [code, False, True] for line, code in codes.items()}
    # Python reads arguments by the locale when it starts.
    done = bash(f"{ME} certify {EXAMPLE} --set noise.multiplier=σ", **environment)
    assert (done.returncode, b"Traceback" in done.stderr) == (WRONG, False), done.stderr
    assert (done.stdout + done.stderr).decode()


def test_a_name_that_is_no_text_is_spelled_out(tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/\xff.yaml"
    Path(os.fsdecode(file)).write_bytes(Path(EXAMPLE).read_bytes())
    done = subprocess.run([sys.executable, "-m", "pyaccount", "validate", file], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (HOLDS, b"")
    assert b"\\udcff.yaml: valid" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (f"check {CERTIFICATE} --max-epsilon 8 --max-delta 1e-5", HOLDS),
        (f"check {CERTIFICATE} --max-epsilon 1e-3 --max-delta 1e-5", FAILS),
        (f"check {CERTIFICATE} --max-epsilon 1e-3 --max-delta 1e-5 --format json", FAILS),
        (f"certify {EXAMPLE}", HOLDS),
        (f"certify {EXAMPLE} --set privacy.epsilon=2", FAILS),
        (f"certify {EXAMPLE} --set privacy.epsilon=2 --format json", FAILS),
        (f"compare {EXAMPLE} --set privacy.epsilon=2", FAILS),
        (f"verify {CERTIFICATE}", HOLDS),
        (f"report {CERTIFICATE}", HOLDS),
        ("schema", HOLDS),
        ("--help", HOLDS),
        ("certify --help", HOLDS),
    ],
)
def test_a_reader_that_has_gone_changes_no_exit_code(arguments: str, code: int, forked: Path) -> None:
    done = bash(f"{{ sleep 0.1; {forked} {arguments}; }} | true; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (code, b"")


COMMANDS = [
    (f"check {CERTIFICATE} --max-epsilon 8 --max-delta 1e-5", HOLDS),
    (f"check {CERTIFICATE} --max-epsilon 1e-3 --max-delta 1e-5", FAILS),
    (f"check {CERTIFICATE} --max-epsilon 1e-3 --max-delta 1e-5 --quiet", FAILS),
    ("check nowhere.json --no-limits", WRONG),
    (f"certify {EXAMPLE}", HOLDS),
    (f"certify {EXAMPLE} --set privacy.epsilon=2 --format json", FAILS),
    (f"certify {EXAMPLE} --set accounting.time_limit=1e-3", STOPPED),
    (f"compare {EXAMPLE} --set privacy.epsilon=2", FAILS),
    (f"verify {CERTIFICATE}", HOLDS),
    (f"report {CERTIFICATE}", HOLDS),
    (f"validate {EXAMPLE} nowhere.yaml", WRONG),
    (f"plan {EXAMPLE}", HOLDS),
    ("init", WRONG),
    ("schema", HOLDS),
    ("completion bash", HOLDS),
    ("certify --help", HOLDS),
    ("", WRONG),
]


@pytest.mark.nightly(but=[">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "closed",
    [("stdout",), ("stderr",), ("stdin",), ("stdout", "stderr"), ("stdin", "stdout", "stderr")],
    ids=[">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"],
)
def test_closed_streams_change_no_exit_code(closed: tuple[str, ...], tmp_path: Path) -> None:
    answers = in_forks([line for line, _ in COMMANDS], tmp_path, closed)
    assert answers == {line: [code, False, True] for line, code in COMMANDS}


@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_shell_that_closes_streams_changes_no_exit_code(streams: str, tmp_path: Path) -> None:
    line, code = COMMANDS[1]
    done = bash(f"cd {tmp_path}; {ME} {line} {streams}")
    assert (done.returncode, b"Traceback" in done.stderr) == (code, False)


@pytest.mark.parametrize("streams", ["2>/dev/full", ">&- 2>/dev/full", "2> >(true)"])
def test_what_cannot_be_told_changes_no_exit_code(streams: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no device that is always full")
    for arguments, code in (
        (f"check {CERTIFICATE} nowhere.json --no-limits", WRONG),
        (f"validate {EXAMPLE} nowhere.yaml", WRONG),
        (f"check {CERTIFICATE} --max-epsilon 1e-3 --max-delta 1e-5", FAILS),
        ("certify", WRONG),
    ):
        assert bash(f"sleep 0.1; {ME} {arguments} {streams}").returncode == code, arguments


def test_a_closed_stream_is_not_the_next_file(tmp_path: Path) -> None:
    """The first free descriptor is that of the next file: what is printed must not get into what is written."""
    out = tmp_path / "out.json"
    assert bash(f"{ME} certify {EXAMPLE} -o {out} <&- >&- 2>&-").returncode == HOLDS
    assert json.loads(out.read_text(encoding="utf-8"))["kind"] == "certificate"


def test_python_without_streams() -> None:
    script = (
        "import os, sys\n"
        "from pyaccount import cli\n"
        "sys.stdin = sys.stdout = sys.stderr = None\n"
        f"os._exit(cli.run(['check', {CERTIFICATE!r}, '--max-epsilon', '8', '--max-delta', '1e-5']))\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == HOLDS


@pytest.mark.skipif(sys.platform != "linux", reason="pipes have a size that can be set on Linux")
def test_a_stream_that_does_not_block_gets_everything() -> None:
    script = (
        "import fcntl, os, sys, threading, time\n"
        "from pyaccount import cli\n"
        "there, here = os.pipe()\n"
        "fcntl.fcntl(here, 1031, 4096)\n"  # F_SETPIPE_SZ: less than what is printed
        "os.set_blocking(here, False)\n"
        "os.dup2(here, 1)\n"
        "read = []\n"
        "def reader():\n"
        "    time.sleep(0.5)\n"
        "    while data := os.read(there, 1 << 16): read.append(data)\n"
        "thread = threading.Thread(target=reader); thread.start()\n"
        "sys.argv = ['pyaccount', 'schema', 'certificate']\n"
        "try: cli.main()\n"
        "except SystemExit as error: assert error.code == 0\n"
        "os.close(1); os.close(here); thread.join()\n"
        "print(sum(map(len, read)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    size = (ROOT / "schemas" / "certificate.v1.schema.json").stat().st_size
    assert done.stderr.splitlines()[0] == str(size), done.stderr


def test_a_full_disk_is_told_once() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no device that is always full")
    done = bash(f"{ME} check {CERTIFICATE} --max-epsilon 8 --max-delta 1e-5 > /dev/full")
    assert (done.returncode, done.stderr) == (STOPPED, b"input or output: No space left on device\n")


@pytest.mark.parametrize("error", ["ZeroDivisionError('a bug')", "type('Panic', (BaseException,), {})('a bug')"])
def test_a_bug_is_no_claim_that_fails(error: str) -> None:
    script = (
        "import sys, pyaccount.gate.check, pyaccount.cli\n"
        f"def broken(*_, **__): raise {error}\n"
        "pyaccount.gate.check.verdict_on = broken\n"
        f"sys.argv = ['pyaccount', 'check', {CERTIFICATE!r}]\n"
        "pyaccount.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == BUG
    assert "Traceback" in done.stderr
    assert "this is a bug of pyaccount" in done.stderr


MISSING = [
    ("matplotlib.figure", ["compare", EXAMPLE, "--plot", "found.svg"]),
    ("matplotlib.figure", ["certify", str(EXAMPLES / "one-draw.yaml"), "--plot", "found.svg"]),
    ("matplotlib.figure", ["sweep", EXAMPLE, EXAMPLE, "--plot", "found.svg"]),
    ("pyarrow", ["sweep", EXAMPLE, EXAMPLE, "-o", "found.parquet"]),
    ("pyarrow", ["prepare", "table.parquet", "--records-per-user", "2"]),
    ("distributed", ["certify", EXAMPLE, "--cluster", "tcp://127.0.0.1:9"]),
    ("securesystemslib", ["verify", "--attestation", "a.json", "--trusted-keys", "."]),
]


@pytest.mark.parametrize("missing", MISSING)
def test_a_missing_package_is_named_before_the_work_and_is_no_limit(
    missing: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, snapshot: Snapshot
) -> None:
    module, arguments = missing
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    # A public key that nothing is signed by yet, and an envelope of nothing.
    (tmp_path / "key.pem").write_text("-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n", encoding="utf-8")
    envelope = {"payload": "e30=", "payloadType": "application/vnd.in-toto+json", "signatures": []}
    (tmp_path / "a.json").write_text(json.dumps(envelope), encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    monkeypatch.setitem(sys.modules, module, None)
    snapshot(run(*arguments))
    assert sorted(tmp_path.iterdir()) == before


def test_a_missing_package_is_told_as_data(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert cli.run(["certify", EXAMPLE, "--cluster", "tcp://127.0.0.1:9", "--format", "json"]) == WRONG
    found = json.loads(capsys.readouterr().out)
    assert (found["exit_code"], found["errors"][0]["slug"]) == (WRONG, "missing-extra")


def test_every_code_is_explained() -> None:
    reference = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = readme.split("Exit codes:")[1].split("\n\n")[0]
    for code in EXIT_CODES:
        assert f"| {code} |" in reference
        assert f"{code} " in listed
