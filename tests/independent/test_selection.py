"""The best of a random number of runs: the bound of the independent checker is above an enumeration."""

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import pytest
from normal_forms import verdict_of

import pyaccount
from pyaccount.independent import combinators, lattice, laws

P, Q = (0.5, 0.3, 0.2), (0.3, 0.3, 0.4)

#: The law of K, and its generating function.
LAWS: dict[str, tuple[dict[str, Fraction], Any]] = {
    "geometric": ({"stopping_probability": Fraction(1, 4)}, lambda z: 0.25 * z / (1 - 0.75 * z)),
    "poisson": ({"mean": Fraction(3)}, lambda z: math.exp(3 * (z - 1))),
    "binomial": ({"trials": Fraction(5), "probability": Fraction(1, 2)}, lambda z: (0.5 + 0.5 * z) ** 5),
}


def best(law: tuple[float, ...], order: tuple[int, ...], f: Any) -> list[float]:
    """Return the probability of each outcome to be the best, and of no run."""
    below, found = 0.0, {}
    for outcome in order:
        found[outcome] = f(below + law[outcome]) - f(below)
        below += law[outcome]
    return [*(found[i] for i in range(3)), f(0.0)]


@pytest.mark.parametrize("kind", LAWS)
def test_the_best_run_of_every_order_is_bounded(kind: str) -> None:
    numbers, f = LAWS[kind]
    run = laws.FiniteRound([(Fraction(str(p)), Fraction(str(q))) for p, q in zip(P, Q, strict=True)])
    part = combinators.BestRound([(run, 1)], Fraction(1, 10**9), kind, numbers)
    grid = lattice.LossGrid(round(0.01 * 2**lattice.SPACING), 25, 160)
    for side, k in itertools.product((0, 1), (0, 30, 90)):
        laws_of_run = (P, Q) if side == 0 else (Q, P)
        alpha = math.exp(0.01 * k)
        exact = max(
            sum(max(0.0, a - alpha * b) for a, b in zip(*(best(law, order, f) for law in laws_of_run), strict=True))
            for order in itertools.permutations(range(3))
        )
        assert exact <= part.value(grid, k, side) / 2**160 * (1 + 1e-12)
    mean = (f(1.0) - f(1 - 1e-7)) / 1e-7
    assert mean * (1 - 1e-5) <= part.mean <= mean * (1 + 1e-5)


def test_one_run_is_that_run() -> None:
    run = laws.LaplaceRound(Fraction(1, 2))
    numbers = {"trials": Fraction(1), "probability": Fraction(999, 1000)}
    part = combinators.BestRound([(run, 1)], Fraction(1, 10**9), "binomial", numbers)
    grid = lattice.LossGrid(round(0.01 * 2**lattice.SPACING), 25, 160)
    for k in (0, 20, 45):
        assert part.value(grid, k, 0) == pytest.approx(0.999 * run.value(grid, k, 0), rel=2e-3)


def test_a_document_with_a_selection_has_nearly_its_epsilon() -> None:
    document = {
        "pyaccount": 1,
        "name": "tuned",
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
        "phases": [
            {
                "select": {"kind": "geometric", "stopping_probability": 0.2},
                "phases": [
                    {"mechanism": {"kind": "gaussian", "sigma": 5}},
                    {"mechanism": {"kind": "laplace", "scale": 20}},
                ],
            }
        ],
    }
    certificate = json.loads(pyaccount.certify(document).to_json())
    found = verdict_of(certificate, 3.0)
    assert found["verdict"] in ("proven", "consistent")
    assert 0.9 <= found["proven"]["epsilon"] / certificate["guarantee"]["epsilon"] <= 1.01
