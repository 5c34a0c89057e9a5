"""A message names what its reader typed: an argument in Python, an option on the command line."""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gate_tools import RUNS
from places import EXAMPLES, ROOT

import pyaccount
from pyaccount import cli

EXAMPLE = str(EXAMPLES / "check-a-claim.yaml")
CERTIFICATE = str(RUNS["deterministic"])
TABLE = str(EXAMPLES / "authors.csv")
SCORES = str(EXAMPLES / "canaries.csv")

#: An option, but for one of a command that is named in full: that is what to type, for everybody.
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
COMMAND = re.compile(r"`(?:pyaccount [^`]*|openssl [^`]*)`")
#: Arguments of public functions that are no words of English, and no keys of documents with their path.
ARGUMENTS = sorted(
    {
        name
        for function in (getattr(pyaccount, one) for one in pyaccount.__all__)
        if inspect.isfunction(function)
        for name in inspect.signature(function).parameters
        if "_" in name
    }
)
ARGUMENT = re.compile(rf"(?<![\w.`-])(?:{'|'.join(ARGUMENTS)})(?![\w.`-])|\b\w+=\"|`\w+=`")


def options_in(message: str) -> list[str]:
    return OPTION.findall(COMMAND.sub("", message))


#: What goes wrong in Python, with the argument that the message names.
CALLS: dict[str, tuple[str, Callable[[], Any]]] = {
    "time limit": ("time_limit = ", lambda: pyaccount.certify(EXAMPLE, time_limit="soon")),
    "reached limit": ("time_limit=", lambda: pyaccount.certify(EXAMPLE, time_limit=1e-9)),
    "limit of verify": ("time_limit=", lambda: pyaccount.verify(CERTIFICATE, time_limit=1e-9)),
    "threads": ("threads = ", lambda: pyaccount.certify(EXAMPLE, threads=-1)),
    "an override": ("overrides: ", lambda: pyaccount.load(EXAMPLE, overrides={"privacy.epsilon": -1})),
    "an override's limit": (
        "overrides: ",
        lambda: pyaccount.certify(EXAMPLE, overrides=["accounting.time_limit=1e-9"]),
    ),
    "form": ("form", lambda: pyaccount.Certificate.load(CERTIFICATE).save("a.xyz")),
    "confidence": ("confidence = ", lambda: pyaccount.audit(CERTIFICATE, SCORES, confidence=2.0)),
    "threshold": ("`threshold` ", lambda: pyaccount.audit(CERTIFICATE, SCORES, threshold=1.0)),
    "guesses": ("`guesses` ", lambda: pyaccount.audit(CERTIFICATE, SCORES, runs="many", guesses=(1, 1))),
    "how many guesses": ("guesses = ", lambda: pyaccount.audit(CERTIFICATE, SCORES, guesses=(10**6, 1))),
    "two ways": (
        "expected_batch_size",
        lambda: pyaccount.prepare(TABLE, records_per_user=2, expected_batch_size=2.0, sampling_probability=0.1),
    ),
    "no separation": ("min_separation", lambda: pyaccount.prepare(TABLE, records_per_user=2, expected_batch_size=2.0)),
    "records": ("records_per_user = ", lambda: pyaccount.prepare(TABLE, records_per_user=0)),
    "keys": ("trusted_keys", lambda: pyaccount.verify(CERTIFICATE, trusted_keys="keys")),
    "no keys": ("trusted_keys = ", lambda: pyaccount.verify(attestation=CERTIFICATE, trusted_keys="nowhere")),
    "subjects": ("`subjects` ", lambda: pyaccount.attest(CERTIFICATE, [], "key.pem")),
    "public key": ("public_key", lambda: pyaccount.attest(CERTIFICATE, [CERTIFICATE], "hsm:1")),
    "cells": ("most=", lambda: pyaccount.sweep([EXAMPLE, EXAMPLE], most=1)),
    "certificates": ("`certificates` ", lambda: pyaccount.sweep([EXAMPLE, EXAMPLE], certificates=EXAMPLE)),
    "a policy": ("policy", lambda: pyaccount.load(EXAMPLES / "policy.yaml")),
    "a certificate": ("certificate", lambda: pyaccount.load(CERTIFICATE)),
    "a limit": ("max_epsilon", lambda: pyaccount.check(CERTIFICATE, max_epsilon="eight")),
}


@pytest.mark.parametrize("case", CALLS)
def test_python_is_told_of_arguments(case: str) -> None:
    named, call = CALLS[case]
    with pytest.raises((pyaccount.PyaccountError, TypeError)) as caught:
        call()
    message = str(caught.value)
    assert named in message
    assert not options_in(message), message


