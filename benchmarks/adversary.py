"""One adversary for every kind: builds the real mechanism on small neighbouring data sets, and tries to refute what is certified.

    python benchmarks/adversary.py --cases 5000 --seed 1       # a night
    python benchmarks/adversary.py --only "select geometric"   # one kind
    python benchmarks/adversary.py --compositions --cases 500  # two to five kinds together

Kinds are drawn in turn, alone and in compositions of up to five phases, with random parameters, adjacencies and groups. Their
laws, or those of cells of their outputs, are enumerated in both orders of the two data sets (`adversaries/`). Every δ that is
found so is a lower bound on the true one: a certificate, a price of a filter or a divergence below it is wrong. Lower ends are
compared where the worst data sets are known to be among those that were built. The exit code is 1 if something was refuted; each
violation is printed with its document, and can be had again by its kind and seed.

`--compositions` draws two to five kinds together. Nearly all of a case's time is within pyaccount, so that most are judged by
what certificates are made of (`Judge.briefly`), and one in ten is certified. A case follows from its seed alone: ranges of seeds
may be judged by several runs, one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from adversaries.cases import Case, composed, drawn
from adversaries.judging import Judge
from adversaries.kinds import BUILDERS, PRICES, expected
from adversaries.questions import QUESTIONS
from adversaries.statements import Result

#: How many draws of parameters are tried for one case.
_TRIES = 30
#: Of so many compositions one is certified, too.
_CERTIFIED = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=300, help="how many cases to judge")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument(
        "--only", action="append", metavar="KIND", help="only kinds whose name contains this text; repeatable"
    )
    parser.add_argument(
        "--compositions", action="store_true", help="compositions of two to five kinds, most of them judged briefly"
    )
    parser.add_argument("--report", type=Path, help="write violations and failures as JSON lines to this file")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no further case after that long")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for an answer")
    options = parser.parse_args()
    kinds = [*BUILDERS, *QUESTIONS]
    missing = expected() - set(kinds) - {f"filter {way}" for way in PRICES}
    if missing:
        print(f"no adversary for {', '.join(sorted(missing))}", file=sys.stderr)
        return 2
    kinds = [kind for kind in kinds if not options.only or any(text in kind for text in options.only)]
    tally = Tally(options.report)
    for index in range(options.cases):
        if time.monotonic() - tally.begun > options.seconds:
            break
        seed, kind = options.seed + index, kinds[index % len(kinds)]
        if options.compositions:
            case: Case | None = composed(seed)
            result = Judge(case, time_limit=options.limit).briefly(certified=seed % _CERTIFIED == 0)
            tally.add("composition", seed, case, result)
        elif kind in QUESTIONS:
            tally.add(kind, seed, None, QUESTIONS[kind](seed))
        else:
            case = next((one for k in range(_TRIES) if (one := drawn(seed + 1_000_003 * k, kind)) is not None), None)
            tally.add(
                kind,
                case.seed if case else seed,
                case,
                None if case is None else Judge(case, time_limit=options.limit).run(),
            )
    return tally.summary()


class Tally:
    """What was judged so far. Violations and failures are shown as they come."""

    def __init__(self, report: Path | None) -> None:
        self.begun, self._report = time.monotonic(), report
        self._judged, self._compared, self._violations, self._failures = Counter[str](), 0, 0, 0
        self._refused: Counter[str] = Counter()
        self._closest: dict[str, float] = {}
        self._phases: Counter[str] = Counter()
        self._seconds, self._at = list[float](), time.process_time()

    def add(self, kind: str, seed: int, case: Case | None, result: Result | None) -> None:
        self._judged[kind] += 1
        self._seconds.append(time.process_time() - self._at)
        self._at = time.process_time()
        if result is None:
            self._refused[f"{kind}: nothing was drawn"] += 1
            return
        self._phases.update(kinds_of(case) if case else [])
        self._compared += result.compared
        self._closest[kind] = max(self._closest.get(kind, 0.0), result.closest)
        self._refused.update(f"{kind}: {reason}" for reason in result.refused)
        for index, one in enumerate(result.violations):
            self._show(kind, one.case.seed, one.line, one.document, whole=index == 0)
        for document, message in result.failed:
            self._show(kind, seed, f"FAILED {message}", document)
        self._violations += len(result.violations)
        self._failures += len(result.failed)
        if self._judged.total() % 100 == 0:
            print(self._line(), flush=True)

    def summary(self) -> int:
        print(self._line())
        for kind, share in self._closest.items():
            print(f"  {kind}: {self._judged[kind]} cases; of a stated δ data sets attain at most {share:.4f}")
        print("  phases: " + ", ".join(f"{name} {count}" for name, count in sorted(self._phases.items())))
        for reason, count in sorted(self._refused.items()):
            if "no ε holds at δ = 0" not in reason and (": price " not in reason or "in time" in reason):
                print(f"  refused {count} times: {reason}")
        return 1 if self._violations or self._failures else 0

    def _line(self) -> str:
        return (
            f"{self._judged.total()} cases, {self._compared} statements, {time.monotonic() - self.begun:.0f} s (median of "
            f"processor time {statistics.median(self._seconds or [0.0]):.2f} s): "
            f"{self._violations} violations, {self._failures} failures"
        )

    def _show(self, kind: str, seed: int, line: str, document: dict[str, object], whole: bool = True) -> None:
        print(f"{kind}, seed {seed}: {line}")
        if whole:
            print(f"  {json.dumps(document)}", flush=True)
        if self._report is not None:
            with self._report.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"kind": kind, "seed": seed, "line": line, "document": document}) + "\n")


def kinds_of(case: Case) -> list[str]:
    """Return the kinds of the phases of a case, in the words of documents."""
    return [_word(one.body) for one in case.phases]


def _word(body: dict[str, Any]) -> str:
    for wrapper in ("select", "parallel"):
        if wrapper in body:
            return wrapper
    if "phases" in body or ("mechanism" in body and "sampler" in body):
        return "phases"
    return str((body.get("mechanism") or body["sampler"])["kind"])


if __name__ == "__main__":
    sys.exit(main())
