"""No hint lowers ε below what is true of the run that a document means."""

from __future__ import annotations

from typing import Any

import pytest
from plain_documents import document

import pyaccount
from pyaccount.errors import DocumentError


def hints(source: dict[str, Any]) -> str:
    with pytest.raises(DocumentError) as refused:
        pyaccount.load(source)
    return str(refused.value)


def stated(**guarantee: Any) -> dict[str, Any]:
    privacy = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5}
    return {"pyaccount": 1, "name": "one", "privacy": privacy, "mechanism": {"kind": "stated", **guarantee}}


@pytest.mark.parametrize("guarantee", [{"rho": 0.1}, {"mu": 0.5}, {"renyi": [{"order": 8, "epsilon": 0.5}]}])
def test_delta_beside_another_guarantee_is_kept(guarantee: dict[str, Any]) -> None:
    said = hints(stated(**guarantee, delta=1e-6))
    assert "leave it out" not in said
    assert "epsilon: 0 and this delta" in said


def test_what_the_hint_says_composes_as_an_approximate_guarantee() -> None:
    # θ + (1 − θ)h_ρ, at every ε.
    theta, alone = 1e-6, stated(rho=0.1)
    both = {key: value for key, value in alone.items() if key != "mechanism"}
    both["phases"] = [
        {"mechanism": {"kind": "stated", "rho": 0.1}},
        {"mechanism": {"kind": "stated", "epsilon": 0, "delta": theta}},
    ]
    profile, more = pyaccount.certify(alone).profile, pyaccount.certify(both)
    for epsilon in (0.5, 1.0, 2.0):
        expected = theta + (1.0 - theta) * profile.delta(epsilon).upper
        # Between the points of a profile its bounds are chords.
        assert more.profile.delta(epsilon).upper >= expected * (1.0 - 1e-3)
    assert more.epsilon > pyaccount.certify(alone).epsilon


@pytest.mark.parametrize("key", ["num_microbatches", "microbatches"])
def test_a_clipped_mean_of_a_micro_batch_counts_half(key: str) -> None:
    said = hints(document(**{f"training__{key}": 10}))
    assert "leave it out" not in said
    assert "noise.multiplier is half" in said


@pytest.mark.parametrize(
    "key", ["local_epochs", "local_steps", "fraction_fit", "clients_per_round", "num_clients", "num_server_rounds"]
)
def test_federated_words_lead_to_clients(key: str) -> None:
    said = hints(document(**{f"training__{key}": 3}))
    assert "draws: clients" in said
    assert "did you mean" not in said


def test_a_certificate_is_true_if_its_claim_holds() -> None:
    for epsilon, holds in [(10.0, True), (0.1, False)]:
        certificate = pyaccount.certify(document(privacy__epsilon=epsilon, privacy__delta=1e-5, noise__multiplier=1.0))
        assert certificate.holds is holds
        assert bool(certificate) is holds
