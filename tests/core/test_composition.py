"""Compositions against closed forms, exact sums and quadrature: intervals must contain the truth and be narrow."""

import json
import math
import random
from functools import partial

import mpmath as mp
import numpy as np
import oracle
import pytest
from nightly import NIGHTLY
from places import GOLDEN
from scipy.special import logsumexp, ndtr  # type: ignore[import-untyped]
from snapshots import Snapshot

from pyaccount._core import Inspection, ProvenInterval, RoundProfile, answer_all, copies


def ask(
    *rounds: tuple[RoundProfile, int], epsilon: float | None = None, delta: float | None = None, tolerance: float = 1e-4
) -> ProvenInterval:
    return answer_all([(list(rounds), epsilon, delta, tolerance)])[0]


def poisson(p: float, sigma: float, group: int = 1, *, reverse: bool = False) -> RoundProfile:
    return RoundProfile.poisson(group, p, sigma, two_sided=False, reverse=reverse)


def contains(interval: ProvenInterval, truth: float | mp.mpf, tolerance: float) -> None:
    assert interval.lower <= truth <= interval.upper, (interval.lower, truth, interval.upper)
    assert interval.upper - interval.lower <= tolerance * interval.upper


GAUSSIANS = [(1.0, 2000, 1e-6), (30.0, 2000, 1e-15), (20.0, 2000, 1e-30), (50.0, 2000, 1e-100), (0.7, 3, 1e-5)]


@pytest.mark.parametrize(("sigma", "count", "delta"), GAUSSIANS)
def test_gaussian_rounds_match_the_closed_form(sigma: float, count: int, delta: float) -> None:
    truth = oracle.gaussian_epsilon(math.sqrt(count) / sigma, delta)
    contains(ask((RoundProfile.gaussian(1.0, sigma), count), delta=delta), truth, 1e-4)


def test_random_gaussian_rounds() -> None:
    rng = random.Random(1)
    for _ in range(60 if NIGHTLY else 20):
        mu, count = 10 ** rng.uniform(-1.5, 1.3), round(10 ** rng.uniform(0.4, 6))
        delta = 10 ** rng.uniform(-60, -0.5)
        sigma = math.sqrt(count) / mu
        tolerance = 10 ** rng.uniform(-4, -1)
        profile = RoundProfile.gaussian(1.0, sigma)
        truth = oracle.gaussian_epsilon(math.sqrt(count) / sigma, delta)
        found = ask((profile, count), delta=delta, tolerance=tolerance)
        assert found.lower <= truth <= found.upper
        assert found.upper - found.lower <= tolerance * max(found.upper, 1e-6)
        if truth > 0:
            with mp.workdps(90):
                exact = oracle.gaussian_delta(mp.mpf(math.sqrt(count) / sigma), mp.mpf(float(truth)))
            back = ask((profile, count), epsilon=float(truth), tolerance=tolerance)
            assert back.lower <= exact <= back.upper


def test_merged_and_separate_gaussians_agree() -> None:
    mixed = ask((RoundProfile.gaussian(1.0, 2.0), 30), (RoundProfile.gaussian(2.0, 9.0), 200), delta=1e-9)
    contains(mixed, oracle.gaussian_epsilon(math.sqrt(30 / 4 + 200 * 4 / 81), 1e-9), 1e-4)


@pytest.mark.parametrize("count", [1, 2, 7, 40, 300])
@pytest.mark.parametrize("loss", [0.05, 1.0])
def test_randomised_response(count: int, loss: float) -> None:
    with mp.workdps(oracle.DIGITS):
        p = mp.mpf(float(1 / (1 + math.exp(-loss))))
        outcomes = [(p, 1 - p), (1 - p, p)]
        profile = Inspection.discrete([(float(a), float(b)) for a, b in outcomes])
        for epsilon in [0.0, 0.3 * loss, 2.5 * loss, 0.8 * count * loss]:
            truth = oracle.discrete_delta(outcomes, count, mp.mpf(epsilon))
            found = ask((profile, count), epsilon=epsilon, tolerance=1e-3)
            # The complement of a double is rounded, so the pair composed differs from the exact one by that much.
            assert found.lower * (1 - 1e-9) <= truth <= found.upper * (1 + 1e-9) + 1e-280


