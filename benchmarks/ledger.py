"""Measures a ledger: seconds of commits and of a status, and what is left of it after writers died at random.

    python benchmarks/ledger.py                         10⁴ commits, and the status and verification of the result
    python benchmarks/ledger.py --interleavings 100000  two writers, of whom one dies at a statement now and then
    python benchmarks/ledger.py --processes 300         real processes that are ended with SIGKILL
    python benchmarks/ledger.py --place postgresql://…  the same on a server, with an empty database

The interleavings take place in this process: at random, a writer meets the other one between its decision and its transaction,
and dies before one of its statements, before or after its commit. Afterwards everything is replayed by arithmetic of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from faulty_ledger import Simulation  # noqa: E402
from ledger_samples import data_set, gaussian  # noqa: E402

import pyaccount  # noqa: E402

MUS = (0.05, 0.1, 0.2)
DOCUMENTS = [gaussian(mu, f"m{mu}") for mu in MUS]
SQUARES = [(1 / Fraction(repr(1.0 / mu))) ** 2 for mu in MUS]


def timed(work: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def commits(place: str, count: int) -> None:
    """Reserve, begin and commit `count` entries of ten people on twelve blocks."""
    ledger = pyaccount.Ledger(place)
    months = [f"2026-{month:02d}" for month in range(1, 13)]
    ledger.create(data_set(privacy={"mu": 50}, blocks=[{"name": month} for month in months]))
    document = gaussian(0.01)
    certificate = pyaccount.certify(document)
    fresh = Simulation(place, 0, [document], [certificate])
    seconds: dict[str, list[float]] = {"reserve": [], "begin": [], "commit": []}
    for number in range(count):
        took, entry = timed(
            lambda number=number: ledger.reserve(
                document, who=f"person {number % 10}", purpose="a query", blocks=[months[number % 12]]
            )
        )
        seconds["reserve"].append(took)
        seconds["begin"].append(timed(lambda entry=entry: ledger.begin(entry))[0])
        fresh.refusals += 1
        own = fresh._fresh(0)
        seconds["commit"].append(timed(lambda entry=entry, own=own: ledger.commit(entry, own))[0])
    for what, all_of in seconds.items():
        ordered = sorted(all_of)
        print(
            f"{count} × {what}: median {1e3 * ordered[count // 2]:.1f} ms, 99 % {1e3 * ordered[count * 99 // 100]:.1f} ms, "
            f"largest {1e3 * ordered[-1]:.1f} ms, over 50 ms: {sum(one > 0.05 for one in ordered)}"
        )
    for what, work in (
        ("status", ledger.status),
        ("page", lambda: ledger.status().to_html()),
        ("verify", ledger.verify),
    ):
        took, result = timed(work)
        print(
            f"{what}: {took:.2f} s{'' if what != 'verify' else f', intact: {result.intact}, events: {result.events}'}"
        )


def interleavings(steps: int, folder: Path, places: list[str]) -> None:
    """Take steps of two writers on ledgers of 1000 steps each."""
    certificates = [pyaccount.certify(document) for document in DOCUMENTS]
    kills = accepted = refusals = events = 0
    began = time.perf_counter()
    for part in range(-(-steps // 1000)):
        place = places[0] if places else str(folder / f"{part}.db")
        names = [f"{kind}{part}" for kind in "abcd"]
        ledger = pyaccount.Ledger(place)
        budgets = dict(zip(names, (1.5, 3.0, -4.0, -3.5), strict=True))
        for name, budget in budgets.items():
            privacy = {"mu": budget} if budget > 0 else {"epsilon": -budget, "delta": 1e-6}
            ledger.create(data_set(name, privacy=privacy, filters=[{"name": "f", "mu": 0.5}] if budget < 0 else ()))
        simulation = Simulation(place, part, DOCUMENTS, certificates)
        simulation.run(min(1000, steps - 1000 * part), names, deaths=0.35)
        simulation.check(SQUARES, budgets)
        kills, accepted, refusals = (
            kills + simulation.kills,
            accepted + len(simulation.accepted),
            refusals + simulation.refusals,
        )
        events += len(ledger.history().events)
        if not places:
            Path(place).unlink()
        if part % 10 == 9 or 1000 * (part + 1) >= steps:
            print(
                f"{min(steps, 1000 * (part + 1))} steps in {time.perf_counter() - began:.0f} s: {accepted} accepted, {refusals} "
                f"refused, {kills} killed, {events} events; no overspend, nothing lost, chains whole",
                flush=True,
            )


PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[3])
from ledger_samples import data_set, gaussian
import pyaccount
documents = [gaussian(mu, f"m{mu}") for mu in (0.05, 0.1, 0.2)]
# Children begin with everything imported.
warm = pyaccount.Ledger(f"{sys.argv[2]}.{os.getpid()}.db")
warm.create(data_set(filters=[{"name": "f", "mu": 0.5}]))
warm.begin(warm.reserve(documents[0], who="w", purpose="p"))
warm.release(warm.reserve(documents[0], who="w", purpose="p"))
ledger = pyaccount.Ledger(sys.argv[1])
for turn in sys.stdin:
    name = turn.strip()
    child = os.fork()
    if child:
        print(child, flush=True)
        os.waitpid(child, 0)
        continue
    said = os.open(f"{sys.argv[2]}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for k in range(10**6):
        try:
            entry = ledger.reserve(documents[k % 3], who=name, purpose="p", id=f"{name}-{k}", data_set="ab"[k % 2])
            os.write(said, f"reserved {entry.id}\\n".encode())
            if k % 3 == 1:
                ledger.release(entry)
                os.write(said, f"released {entry.id}\\n".encode())
            else:
                ledger.begin(entry)
                os.write(said, f"begun {entry.id}\\n".encode())
        except pyaccount.BudgetError:
            os.write(said, b"refused -\\n")
        except pyaccount.PyaccountError as error:
            os.write(said, f"failed {str(error)!r}\\n".encode())
"""


