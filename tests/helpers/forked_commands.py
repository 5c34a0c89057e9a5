"""Runs commands with closed streams or in another locale: a program that forks a process for each command.

Its argument is a JSON file: a list of command lines, each a list of arguments and the names of the streams to close. For each
command it prints as JSON the exit code, whether what it wrote contained a traceback, and whether that was UTF-8. Modules are
loaded only once. Starting Python from a shell with closed streams has tests of its own.
"""

import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from pyaccount import cli

STREAMS = ("stdin", "stdout", "stderr")
#: The modules that most commands load.
LOADED = ("pyaccount.running", "pyaccount.gate.check", "pyaccount.gate.verify", "pyaccount.certificate.report")


def command(arguments: list[str], closed: list[str], told: int) -> None:
    """Run a command in a child process and end it; the streams are as Python makes them when it is started with closed ones."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor, name in enumerate(STREAMS):
        if name in closed:
            setattr(sys, name, None)
            os.close(descriptor)
        else:
            os.dup2(nowhere if name == "stdin" else told, descriptor)
    os.close(nowhere)
    sys.argv = ["pyaccount", *arguments]
    cli.main()


def main(asked: Path) -> None:
    """Run the commands one after the other."""
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
            written = told.read()
            answers.append((code, b"Traceback" in written, written == written.decode(errors="ignore").encode()))
    print(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
