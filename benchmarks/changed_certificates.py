"""The independent checker on thousands of changed certificates, each judged by other means: a table in Markdown.

Run: python benchmarks/changed_certificates.py [--changes 10000] [--seed 1] [--seconds 0.5] [--results FILE] [--minutes M]

Small documents are certified, and each certificate is changed at random: its ε or δ, the solved value, σ, a probability, the
number of rounds, a coefficient of a matrix or of the polynomial of a proof by moments, the adjacency, a key that is deleted or
one that no document has. `changed_claims.py` computes δ of what the changed document describes at the changed ε.

A claim is *false* if that δ is above 1.001 times the claimed one (0.1 % is the slack that the checker states), *true* if it is at
most the claimed one, *slack* if it is between, *undecided* if δ is not known well enough, and *no document* if the change leaves
nothing that a document may say. The exit code is 1 if a false claim or no document is proven, if a true claim is refuted, or if
the checker fails with an exception.

The bounds of b-min-sep sampling are not tight, so a small change leaves most claims true. So every second certificate of it
claims 0.99 times the exact δ of its document before it is changed, and the changes are larger.

Each change has a random generator of its own, so its result depends only on the seed, the name of the document and the number of
the change. With `--results`, each result is appended to a file as a line of JSON, and the changes that are in the file already
are not repeated: a run that was interrupted, or ended by `--minutes` (exit code 3), is continued by the same command.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from changed_claims import Json, exact, judged

import pyaccount
from pyaccount.independent.verdict import check, parsed

POISSON = {"sampler": {"kind": "poisson"}}
NONE = {"kind": "none"}


def _privacy(adjacency: str = "zero-out", group: int = 1, delta: float = 1e-6, epsilon: float | str = "solve") -> Json:
    grouped = {"group_size": group} if group > 1 else {}
    return {"privacy": {"adjacency": adjacency, "epsilon": epsilon, "delta": delta, **grouped}}


def _separated(training: Json, sampler: Json, sigma: float, **more: Any) -> Json:
    """Return two rounds of b-min-sep sampling, whose certificate is a proof by moments."""
    return {
        **_privacy(more.pop("adjacency", "zero-out"), 1, 1e-4),
        "training": {"iterations": 2, **training},
        "sampler": {"kind": "b-min-sep", **sampler},
        "noise": {"multiplier": sigma},
        "accounting": {"method": "renyi", "seed": 1},
        **more,
    }


def _toeplitz(*coefficients: float, normalize: bool = False) -> Json:
    return {"kind": "toeplitz", "coefficients": list(coefficients), "normalize": normalize}


#: Documents, and how often each of them is changed, relative to the others.
DOCUMENTS: dict[str, tuple[int, Json]] = {
    "unsampled": (5, {**_privacy(), "training": {"iterations": 30}, "sampler": NONE, "noise": {"multiplier": 5}}),
    "unsampled, group": (
        5,
        {
            **_privacy("replace-one", 3, 1e-9),
            "training": {"iterations": 40},
            "sampler": {"kind": "none", "max_participations": 4, "min_separation": 8},
            "noise": {"multiplier": 12, "also": [{"multiplier": 30, "what": "a count"}]},
        },
    ),
    "unsampled, σ solved": (
        5,
        {
            **_privacy("add-remove", 1, 1e-5, 3.0),
            "training": {"iterations": 12},
            "sampler": NONE,
            "noise": {"multiplier": "solve"},
        },
    ),
    "matrix": (
        5,
        {
            **_privacy(),
            "training": {"iterations": 64},
            "sampler": {"kind": "none", "min_separation": 16},
            "matrix": {"kind": "toeplitz", "coefficients": [1.0, 0.5, 0.375, 0.3125], "normalize": False},
            "noise": {"multiplier": 6},
        },
    ),
    "phases": (
        5,
        {
            **_privacy("add-remove", 1, 1e-7),
            "phases": [
                {"training": {"iterations": 5}, "sampler": NONE, "noise": {"multiplier": 4}},
                {"mechanism": {"kind": "gaussian", "sigma": 3, "sensitivity": 2}, "count": 2},
            ],
        },
    ),
    "Laplace": (
        2,
        {
            **_privacy("replace-one", 1, 1e-3),
            "training": {"iterations": 1},
            "sampler": NONE,
            "noise": {"kind": "laplace", "multiplier": 3},
        },
    ),
    "Poisson, 1 round": (
        3,
        {
            **_privacy("add-remove", 1, 1e-5),
            **POISSON,
            "training": {"sampling_probability": 0.1, "iterations": 1},
            "noise": {"multiplier": 1},
        },
    ),
    "Poisson, 1 round, group": (
        1,
        {
            **_privacy("replace-one", 2, 1e-5),
            **POISSON,
            "training": {"sampling_probability": 0.1, "iterations": 1},
            "noise": {"multiplier": 2},
        },
    ),
    "Poisson, 4 rounds": (
        2,
        {
            **_privacy("add-remove", 1, 1e-4),
            **POISSON,
            "training": {"sampling_probability": 0.2, "iterations": 4},
            "noise": {"multiplier": 1.5},
        },
    ),
    "Poisson, 40 rounds": (
        1,
        {
            **_privacy("zero-out", 1, 1e-4),
            **POISSON,
            "training": {"sampling_probability": 0.02, "iterations": 40},
            "noise": {"multiplier": 1},
        },
    ),
    "b-min-sep, warm": (
        2,
        _separated(
            {"sampling_probability": 0.2}, {"min_separation": 2, "start": "warm"}, 1, matrix=_toeplitz(0.8, 0.6)
        ),
    ),
    "b-min-sep, cold": (
        2,
        _separated(
            {"participation_rate": 0.15},
            {"min_separation": 3, "start": "cold"},
            0.8,
            matrix=_toeplitz(1.0, 0.4, normalize=True),
            adjacency="add-remove",
        ),
    ),
    "b-min-sep, no matrix": (
        1,
        _separated({"sampling_probability": 0.1}, {"min_separation": 4, "start": "warm"}, 0.7),
    ),
    "b-min-sep, often": (
        2,
        _separated(
            {"sampling_probability": 0.6}, {"min_separation": 2, "start": "cold"}, 2.5, matrix=_toeplitz(0.6, 0.9)
        ),
    ),
}

#: How a number is changed: factors that make most claims stronger, in a few cases weaker.
FACTORS = ((0.7, 0.998), (0.7, 0.998), (0.99, 0.998), (0.3, 0.7), (1.002, 1.1))
#: The same where bounds are not tight.
LARGE_FACTORS = ((0.7, 0.998), (0.1, 0.5), (0.3, 0.7), (0.5, 0.8), (1.002, 1.1))
RATES = ("sampling_probability", "participation_rate", "sensitivity")
WHOLE = ("iterations", "count", "group_size", "max_participations", "min_separation")


def numbers(place: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of the numbers."""
    if isinstance(place, dict | list):
        items = place.items() if isinstance(place, dict) else enumerate(place)
        return [found for key, value in items for found in numbers(value, (*path, key))]
    return [path] if isinstance(place, int | Fraction) and path[-1] != "pyaccount" else []


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def changed(certificate: Json, drawn: random.Random) -> Json:
    """Return a copy of a certificate with one change."""
    data = copy.deepcopy(certificate)
    # A certificate whose words differ from its document is not checkable; here the document is changed.
    data.pop("privacy", None)
    document = data["document"]
    places = numbers(document, ("document",))
    places += [("guarantee", "epsilon"), ("guarantee", "delta")] * 2
    solved = data.get("solved") or {}
    places += [("solved", "value")] * 2 if solved.get("path") == "noise.multiplier" else []
    coefficients = ((data.get("phases") or [{}])[0].get("matrix") or {}).get("coefficients")
    places += [("phases", 0, "matrix", "coefficients", i) for i in range(len(coefficients or ()))]
    moment = ((data.get("evidence") or {}).get("sampling") or {}).get("moment") or {}
    powers = len((moment.get("polynomial") or {}).get("coefficients") or ())
    places += [("evidence", "sampling", "moment", "polynomial", "coefficients", i) for i in range(min(3, powers))]
    separated = (document.get("sampler") or {}).get("kind") == "b-min-sep"
    what = drawn.random()
    if what < 0.9:
        path = drawn.choice(places)
        place, key = _at(data, path[:-1]), path[-1]
        low, high = drawn.choice(LARGE_FACTORS if separated else FACTORS)
        factor = Fraction(drawn.uniform(low, high))
        if key in WHOLE:
            place[key] = max(0, place[key] + drawn.choice((-1, 1, 1, 1, 2, 5)))
        elif path[0] == "evidence" and drawn.random() < 0.5:
            # A polynomial that is as many times smaller would prove a smaller δ.
            place[:] = [each * factor for each in place]
        else:
            # A larger probability or coefficient is the stronger claim, as a smaller number is elsewhere.
            stronger = path[0] == "phases" or key in RATES
            place[key] = place[key] / factor if stronger else place[key] * factor
    elif what < 0.94:
        if separated and drawn.random() < 0.5:
            document["sampler"]["start"] = "warm" if document["sampler"]["start"] == "cold" else "cold"
            return data
        adjacencies = {"add-remove", "zero-out", "replace-one", "replace"} - {document["privacy"]["adjacency"]}
        document["privacy"]["adjacency"] = drawn.choice(sorted(adjacencies))
    elif what < 0.97:
        path = drawn.choice(places)
        del _at(data, path[:-1])[path[-1]]
    else:
        path = drawn.choice(places)
        place, key = _at(data, path[:-1]), path[-1]
        place[key] = drawn.choice((-place[key], 0, "none", [place[key]]))
    return data


