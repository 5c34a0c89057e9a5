"""Guarantees from samples: statistical tests that can fail, agreement with composition, reproducibility, refusals."""

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from made import sampled
from phases import phase
from plain_documents import doc, sectioned
from scipy.stats import binom, norm
from snapshots import Snapshot

import pyaccount
from pyaccount import _core, cli
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import betting_choice, tests_of_claims
from pyaccount.execute.sampling.betting_choice import Betting, Claim, choose_betting
from pyaccount.execute.sampling.estimates import Effort, Estimate, stated_estimates
from pyaccount.execute.sampling.evidence import curve_of
from pyaccount.execute.sampling.fixed_sequence import root
from pyaccount.execute.sampling.forecast import forecast
from pyaccount.execute.sampling.jobs import SHARD, WAVE, BetTable, Proposal
from pyaccount.execute.sampling.profile import draw
from pyaccount.execute.sampling.proposals import plain_proposal, scaled
from pyaccount.execute.sampling.session import open_session
from pyaccount.execute.sampling.shards import Sampler, Stream
from pyaccount.execute.sampling.tests_of_claims import divergence, plan_fixed_sample
from pyaccount.plan.matrices import Strategy, strategy
from pyaccount.plan.sampled import SampledMechanism


def document(**changes: Any) -> dict[str, Any]:
    """Return a small b-min-sep document; nested keys are replaced whole."""
    return (
        doc(
            "name=small epsilon=1.0 delta=1e-3 participation_rate=0.05 iterations=40 sampler=b-min-sep",
            "min_separation=4 matrix=banded-square-root bands=4 multiplier=solve seed=7 profile=[0.5,1.0]",
        )
        | changes
    )


#: A run whose samples are drawn quickly.
FEW = {"participation_rate": 0.05, "iterations": 8}

#: A document that asks for sampling although it could be composed.
MONTE_CARLO = {"method": "monte-carlo", "seed": 7, "profile": [0.5, 1.0]}


def sampler(seed: int = 3) -> Sampler:
    return Sampler(RunOptions(seed=seed, threads=0))


#: One round of Poisson sampling, p = 0.2, σ = 1: every number has a closed form.
P, SIGMA, EPSILON = 0.2, 1.0, 0.4


def one_round() -> SampledMechanism:
    return SampledMechanism(sampled("renewal", [1.0 / SIGMA], 1, 1, P, False), ("remove", "add"), 1, 100.0, P)


