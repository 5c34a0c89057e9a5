"""A PostgreSQL server for tests: started once for all of them in a temporary folder, with a database for each test."""

import atexit
import os
import shutil
import subprocess
import tempfile
import uuid
from functools import cache
from pathlib import Path

#: Where Debian and others install the programs of the server.
_PLACES = ("/usr/local/bin", "/usr/bin", "/usr/pgsql/bin")


class UnavailableError(Exception):
    """Why there is no server here."""


def _program(name: str) -> str:
    places = [*_PLACES, *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))]
    found = shutil.which(name, path=os.pathsep.join([*places, os.environ.get("PATH", "")]))
    if found is None:
        raise UnavailableError(f"PostgreSQL is not installed: there is no {name}")
    # A link of Debian leads to the folder with the other programs.
    return os.path.realpath(found)


def _as_other(command: list[str]) -> list[str]:
    """A command as another user: the server refuses to be run by root."""
    if os.name != "posix" or os.geteuid() != 0:
        return command
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise UnavailableError("PostgreSQL does not run as root, and there is no setpriv to change the user")
    import pwd

    names = {one.pw_name for one in pwd.getpwall()}
    user = next((name for name in ("postgres", "nobody") if name in names), None)
    if user is None:
        raise UnavailableError("PostgreSQL does not run as root, and there is no other user")
    one = pwd.getpwnam(user)
    return [setpriv, f"--reuid={one.pw_uid}", f"--regid={one.pw_gid}", "--clear-groups", *command]


@cache
def _server() -> str:
    """The folder of the socket of a running server."""
    try:
        import psycopg  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ImportError as error:
        raise UnavailableError(f"{error.name} is not installed") from error
    initdb, control = _program("initdb"), _program("pg_ctl") if shutil.which("pg_ctl") else None
    control = control or str(Path(initdb).parent / "pg_ctl")
    # The name of a socket has to be short.
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    folder.chmod(0o777)
    data, log = folder / "data", folder / "log"
    done = subprocess.run(
        _as_other([initdb, "-D", str(data), "-U", "ledger", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=120,
    )
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise UnavailableError(f"initdb failed: {done.stderr.strip()[-300:]}")
    options = f"-k {folder} -h '' -c max_connections=40 -c shared_buffers=16MB"
    done = subprocess.run(
        _as_other([control, "-D", str(data), "-l", str(log), "-o", options, "-w", "-t", "60", "start"]),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=120,
    )
    if done.returncode:
        raise UnavailableError(f"the server does not start: {log.read_text() if log.exists() else done.stderr}"[-300:])

    process = os.getpid()

    def stop() -> None:
        if os.getpid() == process:
            command = _as_other([control, "-D", str(data), "-m", "immediate", "-w", "stop"])
            subprocess.run(command, capture_output=True, check=False, cwd="/", timeout=60)
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return str(folder)


def url_of(folder: str, database: str) -> str:
    """The address of a database."""
    return f"postgresql://ledger@/{database}?host={folder}"


def new_database() -> str:
    """The address of a new database. Raises `UnavailableError`, with the reason."""
    folder = _server()
    import psycopg

    name = f"l{uuid.uuid4().hex}"
    with psycopg.connect(host=folder, user="ledger", dbname="postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type, unused-ignore]
    return url_of(folder, name)
