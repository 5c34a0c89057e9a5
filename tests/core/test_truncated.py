"""Truncated batches: the pair against all data sets, densities and counts against enumeration, documents."""

from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from log_sums import logsumexp
from sampled_tools import Array, Law, bin_law, counts_law, estimated, lower_toeplitz, pair_given, renewal_law
from scipy.stats import chi2, norm

from pyaccount import _core


def log_density(mixture: Law, columns: Array, y: Array) -> Array:
    """Return ln Σ w N(Cx, I)/N(0, I). A row of `columns` is the change of the outcome by participation in one place."""
    means = np.array(list(mixture), dtype=float) @ columns
    weights = np.log(np.array(list(mixture.values())))
    return np.asarray(logsumexp(y @ means.T - 0.5 * (means**2).sum(axis=1) + weights, axis=1))


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 6.0])
@pytest.mark.parametrize(
    ("n", "b", "bands", "p"),
    [(1, 1, 1, 0.3), (5, 1, 1, 0.2), (6, 2, 2, 0.4), (7, 3, 3, 0.25), (7, 4, 2, 1.0), (8, 4, 4, 0.05), (3, 7, 3, 0.4)],
)
def test_densities_are_the_sum_over_patterns_and_survivals(
    n: int, b: int, bands: int, p: float, sigma: float, *, warm: bool
) -> None:
    law, limit, size = renewal_law(n, b, p, warm=warm), 3, 30
    rng = np.random.default_rng(n + 10 * b)
    column = np.sort(rng.uniform(0.1, 1.0, bands))[::-1]
    columns = lower_toeplitz(column, n).T / sigma
    mechanism = _core.Sampled.renewal((column / sigma).tolist(), n, b, p, warm).truncated(size, limit)
    for counts in (rng.integers(0, 8, (11, n)), np.zeros((11, n), dtype=int), np.full((11, n), 9)):
        y = rng.normal(size=(11, n)) * np.array([1.0] * 7 + [12.0] * 4)[:, None]
        found = _core.Inspection.log_densities(mechanism, y.tolist(), batch_sizes=counts.tolist())
        for (remove, add), outcome, r in zip(found, y, counts, strict=True):
            expected = [
                log_density(side, columns, outcome[None, :])[0] for side in pair_given(law, tuple(r.tolist()), limit)
            ]
            np.testing.assert_allclose([remove, add], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 6.0])
@pytest.mark.parametrize(("n", "bins", "bands"), [(1, 1, 1), (6, 2, 3), (10, 4, 3), (30, 11, 4)])
def test_densities_of_bins_are_the_sum_over_bins_and_survivals(n: int, bins: int, bands: int, sigma: float) -> None:
    rng = np.random.default_rng(bins)
    matrix = np.tril(rng.uniform(0.0, 1.0, (n, n))) if bands == 3 else lower_toeplitz(rng.uniform(0.1, 1.0, bands), n)
    modes = np.array([matrix[:, t::bins].sum(axis=1) for t in range(bins)]) / sigma
    law, limit = {tuple(int(k == t) for k in range(bins)): 1.0 / bins for t in range(bins)}, 4
    mechanism = _core.Sampled.bins((modes @ modes.T).ravel(), n).truncated(50, limit)
    for counts in (rng.integers(0, 9, (11, bins)), np.zeros((11, bins), dtype=int), np.full((11, bins), 40)):
        y = rng.normal(size=(11, n)) * np.array([1.0] * 7 + [9.0] * 4)[:, None]
        found = _core.Inspection.log_densities(mechanism, (y @ modes.T).tolist(), batch_sizes=counts.tolist())
        for (remove, add), outcome, r in zip(found, y, counts, strict=True):
            expected = [
                log_density(side, modes, outcome[None, :])[0] for side in pair_given(law, tuple(r.tolist()), limit)
            ]
            np.testing.assert_allclose([remove, add], expected, rtol=0, atol=1e-10)


