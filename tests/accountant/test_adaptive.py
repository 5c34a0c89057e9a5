"""An accountant for rounds that are chosen by looking at results."""

import json
import math
from pathlib import Path
from typing import Any

import mpmath as mp
import oracle
import pytest
from snapshots import Snapshot

from pyaccount import Accountant
from pyaccount.errors import StateError
from pyaccount.filters.choosing import largest_mu
from pyaccount.reading.written import sha256_of

POISSON: dict[str, Any] = {"noise_multiplier": 1.0, "sampling_probability": 0.01}


def adaptive(epsilon: float = 3.0, delta: float = 1e-5, **more: Any) -> Accountant:
    return Accountant(adjacency="add-remove", epsilon=epsilon, delta=delta, adaptive=True, **more)


def divergence(order: int, q: float = 0.01, noise: float = 1.0) -> mp.mpf:
    """D_a of a sampled Gaussian round, by the binomial sum at high precision."""
    with mp.workdps(30):
        terms = [
            math.comb(order, j)
            * mp.mpf(q) ** j
            * (1 - mp.mpf(q)) ** (order - j)
            * mp.exp(j * (j - 1) / (2 * mp.mpf(noise) ** 2))
            for j in range(order + 1)
        ]
        return mp.log(mp.fsum(terms)) / (order - 1)


def test_gaussian_rounds_lose_nothing() -> None:
    """As many rounds fit as if they had been fixed beforehand, and the certificate is of the budget."""
    accountant = adaptive()
    assert accountant.remaining_steps(noise_multiplier=10.0) == 51
    ledger = Accountant(adjacency="add-remove", epsilon=3, delta=1e-5)
    assert ledger.remaining_steps(noise_multiplier=10.0) == 51
    accountant.step(noise_multiplier=10.0)
    accountant.step(2, noise_multiplier=20.0)
    assert accountant.remaining_steps(noise_multiplier=10.0) == 50
    assert accountant.remaining_steps() == math.floor((largest_mu(3.0, 1e-5) ** 2 - 0.015) / 0.0025) == 200
    assert accountant.certificate().epsilon == pytest.approx(3.0, rel=1e-8)
    assert accountant.certificate().epsilon <= 3.0
    assert "the whole budget of a filter" in accountant.certificate().statement


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-5), (8.0, 1e-6), (50.0, 1e-3)])
def test_the_largest_mu_keeps_the_budget(epsilon: float, delta: float) -> None:
    mu = largest_mu(epsilon, delta)
    with mp.workdps(40):
        assert oracle.gaussian_delta(mp.mpf(mu), mp.mpf(epsilon)) <= delta
        assert oracle.gaussian_delta(mp.mpf(mu) * (1 + mp.mpf(10) ** -8), mp.mpf(epsilon)) > delta


def test_sampled_rounds_keep_a_mean_over_orders() -> None:
    """ε of the odometer solves the equation of its proof, with divergences at high precision."""
    accountant = adaptive()
    accountant.step(500, **POISSON)
    accountant.step(3, noise_multiplier=20.0)
    spent = accountant.epsilon_spent()
    state = accountant.state_dict()["document"]["filter"]
    assert (state["epsilon"], state["delta"]) == (3.0, 1e-5)
    assert math.fsum(state["weights"]) <= 1.0
    with mp.workdps(30):

        def mean(epsilon: float) -> mp.mpf:
            terms = []
            for order, weight in zip(state["orders"], state["weights"], strict=True):
                a = mp.mpf(order)
                total = 500 * divergence(int(order)) + 3 * a / 800
                kappa = (a - 1) ** (a - 1) / a**a
                terms.append(mp.mpf(weight) / kappa * mp.exp((a - 1) * (mp.mpf(epsilon) - total)))
            return mp.fsum(terms)

        assert mean(spent) >= 1e5
        assert mean(spent * (1 - 1e-9)) < 1e5
    assert accountant.epsilon_spent(1e-7) > spent


def test_the_budget_holds_until_it_is_used_up(snapshot: Snapshot) -> None:
    accountant = adaptive()
    assert accountant.epsilon_spent() == 0.0
    assert not accountant.would_exceed(**POISSON)
    most = accountant.remaining_steps(**POISSON)
    accountant.step(most - 1, **POISSON)
    assert accountant.remaining_steps() == 1
    assert not accountant.would_exceed()
    assert accountant.would_exceed(2)
    accountant.step(**POISSON)
    assert accountant.would_exceed()
    assert accountant.remaining_steps() == 0
    assert 2.99 < accountant.epsilon_spent() <= 3.0
    snapshot.raised(accountant.step, 5, **POISSON)
    assert accountant.steps == most
    assert accountant.certificate().epsilon == 3.0
    accountant.step(noise_multiplier=1e6)  # nearly nothing


