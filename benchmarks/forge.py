"""Forges normal forms of all shapes, and asks the independent checker about each: nothing false is proven, and nothing hangs.

    python benchmarks/forge.py --trees 100000 --seed 1 --seconds 0.1 --most 0.3    # an hour
    python benchmarks/forge.py --trees 400 --kind best        # trees in which a node, sampler or matrix of this kind occurs
    python benchmarks/forge.py --seed 1 --show 17             # one of them, by its number

A tree is drawn from the grammar, and one number, word or node of it is changed. What is still a form is judged with a claim just
below what the core's lower bound says of the same mechanism, as a document (`document_of`); what is no form, with a claim that
anything meets. A fault is a claim that is proven although it is false or about no form, a verdict that is none of the four, and a
true claim, above the core's upper bound, that is refuted. With `--most`, what takes longer is given up, so that more are tried.
At the end stands how many forgeries had each kind. The exit code is 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sys
import time
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import pyaccount
from pyaccount.errors import PyaccountError
from pyaccount.independent.form import GRAMMAR, LISTS, PLACES, TYPES, parsed, printed
from pyaccount.independent.lattice import NotCheckableError
from pyaccount.independent.verdict import ProofLimits, check, claim_of
from pyaccount.rounding import positional

VERDICTS = ("proven", "refuted", "consistent", "not checkable")
#: Kinds that stand in documents one for one, with their words there.
PLAIN = {"gaussian", "laplace", "discrete-laplace", "discrete-gaussian", "randomized-response", "mixture-of-gaussians"}
#: All kinds that may be drawn. A dense matrix needs a file.
KINDS = {key.partition("/")[2] for key in GRAMMAR} - {"dense"}
Node = dict[str, Any]


class GivenUp(BaseException):
    """Raised by the clock; no error, so that nothing on the way catches it."""


def _give_up(*_: object) -> None:
    raise GivenUp


class NoDocumentError(Exception):
    """Raised for forms that no document has."""


def drawn_number(kind: str, rng: random.Random) -> str:
    """Return a number of a type, mostly of a usual size."""
    usual: dict[str, tuple[float, float]] = {
        "count": (1, 9), "moved": (1, 2), "records": (20, 60), "size": (1, 4), "range": (0.05, 1), "inside": (0.05, 0.9),
        "probability": (0.05, 0.6), "stop": (0.1, 0.6), "multiplier": (0.8, 6), "entry": (0.1, 1), "contribution": (0, 2),
        "decay": (0, 0.9), "epsilon": (0.1, 1), "delta": (1e-6, 1e-3), "order": (1.5, 20),
    }  # fmt: skip
    interval = TYPES.get(kind, kind)
    wholes: dict[str, tuple[float, float]] = {
        "whole[2,1e12]": (2, 6),
        "whole[1,1000]": (1, 3),
        "whole[1,4096]": (1, 4),
        "whole[1,16384]": (1, 3),
    }
    low, high = usual.get(kind) or (wholes | {"whole[2,1e9]": (2, 6), "whole[1,2]": (1, 2)}).get(interval, (0.1, 1))
    if interval.startswith("whole"):
        return str(rng.randint(int(low), int(high)))
    return positional(float(f"{rng.uniform(low, high):.3g}"))


def drawn(kind: str, rng: random.Random, depth: int = 0) -> Any:  # noqa: PLR0911 - one for each kind of type
    """Return a value of a type of the grammar."""
    if kind == "chance" and rng.random() < 0.9:
        return drawn_number("probability", rng)
    if kind in PLACES:
        names = [key.partition("/")[2] for key in GRAMMAR if key.startswith(f"{kind}/")]
        if kind == "node" and depth > 2:
            names = [name for name in names if name not in ("sequence", "repeat", "sample", "best", "parts")]
        name = rng.choice([each for each in names if each != "dense"])
        found = {key: drawn(of, rng, depth + 1) for key, of in GRAMMAR[f"{kind}/{name}"].items()}
        if name == "randomized-response":
            found["truth_probability"] = drawn_number("inside", rng)
        return {"kind": name, **found}
    if kind == "strata":
        return {name: drawn_number("probability", rng) for name in ("a", "b")[: rng.randint(1, 2)]}
    if kind in LISTS:
        entry = LISTS[kind]
        if isinstance(entry, tuple):
            return [[drawn_number(each, rng) for each in entry] for _ in range(rng.randint(1, 2))]
        if kind == "probabilities":
            return ["0.75", "0.25"]
        return [drawn(entry, rng, depth) for _ in range(2 if kind in ("nodes", "sizes") else rng.randint(1, 2))]
    if kind == "hash":
        return "0" * 64
    interval = TYPES.get(kind, kind)
    return drawn_number(kind, rng) if interval.endswith(("]", ")")) else rng.choice(interval.split("|"))


def drawn_form(rng: random.Random, kind: str | None = None) -> Node:
    """Return a form, in which a kind occurs if one is asked for. It may break a rule that the grammar does not state."""
    adjacency = rng.choice(["add-remove", "zero-out", "zero-out", "replace-one"])
    while True:
        form = {"adjacency": adjacency, "group": rng.choice(["1", "1", "1", "2"]), "mechanism": drawn("node", rng)}
        if kind is None or kind in kinds_of(printed(form)):
            return form


def kinds_of(text: str) -> set[str]:
    """Return the kinds of nodes, samplers, matrices and numbers of runs that occur in a text."""
    return {name for name in re.findall(r'"kind":"([a-z-]+)"', text) if name in KINDS}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of everything inside of a form."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, each in items for found in ((*path, key), *places(each, (*path, key)))]


def changed(form: Node, rng: random.Random) -> str:
    """Return the text of a form with one number, word, key or node changed, or of the form itself."""
    if rng.random() < 0.4:
        return printed(form)
    data = json.loads(json.dumps(form))
    *keys, last = rng.choice(places(data))
    place: Any = data
    for key in keys:
        place = place[key]
    old = place[last]
    if isinstance(old, str) and old[:1].isdigit() and rng.random() < 0.8:
        value = Fraction(old) * Fraction(rng.choice(["1/2", "2", "3", "9/10", "10", "-1", "0"]))
        place[last] = positional(float(value)) if rng.random() < 0.9 else str(float(value))
    elif rng.random() < 0.3 and isinstance(place, dict):
        place[rng.choice(["kind", "count", "noise", "x"])] = place.pop(last)
    else:
        place[last] = rng.choice([old, "", None, 1, True, [], {}, [old], drawn("node", rng, 2), "add-remove", "1"])
    text = printed(data)
    return text if rng.random() < 0.95 else text.replace(":", rng.choice([": ", ":"]), 1)


def document_of(form: Node) -> dict[str, Any]:
    """Return a document with the mechanism of a form, whose δ is to be solved. Raises `NoDocumentError` if there is none here."""
    privacy = {"adjacency": form["adjacency"], "group_size": form["group"], "delta": "solve"}
    return {"pyaccount": 1, "name": "forged", "privacy": privacy, "phases": _phases(form["mechanism"], 1)}


def _phases(node: Node, count: int) -> list[dict[str, Any]]:  # noqa: PLR0911 - one for each combinator
    kind, name = node["kind"], {"count": count} if count > 1 else {}
    if kind == "sequence" and count == 1:
        return [phase for each in node["of"] for phase in _phases(each, 1)]
    if kind == "repeat":
        return _phases(node["of"], count * node["count"])
    if kind == "parts":
        return [{"parallel": [{"phases": _phases(each, 1)} for each in node["of"]]} | name]
    if kind == "best":
        runs = {key: _double(value) for key, value in node["runs"].items()}
        return [{"select": runs, "phases": _phases(node["of"], 1)} | name]
    if kind == "sample":
        sampler = {"kind": "poisson", "sampling_probability": _chance(node["probability"]), "draws": node["draws"]}
        return [{"sampler": sampler, "phases": _phases(node["of"], 1)} | name]
    if kind in ("round", "run"):
        return [_training(node, count)]
    return [{"mechanism": _mechanism(node)} | name]


def _mechanism(node: Node) -> dict[str, Any]:
    kind = node["kind"]
    if kind in PLAIN:
        return {key: _double(value) for key, value in node.items()}
    if kind == "bounded-range":
        return {"kind": "exponential", "epsilon": float(node["epsilon"])}
    if kind == "noisy-max":
        return {"kind": "report-noisy-max", "epsilon": float(node["epsilon"]), "noise": node["noise"]}
    if node.get("steps", 1) != 1 or node.get("exception") or kind not in ("gdp", "zcdp", "guarantees", "renyi"):
        raise NoDocumentError
    if kind == "gdp":
        return {"kind": "stated", "mu": float(node["mu"])}
    if kind == "zcdp":
        return {"kind": "stated", "rho": float(node["rho"])} | ({"xi": float(node["xi"])} if node["xi"] else {})
    keys = ("epsilon", "delta") if kind == "guarantees" else ("order", "epsilon")
    points = [dict(zip(keys, map(float, point), strict=True)) for point in node["points"]]
    return {"kind": "stated", "guarantees" if kind == "guarantees" else "renyi": points}


def _training(node: Node, count: int) -> dict[str, Any]:
    sampler, noise, run = dict(node["sampler"]), [float(each) for each in node["noise"]], node["kind"] == "run"
    if (run and node["matrix"]["kind"] != "identity") or (run and len(noise) > 1):
        raise NoDocumentError
    kind, training = sampler["kind"], {"iterations": node["rounds"] if run else count}
    more = [{"multiplier": each, "what": "a sum"} for each in noise[1:]]
    body: dict[str, Any] = {"training": training, "noise": {"multiplier": noise[0]} | ({"also": more} if more else {})}
    if kind == "all":
        body["sampler"] = {"kind": "none"}
    elif kind in ("poisson", "truncated-poisson"):
        training["sampling_probability"] = _chance(sampler["probability"])
        body["sampler"] = {"kind": "poisson"}
        if kind == "poisson":
            body["sampler"]["draws_per_iteration"] = sampler["draws"]
        else:
            training["dataset_size"], body["sampler"]["truncate_to"] = sampler["records"], sampler["size"]
    elif kind in ("fixed-size", "with-replacement", "must-ow", "must-wo", "must-ww"):
        training |= {"dataset_size": sampler["records"], "expected_batch_size": sampler["size"]}
        body["sampler"] = {"kind": kind} | ({"subset_size": sampler["subset"]} if "subset" in sampler else {})
    elif kind == "allocation":
        every = {"iterations_per_allocation": node["rounds"], "participations": sampler["participations"]}
        body["sampler"] = {"kind": "random-allocation", **every}
    elif kind == "bins":
        body["sampler"] = {"kind": "balls-in-bins", "bins": sampler["bins"]}
    elif kind == "ordered":
        body["sampler"] = {
            "kind": "none",
            "max_participations": sampler["participations"],
            "min_separation": sampler["separation"],
        }
    elif kind == "cyclic":
        training["sampling_probability"] = _chance(sampler["probability"])
        body["sampler"] = {"kind": "cyclic-poisson", "partitions": sampler["parts"], "phase": sampler["phase"]}
    elif kind == "spaced":
        training["sampling_probability"] = float(sampler["probability"])
        body["sampler"] = {"kind": "b-min-sep", "min_separation": sampler["separation"], "start": sampler["start"]}
    else:
        raise NoDocumentError
    return body | ({"count": count} if run and count > 1 else {})


def _double(value: Any) -> Any:
    return (
        [_double(each) for each in value]
        if isinstance(value, list)
        else float(value)
        if isinstance(value, Fraction)
        else value
    )


def _chance(probability: Any) -> Any:
    return (
        float(probability)
        if isinstance(probability, Fraction)
        else {"strata": {k: float(v) for k, v in probability["of"].items()}}
    )


def known(form: Any, epsilon: float) -> tuple[float, float] | None:
    """Return the core's bounds of δ(ε) from below and from above; None if it has none, or is not asked."""
    try:
        document = document_of(form)
        document["privacy"]["epsilon"] = epsilon
        guarantee = json.loads(pyaccount.certify(document, time_limit=20.0).to_json())["guarantee"]
    except (NoDocumentError, PyaccountError, ValueError):
        return None
    return float(guarantee["delta_lower"]), float(guarantee["delta"])


