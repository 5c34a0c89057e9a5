"""Mechanisms that are read from documents: certificates are proven, and close ones are not; formulas by other means."""

import json
import math
from fractions import Fraction
from typing import Any

import pytest
from normal_forms import verdict_of

import pyaccount
from pyaccount.independent import lattice, laws

MIXTURE = {
    "kind": "mixture-of-gaussians",
    "sigma": 2,
    "sensitivities": [0, 0.5, 2.25],
    "probabilities": [0.7, 0.2, 0.1],
}
RESPONSE = {"kind": "randomized-response", "values": 5, "truth_probability": 0.4}
POINTS = [{"epsilon": 0.1, "delta": 1e-3}, {"epsilon": 0.5, "delta": 1e-5}, {"epsilon": 1, "delta": 1e-8}]
ORDERS = [{"order": 2, "epsilon": 0.1}, {"order": 8, "epsilon": 0.5}, {"order": 32, "epsilon": 2}]

CASES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "mixture": ("add-remove", [{"mechanism": MIXTURE, "count": 8}]),
    "mixture on a sample": (
        "zero-out",
        [{"mechanism": MIXTURE, "sampler": {"kind": "poisson", "sampling_probability": 0.1}, "count": 2}],
    ),
    "guarantees": ("replace-one", [{"mechanism": {"kind": "stated", "guarantees": POINTS}, "count": 3}]),
    "renyi": (
        "add-remove",
        [{"mechanism": {"kind": "stated", "rho": 0.02, "xi": 0.01}}, {"mechanism": {"kind": "stated", "rho": 0.01}, "count": 2}],
    ),
    "an empty record answers": ("zero-out", [{"mechanism": RESPONSE, "count": 4}]),
    "an empty record answers at random": ("zero-out", [{"mechanism": RESPONSE | {"empty_record": "uniform"}, "count": 4}]),
    "one answer": ("add-remove", [{"mechanism": RESPONSE | {"answers": "once"}, "count": 4}]),
    "selections": ("add-remove", [{"mechanism": {"kind": "exponential", "epsilon": 0.2}, "count": 6},
                                  {"mechanism": {"kind": "gaussian", "sigma": 3}}]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_mechanisms_are_proven(name: str) -> None:
    adjacency, phases = CASES[name]
    document = {"pyaccount": 1, "name": name, "privacy": {"adjacency": adjacency, "epsilon": "solve", "delta": 1e-5}}
    certificate = json.loads(pyaccount.certify({**document, "phases": phases}).to_json())
    assert verdict_of(certificate, 5.0)["verdict"] == "proven"
    certificate["guarantee"]["epsilon"] *= 0.99
    assert verdict_of(certificate, 0.1)["verdict"] != "proven"


def test_points_of_a_profile_are_joined_by_chords() -> None:
    grid = lattice.LossGrid(round(0.01 * 2**lattice.SPACING), 25, 160)
    part = laws.Guarantees([(Fraction(1, 10), Fraction(1, 1000)), (Fraction(1), Fraction(1, 10**8))])
    low, high = math.exp(0.1), math.exp(1)
    for k in (1, 5, 30, 80, 120):
        alpha = math.exp(k / 100)
        first = (
            1e-3
            + (math.expm1(-0.1) * (1e-3 - 1)) * (low - alpha) / (low - 1 / low)
            - 1e-3 * (low - alpha) / (low - 1 / low)
        )
        first += 1e-3 * math.exp(-0.1) * (low - alpha) / (low - 1 / low)
        chord = 1e-3 + (1e-8 - 1e-3) * (alpha - low) / (high - low)
        wanted = first if alpha < low else chord if alpha < high else 1e-8
        assert part.value(grid, k, 0) / 2**160 == pytest.approx(wanted, rel=2e-2)


def test_points_that_say_nothing_more_do_no_harm() -> None:
    grid = lattice.LossGrid(round(0.1 * 2**lattice.SPACING), 25, 160)
    few = [(Fraction(1), Fraction(1, 1000)), (Fraction(2), Fraction(1, 10**6))]
    more = [(Fraction(3, 2), Fraction(1, 2)), (Fraction(0), Fraction(1)), (Fraction(5), Fraction(1, 10**6))]
    alone, many = laws.Guarantees(few), laws.Guarantees([*more, *few, *few])
    for k in (0, 3, 10, 14, 20, 30, 60):
        assert abs(alone.value(grid, k, 0) - many.value(grid, k, 0)) <= 4
    for k, delta in ((10, 1e-3), (20, 1e-6)):
        assert alone.at(grid, -k) / 2**160 == pytest.approx(1 - (1 - delta) * math.exp(-0.1 * k), rel=1e-9)


def test_a_table_of_orders_is_not_checkable() -> None:
    document = {
        "pyaccount": 1,
        "name": "orders",
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
    }
    stated = {"mechanism": {"kind": "stated", "renyi": ORDERS}}
    certificate = json.loads(pyaccount.certify({**document, "phases": [stated]}).to_json())
    found = verdict_of(certificate, 5.0)
    assert found["verdict"] == "not checkable"
    assert "renyi" in found["reason"]
