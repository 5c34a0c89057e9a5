"""What the action of this repository runs: `pyaccount check` on its inputs, with a summary for people and outputs for steps.

Inputs are environment variables, `PYACCOUNT_CERTIFICATES` and others; no shell sees them. Names of files and texts of
certificates come from others: what is printed cannot give commands to the runner, and what is in the summary is a page that
escapes them.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from glob import glob, has_magic
from pathlib import Path


def lines(name: str) -> list[str]:
    """Return the lines of an input that are not empty."""
    return [line.strip() for line in os.environ.get(f"PYACCOUNT_{name}", "").splitlines() if line.strip()]


def files(name: str) -> list[str]:
    """Return the files of an input, with patterns expanded. A pattern without a match stays, so that `check` reports it."""
    found = []
    for pattern in lines(name):
        # A file with such a name is that file. Names are as they were given, and `Path.glob` has no absolute patterns.
        several = has_magic(pattern) and not Path(pattern).exists()
        matching = sorted(glob(pattern, recursive=True)) if several else []  # noqa: PTH207
        found += matching or [pattern]
    return found


def arguments() -> list[str]:
    """Return the arguments of `pyaccount check`. Raises `SystemExit` for a limit that is not name=value."""
    words = [f"--policy={one}" for one in lines("POLICY")] + [f"--trusted-keys={one}" for one in lines("TRUSTED_KEYS")]
    for option, name in {"document": "DOCUMENTS", "attestation": "ATTESTATIONS", "subject": "SUBJECTS"}.items():
        words += [f"--{option}={file}" for file in files(name)]
    for line in lines("LIMITS"):
        if re.fullmatch(r"(max|at|adjacency|unit|group|guarantee|document-sha256)[a-z0-9-]*=.+", line) is None:
            print(
                f"limits: {line!r} is not name=value, with a limit of pyaccount check: write max-epsilon=8",
                file=sys.stderr,
            )
            raise SystemExit(2)
        words.append(f"--{line}")
    return [*words, "--", *files("CERTIFICATES")]


def check(form: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run `pyaccount check` and return what it printed in this form."""
    # With -P no file of the checkout is imported in place of a module. Everything after `--` is the name of a file.
    command = [sys.executable, "-P", "-m", "pyaccount", "check", f"--format={form}", *words]
    return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)


def outcome(verdict: subprocess.CompletedProcess[str]) -> int:
    """Return the exit code of a check, or 2 if there is no verdict that agrees with it: then nothing was checked."""
    try:
        passes = json.loads(verdict.stdout)["passes"]
    except (ValueError, KeyError, TypeError):
        passes = None
    # Python itself ends with 1 if the package is not installed.
    agrees = (verdict.returncode, passes) in ((0, True), (1, False)) or verdict.returncode > 1
    return verdict.returncode if agrees else 2


def append(variable: str, text: str) -> None:
    """Append to a file that the runner named, if it did."""
    if name := os.environ.get(variable):
        with Path(name).open("a", encoding="utf-8") as stream:
            stream.write(text)


def main() -> int:
    """Check, write the summary and the outputs, and return the exit code of `pyaccount check`."""
    words = arguments()
    verdict = check("json", words)
    file = Path(os.environ.get("RUNNER_TEMP", ".")) / "pyaccount-verdict.json"
    file.write_text(verdict.stdout, encoding="utf-8")
    # Until the token is printed again, no line is a command to the runner.
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}")
    print(check("text", words).stdout, end="")
    print(verdict.stderr, end="", flush=True)
    print(f"::{token}::", flush=True)
    append("GITHUB_STEP_SUMMARY", check("markdown", words).stdout)
    if verdict.stderr:
        # Indented lines are code: nothing in them is formatted.
        append("GITHUB_STEP_SUMMARY", "\n" + "".join(f"    {line}\n" for line in verdict.stderr.splitlines()))
    code = outcome(verdict)
    passes = "true" if code == 0 else "false"
    append("GITHUB_OUTPUT", f"passes={passes}\nexit-code={code}\nverdict={file}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
