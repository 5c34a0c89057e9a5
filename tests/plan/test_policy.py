"""Which theorem a document gets, and what is refused."""

import ast
import math
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracle
import pytest
from places import EXAMPLES
from plain_documents import doc, document
from snapshots import Snapshot

import pyaccount
from pyaccount.document.document import Document
from pyaccount.document.loading import load_any
from pyaccount.document.words import ADJACENCIES, Assumed
from pyaccount.plan.amplification import compile_amplification
from pyaccount.plan.compiling import compile_document


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
@pytest.mark.parametrize("kind", ["poisson", "fixed-size", "none"])
@pytest.mark.parametrize("group", [1, 3])
def test_every_combination_has_a_reduction(adjacency: str, kind: str, group: int) -> None:
    training = (
        {"iterations": 20} if kind == "none" else {"dataset_size": 500, "expected_batch_size": 5, "iterations": 20}
    )
    body = document(
        sampler={"kind": kind},
        training=training,
        privacy={"adjacency": adjacency, "group_size": group, "epsilon": "solve", "delta": 1e-5},
    )
    plan = pyaccount.compile(body)
    (reduction,) = plan.reductions
    assert reduction.source
    assert reduction.tight == (kind != "fixed-size" or adjacency == "add-remove")
    certificate = plan.run()
    guarantee = certificate.data.guarantee
    assert 0 < guarantee.epsilon_lower <= guarantee.epsilon
    if reduction.tight:
        assert guarantee.epsilon - guarantee.epsilon_lower <= 1e-4 * guarantee.epsilon
    # Sampling never hurts.
    assert certificate.data.unamplified.epsilon is not None
    shift = 2.0 if kind == "fixed-size" and adjacency == "add-remove" else 1.0
    assert guarantee.epsilon <= certificate.data.unamplified.epsilon * shift * 2 * (1 + 1e-9)


def test_groups_grow_and_replacement_costs_more() -> None:
    def epsilon(adjacency: str, group: int, kind: str = "poisson") -> float:
        privacy = {"adjacency": adjacency, "group_size": group, "epsilon": "solve", "delta": 1e-6}
        raw = document(privacy=privacy, training__iterations=20, sampler={"kind": kind})
        return pyaccount.certify(raw).epsilon

    assert epsilon("add-remove", 1) == epsilon("zero-out", 1) < epsilon("replace-one", 1) < epsilon("replace-one", 2)
    assert epsilon("zero-out", 1, "fixed-size") < epsilon("replace-one", 1, "fixed-size")
    assert epsilon("zero-out", 1, "fixed-size") < epsilon("zero-out", 2, "fixed-size")


def test_fixed_size_with_doubled_noise_is_close_to_poisson() -> None:
    poisson = pyaccount.certify(document(privacy__epsilon="solve")).epsilon
    fixed = pyaccount.certify(
        document(privacy__epsilon="solve", sampler={"kind": "fixed-size"}, noise__multiplier=2.0)
    ).epsilon
    assert fixed == pytest.approx(poisson, rel=1e-3)


def test_full_poisson_batches_are_gaussian() -> None:
    certificate = pyaccount.certify(
        document(
            training={"sampling_probability": 1.0, "iterations": 25}, noise__multiplier=5.0, privacy__epsilon="solve"
        )
    )
    exact = float(oracle.gaussian_epsilon(math.sqrt(25) / 5.0, 1e-6))
    assert certificate.epsilon_lower <= exact <= certificate.epsilon


def test_refusals_are_located(snapshot: Snapshot) -> None:
    body = document(
        sampler={"kind": "fixed-size"}, training={"dataset_size": 10, "expected_batch_size": 9, "iterations": 3}
    )
    body["privacy"]["group_size"] = 2
    snapshot.raised(pyaccount.compile, body)
    body["privacy"]["adjacency"] = "zero-out"
    assert not pyaccount.certify(body).holds
    body["privacy"]["group_size"] = 11
    snapshot.raised(pyaccount.compile, body)


