"""The accountant for Flower's strategies, beside Flower's own."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from scipy.stats import norm

from pyaccount import certify
from pyaccount.errors import DocumentError, StateError

serverapp = pytest.importorskip("flwr.serverapp", reason="Flower is not installed: its accountant is NOT tested here")

from flwr.supercore.privacy_accounting import NeighboringRelation, SamplingMethod  # noqa: E402 - after the skip

from pyaccount.integrations.flower_accountant import FlowerAccountant  # noqa: E402

DELTA, CLIENTS = 1e-5, 1000
RELATIONS = {
    SamplingMethod.NO_AMPLIFICATION: NeighboringRelation.ADD_OR_REMOVE_ONE,
    SamplingMethod.POISSON: NeighboringRelation.ADD_OR_REMOVE_ONE,
    SamplingMethod.WITHOUT_REPLACEMENT: NeighboringRelation.REPLACE_ONE,
}


def config(sampling: Any = SamplingMethod.NO_AMPLIFICATION, **changes: Any) -> Any:
    return serverapp.PrivacyConfig(DELTA, CLIENTS, RELATIONS[sampling], sampling, **changes)


def event(noise: float = 4.0, drawn: int = 50) -> Any:
    return serverapp.GaussianPrivacyEvent(noise, drawn, CLIENTS)


@pytest.mark.parametrize("sampling", [SamplingMethod.NO_AMPLIFICATION, SamplingMethod.POISSON])
def test_its_epsilon_is_certified_and_not_above_that_of_renyi_divergences(sampling: Any) -> None:
    ours, theirs = FlowerAccountant(config(sampling)), serverapp.RdpAccountant(config(sampling))
    for accountant in (ours, theirs):
        accountant.compose(event(), 20)
        accountant.compose(event(2.0, 20))
    certificate = certify(ours.document())
    spent = ours.get_privacy_spent()
    assert certificate.epsilon_lower <= spent.epsilon <= certificate.epsilon * (1 + 1e-6)
    assert spent.epsilon <= theirs.get_privacy_spent().epsilon
    assert (spent.delta, spent.num_releases, spent.accounting_method) == (DELTA, 21, "pyaccount")
    assert ours.get_epsilon(1e-3) < ours.get_epsilon(DELTA) == spent.epsilon
    assert ours.get_delta(1.0) <= theirs.get_delta(1.0)


def test_releases_without_amplification_are_one_gaussian_mechanism() -> None:
    accountant = FlowerAccountant(config())
    accountant.compose(event(4.0), 16)
    exact = norm.cdf(0.5 - 1.0) - math.e * norm.cdf(-0.5 - 1.0)
    assert accountant.get_delta(1.0) == pytest.approx(exact, rel=1e-9)
    assert accountant.document()["privacy"]["adjacency"] == "zero-out"
    twice = FlowerAccountant(config(), adjacency="replace-one")
    twice.compose(event(8.0), 16)
    assert twice.get_delta(1.0) == pytest.approx(exact, rel=1e-9)


def test_a_budget_is_kept() -> None:
    accountant = FlowerAccountant(config(max_epsilon=3.0))
    assert accountant.get_epsilon(DELTA) == 0.0
    assert accountant.get_delta(0.0) == 0.0
    while not accountant.would_exceed(event()):
        accountant.compose(event())
    assert accountant.get_epsilon(DELTA) <= 3.0
    more = FlowerAccountant(config())
    more.compose(event(), accountant.num_releases + 1)
    assert more.get_epsilon(DELTA) > 3.0
    assert not more.would_exceed(event(), max_epsilon=4.0)
    with pytest.raises(ValueError, match="max_epsilon"):
        more.would_exceed(event())


def test_states_go_back_and_forth() -> None:
    accountant, theirs = FlowerAccountant(config()), serverapp.RdpAccountant(config())
    for one in (accountant, theirs):
        for noise in (4.0, 4.0, 5.0):
            one.compose(event(noise))
    state = json.loads(json.dumps(accountant.state_dict()))
    assert [entry["count"] for entry in state["compositions"]] == [2, 1]
    for known in (state, theirs.state_dict()):
        again = FlowerAccountant(config())
        again.load_state_dict(known)
        assert (again.num_releases, again.get_epsilon(DELTA)) == (3, accountant.get_epsilon(DELTA))
    again.load_state_dict(FlowerAccountant(config()).state_dict())
    assert again.num_releases == 0
    with pytest.raises(StateError, match="configuration"):
        FlowerAccountant(config(max_epsilon=1.0)).load_state_dict(state)
    state["compositions"][0]["count"] = 0
    with pytest.raises(DocumentError, match="at least 1"):
        again.load_state_dict(state)
    assert again.num_releases == 0


def test_what_is_no_release_is_not_counted() -> None:
    accountant = FlowerAccountant(config())
    with pytest.raises(DocumentError, match="population"):
        accountant.compose(serverapp.GaussianPrivacyEvent(1.0, 10, 100))
    with pytest.raises(DocumentError, match="at least 1"):
        accountant.compose(event(), 0)
    assert accountant.num_releases == 0


def test_a_strategy_takes_it() -> None:
    from flwr.serverapp.exception import PrivacyBudgetExhausted
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

    accountant = FlowerAccountant(config(max_epsilon=2.0))
    strategy = DifferentialPrivacyServerSideFixedClipping(FedAvg(), 4.0, 1.0, 50, accountant=accountant)
    for number in range(2):
        strategy._prepare_accounting(number, [object()] * 50)
        strategy._compose_release(strategy._pop_pending_event(number))
    assert accountant.num_releases == 2
    assert 0.0 < strategy.privacy_spent().epsilon <= 2.0
    accountant.compose(event(), 5)
    with pytest.raises(PrivacyBudgetExhausted, match="would exceed max_epsilon"):
        strategy._prepare_accounting(3, [object()] * 50)