#: Name: the law of the places (rounds or bins) of one record, and the mechanism truncated to a given batch size.
SMALL: dict[str, tuple[Law, Any]] = {
    "cold": (
        renewal_law(4, 2, 0.4, warm=False),
        lambda size, limit: _core.Sampled.renewal([1.0, 0.5], 4, 2, 0.4, False).truncated(size, limit),
    ),
    "warm": (
        renewal_law(4, 3, 0.35, warm=True),
        lambda size, limit: _core.Sampled.renewal([1.0, 0.5], 4, 3, 0.35, True).truncated(size, limit),
    ),
    "Poisson": (
        renewal_law(3, 1, 0.3, warm=False),
        lambda size, limit: _core.Sampled.renewal([1.0], 3, 1, 0.3, False).truncated(size, limit),
    ),
    "always": (
        renewal_law(5, 3, 1.0, warm=True),
        lambda size, limit: _core.Sampled.renewal([1.0], 5, 3, 1.0, True).truncated(size, limit),
    ),
    "bins": (
        {tuple(int(k == t) for k in range(3)): 1.0 / 3.0 for t in range(3)},
        lambda size, limit: _core.Sampled.bins(np.eye(3).ravel(), 3).truncated(size, limit),
    ),
}


@pytest.mark.parametrize("others", [1, 2, 5])
@pytest.mark.parametrize("name", SMALL)
def test_counts_have_the_law_of_the_enumeration(name: str, others: int) -> None:
    law, build = SMALL[name]
    expected = counts_law(tuple(law.items()), others)
    mechanism, shards = build(others + 1, 1), 4000
    seen: dict[tuple[int, ...], int] = {}
    for shard in range(shards):
        for r in _core.Inspection.batch_sizes(mechanism, key=(7, 1, others, 0), shard=shard):
            seen[tuple(r)] = seen.get(tuple(r), 0) + 1
    assert set(seen) <= set(expected)
    total = 8 * shards
    # χ² over the outcomes that are expected often enough, with all other outcomes together.
    often = {r: total * w for r, w in expected.items() if total * w >= 20.0}
    pairs = [(seen.get(r, 0), mean) for r, mean in often.items()]
    rest = total - sum(mean for _, mean in pairs)
    if rest > 20.0:
        pairs.append((total - sum(count for count, _ in pairs), rest))
    statistic = sum((count - mean) ** 2 / mean for count, mean in pairs)
    assert statistic <= chi2.ppf(1.0 - 1e-7, max(1, len(pairs) - 1))


def test_counts_of_many_records_have_the_moments_they_should() -> None:
    """A data set of two million: three digits of tables, a warm start that is spread over 63 rounds."""
    size, n, b, p = 2_000_000, 200, 64, 4e-4
    mechanism = _core.Sampled.renewal([1.0], n, b, p, True).truncated(size, 1)
    counts = np.array(
        [r for shard in range(250) for r in _core.Inspection.batch_sizes(mechanism, key=(1, 1, 1, 0), shard=shard)],
        dtype=float,
    )
    rate = 1.0 / (b - 1 + 1.0 / p)
    mean, variance = (size - 1) * rate, (size - 1) * rate * (1.0 - rate)
    samples = len(counts)
    errors = (counts.mean(axis=0) - mean) / np.sqrt(variance / samples)
    assert np.abs(errors).max() < 5.0
    spread = counts.var(axis=0, ddof=1) / variance
    assert np.abs(spread - 1.0).max() < 6.0 * np.sqrt(2.0 / samples)
    # Less than b rounds apart nobody joins twice: the covariance of indicators is −rate² each.
    gaps = [np.cov(counts[:, i], counts[:, i + 10])[0, 1] for i in range(0, n - 10, 20)]
    assert abs(np.mean(gaps) + (size - 1) * rate**2) < 5.0 * variance / np.sqrt(samples * len(gaps))


AXIS = np.linspace(-11.0, 11.0, 201)
STEP = AXIS[1] - AXIS[0]


def on_grid(mixture: Law, columns: Array) -> Array:
    """Return the density of Σ w N(Cx, I) at each point of the grid, times its cell: components are products over axes."""
    means = np.array(list(mixture), dtype=float) @ columns
    first, second = (norm.pdf(AXIS[:, None], coordinate) * STEP for coordinate in means.T)
    return np.asarray((first * list(mixture.values())) @ second.T)


