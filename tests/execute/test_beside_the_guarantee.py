"""What stands beside a guarantee: lower ends and curves from the samples of its tests, and estimates where they are asked for."""

import math
from dataclasses import replace
from typing import Any

import pytest
from exact_mixtures import hockey_stick, nothing
from false_claims import by_rounds, small
from plain_documents import doc
from recorded_jobs import Recording
from scipy.optimize import brentq  # type: ignore[import-untyped]
from scipy.stats import binom

import pyaccount
from pyaccount.document.loading import load
from pyaccount.execute.certified import CertifiedNumbers
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import evidence, tests_of_claims
from pyaccount.execute.sampling.beside import PLAIN_SHARDS, Beside
from pyaccount.execute.sampling.betting_choice import Betting, Claim
from pyaccount.execute.sampling.execute import execute_sampled
from pyaccount.execute.sampling.fixed_sequence import Result
from pyaccount.execute.sampling.jobs import SHARD, Job, edges_around
from pyaccount.execute.sampling.profile import Histogram
from pyaccount.execute.sampling.session import Session
from pyaccount.execute.sampling.shards import PURPOSES, Sampler
from pyaccount.execute.sampling.wealth import share_of
from pyaccount.plan.compiling import compile_document

SOLVED: dict[str, Any] = doc(
    "name=beside epsilon=0.5 delta=3e-2 participation_rate=0.05 iterations=32 sampler=b-min-sep min_separation=4",
    "start=warm matrix=banded-square-root bands=4 multiplier=solve tolerance=0.04 seed=5",
)


def executed(document: dict[str, Any], seed: int = 5) -> tuple[CertifiedNumbers, list[Job]]:
    runner = Recording()
    found = execute_sampled(compile_document(load(document)), RunOptions(threads=1, seed=seed, runner=runner))
    return found, [job for job in runner.jobs if isinstance(job, Job)]


def purpose(job: Job) -> str:
    return next(name for name, number in PURPOSES.items() if number == job.key[1])


def test_shares_of_a_probability_add_up_to_one() -> None:
    assert math.fsum(share_of(k) for k in range(1, 5000)) == pytest.approx(1.0 - 1.0 / 5000.0, rel=1e-12)


