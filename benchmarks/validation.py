"""Every mechanism beside independent oracles, number by number: what docs/validation.md shows.

    python benchmarks/validation.py            # compute, compare, and write docs/validation.json and docs/validation.md
    python benchmarks/validation.py --only enumerated     # compute these alone, and write nothing
    python benchmarks/validation.py --page     # write the page from the numbers that are there

Oracles are closed forms and quadrature in high precision, enumeration of every way that a record can take part, other
accountants of today, each by itself and without pyaccount's core, and what papers print; those from tests/helpers are what the
tests use too. An exact value has to lie in pyaccount's interval; an upper bound may not lie below it, nor an interval beside it.
Where one does there is a reason beside it, or the exit code is 1. Needs the environment of the benchmarks.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "benchmarks")]

from validating.accountants import accountants, fixed_sizes, opake  # noqa: E402 - they lie beside this file
from validating.checks import Check, seen  # noqa: E402
from validating.exact import allocated, closed_forms, enumerated  # noqa: E402
from validating.page import page  # noqa: E402
from validating.papers import papers  # noqa: E402
from validating.samples import jax_privacy  # noqa: E402

DOCS = ROOT / "docs"
NUMBERS, PAGE = DOCS / "validation.json", DOCS / "validation.md"
#: What packages are compared with.
PEERS = ("dp-accounting", "prv-accountant", "opake-accounting", "jax-privacy")

GROUPS: dict[str, Callable[[], list[Check]]] = {
    "closed": closed_forms,
    "enumerated": enumerated,
    "allocated": allocated,
    "accountants": accountants,
    "opake": opake,
    "jax": jax_privacy,
    "fixed": fixed_sizes,
    "papers": papers,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=GROUPS, help="compute one group, and write nothing")
    parser.add_argument("--page", action="store_true", help="write the page from the numbers that are there")
    asked = parser.parse_args()
    if asked.page:
        PAGE.write_text(page(json.loads(NUMBERS.read_text(encoding="utf-8"))), encoding="utf-8")
        return
    rows = []
    for name, group in GROUPS.items():
        for check in group() if asked.only in (None, name) else ():
            rows.append(seen(check))
            row = rows[-1]
            verdict = "agrees" if row.agrees else "DISAGREES"
            print(f"{verdict}  {row.mechanism}; {row.setting}; {row.asked}: [{row.lower}, {row.upper}]", end="; ")
            print(f"{row.oracle}: [{row.oracle_lower}, {row.oracle_upper}]", flush=True)
    if asked.only is None:
        versions = {name: importlib.metadata.version(name) for name in ("pyaccount", *PEERS)}
        versions["Python"] = platform.python_version()
        lines = ",\n".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows)
        head = json.dumps({"versions": versions})[:-1]
        NUMBERS.write_text(f'{head}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")
        PAGE.write_text(page(json.loads(NUMBERS.read_text(encoding="utf-8"))), encoding="utf-8")
    if any(not row.agrees and not row.why for row in rows):
        sys.exit("what disagrees has no reason")


if __name__ == "__main__":
    main()
