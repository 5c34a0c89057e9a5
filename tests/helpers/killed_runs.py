"""Kills runs with a store at random moments: a program that forks a process for each run before it starts any thread.

Its arguments are a document, a folder for the results, and the number of kills. It prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pyaccount
from pyaccount.store import kept

# Every wave of samples is written at once, so that a kill can lose something.
kept.INTERVAL = 0.0


#: The seed of all runs, except for those of which two must agree on one.
SEEDED = {"overrides": ["accounting.seed=5"]}


def certified(document: Path, folder: Path, name: str, **options: object) -> None:
    """Certify with the store in the folder, and write the certificate there."""
    certificate = pyaccount.certify(document, store=folder / "runs.db", **options)  # type: ignore[arg-type]
    (folder / f"{name}.json").write_text(certificate.to_json(), encoding="utf-8")


def forked(work: Callable[[], None]) -> int:
    """Fork a process that does this work, and return its id."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:  # the parent must not be left in two copies
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    return child


def ended(child: int) -> int:
    """Wait for a child and return its exit code, which is negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def whole(folder: Path) -> bool:
    """Return whether SQLite finds no error in the store."""
    connection = sqlite3.connect(folder / "runs.db")
    try:
        return [row[0] for row in connection.execute("PRAGMA integrity_check")] == ["ok"]
    finally:
        connection.close()


def shards(folder: Path) -> int | None:
    """Return how many shards the store has; None once the run is finished and they were deleted."""
    connection = sqlite3.connect(folder / "runs.db")
    try:
        if connection.execute("SELECT count(*) FROM runs WHERE certificate IS NOT NULL").fetchone()[0]:
            return None
        return int(connection.execute("SELECT coalesce(sum(shards), 0) FROM waves").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()


def progress(child: int, folder: Path, before: int | None) -> None:
    """Wait until the store has more shards than before, or the run has ended."""
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if (folder / "runs.db").exists() and (before is None or shards(folder) != before):
            return
        time.sleep(0.002)


def full_disk(document: Path, folder: Path, name: str, **options: object) -> None:
    """Certify as if the disk became full soon."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        certificate = pyaccount.certify(document, store=folder / "runs.db", **options)  # type: ignore[arg-type]
    (folder / f"{name}.json").write_text(certificate.to_json(), encoding="utf-8")
    (folder / f"{name}.warnings").write_text("\n".join(str(one.message) for one in told), encoding="utf-8")


def main(document: Path, folder: Path, kills: int) -> None:
    """Run once without a kill, once with kills, twice at the same time, and on a full disk."""
    places = {name: folder / name for name in ("whole", "killed", "twice", "full", "fuller")}
    for place in places.values():
        place.mkdir()
    began = time.monotonic()
    assert ended(forked(lambda: certified(document, places["whole"], "first", **SEEDED))) == 0
    seconds = time.monotonic() - began
    rng, kept_shards, intact, codes = random.Random(1), [], [], []
    for attempt in range(kills):
        child = forked(lambda: certified(document, places["killed"], "early", **SEEDED))
        # Every second run is killed soon after more was stored, the others at any moment, so a slow machine tests both too.
        if attempt % 2:
            progress(child, places["killed"], kept_shards[-1] if kept_shards else 0)
            time.sleep(rng.uniform(0.0, 0.02))
        else:
            time.sleep(rng.uniform(0.0, 0.3 * seconds))
        os.kill(child, signal.SIGKILL)
        codes.append(ended(child))
        if (places["killed"] / "runs.db").exists():
            intact.append(whole(places["killed"]))
            kept_shards.append(shards(places["killed"]))
    assert ended(forked(lambda: certified(document, places["killed"], "last", **SEEDED))) == 0
    both = [forked(lambda name=name: certified(document, places["twice"], name)) for name in ("one", "other")]  # type: ignore[misc]
    together = [ended(child) for child in both]
    stopped = ended(forked(lambda: full_disk(document, places["full"], "stopped", **SEEDED)))
    went_on = ended(forked(lambda: full_disk(document, places["fuller"], "on", store_errors="continue", **SEEDED)))
    assert ended(forked(lambda: certified(document, places["full"], "later", **SEEDED))) == 0
    intact += [whole(places[name]) for name in ("killed", "twice", "full", "fuller")]
    print(
        json.dumps(
            {
                "codes": codes,
                "kept": kept_shards,
                "intact": intact,
                "together": together,
                "stopped": stopped,
                "went_on": went_on,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
