"""Bounds of rounds are laws, and their hypotheses are checked: forgeries that were proven because one of them failed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyaccount.independent import draws, kinds, lattice, proof, rounds, selection
from pyaccount.independent.derived import discrete_gaussian, rounded_root
from pyaccount.independent.shapes import NotCheckableError
from pyaccount.independent.verdict import check, parsed

GRID = lattice.LossGrid(lattice.spacing_of(0.1), 25, 400)


def shift(sigma: float) -> Callable[[int], int]:
    return rounded_root(1 / Fraction(str(sigma)) ** 2)


def judged(document: dict[str, Any], epsilon: float, delta: float = 1e-5) -> dict[str, Any]:
    privacy = {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5}
    whole = {"pyaccount": 1, "name": "forged", "privacy": privacy, **document}
    claim = {"name": "forged", "document": whole, "guarantee": {"epsilon": epsilon, "delta": delta}}
    return check(parsed(json.dumps(claim)), 2.0)


def displaced(eta: float, s: float, epsilon: float, direction: int) -> float:
    """Return H of the two data sets in which a record adds 1 and others −1, by a fine sum over the outputs."""
    y = np.linspace(-12, 2 * s + 12, 400_001)
    none, one, two = (np.exp(-((y - j * s) ** 2) / 2) / math.sqrt(2 * math.pi) for j in range(3))
    p, q = ((1 - eta) * none + eta * two, (1 - eta) * none + eta * one)[::direction]
    return float(np.sum(np.maximum(0.0, p - math.exp(epsilon) * q)) * (y[1] - y[0]))


@pytest.mark.parametrize("sigma", [0.08, 0.1, 0.14, 0.3, 0.7, 2.0])
@pytest.mark.parametrize("k", [-3, 0, 1, 10, 60])
def test_draws_that_displace_others_are_bounded_for_every_noise(sigma: float, k: int) -> None:
    eta = 0.01
    part = draws.DisplacingDraws({1: Fraction("0.01")}, Fraction(0), shift(sigma), zeroed=True, common=False)
    for direction in (1, -1):
        exact = displaced(eta, 1 / sigma, 0.1 * k, direction)
        reflected = 1 - math.exp(0.1 * k) + math.exp(0.1 * k) * displaced(eta, 1 / sigma, -0.1 * k, -direction)
        assert exact == pytest.approx(reflected, abs=1e-7)
    # `value` is about the direction *remove*, in which the record's draws go twice as far.
    exact = displaced(eta, 1 / sigma, 0.1 * k, 1)
    assert part.value(GRID, k) / 2**400 >= exact - 1e-7
    if k > 0:
        assert part.value(GRID, k) / 2**400 <= exact + 1e-7


@pytest.mark.parametrize("kind", ["fixed-size", "with-replacement"])
@pytest.mark.parametrize("sigma", [0.1, 0.14])
def test_little_noise_on_fixed_draws_proves_nothing_small(kind: str, sigma: float) -> None:
    training = {"dataset_size": 1000, "expected_batch_size": 10, "iterations": 1}
    found = judged({"training": training, "sampler": {"kind": kind}, "noise": {"multiplier": sigma}}, 0.1)
    assert found["verdict"] != "proven"


RUN = {"mechanism": {"kind": "gaussian", "sigma": 4}}


@pytest.mark.parametrize(
    "law",
    [
        {"kind": "negative-binomial", "stopping_probability": 0.5, "shape": 1e-40},
        {"kind": "geometric", "stopping_probability": 1},
        {"kind": "logarithmic", "stopping_probability": 1},
    ],
    ids=lambda law: law["kind"],
)
def test_a_number_of_runs_that_digits_do_not_resolve_is_not_checkable(law: dict[str, Any]) -> None:
    assert judged({"phases": [{"select": law, "phases": [RUN]}]}, 0.01)["verdict"] == "not checkable"


def test_the_mean_number_of_runs_is_at_least_one() -> None:
    law = {"stopping_probability": Fraction(1, 2), "shape": Fraction(1, 10**40)}
    with pytest.raises(NotCheckableError, match="mean"):
        selection.SelectedRound(lambda grid: (_ for _ in ()).throw(AssertionError), "negative-binomial", law)._mean(100)


def test_a_tiny_sample_of_a_mechanism_that_hides_nothing_has_its_probability_as_delta() -> None:
    """δ(1) of (500, 0) on a sample with probability q is q·(1 − e^−500·…), as it is for a mechanism that shows everything."""
    body = {
        "sampler": {"kind": "poisson", "sampling_probability": 1e-70},
        "mechanism": {"kind": "stated", "epsilon": 500},
    }
    assert judged({"phases": [body]}, 1.0, 0.9e-70)["verdict"] != "proven"
    assert judged({"phases": [body]}, 1.0, 1.01e-70)["verdict"] == "proven"


class Wrong(rounds.Round):
    """A bound that is planted: values by loss, and a pair that may beat it."""

    def __init__(self, wrong: Callable[[float, float], float], *, symmetric: bool = True) -> None:
        self.wrong, self.symmetric = wrong, symmetric
        self.right = kinds.LaplaceRound(Fraction(1))

    def value(self, grid: lattice.LossGrid, k: int) -> int:
        loss = k * grid.spacing / 2**lattice.SPACING_BITS
        right = self.right.value(grid, k) / 2**grid.bits if k >= 0 else 1 - math.exp((loss - 1) / 2)
        return int(self.wrong(loss, right) * 2**40) << (grid.bits - 40)


PLANTED: dict[str, Callable[[float, float], float]] = {
    "nothing at 0, as at a wrong threshold": lambda loss, right: 0.0 if loss == 0 else right,
    "negative, as with a mean that cancelled": lambda loss, right: -1e-3 * right,
    "nothing up to 1, more beyond": lambda loss, right: 0.0 if loss < 1 else 1e-3,
    "not convex": lambda loss, right: right / 2 if 0.3 < loss < 0.4 else right,
    "more than certain": lambda loss, right: -0.5,
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bound_that_is_no_law_is_refused(name: str) -> None:
    grid = lattice.LossGrid(lattice.spacing_of(0.02), 12, 120)
    honest = proof._compose([(Wrong(lambda loss, right: right), 1)], grid, 1.0, Fraction(1, 10**6), 1.0)
    assert honest[0].total() >= 10**12
    with pytest.raises(NotCheckableError, match="law"):
        proof._compose([(Wrong(PLANTED[name]), 1)], grid, 1.0, Fraction(1, 10**6), 1.0)


class AsItWas(draws.DisplacingDraws):
    """The bound by the pair whose ratio was assumed to increase."""

    def _pair(self, j: int, alpha: int, beta: int, grid: lattice.LossGrid) -> int:
        pair = rounds.MixtureRound({2 * j: self.eta}, self.shift, {j: self.eta})
        pair.increasing = True
        wanted = (1 << grid.bits) + int(self.eta * (alpha - (1 << grid.bits)))
        return int(min(pair.at(wanted, grid) / self.eta, 1 << grid.bits))


def test_checks_of_laws_find_the_pair_whose_ratio_does_not_increase() -> None:
    law = {1: Fraction(1, 100)}
    with pytest.raises(NotCheckableError, match="increase"):
        rounds.MixtureRound({2: law[1]}, shift(0.1), {1: law[1]}).value(GRID, 1)
    grid = lattice.LossGrid(lattice.spacing_of(0.02), 16, 160)
    for sigma in (0.1, 0.14):
        part = AsItWas(law, Fraction(0), shift(sigma), zeroed=True, common=False)
        with pytest.raises(NotCheckableError, match="not that of a law"):
            proof._compose([(part, 1)], grid, 10.0, Fraction(1, 10**7), 1.0)


def test_checks_of_laws_find_a_mean_of_runs_that_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection.SelectedRound, "_mean", lambda self, bits: -(1 << bits))
    found = judged({"phases": [{"select": {"kind": "geometric", "stopping_probability": 0.5}, "phases": [RUN]}]}, 0.01)
    assert found["verdict"] == "not checkable"
    assert "law" in found["reason"]


def test_masses_that_are_missing_or_too_many_are_refused() -> None:
    half, s = Fraction(1, 2), shift(1)
    for make in (
        lambda: kinds.Atoms([(half, half), (half, Fraction(1, 4))]),
        lambda: kinds.Atoms([(Fraction(3, 2), half), (-half, half)]),
        lambda: rounds.MixtureRound({1: Fraction(3, 4), 2: half}, s),
        lambda: rounds.MixtureRound({1: -half}, s),
        lambda: rounds.CountedRound({0: half, 1: Fraction(1, 4)}, Fraction(1)),
        lambda: draws.Blend([(half, kinds.LaplaceRound(half))], rounds.MixtureRound({1: half}, s)),
        lambda: draws._whole({1: half}, Fraction(1, 4)),
    ):
        with pytest.raises(NotCheckableError):
            make()
    assert discrete_gaussian(Fraction(3), 1).value(GRID, 1) > 0


@pytest.mark.parametrize("p", ["0.001", "0.3", "1"])
def test_binomial_draws_add_up_to_one(p: str) -> None:
    law, lost = draws.binomial(40, Fraction(p), Fraction(1, 10**30))
    exact = {j: math.comb(40, j) * Fraction(p) ** j * (1 - Fraction(p)) ** (40 - j) for j in range(1, 41)}
    assert all(exact[j] <= weight <= exact[j] + Fraction(1, 2**200) for j, weight in law.items())
    assert sum(each for j, each in exact.items() if j not in law) <= lost
