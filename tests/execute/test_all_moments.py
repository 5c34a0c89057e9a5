"""All moments at once: against the closed form of a Gaussian mechanism, exact δ of small documents, and forged certificates."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from certificate_oracle import inconsistencies
from exact_documents import Truth
from gate_tools import save
from plain_documents import doc
from scipy.stats import norm

import pyaccount
from pyaccount.execute.sampling.all_moments import MOST, best_polynomial
from pyaccount.execute.sampling.moments import chernoff
from pyaccount.risk.polynomials import MomentPolynomial


def gaussian(mu: float, epsilon: float) -> float:
    """Return δ(ε) of N(μ, 1) against N(0, 1) (Balle & Wang 2018, Theorem 8)."""
    return float(norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2))


def moments_of(mu: float, most: int) -> list[tuple[float, float]]:
    """Return ln E f^k = k(k − 1)μ²/2."""
    return [(0.5 * k * (k - 1) * mu * mu,) * 2 for k in range(most + 1)]


@pytest.mark.parametrize("mu", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_all_moments_of_a_gaussian_mechanism_bound_it_and_better_than_each(mu: float, epsilon: float) -> None:
    logs, exact = moments_of(mu, MOST), gaussian(mu, epsilon)
    single = min(chernoff(m, logs[m][1], epsilon) for m in range(2, MOST + 1))
    found = best_polynomial(logs, epsilon)
    assert found is not None
    assert found.dominates
    assert exact <= found.bound(epsilon) < single
    # The same holds at every other ε.
    for other in (0.0, 0.05, 0.5, 1.5, 3.0, 6.0):
        assert gaussian(mu, other) <= found.bound(other) * (1.0 + 1e-12) + 1e-16


def test_the_bound_takes_the_end_that_is_worse_for_each_moment() -> None:
    epsilon, found = 1.0, best_polynomial(moments_of(0.5, 8), 1.0)
    assert found is not None
    assert min(found.coefficients) < 0.0
    for k in range(2, len(found.coefficients)):
        logs = enumerate(found.log_moments)
        wider = [(low - 1e-3, high + 1e-3) if at == k else (low, high) for at, (low, high) in logs]
        assert MomentPolynomial(found.coefficients, tuple(wider)).bound(epsilon) > found.bound(epsilon)


def test_nothing_is_found_where_moments_are_not_finite_or_too_few() -> None:
    assert best_polynomial([(0.0, 0.0), (0.0, 0.0), *((0.0, math.inf),) * 3], 1.0) is None
    assert best_polynomial(moments_of(0.5, 3), 1.0) is None
    assert best_polynomial((), 1.0) is None


DOCUMENT: dict[str, Any] = doc(
    "name='all moments' epsilon=1.5 delta=solve sampling_probability=0.1 iterations=4 sampler=b-min-sep",
    "min_separation=2 start=warm matrix=toeplitz coefficients=[1,0.6] multiplier=1.2 method=renyi seed=5",
    "profile=[0.5,2,3]",
)


@pytest.fixture(scope="module")
def certificate() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(pyaccount.certify(DOCUMENT, threads=1).to_json())
    return found


def test_a_certificate_has_the_polynomial_and_every_bound_is_above_the_truth(
    certificate: dict[str, Any], tmp_path: Path
) -> None:
    truth, moment = Truth(DOCUMENT, tmp_path), certificate["evidence"]["sampling"]["moment"]
    exact, m = truth.delta("remove", 1.5), moment["order"]
    assert exact <= moment["remove"] < 0.7 * chernoff(m, moment["log_moment"], 1.5)
    assert len(moment["polynomial"]["coefficients"]) > 4
    for point in certificate["directions"]["remove"]["profile"]:
        assert truth.delta("remove", point["epsilon"]) <= point["delta"]
    found = pyaccount.Certificate.from_json(json.dumps(certificate))
    assert "together, by a polynomial" in found.to_markdown()
    assert "together, by a polynomial" in found.to_html()
    assert pyaccount.check(save(tmp_path, certificate), max_epsilon=2, max_delta=1e-2).passes
    assert pyaccount.verify(save(tmp_path, certificate), threads=1).identical


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("coefficients", lambda values: [values[0] - 1e-3, *values[1:]]),
        ("coefficients", lambda values: values[:-1]),
        ("coefficients", lambda values: [0.999 * value for value in values]),
        ("log_moments_upper", lambda values: [*values[:-1], values[-1] + 1.0]),
        ("log_moments_upper", lambda values: [0.0, -0.1, *values[2:]]),
        ("log_moments_lower", lambda values: [0.0, 0.0, *(value + 1.0 for value in values[2:])]),
    ],
)
def test_a_polynomial_that_proves_less_is_a_contradiction(certificate: dict[str, Any], field: str, change: Any) -> None:
    forged = json.loads(json.dumps(certificate))
    polynomial = forged["evidence"]["sampling"]["moment"]["polynomial"]
    polynomial[field] = change(polynomial[field])
    found = inconsistencies(pyaccount.Certificate.from_json(json.dumps(forged)).data)
    assert any(one.path.startswith("evidence.sampling.moment") for one in found)


def test_a_claim_that_one_moment_misses_follows_from_all() -> None:
    single = pyaccount.certify({**DOCUMENT, "accounting": {**DOCUMENT["accounting"], "profile": []}}, threads=1)
    delta = single.data.guarantee.delta * 1.001
    privacy = {"adjacency": "zero-out", "epsilon": 1.5, "delta": delta}
    claimed = pyaccount.certify({**DOCUMENT, "privacy": privacy, "accounting": {"seed": 5, "profile": []}}, threads=1)
    assert claimed.data.guarantee.kind == "deterministic"
    assert claimed.data.evidence.sampling is not None
    assert claimed.data.evidence.sampling.moment is not None
    assert claimed.data.evidence.sampling.moment.polynomial is not None
