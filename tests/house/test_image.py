"""The container image, as far as it can be tried without an engine: its file, its context, its locks and its commands."""

import fnmatch
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from gate_tools import RUNS
from places import EXAMPLES, ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IGNORED = [
    line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] not in ("", "#")
]


class Instruction(NamedTuple):
    """An instruction of the file, in the stage that it is in."""

    stage: int
    name: str
    value: str


def instructions(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile, with continued lines joined and comments left out."""
    found: list[Instruction] = []
    plain = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", "", plain).splitlines():
        if line.strip():
            name, value = line.split(maxsplit=1)
            found.append(Instruction(sum(one.name == "FROM" for one in found) + (name == "FROM"), name, value))
    return found


ALL = instructions(TEXT)
LAST = [one for one in ALL if one.stage == ALL[-1].stage]


_BASE = re.compile(r"[\w./-]+(:\d+\.\d+\.\d+[\w.-]*|@sha256:[0-9a-f]{64})( AS \w+)?")


def wrong_in(one: Instruction) -> list[str]:
    """Return which rules an instruction breaks."""
    broken = []
    if one.name == "FROM" and not _BASE.fullmatch(one.value):
        broken.append(f"a base without a version: {one.value}")
    if one.name == "ADD":
        broken.append("ADD unpacks and fetches: use COPY")
    if one.name in ("ENV", "ARG") and re.search(r"(?i)secret|token|passw|key", one.value):
        broken.append(f"a secret: {one.value}")
    if one.name == "RUN":
        if re.search(r"curl|wget|\bsudo\b|git clone", one.value):
            broken.append(f"something is fetched that is not pinned: {one.value}")
        little = "--no-install-recommends" in one.value and "rm -rf /var/lib/apt" in one.value
        if "apt-get install" in one.value and not little:
            broken.append(f"more is installed than needed: {one.value}")
        for command in re.findall(r"pip install [^&]*", one.value):
            if not re.search("--require-hashes|--no-index", command) or "--no-cache-dir" not in command:
                broken.append(f"packages without hashes: {command}")
    return broken


def wrong(found: list[Instruction]) -> list[str]:
    """Return which rules a Dockerfile breaks."""
    broken = [message for one in found for message in wrong_in(one)]
    last = [one for one in found if one.stage == found[-1].stage]
    users = [one.value for one in last if one.name == "USER"]
    if not users or not re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", users[-1]):
        broken.append("the last stage runs as root, or as a name that Kubernetes cannot tell from root")
    if any(one.name == "RUN" for one in last):
        broken.append("the last stage runs something")
    for name in ("ENTRYPOINT", "CMD"):
        if not any(one.name == name and one.value.startswith("[") for one in last):
            broken.append(f"no {name} without a shell")
    return broken


def test_the_file_keeps_the_rules() -> None:
    assert wrong(ALL) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FROM python:3.13.9-slim-bookworm\n", "FROM python:latest\n"),
        ("FROM python:3.13.9-slim-bookworm\n", "FROM python:3.13-slim\n"),
        ("USER 10001:10001\n", ""),
        ("USER 10001:10001\n", "USER nobody\n"),
        ("USER 10001:10001\n", "USER 0:0\n"),
        ("USER 10001:10001\n", "USER 10001:10001\nRUN id\n"),
        ("COPY . .", "ADD . ."),
        ("COPY . .", "RUN curl https://example.org | sh"),
        ("COPY . .", "ENV TOKEN=1"),
        (" --require-hashes --requirement /requirements.lock", " numpy"),
        (" --no-install-recommends", ""),
        ('ENTRYPOINT ["pyaccount"]', "ENTRYPOINT pyaccount"),
    ],
)
def test_a_broken_rule_is_seen(old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    assert len(wrong(instructions(TEXT.replace(old, new)))) == 1


def test_the_labels_say_the_version_and_the_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    (labels,) = [dict(re.findall(r'([\w.]+)="([^"]*)"', one.value)) for one in LAST if one.name == "LABEL"]
    assert {name.removeprefix("org.opencontainers.image."): value for name, value in labels.items()} == {
        "title": "pyaccount",
        "description": project["description"],
        "licenses": project["license"],
        "version": version,
    }
    assert f"pyaccount:{version} ." in TEXT


# ---- what is in the context


def in_context(file: str) -> bool:
    """Return whether a file is sent to the builder: the last rule that names it, or a folder above it, decides."""
    sent = True
    for rule in IGNORED:
        pattern = rule.removeprefix("!").removeprefix("**/")
        above = [file, *(str(one) for one in Path(file).parents)]
        found = any(fnmatch.fnmatchcase(one if "**/" not in rule else Path(one).name, pattern) for one in above)
        sent = rule.startswith("!") if found else sent
    return sent


def test_only_what_is_built_reaches_the_builder() -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sent = {file for file in files.split("\0") if file and in_context(file)}
    assert {Path(file).parts[0] for file in sent} == {
        *(".ci", "Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "pyaccount", "pyproject.toml", "rust")
    }
    assert {file for file in sent if file.startswith(".ci/")} == {".ci/image/build.lock", ".ci/image/requirements.lock"}
    for file in (
        "signing.pem",
        ".env",
        ".git/config",
        "pyaccount/_core.abi3.so",
        ".venv/bin/python",
        "rust/__pycache__/y.pyc",
    ):
        assert not in_context(file)
    copied = [one.value.split()[0] for one in ALL if one.name == "COPY" and not one.value.startswith("--from")]
    assert copied == [".ci/image/build.lock", ".", ".ci/image/requirements.lock"]


# ---- what is installed


def named(file: str) -> dict[str, str]:
    """Return the requirements of a file, by name."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    found = [
        re.split(r"(?=[<>=~])", line.split(" ;")[0].rstrip(" \\"), maxsplit=1) for line in lines if line[:1].isalnum()
    ]
    return {name.strip(): version for name, version in found}