#: What goes wrong on the command line, with the option that the message names.
COMMANDS: dict[str, tuple[str, list[str]]] = {
    "a time limit": ("--time-limit = ", ["verify", CERTIFICATE, "--time-limit", "soon"]),
    "a reached limit": ("set by --time-limit", ["verify", CERTIFICATE, "--time-limit", "1e-9"]),
    "an override": ("--set privacy.epsilon=-1: ", ["validate", EXAMPLE, "--set", "privacy.epsilon=-1"]),
    "an override's limit": ("set by --set accounting", ["certify", EXAMPLE, "--set", "accounting.time_limit=1e-9"]),
    "a seed": ("--seed 3: ", ["certify", str(EXAMPLES / "one-draw.yaml"), "--seed", "3"]),
    "confidence": ("--confidence = ", ["audit", CERTIFICATE, SCORES, "--confidence", "2"]),
    "threshold": ("--threshold is only for many runs", ["audit", CERTIFICATE, SCORES, "--threshold", "1"]),
    "guesses": (
        "--guesses is only for one run",
        ["audit", CERTIFICATE, SCORES, "--runs", "many", "--guesses", "1", "1"],
    ),
    "how many guesses": ("--guesses = ", ["audit", CERTIFICATE, SCORES, "--guesses", "1000000", "1"]),
    "unfair coins": ("--runs many", ["audit", CERTIFICATE, "unfair.csv"]),
    "two ways": (
        "--expected-batch-size and --sampling-probability",
        ["prepare", TABLE, "--records-per-user", "2", "--expected-batch-size", "2", "--sampling-probability", "0.1"],
    ),
    "no separation": ("--min-separation", ["prepare", TABLE, "--records-per-user", "2", "--expected-batch-size", "2"]),
    "neighbours": ("--neighbour-limit", ["prepare", TABLE, "--records-per-user", "2", "--neighbour-limit", "rule"]),
    "keys": ("--trusted-keys = ", ["verify", "--attestation", CERTIFICATE, "--trusted-keys", "nowhere"]),
    "public key": ("--public-key is missing", ["attest", CERTIFICATE, "--subject", EXAMPLE, "--key", "hsm:1"]),
    "cells": ("--yes", ["sweep", "many.yaml"]),
    "certificates": ("--certificates must be a folder", ["sweep", EXAMPLE, EXAMPLE, "--certificates", "unfair.csv"]),
    "a form": ("--format", ["certify", EXAMPLE, "-o", "found.xyz"]),
    "a limit": ("--max-epsilon eight", ["check", CERTIFICATE, "--max-epsilon", "eight"]),
}


#: Those of a function's own errors, which are data too.
AS_DATA = [case for case, (_, words) in COMMANDS.items() if words[0] in ("audit", "prepare")]


@pytest.mark.parametrize(
    ("case", "form"), [*((case, "text") for case in COMMANDS), *((case, "json") for case in AS_DATA)]
)
def test_a_command_is_told_of_options(
    case: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{place},{int(place < 195)}\n" for place in range(200))
    Path("unfair.csv").write_text(f"score,included\n{rows}", encoding="utf-8")
    text = Path(EXAMPLE).read_text(encoding="utf-8")
    varied = "vary:\n  privacy.epsilon: {start: 1, stop: 8, count: 200}\n  training.iterations: {start: 1, stop: 100, step: 1}\n"
    Path("many.yaml").write_text(text + varied, encoding="utf-8")
    named, words = COMMANDS[case]
    assert cli.run([*words, *(["--format", "json"] if form == "json" else [])]) in (2, 3)
    told = capsys.readouterr()
    message = " ".join((told.err if form == "text" else told.out).split())
    assert named in message
    assert not ARGUMENT.search(message.replace(str(tmp_path), "")), message


def texts(path: Path) -> list[tuple[int, str]]:
    """The texts of a module that are no docstrings, with their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inside = {id(part) for node in joined for part in ast.walk(node) if part is not node}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in inside:
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            found.append((node.lineno, "".join(map(str, parts))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (alone | inside):
            found.append((node.lineno, node.value))
    return found


#: What only the command line says: the rooms of its own, and texts that are options or descriptions of what it prints.
OF_THE_COMMAND = ("cli/", "draft/", "reference.py", "messages.py", "independent/__main__.py")
OPTIONS_THEMSELVES = {
    "reading/overrides.py": "--set ",
    "document/shuffling.py": "--sampler none --max-participations",
    # A document may be read by a command or in Python, and the message is about its key.
    "document/naming.py": "`--folder DIR`, `folders=`",
    "document/sweeps.py": "`--folder DIR`, `folders=`",
}


def test_no_room_but_the_commands_knows_options() -> None:
    wrong = []
    for path in sorted((ROOT / "pyaccount").rglob("*.py")):
        name = path.relative_to(ROOT / "pyaccount").as_posix()
        if name.startswith(OF_THE_COMMAND) or "--" not in path.read_text(encoding="utf-8"):
            continue
        for line, text in texts(path):
            known = OPTIONS_THEMSELVES.get(name)
            if options_in(text) and not (known and known in text):
                wrong.append(f"{name}:{line}: {text}")
    assert not wrong, "\n".join(wrong)
