"""Samples of a power of the likelihood ratio, and bounds for an added record: against enumeration and quadrature."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from exact_mixtures import Mixture, hockey_stick, nothing
from log_sums import logsumexp
from made import sampled
from plain_documents import doc
from sampled_tools import lower_toeplitz, renewal_law
from snapshots import Snapshot

import pyaccount
from pyaccount import _core
from pyaccount.errors import LimitError, NumericsError
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import betting_choice
from pyaccount.execute.sampling.betting_choice import Betting, Claim, _sampled_replicas, choose_betting
from pyaccount.execute.sampling.estimates import Effort, Estimate, Estimator
from pyaccount.execute.sampling.jobs import SHARD, Bet, BetTable, Replicas
from pyaccount.execute.sampling.proposals import plain_proposal, powered
from pyaccount.execute.sampling.shards import Sampler, Stream
from pyaccount.execute.sampling.tests_of_claims import run_betting_tests
from pyaccount.plan.sampled import SampledMechanism, added_bound, added_profile

#: Rounds, separation, probability, warm start, coefficients in units of σ.
SMALL: list[tuple[int, int, float, bool, list[float]]] = [
    (4, 2, 0.3, True, [1.2, 0.6]),
    (4, 3, 0.2, False, [0.9, 0.0, 0.7]),
    (3, 1, 0.1, True, [1.5]),
    (4, 3, 0.8, True, [0.8, 0.4]),
]


def sampler(seed: int = 3) -> Sampler:
    return Sampler(RunOptions(seed=seed, threads=1))


def made(n: int, b: int, p: float, warm: bool, coefficients: list[float]) -> SampledMechanism:
    return SampledMechanism(sampled("renewal", coefficients, n, b, p, warm), ("remove", "add"), n, 100.0, p)


def exact(n: int, b: int, p: float, warm: bool, coefficients: list[float]) -> Mixture:
    return Mixture.of(renewal_law(n, b, p, warm=warm), lower_toeplitz(np.array(coefficients), n))


def removed(small: tuple[int, int, float, bool, list[float]], epsilon: float) -> float:
    """Return δ(ε) of a removed record."""
    return _removed((*small[:4], tuple(small[4])), epsilon)


@cache
def _removed(small: tuple[int, int, float, bool, tuple[float, ...]], epsilon: float) -> float:
    """Return the same, cached: it takes a few seconds, and several tests need it."""
    return hockey_stick(exact(*small[:4], list(small[4])), nothing(small[0]), epsilon)


@pytest.mark.parametrize("small", SMALL, ids=lambda small: f"n{small[0]} b{small[1]} p{small[2]}")
@pytest.mark.parametrize("order", [2, 3, 6])
def test_means_are_delta_and_no_sample_is_above_its_bound(
    small: tuple[int, int, float, bool, list[float]], order: int
) -> None:
    mechanism = made(*small)
    drawing, proposal, checked = sampler(), powered(mechanism, Replicas(order)), 0
    for epsilon in (0.5, 2.0, 4.0):
        limits = drawing.limits(mechanism, "remove", proposal, epsilon)
        sums = drawing.run(mechanism, "remove", proposal, [BetTable(epsilon, math.inf)], Stream("verification", 48, 1))
        values = np.array([shard[0].value for shard in sums]) / SHARD
        error = values.std(ddof=1) / math.sqrt(len(values))
        right = removed(small[:5], epsilon)
        if limits.weight_bound < 30.0 * right:
            # For a larger bound the losses that matter are seldom seen.
            assert abs(values.mean() - right) < 4.5 * error + limits.generator
            checked += 1
        # Σ V² ≤ W Σ V for samples in [0, W].
        assert all(shard[0].square <= limits.weight_bound * shard[0].value * (1.0 + 1e-9) for shard in sums)
        assert right <= limits.weight_bound
        assert limits.rounding < 1e-9
        assert limits.generator < 1e-9 * max(1.0, limits.weight_bound)
    assert checked > 0 or order > 2


@pytest.mark.parametrize("small", SMALL, ids=lambda small: f"n{small[0]} b{small[1]} p{small[2]}")
@pytest.mark.parametrize("order", [3, 6])
def test_means_with_few_busy_replicas_fall_short_of_delta_by_what_is_left_out_at_most(
    small: tuple[int, int, float, bool, list[float]], order: int
) -> None:
    mechanism = made(*small)
    drawing, short, whole = sampler(), 0, powered(mechanism, Replicas(order))
    for busy in range(2, order):
        proposal = powered(mechanism, Replicas(order, most_busy=busy))
        for epsilon in (0.5, 2.0):
            limits = drawing.limits(mechanism, "remove", proposal, epsilon)
            sums = drawing.run(
                mechanism, "remove", proposal, [BetTable(epsilon, math.inf)], Stream("verification", 48, 1)
            )
            values = np.array([shard[0].value for shard in sums]) / SHARD
            error = values.std(ddof=1) / math.sqrt(len(values))
            right = removed(small[:5], epsilon)
            assert values.mean() < right + 4.5 * error + limits.generator
            if limits.weight_bound < 30.0 * right:
                assert values.mean() > right - limits.left_out - 4.5 * error - limits.generator
                # The bias is real: without the part left out, the test of a false claim would accept it.
                short += values.mean() < right - 4.5 * error - limits.generator
            assert all(shard[0].square <= limits.weight_bound * shard[0].value * (1.0 + 1e-9) for shard in sums)
            # Both together are a bound without samples, no better than that of all tuples.
            assert limits.weight_bound + limits.left_out >= right
            all_busy = drawing.limits(mechanism, "remove", whole, epsilon).weight_bound
            assert limits.weight_bound + limits.left_out > 0.99 * all_busy
            assert limits.weight_bound < 1.02 * all_busy
    assert short > 0 or small[1] == 1


#: The same, with the rounds of a block.
BLOCKS: list[tuple[int, int, float, bool, list[float], int]] = [
    (5, 4, 0.2, True, [0.9, 0.5, 0.3], 2),
    (4, 4, 0.15, False, [0.7, 0.0, 0.8], 2),
    (4, 2, 0.1, True, [1.2, 0.6], 1),
]


@pytest.mark.nightly(but=["2-n4 b4 h2", "2-n4 b2 h1", "4-n4 b2 h1"])
@pytest.mark.parametrize("small", BLOCKS, ids=lambda small: f"n{small[0]} b{small[1]} h{small[5]}")
@pytest.mark.parametrize("order", [2, 4])
def test_means_are_delta_by_blocks_of_rounds(small: tuple[int, int, float, bool, list[float], int], order: int) -> None:
    mechanism = made(*small[:5])
    drawing, proposal, checked = sampler(), powered(mechanism, Replicas(order, small[5])), 0
    for epsilon in (0.3, 1.5):
        limits = drawing.limits(mechanism, "remove", proposal, epsilon)
        sums = drawing.run(mechanism, "remove", proposal, [BetTable(epsilon, math.inf)], Stream("verification", 48, 1))
        values = np.array([shard[0].value for shard in sums]) / SHARD
        error = values.std(ddof=1) / math.sqrt(len(values))
        right = removed(small[:5], epsilon)
        if limits.weight_bound < 30.0 * right:
            assert abs(values.mean() - right) < 4.5 * error + limits.generator
            checked += 1
        assert all(shard[0].square <= limits.weight_bound * shard[0].value * (1.0 + 1e-9) for shard in sums)
        assert right <= limits.weight_bound
        # A majorant gives no better bound than the chain of rounds.
        assert (
            limits.weight_bound
            > 0.99 * drawing.limits(mechanism, "remove", powered(mechanism, Replicas(order)), epsilon).weight_bound
        )
        assert limits.rounding < 1e-9
    assert checked > 0 or order > 2


def test_a_claim_is_tested_by_blocks_where_that_is_cheaper() -> None:
    coefficients = [0.2 / math.sqrt(k + 1.0) for k in range(16)]
    mechanism, one = made(400, 16, 0.01, True, coefficients), sampler()
    claim = Claim(mechanism, 1.0, 2.0, 1e-9, 12.0)
    betting = choose_betting(one, claim, "remove", Estimator(one).at(mechanism, "remove", 2.0))
    assert betting is not None
    assert betting.proposal.replicas is not None
    assert betting.proposal.replicas.block > 1


def test_no_chain_is_computed_that_takes_longer_than_other_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = made(400, 16, 0.01, True, [0.2 / math.sqrt(k + 1.0) for k in range(16)])
    claim, computed = Claim(mechanism, 1.0, 2.0, 1e-9, 12.0), list[float]()
    limits = betting_choice._power_limits

    def counted(one: Sampler, about: Claim, replicas: Replicas) -> Any:
        price = replicas.price(about.mechanism)
        assert price is not None
        computed.append(betting_choice.CHAIN * price[1])
        return limits(one, about, replicas)

    monkeypatch.setattr(betting_choice, "_power_limits", counted)
    # Small chains would be computed as long as they improve.
    monkeypatch.setattr(betting_choice, "CHEAP_WORK", 0.0)
    assert _sampled_replicas(sampler(), claim, 0.1) is not None
    dearest = max(computed)
    computed.clear()
    _sampled_replicas(sampler(), claim, 0.1, dearest)
    assert computed
    assert max(computed) < betting_choice.LOOKED * dearest


@pytest.mark.nightly
def test_blocks_are_longer_where_the_separation_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = made(1500, 512, 1.3e-4, True, [0.5 / math.sqrt(k + 1.0) for k in range(512)])
    claim, found = Claim(mechanism, 1.0, 2.0, 1e-7, 20.0), []
    for lengths in (betting_choice.LONG_BLOCKS, ()):
        monkeypatch.setattr(betting_choice, "LONG_BLOCKS", lengths)
        one = sampler()
        chosen = _sampled_replicas(one, claim, 0.1)
        assert chosen is not None
        replicas, (states, _) = chosen
        found.append((replicas.block, states, one.limits(mechanism, "remove", powered(mechanism, replicas), 2.0)))
    (long, few, of_long), (short, many, of_short) = found
    assert short <= 16 < long
    assert few < 0.1 * many
    assert of_long.weight_bound < 1.1 * of_short.weight_bound


def test_a_small_claim_is_tested_with_few_busy_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, epsilon = made(2000, 8, 0.01, True, [0.1 / math.sqrt(k + 1.0) for k in range(8)]), 0.8
    estimate = Estimator(sampler()).at(mechanism, "remove", epsilon)
    claim = Claim(mechanism, 1.0, epsilon, 1.1 * estimate.value, 28.0)
    found: list[tuple[Replicas, Betting]] = []
    for allowed in (True, False):
        if not allowed:
            monkeypatch.setattr(betting_choice, "_few_busy", lambda *_: None)
        betting = choose_betting(sampler(), claim, "remove", estimate)
        assert betting is not None
        assert betting.proposal.replicas is not None
        found.append((betting.proposal.replicas, betting))
    (few, fewer), (whole, more) = found
    assert whole.most_busy == 0
    assert 2 < few.most_busy < few.order
    assert fewer.expected_samples < 0.3 * more.expected_samples
    # The part left out is subtracted from the claim that is tested.
    limits = sampler().limits(mechanism, "remove", fewer.proposal, epsilon)
    assert 0.0 < limits.left_out < 0.01 * claim.delta


def test_a_claim_that_is_just_true_is_seldom_refuted() -> None:
    """The wealth against the true claim "δ(ε) ≥ δ(ε)" reaches 1/q in at most a share q of the runs."""
    small = SMALL[0]
    mechanism, epsilon = made(*small), 2.0
    truth = removed(small, epsilon)
    drawing, proposal = sampler(5), powered(mechanism, Replicas(2))
    bound = drawing.limits(mechanism, "remove", proposal, epsilon).weight_bound
    bets = tuple(Bet(truth, share / (bound - truth)) for share in (0.05, 0.2, 0.5))
    runs, q, reached = 200, 0.1, 0
    for candidate in range(runs):
        sums = drawing.run(
            mechanism, "remove", proposal, [BetTable(epsilon, bound, bets)], Stream("verification", 12, candidate + 1)
        )
        wealth = np.exp(np.cumsum([shard[0].log_wealth for shard in sums], axis=0)).mean(axis=1)
        reached += bool(wealth.max() >= 1.0 / q)
    # 200 draws of probability 0.1 exceed 33 with probability 2e-3. Bets do win sometimes.
    assert 0 < reached <= 33


@pytest.mark.parametrize("small", SMALL[:3], ids=lambda small: f"n{small[0]} b{small[1]} p{small[2]}")
@pytest.mark.parametrize("scale", [0.1, 0.3])
def test_bounds_of_an_added_record_hold(small: tuple[int, int, float, bool, list[float]], scale: float) -> None:
    """Bounds are above δ by quadrature, and above E V² by many outcomes of R tilted."""
    n, b, p, warm, coefficients = small
    small = (n, b, p, warm, [scale * c for c in coefficients])
    core, truth = made(*small).core, exact(*small)
    law = renewal_law(n, b, p, warm=warm)
    means = np.array(list(law), dtype=float) @ lower_toeplitz(np.array(small[4]), n).T
    logs = np.log(np.array(list(law.values())))
    mean = np.exp(logs) @ means
    rng = np.random.default_rng(11)
    for epsilon in (0.01, 0.05):
        right = hockey_stick(nothing(n), truth, epsilon)
        # The same bounds for a whole profile without samples, in both directions.
        (added,), (removed_,) = (made(*small).bounded_profile(side, [epsilon]) for side in ("add", "remove"))
        assert added >= right
        assert removed_ >= removed(small, epsilon)
        for tilt in (0.5, 5.0, 15.0, 40.0):
            found = core.added_bounds(-tilt, [epsilon])
            assert found is not None
            assert right <= math.exp(min(found[0][1], 700.0))
        best = added_bound(core, epsilon, "square")
        if best is None:
            # Here ln f is not nearly linear.
            assert scale > 0.1
            continue
        for tilt in (0.5 * best[1], best[1]):
            y = rng.normal(size=(200_000, n)) - tilt * mean
            log = logsumexp(logs - 0.5 * (means**2).sum(axis=1) + y @ means.T, axis=1)
            weight = np.exp(tilt * (y @ mean) + 0.5 * tilt * tilt * mean @ mean)
            value = weight * np.maximum(-np.expm1(epsilon + log), 0.0)
            assert abs(value.mean() - right) < 5.0 * value.std() / math.sqrt(len(value))
            square = value**2
            least = square.mean() - 5.0 * square.std() / math.sqrt(len(value))
            found = core.added_bounds(-tilt, [epsilon])
            assert found is not None
            assert least <= math.exp(min(found[0][0], 700.0))
        # If ln f is nearly linear, the bound is close.
        assert scale > 0.1 or best[0] < 20.0 * square.mean()


def test_what_is_known_where_a_record_is_added_is_the_least_over_tilts() -> None:
    column = np.cumprod([1.0, *((2.0 * j - 1.0) / (2.0 * j) for j in range(1, 8))]) / 8.0
    core = made(400, 8, 0.02, True, list(column)).core
    for what, place in (("square", 0), ("delta", 1)):
        found = added_bound(core, 0.5, what)  # type: ignore[arg-type]
        assert found is not None
        looked = [core.added_bounds(-tilt, [0.5]) for tilt in np.geomspace(1.0, 200.0, 60)]
        assert found[0] <= 1.05 * math.exp(min(one[0][place] for one in looked if one is not None))
    # For a whole profile the bounds are close to those of each ε, without a search.
    epsilons = [0.0, 0.1, 0.3, 0.5, 0.8]
    for epsilon, profile in zip(epsilons, added_profile(core, epsilons), strict=True):
        single = added_bound(core, epsilon, "delta")
        assert single is not None
        assert 0.9 * single[0] <= profile <= 1.5 * single[0]
    assert added_profile(_core.Sampled.users([0.5], 10, 2, 0.1, 2, True), epsilons) == [1.0] * 5
    # These are too far from linear, or no bound is known.
    assert added_bound(made(4, 2, 0.3, True, [9.0, 6.0]).core, 2.0, "delta") is None
    assert added_bound(_core.Sampled.users([0.5], 10, 2, 0.1, 2, True), 2.0, "square") is None


def test_a_search_for_a_tilt_ends() -> None:
    """If δ of an added record is 0, larger tilts always prove more: the search ends where doubles do, or at a deadline."""
    core = made(10, 2, 0.01, True, [0.1, 0.05]).core
    found = added_bound(core, 5.0, "delta")
    assert found is not None
    assert found[0] < 1e-300
    assert found[1] < 1e6
    with _core.Deadline(0.0), pytest.raises(LimitError):
        added_bound(core, 5.0, "delta")


def test_tests_take_few_samples_in_both_directions() -> None:
    """Many rounds with rare participations, for which weight bounds of scaled laws are thousands of times δ."""
    column = np.cumprod([1.0, *((2.0 * j - 1.0) / (2.0 * j) for j in range(1, 8))]) / 8.0
    mechanism = made(1000, 8, 0.0107, True, list(column))
    epsilon, one = 0.3, sampler()
    estimates = {side: Estimator(one).at(mechanism, side, epsilon, Effort(shards=64)) for side in mechanism.directions}
    claim = Claim(mechanism, 1.0, epsilon, 1.3 * estimates["remove"].value, 18.0)
    tests = run_betting_tests(one, claim, estimates)
    assert [test.accepted for test in tests] == [True, True]
    remove, add = tests
    assert remove.proposal.replicas is not None
    assert remove.limits.weight_bound < 1000.0 * claim.delta
    assert add.limits.clipped > 0.0 or add.samples == 0
    assert remove.samples + add.samples < 200_000
    # A claim that is too small is refused by both sides together.
    wrong = Claim(mechanism, 1.0, epsilon, 0.97 * estimates["remove"].value, 18.0)
    assert not all(test.accepted for test in run_betting_tests(one, wrong, estimates))


def test_the_order_is_the_best_one_where_chains_are_small() -> None:
    """For three rounds the weight bound falls slowly from the second power on, and rises beyond the 30th or so."""
    mechanism, one = made(3, 4, 0.0064, False, [0.55, 0.28, 0.14]), sampler()
    claim = Claim(mechanism, 1.0, 0.164, 1e-10, 28.0)
    found = choose_betting(
        one, claim, "remove", Estimate(5e-11, 1e-12, 1000.0, 10_000, plain_proposal(mechanism, "remove"))
    )
    assert found is not None
    bounds = {}
    for order in range(2, 60):
        try:
            bounds[order] = one.limits(mechanism, "remove", powered(mechanism, Replicas(order)), 0.164).weight_bound
        except NumericsError:
            break
    assert found.proposal.replicas.order == min(bounds, key=lambda order: bounds[order]) > 10


def test_orders_are_chosen_once_and_only_where_there_is_a_chain(snapshot: Snapshot) -> None:
    mechanism, one = made(*SMALL[0]), sampler()
    estimates = {side: Estimator(one).at(mechanism, side, 3.0) for side in mechanism.directions}
    claim = Claim(mechanism, 1.0, 3.0, 1.05 * estimates["remove"].value, 25.0)
    found = choose_betting(one, claim, "remove", estimates["remove"])
    assert found is not None
    assert one.replicas is not None
    assert found.proposal.replicas.order == one.replicas[0].order
    # There is no chain for truncated batches. For added records more is known only for single ones.
    record = _core.Sampled.renewal([0.5, 0.2], 10, 2, 0.1, True)
    others = (
        _core.Sampled.users([0.5], 10, 2, 0.1, 2, True),
        _core.Sampled.phases([0.5], 10, 2, 0.1),
        _core.Sampled.bins([1.0, 0.2, 0.2, 1.0], 3),
        record.truncated(100, 12),
    )
    for core in others:
        assert core.added_bounds(-1.0, [1.0]) is None
    snapshot.raised(lambda: others[-1].bounds("remove", 0.1, 2.0, 1.0, order=2))
    # The bounds of one run say nothing about an added record, or about two runs.
    assert record.bounds("add", 0.1, 2.0, 1.0, order=2)[0] == math.inf
    assert _core.Sampled.together([(record, 2)]).added_bounds(-1.0, [1.0]) is None
    snapshot.raised(lambda: made(50, 2, 0.1, True, [60.0, 1.0]).core.bounds("remove", 0.1, 5.0, 1.0, order=5))


def test_a_certificate_says_which_power_was_sampled() -> None:
    raw: dict[str, Any] = doc(
        "name=powered epsilon=1.0 delta=1e-4 sampling_probability=0.05 iterations=60 sampler=b-min-sep",
        "min_separation=4 start=warm matrix=toeplitz coefficients=[1,0.5,0.3] multiplier=solve seed=5",
        "profile=[1]",
    )
    certificate = pyaccount.certify(raw, threads=1)
    tests = certificate.data.evidence.sampling.tests
    assert all(test.proposal.order == test.proposal.mean_scale for test in tests if test.direction == "remove")
    written = certificate.to_dict()["evidence"]["sampling"]["tests"]
    assert all(one["proposal"]["order"] is None for one in written if one["direction"] == "add")
    assert pyaccount.verify(certificate, threads=1).agrees
