"""Budgets of risk as targets: noise against closed forms from both sides, refusals, sampling, certificates."""

import copy
import json
import math
from statistics import NormalDist
from typing import Any

import pytest
from certificate_oracle import inconsistencies
from plain_documents import doc, sectioned
from scipy.optimize import brentq  # type: ignore[import-untyped]
from snapshots import Snapshot

import pyaccount
from pyaccount.certificate.reading import parse_certificate

NORMAL = NormalDist()
RATES = {"true_positive_rate": 0.05, "false_positive_rate": 0.01}


def document(risk: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return full batches, which are one Gaussian mechanism. Sections are replaced whole."""
    return (
        doc(
            "name=budget adjacency=add-remove iterations=9 sampler=none max_participations=9 multiplier=solve tolerance=1e-4",
            risk=risk,
        )
        | changes
    )


#: One round of Poisson sampling: the likelihood ratio is monotone, so every test has a closed form.
P = 0.2
ONE_ROUND = {"training": {"sampling_probability": P, "iterations": 1}, "sampler": {"kind": "poisson"}}


def advantage(sigma: float) -> float:
    return P * (2 * NORMAL.cdf(0.5 / sigma) - 1)


def rate(sigma: float, alpha: float) -> float:
    """Return the larger true-positive rate of a test for presence (at large y) and one for absence (at small y)."""
    presence = (1 - P) * alpha + P * NORMAL.cdf(NORMAL.inv_cdf(alpha) + 1 / sigma)

    def absent(y: float) -> float:
        return (1 - P) * NORMAL.cdf(y / sigma) + P * NORMAL.cdf((y - 1) / sigma)

    y = brentq(lambda y: absent(y) - alpha, -20 * sigma, 20 * sigma, xtol=1e-14)
    return max(presence, NORMAL.cdf(y / sigma))


def noise(measure: Any, limit: float) -> float:
    return float(brentq(lambda sigma: measure(sigma) - limit, 0.05, 50.0, xtol=1e-13))


FULL = [
    ({"advantage": 0.1}, 3 / (2 * NORMAL.inv_cdf(0.55))),
    (RATES, 3 / (NORMAL.inv_cdf(0.05) - NORMAL.inv_cdf(0.01))),
    ({"gaussian_mu": 0.5}, 6.0),
]
ONE = [
    ({"advantage": 0.1}, noise(advantage, 0.1)),
    ({"true_positive_rate": 0.03, "false_positive_rate": 0.01}, noise(lambda sigma: rate(sigma, 0.01), 0.03)),
    ({"true_positive_rate": 0.5, "false_positive_rate": 0.4}, noise(lambda sigma: rate(sigma, 0.4), 0.5)),
]


@pytest.mark.parametrize(
    ("risk", "changes", "exact"), [*((r, {}, s) for r, s in FULL), *((r, ONE_ROUND, s) for r, s in ONE)], ids=str
)
def test_the_least_noise_is_enclosed(risk: dict[str, Any], changes: dict[str, Any], exact: float) -> None:
    found = pyaccount.certify(document(risk, **changes))
    solved, block = found.data.solved, found.data.risk
    assert solved is not None
    assert block is not None
    assert solved.fails_at is not None
    assert solved.fails_at <= exact * (1 + 1e-9)
    assert exact * (1 - 1e-9) <= solved.value <= exact * (1 + 2e-4)
    assert block.value is not None
    assert block.value_lower <= block.value <= block.budget
    assert block.value_lower >= block.budget * (1 - 1e-3)
    # The guarantee states ε at the δ asked for.
    assert (block.epsilon, block.delta) == (found.epsilon, found.delta) == (found.epsilon, 1e-6)
    assert inconsistencies(found.data) == []
    # Slightly less noise misses the budget, and the sentence gives a lower bound on the risk.
    less = pyaccount.certify(document(risk, **changes, noise={"multiplier": solved.value * (1 - 1e-3)}))
    assert not less.holds
    assert "does not keep" in less.statement
    assert less.data.risk is not None
    assert less.data.risk.value_lower > less.data.risk.budget


def test_a_claim_that_holds_with_room_is_told_what_it_is() -> None:
    found = pyaccount.certify(document({"advantage": 0.3}, **ONE_ROUND, noise={"multiplier": 1.0}))
    assert found.holds
    assert found.data.risk is not None
    assert found.data.risk.value_lower <= advantage(1.0) <= (found.data.risk.value or 0.0)
    assert found.data.risk.value == pytest.approx(advantage(1.0), rel=1e-3)


def test_the_longest_run_that_keeps_a_budget() -> None:
    """n rounds of σ = 10 are N(√n/10, 1): with μ at most 0.55, 30 rounds are possible."""
    changes = sectioned(sampling_probability=1.0, iterations="solve", sampler="poisson", multiplier=10.0)
    found = pyaccount.certify(document({"gaussian_mu": 0.55}, **changes))
    assert found.data.solved is not None
    assert (found.data.solved.value, found.data.solved.fails_at) == (30, 31)


def test_more_of_the_batch_is_released_than_a_budget_leaves(snapshot: Snapshot) -> None:
    also = {"multiplier": "solve", "also": [{"what": "norms", "multiplier": 1.0}]}
    snapshot.raised(lambda: pyaccount.certify(document({"advantage": 0.01}, noise=also)))


def test_hardly_any_noise_keeps_a_loose_budget(snapshot: Snapshot) -> None:
    changes = {"training": {"sampling_probability": 1e-4, "iterations": 1}, "sampler": {"kind": "poisson"}}
    snapshot.raised(lambda: pyaccount.certify(document({"advantage": 0.5}, **changes)))


# ---- sampled

SAMPLED = sectioned(
    "participation_rate=0.1 iterations=6 sampler=b-min-sep min_separation=2 matrix=banded-square-root",
    "bands=2 seed=7 profile=[0.5]",
)


@pytest.mark.parametrize(("risk", "exact"), ONE[:2], ids=str)
def test_sampled_noise_keeps_the_budget_by_one_tested_point(risk: dict[str, Any], exact: float) -> None:
    """One round, by samples: σ is above the exact one by what a test and a single point of the profile cost."""
    changes = ONE_ROUND | {"accounting": {"method": "monte-carlo", "seed": 7, "tolerance": 0.02}}
    risk = risk | {"report_delta": 1e-3}
    found = pyaccount.certify(document(risk, **changes))
    guarantee, block = found.data.guarantee, found.data.risk
    assert found.holds
    assert guarantee.kind == "verified"
    assert block is not None
    assert exact <= (found.noise_multiplier or 0.0) <= 1.1 * exact
    alpha = risk.get("false_positive_rate", 0.0)
    assert math.exp(guarantee.epsilon) * alpha + guarantee.delta <= block.budget
    assert block.value is not None
    assert 0.999 * block.budget <= block.value <= block.budget
    # ε is stated at the δ asked for, not at the tested one.
    assert block.delta == 1e-3
    assert block.epsilon is not None
    assert block.epsilon_lower <= block.epsilon
    assert inconsistencies(found.data) == []
    assert pyaccount.verify(found)


def test_other_seeds_test_the_point_of_the_budget() -> None:
    found = pyaccount.certify(document(RATES | {"report_delta": 1e-3}, **SAMPLED))
    assert found.data.guarantee.kind == "verified"
    assert pyaccount.verify(found, seed=5)


def test_a_sampled_mu_is_refused_where_it_stands(snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.compile(document({"gaussian_mu": 0.5}, **SAMPLED)))


# ---- certificates

COMPOSED = pyaccount.certify(document({"advantage": 0.1}, **ONE_ROUND)).to_json()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("value", 0.02),
        ("value", 0.2),
        ("value", None),
        ("value_lower", 0.2),
        ("budget", 0.2),
        ("measure", "gaussian_mu"),
        ("false_positive_rate", 0.1),
        ("last_epsilon", 3.0),
        ("epsilon", 0.0),
        ("delta", 1e-3),
    ],
)
def test_a_block_that_was_changed_contradicts_the_rest(field: str, value: Any) -> None:
    changed = json.loads(COMPOSED)
    changed["risk"][field] = value
    data = parse_certificate(json.dumps(changed).encode(), "changed").certificate()
    assert any(one.path.startswith(("risk", "holds")) for one in inconsistencies(data))


def test_a_block_that_is_missing_or_too_much() -> None:
    without = json.loads(COMPOSED)
    block, without["risk"] = without["risk"], None
    assert "risk" in [
        one.path for one in inconsistencies(parse_certificate(json.dumps(without).encode(), "x").certificate())
    ]
    other = json.loads(pyaccount.certify(_plain()).to_json())
    assert other["risk"] is None
    other["risk"] = block
    assert "risk" in [
        one.path for one in inconsistencies(parse_certificate(json.dumps(other).encode(), "x").certificate())
    ]


def _plain() -> dict[str, Any]:
    plain = copy.deepcopy(document({}))
    plain["privacy"] = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6}
    plain["noise"] = {"multiplier": 5.0}
    return plain


def test_verifying_refutes_a_value_that_promises_more() -> None:
    """A value between the profile's lower end and the truth: only recomputing reveals it."""
    changed = json.loads(COMPOSED)
    changed["risk"]["value"] = changed["risk"]["value_lower"] = 0.0998
    stated = pyaccount.Certificate.from_json(json.dumps(changed))
    again = pyaccount.verify(stated)
    assert not again
    assert "risk.value" in [difference.path for difference in again.differences if not difference.agrees]


def test_every_form_tells_the_budget() -> None:
    found = pyaccount.Certificate.from_json(COMPOSED)
    for text in (found.to_markdown(), found.to_html()):
        assert "membership advantage" in text
        assert "risk budget" in text
    assert "every attack on it has a membership advantage of at most 0.09999" in found.statement


def test_an_accountant_takes_what_was_certified(snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.Accountant(document({"advantage": 0.1}, **ONE_ROUND, noise={"multiplier": 2.0})))
    found = pyaccount.Certificate.from_json(COMPOSED)
    accountant = pyaccount.Accountant.from_certificate(found)
    accountant.step()
    assert accountant.epsilon_spent() == pytest.approx(found.epsilon, rel=1e-3)


# ---- policies


def test_policies_limit_attacks_of_any_certificate(snapshot: Snapshot) -> None:
    budgeted, plain = pyaccount.Certificate.from_json(COMPOSED), pyaccount.certify(_plain())
    assert pyaccount.check(budgeted, max_advantage=0.1)
    assert not pyaccount.check(budgeted, max_advantage=0.09)
    # N(3/5, 1) against N(0, 1).
    exact = 2 * NORMAL.cdf(0.3) - 1
    assert pyaccount.check(plain, max_advantage=exact * 1.02)
    assert not pyaccount.check(plain, max_advantage=exact * 0.999)
    power = NORMAL.cdf(NORMAL.inv_cdf(0.01) + 0.6)
    assert pyaccount.check(plain, max_true_positive_rate=1.05 * power, at_false_positive_rate=0.01)
    assert not pyaccount.check(plain, max_true_positive_rate=0.999 * power, at_false_positive_rate=0.01)
    snapshot.raised(pyaccount.check, plain, max_true_positive_rate=0.1)
