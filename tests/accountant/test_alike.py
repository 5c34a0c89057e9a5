"""Ledgers of more kinds of rounds than a document may have: what is certified is no more private, and hardly less."""

import math
import warnings
from itertools import pairwise

import pytest
from plain_documents import sectioned
from scipy.optimize import brentq
from scipy.stats import norm

from pyaccount import Accountant
from pyaccount.accountant import ledger
from pyaccount.document.ranges import PHASES
from pyaccount.reading.nodes import MOST_NODES

DELTA = 1e-5


def exact(squares: float) -> float:
    """ε of Gaussian mechanisms with this sum of squared sensitivities over noise (Balle & Wang 2018)."""
    mu = math.sqrt(squares)

    def excess(epsilon: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)) - DELTA

    return float(brentq(excess, 0.0, 50.0))


def multiplier(step: int, steps: int) -> float:
    return 90.0 - 40.0 * step / steps


def released(steps: range, of: int) -> Accountant:
    """An accountant that counted these rounds, each with noise of its own."""
    accountant = Accountant(adjacency="add-remove", delta=DELTA)
    for step in steps:
        accountant.step(noise_multiplier=multiplier(step, of))
    return accountant


def test_a_ledger_takes_more_kinds_of_rounds_than_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 300
    monkeypatch.setattr("pyaccount.accountant.ledger.MOST", most)
    monkeypatch.setattr("pyaccount.accountant.accountant.MANY", most // 2)
    monkeypatch.setattr(ledger, "KINDS", 100)
    steps = most + 1
    with pytest.warns(UserWarning, match="kinds of rounds.*certified together") as seen:
        accountant = released(range(steps), steps)
    assert len(seen) == 1
    assert accountant.steps == steps
    document = accountant.document()
    assert len(document["phases"]) <= 100
    assert sum(phase["training"]["iterations"] for phase in document["phases"]) == steps
    assert "less noise" in document["name"]
    truth = exact(math.fsum(multiplier(step, steps) ** -2 for step in range(steps)))
    assert truth <= accountant.epsilon_spent() <= 1.03 * truth
    # Rounds that come later are counted without a word, and what is saved has all of them.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accountant.step(3, noise_multiplier=150.0)
    assert accountant.steps == steps + 3
    assert len(accountant.state_dict()["document"]["phases"]) == steps + 1


def test_fewer_kinds_are_never_more_private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "KINDS", 3)
    phases = [
        sectioned(dataset_size=1000, expected_batch_size=batch, iterations=2, sampler=kind, multiplier=sigma)
        for kind in ("poisson", "fixed-size")
        for sigma, batch in ((1.01, 100), (1.02, 101), (1.03, 100), (1.04, 999))
    ]
    found, change = ledger.fewer_kinds(phases)
    assert sum(phase["training"]["iterations"] for phase in found) == 16
    assert 0.0 < change <= 0.5
    rounded = {bits: [ledger._rounded(phase, bits) for phase in phases] for bits in (2, 6, 20)}
    for bits, others in rounded.items():
        for phase, other in zip(phases, others, strict=True):
            worst = 1.0 + 2.0 ** (1 - bits)
            sigma, less = phase["noise"]["multiplier"], other["noise"]["multiplier"]  # type: ignore[index]
            assert less <= sigma <= worst * less
            batch, larger = phase["training"]["expected_batch_size"], other["training"]["expected_batch_size"]  # type: ignore[index]
            # Of other samplers batches are drawn whole, and stay as they are.
            assert batch <= larger <= (min(1000, worst * batch) if phase["sampler"] == {"kind": "poisson"} else batch)


def test_rounds_that_return_are_one_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyaccount.accountant.ledger.MOST", 3)
    accountant = Accountant(adjacency="add-remove", delta=DELTA)
    sigmas = [4.0, 5.0] * 3
    assert all(one != other for one, other in pairwise(sigmas))
    for sigma in sigmas:
        accountant.step(noise_multiplier=sigma)
    document = accountant.document()
    assert [phase["training"]["iterations"] for phase in document["phases"]] == [3, 3]
    assert "less noise" not in document["name"]
    assert accountant.epsilon_spent() == pytest.approx(exact(3 / 16 + 3 / 25), rel=1e-3)


def test_what_is_certified_one_by_one_fits_into_a_document() -> None:
    assert ledger.KINDS <= ledger.MOST < PHASES.maximum
    accountant = Accountant(adjacency="add-remove", delta=DELTA)
    accountant.step(noise_multiplier=1.5, expected_batch_size=256, dataset_size=60_000)
    (phase,) = accountant.state_dict()["document"]["phases"]
    # Each value and each mapping is one node.
    nodes = 1 + sum(1 + len(section) for section in phase.values())
    assert ledger.MOST * nodes < MOST_NODES


def test_probabilities_of_single_records_stay_as_they_are() -> None:
    """Only the noise of rounds with a mapping is rounded: its largest probability is a bound already."""
    phase = sectioned(sampling_probability={"max": 0.03}, iterations=1, sampler="poisson", multiplier=1.0)
    phases = [{**phase, "noise": {"multiplier": 1.0 + step / 10_000}} for step in range(3000)]
    fewer, change = ledger.fewer_kinds(phases)
    assert len(fewer) <= ledger.KINDS
    assert change > 0.0
    assert {one["training"]["sampling_probability"]["max"] for one in fewer} == {0.03}


def test_rounds_are_added_with_the_largest_probability() -> None:
    mixed, largest = (Accountant(adjacency="add-remove", delta=DELTA) for _ in range(2))
    mixed.step(10, noise_multiplier=1.0, sampling_probability={"max": 0.03})
    largest.step(10, noise_multiplier=1.0, sampling_probability=0.03)
    assert mixed.epsilon_spent() == largest.epsilon_spent()
