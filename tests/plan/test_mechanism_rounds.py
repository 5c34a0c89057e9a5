"""Mechanisms in place of training runs: their guarantees against closed forms, exact enumerations and searches for violations."""

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.stats
from plain_documents import doc, sectioned

import pyaccount
from pyaccount.certificate.certificate import Certificate
from pyaccount.plan.mechanisms.additive import numbers_of_group
from pyaccount.plan.mechanisms.base import Released
from pyaccount.profiles import LaplaceProfile, Rounds

DELTA = 1e-6

pytestmark = pytest.mark.usefixtures("without_profiles")


def certified(*phases: dict[str, Any], adjacency: str = "zero-out", **privacy: Any) -> Certificate:
    """Return the certificate of phases, with ε solved at δ = 1e-6 unless another target is given."""
    target = {"adjacency": adjacency, "epsilon": "solve", "delta": DELTA} | privacy
    return pyaccount.certify({"pyaccount": 1, "name": "mechanisms", "privacy": target, "phases": list(phases)})


def encloses(certificate: Certificate, epsilon: float, width: float = 2e-3) -> bool:
    """Whether ε is in the interval of a certificate, and the interval is narrow."""
    guarantee = certificate.data.guarantee
    low, high = guarantee.epsilon_lower, guarantee.epsilon
    return low * (1.0 - 1e-9) <= epsilon <= high * (1.0 + 1e-9) and high - low <= width * high


def delta_of(outcomes: list[tuple[float, float]], epsilon: float) -> float:
    """Return Σ (p − e^ε q)₊ over all outcomes."""
    return math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in outcomes)


def epsilon_of(outcomes: list[tuple[float, float]], delta: float = DELTA) -> float:
    """Return the smallest ε ≥ 0 with δ(ε) ≤ `delta` in both directions, by bisection."""
    low, high = 0.0, 60.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        both = (delta_of(outcomes, middle), delta_of([(q, p) for p, q in outcomes], middle))
        low, high = (low, middle) if max(both) <= delta else (middle, high)
    return high


def power(outcomes: list[tuple[float, float]], count: int) -> list[tuple[float, float]]:
    """Return all outcomes of several runs."""
    return [
        (math.prod(p for p, _ in runs), math.prod(q for _, q in runs))
        for runs in itertools.product(outcomes, repeat=count)
    ]


def test_a_stated_guarantee_is_the_pair_of_its_worst_mechanism() -> None:
    e, d = math.exp(0.7), 1e-7
    pair = [(d, 0.0), ((1 - d) * e / (1 + e), (1 - d) / (1 + e)), ((1 - d) / (1 + e), (1 - d) * e / (1 + e)), (0.0, d)]
    stated = {"kind": "stated", "epsilon": 0.7, "delta": d}
    assert encloses(certified({"mechanism": stated}), epsilon_of(pair))
    assert encloses(certified({"mechanism": stated, "count": 4}), epsilon_of(power(pair, 4)))


def test_pure_guarantees_add_up_at_delta_0() -> None:
    phases = [
        {"mechanism": {"kind": "stated", "epsilon": 0.1}, "count": 3},
        {"mechanism": {"kind": "laplace", "scale": 10}},
    ]
    guarantee = certified(*phases, delta=0).data.guarantee
    assert (guarantee.epsilon_lower, guarantee.epsilon) == (0.4, 0.4)


def test_a_gaussian_guarantee_is_gaussian_noise() -> None:
    one = certified({"mechanism": {"kind": "stated", "mu": 0.5}})
    noise = certified({"mechanism": {"kind": "gaussian", "sigma": 4, "sensitivity": 2}})
    training = certified({"training": {"iterations": 1}, "sampler": {"kind": "none"}, "noise": {"multiplier": 2}})
    assert one.epsilon == pytest.approx(noise.epsilon, rel=1e-12)
    assert one.epsilon == pytest.approx(training.epsilon, rel=1e-12)


def test_divergences_add_before_they_are_converted() -> None:
    """Five phases of ρ = 0.02 are one of ρ = 0.1, and so are divergences of the same orders."""
    one = certified({"mechanism": {"kind": "stated", "rho": 0.1}})
    five = certified({"mechanism": {"kind": "stated", "rho": 0.02}, "count": 5})
    assert five.epsilon == pytest.approx(one.epsilon, rel=1e-9)
    orders = [{"order": a, "epsilon": 0.02 * a} for a in (2, 4, 8, 16, 32)]
    listed = certified({"mechanism": {"kind": "stated", "renyi": orders}, "count": 5})
    assert listed.epsilon >= one.epsilon * (1 - 1e-9)
    # The conversion at every order, by the formula of Canonne, Kamath & Steinke.
    bound = min(
        (math.log(1 / DELTA) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1) + 0.1 * a
        for a in (2, 4, 8, 16, 32)
    )
    assert listed.epsilon == pytest.approx(bound, rel=1e-4)


