"""Added records tested by a mean that bounds δ: against enumeration, how often a false claim is accepted, and its certificate."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact_mixtures import Mixture, hockey_stick, nothing
from gate_tools import changed, refused, save
from scipy.stats import binom

import pyaccount
from pyaccount import _core, cli
from pyaccount.document import load
from pyaccount.errors import NumericsError
from pyaccount.execute.progress import silent
from pyaccount.execute.sampling.added_mean import choose_mean, mean_claim
from pyaccount.execute.sampling.betting_choice import Betting, Claim
from pyaccount.execute.sampling.jobs import SHARD, LogSobolev
from pyaccount.execute.sampling.proposals import plain
from pyaccount.execute.sampling.session import open_session
from pyaccount.execute.sampling.shards import Sampler
from pyaccount.execute.sampling.tests_of_claims import _bet_on_mean
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.sampled import SampledMechanism

COEFFICIENTS = [0.6, 0.4]


def made(seed: int = 5) -> tuple[Sampler, SampledMechanism]:
    document = {
        "pyaccount": 1,
        "name": "added",
        "privacy": {"adjacency": "zero-out", "epsilon": 0.5, "delta": "solve"},
        "training": {"sampling_probability": 0.4, "iterations": 4},
        "sampler": {"kind": "b-min-sep", "min_separation": 2, "start": "warm"},
        "matrix": {"kind": "toeplitz", "coefficients": COEFFICIENTS},
        "noise": {"multiplier": 1.0},
        "accounting": {"method": "monte-carlo"},
    }
    session = open_session(compile_document(load(document)), threads=1, time_limit=None, report=silent, seed=seed)
    return session.sampler, session.mechanism(session.plan.at())


def truth() -> Mixture:
    """The law of the run with the record, by its definition: every round that it may join."""
    n, b, p = 4, 2, 0.4
    total = 1.0 + (b - 1) * p
    open_, means, weights = [(0, 1.0 / total, ()), (1, p / total, ())], [], []
    while open_:
        place, weight, taken = open_.pop()
        if place >= n:
            mean = np.zeros(n + b)
            for one in taken:
                mean[one : one + 2] += COEFFICIENTS
            means.append(mean[:n])
            weights.append(weight)
            continue
        open_ += [(place + 1, weight * (1.0 - p), taken), (place + b, weight * p, (*taken, place))]
    return Mixture(np.array(weights), np.array(means))


@pytest.mark.parametrize("epsilon", [0.2, 0.6])
def test_the_bound_is_above_delta_at_every_shift_and_exponent(epsilon: float) -> None:
    sampler, mechanism = made()
    right = hockey_stick(nothing(4), truth(), epsilon)
    nearest = math.inf
    for size in (0.5, 2.0, 6.0):
        found = _core.AddedMean.of(mechanism.core, size)
        assert found is not None
        for exponent in (1.0, 4.0):
            log_factor, most, error = found.limits(exponent, epsilon)
            sums = sampler.added_mean(found, [(exponent, most, [])], candidate=sampler.fresh(), count=16)
            means = np.array([shard[0][1] for shard in sums]) / SHARD
            spread = means.std(ddof=1) / math.sqrt(len(means))
            bound = math.exp(log_factor + means.mean() + 4.0 * spread)
            assert bound > right
            assert means.max() <= most
            assert error < 1e-9
            nearest = min(nearest, bound / right)
    assert nearest < 12.0


def test_a_false_mean_is_accepted_as_seldom_as_it_may_be() -> None:
    """The claim is a little below the bound that E D gives, which a long run of samples tells."""
    sampler, mechanism = made()
    proposal, epsilon, q, runs = LogSobolev(2.0, 2.0), 0.5, 0.1, 200
    found = _core.AddedMean.of(mechanism.core, proposal.size)
    assert found is not None
    log_factor, most, _ = found.limits(proposal.exponent, epsilon)
    sums = sampler.added_mean(found, [(proposal.exponent, most, [])], candidate=sampler.fresh(), count=256)
    means = np.array([shard[0][1] for shard in sums]) / SHARD
    delta = math.exp(log_factor + means.mean() - 4.0 * means.std(ddof=1) / math.sqrt(len(means)))
    accepted = {}
    for factor in (1.0, 1.5):
        accepted[factor] = 0
        for seed in range(runs):
            one, mechanism = made(seed)
            claim = Claim(mechanism, 1.0, epsilon, factor * delta, math.log(1.0 / q))
            planned = mean_claim(mechanism, proposal, epsilon, claim.delta)
            assert planned is not None
            place = replace(plain(mechanism, "add"), log_sobolev=proposal)
            betting = Betting(place, planned.most, (0.5 / (planned.most - planned.threshold),), 4.0 * SHARD)
            test = _bet_on_mean(one, claim, "add", betting)
            accepted[factor] += test.accepted
    assert accepted[1.0] <= binom.ppf(1.0 - 1e-4, runs, q)
    # And a claim that follows is accepted.
    assert accepted[1.5] > 0.9 * runs


def test_what_the_theorem_is_not_about_has_no_such_claim() -> None:
    sampler, mechanism = made()
    assert choose_mean(sampler, mechanism, 0.5, 1e-300) is None
    assert mean_claim(mechanism, LogSobolev(1.0, 1.0), 0.5, 0.0) is None
    users = _core.Sampled.users([0.5, 0.2], 10, 2, 0.1, 2, True)
    assert _core.AddedMean.of(users, 1.0) is None
    assert _core.AddedMean.of(_core.Sampled.together([(mechanism.core, 2)]), 1.0) is None
    with pytest.raises((NumericsError, ValueError)):
        _core.AddedMean.of(mechanism.core, 0.0)


@pytest.fixture(scope="module")
def certificate() -> dict[str, Any]:
    document = {
        "pyaccount": 1,
        "name": "added",
        "privacy": {"adjacency": "zero-out", "epsilon": 4.0, "delta": 1e-6},
        "training": {"participation_rate": 0.01, "iterations": 500},
        "sampler": {"kind": "b-min-sep", "min_separation": 4, "start": "warm"},
        "matrix": {"kind": "banded-square-root", "bands": 4},
        "noise": {"multiplier": "solve"},
        "accounting": {"profile": [], "seed": 5, "tolerance": 0.03},
    }
    found: dict[str, Any] = json.loads(pyaccount.certify(document, threads=1).to_json())
    return found


def test_a_small_delta_of_added_records_takes_few_samples(
    certificate: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = [test for test in certificate["evidence"]["sampling"]["tests"] if test["direction"] == "add"]
    assert all(test["proposal"]["log_sobolev"]["exponent"] > 0.0 for test in tests)
    # Plain samples would take ln(1/q)/δ, more than 10⁷.
    assert sum(test["samples"] for test in tests) < 200_000
    assert all(test["mean"] < test["threshold"] for test in tests)
    same, other = (pyaccount.verify(save(tmp_path, certificate), threads=1, seed=seed) for seed in (None, 77))
    assert same.identical, same.to_text()
    assert other.agrees, other.to_text()
    assert cli.run(["report", str(save(tmp_path, certificate)), "--format", "text"]) == 0
    assert "E D, λ =" in " ".join(capsys.readouterr().out.split())
    assert "a mean that bounds δ" in pyaccount.Certificate.from_json(json.dumps(certificate)).to_html()


def test_another_mean_than_was_tested_is_seen(certificate: dict[str, Any], tmp_path: Path) -> None:
    tests = certificate["evidence"]["sampling"]["tests"]
    place = next(k for k, test in enumerate(tests) if test["direction"] == "add")
    forged = changed(certificate, **{f"evidence__sampling__tests__{place}__proposal__log_sobolev__exponent": 0.5})
    assert refused(pyaccount.verify(save(tmp_path, forged), threads=1))