@pytest.mark.parametrize("rate", ["sampling_probability", "participation_rate"])
def test_the_group_lemma_keeps_the_batch_in_smaller_data_sets(rate: str) -> None:
    """However the batch is given, its size is what does not change from one neighbour to the next."""
    body: dict[str, Any] = doc(
        "name=lemma adjacency=add-remove group_size=5 delta=0.1 dataset_size=10 expected_batch_size=5",
        "iterations=1 sampler=fixed-size multiplier=10",
    )
    by_size = pyaccount.certify(body).data.group_lemma
    body["training"] = {"dataset_size": 10, rate: 0.5, "iterations": 1}
    by_rate = pyaccount.certify(body).data.group_lemma
    assert by_size is not None
    assert by_rate is not None
    assert by_rate.epsilon == by_size.epsilon
    # In a data set of 7, where that chain ends, this rate would give no whole batch.
    body["privacy"]["group_size"] = 4
    assert pyaccount.certify(body).holds


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": {"delta": 0.1}, "training": {"sampling_probability": 0.01}, "noise": {"multiplier": 10}},
        {"privacy": {"epsilon": 1, "delta": 1e-5}, "training": {"sampling_probability": 1e-9}},
        {"privacy": {"adjacency": "zero-out", "delta": 1e-5}, "training": {"sampling_probability": 1e-12}},
        {"privacy": {"adjacency": "replace-one", "delta": 0.01}, "noise": {"multiplier": 1e5}},
    ],
)
def test_the_group_lemma_may_give_zero(changes: dict[str, dict[str, Any]]) -> None:
    body: dict[str, Any] = {
        "pyaccount": 1,
        "name": "groups",
        "privacy": {"adjacency": "add-remove", "group_size": 3, "epsilon": "solve"},
        "training": {"sampling_probability": 1e-6, "iterations": 1},
        "sampler": {"kind": "poisson"},
        "noise": {"multiplier": 1},
    }
    for section, values in changes.items():
        body[section] |= values
    certificate = pyaccount.certify(body)
    assert certificate.data.group_lemma is not None
    assert certificate.data.group_lemma.epsilon == 0.0
    assert certificate.holds


def test_the_group_lemma_is_valid_and_worse() -> None:
    certificate = pyaccount.certify(document(privacy__epsilon="solve", privacy__group_size=3))
    lemma = certificate.data.group_lemma
    assert lemma is not None
    assert lemma.epsilon is not None
    assert lemma.epsilon > certificate.epsilon
    # Its premise: δ for one record at ε/3, times 1 + e^ε' + e^2ε'.
    one = pyaccount.certify(document(privacy__epsilon="solve"))
    record = lemma.epsilon / 3
    factor = 1 + math.exp(record) + math.exp(2 * record)
    assert one.profile.delta(record).upper * factor <= 1e-6 * (1 + 1e-6)
    assert one.profile.delta(record).upper * factor >= 1e-6 * 0.9


# ---- What is written in place of a sampled training run with Laplace noise protects as the run does


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_the_mechanism_that_is_named_moves_as_far_as_a_record_of_the_run(adjacency: str) -> None:
    """Without sampling both can be certified: they have one ε."""
    run = doc(f"name=numbers adjacency={adjacency} iterations=3 delta=1e-6 sampler=poisson sampling_probability=0.1")
    run["noise"] = {"kind": "laplace", "multiplier": 2.0}
    with pytest.raises(pyaccount.DocumentError) as caught:
        pyaccount.compile(run)
    found = re.search(r"mechanism: \{kind: laplace, sensitivity: (\d)\}", caught.value.problems[0].message)
    assert found is not None
    mechanism = {"kind": "laplace", "scale": 2.0, "sensitivity": int(found[1])}
    named = {**{key: run[key] for key in ("pyaccount", "name", "privacy")}, "mechanism": mechanism, "count": 3}
    unsampled = {**run, "training": {"iterations": 3}, "sampler": {"kind": "none"}}
    assert pyaccount.certify(named).epsilon == pytest.approx(pyaccount.certify(unsampled).epsilon, rel=1e-9)


# ---- The short forms of assumptions: each has one, which fits a line of a screen


#: A bullet and this many cells are a line of 80.
MOST = 76
PACKAGE = Path(pyaccount.__file__).parent


def written() -> Iterator[tuple[str, ast.expr]]:
    """Every short form in the source of the plans and of certificates."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Assumed":
                yield from ((f"{path.name}:{node.lineno}", form) for form in node.args[1:])


def length(form: ast.expr) -> int:
    """The length of a short form whose placeholders, if it has some, have six characters."""
    if isinstance(form, ast.JoinedStr):
        return sum(length(part) for part in form.values)
    if isinstance(form, ast.Constant):
        return sum(len(text) + 6 * (name is not None) for text, name, *_ in string.Formatter().parse(str(form.value)))
    return 6


def test_every_short_form_in_the_source_fits_a_line() -> None:
    forms = dict(written())
    assert len(forms) > 60
    assert {place: length(form) for place, form in forms.items() if length(form) > MOST} == {}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_assumptions_of_the_examples(path: Path) -> None:
    if path.stem == "policy":
        return
    document = load_any(path)
    if isinstance(document, Document):
        found = [one for reduction in compile_document(document).reductions for one in reduction.assumed]
    else:
        found = list(compile_amplification(document).assumed)
    assert found
    for one in found:
        # Inside of a phase with parts, the names of the parts come first.
        short = one.short.rpartition(": ")[2]
        assert 0 < len(short) <= MOST
        assert len(one.short) <= len(one.text)
        assert short.endswith(".")


def test_neighbours_of_the_largest_groups() -> None:
    words = {"contributions": "contributions are", "up_to": "up to 1000 records", "replacement": "arbitrary others"}
    for one in ADJACENCIES.values():
        assert len(one.records.filled(**words).short) <= MOST
        assert len(one.users.short) <= MOST


def test_names_come_before_both_forms() -> None:
    assert Assumed("All of it.", "It.").of(["a", "b"]) == Assumed("a, b: All of it.", "a, b: It.")