def test_a_gaussian_mechanism_is_within_its_concentrated_guarantee() -> None:
    """The lower end of ρ is the Gaussian mechanism with μ² = 2ρ."""
    stated = certified({"mechanism": {"kind": "stated", "rho": 0.125}}).data.guarantee
    noise = certified({"mechanism": {"kind": "gaussian", "sigma": 2}}).data.guarantee
    assert stated.epsilon_lower == pytest.approx(noise.epsilon_lower, rel=1e-9)
    assert noise.epsilon < stated.epsilon


def test_randomized_response_is_its_three_outcomes() -> None:
    p, k = 0.6, 5
    q = (1 - p) / (k - 1)
    pair = [(p, q), (q, p), (1 - p - q, 1 - p - q)]
    answer = {"kind": "randomized-response", "values": k, "truth_probability": p}
    assert encloses(certified({"mechanism": answer}, delta=0.3), epsilon_of(pair, 0.3))
    assert encloses(certified({"mechanism": answer, "count": 3}, delta=0.3), epsilon_of(power(pair, 3), 0.3))
    # A group of records answers together.
    grouped = certified({"mechanism": answer}, adjacency="replace-one", group_size=3, delta=0.3)
    assert encloses(grouped, epsilon_of(power(pair, 3), 0.3))


def test_an_empty_record_that_answers_uniformly() -> None:
    p, k = 0.6, 5
    pair = [(p, 1 / k), (1 - p, 1 - 1 / k)]
    answer = {"kind": "randomized-response", "values": k, "truth_probability": p, "empty_record": "uniform"}
    assert encloses(certified({"mechanism": answer, "count": 3}, delta=0.1), epsilon_of(power(pair, 3), 0.1))


def discrete(kind: str, scale: float, shift: int) -> list[tuple[float, float]]:
    """Return the probabilities of discrete noise at 0 and at a shift, far into the tails."""
    weight = (
        (lambda x: math.exp(-abs(x) / scale))
        if kind == "laplace"
        else (lambda x: math.exp(-x * x / (2 * scale * scale)))
    )
    points = range(-int(60 * scale), int(60 * scale) + shift)
    total = math.fsum(map(weight, points))
    return [(weight(x) / total, weight(x - shift) / total) for x in points]


def test_discrete_noise_on_integers() -> None:
    gaussian = {"kind": "discrete-gaussian", "sigma": 3, "sensitivity": 2}
    assert encloses(certified({"mechanism": gaussian}), epsilon_of(discrete("gaussian", 3.0, 2)))
    laplace = {"kind": "discrete-laplace", "scale": 2, "sensitivity": 3}
    assert encloses(certified({"mechanism": laplace}), epsilon_of(discrete("laplace", 2.0, 3)))
    # The same in steps of a half.
    halves = {"kind": "discrete-gaussian", "sigma": 1.5, "sensitivity": 1, "step": 0.5}
    assert certified({"mechanism": halves}).epsilon == certified({"mechanism": gaussian}).epsilon


@pytest.mark.parametrize("count", [1, 2])
def test_noise_that_parties_add_to_a_sum(count: int) -> None:
    """Enumerations: a report of two clients, Skellam noise of both, and sums of narrow discrete Gaussians."""
    x = np.arange(-120, 121)
    law = scipy.stats.skellam.pmf(x, 4.0, 4.0)
    two = {"kind": "skellam", "variance": 4, "parties": 2, "sensitivity": 2}
    pair = [(p, q) for p, q in zip(law[:-2], law[2:], strict=True) if min(p, q) > 1e-20]
    assert encloses(certified({"mechanism": two, "count": count}), epsilon_of(power(pair, count)))
    assert (
        certified({"mechanism": {**two, "variance": 8, "parties": 1}}).epsilon == certified({"mechanism": two}).epsilon
    )
    one = np.exp(-(np.arange(-40, 41) ** 2) / (2 * 0.6**2))
    four = np.convolve(np.convolve(one, one), np.convolve(one, one))
    four /= four.sum()
    pair = [(p, q) for p, q in itertools.pairwise(four) if min(p, q) > 1e-20]
    noise = {"kind": "distributed-discrete-gaussian", "sigma": 0.6, "parties": 4}
    found = certified({"mechanism": noise, "count": count})
    assert encloses(found, epsilon_of(power(pair, count)))
    # It is not discrete Gaussian noise with σ = 0.6·√4.
    alone = certified({"mechanism": {"kind": "discrete-gaussian", "sigma": 1.2}, "count": count})
    assert not encloses(alone, found.epsilon)


