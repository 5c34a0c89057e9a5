"""The normal form of a mechanism: one canonical string that says what was analysed, with all numbers and defaults written out.

Takes an `Instance`, a document whose blank is filled; gives text that another program reads without knowing documents. Each kind
of sampler, matrix and mechanism says what of it stands in the form (`normal_form`); None means that there is no form for it. The
shapes are those of `pyaccount.independent.form`, which docs/independent.md explains. It says what is run, not how that was
analysed: phases, in any order, with equal ones counted, and the largest probability and least noise that a theorem takes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyaccount.document.mechanisms import MechanismKind
from pyaccount.document.noise import Laplace
from pyaccount.plan.common import moves, number
from pyaccount.plan.matrices import matrix_plan, strategy
from pyaccount.plan.scheduled_rounds import bodies_of_kinds
from pyaccount.rounding import positional

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.plan.compiled import Instance

FormNode = dict[str, Any]

#: The most characters of a form, and levels of nesting; beyond, a mechanism has none.
MOST_TEXT, MOST_DEPTH = 4 << 20, 32


class _NoFormError(Exception):
    """Raised where a mechanism has no normal form."""


def normal_form(instance: Instance) -> str | None:
    """Return the normal form; None if the mechanism has none."""
    document = instance.document
    try:
        mechanism = _sequence(_body(document, body) for body in document.bodies)
    except _NoFormError:
        return None
    privacy = document.privacy
    form = {"adjacency": privacy.adjacency, "group": str(number(privacy.group_size)), "mechanism": mechanism}
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text if len(text) <= MOST_TEXT and _depth(form) <= MOST_DEPTH else None


def _depth(value: object) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else None
    return 0 if inside is None else 1 + max(map(_depth, inside), default=0)


def _sequence(nodes: Iterable[FormNode]) -> FormNode:
    """Return nodes one after the other: a sequence in them is taken apart, and equal neighbours are counted."""
    counted: list[tuple[int, FormNode]] = []
    for node in nodes:
        for one in node["of"] if node["kind"] == "sequence" else [node]:
            count, inner = (int(one["count"]), one["of"]) if one["kind"] == "repeat" else (1, one)
            if counted and counted[-1][1] == inner:
                count += counted.pop()[0]
            counted.append((count, inner))
    found = [_repeat(count, inner) for count, inner in counted]
    return found[0] if len(found) == 1 else {"kind": "sequence", "of": found}


def _repeat(count: int, node: FormNode) -> FormNode:
    """Return a node several times."""
    if node["kind"] == "repeat":
        count, node = count * int(node["count"]), node["of"]
    return node if count == 1 else {"kind": "repeat", "count": str(count), "of": node}


def _body(document: Document, body: Body) -> FormNode:
    """Return all runs of a body."""
    return _repeat(body.count, _on_sample(body, _run(document, body)))


def _on_sample(body: Body, run: FormNode) -> FormNode:
    """Return a run of a mechanism, or of phases, on a Poisson sample if its body has one."""
    if not isinstance(body.noise, MechanismKind) or body.sampler.kind != "poisson":
        return run
    draws = "clients" if body.draws_groups else "records"
    return {"kind": "sample", "draws": draws, "of": run, "probability": probability(body)}


def _run(document: Document, body: Body) -> FormNode:
    """Return one run of a body."""
    if body.inner:
        inner = [_body(document, one) for one in body.inner]
        if body.disjoint:
            return {"kind": "parts", "of": inner} if len(inner) > 1 else inner[0]
        runs = _sequence(inner)
        return runs if body.select is None else {"kind": "best", "of": runs, "runs": body.select.normal_form()}
    if isinstance(body.noise, MechanismKind):
        return _found(body.noise.normal_form(document.privacy.adjacency))
    if body.schedules():
        return _sequence(_rounds(document, one) for one in bodies_of_kinds(document, body))
    return _rounds(document, body)


def _rounds(document: Document, body: Body) -> FormNode:
    """Return the rounds of a training run whose noise and rates are the same in all of them."""
    assert not isinstance(body.noise, MechanismKind)
    if isinstance(body.noise, Laplace):
        scale = positional(number(body.noise.multiplier))
        one: FormNode = {"kind": "laplace", "moved": "1", "scale": scale, "sensitivity": str(moves(document))}
        return _repeat(body.participations(), one)
    noise = [positional(number(body.noise.multiplier)), *(positional(one.multiplier) for one in body.noise.also)]
    drawn = probability(body)
    one_round = body.sampler.one_round(body, drawn) if body.matrix.kind == "identity" else None
    if one_round is not None:
        return _repeat(body.participations(), {"kind": "round", "noise": noise, "sampler": one_round})
    matrix = _found(matrix_plan(body).normal_form(body, strategy(document, body)))
    rounds, pattern = number(body.training.iterations), _found(body.sampler.pattern(body, drawn))
    length = int(pattern.pop("every", rounds))
    return _repeat(
        rounds // length, {"kind": "run", "matrix": matrix, "noise": noise, "rounds": str(length), "sampler": pattern}
    )


def probability(body: Body) -> str | FormNode | None:
    """Return the probability with which a body draws, or those of its strata; None if it has none."""
    own = body.own_probabilities
    if own is not None and own.named():
        return {"kind": "strata", "of": {one.name: positional(one.probability) for one in own.named()}}
    try:
        return positional(body.sampling_probability())
    except ValueError:
        return None


def _found(node: FormNode | None) -> FormNode:
    if node is None:
        raise _NoFormError
    return dict(node)