class JudgedForm(NamedTuple):
    """A form, what was claimed of it, the verdict, and what is wrong with it."""

    text: str
    delta: float
    verdict: str
    fault: str


def judge(seed: int, number: int, seconds: float, kind: str | None = None, most: float | None = None) -> JudgedForm:
    """Return what the checker says of one forged form, unless that takes more than `most` seconds of processor time."""
    rng = random.Random(f"{seed} {number}")
    form = drawn_form(rng, kind)
    text, epsilon, delta, what = changed(form, rng), round(rng.uniform(0.1, 6.0), 3), 0.999, "no form"
    try:
        bounds = known(parsed(text), epsilon)
        what = "unknown"
        if bounds is not None and bounds[0] > 1e-200 and rng.random() < 0.7:
            delta, what = bounds[0] * 0.99, "false"
        elif bounds is not None and 0 < bounds[1] < 0.9:
            delta, what = bounds[1] * 1.01, "true"
    except NotCheckableError:
        pass
    claim = json.dumps({"name": "forged", "mechanism": text, "guarantee": {"epsilon": epsilon, "delta": delta}})
    signal.setitimer(signal.ITIMER_VIRTUAL, most or 0)
    try:
        found = check(claim_of(claim), ProofLimits(seconds))
    except GivenUp:
        return JudgedForm(text, delta, f"{what}: given up", "")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    verdict, fault = str(found["verdict"]), ""
    if verdict not in VERDICTS:
        fault = f"the verdict {verdict}"
    elif verdict == "proven" and what in ("false", "no form") and not found["failure_probability"]:
        fault = f"a claim is proven that is {what}"
    elif verdict == "refuted" and what == "true":
        fault = "a true claim is refuted"
    return JudgedForm(text, delta, f"{what}: {verdict}", fault)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="the checker's seconds for each")
    parser.add_argument("--most", type=float, help="give up what takes the checker more processor seconds")
    parser.add_argument(
        "--kind", choices=sorted(KINDS), help="only forms in which this kind occurs, before they are changed"
    )
    parser.add_argument("--show", type=int, help="only this number, with its form")
    options = parser.parse_args()
    signal.signal(signal.SIGVTALRM, _give_up)
    counts, kinds, longest, faults, began = Counter[str](), Counter[str](), 0.0, 0, time.monotonic()
    for number in range(options.trees) if options.show is None else [options.show]:
        start = time.process_time()
        found = judge(options.seed, number, options.seconds, options.kind, options.most)
        longest = max(longest, time.process_time() - start)
        counts[found.verdict] += 1
        kinds.update(kinds_of(found.text))
        if found.fault or options.show is not None:
            faults += bool(found.fault)
            print(f"{number}: {found.fault}: δ = {found.delta!r}, {found.verdict}: {found.text}", flush=True)
    for name, count in sorted(counts.items()):
        print(f"{count:6d} {name}")
    print(
        "forgeries by kind: "
        + ", ".join(f"{name} {kinds[name]}" for name in sorted(KINDS, key=lambda name: kinds[name]))
    )
    print(f"{faults} faults, {time.monotonic() - began:.0f} s, the longest {longest:.1f} s, with the core's bounds")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
