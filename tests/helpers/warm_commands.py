"""Runs commands in forks of one process that has imported their modules: each is a process of its own, which starts at once.

Exit codes, output and files are those of ordinary processes, except for environment variables that Python reads when it starts.
Other tests run the installed command itself, and so check that it starts.
"""

import importlib
import json
import os
import runpy
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

#: The installed command, and the modules that its commands import when they are called.
COMMAND = "pyaccount.cli:main"
COMMANDS_READ = (
    "pyaccount.cli.certificates",
    "pyaccount.cli.completion",
    "pyaccount.cli.documents",
    "pyaccount.document.validation",
    "pyaccount.gate.check",
    "pyaccount.plan.compiling",
)

#: The program on the path in place of the command: it hands over its arguments, environment and streams, and exits like the fork.
CLIENT = """#!{python} -IS
import json, os, socket, sys
code = b""
try:
    with socket.socket(socket.AF_UNIX) as ends:
        ends.connect({address!r})
        asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
        socket.send_fds(ends, [len(asked).to_bytes(8, "big")], [0, 1, 2])
        ends.sendall(asked)
        code = ends.recv(1)
except OSError as error:
    print(error, file=sys.stderr)
# No command ends so: what was not run is not taken for what failed.
sys.exit(code[0] if code else 255)
"""


@contextmanager
def warm(target: str, *modules: str) -> Iterator[Path]:
    """Make an executable `pyaccount` that runs a target, `module:function` or a script's path; modules are imported before."""
    # The address of a socket has at most a hundred bytes, and the path of a test's folder may be longer.
    with tempfile.TemporaryDirectory() as folder:
        address, client = str(Path(folder) / "socket"), Path(folder) / "pyaccount"
        client.write_text(CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
        client.chmod(0o755)
        command = [sys.executable, __file__, address, target, *modules]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            assert server.stdout.readline() == b"listening\n"
            try:
                yield client
            finally:
                server.stdin.close()
                try:
                    server.wait(60)
                except subprocess.TimeoutExpired:
                    # The server waits for a command that never ends.
                    server.kill()
                    raise


def serve(address: str, target: str, modules: list[str]) -> None:
    """Listen and fork for each request, until the last process that holds the other end of the input has gone."""
    for name in modules:
        importlib.import_module(name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("listening", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if listener not in ready:
                break
            ends, _ = listener.accept()
            if os.fork() == 0:
                answer(ends, target)
            ends.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    with suppress(ChildProcessError):
        while True:
            os.wait()


def answer(ends: socket.socket, target: str) -> NoReturn:
    """Read a request, run it in a fork, and report how that ended."""
    with ends:
        size, streams, _, _ = socket.recv_fds(ends, 8, 3)
        asked = b""
        while len(asked) < int.from_bytes(size, "big"):
            more = ends.recv(1 << 16)
            if not more:
                os._exit(1)
            asked += more
        command = os.fork()
        if command:
            code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
            ends.sendall(bytes([code if code >= 0 else 128 - code]))
            os._exit(0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    arguments, place, surroundings = json.loads(asked)
    os.chdir(place)
    os.environ.clear()
    os.environ.update(surroundings)
    run(target, arguments)


def run(target: str, arguments: list[str]) -> NoReturn:
    """Run a target as the interpreter would if it were started for it."""
    sys.argv = [target, *arguments]
    if target.endswith(".py"):
        sys.path[0] = str(Path(target).parent)
        runpy.run_path(target, run_name="__main__")
        sys.exit()
    module, _, function = target.partition(":")
    sys.argv[0] = "pyaccount"
    sys.exit(getattr(importlib.import_module(module), function)())


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], sys.argv[3:])