def exact(direction: str, epsilon: float) -> float:
    """Return δ(ε) of one round in closed form: the likelihood ratio is monotone in y."""
    alpha = math.exp(epsilon if direction == "remove" else -epsilon)
    if alpha <= 1.0 - P:
        return 0.0
    y = SIGMA**2 * math.log((alpha - 1.0 + P) / P) + 0.5
    p_above = (1 - P) * norm.sf(y / SIGMA) + P * norm.sf((y - 1) / SIGMA)
    q_above = norm.sf(y / SIGMA)
    if direction == "remove":
        return float(p_above - math.exp(epsilon) * q_above)
    return float((1 - q_above) - math.exp(epsilon) * (1 - p_above))


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("excess", [0.0, 0.7])
def test_a_false_claim_is_accepted_no_more_often_than_stated(
    direction: Any, excess: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 verifications of a mechanism just outside the claim, with a pilot that misjudges it and a large q."""
    monkeypatch.setattr(tests_of_claims, "LEAST_SHARDS", 6)
    monkeypatch.setattr(tests_of_claims, "PATIENCE", 0.0)
    epsilon = EPSILON if direction == "remove" else 0.1
    mechanism, truth, q, runs = one_round(), exact(direction, epsilon), 0.1, 2000
    claim = Claim(mechanism, SIGMA, epsilon, 0.985 * truth, math.log(1.0 / q))
    one = sampler()
    proposal = plain_proposal(mechanism, direction) if excess == 0.0 else scaled(mechanism, direction, excess, 1.0)
    cap = one.limits(mechanism, direction, proposal, epsilon).weight_bound
    assert claim.delta < cap < 2.0
    # Betting fractions so large that the wealth of 6,000 samples varies enough for false acceptances to occur.
    square = sum(
        s[0].square for s in one.run(mechanism, direction, proposal, [BetTable(epsilon, cap)], Stream("pilot", WAVE, 0))
    )
    stake = min(0.9 / cap, math.sqrt(2.0 * 32 * SHARD / (6 * SHARD) / square * math.log(1 / q)))
    betting = Betting(proposal, cap, (stake, 0.5 * stake), 1.0)
    accepted = sum(tests_of_claims._bet(one, claim, direction, betting).accepted for _ in range(runs))
    assert accepted <= binom.ppf(1 - 1e-6, runs, q)
    # The test can fail: false claims this close to the truth are accepted now and then, and a true one mostly is.
    assert accepted > 0
    true_claim = Claim(mechanism, SIGMA, epsilon, 1.5 * truth, math.log(1.0 / q))
    assert sum(tests_of_claims._bet(one, true_claim, direction, betting).accepted for _ in range(50)) > 40


@pytest.mark.parametrize(("direction", "epsilon"), [("remove", 0.4), ("add", 0.1)])
@pytest.mark.parametrize("excess", [0.0, 0.7])
def test_curves_cover_the_truth(direction: Any, epsilon: float, excess: float) -> None:
    mechanism, truth, q, runs = one_round(), exact(direction, epsilon), 0.1, 400
    one = sampler(11)
    proposal = plain_proposal(mechanism, direction) if excess == 0.0 else scaled(mechanism, direction, excess, 1.0)
    points = [draw(one, mechanism, direction, proposal, epsilon, 1).point(one, epsilon, q) for _ in range(runs)]
    assert sum(point.delta < truth for point in points) <= binom.ppf(1 - 1e-6, runs, q)
    assert sum(point.delta_lower > truth for point in points) <= binom.ppf(1 - 1e-6, runs, q)
    assert all(0.0 <= point.delta_lower <= point.delta <= 1.0 for point in points)
    # The bounds are not trivial.
    assert np.median([point.delta for point in points]) < 2.0 * truth


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_min_separation_of_one_is_poisson_sampling(adjacency: str) -> None:
    """The mean of the estimator, and the confidence statement, agree with the proven interval of a composition."""
    common = sectioned(
        "epsilon=2.0 delta=solve sampling_probability=0.1 iterations=30 matrix=identity multiplier=1.0",
        adjacency=adjacency,
    )
    composed = pyaccount.certify(document(**common, sampler={"kind": "poisson"}))
    sampler = {"kind": "b-min-sep", "min_separation": 1, "start": "cold"}
    assert pyaccount.certify(document(**common, sampler=sampler)).data.guarantee == composed.data.guarantee
    sampled = document(**common, sampler=sampler, accounting=MONTE_CARLO)
    plan = pyaccount.compile(sampled)
    session = open_session(plan, RunOptions(threads=0, seed=0))
    # Each direction is estimated separately: next to a larger one, a negligible one gets only a rough estimate.
    mechanism = session.mechanism(plan.at())
    estimates = {side: session.estimator.at(mechanism, side, 2.0, Effort(128)) for side in mechanism.directions}
    for direction, estimate in estimates.items():
        interval = getattr(composed.data.directions, "remove" if direction == "replace" else direction)
        middle = 0.5 * (interval.delta + interval.delta_lower)
        assert estimate.standard_error < 0.05 * middle
        assert abs(estimate.value - middle) < 5 * estimate.standard_error + 1e-3 * middle
    monte_carlo = pyaccount.certify(sampled)
    assert monte_carlo.data.guarantee.kind == "confidence"
    assert monte_carlo.data.guarantee.delta_lower <= composed.delta
    assert composed.data.guarantee.delta_lower <= monte_carlo.delta < 1.5 * composed.delta
    again = pyaccount.certify(document(**common, sampler={"kind": "poisson"}, accounting=MONTE_CARLO))
    assert again.delta == monte_carlo.delta


def test_a_solved_epsilon_encloses_the_composed_one() -> None:
    common = sectioned(
        "adjacency=add-remove epsilon=solve delta=1e-3 sampling_probability=0.1 iterations=30 matrix=identity",
        "multiplier=1.0",
    )
    composed = pyaccount.certify(document(**common, sampler={"kind": "poisson"}))
    sampled = pyaccount.certify(document(**common, sampler={"kind": "poisson"}, accounting=MONTE_CARLO))
    guarantee = sampled.data.guarantee
    assert guarantee.kind == "confidence"
    assert guarantee.failure_probability == pytest.approx(1e-5)
    assert composed.epsilon_lower <= guarantee.epsilon <= 1.03 * composed.epsilon
    assert 0.9 * composed.epsilon < guarantee.epsilon_lower <= composed.epsilon
    assert "with probability at least 1 − 1e-5" in sampled.statement


@pytest.mark.usefixtures("drawn_once")
def test_calibration_is_verified_and_tight() -> None:
    certificate = pyaccount.certify(document())
    data = certificate.data
    assert data.guarantee.kind == "verified"
    assert data.guarantee.failure_probability == 0.0
    assert (certificate.epsilon, certificate.delta) == (1.0, 1e-3)
    assert data.guarantee.delta_lower > 0.5e-3
    assert data.guarantee.epsilon_lower > 0.9
    sampling = data.evidence.sampling
    assert sampling is not None
    assert {test.direction for test in sampling.tests if test.accepted} == {"remove", "add"}
    # The tests' error probability is included: δ₀ + q(1 − δ₀) is the δ stated.
    threshold = {test.threshold for test in sampling.tests}.pop()
    assert threshold + sampling.total_probability * (1.0 - threshold) == pytest.approx(1e-3, rel=1e-12)
    assert all(test.log_target == pytest.approx(math.log(2 / sampling.total_probability)) for test in sampling.tests)
    # With three per cent less noise the claim cannot be certified.
    assert certificate.noise_multiplier is not None
    refused = pyaccount.certify(document(noise={"multiplier": 0.97 * certificate.noise_multiplier}))
    assert not refused.holds
    assert refused.data.guarantee.kind == "confidence"
    assert refused.epsilon > 1.0
    accepted = pyaccount.certify(document(noise={"multiplier": 1.02 * certificate.noise_multiplier}))
    assert accepted.holds
    assert accepted.data.guarantee.kind == "verified"


@pytest.mark.usefixtures("drawn_once")
def test_the_fixed_sample_test_is_the_papers() -> None:
    plan = plan_fixed_sample(1e-3)
    assert plan.bar == 5e-4
    assert plan.delta + plan.failure_probability * (1 - plan.delta) <= 1e-3
    assert plan.failure_probability == pytest.approx(
        math.exp(-plan.samples * divergence(plan.bar, plan.delta)), rel=1e-9
    )
    # Fewer samples do not suffice.
    best = min(
        d + math.exp(-0.9 * plan.samples * divergence(plan.bar, d)) * (1 - d)
        for d in np.linspace(5.01e-4, 9.999e-4, 500)
    )
    assert best > 1e-3
    fixed = pyaccount.certify(document(accounting={"seed": 7, "verification": "fixed-sample", "profile": []}))
    assert fixed.data.guarantee.kind == "verified"
    assert fixed.data.evidence.sampling is not None
    assert fixed.data.evidence.sampling.verification == "fixed-sample"
    betting = pyaccount.certify(document())
    assert betting.noise_multiplier is not None
    assert fixed.noise_multiplier is not None
    assert betting.noise_multiplier < fixed.noise_multiplier < 1.25 * betting.noise_multiplier


def test_threads_change_nothing_and_seeds_do() -> None:
    def run(threads: int, seed: int) -> dict[str, Any]:
        plan = pyaccount.compile(document(training=FEW, accounting={"seed": seed, "profile": [1.0]}))
        data = json.loads(plan.run(threads=threads).to_json())
        del data["created"], data["content_sha256"]
        return data

    first, second, other = run(1, 7), run(2, 7), run(2, 8)
    assert first == second
    assert first["noise_multiplier"] != other["noise_multiplier"]
    assert first["evidence"]["sampling"]["seed_source"] == "document"


@pytest.mark.entropy
def test_the_seed_comes_from_the_system_and_is_recorded() -> None:
    unseeded = document(training=FEW, accounting={"profile": []})
    data = [pyaccount.certify(unseeded).data for _ in range(2)]
    assert all(one.evidence.sampling is not None for one in data)
    seeds = [one.evidence.sampling.seed for one in data if one.evidence.sampling is not None]
    assert seeds[0] != seeds[1]
    again = pyaccount.certify(document(training=FEW, accounting={"seed": seeds[0], "profile": []}))
    assert again.noise_multiplier == data[0].noise_multiplier


def test_a_pattern_without_randomness_falls_back_to_the_gaussian() -> None:
    """b = n and p = 1 from a cold start: one participation, in the first round, so sampling cannot amplify anything."""
    certain = document(
        training={"participation_rate": 0.25, "iterations": 4},
        sampler={"kind": "b-min-sep", "min_separation": 4, "start": "cold"},
    )
    certificate = pyaccount.certify(certain)
    assert certificate.data.guarantee.kind == "deterministic"
    sigma = certificate.noise_multiplier
    assert sigma is not None
    delta = norm.cdf(0.5 / sigma - sigma) - math.e * norm.cdf(-0.5 / sigma - sigma)
    assert delta == pytest.approx(1e-3, rel=1e-4)
    assert delta <= 1e-3


def test_choices_take_the_least_error() -> None:
    options = {"kind": {"choose": ["banded-square-root", "optimal-toeplitz"]}, "bands": {"choose": [1, 4]}}
    certificate = pyaccount.certify(document(matrix=options, accounting={"seed": 1, "profile": []}))
    considered = certificate.data.evidence.considered
    assert len(considered) == 4
    best = min(considered, key=lambda one: one.prefix_sum_mse_estimate)
    assert (certificate.data.phases[0].matrix.kind, certificate.data.phases[0].matrix.bands) == (
        best.matrix,
        best.bands,
    )
    assert certificate.data.document["matrix"] == options
    utility = certificate.data.utility
    assert utility is not None
    assert utility.prefix_sum_mse == pytest.approx(best.prefix_sum_mse_estimate, rel=0.05)
    assert utility.prefix_sum_rmse == pytest.approx(math.sqrt(utility.prefix_sum_mse))
    reread = pyaccount.Certificate.from_json(certificate.to_json())
    lower, upper = reread.profile.delta(epsilon=1.0)
    # The guarantee bounds the profile at its own ε.
    assert lower < 1e-3 <= upper < 3e-3
    lower, upper = reread.profile.epsilon(delta=1e-2)
    assert 0.0 < lower < upper < 1.0


def test_the_recorded_seed_repeats_the_choice_too() -> None:
    matrix = {"kind": "optimal-toeplitz", "bands": {"choose": [1, 4]}}
    first = pyaccount.certify(document(training=FEW, accounting={"profile": []}, matrix=matrix)).data.evidence
    assert first.sampling is not None
    accounting = {"profile": [], "seed": first.sampling.seed}
    second = pyaccount.certify(document(training=FEW, accounting=accounting, matrix=matrix)).data.evidence
    assert second.sampling is not None
    assert second.considered == first.considered
    assert second.sampling.tests == first.sampling.tests


def test_candidates_share_one_time_limit(snapshot: Snapshot) -> None:
    matrix = {"kind": "optimal-toeplitz", "bands": {"choose": [1, 2, 3, 4]}}
    snapshot.raised(lambda: pyaccount.certify(document(matrix=matrix), time_limit=1e-6))


def test_profiles_of_sampled_mechanisms_enclose_composed_ones() -> None:
    common = sectioned(
        "adjacency=zero-out epsilon=2.0 delta=1e-4 sampling_probability=0.1 iterations=30 matrix=identity multiplier=1.2"
    )
    exact_profile = pyaccount.certify(document(**common, sampler={"kind": "poisson"})).profile
    loaded = pyaccount.load(document(**common, sampler={"kind": "poisson"}, accounting=MONTE_CARLO))
    curve = curve_of(loaded, (2.0, 1.0), 5, 1e-6)
    epsilons = (0.0, 0.5, 1.0, 2.0, 3.0)
    session = open_session(pyaccount.compile(loaded), RunOptions(threads=0, seed=5))
    mechanism = session.mechanism(session.plan.at())
    estimates = stated_estimates(session.estimator, mechanism, "remove", epsilons, (64, 64))
    for epsilon, estimate in zip(epsilons, estimates, strict=True):
        point, truth = curve.point(epsilon), exact_profile.delta(epsilon=epsilon)
        assert point.delta_lower <= truth.upper
        assert truth.lower <= point.delta
        # Removing a record is the larger direction here.
        assert abs(estimate.value - truth.upper) < 6 * estimate.standard_error + 2e-3 * truth.upper
    for delta in (1e-2, 1e-3):
        low, high = curve.epsilons(delta)
        truth = exact_profile.epsilon(delta=delta)
        assert 0.0 < low < truth.upper
        assert truth.lower < high < 1.3 * truth.upper
    assert curve.epsilons(1e-250)[1] == math.inf


def test_histograms_merge(snapshot: Snapshot) -> None:
    mechanism, one = one_round(), sampler()
    parts = [draw(one, mechanism, "remove", plain_proposal(mechanism, "remove"), EPSILON, shards) for shards in (2, 3)]
    merged = parts[0].merged(parts[1])
    assert merged.losses.samples == sum(part.losses.samples for part in parts) == 5 * _core.SHARD_SIZE
    counts = [_core.Inspection.bins(part.losses)[0] for part in (merged, *parts)]
    assert counts[0] == [a + b for a, b in zip(*counts[1:], strict=True)]
    snapshot.raised(lambda: parts[0].merged(draw(one, mechanism, "add", plain_proposal(mechanism, "add"), EPSILON, 1)))
    below, above, _ = merged.losses.moments(EPSILON)
    assert below <= above <= below * 1.2
    truth = exact("remove", EPSILON)
    assert below - 0.02 < truth < above + 0.02


def test_proposals_that_leave_out_patterns_bound_nothing() -> None:
    mechanism = _core.Sampled.renewal([1 / 0.3], 5, 2, 0.3, False)
    for direction in ("remove", "replace"):
        assert mechanism.bounds(direction, 1.0, 4.0, 10.0)[0] == math.inf
        assert 0.0 < mechanism.bounds(direction, 1.0 - 1e-15, 4.0, 10.0)[0] < math.inf
    assert mechanism.balanced_parameters(9.0)[0] < 1.0
    assert mechanism.bounds("remove", 0.4, 1.0, 1.0)[0] == math.inf


def test_a_cap_below_the_claim_needs_no_samples() -> None:
    """In the add direction the loss is at most −n ln(1 − p); far above it the weight bound alone certifies."""
    mechanism, one = one_round(), sampler()
    claim = Claim(mechanism, SIGMA, 6.0, 1e-4, math.log(1e6))
    estimate = Estimate(0.0, 0.0, 0.0, 1024, Proposal(P, -2.0))
    betting = choose_betting(one, claim, "add", estimate)
    assert betting is not None
    test = tests_of_claims._bet(one, claim, "add", betting)
    assert test.accepted
    assert test.samples == 0
    assert test.limits.weight_bound + test.limits.generator <= 1e-4


def test_a_cap_within_the_generators_error_of_the_claim_decides_nothing() -> None:
    mechanism, one = one_round(), sampler()
    proposal = Proposal(P, -2.0)
    limits = one.limits(mechanism, "add", proposal, 6.0)
    assert limits.generator > 0.0
    for delta, accepted in ((limits.weight_bound, False), (limits.weight_bound + 2.0 * limits.generator, True)):
        claim = Claim(mechanism, SIGMA, 6.0, delta, math.log(1e6))
        test = tests_of_claims._bet(one, claim, "add", Betting(proposal, limits.weight_bound, (), 0.0))
        assert test.accepted is accepted
        assert test.samples == 0


def test_roots_are_found_through_noise() -> None:
    noise = np.random.default_rng(1)

    def decreasing(x: float) -> tuple[float, float]:
        return -15.0 * math.log(x / 1.6) + 0.02 * noise.standard_normal(), 0.02

    for start in (0.1, 1.0, 5.0):
        assert root(decreasing, start, 0.01, 10.0) == pytest.approx(1.6, rel=0.01)
    assert root(decreasing, 1.0, 2.0, 10.0) == 2.0
    assert root(decreasing, 1.0, 0.01, 1.2) == 1.2


def patterns(n: int, b: int, most: int) -> list[tuple[int, ...]]:
    """Return all sets of at most `most` rounds at least b apart."""
    return [
        rounds
        for size in range(1, most + 1)
        for rounds in itertools.combinations(range(n), size)
        if all(j - i >= b for i, j in itertools.pairwise(rounds))
    ]


@pytest.mark.parametrize("b", [1, 2, 3])
@pytest.mark.parametrize("most", [1, 2, 4, 9])
def test_sensitivities_bound_every_pattern(b: int, most: int) -> None:
    rng = np.random.default_rng(b * 10 + most)
    n = 9
    cases: list[Strategy] = []
    for coefficients in ([1.0, 0.5, 0.375], [1.0, 0.2, 0.9], [0.5, 1.0]):
        shown = document(matrix={"kind": "toeplitz", "coefficients": coefficients, "normalize": False})
        shown |= {"training": {"iterations": n}, "sampler": {"kind": "none"}}
        cases.append(strategy(phase(pyaccount.load(shown).with_value(("noise", "multiplier"), 1.0))))
    dense = np.tril(rng.random((n, n))) * (rng.random((n, n)) < 0.5) + np.eye(n)
    cases.append(Strategy(n, None, dense, cases[0].error, 1.0))
    for case in cases:
        if case.coefficients is not None:
            column = np.zeros(n)
            column[: len(case.coefficients)] = case.coefficients
            matrix = np.array([[column[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])
        else:
            matrix = dense
        truth = max(np.linalg.norm(matrix[:, list(rounds)].sum(axis=1)) for rounds in patterns(n, b, min(most, n)))
        above, below = case.sensitivity(b, most)
        assert below - 1e-9 <= truth <= above + 1e-9
        if above == below:
            assert truth == pytest.approx(above, rel=1e-9)


def test_unsampled_matrices_are_one_gaussian() -> None:
    body = document(
        sampler={"kind": "none", "min_separation": 10},
        training={"iterations": 40},
        matrix={"kind": "optimal-toeplitz", "bands": 8},
        noise={"multiplier": 2.0},
        privacy={"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
    )
    certificate = pyaccount.certify(body)
    # Four orthogonal columns of norm 1 (the last one complete, since it starts at round 30).
    mu = 2.0 / 2.0
    delta = norm.cdf(mu / 2 - certificate.epsilon / mu) - math.exp(certificate.epsilon) * norm.cdf(
        -mu / 2 - certificate.epsilon / mu
    )
    assert delta == pytest.approx(1e-5, rel=1e-4)
    assert certificate.data.guarantee.kind == "deterministic"


REFUSED: list[Any] = [
    {
        "privacy": {"adjacency": "zero-out", "epsilon": 1, "delta": 1e-3, "group_size": "solve"},
        "noise": {"multiplier": 1.0},
    },
    {"accounting": {"method": "pld"}},
    {"sampler": {"kind": "none"}, "training": {"iterations": 40}, "accounting": {"method": "monte-carlo"}},
    {"training": {"participation_rate": 0.05, "iterations": "solve"}, "noise": {"multiplier": 1.0}},
    {"sampler": {"kind": "balls-in-bins", "bins": 20}, "matrix": {"kind": "dense", "file": "none.npy"}},
]


@pytest.mark.parametrize("changes", REFUSED)
def test_what_is_not_covered_is_refused(changes: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.compile(document(**changes)))


def test_balls_in_bins_with_a_matrix_from_a_file(tmp_path: Path, snapshot: Snapshot) -> None:
    rng = np.random.default_rng(4)
    matrix = np.tril(rng.random((12, 12))) + np.eye(12)
    np.save(tmp_path / "c.npy", matrix)
    (tmp_path / "doc.yaml").write_text(
        json.dumps(
            document(
                training={"iterations": 12},
                sampler={"kind": "balls-in-bins", "bins": 4},
                matrix={"kind": "dense", "file": "c.npy"},
                accounting={"seed": 1, "profile": []},
            )
        )
    )
    certificate = pyaccount.certify(tmp_path / "doc.yaml")
    phase = certificate.data.phases[0]
    assert certificate.data.guarantee.kind == "verified"
    assert phase.matrix.column_norm == pytest.approx(1.0)
    assert phase.matrix.sha256 is not None
    assert phase.participation_rate == 0.25
    assert phase.sampling_probability is None
    np.save(tmp_path / "c.npy", -matrix)
    snapshot.raised(lambda: pyaccount.compile(tmp_path / "doc.yaml"))


def test_a_time_limit_stops_without_a_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "doc.yaml", tmp_path / "cert.json"
    body = document(
        privacy={"adjacency": "replace-one", "epsilon": 1, "delta": 1e-6},
        training={"participation_rate": 0.05, "iterations": 2000},
        accounting={"time_limit": 0.5, "seed": 1},
    )
    source.write_text(json.dumps(body))
    assert cli.run(["certify", str(source), "-o", str(target)]) == cli.STOPPED
    assert not target.exists()
    message = capsys.readouterr().err
    assert "time limit" in message
    assert "samples" in message
    assert "seed 1" in message


def test_plans_estimate_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "doc.yaml"
    source.write_text(json.dumps(document()))
    assert cli.run(["plan", str(source)]) == 0
    plain_text = capsys.readouterr().out
    assert "plain samples" in plain_text
    assert "not a guarantee" not in plain_text
    assert cli.run(["plan", str(source), "--estimate"]) == 0
    estimated = capsys.readouterr().out
    assert "σ near" in estimated
    assert " ".join(estimated.split()).count("not a guarantee") == 3


def test_a_forecast_says_where_tests_draw_from_and_why_not_from_a_power() -> None:
    document = doc(
        "name=draws epsilon=1.0 sampling_probability=0.05 iterations=60 sampler=b-min-sep min_separation=5",
        "matrix=toeplitz coefficients=[1,0.5,0.3] multiplier=solve seed=3 tolerance=0.03",
    )
    plan = pyaccount.compile(document)
    (removed,) = [line for line in forecast(plan, RunOptions()).draws if line.startswith("remove")]
    assert re.fullmatch(
        r"remove: about \S+ samples from the power \d+ of the likelihood ratio( by .*)?, a chain of \d+ states", removed
    )
    with patch.object(betting_choice, "MOST_SAMPLED", 10):
        _, why = [line for line in forecast(plan, RunOptions()).draws if line.startswith("remove")]
    assert why.startswith("remove: a power of the likelihood ratio needs a chain of at least 15 states")
    with patch.object(betting_choice, "SLOWER", 1e6):
        _, why = [line for line in forecast(plan, RunOptions()).draws if line.startswith("remove")]
    assert why.endswith("that is expected to cost more than it saves")


def test_an_epsilon_of_zero_has_a_price_too() -> None:
    """If δ(0) is below δ already, no distance can be added to the pilot's value 0: the only claim tested is ε = 0."""
    document = doc(
        "name='nothing to solve' delta=0.4 iterations=4 sampling_probability=0.1 sampler=b-min-sep",
        "min_separation=2 matrix=banded-square-root bands=2 multiplier=3",
    )
    plan = pyaccount.compile(document)
    found = forecast(plan, RunOptions())
    assert (found.pilot_value, found.ends_at) == (0.0, 0.0)
    assert [one.value for one in found.trade] == [0.0]
    assert plan.run().epsilon == 0.0
