"""Documents with mechanisms, sampled phases and selections: what is read, and what is wrong at which place."""

from __future__ import annotations

from typing import Any

import pytest

import pyaccount
from pyaccount.errors import DocumentError, Problem

HEAD = {"pyaccount": 1, "name": "mechanisms"}
TRAINING = {"training": {"iterations": 3}, "sampler": {"kind": "none"}, "noise": {"multiplier": 2}}
RR = {"kind": "randomized-response", "values": 3, "truth_probability": 0.7}
MIX = {"kind": "mixture-of-gaussians", "sigma": 1, "sensitivities": [0, 2], "probabilities": [0.75, 0.25]}
SAMPLE = {"kind": "poisson", "sampling_probability": 0.1}


def problems(body: dict[str, Any], adjacency: str = "zero-out", **privacy: Any) -> list[Problem]:
    """Return the problems of a document with this body, when it is read or compiled; empty if there are none."""
    target = {"adjacency": adjacency, "epsilon": "solve", "delta": 1e-6} | privacy
    try:
        pyaccount.compile({**HEAD, "privacy": target, **body})
    except DocumentError as error:
        return error.problems
    return []


@pytest.mark.parametrize(
    ("mechanism", "path", "slug", "words"),
    [
        ({"kind": "stated"}, "mechanism.epsilon", "missing-key", "needs its guarantee"),
        ({"kind": "stated", "delta": 1e-5}, "mechanism.epsilon", "missing-key", "half of a guarantee"),
        ({"kind": "stated", "epsilon": 1, "rho": 1}, "mechanism.rho", "contradiction", "leave rho out"),
        ({"kind": "stated", "mu": 1, "delta": 1e-5}, "mechanism.delta", "contradiction", "delta belongs to epsilon"),
        ({"kind": "stated", "mu": 1, "xi": 1}, "mechanism.xi", "contradiction", "xi belongs to rho"),
        ({"kind": "stated", "guarantees": []}, "mechanism.guarantees", "out-of-range", "1"),
        (
            {"kind": "stated", "renyi": [{"order": 1, "epsilon": 1}]},
            "mechanism.renyi[0].order",
            "out-of-range",
            "greater than 1",
        ),
        ({"kind": "exponential"}, "mechanism.epsilon", "missing-key", "utility_sensitivity and scale"),
        ({"kind": "exponential", "scale": 1}, "mechanism.utility_sensitivity", "missing-key", "required"),
        ({"kind": "exponential", "epsilon": 1, "scale": 1}, "mechanism.scale", "contradiction", "leave scale out"),
        (
            {"kind": "permute-and-flip", "epsilon": 1, "monotone": True},
            "mechanism.monotone",
            "contradiction",
            "monotone",
        ),
        (
            {"kind": "exponential", "utility_sensitivity": 1e6, "scale": 1},
            "mechanism.scale",
            "out-of-range",
            "larger scale",
        ),
        ({"kind": "report-noisy-max", "epsilon": 1}, "mechanism.noise", "missing-key", "required"),
        (
            {"kind": "discrete-gaussian", "sigma": 2, "sensitivity": 1.5},
            "mechanism.sensitivity",
            "contradiction",
            "whole",
        ),
        (
            {"kind": "discrete-laplace", "scale": 2, "sensitivity": 1e7},
            "mechanism.sensitivity",
            "out-of-range",
            "steps",
        ),
        ({"kind": "discrete-gaussian", "sigma": 1e6}, "mechanism.sigma", "no-valid-bound", "Continuous noise"),
        (MIX | {"probabilities": [1]}, "mechanism.probabilities", "contradiction", "one probability for each"),
        (MIX | {"probabilities": [0.5, 0.4]}, "mechanism.probabilities", "contradiction", "add up to 0.9"),
        (MIX | {"sensitivities": [0, 0]}, "mechanism.sensitivities", "contradiction", "leave this phase out"),
        (MIX | {"sensitivities": [0, -1]}, "mechanism.sensitivities[1]", "out-of-range", "at least"),
        (MIX | {"sensitivities": 3}, "mechanism.sensitivities", "wrong-type", "a list"),
        (MIX | {"probabilities": [0.5, "x"]}, "mechanism.probabilities[1]", "wrong-type", "number"),
        ({"kind": "gaussian-mixture", "sigma": 1}, "mechanism.kind", "unknown-kind", "must be"),
        ({"kind": "laplace", "scale": 0}, "mechanism.scale", "out-of-range", "at least"),
        ({"kind": "laplace", "b": 1}, "mechanism.b", "unknown-key", "no such key"),
        ({"kind": "sparse-vector"}, "mechanism.kind", "unknown-kind", "`mechanism: {kind: stated}`"),
        ({"kind": "svt"}, "mechanism.kind", "unknown-kind", "sparse vector"),
        ({"kind": "PATE"}, "mechanism.kind", "unknown-kind", "votes"),
        ({"kind": "ddgauss"}, "mechanism.kind", "unknown-kind", "not discrete Gaussian"),
        ({"kind": "geometric", "scale": 1}, "mechanism.kind", "unknown-kind", "must be"),
        ("laplace", "mechanism", "wrong-type", "mapping"),
        (
            RR | {"empty_record": "uniform", "answers": "once"},
            "mechanism.empty_record",
            "contradiction",
            "leave it out",
        ),
    ],
)
def test_what_is_wrong_with_a_mechanism(mechanism: Any, path: str, slug: str, words: str) -> None:
    found = problems({"mechanism": mechanism})
    assert (path, slug) in [(one.path_text, one.slug) for one in found]
    assert any(words in one.message for one in found)