def test_certain_disclosure_is_never_lost() -> None:
    """A pair that discloses everything with probability 1e-4: δ(ε) is at least 1 − (1 − 1e-4)^n for every ε."""
    profile = Inspection.discrete([(1e-4, 0.0), (0.9999, 1.0)])
    for count in [1, 10, 1000]:
        truth = -math.expm1(count * math.log1p(-1e-4))
        found = ask((profile, count), epsilon=5.0, tolerance=1e-3)
        assert found.lower * (1 - 1e-9) <= truth <= found.upper * (1 + 1e-9)
        # No ε reaches a smaller δ.
        assert ask((profile, count), delta=truth / 2, tolerance=1e-3).upper == math.inf


@pytest.mark.parametrize(("p", "sigma"), [(0.1, 0.8), (0.01, 1.0), (0.5, 2.0)])
@pytest.mark.parametrize("reverse", [False, True])
def test_two_rounds_match_quadrature(p: float, sigma: float, *, reverse: bool) -> None:
    """δ of two rounds is the mean over the first one's outcome of the second one's δ at ε − L, α = e^{ε − L}."""
    with mp.workdps(25):
        q, c = mp.mpf(p), 1 / mp.mpf(sigma)
        mixture, plain = [(1 - q, mp.mpf(0)), (q, c)], [(mp.mpf(1), mp.mpf(0))]
        first, second = (plain, mixture) if reverse else (mixture, plain)

        def one_round(alpha: mp.mpf) -> mp.mpf:
            # The likelihood ratio inverts in closed form: e^{cy − c²/2} = (α^{±1} − (1 − p))/p.
            ratio = ((1 / alpha if reverse else alpha) - (1 - q)) / q
            if ratio <= 0:
                return mp.mpf(0) if reverse else 1 - alpha
            y = (mp.log(ratio) + c**2 / 2) / c
            side = -1 if reverse else 1

            def mass(mixture: oracle.Mixture) -> mp.mpf:
                return mp.fsum(w * oracle.tail(side * (y - s)) for w, s in mixture)

            return mass(first) - alpha * mass(second)

        def two_rounds(y: mp.mpf, alpha: mp.mpf) -> mp.mpf:
            density = oracle.density(first, y)
            return density * one_round(alpha * oracle.density(second, y) / density)

        for epsilon in [0.02, 0.5]:
            alpha = mp.exp(mp.mpf(epsilon))
            truth = mp.quad(partial(two_rounds, alpha=alpha), [-12, -6, -3, -1, 0, 1, 2, 3, 4, 6, 8, 12])
            found = ask((poisson(p, sigma, reverse=reverse), 2), epsilon=epsilon, tolerance=1e-4)
            assert found.lower <= truth * (1 + mp.mpf(10) ** -7)
            assert truth * (1 - mp.mpf(10) ** -7) <= found.upper
            if truth == 0:
                # ε exceeds the largest loss of two rounds, so that only allowances for error remain.
                assert found.upper < 1e-40
            else:
                assert found.upper - found.lower <= 1e-4 * found.upper


def test_the_standard_setting() -> None:
    """Poisson, σ = 1, p = 0.01, 2000 rounds, δ = 1e-6; group sizes 2, 8, 32 (peers at a grid of 1e-3: 6.433, 34.89, 259.13)."""
    found = ask((poisson(0.01, 1.0), 2000), delta=1e-6)
    assert 2.9542 <= found.lower <= found.upper <= 2.9563
    narrow = ask((poisson(0.01, 1.0), 2000), delta=1e-6, tolerance=1e-5)
    assert narrow.upper - narrow.lower <= 1e-3
    assert found.lower <= narrow.upper
    assert narrow.lower <= found.upper
    for group, published in [(2, 6.433), (8, 34.89), (32, 259.13)]:
        assert ask((poisson(0.01, 1.0, group), 2000), delta=1e-6).upper == pytest.approx(published, rel=2e-4)


@pytest.mark.parametrize("delta", [1e-15, 1e-30, 1e-100])
def test_small_deltas_are_finite_and_consistent(delta: float) -> None:
    """The interval for ε(δ) and the one for δ(ε) at its middle must overlap: two different tilts, one curve."""
    for reverse in (False, True):
        profile = poisson(0.01, 1.0, reverse=reverse)
        found = ask((profile, 2000), delta=delta)
        assert found.within_tolerance
        below = ask((profile, 2000), epsilon=found.lower, tolerance=1e-3)
        above = ask((profile, 2000), epsilon=found.upper, tolerance=1e-3)
        assert below.upper >= delta >= above.lower


