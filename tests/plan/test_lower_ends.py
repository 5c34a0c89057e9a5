"""Lower ends of mechanisms whose bound is not attained: concrete data sets, by enumeration and quadrature over all rounds."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_sums import logsumexp
from patterns import exact_delta
from plain_documents import doc, sectioned
from sampled_tools import Array, lower_toeplitz
from scipy.optimize import brentq  # type: ignore[import-untyped]
from scipy.stats import binom, norm  # type: ignore[import-untyped]
from snapshots import Snapshot

import pyaccount
from pyaccount import _core
from pyaccount.plan.mechanisms.base import FRESH

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.yaml"))


def alone(n: int, b: int, p: float, k: int, *, warm: bool) -> tuple[Array, Array]:
    """Every vector of a user's participations with its probability: all draws of Algorithm 3, of records that nobody shares."""
    counts, before = binom.pmf(np.arange(k + 1), k, p), b - 1 if warm else 0
    found: dict[tuple[int, ...], float] = {}
    for draws in product(range(k + 1), repeat=before + n):
        taken = [0 if any(draws[max(0, i - b + 1) : i]) else draws[i] for i in range(before, before + n)]
        found[tuple(taken)] = found.get(tuple(taken), 0.0) + float(np.prod(counts[list(draws)]))
    return np.array(list(found), dtype=float), np.array(list(found.values()))


def half_lines(weights: Array, means: Array, epsilon: float, *, reverse: bool) -> float:
    """H_{e^ε} of Σ w N(mean, 1) and N(0, 1) in one direction: the best half-line, found by bisection."""
    alpha = math.exp(epsilon)

    def loss(y: float) -> float:
        return float(logsumexp(means * y - means**2 / 2, b=weights)) - (-epsilon if reverse else epsilon)

    if loss(-400.0) > 0.0 or loss(400.0) < 0.0:
        return max(0.0, 1.0 - alpha) if (loss(-400.0) > 0.0) != reverse else 0.0
    cut = brentq(loss, -400.0, 400.0, xtol=1e-14)
    if reverse:
        return float(norm.cdf(cut) - alpha * (weights @ norm.cdf(cut - means)))
    return float(weights @ norm.sf(cut - means) - alpha * norm.sf(cut))