@pytest.mark.parametrize(
    ("body", "keywords", "path", "words"),
    [
        ({"mechanism": MIX}, {"group_size": 2}, "privacy.group_size", "random contributions"),
        ({"mechanism": MIX}, {"adjacency": "replace-one"}, "privacy.adjacency", "random contributions"),
        ({"mechanism": RR}, {"adjacency": "add-remove"}, "privacy.adjacency", "number of answers"),
        ({"mechanism": RR, "sampler": SAMPLE}, {}, "sampler.kind", "which records were drawn"),
        (
            {"mechanism": RR | {"answers": "once"}, "sampler": SAMPLE},
            {"group_size": 2},
            "privacy.group_size",
            "independently",
        ),
        (
            {
                "mechanism": {"kind": "laplace", "scale": 1},
                "sampler": {"kind": "poisson", "sampling_probability": {"max": 0.1}},
            },
            {"adjacency": "replace-one"},
            "sampler.sampling_probability",
            "one probability for all records",
        ),
        (
            {"mechanism": {"kind": "exponential", "utility_sensitivity": 1, "scale": 1, "monotone": True}},
            {"adjacency": "replace-one"},
            "mechanism.monotone",
            "not monotone",
        ),
        (
            {"mechanism": {"kind": "stated", "renyi": [{"order": 2, "epsilon": 0.1}]}},
            {"group_size": 2},
            "privacy.group_size",
            "say nothing about groups",
        ),
        ({"mechanism": {"kind": "gaussian", "sigma": 1}}, {"delta": 0}, "privacy.delta", "no ε holds at δ = 0"),
        (
            {"phases": [{"select": {"kind": "geometric", "stopping_probability": 0.5}, "phases": [{"mechanism": RR}]}]},
            {"delta": 0},
            "privacy.delta",
            "phases[0].select",
        ),
    ],
)
def test_what_no_theorem_covers(body: dict[str, Any], keywords: dict[str, Any], path: str, words: str) -> None:
    found = problems(body, **keywords)
    assert [one.path_text for one in found] == [path]
    assert words in found[0].message


