"""The blank at a mechanism's own noise, against closed forms."""

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.stats
from plain_documents import sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.errors import DocumentError

DELTA = 1e-6


def document(*phases: dict[str, Any], **privacy: Any) -> dict[str, Any]:
    target = {"adjacency": "zero-out", "epsilon": 1, "delta": DELTA} | privacy
    return {"pyaccount": 1, "name": "least noise", "privacy": target, "phases": list(phases)}


def solved(*phases: dict[str, Any], **privacy: Any) -> float:
    """Return the solved value, after checks of what the certificate says of it."""
    certificate = pyaccount.certify(document(*phases, **privacy))
    found = certificate.data.solved
    assert certificate.holds
    assert found is not None
    assert found.fails_at is not None
    assert found.fails_at < found.value <= found.fails_at * (1 + 2e-4)
    assert pyaccount.verify(certificate).agrees
    return float(found.value)


def least_gaussian(epsilon: float, delta: float) -> float:
    """Return the least σ of sensitivity 1 (Balle & Wang 2018, Theorem 8), by bisection in high precision."""
    with mp.workdps(40):

        def missed(sigma: mp.mpf) -> bool:
            a, b = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
            return bool(mp.ncdf(a) - mp.exp(epsilon) * mp.ncdf(b) > delta)

        low, high = mp.mpf("1e-3"), mp.mpf(1000)
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if missed(middle) else (low, middle)
        return float(high)


@pytest.mark.parametrize("sensitivity", [1.0, 1e-3, 1e6])
def test_gaussian_noise_is_that_of_the_analytic_mechanism(sensitivity: float) -> None:
    exact = sensitivity * least_gaussian(1.0, DELTA)
    found = solved({"mechanism": {"kind": "gaussian", "sigma": "solve", "sensitivity": sensitivity}})
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 2e-4)
    # Four runs are one with half of the noise.
    four = solved({"mechanism": {"kind": "gaussian", "sigma": "solve", "sensitivity": sensitivity}, "count": 4})
    assert 2 * exact * (1 - 1e-9) <= four <= 2 * exact * (1 + 2e-4)


def test_laplace_noise_for_a_pure_guarantee_is_the_total_sensitivity_over_epsilon() -> None:
    assert solved({"mechanism": {"kind": "laplace", "scale": "solve"}}, delta=0) == pytest.approx(1.0, rel=2e-4)
    several = {"mechanism": {"kind": "laplace", "scale": "solve", "sensitivity": 2, "moved": 3}, "count": 5}
    found = solved(several, delta=0, epsilon=0.5)
    assert 60.0 <= found <= 60.0 * (1 + 2e-4)
    group = solved({"mechanism": {"kind": "laplace", "scale": "solve"}}, delta=0, group_size=3)
    assert 3.0 <= group <= 3.0 * (1 + 2e-4)


def test_laplace_noise_with_a_delta_is_the_closed_form() -> None:
    # δ(ε) = 1 − e^((ε − 1/b)/2) for b ≤ 1/ε.
    exact = 1.0 / (1.0 - 2.0 * math.log1p(-0.01))
    found = solved({"mechanism": {"kind": "laplace", "scale": "solve"}}, delta=0.01)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 2e-4)


def test_discrete_laplace_noise_in_steps() -> None:
    # The loss of a shift by d steps is at most d/b, with b in steps.
    found = solved(
        {"mechanism": {"kind": "discrete-laplace", "scale": "solve", "step": 0.5, "sensitivity": 1.5}}, delta=0
    )
    assert 1.5 <= found <= 1.5 * (1 + 2e-4)
    # Of a shift by 1 with a δ: with u = e^(−1/b), the only losses are ±1/b, and δ(ε) = (1 − u e^ε)/(1 + u).
    delta = 0.05
    u = (1 - delta) / (math.e + delta)
    exact = -1 / math.log(u)
    found = solved({"mechanism": {"kind": "discrete-laplace", "scale": "solve"}}, delta=delta)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 2e-4)


