"""Forges certificates of every kind, and asks the independent checker about each: nothing false is proven, and nothing hangs.

    python benchmarks/forge.py --mutations 400 --seed 1                    # of every kind; hours
    python benchmarks/forge.py --only "select geometric" --mutations 50    # of one kind

A certificate is changed in its structure (keys dropped, added, renamed, swapped, values of another size or type, phases repeated
or nested), in its document or in what it states beside it, and its hashes are renewed (`forging/`). Its claim is as it was, or
less, or just below the core's own lower end, or, where the house refuses the document, so large that anything that is read is
proven. One in eight is not changed, but claims less than data sets attain that the adversary built and enumerated. A proven claim
is a fault if the house refuses the document, or proves a larger δ. So is a verdict that is none of those that are documented, one
that takes longer than the limit, and a true certificate that is refuted. The exit code is 1 if there is a fault; each is printed,
and can be had again by its kind, seed and number: `--only KIND --seed SEED --number NUMBER`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from forging.certificates import text
from forging.changes import Changes
from forging.checking import Checker
from forging.house import House
from forging.judging import Forger, Forgery, line
from forging.starts import Start, donors, kinds, start

#: How many forgeries have one start, how often enumeration judges, and how often the checker's command is asked as well.
PER_START, ENUMERATED, APART = 40, 8, 200


def names() -> set[str]:
    """Return the names that documents may use, from their schema."""
    folder = Path(__file__).resolve().parents[1] / "schemas"
    found: set[str] = set()

    def collect(part: object) -> None:
        if isinstance(part, dict):
            properties = part.get("properties")
            found.update(properties if isinstance(properties, dict) else ())
            for each in part.values():
                collect(each)
        elif isinstance(part, list):
            for each in part:
                collect(each)

    collect(json.loads((folder / "mechanism.v1.schema.json").read_text(encoding="utf-8")))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=400, help="how many forgeries of each kind")
    parser.add_argument("--seed", type=int, default=1, help="the first seed of starts")
    parser.add_argument(
        "--only", action="append", metavar="KIND", help="only kinds whose name contains this text; repeatable"
    )
    parser.add_argument(
        "--number", type=int, help="only this forgery of the start with the seed; its certificate is printed"
    )
    parser.add_argument("--limit", type=float, default=0.4, help="the checker's seconds of processor time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no further kind after that long")
    parser.add_argument("--report", type=Path, help="write faults as JSON lines to this file")
    options = parser.parse_args()
    begun, faults, total = time.monotonic(), 0, Counter[str]()
    changes = Changes(donors(), names())
    with Checker(options.limit) as checker, House(5.0) as house:
        forger = Forger(changes, checker, house)
        for kind in kinds():
            if options.only and not any(one in kind for one in options.only):
                continue
            if time.monotonic() - begun > options.seconds:
                print(f"{kind}: not reached")
                continue
            counts, longest, since = Counter[str](), 0.0, time.monotonic()
            seed = options.seed
            while counts["forgeries"] < options.mutations and seed < options.seed + 10 * options.mutations:
                one = start(kind, seed, 10.0)
                # The first is the certificate itself.
                numbers: Iterable[int] = (
                    []
                    if one is None
                    else [options.number]
                    if options.number is not None
                    else range(min(PER_START, 1 + options.mutations - counts["forgeries"]))
                )
                for number in numbers:
                    assert one is not None
                    found = forgery(forger, one, kind, seed, number)
                    _count(counts, found)
                    longest = max(longest, found.answer.seconds)
                    if found.fault:
                        faults += 1
                        told(kind, seed, number, found, options.report)
                    if options.number is not None:
                        print(text(found.certificate))
                        print(json.dumps(line(found) | {"answer": found.answer}), file=sys.stderr)
                        return int(bool(found.fault))
                seed += 1
            total.update(counts)
            rest = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
            print(f"{kind}: {rest}; longest {longest:.2f} s, {time.monotonic() - since:.0f} s", flush=True)
    print(", ".join(f"{count} {name}" for name, count in sorted(total.items())))
    print(f"{faults} faults, {time.monotonic() - begun:.0f} s")
    return int(faults > 0)


def forgery(forger: Forger, one: Start, kind: str, seed: int, number: int) -> Forgery:
    """Return the forgery with a number of the start with a seed."""
    rng = random.Random(f"{seed} {kind} {number}")
    if number == 0:
        return forger.unchanged(one)
    if one.false and number % ENUMERATED == 0:
        return forger.enumerated(one, rng)
    return forger.changed(one, rng, apart=(seed * PER_START + number) % APART == 1)


def _count(counts: Counter[str], found: Forgery) -> None:
    counts["forgeries" if found.how != ["nothing"] else "true certificates"] += 1
    counts[found.answer.verdict] += 1
    counts["ended at the limit"] += found.answer.ended
    if found.answer.verdict == "proven":
        counts[f"proven and {found.truth.partition(':')[0]}"] += 1
    if found.how[-1].startswith("just"):
        counts["claims below the core's lower end"] += 1
    if found.how[0].startswith("a claim that data sets"):
        counts["claims below what data sets attain"] += 1


def told(kind: str, seed: int, number: int, found: Forgery, report: Path | None) -> None:
    print(f"{kind}, seed {seed}, number {number}: {found.fault}")
    print(f"  {json.dumps(line(found))}", flush=True)
    if report is not None:
        with report.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "seed": seed, "number": number, **line(found)}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
