"""The normal form: one string for each mechanism. It is parsed, printed again, and refused if the two differ.

The text is JSON in ASCII without white space and with sorted keys: objects, lists and strings. A number is a string of decimal
digits, without an exponent, without zeros that say nothing, and exact. `GRAMMAR` has all shapes; every key stands in the text.
Runs of equal nodes are counted (`repeat`), never listed. docs/independent.md says what the shapes mean.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from .lattice import NotCheckableError

#: A parsed part of a form: `kind` and its keys, with numbers as fractions.
FormPart = Mapping[str, Any]

#: The most characters of a form, levels of nesting, digits of a number, and entries of a list.
MOST_TEXT, MOST_DEPTH, MOST_DIGITS, MOST_ENTRIES = 4 << 20, 32, 800, 100_000
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?")


def _table(text: str) -> dict[str, dict[str, str]]:
    """Return for each kind of a place the types of its keys, from lines *place/kind: key=type …*."""
    table = {}
    for line in text.strip().splitlines():
        names, _, rest = line.strip().partition(":")
        for name in names.split():
            table[name] = dict(each.split("=") for each in rest.split())
    return table


#: The keys of each kind. Types are those of `TYPES`, places of kinds, words with bars between them, or intervals.
GRAMMAR = _table("""
    node/sequence node/parts: of=nodes
    node/repeat: count=whole[2,1e12] of=node
    node/sample: draws=records|clients of=node probability=chance
    node/best: of=node runs=runs
    node/round: noise=multipliers sampler=draw
    node/run: matrix=matrix noise=multipliers rounds=count sampler=pattern
    node/gaussian: sensitivity=size sigma=size
    node/mixture-of-gaussians: probabilities=probabilities sensitivities=sizes sigma=size
    node/laplace: moved=moved scale=size sensitivity=size
    node/discrete-laplace: moved=moved scale=size sensitivity=size step=size
    node/discrete-gaussian: moved=moved sensitivity=size sigma=size step=size
    node/randomized-response: answers=each-record|once empty_record=empty truth_probability=inside values=whole[2,1e9]
    node/bounded-range: epsilon=range
    node/noisy-max: epsilon=range noise=exponential|laplace
    node/guarantees: points=guarantees steps=whole[1,2]
    node/gdp: mu=[1e-6,100] steps=whole[1,2]
    node/zcdp: exception=[0,1) rho=[1e-12,1e4] steps=whole[1,2] xi=[0,1e4]
    node/renyi: exception=[0,1) points=divergences
    draw/all:
    draw/poisson: draws=whole[1,1000] probability=chance
    draw/truncated-poisson: probability=inside records=records size=records
    draw/fixed-size draw/with-replacement: records=records size=records
    draw/must-ow draw/must-wo draw/must-ww: records=records size=records subset=records
    pattern/ordered: participations=count separation=count
    pattern/cyclic: parts=count phase=fixed|random probability=chance
    pattern/bins: bins=whole[1,4096]
    pattern/allocation: participations=moved
    pattern/spaced: probability=probability separation=count start=warm|cold
    pattern/truncated-spaced: probability=probability records=records separation=count size=records start=warm|cold
    pattern/users: attribution=shared|single probability=probability records=whole[1,1000] separation=count start=warm|cold
    matrix/identity:
    matrix/toeplitz: column=coefficients normalised=yes|no
    matrix/banded-inverse: inverse=coefficients normalised=yes|no
    matrix/banded-square-root matrix/inverse-square-root: bands=whole[1,16384] normalised=yes|no
    matrix/blt: decays=decays normalised=yes|no scales=coefficients
    matrix/tree: every=count normalised=yes|no
    matrix/dense: normalised=yes|no sha256=hash
    runs/geometric runs/logarithmic: stopping_probability=stop
    runs/negative-binomial: shape=(-1,1000] stopping_probability=stop
    runs/poisson: mean=[1e-6,1e6]
    runs/binomial: probability=stop trials=moved
    chance/strata: of=strata
""")
#: Intervals with a name, and lists: the type of an entry.
TYPES = {
    "empty": "one-of-the-values|uniform",
    "count": "whole[1,1e9]", "moved": "whole[1,1e6]", "records": "whole[1,1e15]", "size": "[1e-12,1e12]", "range": "[1e-6,500]",
    "inside": "(0,1)", "probability": "(0,1]", "stop": "[1e-9,1)", "multiplier": "[1e-6,1e9]", "entry": "[-1e9,1e9]",
    "contribution": "[0,1e12]", "decay": "[0,1]", "epsilon": "[0,1e4]", "delta": "[0,1]", "order": "(1,1e6]",
}  # fmt: skip
LISTS: Mapping[str, str | tuple[str, str]] = {
    "nodes": "node", "multipliers": "multiplier", "probabilities": "probability", "sizes": "contribution",
    "coefficients": "entry",
    "decays": "decay",
    "guarantees": ("epsilon", "delta"), "divergences": ("order", "epsilon"),
}  # fmt: skip
PLACES = {key.partition("/")[0] for key in GRAMMAR}


def refused(what: str) -> NotCheckableError:
    """Return the error that a form is not one, or says what this checker has no bound for."""
    return NotCheckableError(f"no bound is implemented for {what}")


def number(text: Any) -> Fraction:
    """Return the number that a text is in a form, or in a claim after its exponent is gone."""
    if not isinstance(text, str) or len(text) > MOST_DIGITS or not _NUMBER.fullmatch(text) or text == "-0":
        raise refused(f"a number that is written like this: {str(text)[:60]!r}")
    return Fraction(text)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises `ValueError` for a key that is given twice, which readers resolve differently."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(
            f"a key is given twice, and readers differ in which one they take: {sorted(key for key, _ in pairs)}"
        )
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"a number that is no string: {text[:60]}")


def printed(data: Any) -> str:
    """Return the canonical text of lists, objects and strings."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(text: str) -> str:
    """Return the SHA-256 of a form."""
    return hashlib.sha256(text.encode()).hexdigest()


