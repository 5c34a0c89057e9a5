"""No hint lowers ε below what is true of the run that a document means."""

import math
from typing import Any

import pytest
from plain_documents import document
from snapshots import Snapshot

import pyaccount
from pyaccount.errors import DocumentError
from pyaccount.filters import filter_of


def hints(source: dict[str, Any]) -> str:
    with pytest.raises(DocumentError) as refused:
        pyaccount.load(source)
    return str(refused.value)


def stated(**guarantee: Any) -> dict[str, Any]:
    privacy = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5}
    return {"pyaccount": 1, "name": "one", "privacy": privacy, "mechanism": {"kind": "stated", **guarantee}}


@pytest.mark.parametrize("guarantee", [{"mu": 0.5}, {"guarantees": [{"epsilon": 1, "delta": 1e-6}]}])
def test_delta_beside_another_guarantee_is_not_left_out(guarantee: dict[str, Any]) -> None:
    said = hints(stated(**guarantee, delta=1e-6))
    assert "leave it out" not in said
    assert "every epsilon has a delta of its own" in said


DIVERGENCES = [
    {"rho": 0.2},
    {"rho": 0.1, "xi": 0.3},
    {"renyi": [{"order": 2, "epsilon": 0.4}, {"order": 8, "epsilon": 1.6}]},
]


@pytest.mark.parametrize("guarantee", DIVERGENCES, ids=lambda one: next(iter(one)))
def test_delta_beside_divergences_is_the_probability_of_an_exception(guarantee: dict[str, Any]) -> None:
    # H = θ + (1 − θ)h: ε at δ is that of the divergences alone at (δ − θ)/(1 − θ).
    theta, delta = 4e-6, 1e-5
    both = stated(**guarantee, delta=theta)
    alone = stated(**guarantee)
    alone["privacy"]["delta"] = (delta - theta) / (1.0 - theta)
    for one in (both, alone):
        one["accounting"] = {"profile": [], "tolerance": 1e-4}
    certificate = pyaccount.certify(both)
    assert certificate.epsilon == pytest.approx(pyaccount.certify(alone).epsilon, rel=2e-4)
    assert certificate.epsilon_lower < certificate.epsilon
    # The phases that say the same.
    phases = {key: value for key, value in both.items() if key != "mechanism"}
    phases["phases"] = [
        {"mechanism": {"kind": "stated", **guarantee}},
        {"mechanism": {"kind": "stated", "epsilon": 0, "delta": theta}},
    ]
    assert pyaccount.certify(phases).epsilon == certificate.epsilon
    assert any("except" in one or "event of probability" in one for one in certificate.data.assumptions)


def test_runs_of_approximate_guarantees_add_up() -> None:
    # Ten of ρ except with θ are one of 10ρ except with 1 − (1 − θ)¹⁰.
    ten = stated(rho=0.02, delta=4e-7) | {"count": 10, "accounting": {"profile": []}}
    one = stated(rho=0.2, delta=-math.expm1(10.0 * math.log1p(-4e-7))) | {"accounting": {"profile": []}}
    assert pyaccount.certify(ten).epsilon == pytest.approx(pyaccount.certify(one).epsilon, rel=1e-5)


def test_where_an_exception_has_no_bound(snapshot: Snapshot) -> None:
    source = stated(rho=0.2, delta=4e-6)
    snapshot.raised(lambda: pyaccount.certify(source | {"privacy": source["privacy"] | {"delta": 1e-6}}))
    snapshot.raised(lambda: pyaccount.certify(source | {"privacy": source["privacy"] | {"group_size": 2}}))
    other = stated(rho=0.2, delta=4e-6, adjacency="add-remove")
    snapshot.raised(lambda: pyaccount.certify(other | {"privacy": other["privacy"] | {"adjacency": "replace-one"}}))
    # Divergences of the exception are infinite.
    snapshot.raised(lambda: filter_of({"renyi": [{"order": 2, "epsilon": 1}]}).cost(pyaccount.load(source)))
    snapshot.raised(lambda: filter_of({"rho": 1}).cost(pyaccount.load(source)))


@pytest.mark.parametrize("key", ["num_microbatches", "microbatches"])
def test_a_clipped_mean_of_a_micro_batch_counts_half(key: str) -> None:
    said = hints(document(**{f"training__{key}": 10}))
    assert "leave it out" not in said
    assert "noise.multiplier is half" in said


@pytest.mark.parametrize(
    "key", ["local_epochs", "local_steps", "fraction_fit", "clients_per_round", "num_clients", "num_server_rounds"]
)
def test_federated_words_lead_to_clients(key: str, snapshot: Snapshot) -> None:
    snapshot(hints(document(**{f"training__{key}": 3})))


def test_a_certificate_is_true_if_its_claim_holds() -> None:
    for epsilon, holds in [(10.0, True), (0.1, False)]:
        certificate = pyaccount.certify(document(privacy__epsilon=epsilon, privacy__delta=1e-5, noise__multiplier=1.0))
        assert certificate.holds is holds
        assert bool(certificate) is holds