def summed(
    matrix: Array, windows: list[int], b: int, p: float, k: int, *, warm: bool, reverse: bool
) -> _core.RoundProfile:
    """The core's profile for a matrix in units of σ."""
    shifts = [matrix[:m, :m].sum(axis=0) / math.sqrt(m) for m in windows]
    return _core.RoundProfile.summed_outputs([one.tolist() for one in shifts], b, p, k, warm=warm, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(("n", "b", "p", "k"), [(6, 2, 0.2, 2), (7, 3, 0.3, 1), (5, 1, 0.4, 2), (4, 2, 1.0, 2)])
def test_sums_of_independent_outputs_by_enumeration(
    n: int, b: int, p: float, k: int, warm: bool, reverse: bool
) -> None:
    sigma, windows = 0.9, [1, 4, n]
    rows, weights = alone(n, b, p, k, warm=warm)
    profile = summed(np.eye(n) / sigma, windows, b, p, k, warm=warm, reverse=reverse)
    for epsilon in (-0.7, 0.0, 0.4, 1.5, 3.0):
        sums = [rows[:, :m].sum(axis=1) / (sigma * math.sqrt(m)) for m in windows]
        exact = max(half_lines(weights, means, epsilon, reverse=reverse) for means in sums)
        delta, error, slope, _ = _core.Inspection.profile(profile, epsilon)
        assert delta - error <= exact + 1e-13
        assert delta == pytest.approx(exact, abs=1e-12, rel=1e-9)
        assert 0.0 <= slope <= math.exp(epsilon)
        # A supporting line of the profile lies below it elsewhere.
        other = _core.Inspection.profile(profile, epsilon + 0.3)
        assert other[0] >= delta - slope * math.expm1(0.3) - 1e-12


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("growing", [False, True])
def test_sums_know_less_than_all_outputs(growing: bool, warm: bool, reverse: bool) -> None:
    """Against quadrature over all outcomes of two rounds. Shifts that differ, and rise, are lowered only."""
    n, b, p, k = 2, 1, 0.35, 2
    rng = np.random.default_rng(11)
    matrix = (
        np.tril(rng.uniform(0.2, 1.0, (n, n))) * np.array([0.6, 1.0])[None, :]
        if growing
        else lower_toeplitz([0.8, 0.5], n)
    )
    rows, weights = alone(n, b, p, k, warm=warm)
    profile = summed(matrix, [1, n], b, p, k, warm=warm, reverse=reverse)
    for epsilon in (0.0, 0.5, 1.5):
        delta, error, *_ = _core.Inspection.profile(profile, epsilon)
        truth = exact_delta((rows, weights), matrix, "add" if reverse else "remove", epsilon)
        assert delta - error <= truth * (1 + 1e-6)
        best = max(
            half_lines(weights, rows[:, :m] @ matrix[:m, :m].sum(axis=0) / math.sqrt(m), epsilon, reverse=reverse)
            for m in (1, n)
        )
        assert delta - error <= best + 1e-12
        # A 64th of the middle round's shift at most, where shifts fall.
        assert growing or delta >= 0.95 * best


def test_what_is_no_sum_of_rounds_is_refused(snapshot: Snapshot) -> None:
    made = _core.RoundProfile.summed_outputs
    for shifts in ([], [[]], [[0.0, 0.0]], [[math.nan]], [[math.inf, 1.0]]):
        snapshot.raised(made, shifts, 2, 0.1, 1, warm=False, reverse=False)
    snapshot.raised(made, [[1.0]], 2, 0.0, 1, warm=False, reverse=False)


def test_unlikely_sums_are_taken_for_nothing() -> None:
    """Probabilities down to 1e-300 and below: the sum of 400 rounds of which each is taken with 1e-9."""
    profile = _core.RoundProfile.summed_outputs([[0.05] * 400], 1, 1e-9, 1, warm=False, reverse=False)
    weights = np.array([1.0 - 400e-9 + 79800e-18, 400e-9 * (1.0 - 399e-9), 79800e-18])
    exact = half_lines(weights, np.array([0.0, 0.05, 0.1]), 0.0, reverse=False)
    assert _core.Inspection.profile(profile, 0.0)[0] == pytest.approx(exact, rel=1e-6)


SHARED: dict[str, Any] = doc(
    "name=shared epsilon=1.0 delta=solve sampling_probability=0.3 iterations=3 sampler=user-b-min-sep",
    "records_per_user=2 attribution=shared min_separation=2 multiplier=1.1 profile=[0.0,0.5,1.0,2.0]",
)


def of_algorithm_3(n: int, b: int, p: float) -> tuple[Array, Array, Array]:
    """Two users, each with one record of its own and both with a third: who takes part in each round, with probabilities.

    Of the first user's two records how many, and whether the record that is not the first user's. Every record is drawn in every
    round; draws keep out the records that share a user with them, whether or not they take part.
    """
    owners = ({0}, {0, 1}, {1})
    near = [[other for other in range(3) if owners[one] & owners[other]] for one in range(3)]
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
    for draws in product(product((0, 1), repeat=3), repeat=n):
        weight = math.prod(p if coin else 1.0 - p for coins in draws for coin in coins)
        taken = []
        for i, coins in enumerate(draws):
            earlier = draws[max(0, i - b + 1) : i]
            out = [any(past[other] for past in earlier for other in near[one]) for one in range(3)]
            taken.append([coin and not kept for coin, kept in zip(coins, out, strict=True)])
        key = tuple(int(a) + int(c) for a, c, _ in taken), tuple(int(o) for *_, o in taken)
        found[key] = found.get(key, 0.0) + weight
    first, second = zip(*found, strict=True)
    return np.array(first, dtype=float), np.array(second, dtype=float), np.array(list(found.values()))


@pytest.mark.parametrize(("start", "b"), [("cold", 1), ("cold", 2), ("warm", 2)])
def test_the_interval_holds_what_data_sets_tell(start: str, b: int) -> None:
    """Users that share nothing are data sets too: theirs is the lower end's side. The upper end is above any."""
    training = SHARED["training"] | {"iterations": 2}
    sampler = SHARED["sampler"] | {"start": start, "min_separation": b}
    data = pyaccount.certify(SHARED | {"training": training, "sampler": sampler}).data
    rows, weights = alone(2, b, 0.3, 2, warm=start == "warm")
    for direction in ("remove", "add"):
        found = getattr(data.directions, direction)
        for point in found.profile:
            truth = exact_delta((rows, weights), np.eye(2) / 1.1, direction, point.epsilon)
            assert point.delta_lower <= truth * (1 + 1e-6)
            assert truth <= point.delta * (1 + 1e-6)
            # Sums of rounds that hardly differ keep much of it.
            least = 0.5 if point.epsilon < 1.0 else 0.49
            assert point.epsilon > 1.0 or point.delta_lower >= least * truth


def test_the_interval_is_above_data_sets_in_which_records_are_shared() -> None:
    """Two users, three records, the other user's contributions orthogonal: patterns enumerated, outputs drawn."""
    n, sigma, rng = 3, 1.1, np.random.default_rng(20261123)
    mine, other, weights = of_algorithm_3(n, 2, 0.3)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    present, zeroed = np.hstack([mine, other]) / sigma, np.hstack([0.0 * mine, other]) / sigma
    draws = rng.choice(len(weights), 50_000, p=weights / weights.sum())
    data = pyaccount.certify(SHARED | {"sampler": SHARED["sampler"] | {"start": "cold"}}).data

    def log_density(y: Array, means: Array) -> Array:
        return np.asarray(logsumexp(y @ means.T - 0.5 * (means**2).sum(axis=1) + np.log(weights), axis=1))

    for direction, means in (("remove", present), ("add", zeroed)):
        y = means[draws] + rng.normal(size=(len(draws), 2 * n))
        losses = (log_density(y, present) - log_density(y, zeroed)) * (1.0 if direction == "remove" else -1.0)
        for point in getattr(data.directions, direction).profile:
            values = np.maximum(-np.expm1(point.epsilon - losses), 0.0)
            mean, error = values.mean(), values.std() / math.sqrt(len(values))
            assert mean <= point.delta + 4.5 * error
            assert point.delta_lower <= point.delta


@pytest.mark.parametrize("matrix", [{"kind": "identity"}, {"kind": "banded-square-root", "bands": 8}, {"kind": "blt"}])
def test_all_rounds_tell_more_than_the_first(matrix: dict[str, Any]) -> None:
    """Poisson sampling of the first round alone, which the lower end was before, is far below."""
    long: dict[str, Any] = SHARED | sectioned(
        "adjacency=zero-out epsilon=solve delta=1e-5 sampling_probability=0.01 iterations=500 profile=[]",
        sampler=SHARED["sampler"] | {"min_separation": 8},
        matrix={"kind": "blt", "buffers": 2} if matrix["kind"] == "blt" else matrix,
    )
    data = pyaccount.certify(long).data
    first = pyaccount.certify(
        long | sectioned(sampling_probability=1 - 0.99**2, iterations=1, sampler="poisson", matrix="identity")
    ).data
    assert data.guarantee.epsilon_lower > 3.0 * first.guarantee.epsilon
    assert data.guarantee.epsilon_lower < data.guarantee.epsilon


# ---- random allocation of several rounds


def test_every_round_of_an_allocation_is_one_gaussian() -> None:
    for count, square in ((1, 1.44), (2, 0.5), (5, 0.2)):
        mu = math.sqrt(count * square)
        for reverse in (False, True):
            profile = _core.RoundProfile.several_of(square, count, count, 0.02, 1e-40, reverse=reverse)
            for epsilon in (0.0, 0.7, 2.0):
                exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
                delta, error, *_ = _core.Inspection.profile(profile, epsilon)
                # The sum of the outputs tells all there is.
                assert delta - error <= exact
                assert delta == pytest.approx(exact, rel=1e-9)


def test_one_round_of_an_allocation_is_the_law_there_is() -> None:
    for reverse in (False, True):
        one = _core.RoundProfile.several_of(0.7, 20, 1, 0.02, 1e-40, reverse=reverse)
        other = _core.RoundProfile.allocation([0.7], [20], 0.02, 1e-40, reverse=reverse, below=True)
        for epsilon in (-0.1, 0.0, 0.5, 2.0):
            assert _core.Inspection.profile(one, epsilon) == _core.Inspection.profile(other, epsilon)


@pytest.mark.parametrize(("rounds", "taken", "square"), [(12, 2, 1.0), (40, 3, 0.6), (60, 5, 0.25)])
def test_several_of_many_rounds_against_samples(rounds: int, taken: int, square: float) -> None:
    """S = e_k(Z)/C(T, k), drawn: the law below it has less, but not much less."""
    rng = np.random.default_rng(rounds)
    normal = rng.normal(size=(200_000, rounds))
    sums = np.zeros((taken + 1, len(normal)))
    sums[0] = 1.0
    for column in normal.T:
        ratio = np.exp(math.sqrt(square) * column - square / 2)
        for j in range(taken, 0, -1):
            sums[j] += ratio * sums[j - 1]
    ratios = sums[taken] / math.comb(rounds, taken)
    for reverse in (False, True):
        profile = _core.RoundProfile.several_of(square, rounds, taken, 2.0**-5, 1e-40, reverse=reverse)
        for epsilon in (0.0, 0.5, 1.0):
            alpha = math.exp(epsilon)
            values = np.maximum(1 - alpha * ratios, 0.0) if reverse else np.maximum(ratios - alpha, 0.0)
            mean, error = values.mean(), values.std() / math.sqrt(len(values))
            delta, rounding, *_ = _core.Inspection.profile(profile, epsilon)
            assert delta - rounding <= mean + 4.5 * error
            assert delta >= 0.9 * mean - 4.5 * error


@pytest.mark.parametrize("square", [0.1, 1.0, 4.0])
def test_several_rounds_tell_no_less_than_their_sum_and_no_more_than_known_ones(square: float) -> None:
    rounds, taken = 40, 10
    summed, known = (
        _core.RoundProfile.gaussian(shift, 1.0)
        for shift in (taken * math.sqrt(square / rounds), math.sqrt(taken * square))
    )
    for reverse in (False, True):
        profile = _core.RoundProfile.several_of(square, rounds, taken, 2.0**-5, 1e-40, reverse=reverse)
        for epsilon in (-0.5, 0.0, 1.0, 5.0, 9.0):
            least, delta, most = (_core.Inspection.profile(one, epsilon)[0] for one in (summed, profile, known))
            assert least * (1 - 1e-9) <= delta <= most * (1 + 1e-9)


def test_participations_out_of_range_are_refused(snapshot: Snapshot) -> None:
    for taken, count in ((0, 5), (6, 5), (_core.MOST_PARTICIPATIONS + 1, 100)):
        snapshot.raised(_core.RoundProfile.several_of, 1.0, count, taken, 0.02, 1e-40, reverse=False)


@pytest.mark.parametrize(("taken", "sigma", "share"), [(3, 1.0, 0.9), (3, 0.05, 0.05), (20, 1.0, 0.3)])
def test_several_rounds_of_an_allocation_have_an_interval(taken: int, sigma: float, share: float) -> None:
    """Also where no law is made: with hardly any noise, and for many participations."""
    raw = SHARED | sectioned(
        "adjacency=zero-out epsilon=solve delta=1e-5 iterations=200 profile=[] tolerance=0.03",
        sampler={"kind": "random-allocation", "iterations_per_allocation": 100, "participations": taken},
        multiplier=sigma,
    )
    guarantee = pyaccount.certify(raw).data.guarantee
    assert share * guarantee.epsilon < guarantee.epsilon_lower < guarantee.epsilon


# ---- what is said of lower ends


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_bound_that_is_not_attained_says_what_its_lower_end_is_of(path: Path) -> None:
    if "amplification" in path.read_text() or path.stem == "policy":
        pytest.skip("no mechanism of rounds")
    for reduction in pyaccount.compile(path).reductions:
        assert (reduction.lower_end is None) == reduction.tight
        # Rounds of training have two data sets; a mechanism has a case of its own.
        training = FRESH not in reduction.assumed
        stated = reduction.lower_end or ""
        assert reduction.lower_end is None or not training or ("data sets" in stated and "rounds" in stated)


def test_the_lower_end_stands_in_certificate_and_reports() -> None:
    certificate = pyaccount.certify(SHARED)
    (reduction,) = certificate.data.reductions
    assert reduction.lower_end is not None
    assert "shares no record" in reduction.lower_end
    for text in (certificate.to_json(), certificate.to_html(), certificate.to_markdown()):
        assert "shares no record" in text
    attained = pyaccount.certify(SHARED | {"sampler": {"kind": "poisson"}})
    assert [one.lower_end for one in attained.data.reductions] == [None]


def test_cells_have_a_line_where_there_is_no_lattice() -> None:
    raw = doc(
        "name=rare epsilon=1.0 delta=solve sampling_probability=1e-9 iterations=3000 sampler=poisson",
        "multiplier=0.25 profile=[] tolerance=1e-3",
    )
    data = pyaccount.certify(raw).data
    lines = {
        line.direction: line.contribution for line in data.evidence.error_budget if line.source.startswith("cells")
    }
    # Where the answer is read, the line is the interval's width: what cells may have added, with the distance to what is below.
    remove = data.directions.remove
    assert lines["remove"] >= 0.99 * (remove.delta - remove.delta_lower) > 0.0
    ordinary = pyaccount.certify(raw | {"training": {"sampling_probability": 0.01, "iterations": 1000}}).data
    assert not [line for line in ordinary.evidence.error_budget if line.source.startswith("cells")]