def stick(p: Array, q: Array, epsilon: float) -> float:
    return float(np.maximum(p - np.exp(epsilon) * q, 0.0).sum())


def pair_deltas(law: Law, columns: Array, size: int, limit: int, epsilons: tuple[float, ...]) -> list[dict[str, float]]:
    """Return δ of the pair that releases the counts of the other records, at each ε."""
    deltas = [{"remove": 0.0, "add": 0.0} for _ in epsilons]
    for r, chance in counts_law(tuple(law.items()), size - 1).items():
        present, absent = (on_grid(side, columns) for side in pair_given(law, r, limit))
        for epsilon, found in zip(epsilons, deltas, strict=True):
            found["remove"] += chance * stick(present, absent, epsilon)
            found["add"] += chance * stick(absent, present, epsilon)
    return deltas


def batch_sums(
    drawn: tuple[tuple[int, ...], ...],
    sensitive: int,
    gradients: tuple[float, ...],
    value: float,
    limit: int,
    *,
    slot: bool,
) -> Law:
    """Return the law of the sums of all places for given participations, over the subsets that truncation keeps.

    `value` is the sensitive record's gradient; without `slot` an empty record is not drawn at all.
    """
    choices: list[list[tuple[float, float]]] = []
    for place in range(len(drawn[0])):
        members = [k for k, x in enumerate(drawn) if x[place] and (slot or k != sensitive)]
        kept = list(combinations(members, min(limit, len(members))))
        sums = [sum(value if k == sensitive else gradients[k] for k in subset) for subset in kept]
        choices.append([(total, 1.0 / len(kept)) for total in sums])
    found: Law = {}
    for combination in product(*choices):
        key: Any = tuple(total for total, _ in combination)
        found[key] = found.get(key, 0.0) + float(np.prod([weight for _, weight in combination]))
    return found


def true_mechanism(law: Law, size: int, gradients: tuple[float, ...], value: float, limit: int, *, slot: bool) -> Law:
    """Return the law of the sums if every record has its gradient and the first one `value`."""
    total: Law = {}
    for patterns in product(law.items(), repeat=size):
        chance = float(np.prod([weight for _, weight in patterns]))
        drawn = tuple(x for x, _ in patterns)
        for sums, weight in batch_sums(drawn, 0, gradients, value, limit, slot=slot).items():
            total[sums] = total.get(sums, 0.0) + chance * weight
    return total


