"""Mappings with probabilities of single records: what they accept, and one mistake each."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from document_samples import BASE, edited, found, load_text, problems_of, written
from plain_documents import doc
from snapshots import Snapshot

import pyaccount
from pyaccount.document.notes import notes
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


@pytest.mark.parametrize("written", [{"maximum": 0.1}, {"largest": 0.1}, {"rare": 0.1}, {"starta": {"a": 0.1}}])
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


# ---- `sampler.draws_per_iteration`: what may stand there, and what of it contradicts the rates


DRAWS = BASE.replace("kind: poisson\n", "kind: poisson\n  draws_per_iteration: 4\n")


def test_it_is_one_unless_it_is_said(tmp_path: Path) -> None:
    body = load_text(tmp_path, BASE).run
    assert body.draws_per_iteration() == 1
    body = load_text(tmp_path, DRAWS).run
    assert body.draws_per_iteration() == 4
    # As those of every document that was written before there was such a key.
    assert load_text(tmp_path, BASE).to_mapping()["sampler"] == {"kind": "poisson"}


@pytest.mark.parametrize("value", ["0", "1001", "2.5", "solve", "yes"])
def test_what_it_may_not_be(value: str, tmp_path: Path, snapshot: Snapshot) -> None:
    # The rates are not judged by a number that is wrong already.
    text = edited({13: f"  draws_per_iteration: {value}", 9: "  expected_batch_size: 100_000"}, DRAWS)
    snapshot(problems_of(written(tmp_path, text)))


@pytest.mark.parametrize("sampler", ["fixed-size", "with-replacement", "none", "b-min-sep"])
def test_other_samplers_have_no_such_key(sampler: str, tmp_path: Path) -> None:
    text = DRAWS.replace("kind: poisson", f"kind: {sampler}")
    assert ("unknown-key", "sampler.draws_per_iteration", 13, 3) in found(tmp_path, text)


def test_a_batch_is_at_most_all_records_in_all_draws(tmp_path: Path, snapshot: Snapshot) -> None:
    load_text(tmp_path, DRAWS.replace("_size: 500", "_size: 200_000"))
    text = DRAWS.replace("_size: 500", "_size: 200_001")
    assert found(tmp_path, text) == [("contradiction", "training.expected_batch_size", 9, 24)]
    snapshot(problems_of(load_from(text)))


def load_from(text: str) -> dict[str, Any]:
    raw = yaml.safe_load(text)
    raw["privacy"]["delta"] = 1e-5
    return dict(raw)


def test_rates_that_agree_only_with_one_draw(tmp_path: Path) -> None:
    """0.01 in each of 4 draws is a batch of 2000; 0.0025 is one of 500."""
    text = DRAWS.replace("  iterations", "  sampling_probability: 0.01\n  iterations")
    assert found(tmp_path, text) == [("contradiction", "training.sampling_probability", 10, 25)]
    load_text(tmp_path, text.replace("0.01", "0.0025"))
    load_text(tmp_path, text.replace("sampling_probability", "participation_rate"))


def test_the_batch_is_told_to_be_that_of_all_draws(tmp_path: Path) -> None:
    (told,) = notes(load_text(tmp_path, DRAWS))
    assert "all 4 draws of an iteration together, 125 in each" in told
    assert not list(notes(load_text(tmp_path, BASE)))


def test_one_draw_of_a_mechanism_that_is_run_once(snapshot: Snapshot) -> None:
    document = {
        "pyaccount": 1,
        "kind": "amplification",
        "name": "once",
        "base": {"kind": "laplace", "multiplier": 1.0, "epsilon": [1.0]},
        "sampling": {"sampling_probability": 0.1},
        "sampler": {"kind": "poisson", "draws_per_iteration": 2},
    }
    snapshot.raised(pyaccount.amplify, document)


def test_a_key_of_other_libraries_leads_here(snapshot: Snapshot) -> None:
    raw = load_from(BASE)
    raw["training"]["gradient_accumulation_steps"] = 4
    snapshot(problems_of(raw))


def test_the_slip_of_a_letter(snapshot: Snapshot) -> None:
    raw = load_from(BASE)
    raw["sampler"]["draws_per_iterations"] = 4
    snapshot(problems_of(raw))
