"""Partition selection against tables: every vector of counts is enumerated, and noise is a closed form or a sum over cells."""

import functools
import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from snapshots import Snapshot

import pyaccount
from pyaccount.certificate.certificate import Certificate
from pyaccount.errors import DocumentError
from pyaccount.execute.engine import Engine, Question
from pyaccount.filters import filter_of
from pyaccount.plan.mechanisms.partitions import gaussian_tail, geometric_steps, laplace_tail, products

pytestmark = pytest.mark.usefixtures("without_profiles")

#: The probabilities of the outcomes of a release, with the record and without it.
Pair = list[tuple[float, float]]

GEOMETRIC = {"strategy": "truncated-geometric", "epsilon": 1.0, "delta": 1e-5}
LAPLACE = {"strategy": "laplace", "scale": 2.0, "threshold": 25.0}
GAUSSIAN = {"strategy": "gaussian", "sigma": 5.0, "threshold": 25.0}


def document(selection: dict[str, Any], *, adjacency: str = "add-remove", **more: Any) -> dict[str, Any]:
    """Return a document with one selection; what belongs to privacy is there, and the rest in the body."""
    privacy = {key: more.pop(key) for key in ("epsilon", "delta", "group_size") if key in more}
    target = {"adjacency": adjacency, "epsilon": "solve", "delta": 1e-4} | privacy
    mechanism = {"kind": "partition-selection", "max_partitions": 1} | selection
    return {"pyaccount": 1, "name": "partitions", "privacy": target, "mechanism": mechanism} | more


def certified(selection: dict[str, Any], **more: Any) -> Certificate:
    return pyaccount.certify(document(selection, **more))


def deltas(selection: dict[str, Any], epsilon: float, **more: Any) -> dict[str, tuple[float, float]]:
    """Return the proven interval of δ(ε) in each direction, and that of the worse one as `both`."""
    bounds = pyaccount.compile(document(selection, **more)).at().bounds()
    answer = Engine().ask(bounds, Question(epsilon, None, 1e-6))
    sides = {name: (side.lower, side.upper) for name, side in answer.directions.items()}
    return {**sides, "both": (answer.lower, answer.upper)}


def delta_of(pair: Pair, epsilon: float) -> float:
    return math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in pair)


def reversed_pair(pair: Pair) -> Pair:
    return [(q, p) for p, q in pair]


def product(pairs: list[Pair]) -> Pair:
    return [(math.prod(p for p, _ in one), math.prod(q for _, q in one)) for one in itertools.product(*pairs)]


def optimal(epsilon: float, delta: float) -> list[Pair]:
    """Return the pair of every count, from the recursion of Desfontaines et al. in 60 digits."""
    with localcontext(prec=60):
        e, d = Decimal(repr(epsilon)), Decimal(repr(delta))
        chances = [Decimal(0)]
        while chances[-1] < 1:
            last = chances[-1]
            chances.append(min(e.exp() * last + d, 1 - (-e).exp() * (1 - last - d), Decimal(1)))
        return [
            [(float(after), float(before)), (float(1 - after), float(1 - before))]
            for before, after in itertools.pairwise(chances)
        ]


def worst_of_tables(pairs: list[Pair], partitions: int, epsilon: float) -> tuple[float, float]:
    """Return the largest δ over all tables, in the directions remove and add."""
    tables = [product([*one]) for one in itertools.combinations_with_replacement(pairs, partitions)]
    return max(delta_of(one, epsilon) for one in tables), max(delta_of(reversed_pair(one), epsilon) for one in tables)


@pytest.mark.parametrize(
    ("epsilon", "delta", "partitions"),
    [(1.0, 1e-5, 1), (1.0, 1e-5, 2), (0.3, 1e-2, 2), (0.7, 0.02, 3), (3.0, 0.2, 2), (2.0, 0.9, 3), (0.05, 0.01, 1)],
)
def test_the_truncated_geometric_law_is_the_worst_of_all_tables(epsilon: float, delta: float, partitions: int) -> None:
    pairs = optimal(epsilon, delta)
    selection = {"strategy": "truncated-geometric", "epsilon": epsilon, "delta": delta, "max_partitions": partitions}
    for share in (0.0, 0.2, 0.5, 0.93, 1.0, 1.1):
        at = share * partitions * epsilon
        found = deltas(selection, at)
        for name, exact in zip(("remove", "add"), worst_of_tables(pairs, partitions, at), strict=True):
            low, high = found[name]
            assert low <= exact * (1.0 + 1e-9) + 1e-15, (name, at)
            assert exact <= high * (1.0 + 1e-9) + 1e-15, (name, at)
            assert high - low <= 1e-3 * high + 1e-15, (name, at)