@pytest.mark.parametrize("count", [10**6, 10**8])
def test_many_rounds(count: int) -> None:
    """The central limit is close: compare with the Gaussian of the same variance, and with exact Gaussian rounds."""
    p = 1.0 / math.sqrt(count)
    found = ask((poisson(p, 1.0), count), delta=1e-6, tolerance=1e-3)
    assert found.within_tolerance
    limit = oracle.gaussian_epsilon(math.sqrt(math.e - 1), 1e-6)
    assert found.upper == pytest.approx(float(limit), rel=0.02)
    sigma = math.sqrt(count) / 1.5
    contains(
        ask((RoundProfile.gaussian(1.0, sigma), count), delta=1e-6, tolerance=1e-3),
        oracle.gaussian_epsilon(1.5, 1e-6),
        1e-3,
    )


@pytest.mark.parametrize(
    ("p", "sigma", "count", "delta"),
    [(1.024e-5, 0.3687, 100_000, 1e-9), (2e-5, 0.309, 50_000, 1e-5), (5e-6, 0.38, 200_000, 1e-9)],
)
def test_rare_sampling_is_resolved(p: float, sigma: float, count: int, delta: float) -> None:
    """Losses are about p in most rounds and some nats in a few: the lattice must be finer than p and contain these."""
    profile = RoundProfile.poisson(1, p, sigma, two_sided=False, reverse=False)
    (found,) = answer_all([([(profile, count)], None, delta, 1e-3)])
    assert found.within_tolerance
    assert 1.0 < found.lower <= found.upper <= found.lower * (1 + 1e-3)


def rarely_all_or_nothing(p: float, sigma: float, count: int, epsilon: float) -> mp.mpf:
    """Return δ(ε) of `count` Poisson rounds with so little noise that a round shows whether the record was in it.

    If the record took part j times, the losses sum up to a normal law: j times ln p + 1/2σ² on average, with variance
    1/σ² each, and ln(1 − p) for each round without. The mixture's ratio differs from that only where its other
    component is above 1e-20.
    """
    total = mp.mpf(0)
    for j, weight in enumerate(oracle.binomial(count, p)):
        if weight < mp.mpf(10) ** -30:
            continue
        mean = j * (mp.log(p) + 1 / (2 * mp.mpf(sigma) ** 2)) + (count - j) * mp.log(1 - mp.mpf(p))
        if j == 0:
            total += weight * max(mp.mpf(0), 1 - mp.exp(epsilon - mean))
            continue
        deviation = mp.sqrt(j) / mp.mpf(sigma)
        distance = (mean - epsilon) / deviation
        # This is E(1 − e^{ε − S})₊ of a normal S.
        lost = mp.exp(epsilon - mean + deviation**2 / 2) * oracle.tail(deviation - distance)
        total += weight * (oracle.tail(-distance) - lost)
    return total


@pytest.mark.parametrize("epsilon", [2000.0, 5000.0, 8137.0])
def test_hardly_any_noise_is_resolved(epsilon: float) -> None:
    """The profile is a plateau hundreds of nats long next to a kink at ln(1 − p), which the lower law must keep."""
    with mp.workdps(oracle.DIGITS):
        truth = rarely_all_or_nothing(0.01, 0.05, 2000, epsilon)
    found = ask((poisson(0.01, 0.05), 2000), epsilon=epsilon, tolerance=1e-2)
    assert found.within_tolerance
    contains(found, truth, 1e-2)


def test_losses_of_a_million_nats_have_a_lower_bound() -> None:
    """No lattice has both a loss of ln(1 − p) and one of 500,000 nats exactly; the interval is wider than asked."""
    with mp.workdps(oracle.DIGITS):
        truth = rarely_all_or_nothing(0.01, 1e-3, 500, 5e6)
    found = ask((poisson(0.01, 1e-3), 500), epsilon=5e6, tolerance=1e-2)
    assert found.lower <= truth <= found.upper
    assert found.upper <= 1.01 * truth
    assert found.lower >= 0.5 * truth


