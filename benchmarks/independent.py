"""The verdict of the independent checker on certificates, and on changed ones: a table in Markdown.

Run: python benchmarks/independent.py CERT... [--seconds 90] [--changes 20]

Without --changes each certificate has a row: its ε, or that of its composed bound, the ε that is proven at the same δ, and
processor time. With --changes each
certificate is changed as often, so that its claim is stronger than what was certified: ε or δ is lowered by 0.2 % or more, or
its normal form has less noise, a larger probability or more rounds. The row counts the verdicts; `proven` must be 0,
unless the certificate was looser than the change.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

from pyaccount.independent.form import digest, printed
from pyaccount.independent.verdict import CheckedClaim, ProofLimits, check, claim_of
from pyaccount.rounding import positional

#: What makes a claim stronger: the last key of a number in a form, and the factors by which it is multiplied.
STRONGER = {
    "noise": (0.9, 0.998),
    "sigma": (0.9, 0.998),
    "scale": (0.9, 0.998),
    "probability": (1.002, 1.1),
    "count": (1.02, 1.2),
}


def numbers(place: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of the numbers that can be changed."""
    if isinstance(place, dict | list):
        items = place.items() if isinstance(place, dict) else enumerate(place)
        return [found for key, value in items for found in numbers(value, (*path, key))]
    keys = [key for key in path if isinstance(key, str)]
    return [path] if keys and keys[-1] in STRONGER and isinstance(place, str) and place[:1].isdigit() else []


def changed(claim: CheckedClaim, drawn: random.Random) -> CheckedClaim:
    """Return a claim that is stronger."""
    form = json.loads(claim.form)
    path = drawn.choice([("epsilon",), ("delta",), *numbers(form)])
    if len(path) == 1:
        return claim._replace(**{path[0]: getattr(claim, path[0]) * Fraction(drawn.uniform(0.7, 0.998))})
    place: Any = form
    for key in path[:-1]:
        place = place[key]
    name = [key for key in path if isinstance(key, str)][-1]
    value = Fraction(place[path[-1]]) * Fraction(drawn.uniform(*STRONGER[name]))
    place[path[-1]] = str(-int(-value // 1)) if name == "count" else positional(float(value))
    text = printed(form)
    return claim._replace(form=text, sha256=digest(text))


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
        data = json.loads(path.read_text(encoding="utf-8"))
        data["guarantee"] = {**(data.get("guarantee") or {}), **(data.get("composed_bound") or {})} or None
        claim = claim_of(json.dumps(data))
        if options.changes:
            verdicts = [
                check(changed(claim, drawn), ProofLimits(options.seconds))["verdict"] for _ in range(options.changes)
            ]
            print(f"| {path.stem} | {json.dumps(Counter(verdicts))} | | | | |", flush=True)
            continue
        found = check(claim, ProofLimits(options.seconds))
        claimed, proven = ((found[key] or {}).get("epsilon", "") for key in ("claimed", "proven"))
        loose = "" if found["looser_by"] is None else f"{found['looser_by']:.2g}"
        print(
            f"| {path.stem} | {found['verdict']} | {claimed} | {proven} | {loose} | {found['seconds']:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
