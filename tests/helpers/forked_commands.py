"""Commands with streams that are closed: a program that forks one process for each, which is a command from then on.

Its argument is a file of JSON: a list of command lines, each a list of arguments and the names of the streams that are closed.
For each it writes its exit code and whether a traceback was seen among what went to stderr, where that is open, as JSON.
What loading costs is paid once; a shell that starts Python with closed streams has its own tests.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from pyaccount import cli

STREAMS = ("stdin", "stdout", "stderr")
#: What most commands load.
LOADED = ("pyaccount.running", "pyaccount.gate.check", "pyaccount.gate.verify", "pyaccount.certificate.report")


def command(arguments: list[str], closed: list[str], told: int) -> None:
    """In a process of its own, which it ends: the streams as Python makes them where it is started so, and the command."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor, name in enumerate(STREAMS):
        if name in closed:
            setattr(sys, name, None)
            os.close(descriptor)
        else:
            os.dup2(told if name == "stderr" else nowhere, descriptor)
    os.close(nowhere)
    sys.argv = ["pyaccount", *arguments]
    cli.main()


def main(asked: Path) -> None:
    """Each of the commands, one after the other."""
    answers = []
    for module in LOADED:
        import_module(module)
    for arguments, closed in json.loads(asked.read_text(encoding="utf-8")):
        with tempfile.TemporaryFile() as told:
            child = os.fork()
            if child == 0:
                command(arguments, closed, told.fileno())
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            told.seek(0)
            answers.append((code, b"Traceback" in told.read()))
    print(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