def test_lower_ends_from_the_samples_of_a_test_are_false_no_more_often_than_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The test of a true claim ends at any time; the bets for lower ends are of statements that are just false."""
    setting, q, runs = by_rounds(), 0.1, 400
    truth = small(4, 2, 0.3, [1.2, 0.6], warm=True)[1]
    # At this distance δ(ε′) is slightly less than the δ that is stated, and so is δ(ε) below a share of it.
    stated = 1.25 * setting.delta
    place = brentq(lambda e: hockey_stick(truth, nothing(4), e) - stated * (1.0 - 1e-6), 0.5, setting.epsilon)
    monkeypatch.setattr(tests_of_claims, "LOWER_DISTANCES", (1.0 - place / setting.epsilon,))
    monkeypatch.setattr(tests_of_claims, "LOWER_SHARES", (0.8 * (1.0 + 1e-6),))
    sampler = Sampler(RunOptions(seed=4, threads=1))
    claim = Claim(setting.mechanism, 1.0, setting.epsilon, 1.3 * setting.delta, math.log(1.0 / q), stated)
    square = sum(
        one.square
        for (one,) in sampler.run(
            setting.mechanism,
            "remove",
            setting.proposal,
            [tests_of_claims.BetTable(setting.epsilon, math.inf)],
            sampler.stream("pilot", 8),
        )
    ) / (8 * SHARD)
    # So few samples are expected that bets are bold, and luck shows.
    betting = Betting(setting.proposal, setting.weight_bound, (0.2, 0.1), SHARD / 8.0, squares=(square, 1.2 * square))
    epsilons = deltas = 0
    for _ in range(runs):
        test = tests_of_claims._bet(sampler, claim, "remove", betting)
        assert test.below is not None
        epsilon_lower, delta_lower = test.below.ends(q)
        epsilons, deltas = epsilons + (epsilon_lower > 0.0), deltas + (delta_lower > 0.0)
    most = binom.ppf(1.0 - 1e-5, runs, q)
    assert 0 < epsilons <= most
    assert 0 < deltas <= most


def test_bounds_from_any_number_of_shards_hold_together() -> None:
    """A histogram of a test ends where the test ends: its bounds must hold at every number of shards it may end at."""
    setting, q, runs, most = by_rounds(), 0.2, 150, 6
    sampler, false = Sampler(RunOptions(seed=9, threads=1)), 0
    edges = edges_around(setting.epsilon)
    for _ in range(runs):
        merged, wrong = None, False
        stream = sampler.stream("verification", most)
        for shard in range(most):
            job = Job(
                setting.mechanism.recipe, None, "remove", setting.proposal, (), sampler._key(stream, "remove"), edges
            )
            losses = job.run(shard, 1, 1, None).histogram
            assert losses is not None
            merged = losses if merged is None else merged.merged(losses)
            found = Histogram(setting.mechanism, "remove", setting.proposal, merged, share=share_of(shard + 1))
            point = found.point(sampler, setting.epsilon, q)
            wrong = wrong or not point.delta_lower <= setting.delta <= point.delta
        false += wrong
    # Either end may be wrong with this probability.
    assert false <= binom.ppf(1.0 - 1e-5, runs, 2.0 * q)


def test_a_profile_that_is_not_asked_for_has_bounds_everywhere_and_one_estimate() -> None:
    found, jobs = executed(SOLVED)
    guarantee = found.guarantee
    for points in (found.profile, found.directions.remove.profile, found.directions.add.profile):
        assert [point.epsilon for point in points if point.delta_estimate is not None] == [guarantee.epsilon]
        assert all(0.0 < point.delta < 1.0 for point in points)
        assert all(point.delta_lower <= point.delta for point in points)
        (own,) = (point for point in points if point.epsilon == guarantee.epsilon)
        assert own.delta_estimate is not None
        assert own.delta_lower <= own.delta_estimate <= own.delta <= guarantee.delta
        assert own.standard_error is not None
        assert own.standard_error < 0.1 * own.delta_estimate
    # Lower ends are those of the tests, and the curves need but a few plain samples more.
    assert guarantee.epsilon_lower > 0.9 * guarantee.epsilon
    assert guarantee.delta_lower > 0.5 * guarantee.delta
    assert not [job for job in jobs if purpose(job) == "confidence" and job.direction == "remove"]
    drawn = [job for job in jobs if purpose(job) == "profile"]
    assert {job.direction for job in drawn} == {"remove", "add"}
    assert all(job.proposal.replicas is None for job in drawn)


def test_points_that_are_asked_for_are_estimated() -> None:
    found, jobs = executed(SOLVED | {"accounting": SOLVED["accounting"] | {"profile": [0.25, 0.5, 0.75]}})
    assert all(point.delta_estimate is not None for point in found.profile)
    few = sum(purpose(job) == "profile" for job in executed(SOLVED)[1])
    assert sum(purpose(job) == "profile" for job in jobs) > few
    # The guarantee does not depend on it.
    assert found.guarantee == executed(SOLVED)[0].guarantee


def test_nothing_is_drawn_for_a_profile_of_no_points() -> None:
    found, jobs = executed(SOLVED | {"accounting": SOLVED["accounting"] | {"profile": []}})
    assert found.profile == []
    assert not [job for job in jobs if purpose(job) == "profile"]


def test_the_guarantee_itself_is_a_point_of_the_profile() -> None:
    certificate = pyaccount.certify(
        SOLVED | {"privacy": SOLVED["privacy"] | {"epsilon": "solve"}, "noise": {"multiplier": 1.337}}
    )
    epsilon = certificate.data.guarantee.epsilon
    assert epsilon != float(f"{epsilon:.2g}")
    (own,) = (point for point in certificate.data.profile if point.epsilon == epsilon)
    assert own.delta_estimate is not None
    assert own.delta == certificate.data.guarantee.delta


def test_only_tests_of_the_result_itself_give_lower_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with less noise has a larger δ: its lower ends would be false."""
    kept: list[tuple[Session, Result]] = []
    original = evidence.evidence_of

    def remembered(session: Session, result: Result) -> Any:
        kept.append((session, result))
        return original(session, result)

    monkeypatch.setattr("pyaccount.execute.sampling.calibrate.evidence_of", remembered)
    executed(SOLVED)
    ((session, result),) = kept
    mechanism, q = session.mechanism(result.instance), result.acceptance.probability
    runner = Recording()
    session.sampler._runner = runner

    def drawn_for(changed: Result) -> int:
        runner.jobs.clear()
        Beside(session, changed, mechanism, q, None).find_lower_ends()
        return sum(isinstance(job, Job) and purpose(job) == "confidence" for job in runner.jobs)

    def with_tests(**changes: Any) -> Result:
        tests = tuple(replace(test, **changes) for test in result.sequence.tests)
        return replace(result, sequence=replace(result.sequence, tests=tests))

    own = drawn_for(result)
    assert own < 2
    less = 0.999 * session.noise(result.instance)
    for changed in ({"noise_multiplier": less}, {"epsilon": 0.499}, {"threshold": 0.02}, {"accepted": False}):
        assert drawn_for(with_tests(**changed)) == 2 > own
    assert PLAIN_SHARDS > 0
