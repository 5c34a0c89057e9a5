"""Privacy loss distributions of dp_accounting, read and written: every δ is at least that of the other side, and hardly more."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from adapter_samples import DELTA, only_problem
from dp_accounting.pld import privacy_loss_distribution as pld  # type: ignore[import-untyped]
from plain_documents import doc
from scipy.stats import norm
from snapshots import Snapshot

import pyaccount
from pyaccount.adapters.dp_accounting_distributions import from_distribution, to_distribution

MADE = pld.PrivacyLossDistribution.create_from_rounded_probability


@functools.cache
def gaussian(sampling_probability: float = 1.0) -> Any:
    """Return the distribution of a Gaussian mechanism; only the process that needs it makes it."""
    return pld.from_gaussian_mechanism(1.0, sampling_prob=sampling_probability)


#: The losses 0.5, −0.5 and ∞ of the worst mechanism with (0.5, 1e-3).
FEW = {5: 0.999 * math.exp(0.5) / (1 + math.exp(0.5)), -5: 0.999 / (1 + math.exp(0.5))}


def read(distribution: Any, **head: Any) -> dict[str, Any]:
    return from_distribution(distribution, **{"adjacency": "add-remove", "delta": DELTA, **head})


def stated(distribution: Any) -> list[tuple[float, float]]:
    return [(each["epsilon"], each["delta"]) for each in read(distribution)["mechanism"]["guarantees"]]


@pytest.mark.parametrize(
    "made",
    [
        gaussian,
        lambda: gaussian(0.01),
        lambda: gaussian(0.01).self_compose(1000),
        lambda: pld.from_laplace_mechanism(1.0),
        lambda: pld.from_discrete_laplace_mechanism(0.5, 2),
        lambda: pld.from_randomized_response(0.5, 4),
        lambda: MADE(FEW, 1e-3, 0.1),
    ],
    ids=["Gaussian", "sampled", "many sampled", "Laplace", "discrete Laplace", "responses", "few"],
)
def test_the_points_that_are_read_are_those_of_the_distribution_from_above(made: Callable[[], Any]) -> None:
    distribution = made()
    points = stated(distribution)
    assert points[0][0] == 0.0
    for epsilon, delta in [*points[:: 1 + len(points) // 200], points[-1]]:
        # Each ε was rounded up; and compositions of dp_accounting have masses below 0, which are read as 0.
        assert delta >= distribution.get_delta_for_epsilon(epsilon)
        assert delta <= distribution.get_delta_for_epsilon(epsilon * (1 - 1e-13)) * (1 + 1e-9) + 1e-12


def test_a_gaussian_mechanism_comes_back_with_its_epsilon() -> None:
    exact = float(norm.cdf(-0.5) - math.e * norm.cdf(-1.5))
    assert exact <= pyaccount.certify(read(gaussian(), delta="solve", epsilon=1.0)).delta <= exact * 1.001
    # Four runs are one with half of the noise.
    certificate = pyaccount.certify(read(gaussian(), delta="solve", epsilon=1.0) | {"count": 4})
    exact = float(norm.cdf(1 - 0.5) - math.e * norm.cdf(-1 - 0.5))
    assert exact <= certificate.delta <= exact * 1.001


def test_a_distribution_of_many_rounds_composes_with_other_phases() -> None:
    many = {"mechanism": read(gaussian(0.01).self_compose(1000))["mechanism"]}
    run = {key: CASES["sampled"][key] for key in ("training", "sampler", "noise")}
    exact, read_back = (
        pyaccount.certify(doc(phases=[one, {"mechanism": {"kind": "gaussian", "sigma": 4}}])) for one in (run, many)
    )
    assert exact.epsilon_lower <= read_back.epsilon <= exact.epsilon * 1.001


def test_nothing_released_is_read_as_that() -> None:
    assert stated(pld.identity()) == [(0.0, 0.0)]
    assert stated(MADE({7: 1.0}, 0.0, 0.1))[0] == pytest.approx((0.0, -math.expm1(-0.7)))


def test_mass_at_infinity_is_kept() -> None:
    assert stated(MADE(FEW, 1e-3, 0.1))[-1][1] == pytest.approx(1e-3, rel=1e-12)
    certificate = pyaccount.certify(read(MADE(FEW, 1e-3, 0.1), delta=0.01))
    assert certificate.epsilon <= 0.5
    with pytest.raises(pyaccount.DocumentError, match="no ε is finite below"):
        pyaccount.certify(read(MADE(FEW, 1e-3, 0.1), delta=1e-4))


def test_mass_that_rounding_lost_counts_as_an_infinite_loss() -> None:
    lost = 5e-10
    points = stated(MADE({5: FEW[5], -5: FEW[-5] - lost}, 1e-3, 0.1))
    assert points[-1][1] == pytest.approx(1e-3 + lost, rel=1e-9)
    assert all(delta >= 1e-3 + lost * (1 - 1e-6) for _, delta in points)


def test_what_proves_nothing_is_refused(snapshot: Snapshot) -> None:
    snapshot.raised(read, pld.from_gaussian_mechanism(1.0, pessimistic_estimate=False))
    snapshot.raised(read, MADE({5: 0.5, -5: 0.4}, 0.0, 0.1))
    snapshot.raised(read, {5: 0.5})
    assert only_problem(read, object()).slug == "wrong-type"


CASES: dict[str, dict[str, Any]] = {
    "sampled": doc("sampler=poisson multiplier=1 sampling_probability=0.01 iterations=1000"),
    "every record": doc("sampler=none multiplier=1 iterations=1"),
    "pure": doc("sampler=none noise=laplace multiplier=1 iterations=1"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_distribution_that_is_written_bounds_the_profile_everywhere(name: str) -> None:
    certificate = pyaccount.certify(CASES[name])
    written = to_distribution(certificate)
    for point in certificate.profile:
        assert written.get_delta_for_epsilon(point.epsilon) >= point.delta_lower
        assert written.get_delta_for_epsilon(point.epsilon) <= point.delta * (1 + 1e-5) + 1e-11
    # Random points in both directions of e^ε, against bounds that are computed for each of them.
    for epsilon in np.random.default_rng(1).uniform(0.0, 6.0, 40):
        assert written.get_delta_for_epsilon(float(epsilon)) >= certificate.profile.delta(float(epsilon)).lower
    assert certificate.epsilon_lower <= written.get_epsilon_for_delta(DELTA) <= certificate.epsilon * 1.001


def test_directions_that_differ_are_written_each() -> None:
    written = to_distribution(pyaccount.certify(CASES["sampled"]))
    remove, add = (one.get_delta_for_epsilon(1.0) for one in (written._pmf_remove, written._pmf_add))
    assert add < remove / 2
    # The masses of a distribution and the tails beyond them are the whole of it, in both directions.
    for one in (written._pmf_remove, written._pmf_add):
        dense = one.to_dense_pmf()
        assert dense._probs.min() > -1e-12
        assert math.fsum(dense._probs) + one._infinity_mass == pytest.approx(1.0, abs=1e-9)


def test_more_points_compose_to_less() -> None:
    profile = [round(0.02 * k, 2) for k in range(301)]
    written = [
        to_distribution(pyaccount.certify(CASES["sampled"] | more))
        for more in ({}, {"accounting": {"profile": profile}})
    ]
    coarse, fine = (one.self_compose(4).get_epsilon_for_delta(DELTA) for one in written)
    exact = pyaccount.certify(CASES["sampled"] | {"training": {"sampling_probability": 0.01, "iterations": 4000}})
    assert exact.epsilon_lower <= fine <= coarse
    assert fine <= exact.epsilon * 1.001
    assert coarse <= exact.epsilon * 1.01


def test_a_distribution_comes_back_from_dp_accounting() -> None:
    certificate = pyaccount.certify(CASES["sampled"])
    again = pyaccount.certify(read(to_distribution(certificate)))
    assert certificate.epsilon_lower <= again.epsilon <= certificate.epsilon * 1.001


def test_what_no_distribution_states_is_not_written(snapshot: Snapshot) -> None:
    guessed = doc(mechanism={"kind": "stated", "epsilon": 1, "failure_probability": 1e-6}, delta=DELTA)
    snapshot.raised(to_distribution, pyaccount.certify(guessed))
    snapshot.raised(to_distribution, pyaccount.certify(CASES["pure"]), interval=1e-6)