@pytest.mark.parametrize("epsilon", [0.0, 400.0])
def test_far_below_the_mean_a_coarse_lattice_serves(epsilon: float) -> None:
    """δ is 1 up to the rounding of its last digits, so resolving it like a tail is useless."""
    found = ask(
        (RoundProfile.gaussian(1.0, 40.0), 10**6),
        (RoundProfile.gaussian(1.0, 41.0), 10**6),
        epsilon=epsilon,
        tolerance=1e-2,
    )
    mu = math.sqrt(10**6 / 40.0**2 + 10**6 / 41.0**2)
    with mp.workdps(oracle.DIGITS):
        contains(found, oracle.gaussian_delta(mp.mpf(mu), mp.mpf(epsilon)), 1e-2)


def test_count_is_repetition() -> None:
    """`count` rounds at once, and the same rounds in pieces, give overlapping intervals of the same quantity."""
    profile = poisson(0.02, 0.9)
    whole = ask((profile, 12), delta=1e-5)
    pieces = ask(*[(profile, 1)] * 12, delta=1e-5)
    halves = ask((profile, 5), (profile, 7), delta=1e-5)
    for other in (pieces, halves):
        assert other.lower <= whole.upper
        assert whole.lower <= other.upper
        assert other.within_tolerance


def test_monotone_in_every_parameter() -> None:
    base = {"p": 0.02, "sigma": 1.0, "count": 500, "group": 2, "delta": 1e-6}

    def epsilon(**changes: float) -> ProvenInterval:
        v = {**base, **changes}
        profile = poisson(v["p"], v["sigma"], int(v["group"]))
        return ask((profile, int(v["count"])), delta=v["delta"], tolerance=1e-3)

    middle = epsilon()
    more = [epsilon(p=0.021), epsilon(sigma=0.97), epsilon(count=530), epsilon(group=3), epsilon(delta=5e-7)]
    less = [epsilon(p=0.019), epsilon(sigma=1.03), epsilon(count=470), epsilon(group=1), epsilon(delta=2e-6)]
    assert all(other.lower > middle.upper for other in more)
    assert all(other.upper < middle.lower for other in less)


def test_random_mixtures_are_enclosed_by_coarser_and_finer_answers() -> None:
    """Intervals at different tolerances are proven independently of one another, so every pair must overlap."""
    rng = random.Random(3)
    for _ in range(25):
        profile = RoundProfile.poisson(
            rng.choice([1, 2, 5]),
            10 ** rng.uniform(-4, 0) * 0.999,
            10 ** rng.uniform(-0.5, 1),
            two_sided=rng.random() < 0.3,
            reverse=rng.random() < 0.5,
        )
        count, delta = round(10 ** rng.uniform(0.3, 4)), 10 ** rng.uniform(-20, -1)
        found = [ask((profile, count), delta=delta, tolerance=t) for t in (0.3, 0.03, 1e-3)]
        assert max(f.lower for f in found) <= min(f.upper for f in found)


def test_threads_do_not_change_answers() -> None:
    questions = [
        ([(poisson(p, 1.0), 300), (RoundProfile.gaussian(1.0, 40.0), 5)], None, 1e-6, 1e-3) for p in (0.01, 0.02, 0.05)
    ]
    answers = [answer_all(questions, threads=threads) for threads in (1, 2, 5)]
    for other in answers[1:]:
        for one, two in zip(answers[0], other, strict=True):
            assert (one.lower, one.upper, one.budget) == (two.lower, two.upper, two.budget)


def test_bad_arguments_are_refused(snapshot: Snapshot) -> None:

    good = poisson(0.01, 1.0)
    for rounds, epsilon, delta, tolerance in [
        ([], None, 1e-6, 1e-3),
        ([(good, 0)], None, 1e-6, 1e-3),
        ([(good, 5)], None, 0.0, 1e-3),
        ([(good, 5)], None, math.nan, 1e-3),
        ([(good, 5)], -1.0, None, 1e-3),
        ([(good, 5)], math.inf, None, 1e-3),
        ([(good, 5)], 1.0, 1e-6, 1e-3),
        ([(good, 5)], 1.0, None, 0.0),
    ]:
        snapshot.raised(answer_all, [(rounds, epsilon, delta, tolerance)])
    for p, sigma in [(0.0, 1.0), (1.1, 1.0), (math.nan, 1.0), (0.5, 0.0), (0.5, math.inf)]:
        snapshot.raised(poisson, p, sigma)