def test_no_epsilon_holds_at_delta_0_with_noise_of_parties() -> None:
    for noise in (
        {"kind": "skellam", "variance": 4},
        {"kind": "distributed-discrete-gaussian", "sigma": 2, "parties": 3},
    ):
        with pytest.raises(pyaccount.DocumentError, match="no ε holds at δ = 0"):
            certified({"mechanism": noise}, delta=0)


def test_discrete_laplace_noise_on_a_shift_of_65_536_steps_loses_exactly_the_shift_over_the_scale_at_delta_0() -> None:
    mechanism = {"kind": "discrete-laplace", "sensitivity": 65_536, "scale": 6553.6}
    found = certified({"mechanism": mechanism}, delta=0).data.guarantee
    assert (found.epsilon, found.epsilon_lower) == (10.0, 10.0)
    assert certified({"mechanism": mechanism | {"moved": 3}}, delta=0).epsilon == 30.0


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("shift", [65_536, 10**6])
def test_discrete_noise_on_many_steps(kind: str, shift: int) -> None:
    """The enclosure against sums over all outcomes up to 40 scales away."""
    scale, delta = 0.05 * shift, 0.01 if kind == "laplace" else 1e-6
    points = np.arange(-40.0 * scale, 40.0 * scale + shift)

    def law(centre: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        away = np.abs(points - centre) / scale
        return np.asarray(np.exp(-away if kind == "laplace" else -0.5 * away * away))

    p, q = law(0.0), law(shift)
    total = p.sum()

    def lost(epsilon: float) -> float:
        return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() / total)

    noise = {"kind": f"discrete-{kind}", "sensitivity": shift, "scale" if kind == "laplace" else "sigma": scale}
    found = certified({"mechanism": noise}, delta=delta).data.guarantee
    assert found.epsilon_lower <= found.epsilon <= found.epsilon_lower * (1 + 1e-3)
    assert lost(found.epsilon) <= delta * (1 + 1e-8)
    assert lost(found.epsilon_lower) >= delta * (1 - 1e-8)


def two_numbers(kind: str, scale: float, shifts: tuple[int, int]) -> list[tuple[float, float]]:
    """Return the outcomes of two numbers that change by different amounts."""
    return [(p * r, q * s) for p, q in discrete(kind, scale, shifts[0]) for r, s in discrete(kind, scale, shifts[1])]


def test_one_number_is_the_worst_under_a_total_change_with_discrete_laplace_noise() -> None:
    """The lemma of paths: two numbers that change by 1 and 2 are dominated by one that changes by 3."""
    both, one = two_numbers("laplace", 1.5, (1, 2)), discrete("laplace", 1.5, 3)
    for epsilon in (0.0, 0.2, 0.5, 1.0, 1.5, 1.9):
        assert delta_of(both, epsilon) <= delta_of(one, epsilon) * (1 + 1e-9)


def winners(utilities: list[float]) -> list[float]:
    """Return the probabilities of permute-and-flip at scale 1, over all orders of the candidates."""
    best, total = max(utilities), [0.0] * len(utilities)
    orders = list(itertools.permutations(range(len(utilities))))
    for order in orders:
        left = 1.0
        for candidate in order:
            accepted = math.exp(utilities[candidate] - best)
            total[candidate] += left * accepted
            left *= 1.0 - accepted
    return [value / len(orders) for value in total]


def test_no_permute_and_flip_violates_its_profile() -> None:
    """A search over four candidates and every change of their utilities by at most Δ."""
    draw = random.Random(20261128)
    worst = 0.0
    for _ in range(400):
        change = draw.choice([0.05, 0.3, 1.0])
        before = [draw.choice([0.0, draw.uniform(-2, 2)]) for _ in range(4)]
        after = [utility + draw.choice([-change, change]) for utility in before]
        r = 2 * change
        pair = list(zip(winners(before), winners(after), strict=True))
        for epsilon in [r * share for share in (-0.9, -0.5, 0.0, 0.3, 0.6, 0.9)]:
            bound = 1 - math.exp(0.5 * (epsilon - r))
            assert delta_of(pair, epsilon) <= bound + 1e-12
            worst = max(worst, delta_of(pair, epsilon) / bound)
    assert worst > 0.99