def processes(count: int, at_once: int, folder: Path, place: str) -> None:
    """End `count` processes, some at a time, with SIGKILL after a random time. No command of the others may fail for this."""
    said = folder / "said"
    said.mkdir()
    ledger = pyaccount.Ledger(place)
    budgets = {"a": 8.0, "b": -4.0}
    ledger.create(data_set("a", privacy={"mu": 8}))
    ledger.create(data_set("b", privacy={"epsilon": 4, "delta": 1e-6}, filters=[{"name": "f", "mu": 0.5}]))
    generator = random.Random(1)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, place, str(said), str(ROOT / "tests" / "helpers")]
    writers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(at_once)
    ]
    running: list[int] = []
    for number in range(count):
        if len(running) == at_once:
            time.sleep(generator.uniform(0.0, 0.2))
            os.kill(running.pop(0), signal.SIGKILL)
        writer = writers[number % at_once]
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write(f"{number}\n")
        writer.stdin.flush()
        running.append(int(writer.stdout.readline()))
    for child in running:
        os.kill(child, signal.SIGKILL)
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()
        writer.wait()
    simulation = Simulation(place, 0, DOCUMENTS, [])
    words = {"reserved": "reserve", "begun": "begin", "released": "release"}
    refused, failed = 0, []
    for file in said.iterdir():
        # The last line may be cut.
        for line in file.read_text().split("\n")[:-1]:
            word, entry = line.split(" ", 1)
            if word not in words:
                refused += word == "refused"
                failed += [entry] if word == "failed" else []
                continue
            simulation.accepted.append((words[word], entry))
    simulation.check(SQUARES, budgets)
    print(
        f"{count} processes killed: {len(simulation.accepted)} commands had been accepted, and all are there; {refused} refused, "
        f"{len(failed)} failed; the budgets hold"
    )
    for error in dict.fromkeys(failed):
        print(f"    {error}")
    assert not failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--interleavings", type=int, default=0)
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--writers", type=int, default=2, help="how many processes write at once")
    parser.add_argument("--place", default=None, help="an empty database, in place of files in a temporary folder")
    parser.add_argument("--folder", default=None, help="where temporary files are made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        places = [] if options.place is None else [options.place]
        if options.interleavings:
            interleavings(options.interleavings, folder, places)
        elif options.processes:
            processes(options.processes, options.writers, folder, places[0] if places else str(folder / "budgets.db"))
        else:
            commits(places[0] if places else str(folder / "budgets.db"), options.commits)


if __name__ == "__main__":
    main()
