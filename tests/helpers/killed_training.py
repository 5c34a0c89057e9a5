"""Kills training runs at random moments: a program that forks a process for each run before it starts any thread.

Its arguments are a folder and the number of runs. It prints one line of JSON: for each run, how many rounds the killed processes
used, and how many the folder counts.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from training_runs import started, sums

from pyaccount.training import run as run_module


def train(folder: Path, used: Path, began: int) -> None:
    """Train to the end of the run, and write a byte for each round that was used."""
    run = started(folder)
    os.write(began, b".")
    with used.open("ab", buffering=0) as file:
        while run.round < run.rounds:
            with run.step() as step:
                step.release(sums(step.round))
            file.write(b".")


def rounds_of(used: Path) -> int:
    return used.stat().st_size if used.exists() else 0


def killed(folder: Path, used: Path, rounds: int, seconds: float) -> None:
    """Train in a child process that is killed some seconds after it opened the run and used some rounds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            train(folder, used, writing)
            os._exit(0)
        except BaseException:  # the parent must not be left in two copies
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    os.read(reading, 1)
    while rounds_of(used) < rounds and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.0005)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), code
    os.close(reading)


def main(folder: Path, attempts: int) -> None:
    """Train and kill each run in a folder of its own."""
    chosen, found = random.Random(20261123), []
    for attempt in range(attempts):
        place, used = folder / str(attempt), folder / f"{attempt}.used"
        started(place).close()
        # A third of the runs has a thread for the tags of sums, as large sums have.
        run_module.LARGE = 0 if attempt % 3 == 0 else 1 << 20
        # Half of them are killed soon after a round, the others at any moment, so a slow machine tests both too.
        if attempt % 2:
            killed(place, used, 1 + attempt % 7, chosen.uniform(0.0, 0.003))
        else:
            killed(place, used, 0, chosen.uniform(0.0, 0.015))
        with started(place) as again:
            found.append((rounds_of(used), again.round))
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