def test_one_partition_is_within_its_stated_guarantee() -> None:
    """At ε itself it is attained, by a partition that only the record has."""
    certificate = certified(GEOMETRIC, delta=1e-5)
    assert certificate.epsilon == pytest.approx(1.0, abs=1e-9)
    assert certificate.data.guarantee.epsilon_lower >= 1.0 - 1e-4
    stated = document(GEOMETRIC) | {"mechanism": {"kind": "stated", "epsilon": 1.0, "delta": 1e-5}}
    for at in (0.0, 0.3, 0.8, 1.0):
        most = Engine().ask(pyaccount.compile(stated).at().bounds(), Question(at, None, 1e-6))
        assert deltas(GEOMETRIC, at)["both"][1] <= most.upper * (1.0 + 1e-6)


def test_ends_of_stretches_are_those_of_the_recursion() -> None:
    for epsilon, delta in [(1.0, 1e-5), (0.1, 1e-8), (3.0, 0.1), (0.5, 0.6), (20.0, 1e-3), (0.01, 1e-3)]:
        pairs = optimal(epsilon, delta)
        steps = geometric_steps(epsilon, delta)
        assert steps.new == (delta, delta)
        for one in steps.shared:
            assert any(
                abs(one.remove.p[0] - pair[0][0]) <= 1e-15  # type: ignore[attr-defined]
                and one.remove.q[0] == pytest.approx(pair[0][1], rel=1e-14)  # type: ignore[attr-defined]
                and one.remove.q[1] == pytest.approx(pair[1][1], rel=1e-14)  # type: ignore[attr-defined]
                for pair in pairs
            )
    # Very small δ and very large ε keep their digits.
    for epsilon, delta in [(1e-6, 1e-280), (500.0, 1e-280), (500.0, 0.5), (1e-6, 0.999999)]:
        for step in filter(lambda one: one.attained, geometric_steps(epsilon, delta).shared):
            p, q = step.remove.p, step.remove.q  # type: ignore[attr-defined]
            assert all(0.0 <= one <= 1.0 for one in (*p, *q))
            assert p[0] <= math.exp(min(epsilon, 600.0)) * q[0] * (1.0 + 1e-12) + delta
            assert q[1] <= math.exp(min(epsilon, 600.0)) * p[1] * (1.0 + 1e-12) + delta