def test_pure_rounds_add_up() -> None:
    accountant = adaptive(1.0, 0.0)
    accountant.step(3, noise_multiplier=10.0, noise="laplace")
    assert accountant.epsilon_spent() == pytest.approx(0.3, rel=1e-15)
    assert accountant.remaining_steps() == 7
    assert accountant.certificate().epsilon == 1.0
    assert accountant.document()["mechanism"] == {"kind": "stated", "epsilon": 1.0}


def test_the_first_round_fixes_the_filter(snapshot: Snapshot) -> None:
    accountant = adaptive()
    accountant.step(noise_multiplier=10.0)
    snapshot.raised(accountant.step, **POISSON)
    assert accountant.steps == 1
    mixed = adaptive()
    mixed.step(**POISSON)
    mixed.step(noise_multiplier=10.0)
    mixed.step(noise_multiplier=20.0, noise="laplace")
    assert mixed.steps == 3


def test_a_state_is_read_back(tmp_path: Path, snapshot: Snapshot) -> None:
    accountant = adaptive(name="adaptive run")
    accountant.save(tmp_path / "empty.json")
    assert Accountant.load(tmp_path / "empty.json").steps == 0
    for noise in (1.0, 1.5, 1.5, 2.0):
        accountant.step(10, noise_multiplier=noise, sampling_probability=0.01)
    accountant.save(tmp_path / "state.json")
    again = Accountant.load(tmp_path / "state.json")
    assert again.state_dict() == accountant.state_dict()
    assert again.epsilon_spent() == accountant.epsilon_spent()
    assert again.remaining_steps() == accountant.remaining_steps()
    again.step(noise_multiplier=2.0, sampling_probability=0.01)
    again.save(tmp_path / "state.json")
    snapshot.raised(lambda: accountant.save(tmp_path / "state.json"))
    snapshot.raised(lambda: again.load_state_dict(accountant.state_dict()))
    with snapshot.raises(StateError):
        Accountant(adjacency="add-remove", epsilon=3, delta=1e-5).load_state_dict(accountant.state_dict())


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("filter"),
        lambda document: document["filter"].update(epsilon=4.0),
        lambda document: document["filter"].update(weights=[1.0] * len(document["filter"]["orders"])),
        lambda document: document.update(filter={"mu": 1.0}),
        lambda document: document.update(filter={"nu": 1.0}),
        lambda document: document["phases"][0]["training"].update(iterations=10**6),
    ],
)
def test_a_state_that_was_changed_is_refused(change: Any, tmp_path: Path, snapshot: Snapshot) -> None:
    """Even if its hash is right: no state spends more than its budget."""
    accountant = adaptive()
    accountant.step(10, **POISSON)
    state = accountant.state_dict()
    change(state["document"])
    state["steps"] = sum(phase["training"]["iterations"] for phase in state["document"]["phases"])
    del state["sha256"]
    state["sha256"] = sha256_of(state)
    (tmp_path / "state.json").write_text(json.dumps(state), encoding="utf-8")
    snapshot.raised(lambda: Accountant.load(tmp_path / "state.json"))


def test_a_state_does_not_exchange_the_filter_of_a_run(snapshot: Snapshot) -> None:
    """The first round fixes the filter: another one that keeps the budget could be chosen by looking at results."""
    accountant, other = adaptive(), adaptive()
    accountant.step(10, **POISSON)
    other.step(10, noise_multiplier=0.7, sampling_probability=0.001)
    other.step(10, **POISSON)
    state = accountant.state_dict()
    state["document"]["filter"] = other.state_dict()["document"]["filter"]
    del state["sha256"]
    state["sha256"] = sha256_of(state)
    adaptive().load_state_dict(state)
    snapshot.raised(accountant.load_state_dict, state)


def test_wrong_arguments(snapshot: Snapshot) -> None:
    snapshot.raised(Accountant, adjacency="add-remove", delta=1e-5, adaptive=True)
    snapshot.raised(adaptive, group_size=2)
    accountant = adaptive()
    snapshot.raised(accountant.would_exceed)
    snapshot.raised(accountant.would_exceed, epsilon=4.0, **POISSON)
    snapshot.raised(accountant.remaining_steps, delta=1e-3, **POISSON)
    snapshot.raised(accountant.document)