def exponential(utilities: list[float]) -> list[float]:
    """Return the probabilities of the exponential mechanism at scale 1."""
    total = math.fsum(map(math.exp, utilities))
    return [math.exp(utility) / total for utility in utilities]


def test_no_exponential_mechanism_violates_its_profile_even_adaptively() -> None:
    """Two selections, of which the second one's utilities depend on the first one's result."""
    draw = random.Random(20261129)
    r = 0.8
    bounds = certified({"mechanism": {"kind": "exponential", "epsilon": r}, "count": 2}, delta=0.05)
    for _ in range(300):

        def pair() -> list[tuple[float, float]]:
            before = [draw.uniform(-3, 3) for _ in range(3)]
            after = [utility + draw.choice([-r / 2, r / 2]) for utility in before]
            return list(zip(exponential(before), exponential(after), strict=True))

        first = pair()
        both = [(p * s, q * t) for p, q in first for s, t in pair()]
        assert epsilon_of(both, 0.05) <= bounds.epsilon + 1e-9


def of_gaps(law: Any, r: float, leads: Any) -> list[list[tuple[float, float]]]:
    """Return the probabilities of two candidates before and after the first one has lost r of its lead over the second."""
    return [list(zip(law([lead, 0.0]), law([lead - r, 0.0]), strict=True)) for lead in leads]


@pytest.mark.parametrize("kind", ["exponential", "permute-and-flip"])
@pytest.mark.parametrize("sampler", [None, {"kind": "poisson", "sampling_probability": 0.3}], ids=["all", "sampled"])
def test_one_selection_is_as_bad_as_two_candidates_with_the_worst_gap(
    kind: str, sampler: dict[str, Any] | None
) -> None:
    r = 1.0
    law, leads = (
        (exponential, np.linspace(-12, 12, 4801)) if kind == "exponential" else (winners, np.linspace(0, r, 801))
    )
    pairs = of_gaps(law, r, leads)
    document: dict[str, Any] = {"mechanism": {"kind": kind, "epsilon": r}} | ({"sampler": sampler} if sampler else {})
    for delta in (1e-3, 0.05):
        answer = certified(document, delta=delta, adjacency="add-remove").data.guarantee
        if sampler is None:
            worst = max(epsilon_of(pair, delta) for pair in pairs)
        else:
            directed = [one for pair in pairs for one in mixed(pair, sampler["sampling_probability"])]
            worst = max(epsilon_in_one_direction(one, delta) for one in directed)
        assert answer.epsilon_lower <= worst + 1e-6
        assert worst <= answer.epsilon + 1e-9
        assert answer.epsilon - answer.epsilon_lower <= 1e-3 * answer.epsilon


def epsilon_in_one_direction(outcomes: list[tuple[float, float]], delta: float) -> float:
    """Return the smallest ε ≥ 0 with δ(ε) ≤ `delta` in the direction of the outcomes, by bisection."""
    low, high = 0.0, 60.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if delta_of(outcomes, middle) <= delta else (middle, high)
    return high


def test_several_selections_are_at_least_as_bad_as_each_gap_that_is_looked_at() -> None:
    answer = certified({"mechanism": {"kind": "exponential", "epsilon": 1}, "count": 3}, delta=0.01).data.guarantee
    every = [epsilon_of(power(pair, 3), 0.01) for pair in of_gaps(exponential, 1.0, np.linspace(-8, 8, 161))]
    exchanged = epsilon_of(power(of_gaps(exponential, 1.0, [0.5])[0], 3), 0.01)
    assert exchanged < 0.85 * max(every)
    assert 0.98 * max(every) <= answer.epsilon_lower <= max(every) * (1 + 1e-3) <= answer.epsilon * (1 + 1e-3)
    # Beside another phase it is one pair of data sets for both: the exchanged one.
    beside = certified(
        {"mechanism": {"kind": "exponential", "epsilon": 1}, "count": 3},
        {"mechanism": {"kind": "laplace", "scale": 1e6}},
        delta=0.01,
    ).data.guarantee
    assert beside.epsilon_lower == pytest.approx(exchanged, rel=1e-3)


