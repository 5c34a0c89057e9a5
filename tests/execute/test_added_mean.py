"""Tests of added records by a mean that bounds δ: against enumeration, false acceptances, and certificates."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from drawn_once import Drawn
from exact_mixtures import Mixture, hockey_stick, nothing
from gate_tools import changed, refused, save
from made import sampled
from plain_documents import doc
from sampled_tools import lower_toeplitz, phase_law, renewal_law
from scipy.stats import binom
from snapshots import Snapshot

import pyaccount
from pyaccount import _core, cli
from pyaccount.document.loading import load
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import betting_choice, evidence, tests_of_claims
from pyaccount.execute.sampling.added_mean import SquareClaim, choose_mean, mean_claim
from pyaccount.execute.sampling.betting_choice import Betting, Claim
from pyaccount.execute.sampling.bounds_without_samples import Known
from pyaccount.execute.sampling.fixed_sequence import Result, SequenceResult
from pyaccount.execute.sampling.jobs import SHARD, LogSobolev
from pyaccount.execute.sampling.proposals import plain_proposal
from pyaccount.execute.sampling.session import open_session
from pyaccount.execute.sampling.shards import SampleLimits, Sampler
from pyaccount.execute.sampling.tests_of_claims import SquareTest, _bet, _bet_on_mean, stated_separately
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.sampled import SampledMechanism

COEFFICIENTS = [0.6, 0.4]


def made(seed: int = 5, threads: int = 1) -> tuple[Sampler, SampledMechanism]:
    document = doc(
        "name=added epsilon=0.5 delta=solve sampling_probability=0.4 iterations=4 sampler=b-min-sep",
        "min_separation=2 start=warm matrix=toeplitz multiplier=1.0 method=monte-carlo",
        coefficients=COEFFICIENTS,
    )
    session = open_session(compile_document(load(document)), RunOptions(threads=threads, seed=seed))
    return session.sampler, session.mechanism(session.plan.at())


def truth() -> Mixture:
    """Return the law of the run with the record, by its definition: by every round that it may join."""
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


def from_a_random_part() -> tuple[Sampler, SampledMechanism]:
    recipe = sampled("phases", COEFFICIENTS, 4, 2, 0.6)
    return made()[0], SampledMechanism(recipe, ("remove", "add"), 4, 100.0, 0.6)


@pytest.mark.parametrize("epsilon", [0.2, 0.6])
@pytest.mark.parametrize("phased", [False, True], ids=["b-min-sep", "random part"])
def test_the_bound_is_above_delta_at_every_shift_and_exponent(epsilon: float, phased: bool) -> None:
    sampler, mechanism = from_a_random_part() if phased else made()
    law = Mixture.of(phase_law(4, 2, 0.6), lower_toeplitz(np.array(COEFFICIENTS), 4)) if phased else truth()
    right = hockey_stick(nothing(4), law, epsilon)
    nearest = math.inf
    for size in (0.5, 2.0, 6.0):
        found = _core.AddedMean.of(mechanism.core, size)
        assert found is not None
        for exponent in (1.0, 4.0):
            log_factor, most, error = found.limits(exponent, 1, epsilon)
            sums = sampler.added_mean(found, [(exponent, most, [])], sampler.stream("pilot", 16))
            means = np.array([shard[0][1] for shard in sums]) / SHARD
            spread = means.std(ddof=1) / math.sqrt(len(means))
            bound = math.exp(log_factor + means.mean() + 4.0 * spread)
            assert bound > right
            assert means.max() <= most
            assert error < 1e-9
            nearest = min(nearest, bound / right)
    assert nearest < 12.0


def test_the_bound_on_the_second_moment_of_a_random_part_is_above_it() -> None:
    """E V² is estimated by samples drawn with numpy, with ln f over all patterns."""
    sampler, mechanism = from_a_random_part()
    law, epsilon, rng = (
        Mixture.of(phase_law(4, 2, 0.6), lower_toeplitz(np.array(COEFFICIENTS), 4)),
        0.3,
        np.random.default_rng(3),
    )
    for size in (1.0, 3.0):
        shift = size * (law.weights @ law.means)
        y = rng.normal(size=(200_000, 4)) - shift
        ratio = np.exp(y @ law.means.T - 0.5 * (law.means**2).sum(axis=1)) @ law.weights
        squares = (np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0) * np.exp(y @ shift + 0.5 * shift @ shift)) ** 2
        least = squares.mean() - 5.0 * squares.std() / math.sqrt(len(squares))
        found = _core.AddedMean.of(mechanism.core, size)
        assert found is not None
        for exponent in (2.0, 6.0):
            log_factor, most, _ = found.limits(exponent, 2, epsilon)
            looked = [(exponent, most, [])]
            sums = sampler.added_mean(found, looked, sampler.stream("pilot", 16), moment=2)
            means = np.array([shard[0][1] for shard in sums]) / SHARD
            assert means.max() <= most
            assert least <= math.exp(log_factor + means.mean() + 4.0 * means.std(ddof=1) / math.sqrt(len(means)))


@pytest.mark.parametrize("moment", [1, 2])
def test_samples_of_a_mean_are_drawn_again_by_any_number_of_threads(moment: Any) -> None:
    found = []
    for threads in (1, 1, 2):
        sampler, mechanism = made(threads=threads)
        mean = _core.AddedMean.of(mechanism.core, 2.0)
        assert mean is not None
        found.append(sampler.added_mean(mean, [(3.0, math.inf, [])], sampler.stream("pilot", 16), moment=moment))
    assert found[0] == found[1] == found[2]
    assert len({shard[0][1] for shard in found[0]}) == 16


def test_a_false_mean_is_accepted_as_seldom_as_it_may_be() -> None:
    """The claim is slightly below the bound that E D gives, which a long run of samples estimates."""
    sampler, mechanism = made()
    proposal, epsilon, q, runs = LogSobolev(2.0, 2.0), 0.5, 0.1, 200
    found = _core.AddedMean.of(mechanism.core, proposal.size)
    assert found is not None
    log_factor, most, _ = found.limits(proposal.exponent, 1, epsilon)
    sums = sampler.added_mean(found, [(proposal.exponent, most, [])], sampler.stream("pilot", 256))
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
            place = replace(plain_proposal(mechanism, "add"), log_sobolev=proposal)
            betting = Betting(place, planned.most, (0.5 / (planned.most - planned.threshold),), 4.0 * SHARD)
            test = _bet_on_mean(one, claim, "add", betting)
            accepted[factor] += test.accepted
    assert accepted[1.0] <= binom.ppf(1.0 - 1e-4, runs, q)
    # A claim that follows is accepted.
    assert accepted[1.5] > 0.9 * runs


def test_what_the_theorem_is_not_about_has_no_such_claim(snapshot: Snapshot) -> None:
    sampler, mechanism = made()
    assert choose_mean(sampler, mechanism, 0.5, 1e-300) is None
    assert mean_claim(mechanism, LogSobolev(1.0, 1.0), 0.5, 0.0) is None
    # The pair for lower ends has a different second moment than the run, and δ of composed phases is another one.
    second = LogSobolev(1.0, 1.0, 2)
    assert mean_claim(mechanism, second, 0.5, 1e-3) is not None
    assert mean_claim(replace(mechanism, overstated=1e-9), second, 0.5, 1e-3) is None
    assert mean_claim(replace(mechanism, overstated=1e-9), LogSobolev(1.0, 1.0), 0.5, 1e-3) is not None
    composed = replace(mechanism, curves={"add": None})  # type: ignore[dict-item]
    assert mean_claim(composed, second, 0.5, 1e-3) is None
    users = _core.Sampled.users([0.5, 0.2], 10, 2, 0.1, 2, True)
    assert _core.AddedMean.of(users, 1.0) is None
    assert _core.AddedMean.of(_core.Sampled.together([(mechanism.core, 2)]), 1.0) is None
    snapshot.raised(_core.AddedMean.of, mechanism.core, 0.0)


@pytest.fixture(scope="module")
def certificate(drawn: Drawn) -> dict[str, Any]:
    document = doc(
        "name=added epsilon=4.0 delta=1e-6 participation_rate=0.01 iterations=200 sampler=b-min-sep",
        "min_separation=4 start=warm matrix=banded-square-root bands=4 multiplier=solve profile=[] seed=5",
        "tolerance=0.1",
    )
    with drawn.used():
        found: dict[str, Any] = json.loads(pyaccount.certify(document, threads=1).to_json())
    return found


@pytest.mark.usefixtures("drawn_once")
def test_a_small_delta_of_added_records_takes_few_samples(
    certificate: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = [test for test in certificate["evidence"]["sampling"]["tests"] if test["direction"] == "add"]
    assert all(test["proposal"]["log_sobolev"]["exponent"] > 0.0 for test in tests)
    # Plain samples would take ln(1/q)/δ, more than 10⁷.
    assert sum(test["samples"] for test in tests) < 200_000
    assert all(test["mean"] < test["threshold"] for test in tests)
    same = pyaccount.verify(save(tmp_path, certificate), threads=1)
    assert same.identical, same.to_text()
    assert cli.run(["report", str(save(tmp_path, certificate)), "--format", "text"]) == 0
    assert "a mean that bounds δ, λ =" in " ".join(capsys.readouterr().out.split())
    assert "a mean that bounds δ" in pyaccount.Certificate.from_json(json.dumps(certificate)).to_html()


@pytest.mark.nightly
def test_other_samples_agree(certificate: dict[str, Any], tmp_path: Path) -> None:
    other = pyaccount.verify(save(tmp_path, certificate), threads=1, seed=77)
    assert other.agrees, other.to_text()


@pytest.mark.usefixtures("drawn_once")
def test_another_mean_than_was_tested_is_seen(certificate: dict[str, Any], tmp_path: Path) -> None:
    tests = certificate["evidence"]["sampling"]["tests"]
    place = next(k for k, test in enumerate(tests) if test["direction"] == "add")
    forged = changed(certificate, **{f"evidence__sampling__tests__{place}__proposal__log_sobolev__exponent": 0.5})
    assert refused(pyaccount.verify(save(tmp_path, forged), threads=1))


@pytest.fixture(scope="module")
def after_second_moment(drawn: Drawn) -> Iterator[dict[str, Any]]:
    """Return a certificate whose added records are tested by a second moment, as if no bound on it were known."""
    document = doc(
        "name='second moment' epsilon=4.0 delta=1e-6 participation_rate=0.03 iterations=100 sampler=b-min-sep",
        "min_separation=8 start=warm matrix=banded-square-root bands=8 multiplier=solve seed=5 tolerance=0.03",
    )

    def unknown(*_: Any) -> None:
        return None

    with (
        drawn.used(),
        patch.object(betting_choice, "added_bound", unknown),
        patch.object(betting_choice, "_mean_betting", unknown),
    ):
        yield json.loads(pyaccount.certify(document, threads=1).to_json())


@pytest.mark.usefixtures("drawn_once")
def test_a_second_moment_is_tested_where_none_is_known(
    after_second_moment: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate = after_second_moment
    tests = [test for test in certificate["evidence"]["sampling"]["tests"] if test["direction"] == "add"]
    assert tests
    for test in tests:
        before = test["second_moment"]
        assert before["log_wealth"] >= test["log_target"]
        # With almost all samples around the shift, their second moment is at most what was tested.
        assert before["bound"] >= test["mean"] ** 2
        assert test["samples"] + before["samples"] < 200_000
    same = pyaccount.verify(save(tmp_path, certificate), threads=1)
    assert same.identical, same.to_text()
    assert cli.run(["report", str(save(tmp_path, certificate)), "--format", "text"]) == 0
    assert "after their second moment, λ =" in " ".join(capsys.readouterr().out.split())
    assert "after their second moment" in pyaccount.Certificate.from_json(json.dumps(certificate)).to_html()
    # Above ε, what the second moment implies is far below the guarantee.
    profile = certificate["directions"]["add"]["profile"]
    assert profile[-1]["delta"] < 0.1 * certificate["guarantee"]["delta"]


def test_a_second_moment_that_was_not_certified_certifies_nothing(
    after_second_moment: dict[str, Any], tmp_path: Path
) -> None:
    tests = after_second_moment["evidence"]["sampling"]["tests"]
    changes = {
        f"evidence__sampling__tests__{k}__second_moment__log_wealth": 1.0
        for k, test in enumerate(tests)
        if test["second_moment"] is not None
    }
    forged = changed(after_second_moment, **changes)
    found = pyaccount.check(save(tmp_path, forged), no_limits=True)
    assert not found.passes
    assert "no accepted test implies the guarantee" in found.to_text()


def test_a_second_moment_that_fails_ends_the_test() -> None:
    sampler, mechanism = made()
    claim = Claim(mechanism, 1.0, 0.5, 0.5, math.log(10.0))
    shape = LogSobolev(2.0, 2.0, 2)
    found = _core.AddedMean.of(mechanism.core, shape.size)
    assert found is not None
    (sums,) = sampler.added_mean(found, [(shape.exponent, math.inf, [])], sampler.stream("pilot", 1), moment=2)
    mean = sums[0][1] / SHARD
    square = math.exp(found.limits(shape.exponent, 2, claim.epsilon)[0] + mean - 0.3)
    planned = mean_claim(mechanism, shape, claim.epsilon, square)
    assert planned is not None
    chosen = SquareClaim(planned, square, mean)
    betting = Betting(
        plain_proposal(mechanism, "add"), 1.0, (0.5,), 1.0, clipped=0.01, square=chosen, square_samples=1.0
    )
    test = _bet(sampler, claim, "add", betting)
    assert not test.accepted
    assert test.second_moment is not None
    assert not test.second_moment.accepted
    assert test.samples == 0
    # No other part of the certificate implies it.
    assert list(Known((0.5, 0.5), tests=(test,)).added(1.0)) == []


@pytest.mark.parametrize("moment", [1, 2])
def test_what_a_mean_implies_at_other_epsilons_is_above_delta(moment: int) -> None:
    """δ₀ is what the mean bounds at ε = 0.4, estimated by as many samples; at other ε it implies bounds that hold."""
    sampler, mechanism = made()
    shape, at = LogSobolev(2.0, 3.0, moment), 0.4
    found = _core.AddedMean.of(mechanism.core, shape.size)
    assert found is not None
    tables = [(shape.exponent, math.inf, [])]
    sums = sampler.added_mean(found, tables, sampler.stream("pilot", 64), moment=moment)  # type: ignore[arg-type]
    mean = sum(shard[0][1] for shard in sums) / (64 * SHARD)
    bound = math.exp(found.limits(shape.exponent, moment, at)[0] + mean)
    usual = plain_proposal(mechanism, "add")
    square = SquareTest(shape, bound, 1.0, (), 0, 1.0, accepted=True) if moment == 2 else None
    test = tests_of_claims.Test(
        direction="add",
        noise_multiplier=1.0,
        epsilon=at,
        threshold=bound,
        proposal=usual if square else replace(usual, log_sobolev=shape),
        limits=SampleLimits(1.0, 0.0, 0.0),
        betting_fractions=(),
        samples=0,
        log_wealth=1.0,
        log_target=1.0,
        mean=0.0,
        standard_error=None,
        accepted=True,
        second_moment=square,
    )
    for epsilon in (0.0, 0.2, 0.4, 0.6, 1.0):
        (implied,) = Known((at, bound), tests=(test,)).added(epsilon)
        assert implied > hockey_stick(nothing(4), truth(), epsilon)
        # At that ε it is the bound that the mean gives.
        own = math.exp(found.limits(shape.exponent, moment, epsilon)[0] + mean)
        assert implied == pytest.approx(min(1.0, own if moment == 1 else math.sqrt(own)), rel=1e-9)


def test_a_profile_uses_no_test_of_a_run_with_more_noise() -> None:
    """Tests of larger σ bound δ of other runs: above the guarantee's ε, their bounds were 5 % below the result's δ."""
    n, b, p, ends = 3, 2, 0.7, [1.03, 1.15, 1.2, 1.25, 1.3, 1.4]
    document = doc(
        "name='several σ' epsilon=0.05 delta=1e-4 sampler=b-min-sep start=warm matrix=toeplitz",
        "coefficients=[0.8,0.6] multiplier=solve seed=5 tolerance=0.5",
        sampling_probability=p,
        iterations=n,
        min_separation=b,
        profile=[round(0.05 * factor, 6) for factor in ends],
    )
    with patch.object(betting_choice, "added_bound", lambda *_: None):
        certificate = pyaccount.certify(document, threads=1).data
    assert certificate.evidence.sampling is not None
    (phase,) = certificate.phases
    tests = [test for test in certificate.evidence.sampling.tests if test.direction == "add"]
    assert any(test.accepted and test.noise_multiplier > phase.noise_multiplier for test in tests)
    law = renewal_law(n, b, p, warm=True)
    means = lower_toeplitz(np.array([0.8, 0.6]) / phase.noise_multiplier, n)
    for point in certificate.directions.add.profile:
        assert point.delta >= hockey_stick(nothing(n), Mixture.of(law, means), point.epsilon)


def test_only_tests_whose_errors_are_counted_bound_a_profile() -> None:
    """No test is used of a claim that was refused, or of a guarantee that needs no test."""
    document = load(
        doc(
            "name=counted epsilon=0.5 delta=1e-3 sampling_probability=0.4 iterations=4 sampler=b-min-sep",
            "min_separation=2 matrix=toeplitz multiplier=1.0",
            coefficients=COEFFICIENTS,
        )
    )
    session = open_session(compile_document(document), RunOptions(threads=1, seed=1))
    instance = session.plan.at()
    shape = LogSobolev(2.0, 3.0)
    limits = SampleLimits(1.0, 0.0, 0.0)
    place = replace(plain_proposal(session.mechanism(instance), "add"), log_sobolev=shape)
    test = tests_of_claims.Test("add", 1.0, 0.5, 1e-3, place, limits, (), 0, 1.0, 1.0, 0.0, None, accepted=True)
    acceptance = stated_separately(1e-3, 1e-5)

    def known(kind: Any, tests: tuple[Any, ...], refused: int = 0) -> tuple[Any, ...]:
        result = Result(instance, acceptance, SequenceResult(1.0, tests), kind, 0.5, 1e-3, refused=refused)
        return tuple(evidence._known(session, result).tests)

    noisier = replace(test, noise_multiplier=1.1)
    quieter = replace(test, noise_multiplier=0.9)
    assert known("verified", (noisier, test, quieter)) == (test, quieter)
    assert known("deterministic", (test,)) == ()
    assert known("confidence", (test, quieter), refused=1) == (quieter,)
