"""Below the probability that the loss is infinite no ε is finite, and the error says from which δ on one is."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from plain_documents import sectioned

import pyaccount
from pyaccount.errors import DocumentError
from pyaccount.execute.engine import Engine
from pyaccount.execute.group_lemma import group_lemma

STATED: dict[str, Any] = {"mechanism": {"kind": "stated", "epsilon": 0.1, "delta": 1e-6}, "count": 10}
GAUSSIAN: dict[str, Any] = {"mechanism": {"kind": "gaussian", "sigma": 10}}
DRAWN: dict[str, Any] = sectioned("dataset_size=1000 expected_batch_size=10 iterations=5 sampler=poisson multiplier=1")
#: The probability that one of ten losses is infinite.
TEN = 1 - (1 - Fraction(1, 10**6)) ** 10


def certified(*phases: dict[str, Any], **privacy: Any) -> Any:
    return pyaccount.certify(
        {"pyaccount": 1, "name": "infinite", "privacy": {"adjacency": "zero-out", **privacy}, "phases": list(phases)}
    )


def refused(*phases: dict[str, Any], **privacy: Any) -> Fraction:
    """Return the δ that the error names; check its place, its slug and that one δ is named throughout."""
    with pytest.raises(DocumentError) as raised:
        certified(*phases, **privacy)
    (problem,) = raised.value.problems
    assert problem.slug == "out-of-range"
    assert problem.path == ("privacy", "delta")
    assert problem.value == privacy["delta"]
    named = re.search(r"no ε is finite below δ = (\S+) \(rounded up\)", problem.message)
    assert named
    assert f"Give a delta of at least {named[1]}," in problem.message
    assert f"at least {named[1]} " in str(problem.allowed)
    return Fraction(Decimal(named[1]))


def nearly(named: Fraction, exact: Fraction) -> bool:
    """Whether a number is an upper bound on another, rounded to six digits."""
    return exact <= named <= exact * (1 + Fraction(1, 10**5))


@pytest.mark.parametrize("epsilon", ["solve", 2])
@pytest.mark.parametrize("beside", [(), (GAUSSIAN,), (DRAWN,)], ids=["alone", "gaussian", "drawn"])
def test_a_delta_below_the_mass_at_infinity_is_refused_and_the_least_delta_is_named(
    epsilon: Any, beside: tuple[dict[str, Any], ...]
) -> None:
    assert nearly(refused(STATED, *beside, epsilon=epsilon, delta=1e-6), TEN)


@pytest.mark.parametrize(
    "blank",
    [
        {"mechanism": {"kind": "gaussian", "sigma": "solve"}},
        {**DRAWN, "noise": {"multiplier": "solve"}},
        {**DRAWN, "training": {"dataset_size": 1000, "expected_batch_size": 10, "iterations": "solve"}},
    ],
    ids=["sigma", "multiplier", "iterations"],
)
def test_no_value_of_another_blank_is_blamed(blank: dict[str, Any]) -> None:
    assert nearly(refused(STATED, blank, epsilon=2, delta=1e-6), TEN)


def test_masses_of_several_kinds_and_of_the_best_of_several_points_are_joined() -> None:
    points = {"kind": "stated", "guarantees": [{"epsilon": 0.1, "delta": 1e-5}, {"epsilon": 1, "delta": 1e-7}]}
    exact = 1 - (1 - TEN) * (1 - Fraction(1, 10**7)) ** 3
    assert nearly(refused(STATED, {"mechanism": points, "count": 3}, epsilon="solve", delta=1e-6), exact)


def test_the_worst_of_disjoint_parts_counts() -> None:
    other = {"mechanism": {"kind": "stated", "epsilon": 0.1, "delta": 2e-6}, "count": 10}
    parts = {"parallel": [{"name": "a", "phases": [STATED]}, {"name": "b", "phases": [other]}]}
    exact = 1 - (1 - Fraction(2, 10**6)) ** 10
    assert nearly(refused(parts, epsilon="solve", delta=1e-6), exact)


def test_the_delta_that_is_named_has_a_finite_epsilon() -> None:
    named = float(refused(STATED, epsilon="solve", delta=1e-6))
    assert 0.9 < certified(STATED, epsilon="solve", delta=named).epsilon <= 1.0 + 1e-4
    # The last δ below the mass at infinity as a double is refused too, with the same advice.
    assert refused(STATED, epsilon="solve", delta=float(TEN) * (1 - 1e-9)) == refused(STATED, epsilon=2, delta=1e-6)


@pytest.mark.parametrize(("group", "delta"), [(50, 1e-6), (50, 1e-4), (3, 1e-5)])
def test_the_lemma_for_groups_stops_where_no_larger_epsilon_is_valid(
    group: int, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = pyaccount.load({
        **{"pyaccount": 1, "name": "infinite", "phases": [STATED]},
        "privacy": {"adjacency": "zero-out", "group_size": group, "epsilon": "solve", "delta": delta},
    })  # fmt: skip
    asked, ask = [], Engine.ask
    monkeypatch.setattr(Engine, "ask", lambda engine, *one: asked.append(one) or ask(engine, *one))  # type: ignore[func-returns-value]
    # A valid ε has δ₁(ε)·Σ e^{iε} ≤ δ, and there is none. Beyond the ten losses δ₁ no longer falls, but the sum grows.
    for epsilon in (k / 1000 for k in range(1200)):
        assert _ten_answers(epsilon) * sum(math.exp(i * epsilon) for i in range(group)) > delta
    assert group_lemma(document, Engine(threads=1), delta).epsilon is None
    assert len(asked) < 60


def _ten_answers(epsilon: float) -> float:
    """Return δ of ten answers with a loss of ±0.1 each, and of 1e-6 that tells the data sets apart."""
    truth = math.exp(0.1) / (1.0 + math.exp(0.1))
    finite = sum(
        math.comb(10, k) * truth**k * (1.0 - truth) ** (10 - k) * max(0.0, -math.expm1(epsilon - 0.1 * (2 * k - 10)))
        for k in range(11)
    )
    return float(TEN) + (1.0 - 1e-6) ** 10 * finite


@pytest.mark.parametrize("delta", [3e-4, 0.01, 0.4])
def test_a_sample_over_phases_that_fail_and_lose_nothing_else_fails_as_often(delta: float) -> None:
    stated = {"mechanism": {"kind": "stated", "epsilon": 0, "delta": delta}}
    phase = {"sampler": {"kind": "poisson", "sampling_probability": 0.1}, "phases": [stated, stated]}
    for epsilon in (0.0, 0.5, 3.0):
        guarantee = certified(phase, epsilon=epsilon, delta="solve").data.guarantee
        exact = 0.1 * (1 - (1 - delta) ** 2)
        assert exact * (1 - 1e-3) <= guarantee.delta_lower <= exact * (1 + 1e-12)
        assert exact * (1 - 1e-12) <= guarantee.delta <= exact * (1 + 1e-3)
