"""One adversary for every kind: builds the real mechanism on small neighbouring data sets, and tries to refute what is certified.

    python benchmarks/adversary.py --cases 5000 --seed 1       # a night
    python benchmarks/adversary.py --only "select geometric"   # one kind

Kinds are drawn in turn, alone and in compositions of up to five phases, with random parameters, adjacencies and groups. Their
laws, or those of cells of their outputs, are enumerated in both orders of the two data sets (`adversaries/`). Every δ that is
found so is a lower bound on the true one: a certificate, a price of a filter or a divergence below it is wrong. Lower ends are
compared where the worst data sets are known to be among those that were built. The exit code is 1 if something was refuted; each
violation is printed with its document, and can be had again by its kind and seed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from adversaries.cases import drawn
from adversaries.judging import Judge, Violation
from adversaries.kinds import BUILDERS, expected

#: How many draws of parameters are tried for one case.
_TRIES = 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=300, help="how many cases to judge")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument(
        "--only", action="append", metavar="KIND", help="only kinds whose name contains this text; repeatable"
    )
    parser.add_argument("--report", type=Path, help="write violations and failures as JSON lines to this file")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no further case after that long")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for a certificate")
    options = parser.parse_args()
    missing = expected() - set(BUILDERS)
    if missing:
        print(f"no adversary for {', '.join(sorted(missing))}", file=sys.stderr)
        return 2
    kinds = [kind for kind in BUILDERS if not options.only or any(text in kind for text in options.only)]
    begun, judged, compared, seed = time.monotonic(), Counter[str](), 0, options.seed
    refused: Counter[str] = Counter()
    closest: dict[str, float] = {}
    violations: list[Violation] = []
    failures = 0
    while judged.total() < options.cases and time.monotonic() - begun < options.seconds:
        kind = kinds[(seed - options.seed) % len(kinds)]
        case = next((one for k in range(_TRIES) if (one := drawn(seed + 1_000_003 * k, kind)) is not None), None)
        seed += 1
        if case is None:
            refused[f"{kind}: nothing was drawn"] += 1
            judged[kind] += 1
            continue
        result = Judge(case, time_limit=options.limit).run()
        judged[kind] += 1
        compared += result.compared
        closest[kind] = max(closest.get(kind, 0.0), result.closest)
        refused.update(f"{kind}: {reason}" for reason in result.refused)
        for index, one in enumerate(result.violations):
            shown(one.case.kind, one.case.seed, one.line, one.document, options.report, whole=index == 0)
        violations += result.violations
        for document, message in result.failed:
            failures += 1
            shown(kind, case.seed, f"FAILED {message}", document, options.report)
    print(f"{judged.total()} cases of {len(judged)} kinds, {compared} statements, {time.monotonic() - begun:.0f} s")
    for kind, share in closest.items():
        print(f"  {kind}: {judged[kind]} cases; of a stated δ data sets attain at most {share:.4f}")
    for reason, count in sorted(refused.items()):
        if "no ε holds at δ = 0" not in reason and reason.split(": ")[1] not in (
            "renyi",
            "zcdp",
            "gaussian",
            "basic",
            "cut",
        ):
            print(f"  refused {count} times: {reason}")
    print(f"{len(violations)} violations, {failures} failures")
    return 1 if violations or failures else 0


def shown(  # noqa: PLR0913, PLR0917 - a violation, and where it goes
    kind: str, seed: int, line: str, document: dict[str, object], report: Path | None, whole: bool = True
) -> None:
    print(f"{kind}, seed {seed}: {line}")
    if whole:
        print(f"  {json.dumps(document)}", flush=True)
    if report is not None:
        with report.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "seed": seed, "line": line, "document": document}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
