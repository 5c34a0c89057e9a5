"""Bounds of rounds are laws, and their hypotheses are checked: forgeries that were proven because one of them failed."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from normal_forms import form, gaussian, rounds
from normal_forms import judged as judged_form

from pyaccount.independent import combinators, composition, draws, lattice, laws
from pyaccount.independent.draws import discrete
from pyaccount.independent.lattice import NotCheckableError


def grid_of(h: float, digits: int, bits: int) -> lattice.LossGrid:
    return lattice.LossGrid(round(h * 2**lattice.SPACING), digits, bits)


GRID = grid_of(0.1, 25, 400)


def shift(sigma: float) -> Fraction:
    return 1 / Fraction(str(sigma)) ** 2


def judged(mechanism: dict[str, Any], epsilon: float, delta: float = 1e-5) -> dict[str, Any]:
    return judged_form(form(mechanism, "zero-out"), epsilon, delta, 2.0)


def displaced(eta: float, s: float, epsilon: float, direction: int) -> float:
    """Return H of the two data sets in which a record adds 1 and others −1, by a fine sum over the outputs."""
    y = np.linspace(-12, 2 * s + 12, 400_001)
    none, one, two = (np.exp(-((y - j * s) ** 2) / 2) / math.sqrt(2 * math.pi) for j in range(3))
    p, q = ((1 - eta) * none + eta * two, (1 - eta) * none + eta * one)[::direction]
    return float(np.sum(np.maximum(0.0, p - math.exp(epsilon) * q)) * (y[1] - y[0]))


@pytest.mark.parametrize("sigma", [0.08, 0.1, 0.14, 0.3, 0.7, 2.0])
@pytest.mark.parametrize("k", [0, 1, 10, 60])
def test_draws_that_displace_others_are_bounded_for_every_noise(sigma: float, k: int) -> None:
    eta = 0.01
    part = laws.Displaced({1: Fraction("0.01")}, Fraction(0), shift(sigma), zeroed=True, common=False)
    for side, direction in ((0, 1), (1, -1)):
        exact = displaced(eta, 1 / sigma, 0.1 * k, direction)
        reflected = 1 - math.exp(0.1 * k) + math.exp(0.1 * k) * displaced(eta, 1 / sigma, -0.1 * k, -direction)
        assert exact == pytest.approx(reflected, abs=1e-7)
        assert part.value(GRID, k, side) / 2**400 >= exact - 1e-7
        if k > 0 and side == 0:
            assert part.value(GRID, k, side) / 2**400 <= exact + 1e-7


@pytest.mark.parametrize(("kind", "sigma"), [("fixed-size", 0.14), ("with-replacement", 0.1)])
def test_little_noise_on_fixed_draws_proves_nothing_small(kind: str, sigma: float) -> None:
    found = judged(rounds({"kind": kind, "records": "1000", "size": "10"}, 1, str(sigma)), 0.1)
    assert found["verdict"] != "proven"


RUN = gaussian()


@pytest.mark.parametrize("kind", ["negative-binomial", "logarithmic"])
def test_a_number_of_runs_without_a_bound_is_not_checkable(kind: str) -> None:
    law = {"kind": kind, "stopping_probability": "0.5"} | ({"shape": "0.5"} if kind == "negative-binomial" else {})
    found = judged({"kind": "best", "of": RUN, "runs": law}, 0.01)
    assert found["verdict"] == "not checkable"
    assert kind in found["reason"]


def test_a_tiny_sample_of_a_mechanism_that_hides_nothing_has_its_probability_as_delta() -> None:
    """δ(1) of (500, 0) on a sample with probability q is q·(1 − e^−500·…), as it is for a mechanism that shows everything."""
    stated = {"kind": "guarantees", "points": [["500", "0"]], "steps": "1"}
    sample = {"draws": "records", "kind": "sample", "of": stated, "probability": "0.00001"}
    assert judged(sample, 1.0, 0.9e-5)["verdict"] != "proven"
    assert judged(sample, 1.0, 1.01e-5)["verdict"] == "proven"
    tiny = sample | {"probability": "0." + "0" * 69 + "1"}
    assert judged(tiny, 1.0, 0.9e-70)["verdict"] != "proven"


class Wrong(laws.Round):
    """A bound that is planted: values by loss."""

    symmetric = True

    def __init__(self, wrong: Callable[[float, float], float]) -> None:
        self.wrong, self.right = wrong, laws.LaplaceRound(Fraction(1))

    def value(self, grid: lattice.LossGrid, k: int, side: int) -> int:
        right = self.right.value(grid, k, side) / 2**grid.bits
        return int(self.wrong(k * grid.h, right) * 2**40) << (grid.bits - 40)


PLANTED: dict[str, Callable[[float, float], float]] = {
    "nothing at 0, as at a wrong threshold": lambda loss, right: 0.0 if loss == 0 else right,
    "negative, as with a mean that cancelled": lambda loss, right: -1e-3 * right,
    "nothing up to 1, more beyond": lambda loss, right: 0.0 if loss < 1 else 1e-3,
    "not convex": lambda loss, right: right / 2 if 0.3 < loss < 0.4 else right,
    "more than certain": lambda loss, right: -0.5,
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bound_that_is_no_law_is_refused(name: str) -> None:
    grid = grid_of(0.02, 12, 120)
    honest = composition.connected_laws([(Wrong(lambda loss, right: right), 1)], grid, 1.0, Fraction(1, 10**6), 1.0)
    assert honest[0][0].total() >= 10**12
    with pytest.raises(NotCheckableError, match="law"):
        composition.connected_laws([(Wrong(PLANTED[name]), 1)], grid, 1.0, Fraction(1, 10**6), 1.0)


class AsItWas(laws.Displaced):
    """The bound by the pair whose ratio was assumed to increase."""

    def value(self, grid: lattice.LossGrid, k: int, side: int) -> int:
        a, b = ((2, 1), (1, 2))[side]
        return laws.MixtureRound({a: self.eta}, shift(self.sigma), {b: self.eta}).value(grid, k, 0)


def test_a_pair_whose_ratio_does_not_increase_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    law = {1: Fraction(1, 100)}
    pair, turned = laws.MixtureRound({2: law[1]}, shift(0.1), law), laws.MixtureRound(law, shift(0.1), {2: law[1]})
    # For α ≥ 1 its signs change once, so that it is a half-line that counts.
    assert pair.value(GRID, 1, 0) / 2**400 == pytest.approx(displaced(0.01, 10, 0.1, 1), abs=1e-7)
    for part, side in ((pair, 1), (turned, 0)):
        with pytest.raises(NotCheckableError, match="increase"):
            part.value(GRID, 1, side)
    # Without the check of signs the bound is none of a law, or below what two data sets have.
    monkeypatch.setattr(laws, "sorted", list, raising=False)
    for sigma in (0.1, 0.14):
        part = AsItWas(law, Fraction(0), shift(sigma), zeroed=True, common=False)
        part.sigma = sigma
        with pytest.raises(NotCheckableError, match="law"):
            composition.connected_laws([(part, 1)], grid_of(0.02, 16, 160), 10.0, Fraction(1, 10**7), 1.0)


class Exchanged(laws.MixtureRound):
    """P and Q are exchanged on one side only."""

    def value(self, grid: lattice.LossGrid, k: int, side: int) -> int:
        return super().value(grid, k, 1)


class TooFar(laws.MixtureRound):
    """Thresholds are a little off, on the same side of the right one."""

    def between(self, loss: int, alpha: int, bits: int) -> tuple[int, int]:
        first, second = super().between(loss, alpha, bits)
        return first + (1 << bits - 5), second + (1 << bits - 5)


@pytest.mark.parametrize("kind", [Exchanged, TooFar])
def test_planted_pairs_are_refused(kind: type[laws.MixtureRound]) -> None:
    part = kind({1: Fraction(1, 10)}, Fraction(1))
    with pytest.raises(NotCheckableError, match=r"law|contradict"):
        composition.connected_laws([(part, 1)], grid_of(0.02, 16, 160), 10.0, Fraction(1, 10**7), 1.0)


def test_checks_of_laws_find_a_mean_of_runs_that_is_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    made = combinators.BestRound.__init__

    def negative(self: combinators.BestRound, *arguments: Any) -> None:
        made(self, *arguments)
        self.mean = -self.mean

    monkeypatch.setattr(combinators.BestRound, "__init__", negative)
    found = judged({"kind": "best", "of": RUN, "runs": {"kind": "geometric", "stopping_probability": "0.5"}}, 0.01)
    assert found["verdict"] == "not checkable"
    assert any(word in found["reason"] for word in ("law", "contradict"))


def test_masses_that_are_missing_or_too_many_are_refused() -> None:
    half, s = Fraction(1, 2), shift(1)
    for make in (
        lambda: laws.FiniteRound([(half, half), (half, Fraction(1, 4))]),
        lambda: laws.FiniteRound([(Fraction(3, 2), half), (-half, half)]),
        lambda: laws.MixtureRound({1: Fraction(3, 4), 2: half}, s),
        lambda: laws.MixtureRound({1: -half}, s),
        lambda: laws.Blend([(half, laws.LaplaceRound(half)), (Fraction(1, 4), laws.LaplaceRound(half))]),
        lambda: laws.Blend([(half, laws.LaplaceRound(half))]),
        lambda: draws.whole({1: half}, Fraction(1, 4)),
    ):
        with pytest.raises(NotCheckableError):
            make()
    assert discrete(Fraction(3), 1, laplace=False).value(GRID, 1, 0) > 0


@pytest.mark.parametrize("p", ["0.001", "0.3", "1"])
def test_binomial_draws_add_up_to_one(p: str) -> None:
    law, lost = draws.drawn(40, Fraction(p), Fraction(1, 10**30))
    exact = {j: math.comb(40, j) * Fraction(p) ** j * (1 - Fraction(p)) ** (40 - j) for j in range(1, 41)}
    assert all(exact[j] <= weight <= exact[j] + Fraction(1, 2**200) for j, weight in law.items())
    assert sum(each for j, each in exact.items() if j not in law) <= lost