def claims_too_much(certificate: Json) -> Json:
    """Return a certificate that claims 0.99 times the exact δ of its document."""
    data = copy.deepcopy(certificate)
    data["guarantee"]["delta"] = Fraction(0.99 * float(exact(data)[1]))
    return data


VERDICTS = {"proven", "refuted", "consistent", "not checkable"}


def wrong(judgement: str, verdict: str) -> bool:
    """Return whether a verdict is wrong: a false claim or no document proven, a true claim refuted, or an exception."""
    pairs = {("false", "proven"), ("true", "refuted"), ("no document", "proven")}
    return (judgement, verdict) in pairs or verdict not in VERDICTS


class Result(NamedTuple):
    """The result of a change: the name of the document, the number of the change, both answers, and the checker's seconds."""

    name: str
    number: int
    judgement: str
    verdict: str
    seconds: float


def result(name: str, number: int, certificate: Json, options: argparse.Namespace) -> Result:
    """Return the result of a change of a certificate."""
    one = changed(certificate, random.Random(f"{options.seed} {name} {number}"))
    judgement, start = judged(one), time.process_time()
    try:
        verdict = check(one, options.seconds)["verdict"]
    except Exception as error:  # an exception is a defect of the checker, and is counted as one
        verdict = type(error).__name__
    spent = time.process_time() - start
    if options.show and wrong(judgement, verdict):
        print(judgement, verdict, json.dumps({k: one[k] for k in ("document", "guarantee")}, default=float))
    return Result(name, number, judgement, verdict, spent)


