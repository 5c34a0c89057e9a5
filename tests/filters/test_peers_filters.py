"""OpenDP's filters, fed with the same mechanisms in the same order: ours never admit fewer."""

import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from filter_samples import gaussian

import pyaccount
from pyaccount.document.document import Document
from pyaccount.filters import BasicFilter, ConcentratedFilter, Filter, GaussianFilter
from pyaccount.filters.choosing import filter_for

#: Noise multipliers in an order in which some fit after others did not.
NOISES = (4.0, 3.0, 7.0, 2.0, 10.0, 5.0, 5.0, 20.0, 3.0, 30.0, 8.0, 100.0)


#: OpenDP. It imports scikit-learn, for which only who runs these tests waits.
dp: Any = None


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    """OpenDP's switches for what is not vetted, and for users who follow its rules."""
    global dp  # noqa: PLW0603 - a module that is imported late
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("contrib", "honest-but-curious")


def admitted_by_opendp(measure: Any, budget: Any, made: Any) -> int:
    """How many of the mechanisms OpenDP's filter releases. After its first refusal it releases nothing more."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    odometer = dp.c.make_fully_adaptive_composition(*space, output_measure=measure)
    queryable = dp.c.make_privacy_filter(odometer, d_in=1.0, d_out=budget)([0.0])
    for count, noise in enumerate(NOISES):
        mechanism = made(*space, noise)
        try:
            queryable(mechanism)
        except dp.OpenDPException:
            return count
    raise AssertionError("the budget is too large to compare anything")


def admitted(rule: Filter, entry: Callable[[float], Document] = gaussian) -> tuple[int, int]:
    """How many of the mechanisms a filter of this package releases before its first refusal, and in all."""
    spent, answers = rule.nothing, []
    for noise in NOISES:
        cost = rule.cost(entry(noise))
        answers.append(rule.admits(spent, cost))
        if answers[-1]:
            spent = rule.after(spent, cost)
    return answers.index(False), sum(answers)


def gaussian_noise(domain: Any, metric: Any, noise: float) -> Any:
    return dp.m.make_gaussian(domain, metric, scale=noise)


@pytest.mark.parametrize("rho", [0.05, 0.1, 0.125, 0.3])
def test_zcdp(rho: float) -> None:
    theirs = admitted_by_opendp(dp.zero_concentrated_divergence(), rho, gaussian_noise)
    # The Gaussian filter is the same sum, and promises the exact curve of the Gaussian mechanism beyond it.
    for rule in (ConcentratedFilter(rho), GaussianFilter(math.sqrt(2.0 * rho) * (1.0 + 1e-15))):
        first, total = admitted(rule)
        assert first == theirs
        assert total >= theirs  # what is small enough still fits after a refusal


def converted(noise: float) -> Any:
    """A Gaussian mechanism with OpenDP's curve of (ε, δ)."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    return dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=noise))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.5, 1e-6), (2.0, 1e-5), (3.0, 1e-9)])
def test_one_epsilon_and_delta(epsilon: float, delta: float) -> None:
    """OpenDP keeps (ε, δ) by the largest ρ whose curve keeps it: that of the least noise of one release."""
    low, high = 0.01, 1000.0
    for _ in range(60):
        noise = math.sqrt(low * high)
        low, high = (low, noise) if converted(noise).map(1.0).epsilon(delta) <= epsilon else (noise, high)
    theirs = admitted_by_opendp(dp.zero_concentrated_divergence(), 0.5 / high**2, gaussian_noise)
    first, _ = admitted(filter_for(gaussian(4.0), epsilon, delta))
    assert first >= theirs > 0


def test_sums_of_epsilon_and_delta() -> None:
    """Each release at the same δ: OpenDP's ε comes from its zCDP curve, ours from the exact profile."""
    rule = BasicFilter(4.0, 1e-6)

    def fixed(domain: Any, metric: Any, noise: float) -> Any:
        del domain, metric
        return dp.c.make_fix_delta(converted(noise), 1e-7)

    theirs = admitted_by_opendp(dp.approximate(dp.max_divergence()), (4.0, 1e-6), fixed)

    def exact(noise: float) -> Document:
        document = gaussian(noise).to_mapping()
        document["privacy"]["delta"] = 1e-7
        return pyaccount.load(document)

    for noise in NOISES:
        assert rule.cost(exact(noise))[0] <= fixed(None, None, noise).map(1.0)[0]
    first, _ = admitted(rule, exact)
    assert first >= theirs > 0