@pytest.mark.parametrize(("count", "delta"), [(1, 1e-5), (1, 0.05), (3, 1e-3)])
def test_report_noisy_max_is_at_least_as_bad_as_two_candidates(count: int, delta: float) -> None:
    noise = np.linspace(-60, 60, 240_001)
    step = noise[1] - noise[0]
    density = 0.5 * np.exp(-np.abs(noise))

    def wins(utilities: list[float]) -> list[float]:
        # P(u + N > v + M) = E[P(M < u − v + N)], by the closed form of the inner one and the sum over N.
        at = utilities[0] - utilities[1] + noise
        inner = np.where(at < 0, 0.5 * np.exp(np.minimum(at, 0)), 1 - 0.5 * np.exp(-np.maximum(at, 0)))
        first = float((density * inner).sum() * step)
        return [first, 1 - first]

    r = 1.0
    every = [epsilon_of(power(pair, count), delta) for pair in of_gaps(wins, r, np.linspace(-10, r, 111))]
    equal = epsilon_of(power(of_gaps(wins, r, [0.0])[0], count), delta)
    document = {"mechanism": {"kind": "report-noisy-max", "noise": "laplace", "epsilon": r}, "count": count}
    answer = certified(document, delta=delta).data.guarantee
    assert max(equal, 0.98 * max(every)) <= answer.epsilon_lower * (1 + 1e-3)
    assert answer.epsilon_lower <= max(every) * (1 + 1e-3) + 1e-3
    assert max(every) <= answer.epsilon * (1 + 1e-6)


def test_no_order_of_selections_and_answers_violates_the_bound_of_several_selections() -> None:
    """Three selections with an answer at any place between them; what is selected depends on everything before."""
    draw = random.Random(20261130)
    r, e = 0.8, math.exp(0.6)
    answer = [(e / (1 + e), 1 / (1 + e)), (1 / (1 + e), e / (1 + e))]
    selections = {"mechanism": {"kind": "exponential", "epsilon": r}, "count": 3}
    stated = {"mechanism": {"kind": "stated", "epsilon": 0.6}}
    bounds = certified(selections, stated, delta=0.05)

    def two(t: float) -> list[tuple[float, float]]:
        p = math.expm1(t - r) / math.expm1(-r)
        return [(p, p * math.exp(-t)), (1 - p, (1 - p) * math.exp(r - t))]

    def outcomes(order: list[str], p: float = 1.0, q: float = 1.0) -> list[tuple[float, float]]:
        if not order or p == 0.0:
            return [(p, q)]
        # The best choice of a last run, and choices that are good before it.
        last = min(max(0.5 * (r + bounds.epsilon - math.log(p / q)), 0.0), r)
        choices = [0.0, r, draw.uniform(0.0, r), *[last if len(order) == 1 else 0.5 * r] * 7]
        pair = answer if order[0] == "answer" else two(draw.choice(choices))
        return [one for a, b in pair for one in outcomes(order[1:], p * a, q * b)]

    largest = 0.0
    for _ in range(200):
        order = ["select"] * 3
        order.insert(draw.randrange(4), "answer")
        largest = max(largest, epsilon_of(outcomes(order), 0.05))
    assert 0.9 * bounds.epsilon < largest <= bounds.epsilon + 1e-9


def test_several_selections_are_bounded_together_wherever_they_stand() -> None:
    select: dict[str, Any] = {"mechanism": {"kind": "exponential", "epsilon": 0.2}}
    counts = {"mechanism": {"kind": "gaussian", "sigma": 3}}
    together = certified(select | {"count": 50}, counts)
    apart = certified(select | {"count": 20}, counts, select | {"count": 30})
    assert together.epsilon == apart.epsilon
    assert any("Several runs are bounded together" in (phase.remark or "") for phase in together.data.reductions)
    # Below the composition of single runs (7.9e-5 at ε = 3) and below zCDP (3.1e-5).
    alone = certified(select | {"count": 50}, delta=6.9e-6)
    zcdp = certified({"mechanism": {"kind": "stated", "rho": 50 * 0.2**2 / 8}}, delta=6.9e-6)
    assert 2.9 < alone.epsilon <= 3.0 < zcdp.epsilon
    # The ε of pure differential privacy is that of δ = 0.
    assert certified(select | {"count": 7}, delta=0).epsilon == pytest.approx(1.4, rel=1e-15)


