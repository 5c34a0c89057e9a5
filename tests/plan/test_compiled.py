"""A plan is data: the blank is its parameter, and it can be sent to another process."""

import multiprocessing
import pickle
import re
from pathlib import Path

import pytest
from plain_documents import doc
from snapshots import Snapshot

import pyaccount
from pyaccount import _core
from pyaccount.document.document import Document
from pyaccount.plan import compiling as compiling_module
from pyaccount.plan.compiled import CompiledDocument
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.rounds import DirectedBounds

EXAMPLES = [
    path
    for path in sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.yaml"))
    if not re.search(r"^kind: (amplification|policy)", path.read_text(encoding="utf-8"), re.MULTILINE)
]

#: A value for each blank that some document has.
VALUES = {
    "multiplier": 2.5,
    "scale": 2.5,
    "variance": 2.5,
    "threshold": 80.0,
    "epsilon": 0.75,
    "delta": 1e-7,
    "iterations": 37,
    "group_size": 3,
    "expected_batch_size": 40,
}
#: Examples with recursions over their rounds, which take seconds: fewer rounds have the same theorem.
SHORTER = ("fixed-size-replace-one", "two-stage-sampling", "with-replacement", "largest-batch")


def document_of(path: Path) -> Document:
    """A blank is filled once the matrix is known: where that is searched for, these coefficients stand for what is found."""
    loaded = pyaccount.load(path, overrides=["training.iterations=12"] if path.stem in SHORTER else ())
    assert isinstance(loaded, Document)
    return loaded.with_coefficients((0.9, 0.3, 0.2)) if loaded.searched else loaded


def plan_of(path: Path) -> CompiledDocument:
    return compile_document(document_of(path))


def value_of(plan: CompiledDocument) -> float | None:
    return None if plan.document.blank is None else VALUES[str(plan.document.blank[-1])]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_filled_document_is_the_one_that_was_read_with_the_value(path: Path) -> None:
    """Filling a blank skips the validation and gives what validating would have."""
    plan = plan_of(path)
    document, value = plan.document, value_of(plan)
    if document.blank is None or value is None:
        pytest.skip("nothing is blank")
    filled, validated = document.filled(value), document.with_value(document.blank, value)
    assert filled == validated
    assert filled.to_mapping() == validated.to_mapping()
    assert (filled.phases, filled.privacy, filled.blank) == (validated.phases, validated.privacy, validated.blank)
    # Its problems are told at the same places, with the value.
    told = [one.problem("contradiction", document.blank, "") for one in (filled, validated)]
    assert told[0] == told[1]
    assert document == document_of(path).candidates()[0]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_plan_at_a_value_is_the_plan_of_the_document_with_that_value(path: Path) -> None:
    plan = plan_of(path)
    value = value_of(plan)
    if plan.document.blank is None or value is None:
        pytest.skip("nothing is blank")
    at, anew = plan.at(value), compile_document(plan.document.with_value(plan.document.blank, value))
    assert at.reductions == anew.reductions
    assert at.composed_bounds() == anew.at().composed_bounds()
    if plan.sampled:
        ours, theirs = at.mechanism(), anew.at().mechanism()
        assert (ours.directions, ours.cost, ours.plain_parameters) == (
            theirs.directions,
            theirs.cost,
            theirs.plain_parameters,
        )
        densities = [_core.Inspection.log_densities(one.core, [[0.25] * one.steps]) for one in (ours, theirs)]
        assert densities[0] == densities[1]


def test_nothing_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(EXAMPLES[0])

    def refuse(*_: object) -> CompiledDocument:
        raise AssertionError("compiled again")

    monkeypatch.setattr(compiling_module, "_compile_one", refuse)
    for value in (1.0, 2.0):
        assert plan.at(value).reductions


def test_a_blank_of_the_mechanism_needs_a_value() -> None:
    with pytest.raises(AssertionError, match="needs a value"):
        plan_of(Path(EXAMPLES[0].parent / "cifar10-dp-sgd.yaml")).at()


def test_a_value_that_contradicts_the_document_is_refused_in_the_end(snapshot: Snapshot) -> None:
    """A search may pass by such values; that no record takes part more often than there are rounds is told of the answer."""
    document = doc(
        "name='few rounds' adjacency=add-remove epsilon=2.0 delta=1e-6 iterations=solve sampler=none",
        "max_participations=100_000 multiplier=30.0",
    )
    snapshot.raised(pyaccount.certify, document)


def bounds_elsewhere(pickled: bytes, value: float | None) -> DirectedBounds | None:
    plan: CompiledDocument = pickle.loads(pickled)
    return plan.at(value).composed_bounds()


def test_plans_are_sent_to_another_process() -> None:
    """With every theorem that an example has: what comes back is what is computed here."""
    plans = [plan_of(path) for path in EXAMPLES]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.starmap(bounds_elsewhere, [(pickle.dumps(plan), value_of(plan)) for plan in plans])
    assert found == [plan.at(value_of(plan)).composed_bounds() for plan in plans]
    assert sum(one is not None for one in found) > 10


def test_a_plan_that_can_be_run_can_be_sent_too() -> None:
    plan = pyaccount.compile(EXAMPLES[0].parent / "cifar10-dp-sgd.yaml")
    again = pickle.loads(pickle.dumps(plan))
    assert again.run().data.solved == plan.run().data.solved
