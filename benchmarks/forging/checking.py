"""The independent checker, asked about one text after the other: in one process that ends at the limit, or in one for each."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from pyaccount.independent.apart import SHARE, check_apart

FOLDER = Path(__file__).resolve().parents[2] / "pyaccount" / "independent"
VERDICTS = ("proven", "refuted", "consistent", "not checkable")
#: What is said of a text that is no certificate, where the command ends with the exit code 2.
NO_CERTIFICATE = "no certificate"
#: The checker as it runs in a process of its own, but for that this one goes on: the same limit of memory, the same functions.
_PROGRAM = """
import json, signal, sys
sys.path.append(sys.argv[1])
from independent.apart import _limit
from independent.verdict import check, parsed
_limit(100_000)
for line in sys.stdin:
    # Processor time, so that a busy machine gives the same verdicts. The signal ends the process.
    signal.setitimer(signal.ITIMER_PROF, float(sys.argv[3]))
    try:
        found = check(parsed(json.loads(line)), float(sys.argv[2]))
    except ValueError as error:
        found = {"verdict": "no certificate", "reason": str(error)}
    except BaseException as error:
        found = {"verdict": type(error).__name__, "reason": str(error)}
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps(found), flush=True)
"""
#: How many times its limit of processor time a check may take on a busy machine.
_BUSY = 60


class Answer(NamedTuple):
    """A verdict, its reason, and the seconds that passed."""

    verdict: str
    reason: str | None
    seconds: float
    ended: bool = False


class Checker:
    """A process that checks texts until one takes more processor time than the limit; then it ends, and another one begins."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def answer(self, text: str) -> Answer:
        """Return the answer about the text of a certificate."""
        if self._process is None:
            limits = [repr(SHARE * self.limit), repr(self.limit)]
            command = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(FOLDER.parent), *limits]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process, began = self._process, time.monotonic()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(text) + "\n")
        process.stdin.flush()
        told = bool(select.select([process.stdout], [], [], _BUSY * self.limit)[0])
        line = process.stdout.readline() if told else ""
        passed = time.monotonic() - began
        if not line:
            code = process.wait() if told else 0
            self._end()
            if code == -signal.SIGPROF:
                return Answer("not checkable", "time", passed, ended=True)
            return Answer(f"no answer, exit code {code}" if told else "no end", None, passed)
        found = json.loads(line)
        return Answer(found["verdict"], found["reason"], passed)

    def apart(self, text: str) -> Answer:
        """Return the answer of a process of its own, as `verify --independent` asks."""
        began = time.monotonic()
        try:
            found = check_apart(text, self.limit)
        except ValueError as error:
            return Answer(NO_CERTIFICATE, str(error), time.monotonic() - began)
        reason = str(found["reason"])
        return Answer(
            found["verdict"], reason, time.monotonic() - began, ended=reason.startswith(("time:", "the process"))
        )