def test_the_variance_of_skellam_noise_is_that_of_its_law() -> None:
    def delta(variance: float) -> float:
        x = np.arange(-300, 301)
        law = scipy.stats.skellam.pmf(x, variance / 2, variance / 2)
        return math.fsum(np.maximum(law[:-2] - math.e * law[2:], 0.0))

    # A shift by two steps of a half, with the noise of three parties.
    noise = {"kind": "skellam", "variance": "solve", "parties": 3, "step": 0.5}
    found = solved({"mechanism": noise}, delta=1e-5)
    total = 3 * found / 0.25
    assert delta(total) <= 1e-5 * (1 + 1e-9)
    assert delta(total * (1 - 4e-4)) > 1e-5


def test_noise_of_a_sampled_mechanism_is_that_of_its_map() -> None:
    """Removing a record: q·h(1 + (α − 1)/q), so that ε is the smaller one of ln(1 + (e^ε − 1)/q)."""
    q = 0.1
    inner = math.log1p(math.expm1(1.0) / q)
    sampled = {
        "mechanism": {"kind": "laplace", "scale": "solve"},
        "sampler": {"kind": "poisson", "sampling_probability": q},
    }
    found = solved(sampled, delta=0)
    assert 1 / inner * (1 - 1e-9) <= found <= 1 / inner * (1 + 2e-4)


def test_the_noise_beside_training() -> None:
    training = {"training": {"iterations": 1}, "sampler": {"kind": "none"}, "noise": {"multiplier": 6}}
    found = solved(training, {"mechanism": {"kind": "gaussian", "sigma": "solve"}})
    exact = (least_gaussian(1.0, DELTA) ** -2 - 6.0**-2) ** -0.5
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 4e-4)


def test_the_noise_inside_of_other_phases() -> None:
    """Of two disjoint parts the worst one counts; of a count on a sample, its map."""
    one = {"mechanism": {"kind": "laplace", "scale": "solve"}}
    parts = {"parallel": [{"name": "a", **one}, {"name": "b", "mechanism": {"kind": "laplace", "scale": 5}}]}
    assert 1.0 <= solved(parts, delta=0) <= 1.0 + 2e-4
    q = 0.1
    sample = {"sampler": {"kind": "poisson", "sampling_probability": q}, "phases": [one]}
    inner = math.log1p(math.expm1(1.0) / q)
    assert 1 / inner * (1 - 1e-9) <= solved(sample, delta=0) <= 1 / inner * (1 + 2e-4)


def test_plans_and_pages_name_the_blank() -> None:
    plan = pyaccount.compile(document({"name": "counts", "mechanism": {"kind": "laplace", "scale": "solve"}}))
    assert "the smallest phases[0].mechanism.scale with (1, 1e-6)-DP" in plan.to_text()
    assert "Lap(1, b) against Lap(0, b)" in plan.to_text()
    certificate = pyaccount.certify(document({"mechanism": {"kind": "gaussian", "sigma": "solve"}}))
    text = " ".join(certificate.to_text(200).split())
    assert "solved phases[0].mechanism.sigma = 4.224" in text
    assert "unit of the release; σ = 4.224" in text


@pytest.mark.parametrize(
    "phases",
    [
        [{"mechanism": {"kind": "discrete-gaussian", "sigma": "solve"}}],
        [{"mechanism": {"kind": "laplace", "scale": "solve"}}, {"mechanism": {"kind": "laplace", "scale": "solve"}}],
        [
                {"mechanism": {"kind": "stated", "epsilon": 2}},
                {"mechanism": {"kind": "gaussian", "sigma": "solve"}},
            ],
        [
                sectioned(participation_rate=0.01, iterations=20, sampler="b-min-sep", min_separation=4, multiplier=4),
                {"mechanism": {"kind": "laplace", "scale": "solve"}},
            ],
    ],
)  # fmt: skip
def test_what_cannot_be_solved_is_told_at_its_place(phases: list[dict[str, Any]], snapshot: Snapshot) -> None:
    with snapshot.raises(DocumentError) as raised:
        pyaccount.certify(document(*phases))
    (problem,) = raised.value.problems
    assert "noise: {scale: solve}" not in problem.message