@pytest.mark.nightly(but=["2.0-60"])
@pytest.mark.parametrize(("r", "count"), [(0.001, 100_000), (0.05, 3_000), (0.3, 1_100), (2.0, 60)])
def test_many_selections_are_never_worse_than_zcdp(r: float, count: int) -> None:
    many = certified({"mechanism": {"kind": "exponential", "epsilon": r}, "count": count})
    zcdp = certified({"mechanism": {"kind": "stated", "rho": count * r * r / 8}})
    gaussian = certified({"mechanism": {"kind": "stated", "mu": 0.5 * r * math.sqrt(count)}})
    assert many.epsilon < zcdp.epsilon
    # Gaussian differential privacy is what many small losses come to.
    assert many.epsilon < 1.01 * gaussian.epsilon
    assert many.data.guarantee.epsilon_lower <= many.epsilon


def test_selections_on_samples_are_bounded_one_by_one_and_phases_on_one_sample_together() -> None:
    sampler = {"kind": "poisson", "sampling_probability": 0.3}
    select = {"mechanism": {"kind": "exponential", "epsilon": 0.5}}
    each = certified(select | {"sampler": sampler, "count": 12})
    one = certified({"sampler": sampler, "phases": [select | {"count": 12}]})
    alone, sampled_alone = certified(select), certified(select | {"sampler": sampler})
    assert sampled_alone.epsilon < alone.epsilon
    assert not any("bounded together" in (phase.remark or "") for phase in each.data.reductions)
    # On one sample: ln(1 + q(e^ε − 1)) of the twelve runs at δ/q, in the direction remove.
    twelve = certified(select | {"count": 12}, delta=DELTA / 0.3).epsilon
    expected = math.log1p(0.3 * math.expm1(twelve))
    assert one.epsilon == pytest.approx(max(expected, one.epsilon), rel=1e-3)


def test_a_scale_and_a_sensitivity_are_an_epsilon() -> None:
    stated = certified({"mechanism": {"kind": "exponential", "epsilon": 0.5}})
    scaled = certified({"mechanism": {"kind": "exponential", "utility_sensitivity": 1, "scale": 4}})
    monotone = certified({"mechanism": {"kind": "exponential", "utility_sensitivity": 1, "scale": 2, "monotone": True}})
    gumbel = certified(
        {"mechanism": {"kind": "report-noisy-max", "noise": "gumbel", "utility_sensitivity": 1, "scale": 4}}
    )
    assert stated.epsilon == scaled.epsilon == monotone.epsilon == gumbel.epsilon


