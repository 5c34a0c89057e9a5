"""Documents with mechanisms, sampled phases and selections: what is read, and what is wrong at which place."""

from typing import Any

import pytest
from snapshots import Snapshot

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
    "mechanism",
    [
        {"kind": "stated"},
        {"kind": "stated", "delta": 1e-5},
        {"kind": "stated", "epsilon": 1, "rho": 1},
        {"kind": "stated", "mu": 1, "delta": 1e-5},
        {"kind": "stated", "mu": 1, "xi": 1},
        {"kind": "stated", "guarantees": []},
        {"kind": "stated", "renyi": [{"order": 1, "epsilon": 1}]},
        {"kind": "exponential"},
        {"kind": "exponential", "scale": 1},
        {"kind": "exponential", "epsilon": 1, "scale": 1},
        {"kind": "permute-and-flip", "epsilon": 1, "monotone": True},
        {"kind": "exponential", "utility_sensitivity": 1e6, "scale": 1},
        {"kind": "report-noisy-max", "epsilon": 1},
        {"kind": "discrete-gaussian", "sigma": 2, "sensitivity": 1.5},
        {"kind": "discrete-laplace", "scale": 2, "sensitivity": 1e7},
        {"kind": "discrete-gaussian", "sigma": 1e6},
        MIX | {"probabilities": [1]},
        MIX | {"probabilities": [0.5, 0.4]},
        MIX | {"sensitivities": [0, 0]},
        MIX | {"sensitivities": [0, -1]},
        MIX | {"sensitivities": 3},
        MIX | {"probabilities": [0.5, "x"]},
        {"kind": "gaussian-mixture", "sigma": 1},
        {"kind": "laplace", "scale": 0},
        {"kind": "laplace", "b": 1},
        {"kind": "sparse-vector"},
        {"kind": "svt"},
        {"kind": "PATE"},
        {"kind": "ddgauss"},
        {"kind": "geometric", "scale": 1},
        "laplace",
        RR | {"empty_record": "uniform", "answers": "once"},
        {"kind": "skellam", "variance": 1e9},
        {"kind": "skellam", "variance": 1e-3, "step": 1e4},
        {"kind": "skellam", "variance": 4, "parties": 1.5},
        {"kind": "skellam", "sigma": 2},
        {"kind": "distributed-discrete-gaussian", "sigma": 2},
        {"kind": "distributed-discrete-gaussian", "sigma": "solve", "parties": 2},
        {"kind": "distributed-discrete-gaussian", "sigma": 0.01, "parties": 2},
        {"kind": "distributed-discrete-gaussian", "sigma": 1.2, "parties": 1_000_000},
        {"kind": "distributed-discrete-gaussian", "sigma": 100, "parties": 1_000_000},
        {"kind": "distributed-discrete-gaussian", "sigma": 0.1, "parties": 1000, "sensitivity": 50},
    ],
)
def test_what_is_wrong_with_a_mechanism(mechanism: Any, snapshot: Snapshot) -> None:
    snapshot(problems({"mechanism": mechanism}))


@pytest.mark.parametrize(
    ("body", "keywords"),
    [
        ({"mechanism": MIX}, {"adjacency": "replace-one"}),
        ({"mechanism": RR}, {"adjacency": "add-remove"}),
        ({"mechanism": RR, "sampler": SAMPLE}, {}),
        (
            {
                "mechanism": {"kind": "laplace", "scale": 1},
                "sampler": {"kind": "poisson", "sampling_probability": {"max": 0.1}},
            },
            {"adjacency": "replace-one"},
        ),
        (
            {"mechanism": {"kind": "exponential", "utility_sensitivity": 1, "scale": 1, "monotone": True}},
            {"adjacency": "replace-one"},
        ),
        ({"mechanism": {"kind": "gaussian", "sigma": 1}}, {"delta": 0}),
        (
            {
                "phases": [
                    {
                        "select": {"kind": "geometric", "stopping_probability": 0.5},
                        "phases": [{"mechanism": RR}, {"mechanism": RR}],
                    }
                ]
            },
            {"delta": 0},
        ),
    ],
)
def test_what_no_theorem_covers(body: dict[str, Any], keywords: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot(problems(body, **keywords))


@pytest.mark.parametrize(
    "body",
    [
        {"mechanism": RR, "noise": {"multiplier": 1}},
        {"phases": [{"mechanism": RR, "training": {"iterations": 1}}]},
        {"mechanism": RR, "phases": [TRAINING]},
        {"mechanism": RR, "sampler": {"kind": "fixed-size"}},
        {"mechanism": RR, "sampler": {"kind": "poisson"}},
        {"phases": [{"phases": [TRAINING]}]},
        {"phases": [{"sampler": SAMPLE, "phases": []}]},
        {"phases": [{"select": {"kind": "fixed"}, "phases": [TRAINING]}]},
        {
            "phases": [
                {
                    "select": {"kind": "negative-binomial", "shape": -1, "stopping_probability": 0.1},
                    "phases": [TRAINING],
                }
            ]
        },
        {"phases": [{"sampler": SAMPLE, "phases": [{"mechanism": {"kind": "stated", "delta": 0.1}}]}]},
        {"phases": [{"sampler": SAMPLE, "phases": [TRAINING | {"noise": {"multiplier": -1}}]}]},
    ],
)
def test_what_is_wrong_with_a_phase(body: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot(problems(body))


def test_answers_of_every_record_are_no_phase_on_a_sample(snapshot: Snapshot) -> None:
    """They show who was drawn, beside a sampler of their own and inside of a sampled phase."""
    snapshot(problems({"phases": [{"sampler": SAMPLE, "phases": [{"mechanism": RR}, TRAINING]}]}))
    assert problems({"phases": [{"sampler": SAMPLE, "phases": [{"mechanism": RR | {"answers": "once"}}]}]}) == []
    clients = {"phases": [{"sampler": SAMPLE | {"draws": "clients"}, "phases": [{"mechanism": RR}]}]}
    assert problems(clients) == []
    assert [one.path_text for one in problems(clients, adjacency="add-remove")] == ["privacy.adjacency"]


def test_a_document_describes_something(snapshot: Snapshot) -> None:
    snapshot(problems({}))


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