def parsed(text: Any) -> FormPart:
    """Return the form that a text is: its adjacency, its group, and the tree of its mechanism."""
    if not isinstance(text, str) or len(text) > MOST_TEXT or not text.isascii():
        raise refused("what is no form, or one of more than 4 MiB")
    depth = deepest = 0
    for each in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        depth += (each in "[{") - (each in "]}")
        deepest = max(deepest, depth)
    if deepest > MOST_DEPTH:
        raise refused(f"a form of more than {MOST_DEPTH} levels")
    try:
        data = json.loads(
            text, object_pairs_hook=unique, parse_int=_no_number, parse_float=_no_number, parse_constant=_no_number
        )
    except (ValueError, RecursionError) as error:
        raise refused(f"a form that is not JSON of this kind: {error}") from error
    if printed(data) != text:
        raise refused("a form that is not written canonically")
    top = _keys(
        data, {"adjacency": "add-remove|zero-out|replace-one", "group": "whole[1,1e4]", "mechanism": "node"}, "a form"
    )
    if any(each["kind"] == "repeat" and each["of"]["kind"] == "repeat" for each in parts_of(top["mechanism"])):
        raise refused("a repeat of a repeat")
    return top


def parts_of(node: Any) -> list[FormPart]:
    """Return all parts of a form that have a kind, those inside of others after them."""
    if isinstance(node, Mapping):
        found = [node] if "kind" in node else []
        return found + [each for value in node.values() for each in parts_of(value)]
    return [each for value in node for each in parts_of(value)] if isinstance(node, list) else []


def _keys(data: Any, types: Mapping[str, str], where: str) -> dict[str, Any]:
    if not isinstance(data, dict) or set(data) != set(types):
        raise refused(f"{where} with the keys {sorted(data) if isinstance(data, dict) else data!r}"[:300])
    return {key: _value(data[key], kind, f"{where}, {key}") for key, kind in types.items()}


def _value(data: Any, kind: str, where: str) -> Any:
    """Return a value of a type. Raises `NotCheckableError` if it is none."""
    if kind in PLACES and not (kind == "chance" and isinstance(data, str)):
        name = data.get("kind") if isinstance(data, dict) else None
        types = GRAMMAR.get(f"{kind}/{name}") if isinstance(name, str) else None
        if types is None:
            raise refused(f"{where}, a {kind} of the kind {str(name)[:60]!r}")
        found = {"kind": name, **_keys({key: value for key, value in data.items() if key != "kind"}, types, str(name))}
        if name in ("sequence", "parts"):
            _several(data["of"], str(name))
        return found
    if kind in LISTS:
        return _listed(data, LISTS[kind], where)
    if kind == "strata":
        if not isinstance(data, dict) or not 1 <= len(data) <= 256:
            raise refused("strata that are none")
        return {name: _value(value, "probability", where) for name, value in data.items()}
    if kind == "hash":
        if not isinstance(data, str) or not re.fullmatch("[0-9a-f]{64}", data):
            raise refused("a hash that is none")
        return data
    return _scalar(data, TYPES.get("probability" if kind == "chance" else kind, kind), where)


def _listed(data: Any, entry: str | tuple[str, str], where: str) -> list[Any]:
    if not isinstance(data, list) or not 1 <= len(data) <= MOST_ENTRIES:
        raise refused(f"{where}, which is no list, or a long one")
    if isinstance(entry, str):
        return [_value(each, entry, where) for each in data]
    if any(not isinstance(each, list) or len(each) != len(entry) for each in data):
        raise refused(f"{where}, which is no list of pairs")
    return [tuple(_value(each, one, where) for each, one in zip(pair, entry, strict=True)) for pair in data]


def _scalar(data: Any, kind: str, where: str) -> Any:
    """Return a word, or a number in an interval."""
    if not kind.endswith(("]", ")")):
        if not isinstance(data, str) or data not in kind.split("|"):
            raise refused(f"{where} {str(data)[:60]!r}")
        return data
    found, whole = number(data), kind.startswith("whole")
    interval = kind.removeprefix("whole")
    low, high = (Fraction(bound) for bound in interval[1:-1].split(","))
    above = low < found or (low == found and "[" in interval)
    if not (above and (found < high or (found == high and "]" in interval))) or (whole and found.denominator != 1):
        raise refused(f"{where} {str(data)[:60]}")
    return int(found) if whole else found


def _several(nodes: Any, name: str) -> None:
    """Raise unless there are several nodes, and in a sequence no sequence and no equal neighbours, which would be counted."""
    if not isinstance(nodes, list) or len(nodes) < 2:
        raise refused(f"a {name} of fewer than two")
    if name == "sequence":
        kinds = [node.get("kind") for node in nodes if isinstance(node, dict)]
        counted = [
            printed(node["of"] if isinstance(node, dict) and node.get("kind") == "repeat" else node) for node in nodes
        ]
        if "sequence" in kinds or any(a == b for a, b in pairwise(counted)):
            raise refused("a sequence in a sequence, or equal neighbours in one")
