"""Losses that are cut off: their probabilities, the divergences of the rest, and what adversaries make of them."""

import math

import numpy as np
import pytest
from adaptive_adversaries import Choice, excess, randomized_response, worst
from filter_samples import entry, gaussian, mechanism, poisson
from snapshots import Snapshot

import pyaccount
from pyaccount.filters.choosing import filter_for
from pyaccount.filters.cut import cut_costs
from pyaccount.filters.mixture import MixtureFilter, mixture_of
from pyaccount.filters.odometer import Odometer
from pyaccount.filters.renyi import divergences_of

ORDERS = (2.0, 4.0, 12.0, 24.0)


@pytest.mark.parametrize(("rate", "noise"), [(0.01, 1.0), (0.1, 2.0), (0.3, 1.5)])
@pytest.mark.parametrize("cut", [0.4, 1.1, 2.5])
def test_what_is_cut_and_what_is_left(rate: float, noise: float, cut: float) -> None:
    """By quadrature, for cuts within a few nodes: the law that is cut has its masses at nodes, on both sides of a loss."""
    *left, large = cut_costs(poisson(noise, rate), ORDERS, cut)
    y = np.arange(-30.0 * noise, 40.0 * noise, 1e-4)
    without = np.exp(-((y / noise) ** 2) / 2.0) / (noise * math.sqrt(2.0 * math.pi)) * 1e-4
    loss = np.log1p(rate * np.expm1((2.0 * y - 1.0) / (2.0 * noise**2)))
    removed = without * np.exp(loss)

    def beyond(most: float) -> float:
        return float(removed[loss > most].sum())

    def rest(order: float, most: float) -> float:
        """The larger of both directions. In direction add no loss is above −ln(1 − q), so that nothing is cut."""
        kept = removed[loss <= most] * np.exp((order - 1.0) * loss[loss <= most])
        added = without * np.exp((1.0 - order) * loss)
        return max(0.0, *(math.log(float(mean.sum())) / (order - 1.0) for mean in (kept, added)))

    assert beyond(cut * 1.05) <= large <= beyond(cut * 0.95)
    for order, bound in zip(ORDERS, left, strict=True):
        assert rest(order, cut * 0.95) <= bound <= rest(order, cut * 1.05) * (1.0 + 1e-3)


def test_nothing_is_cut_where_it_does_not_help(snapshot: Snapshot) -> None:
    for document in (
        gaussian(50.0),
        mechanism(kind="laplace", sensitivity=1, scale=20),
        mechanism(kind="stated", rho=0.1),
    ):
        *divergences, large = cut_costs(document, ORDERS, 5.0)
        assert large == 0.0
        assert divergences == pytest.approx(divergences_of(document, ORDERS), rel=1e-12)
    snapshot.raised(lambda: cut_costs(mechanism(kind="stated", renyi=[{"order": 3, "epsilon": 0.1}]), ORDERS, 1.0))


def test_an_entry_with_a_delta_pays_for_it() -> None:
    """(ε, δ) has a loss of ∞ with probability δ, which is cut off."""
    *divergences, large = cut_costs(mechanism(kind="stated", epsilon=0.3, delta=1e-4), ORDERS, 0.5)
    assert 1e-4 <= large <= 1.0001e-4
    pure = divergences_of(mechanism(kind="stated", epsilon=0.3), ORDERS)
    for bound, truth in zip(divergences, pure, strict=True):
        assert truth - 1e-4 <= bound <= truth * (1.0 + 1e-3)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("epsilon", "reserved"), [(0.5, 0.004), (0.8, 0.002), (1.2, 0.002)])
def test_no_strategy_of_depth_four_beats_a_filter_with_a_cut(epsilon: float, reserved: float, swapped: bool) -> None:
    """Large losses are rare, as under sampling: randomized response at 8 on a sample, and an entry with a δ."""
    delta = 0.02
    rule = MixtureFilter(epsilon, delta, Odometer((2.0, 4.0, 8.0), (0.5, 0.25, 0.25)), 0.9, reserved)
    rate = 0.001
    sampled = mechanism(kind="stated", epsilon=8.0).to_mapping()
    sampled["sampler"] = {"kind": "poisson", "sampling_probability": rate}
    p, q = randomized_response(8.0)
    mixed = tuple(rate * one + (1.0 - rate) * other for one, other in zip(p, q, strict=True))
    choices = [Choice(mixed, q, rule.cost(pyaccount.load(sampled)))]
    for one in (0.2, 0.5):
        choices.append(Choice(*randomized_response(one), rule.cost(mechanism(kind="stated", epsilon=one))))
    failing = 5e-4
    (likely, other), _ = randomized_response(0.1)
    rest = 1.0 - failing
    choices.append(
        Choice(
            (failing, rest * likely, rest * other, 0.0),
            (0.0, rest * other, rest * likely, failing),
            rule.cost(mechanism(kind="stated", epsilon=0.1, delta=failing)),
        )
    )
    if swapped:
        choices = [Choice(choice.q, choice.p, choice.cost) for choice in choices]
    reached = worst(rule, choices, 4, lambda _, loss: excess(epsilon)(loss), rule.admits)
    assert reserved / 4.0 < reached <= delta


def test_the_first_round_decides_whether_something_is_cut() -> None:
    rare = filter_for(poisson(1.0, 0.01), 1.0, 1e-5)
    assert isinstance(rare, MixtureFilter)
    assert rare.cut is not None
    assert rare.terms[-1] == "δ of large losses"
    assert mixture_of(rare.mapping()) == rare
    # Without a cut no round fits.
    plain = MixtureFilter(1.0, 1e-5, rare.odometer)
    assert not plain.admits(plain.nothing, plain.cost(poisson(1.0, 0.01, 10)))
    assert rare.admits(rare.nothing, rare.cost(poisson(1.0, 0.01, 80)))
    assert rare.stopped(rare.nothing, rare.cut_delta) == math.inf
    common = filter_for(entry(
        training={"iterations": 1, "sampling_probability": 0.1}, sampler={"kind": "poisson"}, noise={"multiplier": 2.0}
    ), 3.0, 1e-5)  # fmt: skip
    assert isinstance(common, MixtureFilter)
    assert common.cut is None


@pytest.mark.parametrize(("cut", "reserved"), [(None, 1e-6), (1.0, 0.0), (1.0, 1e-5)])
def test_the_part_of_delta_belongs_to_a_cut(cut: float | None, reserved: float, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: MixtureFilter(1.0, 1e-5, Odometer((2.0,), (1.0,)), cut, reserved))