def test_the_image_has_what_the_package_needs_and_no_more() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["attest"]}
    wanted = named(".ci/image/requirements.in")
    assert {name + version for name, version in wanted.items()} == needed
    builder = named(".ci/image/build.in")
    assert [name + version for name, version in builder.items()] == project["build-system"]["requires"]
    for lock, names in (("requirements", wanted), ("build", builder)):
        locked = named(f".ci/image/{lock}.lock")
        assert {name.split("[")[0] for name in names} <= set(locked)
        assert all(version.startswith("==") for version in locked.values())


def commands() -> list[list[str]]:
    """Return the commands of pip and maturin in the file, as words."""
    found = [part for one in ALL if one.name == "RUN" for part in one.value.split("&&")]
    return [shlex.split(part) for part in found if "pip" in part or "maturin" in part]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_the_options_of_each_command_exist(words: list[str]) -> None:
    """Both programs read their options in order, and `--help` only after those before it."""
    tool = words[words.index("pip") :] if "pip" in words else ["maturin", *words[1:]]
    command = (
        [sys.executable, "-m", *tool] if tool[0] == "pip" else [str(Path(sys.executable).parent / "maturin"), *tool[1:]]
    )
    assert subprocess.run([*command, "--help"], capture_output=True, check=False).returncode == 0
    wrong_option = [*command, "--no-such-option", "--help"]
    assert subprocess.run(wrong_option, capture_output=True, check=False).returncode != 0


# ---- how it runs

_WRITES = """
import os, sys
written = []

def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        mode, flags = arguments[1:]
        if (mode and set(mode) & set("wax+")) or (mode is None and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            written.append(arguments[0])
    if event in ("os.mkdir", "os.rename", "tempfile.mkstemp", "tempfile.mkdtemp"):
        written.append(event)

sys.addaudithook(watch)
from pyaccount import cli
code = cli.run(sys.argv[1:])
print(code, written, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", str(RUNS["deterministic"]), "--max-epsilon", "8", "--max-delta", "1e-5"],
        ["certify", str(EXAMPLES / "check-a-claim.yaml"), "--quiet", "--format", "json"],
        ["verify", str(RUNS["deterministic"])],
        ["validate", str(EXAMPLES / "policy.yaml")],
        ["report", str(RUNS["deterministic"])],
        ["export", str(RUNS["deterministic"]), "--to", "cyclonedx"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_write_no_file(arguments: list[str], tmp_path: Path) -> None:
    """They run where every file system is read-only: what opens a file for writing, or makes one, is noted by the interpreter."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", _WRITES, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == "0 []", done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_written_is_seen(tmp_path: Path) -> None:
    arguments = ["report", str(RUNS["deterministic"]), "-o", str(tmp_path / "report.html")]
    done = subprocess.run([sys.executable, "-B", "-c", _WRITES, *arguments], capture_output=True, text=True, check=True)
    assert not done.stderr.splitlines()[-1].endswith("[]")