@pytest.mark.parametrize(
    ("body", "path", "slug", "words"),
    [
        ({"mechanism": RR, "noise": {"multiplier": 1}}, "noise", "contradiction", "takes the place of"),
        (
            {"phases": [{"mechanism": RR, "training": {"iterations": 1}}]},
            "phases[0].training",
            "contradiction",
            "two phases",
        ),
        ({"mechanism": RR, "phases": [TRAINING]}, "mechanism", "contradiction", "move it into a phase"),
        ({"mechanism": RR, "sampler": {"kind": "fixed-size"}}, "sampler.kind", "unknown-kind", "must be poisson"),
        ({"mechanism": RR, "sampler": {"kind": "poisson"}}, "sampler.sampling_probability", "missing-key", "required"),
        ({"phases": [{"phases": [TRAINING]}]}, "phases[0].sampler", "missing-key", "required"),
        ({"phases": [{"sampler": SAMPLE, "phases": []}]}, "phases[0].phases", "out-of-range", "1"),
        (
            {"phases": [{"select": {"kind": "fixed"}, "phases": [TRAINING]}]},
            "phases[0].select.kind",
            "unknown-kind",
            "their composition",
        ),
        (
            {
                "phases": [
                    {
                        "select": {"kind": "negative-binomial", "shape": -1, "stopping_probability": 0.1},
                        "phases": [TRAINING],
                    }
                ]
            },
            "phases[0].select.shape",
            "out-of-range",
            "greater than -1",
        ),
        (
            {"phases": [{"sampler": SAMPLE, "phases": [{"mechanism": {"kind": "stated", "delta": 0.1}}]}]},
            "phases[0].phases[0].mechanism.epsilon",
            "missing-key",
            "half of a guarantee",
        ),
        (
            {"phases": [{"sampler": SAMPLE, "phases": [TRAINING | {"noise": {"multiplier": -1}}]}]},
            "phases[0].phases[0].noise.multiplier",
            "out-of-range",
            "at least",
        ),
    ],
)
def test_what_is_wrong_with_a_phase(body: dict[str, Any], path: str, slug: str, words: str) -> None:
    found = problems(body)
    assert (path, slug) in [(one.path_text, one.slug) for one in found]
    assert any(words in one.message for one in found)


def test_answers_of_every_record_are_no_phase_on_a_sample() -> None:
    """They show who was drawn, beside a sampler of their own and inside of a sampled phase."""
    (found,) = problems({"phases": [{"sampler": SAMPLE, "phases": [{"mechanism": RR}, TRAINING]}]})
    assert "which records were drawn" in found.message
    assert problems({"phases": [{"sampler": SAMPLE, "phases": [{"mechanism": RR | {"answers": "once"}}]}]}) == []
    clients = {"phases": [{"sampler": SAMPLE | {"draws": "clients"}, "phases": [{"mechanism": RR}]}]}
    assert problems(clients) == []
    assert [one.path_text for one in problems(clients, adjacency="add-remove")] == ["privacy.adjacency"]


def test_a_document_describes_something() -> None:
    (found,) = problems({})
    assert (
        found.message
        == "the document describes no mechanism: give training, sampler and noise, or mechanism, or phases"
    )


def test_a_blank_inside_of_a_sampled_phase_is_solved() -> None:
    inner = TRAINING | {"noise": {"multiplier": "solve"}}
    body = {"phases": [{"sampler": SAMPLE, "phases": [inner], "count": 20}]}
    privacy = {"adjacency": "add-remove", "epsilon": 1, "delta": 1e-6}
    certificate = pyaccount.certify({**HEAD, "privacy": privacy, **body})
    assert certificate.data.solved is not None
    assert certificate.data.solved.path == "phases[0].phases[0].noise.multiplier"
    assert certificate.epsilon <= 1.0


def test_documents_are_read_back_as_they_are_written() -> None:
    body = {
        "phases": [
            {"name": "a", "mechanism": RR | {"answers": "once"}, "sampler": SAMPLE, "count": 2},
            {
                "sampler": SAMPLE | {"draws": "clients"},
                "phases": [TRAINING, {"mechanism": {"kind": "stated", "rho": 0.1}}],
            },
            {"select": {"kind": "poisson", "mean": 3}, "phases": [{"sampler": SAMPLE, "phases": [TRAINING]}]},
        ]
    }
    document = pyaccount.load({**HEAD, "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-6}, **body})
    assert pyaccount.load(document.to_mapping()) == document
    assert document.to_mapping()["phases"] == body["phases"]
