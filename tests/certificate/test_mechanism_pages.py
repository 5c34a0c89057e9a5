"""What certificates of documents with mechanisms say to people: the sentence, the phases, and what lower ends are of."""

import json
from typing import Any

import pytest
from places import EXAMPLES
from plain_documents import doc, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.certificate.consistency import inconsistencies
from pyaccount.pages.page import Entry, content_text

pytestmark = pytest.mark.usefixtures("without_profiles")

TRAINING = sectioned(sampling_probability=0.01, iterations=20, sampler="poisson", multiplier=2)
VENDOR = {"name": "a vendor", "mechanism": {"kind": "stated", "epsilon": 0.5, "delta": 1e-8}}


def certified(*phases: dict[str, Any], **privacy: Any) -> pyaccount.Certificate:
    return pyaccount.certify(
        doc(name="releases", adjacency="add-remove", delta=1e-6, privacy=privacy, phases=list(phases))
    )


def flat(text: str) -> str:
    return " ".join(text.split())


def test_only_training_is_called_a_training_run(snapshot: Snapshot) -> None:
    both = certified(VENDOR, {"name": "run", **TRAINING})
    refuted = certified({"mechanism": {"kind": "laplace", "scale": 1}}, epsilon=0.5, delta=0)
    snapshot(certified({"name": "run", **TRAINING}).statement, both.statement, refuted.statement)
    assert "What must be true of everything that is released" in both.to_text()


def test_a_sentence_about_training_contradicts_a_certificate_of_mechanisms() -> None:
    certificate = certified(VENDOR, {"name": "run", **TRAINING})
    data = json.loads(certificate.to_json())
    data["statement"] = data["statement"].replace("What “releases” releases", "The training run “releases”")
    found = [one.path for one in inconsistencies(pyaccount.Certificate.from_json(json.dumps(data)).data)]
    assert "statement" in found


def test_phases_inside_of_a_selection_are_shown_in_words() -> None:
    text = flat(pyaccount.certify(EXAMPLES / "tune-train-publish.yaml").to_text(200))
    for line in (
        "select geometric, stopping probability 0.1",
        "run: training dataset size 60000, expected batch size 600, iterations 2000",
        "run: sampler poisson",
        "run: noise multiplier 1.2",
        "score: mechanism laplace, scale 50",
        "pair one run: 2000 × Σ_j Bin(j; 1, 0.01)·N(j, 1.2²) against N(0, 1.2²), and 1 × Lap(1, 50) against Lap(0, 50)",
    ):
        assert line in text
    assert "{" not in text.partition("The mechanism")[2].partition("What must be true")[0]


def test_parts_of_the_data_are_shown_in_words() -> None:
    page = pyaccount.certify(EXAMPLES / "silos-and-a-count.yaml").page()
    (section,) = (section for section in page.sections if section.name == "mechanism")
    rows = [row for block in section.blocks if isinstance(block, Entry) for row in block.rows]
    shown = {row.label: content_text(row.content) for row in rows}
    assert shown["south: noise"] == "multiplier 1.25"
    assert shown["islands: phase 1: mechanism"] == "exponential, epsilon 0.05"
    assert shown["islands: phase 2: training"] == "dataset size 5000, expected batch size 100, iterations 600"


def test_rounds_that_are_one_gaussian_mechanism_have_one_pair() -> None:
    text = flat(pyaccount.certify(EXAMPLES / "federated-rounds.yaml").to_text(200))
    # Three local steps with σ = 2 are one Gaussian mechanism with sensitivity √3.
    assert "pair N(1·√3, 2²) against N(0, 2²); all of them with probability 0.01" in text
    assert "local steps: noise multiplier 2" in text


def test_several_stated_guarantees_are_shown_in_words() -> None:
    points = [{"epsilon": 1, "delta": 1e-6}, {"epsilon": 2, "delta": 1e-9}]
    text = flat(certified({"mechanism": {"kind": "stated", "guarantees": points}}).to_text(200))
    assert "guarantees epsilon 1, delta 1e-6; epsilon 2, delta 1e-9" in text
    many = [{"order": order, "epsilon": order / 100} for order in range(2, 40)]
    text = flat(certified({"mechanism": {"kind": "stated", "renyi": many}}).to_text(200))
    assert "order 21, epsilon 0.21; … all of them in the certificate's JSON" in text
    assert "order 22" not in text.partition("The mechanism")[2].partition("What must be true")[0]


@pytest.mark.parametrize(
    ("phases", "named"),
    [
        ([VENDOR], "a vendor"),
        ([{"mechanism": {"kind": "stated", "mu": 0.5}}], "phase 1"),
        (
            [
                {"name": "run", **TRAINING},
                {
                    "name": "best",
                    "select": {"kind": "geometric", "stopping_probability": 0.5},
                    "phases": [{"name": "one", "mechanism": {"kind": "stated", "epsilon": 0.5}}],
                },
            ],
            "best",
        ),
        ([{"mechanism": {"kind": "laplace", "scale": 3}}], None),
        ([{"name": "run", **TRAINING}], None),
    ],
)
def test_the_lower_ends_of_stated_guarantees_are_explained(phases: list[dict[str, Any]], named: str | None) -> None:
    text = flat(certified(*phases).to_text(200))
    assert ("what was run may be more private." in text) is (named is not None)
    assert named is None or f"Of {named} only a guarantee is known." in text
