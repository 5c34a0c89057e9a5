"""Claims proven by moments, without samples: against enumeration, and cases that the theorem does not cover."""

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificate_oracle import inconsistencies
from exact_documents import Truth
from gate_tools import refused, save
from plain_documents import doc, with_changes
from sampled_tools import lower_toeplitz, renewal_law
from scipy.stats import norm

import pyaccount
from pyaccount import _core
from pyaccount.document.loading import load
from pyaccount.execute.sampling.all_moments import MOST, best_polynomial
from pyaccount.execute.sampling.moments import chernoff
from pyaccount.plan.compiling import compile_document
from pyaccount.risk.polynomials import MomentPolynomial


def document(**changes: Any) -> dict[str, Any]:
    """Return b-min-sep sampling of twelve rounds, whose claim is easy; `section__key=value` changes it."""
    raw: dict[str, Any] = doc(
        "name=moments epsilon=4 delta=2e-4 sampling_probability=0.05 iterations=12 sampler=b-min-sep",
        "min_separation=3 start=warm matrix=toeplitz coefficients=[1,0.5,0.3] multiplier=1.0 seed=5",
        "profile=[2,4]",
    )
    return with_changes(raw, changes)


def mechanism(raw: dict[str, Any]) -> Any:
    return compile_document(load(raw)).at().mechanism()


@pytest.mark.parametrize(
    ("n", "b", "p", "warm", "coefficients"),
    [(5, 2, 0.2, True, [0.8, 0.5]), (6, 3, 0.4, False, [0.9, 0.0, 0.4]), (4, 4, 0.1, True, [0.7, 0.4, 0.3, 0.2])],
)
def test_moments_are_those_of_all_tuples_of_patterns(
    n: int, b: int, p: float, warm: bool, coefficients: list[float]
) -> None:
    sampled = _core.Sampled.renewal(coefficients, n, b, p, warm)
    law = renewal_law(n, b, p, warm=warm)
    matrix = lower_toeplitz(np.array(coefficients), n)
    means, weights = np.array([matrix @ np.array(x) for x in law]), np.array(list(law.values()))
    for order in (2, 3):
        terms = [
            math.prod(weights[list(rows)])
            * math.exp(sum(means[i] @ means[j] for k, i in enumerate(rows) for j in rows[:k]))
            for rows in product(range(len(law)), repeat=order)
        ]
        exact = math.log(math.fsum(terms))
        lower, upper, _ = sampled.log_moment(order, threads=1, time_limit=None)
        assert exact <= upper * (1 + 1e-14) <= exact + 1e-3
        assert exact - 1e-9 <= lower <= exact * (1 + 1e-14)


@pytest.mark.parametrize(("p", "sigma", "start"), [(0.1, 1.0, "warm"), (0.5, 2.0, "cold"), (0.3, 0.7, "warm")])
def test_every_order_bounds_delta_from_above(p: float, sigma: float, start: str, tmp_path: Path) -> None:
    raw = document(
        training__sampling_probability=p,
        training__iterations=4,
        sampler__min_separation=2,
        sampler__start=start,
        matrix__coefficients=[1, 0.6],
        noise__multiplier=sigma,
    )
    truth, sampled = Truth(raw, tmp_path), mechanism(raw)
    moments = {order: sampled.core.log_moment(order, threads=1, time_limit=None)[1] for order in range(2, 7)}
    nearest = math.inf
    for epsilon in (0.5, 2.0, 5.0):
        exact = truth.delta("remove", epsilon)
        bounds = [chernoff(order, moment, epsilon) for order, moment in moments.items()]
        assert min(bounds) >= exact
        assert sampled.bounded("add", epsilon) >= truth.delta("add", epsilon)
        nearest = min(nearest, min(bounds) / exact)
    # The bound is not trivial.
    assert nearest < 8.0