CASES: dict[str, tuple[Law, Array, int, int]] = {
    # The law, the columns by place, the size of the data set, B.
    "two rounds apart": (renewal_law(2, 1, 0.6, warm=False), np.eye(2), 3, 1),
    "separated": (renewal_law(2, 2, 0.5, warm=True), np.array([[0.8, 0.6], [0.0, 0.8]]), 4, 2),
    "cold": (renewal_law(2, 2, 0.7, warm=False), np.array([[1.0, 0.5], [0.0, 1.0]]) / 1.3, 4, 1),
    "bins": (bin_law(2, 2), np.eye(2), 4, 1),
    "correlated bins": (bin_law(2, 2), np.array([[0.8, 0.6], [0.0, 0.8]]) / 0.8, 4, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_no_data_set_beats_the_pair(name: str) -> None:
    """All gradients are ±1, the empty record is drawn or not, in both directions; only noisy sums are released."""
    law, columns, size, limit = CASES[name]
    epsilons = (0.0, 0.5, 1.5, 3.0)
    bounds = pair_deltas(law, columns, size, limit, epsilons)
    largest = [{"remove": 0.0, "add": 0.0} for _ in epsilons]
    for signs in product((-1.0, 1.0), repeat=size - 1):
        gradients = (1.0, *signs)
        present = on_grid(true_mechanism(law, size, gradients, 1.0, limit, slot=True), columns)
        for slot in (True, False):
            empty = on_grid(true_mechanism(law, size, gradients, 0.0, limit, slot=slot), columns)
            for epsilon, bound, worst in zip(epsilons, bounds, largest, strict=True):
                for direction, found in (
                    ("remove", stick(present, empty, epsilon)),
                    ("add", stick(empty, present, epsilon)),
                ):
                    assert found <= bound[direction] + 1e-9
                    worst[direction] = max(worst[direction], found)
    # The bound is not trivial: at ε = 0 the worst data set comes close to it.
    assert largest[0]["remove"] > 0.4 * bounds[0]["remove"]


def test_truncation_does_change_the_analysis_of_bins() -> None:
    """N = 4, T = n = 2, B = 1, σ = 1, ε = 3: a data set has twice the δ of the pair without truncation, within ours."""
    law, columns, size, limit = CASES["bins"]
    present = on_grid(true_mechanism(law, size, (1.0, -1.0, -1.0, -1.0), 1.0, limit, slot=True), columns)
    empty = on_grid(true_mechanism(law, size, (1.0, -1.0, -1.0, -1.0), 0.0, limit, slot=False), columns)
    true = max(stick(present, empty, 3.0), stick(empty, present, 3.0))
    (published,) = pair_deltas(law, columns, size, size, (3.0,))
    assert true > 1.9 * max(published.values())
    (ours,) = pair_deltas(law, columns, size, limit, (3.0,))
    assert true < max(ours.values())


def kernel_of(name: str, limit: int) -> tuple[_core.Sampled, float]:
    """Return the mechanism of a case, and its plain parameter."""
    law, columns, size, _ = CASES[name]
    if "bins" in name:
        return _core.Sampled.bins((columns @ columns.T).ravel(), 2).truncated(size, limit), 0.0
    b, p, warm = {"two rounds apart": (1, 0.6, False), "separated": (2, 0.5, True), "cold": (2, 0.7, False)}[name]
    assert renewal_law(2, b, p, warm=warm) == law
    column = columns[0][: min(b, 2)].tolist()
    return _core.Sampled.renewal(column, 2, b, p, warm).truncated(size, limit), p


SAMPLED_EPSILONS = (0.3, 1.0)


@cache
def deltas_of(name: str) -> list[dict[str, float]]:
    """Return the mean of a case's samples; it is the same for every proposal."""
    return pair_deltas(*CASES[name], SAMPLED_EPSILONS)


@pytest.mark.parametrize(
    ("direction", "stretch", "other"),
    [
        ("remove", 1.0, 0.0),
        ("remove", 1.3, 0.0),
        ("remove", 1.3, 0.15),
        ("add", 0.0, 0.0),
        ("add", -0.4, 0.0),
        ("add", -0.4, 0.1),
    ],
)
@pytest.mark.parametrize("name", CASES)
def test_samples_have_the_mean_of_the_pair(name: str, direction: str, stretch: float, other: float) -> None:
    mechanism, parameter = kernel_of(name, CASES[name][3])
    for epsilon, deltas in zip(SAMPLED_EPSILONS, deltas_of(name), strict=True):
        expected = deltas[direction]
        mean, error, _ = estimated(mechanism, direction, parameter + other, stretch, epsilon, np.inf, 100)
        assert abs(mean - expected) < 5.0 * error + 1e-7
        assert error < 0.1 * expected


@pytest.mark.parametrize("name", CASES)
def test_no_truncation_in_reach_is_no_truncation(name: str) -> None:
    size = CASES[name][2]
    mechanism, parameter = kernel_of(name, size)
    columns = CASES[name][1]
    b, p, warm = {"two rounds apart": (1, 0.6, False), "separated": (2, 0.5, True)}.get(name, (2, 0.7, False))
    bare = (
        _core.Sampled.bins((columns @ columns.T).ravel(), 2)
        if "bins" in name
        else _core.Sampled.renewal(columns[0][: min(b, 2)].tolist(), 2, b, p, warm)
    )
    for direction, stretch in (("remove", 1.0), ("remove", 1.4), ("add", 0.0), ("add", -0.3)):
        samples = [
            _core.Inspection.probe(
                one, direction, parameter, stretch, key=(4, 1, 2, 0), shard=3, instruction_set="portable"
            )
            for one in (mechanism, bare)
        ]
        assert samples[0] == samples[1]
        assert (
            mechanism.bounds(direction, parameter, stretch, 1.0)[1]
            >= bare.bounds(direction, parameter, stretch, 1.0)[1]
        )


@pytest.mark.parametrize(("direction", "stretch"), [("remove", 1.0), ("remove", 1.3), ("add", 0.0), ("add", -0.4)])
@pytest.mark.parametrize("name", ["renewal", "long", "bins"])
def test_instruction_sets_and_threads_agree_bit_for_bit(name: str, direction: str, stretch: float) -> None:
    mechanism = {
        "renewal": lambda: _core.Sampled.renewal([0.9, 0.4, 0.2], 77, 9, 0.1, True).truncated(1000, 58),
        "long": lambda: _core.Sampled.renewal([0.1] * 200, 700, 230, 0.05, True).truncated(3000, 16),
        "bins": lambda: _core.Sampled.bins((np.eye(11) + 0.1).ravel(), 30).truncated(1000, 95),
    }[name]()
    parameter = mechanism.plain_parameter
    answers = [
        _core.Inspection.probe(
            mechanism, direction, parameter, stretch, key=(5, 1, 2, 0), shard=shard, instruction_set=name
        )
        for shard in (0, 7)
        for name in _core.Inspection.INSTRUCTION_SETS
    ]
    half = len(_core.Inspection.INSTRUCTION_SETS)
    assert all(answer == answers[0] for answer in answers[:half])
    assert all(answer == answers[half] for answer in answers[half:])
    # Some lanes are truncated, so Q differs from R there.
    assert any(value != 0.0 for answer in answers if answer is not None for value in answer[1])
    cap, _, _ = mechanism.bounds(direction, parameter, stretch, 0.5)
    tables = [(0.5, cap, [(0.01, -1.0)])]

    def run(first: int, count: int, threads: int) -> Any:
        return mechanism.simulate(
            direction,
            parameter,
            stretch,
            tables,
            edges=None,
            key=(3, 1, 0, 1),
            first=first,
            count=count,
            threads=threads,
            time_limit=None,
        )[0]

    one = run(0, 5, 1)
    assert one == run(0, 5, 2)
    assert run(3, 2, 2) == one[3:]


@pytest.mark.parametrize("sigma", [0.04, 0.08])
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_outside_the_linear_domain_logarithms_take_over(sigma: float, *, warm: bool) -> None:
    n, b, p, limit = 8, 2, 0.3, 3
    law = renewal_law(n, b, p, warm=warm)
    column = np.array([0.8, 0.6]) / sigma
    columns = lower_toeplitz(column, n).T
    mechanism = _core.Sampled.renewal(column.tolist(), n, b, p, warm).truncated(30, limit)
    rng = np.random.default_rng(5)
    for scale in (1.0, 12.0, 40.0):
        y, counts = scale * rng.normal(size=(5, n)), rng.integers(0, 8, (5, n))
        for outcome, r in zip(y, counts, strict=True):
            ((remove, add),) = _core.Inspection.log_densities(mechanism, [outcome.tolist()], batch_sizes=[r.tolist()])
            for found, side in zip((remove, add), pair_given(law, tuple(r.tolist()), limit), strict=True):
                expected = log_density(side, columns, outcome[None, :])[0]
                assert abs(found - expected) <= 1e-9 * max(1.0, abs(expected))


def test_plain_samples_are_bounded_and_others_are_not() -> None:
    mechanism = _core.Sampled.renewal([1.0, 0.5], 20, 3, 0.1, True).truncated(100, 12)
    for direction, stretch in (("remove", 1.0), ("add", 0.0)):
        cap, generator, rounding = mechanism.bounds(direction, 0.1, stretch, 1.0)
        assert cap == 1.0
        assert 0.0 < generator < 1e-10
        assert 0.0 < rounding < 1e-11
        assert mechanism.bounds(direction, 0.2, stretch, 1.0)[0] == np.inf
    for direction, stretch in (("remove", 1.2), ("add", -0.3), ("remove", 0.0), ("add", 1.0)):
        assert mechanism.bounds(direction, 0.1, stretch, 1.0)[0] == np.inf