def mixed(pair: list[tuple[float, float]], q: float) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return ((1 − q)Q + qP, Q), and the pair of the direction add, (Q, (1 − q)Q + qP) with both laws of the mechanism."""
    drawn = [((1 - q) * without + q * with_it, without) for with_it, without in pair]
    return drawn, [(without, with_it) for with_it, without in drawn]


def test_poisson_sampling_of_a_mechanism_is_the_mixture() -> None:
    p, q = 0.8, 0.3
    pair = [(p, 1 - p), (1 - p, p)]
    answer = {"kind": "randomized-response", "values": 2, "truth_probability": p, "answers": "once"}
    sampler = {"kind": "poisson", "sampling_probability": q}
    found = certified({"mechanism": answer, "sampler": sampler, "count": 3}, adjacency="add-remove", delta=0.02)
    remove, add = mixed(pair, q)
    assert encloses(found, max(epsilon_of(power(remove, 3), 0.02), epsilon_of(power(add, 3), 0.02)))


def test_phases_on_one_sample_of_clients() -> None:
    """Two answers of every client that is drawn, three times: all outcomes of all draws."""
    p, q = 0.75, 0.2
    pair = [(p, 1 - p), (1 - p, p)]
    answer = {"mechanism": {"kind": "randomized-response", "values": 2, "truth_probability": p, "answers": "once"}}
    sampler = {"kind": "poisson", "sampling_probability": q}
    found = certified({"sampler": sampler, "phases": [answer, answer], "count": 3}, adjacency="add-remove", delta=0.02)
    remove, add = mixed(power(pair, 2), q)
    assert encloses(found, max(epsilon_of(power(remove, 3), 0.02), epsilon_of(power(add, 3), 0.02)))


def test_a_record_inside_of_a_client_gains_less() -> None:
    """Others show whether the client was drawn: randomized response at 1 with q = 0.1 has δ(0.3) = 0.0368, the maps give 0."""
    e, q = math.e, 0.1
    pair = [(e / (1 + e), 1 / (1 + e)), (1 / (1 + e), e / (1 + e))]
    shown = [*((q * a, q * b) for a, b in pair), (1 - q, 1 - q)]
    assert delta_of(shown, 0.3) == pytest.approx(0.0368, abs=5e-5)
    phase = {"mechanism": {"kind": "stated", "epsilon": 1}, "sampler": {"kind": "poisson", "sampling_probability": q}}
    phase["sampler"] |= {"draws": "clients"}
    found = certified(phase, adjacency="add-remove", epsilon=0.3, delta="solve").data.guarantee
    assert found.delta_lower <= delta_of(shown, 0.3) <= found.delta
    assert found.delta <= delta_of(shown, 0.3) * 1.001
    phase["sampler"] |= {"draws": "records"}
    assert certified(phase, adjacency="add-remove", epsilon=0.3, delta="solve").delta < 1e-12


def test_a_group_of_records_takes_the_mechanism_of_the_group() -> None:
    for one, group in (
        ({"kind": "laplace", "scale": 4}, {"kind": "laplace", "scale": 4, "sensitivity": 3}),
        ({"kind": "stated", "mu": 0.2}, {"kind": "stated", "mu": 0.6}),
        ({"kind": "stated", "rho": 0.01}, {"kind": "stated", "rho": 0.09}),
        ({"kind": "exponential", "epsilon": 0.1}, {"kind": "exponential", "epsilon": 0.3}),
        ({"kind": "discrete-laplace", "scale": 4}, {"kind": "discrete-laplace", "scale": 4, "sensitivity": 3}),
    ):
        assert certified({"mechanism": one}, group_size=3).epsilon == pytest.approx(
            certified({"mechanism": group}).epsilon, rel=1e-9
        )


def test_a_group_takes_no_less_than_its_multiple() -> None:
    """3 · 0.7 is 2.1, which the product of doubles misses from below."""
    assert 3 * 0.7 < 2.1
    guarantee = certified({"mechanism": {"kind": "stated", "epsilon": 0.7}}, delta=0, group_size=3).data.guarantee
    assert (guarantee.epsilon_lower, guarantee.epsilon) == (2.1, 2.1)


def test_a_group_of_a_stated_guarantee_has_less_than_the_lemma_says() -> None:
    """(ε, δ) for one is (kε, δ(e^{kε} − 1)/(e^ε − 1)) for k, and has less δ below kε: 1 − 1/√e at ε, beside terms of δ."""
    delta, k = 1e-9, 3
    grouped = delta * (math.exp(k * 0.5) - 1) / (math.exp(0.5) - 1)
    stated, lemma = ({"kind": "stated", "epsilon": e, "delta": d} for e, d in ((0.5, delta), (k * 0.5, grouped)))
    one, other = (
        certified({"mechanism": mechanism}, group_size=size, epsilon=0.5, delta="solve").data.guarantee
        for mechanism, size in ((stated, k), (lemma, 1))
    )
    assert one.delta == pytest.approx(-math.expm1(-0.5), abs=1e-8)
    assert other.delta_lower > 1.3 * one.delta
    assert certified({"mechanism": stated}, group_size=k).epsilon <= certified({"mechanism": lemma}).epsilon


def test_both_directions_of_one_run_state_the_same() -> None:
    pair, ahead = LaplaceProfile(1.0, 1.0), LaplaceProfile(0.5, 1.0)
    add = Released(pair, pair, further_pairs=(ahead,), supremum=pair)
    both = Released(pair, pair, add=add, further_pairs=(pair,), supremum=pair)
    assert both.above(lambda one: one.further_pairs[0]).bounds()["add"].lower == (Rounds(ahead, 1),)
    for change in ({"further_pairs": ()}, {"supremum": None}, {"beside": (ahead,)}, {"add": Released(pair, pair)}):
        with pytest.raises(ValueError, match="direction add"):
            replace(both, add=replace(add, **change))


def test_mechanisms_compose_with_training() -> None:
    """Gaussian noise as a mechanism, and as a round of training, is the same in a composition."""
    training = sectioned(iterations=200, sampling_probability=0.01, sampler="poisson", multiplier=1)
    release = {"training": {"iterations": 1}, "sampler": {"kind": "none"}, "noise": {"multiplier": 5}}
    mechanism = {"mechanism": {"kind": "gaussian", "sigma": 5}}
    assert certified(training, release).epsilon == pytest.approx(certified(training, mechanism).epsilon, rel=1e-9)


def test_a_random_contribution_is_that_of_several_draws() -> None:
    """A record that a batch may contain up to three times contributes its number of draws."""
    rate, draws = Fraction(1, 50), 3
    law = [float(math.comb(draws, j) * rate**j * (1 - rate) ** (draws - j)) for j in range(draws + 1)]
    mixture = {"kind": "mixture-of-gaussians", "sigma": 0.9, "sensitivities": [0, 1, 2, 3], "probabilities": law}
    sampler = sectioned(
        sampling_probability=0.02, iterations=40, sampler="poisson", draws_per_iteration=draws, multiplier=0.9
    )
    one, other = (certified(phase).data.guarantee for phase in ({"mechanism": mixture, "count": 40}, sampler))
    assert one.epsilon == pytest.approx(other.epsilon, rel=1e-9)
    assert one.epsilon_lower == pytest.approx(other.epsilon_lower, rel=1e-9)


def test_a_mixture_on_a_sample_is_a_mixture() -> None:
    """With q = 1/4, contributions 1 and 2 with probability 1/2 each are 0, 1, 2 with 3/4, 1/8, 1/8."""
    inner = {"kind": "mixture-of-gaussians", "sigma": 1.5, "sensitivities": [1, 2], "probabilities": [0.5, 0.5]}
    outer = inner | {"sensitivities": [0, 1, 2], "probabilities": [0.75, 0.125, 0.125]}
    drawn = {"mechanism": inner, "sampler": {"kind": "poisson", "sampling_probability": 0.25}, "count": 3}
    for adjacency in ("add-remove", "zero-out"):
        one = certified(drawn, adjacency=adjacency)
        other = certified({"mechanism": outer, "count": 3}, adjacency=adjacency)
        assert one.epsilon == pytest.approx(other.epsilon, rel=2e-3)
        assert one.epsilon >= other.epsilon_lower


def test_the_noise_of_a_mixture_is_solved_for() -> None:
    mixture = {"kind": "mixture-of-gaussians", "sigma": "solve", "sensitivities": [0, 3], "probabilities": [0.9, 0.1]}
    solved = certified({"mechanism": mixture, "count": 5}, epsilon=1)
    found = certified({"mechanism": mixture | {"sigma": solved.data.solved.value}, "count": 5})
    assert found.epsilon == pytest.approx(1.0, rel=2e-3)
    assert found.epsilon <= 1.0


@pytest.mark.parametrize("group", range(1, 8))
@pytest.mark.parametrize("moved", [1, 2, 3])
def test_numbers_of_a_group_are_taken_together(group: int, moved: int) -> None:
    """Every way in which the records of a group may change numbers, two of which are one while their sum is at most the group."""

    def counts(total: int, most: int) -> Iterator[tuple[int, ...]]:
        yield ()
        for first in range(1, min(total, most) + 1):
            for rest in counts(total - first, first):
                yield (first, *rest)

    def together(parts: tuple[int, ...]) -> int:
        for one, other in itertools.combinations(range(len(parts)), 2):
            if parts[one] + parts[other] <= group:
                rest = [part for place, part in enumerate(parts) if place not in (one, other)]
                return together((parts[one] + parts[other], *rest))
        return len(parts)

    assert max(map(together, set(counts(group * moved, group)))) <= numbers_of_group(moved, group)
    if group < 3 or moved == 1:
        assert numbers_of_group(moved, group) == moved


@pytest.mark.parametrize("kind", [{"kind": "discrete-laplace", "scale": 2.0}, {"kind": "skellam", "variance": 3.0}])
def test_records_of_a_group_that_change_different_numbers(kind: dict[str, Any]) -> None:
    """Three records, each of which changes two of three numbers, enumerated: within the bound, whose lower end is two numbers."""
    raw = doc("name=group group_size=3 epsilon=1.0 delta=solve", mechanism={**kind, "moved": 2})
    found = pyaccount.certify(raw)
    x = np.arange(-60, 61)
    if kind["kind"] == "skellam":
        law = scipy.stats.skellam.pmf(x, 1.5, 1.5)
    else:
        law = np.exp(-abs(x) / 2.0) / np.sum(np.exp(-abs(x) / 2.0))

    def delta(*shifts: int) -> float:
        p, q = np.ones(1), np.ones(1)
        for shift in shifts:
            p, q = np.outer(p, law[6:]).ravel(), np.outer(q, law[6 - shift : len(law) - shift]).ravel()
        return float(np.sum(np.maximum(p - math.e * q, 0.0)))

    assert max(delta(2, 2, 2), delta(3, 3)) <= found.delta * (1 + 1e-9)
    assert found.data.guarantee.delta_lower == pytest.approx(delta(3, 3), rel=1e-4)
    assert not found.data.reductions[0].tight