def loss_tail(weights: dict[int, float], rounds: int, epsilon: float) -> tuple[float, float]:
    """Return bounds on δ(ε) of rounds of Σ w_j N(j, 1) against N(0, 1): sums of losses rounded up and down."""
    spacing, size = 1e-3, 1 << 19
    counts, logs = np.array(list(weights), dtype=float), np.log(list(weights.values()))
    outcomes = np.linspace(-12.0, 40.0, 200_001)
    losses = logsumexp(logs[:, None] + counts[:, None] * (outcomes - counts[:, None] / 2), axis=0)
    edges = np.concatenate([[-np.inf], outcomes, [np.inf]])
    masses = np.zeros(len(edges) - 1)
    for weight, count in zip(weights.values(), counts, strict=True):
        below, above = ndtr(edges - count), ndtr(count - edges)
        masses += weight * np.where(edges[1:] < count, np.diff(below), -np.diff(above))
    bounds = []
    for places, fill in ((np.floor(losses / spacing), -1), (np.ceil(losses / spacing), 1)):
        # The losses of an interval of outcomes are between those of its ends; the last interval counts in full.
        ends = np.concatenate([[places[0]], places]) if fill < 0 else np.append(places, places[-1])
        law = np.bincount((ends.astype(int) + 100), weights=masses, minlength=size)[:size]
        sums = np.fft.irfft(np.fft.rfft(law) ** rounds, size)
        at = (np.arange(size) - 100 * rounds) * spacing
        beyond = at > epsilon
        bounds.append(float(np.sum(sums[beyond] * -np.expm1(epsilon - at[beyond]))))
    return bounds[0], bounds[1]


def test_heavy_tails_take_short_transforms() -> None:
    """A record of a two-stage batch may be drawn many times: rare losses far beyond ε change nothing and cost nothing."""
    counts, logs, _ = copies("must-ww", 1, 10_000, 100, 200)
    weights = {j: math.exp(log) for j, log in zip(counts, logs, strict=True) if j <= 25}
    low, high = loss_tail(weights, 10, 16.87)
    profile = RoundProfile.copies("must-ww", 1, 10_000, 100, 200, 1.0, 1.0, reverse=False)
    found = ask((profile, 10), epsilon=16.87, tolerance=1e-2)
    assert low <= found.upper
    assert found.lower <= high
    assert high - low <= 0.05 * high
    assert found.within_tolerance
    assert found.transform_length <= 1 << 17


# ---- Shared goldens: recomputed if that is quick, and compared with the core's answers


GAUSSIAN = json.loads((GOLDEN / "gaussian.json").read_text(encoding="utf-8"))
PEERS = json.loads((GOLDEN / "peers.json").read_text(encoding="utf-8"))


def test_goldens_say_where_they_come_from() -> None:
    for golden in (GAUSSIAN, PEERS):
        assert golden["provenance"]["source"]
        assert len(golden["cases"]) >= 20


@pytest.mark.parametrize("case", GAUSSIAN["cases"][::5], ids=str)
def test_the_gaussian_goldens_are_what_they_claim(case: dict[str, float]) -> None:
    assert float(oracle.gaussian_epsilon(case["mu"], case["delta"])) == case["epsilon"]


@pytest.mark.parametrize("case", PEERS["cases"], ids=lambda c: f"{c['kind']}-{c['count']}-{c['delta']:g}")
def test_agreement_with_dp_accounting(case: dict[str, float]) -> None:
    """The core's interval and the peer's must overlap: the peer's pessimistic value is a bound up to its rounding."""
    group = int(case.get("group_size", 1))
    if case["kind"] == "gaussian":
        profiles = [RoundProfile.gaussian(1.0, case["noise_multiplier"])]
    else:
        profiles = [
            RoundProfile.poisson(
                group, case["sampling_probability"], case["noise_multiplier"], two_sided=False, reverse=reverse
            )
            for reverse in (False, True)
        ]
    questions = [([(profile, int(case["count"]))], None, case["delta"], 1e-4) for profile in profiles]
    answers = answer_all(questions)
    lower, upper = max(a.lower for a in answers), max(a.upper for a in answers)
    # The peer's transform has an absolute error near 1e-15 that its bound does not include: a relative 1e-7 at these δ.
    assert lower <= case["epsilon_upper_pessimistic"] * (1 + 1e-7)
    optimistic = case.get("epsilon_optimistic")
    if optimistic is not None:
        assert upper >= optimistic * (1 - 1e-7)