def test_a_claim_that_a_moment_proves_has_a_lower_end() -> None:
    """δ is 5 % of the claim, and 1e-10: too small for samples of a scaled law, not for those of a power or a mixture."""
    data = pyaccount.certify(document(privacy__delta=3e-9, accounting__profile=[]), threads=1).data
    assert data.guarantee.kind == "deterministic"
    assert data.evidence.sampling is not None
    assert data.evidence.sampling.moment is not None
    assert 0.0 < data.guarantee.delta_lower < data.evidence.sampling.moment.remove
    assert 0.0 < data.guarantee.epsilon_lower < 4.0


def test_a_claim_that_follows_from_a_moment_is_proven_without_samples() -> None:
    certificate = pyaccount.certify(document(), threads=1)
    data, moment = certificate.data, certificate.data.evidence.sampling.moment
    assert data.holds
    assert data.guarantee.kind == "deterministic"
    assert data.evidence.sampling.tests == []
    assert moment is not None
    assert max(moment.remove, moment.add) <= 2e-4 < data.unamplified.epsilon
    assert {line.direction: line.contribution for line in data.evidence.error_budget} == {
        "remove": moment.remove,
        "add": moment.add,
    }
    for text in (certificate.to_markdown(), certificate.to_html(), str(certificate)):
        assert text
    assert "by a moment" in certificate.to_markdown()
    assert pyaccount.verify(certificate, threads=1).agrees


def test_what_a_moment_says_must_follow_from_it(tmp_path: Path) -> None:
    raw = json.loads(pyaccount.certify(document(), threads=1).to_json())

    def forged(key: str, value: float) -> dict[str, Any]:
        changed: dict[str, Any] = json.loads(json.dumps(raw))
        changed["evidence"]["sampling"]["moment"][key] = value
        return changed

    for key, value in {"log_moment": 9.0, "remove": 1e-9, "add": 3e-4, "most_busy": 63}.items():
        found = inconsistencies(pyaccount.Certificate.from_json(json.dumps(forged(key, value))).data)
        assert any(one.path.startswith("evidence.sampling.moment") for one in found), key
    # A smaller moment contradicts no other number: only recomputing reveals it.
    smaller = save(tmp_path, forged("log_moment", 0.9 * raw["evidence"]["sampling"]["moment"]["log_moment"]))
    assert pyaccount.check(smaller, max_epsilon=4, max_delta=1e-3).passes
    assert "evidence.sampling.moment.log_moment" in refused(pyaccount.verify(smaller, threads=1))


def test_samples_are_drawn_where_they_are_asked_for_or_no_moment_suffices() -> None:
    asked = pyaccount.certify(document(accounting={"seed": 5, "method": "monte-carlo", "profile": []}), threads=1)
    assert asked.data.guarantee.kind == "verified"
    assert asked.data.evidence.sampling.moment is None
    near = pyaccount.certify(document(privacy__delta=2e-9, privacy__epsilon=4.2, accounting={"seed": 5, "profile": []}))
    assert near.data.evidence.sampling.moment is not None


@pytest.mark.parametrize(
    "changes", [{"privacy__adjacency": "replace-one"}, {"matrix": {"kind": "blt", "scales": [0.3], "decays": [0.5]}}]
)
def test_what_has_no_chain_is_sampled(changes: dict[str, Any]) -> None:
    found = mechanism(document(**changes))
    assert "replace" in found.directions or found.core.replicas(2) is None


def test_rare_truncation_is_added_to_what_a_moment_proves() -> None:
    plain = pyaccount.certify(document(training={"dataset_size": 1000, "sampling_probability": 0.05, "iterations": 12}))
    rare = document(training={"dataset_size": 1000, "sampling_probability": 0.05, "iterations": 12})
    rare["sampler"]["truncate_to"] = 95
    found = pyaccount.certify(rare, threads=1).data.evidence.sampling.moment
    assert plain.data.evidence.sampling.moment is not None
    assert found is not None
    hit = mechanism(rare).rare_truncation.hit
    assert hit > 0.0
    assert found.remove >= plain.data.evidence.sampling.moment.remove + hit


# ---- All moments at once: against the closed form of a Gaussian mechanism, exact δ of small documents, and forged
# certificates


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