def table(results: Iterable[Result]) -> str:
    """Return the table: a line for each document, and one for all."""
    judgements = ("false", "true", "slack", "undecided", "no document")
    lines = [f"| certificate | changes | {' | '.join(judgements)} | seconds |", f"|{' --- |' * (len(judgements) + 3)}"]
    known = list(results)
    for name in [*DOCUMENTS, "all"]:
        here = [each for each in known if name in (each.name, "all")]
        counts = Counter((each.judgement, each.verdict) for each in here)
        cells = [
            ", ".join(f"{count} {verdict}" for (is_, verdict), count in sorted(counts.items()) if is_ == judgement)
            for judgement in judgements
        ]
        if here:
            lines.append(f"| {name} | {len(here)} | {' | '.join(cells)} | {sum(each.seconds for each in here):.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="the checker's time limit for each")
    parser.add_argument("--results", type=Path, help="a file to which results are appended, to go on later")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this time, with the exit code 3")
    parser.add_argument("--only", nargs="*", choices=list(DOCUMENTS), default=list(DOCUMENTS), help="these documents")
    parser.add_argument("--show", action="store_true", help="print what is counted as wrong")
    options = parser.parse_args()
    results: dict[tuple[str, int], Result] = {}
    if options.results and options.results.exists():
        for line in options.results.read_text(encoding="utf-8").splitlines():
            each = Result(*json.loads(line))
            results[each.name, each.number] = each
    weight, until = sum(weight for weight, _ in DOCUMENTS.values()), time.monotonic() + 60 * options.minutes
    for name in options.only:
        share, document = DOCUMENTS[name]
        numbers_left = [i for i in range(round(options.changes * share / weight)) if (name, i) not in results]
        if not numbers_left:
            continue
        certificates = [parsed(pyaccount.certify({"pyaccount": 1, "name": "changed", **document}).to_json())]
        if document.get("sampler", {}).get("kind") == "b-min-sep":
            certificates.append(claims_too_much(certificates[0]))
        for number in numbers_left:
            if time.monotonic() > until:
                break
            found = result(name, number, certificates[number % len(certificates)], options)
            results[name, number] = found
            if options.results:
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
            if number % 100 == 0:
                print(f"{name}: {number}", file=sys.stderr, flush=True)
        if time.monotonic() > until:
            print(table(results.values()))
            sys.exit(3)
    print(table(results.values()))
    sys.exit(int(any(wrong(each.judgement, each.verdict) for each in results.values())))


if __name__ == "__main__":
    main()
