"""Mappings with probabilities of single records: what they accept, and one mistake each."""

from typing import Any

import pytest
from plain_documents import doc
from snapshots import Snapshot

import pyaccount
from pyaccount.errors import DocumentError, Problem


def problems(probability: object, **sections: Any) -> list[Problem]:
    """Return the problems of a document with this sampling probability."""
    stated = (
        doc("name=own-probabilities adjacency=add-remove epsilon=8 iterations=10 sampler=poisson multiplier=1")
        | sections
    )
    stated["training"] = stated["training"] | {"sampling_probability": probability}
    with pytest.raises(DocumentError) as caught:
        pyaccount.load(stated)
    return caught.value.problems


def body(probability: object) -> Any:
    """Return the body of a document with this sampling probability."""
    training = {"iterations": 10, "sampling_probability": probability, "dataset_size": 1000}
    privacy = {"adjacency": "add-remove", "epsilon": 8, "delta": 1e-5}
    head = {"pyaccount": 1, "name": "own-probabilities", "privacy": privacy}
    stated = head | {"training": training, "sampler": {"kind": "poisson"}, "noise": {"multiplier": 1}}
    return pyaccount.load(stated).run


def test_a_body_has_the_largest_probability_and_no_common_rate() -> None:
    mixed = body({"strata": {"rare": "2e-2", "common": 0.001}})
    assert mixed.sampling_probability() == mixed.training.sampling_probability == 0.02
    assert mixed.own_probabilities.named() == (("rare", 0.02), ("common", 0.001))
    assert mixed.expected_batch_size() is None
    assert mixed.epoch() is None
    assert not mixed.has_one_rate
    assert body({"max": 0.3}).own_probabilities.largest() == 0.3
    assert body(0.3).has_one_rate


def test_a_document_is_equal_to_its_mapping() -> None:
    """Strata are a mapping there too, and their order does not matter."""

    def document(probability: object) -> pyaccount.Document:
        training = {"iterations": 10, "sampling_probability": probability}
        head = {"pyaccount": 1, "name": "own", "privacy": {"adjacency": "add-remove", "epsilon": 8, "delta": 1e-5}}
        return pyaccount.load(head | {"training": training, "sampler": {"kind": "poisson"}, "noise": {"multiplier": 1}})

    one = document({"strata": {"b": 0.02, "a": 1.0}})
    assert one.to_mapping()["training"]["sampling_probability"] == {"strata": {"b": 0.02, "a": 1}}
    assert pyaccount.load(one.to_mapping()) == one == document({"strata": {"a": 1, "b": "2e-2"}})
    assert one != document({"strata": {"a": 1, "c": 0.02}})
    assert one != document({"max": 1})


MISTAKES: dict[str, Any] = {
    "no section between": ({"a": 0.1, "b": 0.2}, {}),
    "another word for the largest": ({"maximum": 0.1}, {}),
    "misspelt strata": ({"stratum": {"a": 0.1}}, {}),
    "both": ({"max": 0.2, "strata": {"a": 0.1}}, {}),
    "a schedule too": ({"strata": {"a": 0.1}, "schedule": [0.1] * 10}, {}),
    "not a probability": ({"strata": {"a": 0.1, "b": 1.5}}, {}),
    "a name that is none": ({"strata": {" ": 0.1}}, {}),
    "no strata": ({"strata": {}}, {}),
    "a list": ({"strata": [0.1]}, {}),
    "another key": ({"max": 0.1, "mean": 0.05}, {}),
    "a batch size": ({"max": 0.1}, {"training": {"iterations": 10, "dataset_size": 100, "expected_batch_size": 10}}),
    "a rate": ({"strata": {"a": 0.1}}, {"training": {"iterations": 10, "participation_rate": 0.1}}),
    "epochs": ({"max": 0.1}, {"training": {"epochs": 3, "dataset_size": 100}}),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str, snapshot: Snapshot) -> None:
    probability, sections = MISTAKES[mistake]
    snapshot(problems(probability, **sections))


@pytest.mark.parametrize(
    "written",
    [
        {"maximum": 0.1},
        {"largest": 0.1},
        {"rare": 0.1},
        {"starta": {"a": 0.1}},
    ],
)
def test_a_single_key_is_taken_for_what_it_resembles(written: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot(problems(written))


def test_an_empty_mapping_beside_a_mechanism(snapshot: Snapshot) -> None:
    stated = doc(
        "name=own-probabilities adjacency=add-remove epsilon=8",
        mechanism={"kind": "laplace", "scale": 1},
        sampler={"kind": "poisson", "sampling_probability": {}},
    )
    snapshot.raised(pyaccount.load, stated)
    stated["sampler"] = {"kind": "poisson", "sampling_probability": {"schedule": [0.1]}}
    snapshot.raised(pyaccount.load, stated)


@pytest.mark.parametrize(
    "kind", ["weighted", "class-weights", "class_weights", "stratified", "strata", "WeightedRandomSampler"]
)
def test_weights_are_refused_with_what_to_write(kind: str, snapshot: Snapshot) -> None:
    snapshot(problems(0.1, sampler={"kind": kind}))
