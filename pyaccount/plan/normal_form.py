"""The normal form of a mechanism: one canonical string that says what was analysed, with all numbers and defaults written out.

Takes an `Instance`, a document whose blank is filled; gives text that another program reads without knowing documents. Each kind
of sampler, matrix and mechanism says what of it stands in the form (`normal_form`); None means that there is no form for it. The
shapes are those of `pyaccount.independent.form`, which docs/independent.md explains. It says what is run, not how that was
analysed: phases, in any order, with equal ones counted, and the largest probability and least noise that a theorem takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from pyaccount.document.own_probabilities import OwnProbabilities
from pyaccount.document.tree import Best, MechanismRelease, Node, Parts, Sample, Sequence, TrainingNode
from pyaccount.plan.common import given, moves, number
from pyaccount.plan.compiled import Instance
from pyaccount.plan.matrices import matrix_plan, strategy
from pyaccount.plan.protection import Case, Protection, RunCase, of_run
from pyaccount.plan.schedule_values import runs_of_kinds
from pyaccount.rounding import positional

FormNode = dict[str, Any]

#: The most characters of a form, and levels of nesting; beyond, a mechanism has none.
MOST_TEXT, MOST_DEPTH = 4 << 20, 32


class _NoFormError(Exception):
    """Raised where a mechanism has no normal form."""


def normal_form(instance: Instance) -> str | None:
    """Return the normal form; None if the mechanism has none."""
    document, asked = instance.document, Protection.of(instance.document)
    try:
        mechanism = _sequence(_form(Case(asked, phase)) for phase in document.phases)
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


def _form(case: Case) -> FormNode:
    """Return all runs of a node."""
    node = case.node
    if type(node) not in FORMS:
        raise _NoFormError
    run = FORMS[type(node)](case)
    if node.draw is not None:
        draws = _probability_of(node.own_probabilities, node.draw.probability)
        run = {"kind": "sample", "draws": node.draw.units, "of": run, "probability": draws}
    return _repeat(node.count, run)


def _inner(case: Case) -> list[FormNode]:
    return [_form(Case(case.asked, one)) for one in case.node.inner]


def _phases(case: Case) -> FormNode:
    return _sequence(_inner(case))


def _parts(case: Case) -> FormNode:
    inner = _inner(case)
    return {"kind": "parts", "of": inner} if len(inner) > 1 else inner[0]


def _best(case: Case) -> FormNode:
    assert isinstance(case.node, Best)
    return {"kind": "best", "of": _phases(case), "runs": given(case.node.law).normal_form()}


def _release(case: Case) -> FormNode:
    assert isinstance(case.node, MechanismRelease)
    return _found(case.node.mechanism.normal_form(case.asked.privacy.adjacency))


def _training(case: Case) -> FormNode:
    run = of_run(case)
    if run.node.schedules():
        return _sequence(_rounds(run.on(one)) for one in runs_of_kinds(run))
    return _rounds(run)


def _rounds(case: RunCase) -> FormNode:
    """Return the rounds of a training run whose noise and rates are the same in all of them."""
    run = case.node
    if run.noise.kind == "laplace":
        scale = positional(number(run.noise.multiplier))
        one: FormNode = {"kind": "laplace", "moved": "1", "scale": scale, "sensitivity": str(moves(case.asked))}
        return _repeat(run.participations(), one)
    noise = [positional(number(run.noise.multiplier)), *(positional(one.multiplier) for one in run.noise.also)]
    drawn = probability(run)
    one_round = run.sampler.one_round(run, drawn) if run.matrix.kind == "identity" else None
    if one_round is not None:
        return _repeat(run.participations(), {"kind": "round", "noise": noise, "sampler": one_round})
    matrix = _found(matrix_plan(case).normal_form(strategy(case)))
    rounds, pattern = number(run.training.iterations), _found(run.sampler.pattern(run, drawn))
    length = int(pattern.pop("every", rounds))
    if length != rounds and run.matrix.kind != "identity":
        # Columns reach from one allocation into the next.
        raise _NoFormError
    return _repeat(
        rounds // length, {"kind": "run", "matrix": matrix, "noise": noise, "rounds": str(length), "sampler": pattern}
    )


def probability(run: TrainingNode) -> str | FormNode | None:
    """Return the probability with which a run draws, or those of its strata; None if it has none."""
    try:
        largest = run.sampling_probability()
    except ValueError:
        largest = None
    return _probability_of(run.own_probabilities, largest)


def _probability_of(own: OwnProbabilities | None, largest: float | None) -> str | FormNode | None:
    """Return the probabilities of strata if there are any, or the largest probability."""
    if own is not None and own.named():
        return {"kind": "strata", "of": {one.name: positional(one.probability) for one in own.named()}}
    return None if largest is None else positional(largest)


def _found(node: FormNode | None) -> FormNode:
    if node is None:
        raise _NoFormError
    return dict(node)


#: The form of one run of a node, by its class.
FORMS: dict[type[Node], Callable[[Case], FormNode]] = {
    TrainingNode: _training,
    MechanismRelease: _release,
    Sequence: _phases,
    Sample: _phases,
    Parts: _parts,
    Best: _best,
}
