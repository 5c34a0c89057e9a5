"""The verdict of the independent checker on certificates, and on changed ones: a table in Markdown.

Run: python benchmarks/independent.py CERT... [--seconds 90] [--changes 20]

Without --changes each certificate has a row: its ε, the ε that is proven at the same δ, and processor time. With --changes each
certificate is changed as often, so that its claim is stronger than what was certified: ε or δ is lowered by 0.2 % or more, or
the document has less noise, a larger probability or more rounds. The row counts the verdicts; `proven` must be 0,
unless the certificate was looser than the change.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

from pyaccount.independent.verdict import check, parsed

#: What makes a claim stronger: the last key of a number, and the factors by which it is multiplied.
STRONGER = {
    "multiplier": (0.9, 0.998),
    "sigma": (0.9, 0.998),
    "sampling_probability": (1.002, 1.1),
    "expected_batch_size": (1.01, 1.1),
    "iterations": (1.02, 1.2),
}


def numbers(place: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of the numbers that can be changed."""
    if isinstance(place, dict | list):
        items = place.items() if isinstance(place, dict) else enumerate(place)
        return [found for key, value in items for found in numbers(value, (*path, key))]
    return [path] if path[-1] in STRONGER and isinstance(place, int | Fraction) else []


def changed(certificate: dict[str, Any], drawn: random.Random) -> dict[str, Any]:
    """Return a copy of a certificate that claims more."""
    data = copy.deepcopy(certificate)
    paths = [("guarantee", "epsilon"), ("guarantee", "delta"), *numbers(data["document"], ("document",))]
    path = drawn.choice(paths)
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    factor = Fraction(drawn.uniform(*STRONGER.get(path[-1], (0.7, 0.998))))
    value = place[path[-1]] * factor
    place[path[-1]] = -int(-value // 1) if path[-1] in ("iterations", "expected_batch_size") else value
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("certificates", nargs="+", type=Path, metavar="CERT")
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--changes", type=int, default=0)
    options = parser.parse_args()
    drawn = random.Random(1)
    print(
        "| certificate | verdict | ε claimed | ε proven | δ looser by | seconds |\n| --- | --- | ---: | ---: | ---: | ---: |"
    )
    for path in options.certificates:
        certificate = parsed(path.read_text(encoding="utf-8"))
        if options.changes:
            verdicts = [check(changed(certificate, drawn), options.seconds)["verdict"] for _ in range(options.changes)]
            print(f"| {path.stem} | {json.dumps(Counter(verdicts))} | | | | |", flush=True)
            continue
        found = check(certificate, options.seconds)
        claimed, proven = ((found[key] or {}).get("epsilon", "") for key in ("claimed", "proven"))
        loose = "" if found["looser_by"] is None else f"{found['looser_by']:.2g}"
        print(
            f"| {path.stem} | {found['verdict']} | {claimed} | {proven} | {loose} | {found['seconds']:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
