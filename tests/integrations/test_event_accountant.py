"""The accountant of events: the tests that dp_accounting has for every accountant, and its own accountants as oracles."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import dp_accounting as dp  # type: ignore[import-untyped]
import pytest
from dp_accounting import privacy_accountant_test as every_accountant
from dp_accounting.pld import PLDAccountant  # type: ignore[import-untyped]
from dp_accounting.rdp import RdpAccountant  # type: ignore[import-untyped]

import pyaccount
from pyaccount.integrations.dp_accounting import ADJACENCIES, EventAccountant

DELTA = 1e-5
G, L = dp.GaussianDpEvent, dp.LaplaceDpEvent
P, Many, All = dp.PoissonSampledDpEvent, dp.SelfComposedDpEvent, dp.ComposedDpEvent
ADD, ONE, ZERO = dp.NeighboringRelation


class TestEveryAccountant(every_accountant.PrivacyAccountantTest):  # type: ignore[misc]
    """What dp_accounting demands of its own accountants, unchanged."""

    def _make_test_accountants(self) -> Collection[Any]:
        return [EventAccountant(), *(EventAccountant(relation) for relation in dp.NeighboringRelation)]


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (Many(P(0.01, G(1.0)), 1000), ADD),
        (Many(P(0.02, G(0.8)), 100), ZERO),
        (All([G(2.0), Many(P(0.1, G(1.0)), 50), dp.NoOpDpEvent()]), ADD),
        (Many(G(3.0), 9), ONE),
        (All([L(2.0), G(4.0)]), ADD),
        (dp.RandomizedResponseDpEvent(0.5, 4), ONE),
    ],
)
def test_answers_are_those_of_distributions_and_at_most_those_of_divergences(event: Any, relation: Any) -> None:
    accountant = EventAccountant(relation).compose(event)
    other = PLDAccountant(relation).compose(event)
    certificate = pyaccount.certify(accountant.document() | {"privacy": privacy(relation)})
    epsilon = accountant.get_epsilon(DELTA)
    assert certificate.epsilon_lower <= epsilon <= certificate.epsilon * (1 + 1e-6)
    assert epsilon == pytest.approx(other.get_epsilon(DELTA), rel=1e-3)
    assert accountant.get_delta(0.3) == pytest.approx(other.get_delta(0.3), rel=1e-3)
    # For replaced records the other one takes the contribution of one record, and not of two (docs/embedding.md).
    if relation is not ONE and RdpAccountant(neighboring_relation=relation).supports(event):
        assert epsilon <= RdpAccountant(neighboring_relation=relation).compose(event).get_epsilon(DELTA)


def privacy(relation: Any) -> dict[str, Any]:
    return {"adjacency": ADJACENCIES[relation], "epsilon": "solve", "delta": DELTA}


def test_events_are_added_up_in_any_order_of_calls() -> None:
    step = P(0.01, G(1.0))
    accountants = [
        EventAccountant().compose(step, 1000).compose(G(5.0)),
        EventAccountant().compose(All([Many(step, 400), G(5.0), Many(Many(step, 300), 2)])),
        EventAccountant().compose(dp.NoOpDpEvent(), 10).compose(G(5.0)).compose(step, 1000).compose(P(0.0, G(1.0))),
    ]
    assert len({accountant.get_epsilon(DELTA) for accountant in accountants}) == 1
    assert accountants[0].ledger == All([Many(step, 1000), G(5.0)])
    assert [phase["training"]["iterations"] for phase in accountants[0].document()["phases"]] == [1000, 1]


def test_an_event_that_is_only_examined_is_not_counted() -> None:
    accountant = EventAccountant()
    for event in (P(0.01, G(1.0)), dp.NonPrivateDpEvent(), Many(G(1.0), 0)):
        assert accountant.supports(event)
    assert (accountant.get_epsilon(DELTA), accountant.get_delta(0.0)) == (0.0, 0.0)


@pytest.mark.parametrize("event", [G(0.0), P(0.1, G(0.0)), Many(L(0.0), 3)])
def test_without_noise_nothing_is_private(event: Any) -> None:
    accountant = EventAccountant().compose(G(1.0)).compose(event)
    assert (accountant.get_epsilon(0.5), accountant.get_delta(100.0)) == (math.inf, 1.0)


def test_the_ends_of_both_ranges() -> None:
    pure, not_pure = EventAccountant().compose(L(2.0)), EventAccountant().compose(G(2.0))
    assert pure.get_epsilon(0.0) == pytest.approx(0.5)
    assert pure.get_epsilon(1e-290) == pure.get_epsilon(0.0)
    assert pure.get_delta(math.inf) < 1e-270
    assert (not_pure.get_epsilon(0.0), not_pure.get_epsilon(1e-290), not_pure.get_epsilon(1.0)) == (
        math.inf,
        math.inf,
        0.0,
    )
    assert not_pure.get_delta(math.inf) < 1e-270
    for asked in (lambda: pure.get_epsilon(-0.1), lambda: pure.get_epsilon(math.nan), lambda: pure.get_delta(-1.0)):
        with pytest.raises(ValueError, match="must be"):
            asked()


def test_the_part_without_a_bound_is_named() -> None:
    wrong = dp.SampledWithoutReplacementDpEvent(100, 10, Many(G(1.0), 2))
    accountant = EventAccountant().compose(G(1.0))
    with pytest.raises(dp.UnsupportedEventError, match="one draw is used for several releases"):
        accountant.compose(All([G(1.0), wrong]))
    assert accountant.get_epsilon(DELTA) == EventAccountant().compose(G(1.0)).get_epsilon(DELTA)


def test_it_calibrates_noise() -> None:
    noise = dp.calibrate_dp_mechanism(
        EventAccountant, lambda noise: Many(P(0.01, G(noise)), 2000), 8.0, DELTA, tol=1e-4
    )
    exact = pyaccount.dp_sgd(epsilon=8, delta=DELTA, sampling_probability=0.01, iterations=2000).noise_multiplier
    assert exact is not None
    assert exact - 1e-4 <= noise <= exact + 2e-4
