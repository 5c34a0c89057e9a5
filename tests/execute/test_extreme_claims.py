"""Claims whose δ is outside the range at which ε is asked: below 1e-280, and next to 1. Statements hold at their δ."""

import math

import mpmath as mp
import pytest
from oracle import gaussian_delta, gaussian_epsilon
from plain_documents import document, one_step
from snapshots import Snapshot

import pyaccount
from pyaccount.document.ranges import SMALLEST_DELTA
from pyaccount.execute import Engine, Question
from pyaccount.plan.compiling import compile_document


def exact_epsilon(sigma: float, delta: float) -> mp.mpf:
    with mp.workdps(400):
        return gaussian_epsilon(1.0 / sigma, delta)


@pytest.mark.parametrize(("sigma", "epsilon"), [(1.0, 37.0), (1.0, 40.0), (0.5, 76.0), (4.0, 9.5)])
def test_what_is_stated_at_a_tiny_delta_holds_there(sigma: float, epsilon: float) -> None:
    data = pyaccount.certify(one_step(sigma, privacy__epsilon=epsilon)).data
    guarantee = data.guarantee
    with mp.workdps(400):
        assert guarantee.delta_lower <= gaussian_delta(mp.mpf(1) / sigma, mp.mpf(epsilon)) <= guarantee.delta < 1e-280
    exact = exact_epsilon(sigma, guarantee.delta)
    for ends in (guarantee, data.directions.remove, data.directions.add):
        assert ends.epsilon_lower <= exact <= ends.epsilon
    # The interval is not trivial: the lower end is that of the nearest δ at which ε is asked.
    assert guarantee.epsilon_lower == pytest.approx(float(exact_epsilon(sigma, 1e-280)), rel=1e-3)


def test_the_contrast_of_a_tiny_delta_names_its_own() -> None:
    certificate = pyaccount.certify(one_step(1.0, privacy__epsilon=37.0))
    data = certificate.data
    assert data.unamplified.epsilon is not None
    # At the δ of the guarantee it would be wrong, at its own it is right, and every format states that δ.
    assert exact_epsilon(1.0, data.guarantee.delta) > data.unamplified.epsilon
    assert exact_epsilon(1.0, data.unamplified.delta) <= data.unamplified.epsilon
    for form in (certificate.to_markdown(), certificate.to_text()):
        assert f"at δ = {data.unamplified.delta:g}; every record" in " ".join(form.split())
    row = pyaccount.compare([one_step(1.0, privacy__epsilon=37.0)]).rows[0]
    assert row.unamplified_epsilon is None


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.08, 1.0), (0.05, 0.0), (0.02, 1.0), (0.0875, 0.5), (0.1, 0.1)])
def test_what_is_stated_at_a_delta_near_one_holds_there(sigma: float, epsilon: float) -> None:
    data = pyaccount.certify(one_step(sigma, privacy__epsilon=epsilon)).data
    guarantee = data.guarantee
    with mp.workdps(400):
        assert guarantee.delta_lower <= gaussian_delta(mp.mpf(1) / sigma, mp.mpf(epsilon)) <= guarantee.delta <= 1.0
    exact = mp.mpf(0) if guarantee.delta == 1.0 else exact_epsilon(sigma, guarantee.delta)
    for ends in (guarantee, data.directions.remove, data.directions.add):
        assert ends.epsilon_lower <= exact <= ends.epsilon
    assert data.solved is not None
    assert data.solved.value == guarantee.delta


@pytest.mark.parametrize("sigma", [0.05, 0.3])
def test_a_claim_at_epsilon_zero_that_does_not_hold_is_told_so(sigma: float) -> None:
    certificate = pyaccount.certify(one_step(sigma, privacy__epsilon=0, privacy__delta=0.5))
    exact = gaussian_delta(mp.mpf(1) / sigma, mp.mpf(0))
    assert exact > 0.5
    assert not certificate.holds
    refuted = certificate.statement.partition("no δ below ")[2].partition(" holds at ε = 0;")[0]
    assert 0.5 < float(refuted) <= exact
    assert "is not (0, 0.5)-differentially private" in certificate.statement


def test_the_core_refuses_what_is_below_the_smallest_delta_and_answers_there(snapshot: Snapshot) -> None:
    """The core has the same limit, which it cannot import."""
    bounds = pyaccount.compile(one_step(1.0, privacy__epsilon=1.0)).at().bounds()
    answer = Engine().ask(bounds, Question(None, SMALLEST_DELTA, 1e-3))
    assert answer.lower <= exact_epsilon(1.0, SMALLEST_DELTA) <= answer.upper
    below = math.nextafter(SMALLEST_DELTA, 0.0)
    snapshot.raised(lambda: Engine().ask(bounds, Question(None, below, 1e-3)))
    profile = pyaccount.certify(one_step(1.0, privacy__epsilon=1.0)).profile
    snapshot.raised(profile.epsilon, below)


@pytest.mark.parametrize("sigma", [1e-6, 1e-5, 1e-3])
def test_next_to_no_noise_is_certified_for_what_it_is(sigma: float) -> None:
    """δ is at least the probability of taking part, if noise hides nothing."""
    changes = {"training": {"sampling_probability": 0.01, "iterations": 2}, "noise__multiplier": sigma}
    data = pyaccount.certify(document(**changes, privacy__epsilon=1, privacy__delta="solve")).data
    assert 1.0 - 0.99**2 - 1e-9 <= data.guarantee.delta < 0.04
    assert all(0.0 <= line.contribution < math.inf for line in data.evidence.error_budget)


def test_a_composition_whose_masses_are_below_the_doubles_has_an_answer() -> None:
    # Near the largest loss of a run in one bin there are masses below 1e-308, whose tilted factor is no double.
    selections = [
        {"mechanism": {"kind": "permute-and-flip", "utility_sensitivity": 1.54, "scale": 0.616, "monotone": True}},
        {"mechanism": {"kind": "permute-and-flip", "epsilon": 1.0}},
    ]
    best = {"select": {"kind": "binomial", "trials": 19, "probability": 0.439}, "phases": selections}
    bins = {
        "training": {"iterations": 5},
        "sampler": {"kind": "balls-in-bins", "bins": 1},
        "noise": {"multiplier": 1.41},
    }
    count = {"mechanism": {"kind": "discrete-laplace", "scale": 0.1352, "step": 0.1, "sensitivity": 0.2}}
    privacy = {"adjacency": "zero-out", "epsilon": "solve", "delta": 0.01}
    raw = {
        "pyaccount": 1,
        "name": "far",
        "privacy": privacy,
        "phases": [best, bins, count],
        "accounting": {"tolerance": 0.05},
    }
    bounds = compile_document(pyaccount.load(raw)).at().bounds()
    near, far = (Engine(threads=1).ask(bounds, Question(epsilon, None, 0.05)) for epsilon in (20.0, 64.0))
    assert 0.0 <= far.lower <= far.upper < 1e-30
    assert far.lower <= near.upper