@functools.cache
def laplace_laws(scale: float, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return laws of the loss of several such numbers, by cells of the loss of one: below and above it; masses and losses."""
    cells = 4000 if count == 1 else 800
    edges = np.concatenate([[-np.inf], np.linspace(0.0, 1.0, cells + 1), [np.inf]])

    def tail(x: float) -> float:
        return 0.5 * math.exp(-x) if x > 0.0 else 1.0 - 0.5 * math.exp(x)

    def masses(mean: float) -> np.ndarray:
        over = np.array([1.0, *(tail((x - mean) / scale) for x in edges[1:-1]), 0.0])
        return over[:-1] - over[1:]

    # The loss rises from −1/b to 1/b, and is constant outside: rounded down or up to the ends of cells.
    high = np.clip((2.0 * edges[1:] - 1.0) / scale, -1.0 / scale, 1.0 / scale)
    low = np.clip((2.0 * edges[:-1] - 1.0) / scale, -1.0 / scale, 1.0 / scale)
    p = masses(1.0)
    laws = []
    for losses in (low, high):
        law, total = np.array([1.0]), np.array([0.0])
        for _ in range(count):
            law, total = np.outer(law, p).ravel(), np.add.outer(total, losses).ravel()
        laws.append((law, total))
    return laws


def laplace_deltas(scale: float, count: int, epsilon: float) -> tuple[float, float]:
    """Return bounds on δ(ε) of several such numbers."""
    if count == 0:
        exact = max(0.0, -math.expm1(epsilon))
        return exact, exact
    below, above = (
        float(np.sum(law * np.maximum(0.0, -np.expm1(epsilon - total)))) for law, total in laplace_laws(scale, count)
    )
    return below, above


def gaussian_delta(sigma: float, count: int, epsilon: float) -> float:
    """Return δ(ε) of several numbers with Gaussian noise that move by 1 each."""
    if count == 0:
        return max(0.0, -math.expm1(epsilon))
    mu = math.sqrt(count) / sigma
    first, second = ((0.5 * sign * mu - epsilon / mu) for sign in (1.0, -1.0))
    return 0.5 * math.erfc(-first / math.sqrt(2.0)) - math.exp(epsilon) * 0.5 * math.erfc(-second / math.sqrt(2.0))


def over_threshold(chance: float, partitions: int, rest: Any, epsilon: float) -> tuple[float, float]:
    """Return the largest δ(ε) over the number of partitions that only the record has, for the directions remove and add."""
    remove, add = [], []
    for new in range(partitions + 1):
        missing = (1.0 - chance) ** new
        remove.append(1.0 - missing + missing * rest(partitions - new, epsilon - math.log(missing)))
        add.append(rest(partitions - new, epsilon + math.log(missing)))
    return max(remove), max(add)


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("threshold", [1.0, 3.5, 12.0, 20.0])
def test_counts_with_laplace_noise(partitions: int, threshold: float) -> None:
    scale, chance = 2.0, 0.5 * math.exp(-(threshold - 1.0) / 2.0)
    selection = {"strategy": "laplace", "scale": scale, "threshold": threshold, "max_partitions": partitions}

    def exact(at: float) -> list[tuple[float, float]]:
        return [
            over_threshold(chance, partitions, lambda n, e, k=k: laplace_deltas(scale, n, e)[k], at) for k in (0, 1)
        ]

    for at in (0.0, 0.2, 0.45, 0.5, 0.8, 1.0, 1.5):
        found, ends, left, right = deltas(selection, at), exact(at), exact(at - 1e-4), exact(at + 1e-4)
        for index, name in enumerate(("remove", "add")):
            low, high = found[name]
            assert low <= ends[1][index] * (1.0 + 1e-9) + 1e-15
            assert ends[0][index] <= high * (1.0 + 1e-9) + 1e-15
            # Two counts are composed on a grid: both ends are exact but for a small part of ε, and of δ.
            assert high <= left[1][index] * 1.002 + 1e-15
            assert low >= right[0][index] * 0.998 - 1e-15


def test_the_delta_that_libraries_compute_is_attained() -> None:
    """δ = 1 − (1 − p)^k at ε = k/b (Google's libraries and OpenDP), which is no longer attained below this ε."""
    for partitions in (1, 3, 7):
        chance = 0.5 * math.exp(-12.0)
        exact = -math.expm1(partitions * math.log1p(-chance))
        selection = {**LAPLACE, "max_partitions": partitions}
        low, high = deltas(selection, partitions / 2.0 + 1e-4)["both"]
        assert low <= exact <= high <= exact * (1.0 + 1e-9)
        assert low >= exact * (1.0 - 1e-9)
        if partitions < 7:
            assert deltas(selection, 0.9 * partitions / 2.0)["both"][0] > 1.1 * exact


def test_the_threshold_of_libraries() -> None:
    """With scale k/ε the threshold 1 − (k/ε)·ln(2(1 − (1 − δ)^{1/k})), in Google's libraries, is the least one for (ε, δ)."""
    for partitions, epsilon, delta in [(1, 1.0, 1e-5), (3, 1.0, 1e-5), (5, 0.5, 1e-7)]:
        each = -math.expm1(math.log1p(-delta) / partitions)
        known = 1.0 - partitions / epsilon * math.log(2.0 * each)
        selection = {"strategy": "laplace", "scale": partitions / epsilon, "max_partitions": partitions}
        solved = certified({**selection, "threshold": "solve"}, epsilon=epsilon, delta=delta).solved
        assert solved is not None
        assert solved.value == pytest.approx(known, rel=2e-4)
        assert solved.value >= known * (1.0 - 1e-9)


@pytest.mark.parametrize("partitions", [1, 4, 20])
def test_counts_with_gaussian_noise(partitions: int) -> None:
    sigma = 4.0
    for threshold in (6.0, 15.0, 18.0):
        chance = 0.5 * math.erfc((threshold - 1.0) / sigma / math.sqrt(2.0))
        selection = {"strategy": "gaussian", "sigma": sigma, "threshold": threshold, "max_partitions": partitions}
        for at in (0.0, 0.3, 1.0, 2.0, 4.0):
            found = deltas(selection, at)
            exact = over_threshold(chance, partitions, lambda n, e: gaussian_delta(sigma, n, e), at)
            for name, value in zip(("remove", "add"), exact, strict=True):
                low, high = found[name]
                assert low <= value * (1.0 + 1e-8)
                assert value <= high * (1.0 + 1e-8)
                assert high - low <= 1e-6 * high


def test_many_partitions_are_bounded_in_blocks() -> None:
    for partitions in (38, 39, 40, 100, 1000):
        covered = []
        for one in products(1, partitions) or ():
            first, last = partitions - one.above[1], one.above[0]
            assert one.below == (last, partitions - last)
            covered += range(first, last + 1)
        assert covered == [*range(partitions + 1)]
        assert len(products(1, partitions) or ()) <= 40
    selection = {**GAUSSIAN, "sigma": 20.0, "threshold": 120.0, "max_partitions": 100}
    for at in (0.5, 1.0, 3.0):
        low, high = deltas(selection, at)["both"]
        exact = max(
            over_threshold(
                0.5 * math.erfc(119.0 / 20.0 / math.sqrt(2.0)), 100, lambda n, e: gaussian_delta(20.0, n, e), at
            )
        )
        assert low <= exact * (1.0 + 1e-6)
        assert exact <= high * (1.0 + 1e-6)
        assert high <= 1.05 * exact


def test_a_stated_probability_is_that_of_its_threshold() -> None:
    for strategy, noise, height in (("laplace", "scale", -math.log(2e-5)), ("gaussian", "sigma", 4.264890793922825)):
        stated = {"strategy": strategy, noise: 2.0, "delta": 1e-5}
        given = {"strategy": strategy, noise: 2.0, "threshold": 1.0 + 2.0 * height}
        for at in (0.1, 0.6, 3.0):
            assert deltas(stated, at)["both"][1] == pytest.approx(deltas(given, at)["both"][1], rel=1e-8)
        texts = " ".join(certified(stated).assumptions)
        assert f"at least {1.0 + 2.0 * height:.4f}"[:12] in texts


def test_noise_and_thresholds_are_solved_for() -> None:
    for selection, field in (
        ({"strategy": "laplace", "scale": "solve", "delta": 1e-6, "max_partitions": 2}, "scale"),
        ({"strategy": "gaussian", "sigma": "solve", "delta": 1e-6, "max_partitions": 2}, "sigma"),
        ({"strategy": "gaussian", "sigma": 8.0, "threshold": "solve", "max_partitions": 2}, "threshold"),
    ):
        solved = certified(selection, epsilon=1.0, delta=1e-5).solved
        assert solved is not None
        assert solved.path == f"mechanism.{field}"
        assert deltas({**selection, field: solved.value}, 1.0)["both"][1] <= 1e-5
        assert deltas({**selection, field: solved.value * 0.999}, 1.0)["both"][0] > 1e-5


def test_a_replaced_record_leaves_some_partitions_and_joins_others() -> None:
    pairs = optimal(0.7, 0.02)
    tables = [product([one, reversed_pair(other)]) for one, other in itertools.product(pairs, repeat=2)]
    selection = {"strategy": "truncated-geometric", "epsilon": 0.7, "delta": 0.02}
    for at in (0.0, 0.5, 1.0, 1.4, 1.6):
        low, high = deltas(selection, at, adjacency="replace-one")["both"]
        exact = max(delta_of(one, at) for one in tables)
        assert low <= exact * (1.0 + 1e-9)
        assert exact <= high * (1.0 + 1e-9)
        assert high <= 1.1 * low + 1e-9


def test_a_zeroed_record_is_in_no_partition() -> None:
    for selection in (GEOMETRIC, LAPLACE, GAUSSIAN):
        one, other = (certified(selection, adjacency=name) for name in ("add-remove", "zero-out"))
        assert one.epsilon == other.epsilon
        assert any("contributes to no partition" in text for text in other.assumptions)


def test_runs_are_bounded_whatever_their_counts_are() -> None:
    """The counts of the second run may depend on what the first one released."""
    pairs = optimal(0.7, 0.02)
    selection = {"strategy": "truncated-geometric", "epsilon": 0.7, "delta": 0.02}
    for at in (0.0, 0.4, 0.9, 1.3):
        adaptive = max(
            math.fsum(max(delta_part(pair, p, q, at) for pair in pairs) for p, q in first) for first in pairs
        )
        fixed = max(delta_of(product([*two]), at) for two in itertools.product(pairs, repeat=2))
        low, high = deltas(selection, at, count=2)["remove"]
        assert fixed <= adaptive * (1.0 + 1e-12)
        assert low <= fixed * (1.0 + 1e-9)
        assert adaptive <= high * (1.0 + 1e-9)


def delta_part(pair: Pair, p: float, q: float, epsilon: float) -> float:
    """Return Σ (p·p₂ − e^ε q·q₂)₊ over the outcomes of the second run."""
    return delta_of([(p * one, q * other) for one, other in pair], epsilon)


@pytest.mark.parametrize("draws", ["records", "clients"])
def test_a_sample_of_a_table(draws: str) -> None:
    """Records are drawn before they are counted, so that the counts of others are random."""
    rate, pairs = 0.3, optimal(0.7, 0.02)
    chances = [0.0, *(pair[0][0] for pair in pairs)]
    sampler = {"kind": "poisson", "sampling_probability": rate, "draws": draws}
    selection = {"strategy": "truncated-geometric", "epsilon": 0.7, "delta": 0.02}
    exact: dict[float, list[float]] = {}
    for others in range(12):
        # Binomial counts of the other records.
        weights = [math.comb(others, n) * rate**n * (1 - rate) ** (others - n) for n in range(others + 1)]
        without = math.fsum(w * chances[min(n, len(chances) - 1)] for n, w in enumerate(weights))
        drawn = math.fsum(w * chances[min(n + 1, len(chances) - 1)] for n, w in enumerate(weights))
        with_it = (1 - rate) * without + rate * drawn
        pair = [(with_it, without), (1 - with_it, 1 - without)]
        for at in (0.0, 0.1, 0.3, 0.6):
            exact.setdefault(at, []).extend((delta_of(pair, at), delta_of(reversed_pair(pair), at)))
    for at, values in exact.items():
        low, high = deltas(selection, at, sampler=sampler)["both"]
        assert max(values) <= high * (1.0 + 1e-9)
        assert low <= max(values) * (1.0 + 1e-9)


def test_it_composes_with_other_phases() -> None:
    phase = {"mechanism": {"kind": "partition-selection", "max_partitions": 2, **LAPLACE}}
    training = {"training": {"iterations": 1}, "sampler": {"kind": "none"}, "noise": {"multiplier": 4.0}}
    head = {"pyaccount": 1, "name": "both", "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-4}}
    together = pyaccount.certify({**head, "phases": [phase, training]}).data.guarantee
    alone = pyaccount.certify({**head, "phases": [phase]}).data.guarantee
    noise = pyaccount.certify({**head, "phases": [training]}).data.guarantee
    # The phases that were written before: two counts with Laplace noise, and a probability beside them.
    chance = -math.expm1(2.0 * math.log1p(-0.5 * math.exp(-12.0)))
    former = pyaccount.certify(
        {
            **head,
            "phases": [
                {"mechanism": {"kind": "laplace", "scale": 2.0, "moved": 2}},
                {"mechanism": {"kind": "stated", "epsilon": 0, "delta": chance}},
                training,
            ],
        }
    ).data.guarantee
    assert max(alone.epsilon, noise.epsilon) < together.epsilon <= former.epsilon * (1.0 + 1e-4)
    assert together.epsilon_lower <= together.epsilon
    best = {"select": {"kind": "geometric", "stopping_probability": 0.5}, "phases": [phase]}
    assert pyaccount.certify({**head, "phases": [best]}).data.guarantee.epsilon > alone.epsilon


def test_what_a_certificate_says(snapshot: Snapshot) -> None:
    for selection in (
        GEOMETRIC,
        {**LAPLACE, "max_partitions": 3},
        {"strategy": "gaussian", "sigma": 4.0, "delta": 1e-6},
        {**GEOMETRIC, "max_partitions": 20},
    ):
        for more in ({}, {"count": 2}, {"sampler": {"kind": "poisson", "sampling_probability": 0.1}}):
            (reduction,) = pyaccount.compile(document(selection, **more)).reductions
            snapshot(reduction.subject, reduction.theorem, reduction.pair, reduction.tight, reduction.lower_end)
            if not more:
                snapshot(*(line for one in reduction.assumed for line in one))


@pytest.mark.parametrize(
    "selection",
    [
        {"strategy": "truncated-geometric", "epsilon": 1.0},
        {"strategy": "truncated-geometric", "epsilon": 1.0, "delta": 1e-5, "threshold": 3},
        {"strategy": "laplace", "scale": 1.0},
        {"strategy": "laplace", "sigma": 1.0, "threshold": 10},
        {"strategy": "gaussian", "sigma": 1.0, "threshold": 10, "delta": 1e-5},
        {"strategy": "gaussian", "sigma": "solve", "threshold": 10},
        {"strategy": "geometric", "epsilon": 1.0, "delta": 1e-5},
        {"strategy": "laplace", "scale": 1.0, "threshold": 10, "l0_sensitivity": 3},
        {"strategy": "laplace", "scale": 1.0, "threshold": 10, "max_partitions": 0},
    ],
)
def test_what_is_wrong_with_a_selection(selection: dict[str, Any], snapshot: Snapshot) -> None:
    with pytest.raises(DocumentError) as refused:
        pyaccount.compile(document(selection))
    snapshot(refused.value.problems)


def test_groups_are_steps_from_record_to_record() -> None:
    """Two records that share their partition raise its count by 2, or fill two partitions."""
    pairs, selection = optimal(0.7, 0.02), {"strategy": "truncated-geometric", "epsilon": 0.7, "delta": 0.02}
    twice = [[(one[0][0], other[0][1]), (one[1][0], other[1][1])] for other, one in itertools.pairwise(pairs)]
    for at in (0.0, 0.7, 1.4):
        low, high = deltas(selection, at, group_size=2)["both"]
        exact = max(delta_of(one, at) for pair in twice for one in (pair, reversed_pair(pair)))
        assert exact <= high * (1.0 + 1e-9)
        assert low <= exact


def test_what_holds_for_no_epsilon_is_refused(snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.certify, document(LAPLACE, delta=0))
    snapshot.raised(pyaccount.certify, document(LAPLACE, delta=1e-9))


def test_filters_price_what_has_a_price(snapshot: Snapshot) -> None:
    epsilon, delta = filter_of({"epsilon": 3, "delta": 1e-3}).cost(pyaccount.load(document(GEOMETRIC, delta=1e-5)))
    assert (epsilon, delta) == (pytest.approx(1.0, abs=1e-6), 1e-5)
    for budget in ({"mu": 1}, {"rho": 1}, {"renyi": [{"order": 4, "epsilon": 1}]}):
        snapshot.raised(filter_of(budget).cost, pyaccount.load(document(LAPLACE)))


def test_tails_are_within_their_error() -> None:
    with localcontext(prec=60):
        for height in (-30.0, -1.5, -1e-9, 0.0, 0.3, 4.0, 200.0, 640.0):
            half = (Decimal(-abs(height))).exp() / 2
            exact = half if height >= 0.0 else 1 - half
            assert abs(Fraction(laplace_tail(height)) / Fraction(exact) - 1) < 1e-12
    import mpmath

    with mpmath.workdps(40):
        for height in (-8.0, -1.5, 0.0, 0.3, 4.0, 20.0, 35.0, 36.9):
            exact = mpmath.erfc(mpmath.mpf(height) / mpmath.sqrt(2)) / 2
            assert abs(gaussian_tail(height) / exact - 1) < 1e-12
