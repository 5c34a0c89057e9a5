"""Users with several records each under b-min-sep sampling: enumeration, identities, the bound with shared records."""

import json
from functools import cache
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from log_sums import logsumexp
from plain_documents import doc
from sampled_tools import Array, estimated, lower_toeplitz
from scipy.stats import binom, norm
from snapshots import Snapshot

import pyaccount
from pyaccount import _core


def patterns(n: int, b: int, p: float, k: int, *, warm: bool) -> tuple[Array, Array]:
    """Every vector of participation counts with its probability, by going through the rounds."""
    counts = binom.pmf(np.arange(k + 1), k, p)
    joins = 1.0 - counts[0]
    total = 1.0 + (b - 1) * joins
    starts = [1.0 / total, *[joins / total] * (b - 1)] if warm else [1.0]
    found: list[tuple[list[int], float]] = []
    for start, weight in enumerate(starts):
        open_ends = [([0] * n, start, weight)]
        while open_ends:
            taken, now, probability = open_ends.pop()
            if now >= n:
                found.append((taken, probability))
                continue
            open_ends.append((taken, now + 1, probability * counts[0]))
            for j in range(1, k + 1):
                joined = taken.copy()
                joined[now] = j
                open_ends.append((joined, now + b, probability * counts[j]))
    rows, weights = zip(*[item for item in found if item[1] > 0], strict=True)
    return np.array(rows, dtype=float), np.array(weights)


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize(
    ("n", "b", "bands", "p", "k"),
    [
        (1, 1, 1, 0.3, 3),
        (5, 1, 1, 0.2, 2),
        (6, 2, 2, 0.4, 3),
        (7, 3, 3, 0.25, 2),
        (7, 4, 2, 1.0, 3),
        (8, 4, 4, 0.05, 5),
    ],
)
@pytest.mark.parametrize("sigma", [0.5, 1.0, 6.0])
def test_densities_are_the_sum_over_all_patterns(
    n: int, b: int, bands: int, p: float, k: int, sigma: float, warm: bool
) -> None:
    rows, weights = patterns(n, b, p, k, warm=warm)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    rng = np.random.default_rng(n + b)
    column = np.sort(rng.uniform(0.1, 1.0, bands))[::-1]
    means = rows @ lower_toeplitz(column, n).T / sigma
    likely = means[rng.choice(len(weights), 6, p=weights / weights.sum())] + rng.normal(size=(6, n))
    y = np.concatenate([likely, rng.normal(size=(4, n)), 12.0 * rng.normal(size=(3, n))])
    mechanism = _core.Sampled.users((column / sigma).tolist(), n, b, p, k, warm)
    for sign, computed in zip(
        (1.0, -1.0), np.array(_core.Inspection.log_densities(mechanism, y.tolist())).T, strict=True
    ):
        exponents = sign * y @ means.T - 0.5 * (means**2).sum(axis=1) + np.log(weights)
        np.testing.assert_allclose(computed, logsumexp(exponents, axis=1), rtol=0, atol=1e-10)


def test_one_record_is_the_plain_sampler() -> None:
    column = [0.8, 0.5, 0.3]
    y = np.random.default_rng(3).normal(size=(9, 40)).tolist()
    for warm in (False, True):
        users = _core.Sampled.users(column, 40, 5, 0.2, 1, warm)
        assert _core.Inspection.log_densities(users, y) == _core.Inspection.log_densities(
            _core.Sampled.renewal(column, 40, 5, 0.2, warm), y
        )


def test_proposals_agree_with_plain_samples_and_obey_their_caps() -> None:
    mechanism = _core.Sampled.users([0.6, 0.3], 30, 4, 0.05, 3, True)
    joins = mechanism.plain_parameter
    assert joins == pytest.approx(1 - 0.95**3, rel=1e-14)
    assert mechanism.bounds("remove", joins, 1.0, 1.0)[0] == 1.0
    for direction, plain, stretched in (("remove", 1.0, 1.6), ("add", 0.0, -0.8), ("replace", 1.0, 1.3)):
        found = []
        for stretch, parameter in ((plain, joins), (stretched, 0.25)):
            cap, _, _ = mechanism.bounds(direction, parameter, stretch, 1.0)
            mean, error, square = estimated(mechanism, direction, parameter, stretch, 1.0, cap, 96)
            # V is at most the cap, so its mean square is at most the cap times its mean.
            assert square <= cap * mean * (1 + 1e-9)
            found.append((mean, error))
        (first, error), (second, other) = found
        assert abs(first - second) < 4.5 * np.hypot(error, other), direction
        assert second > 0.0


def test_samples_come_from_the_law() -> None:
    """The mean of the plain losses' δ against quadrature, where one round decides: Bin(j; 3, p) N(j) against N(0)."""
    p, k, sigma, epsilon = 0.3, 3, 1.5, 0.4
    mechanism = _core.Sampled.users([1 / sigma], 1, 1, p, k, False)
    exact = _core.Inspection.profile(_core.RoundProfile.poisson(k, p, sigma, two_sided=False, reverse=False), epsilon)[
        0
    ]
    mean, error, _ = estimated(mechanism, "remove", mechanism.plain_parameter, 1.0, epsilon, 1.0, 64)
    assert abs(mean - exact) < 4.5 * error


def document(attribution: str, **changes: Any) -> dict[str, Any]:
    return (
        doc(
            "name=users delta=1e-3 sampling_probability=0.02 iterations=60 sampler=user-b-min-sep",
            "records_per_user=2 min_separation=8 matrix=banded-square-root bands=4 multiplier=1.5 seed=7",
            "profile=[] tolerance=0.05",
            attribution=attribution,
        )
        | changes
    )


@cache
def certified(raw: str) -> pyaccount.Certificate:
    """What several tests ask the same of."""
    return pyaccount.certify(json.loads(raw))


def test_one_record_a_user_is_the_example_level() -> None:
    alone = {"kind": "user-b-min-sep", "records_per_user": 1, "attribution": "single", "min_separation": 8}
    users = pyaccount.certify(document("single", sampler=alone)).data
    records = pyaccount.certify(document("single", sampler={"kind": "b-min-sep", "min_separation": 8})).data
    assert users.guarantee == records.guarantee
    assert users.privacy.unit == "user"
    assert "one user" in users.statement


def test_one_round_is_the_poisson_sampled_group() -> None:
    """b = 1 and no matrix: rounds compose, with the group mixture for two records that are drawn independently."""
    sampler = {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "single", "min_separation": 1}
    sampled = pyaccount.certify(document("single", sampler=sampler, matrix={"kind": "identity"}))
    group = {"adjacency": "zero-out", "group_size": 2, "epsilon": "solve", "delta": 1e-3}
    composed = pyaccount.certify(
        document("single", sampler={"kind": "poisson"}, matrix={"kind": "identity"}, privacy=group, accounting={})
    )
    assert sampled.epsilon_lower <= composed.epsilon
    assert composed.epsilon_lower <= sampled.epsilon <= 1.06 * composed.epsilon


def known_draws(rows: Array, weights: Array, matrix: Array, epsilon: float) -> float:
    """Σ_x w_x G_{‖Cx‖}(e^ε), `matrix` in units of σ."""
    shifts = np.linalg.norm(rows @ matrix.T, axis=1)
    none = shifts == 0.0
    moved = np.where(none, 1.0, shifts)
    tails = norm.cdf(moved / 2 - epsilon / moved), norm.cdf(-moved / 2 - epsilon / moved)
    values = np.where(none, max(0.0, 1 - np.exp(epsilon)), tails[0] - np.exp(epsilon) * tails[1])
    return float(weights @ values)


@pytest.mark.parametrize("warm", [False, True])
def test_known_draws_by_enumeration(warm: bool) -> None:
    """Over every pattern, and no less than what the patterns kept secret would give."""
    n, b, p, k, sigma = 6, 2, 0.2, 2, 1.3
    rows, weights = patterns(n, b, p, k, warm=warm)
    profile = _core.RoundProfile.public_participation([sigma**-2] * n, b, p, k, warm=warm)
    for epsilon in (-1.0, 0.0, 0.5, 2.0):
        delta, error, *_ = _core.Inspection.profile(profile, epsilon)
        assert delta == pytest.approx(known_draws(rows, weights, np.eye(n) / sigma, epsilon), rel=1e-11, abs=1e-13)
        assert error < 1e-11


def test_columns_that_end_with_the_run_are_charged_what_is_left_of_them() -> None:
    n, b, p, k, sigma = 7, 3, 0.3, 2, 1.1
    coefficients = [1.0, 0.6, 0.3]
    matrix = lower_toeplitz(coefficients, n) / sigma
    charges = (matrix**2).sum(axis=0)
    profile, longest = (
        _core.RoundProfile.public_participation(list(each), b, p, k, warm=False)
        for each in (charges, [charges.max()] * n)
    )
    rows, weights = patterns(n, b, p, k, warm=False)
    for epsilon in (0.0, 1.0, 3.0):
        exact = known_draws(rows, weights, matrix, epsilon)
        # A charge is rounded up by 1/16 of the largest at most: ‖Cx‖ has 2²·3 of them, each on a grid of 256.
        assert exact <= _core.Inspection.profile(profile, epsilon)[0] <= exact * (1 + 2e-3)
        assert _core.Inspection.profile(longest, epsilon)[0] > exact * (1 + 1e-2)


@pytest.mark.parametrize("b", [1, 2, 3])
def test_columns_that_overlap_cost_something_from_any_start(b: int) -> None:
    """Columns of any lengths and norms: rows that grow, so that whoever comes late is charged more."""
    rng = np.random.default_rng(b)
    n, p, k = 6, 0.4, 2
    matrix = np.tril(rng.random((n, n))) * np.linspace(0.1, 1.5, n)
    columns = _core.Columns.dense([entry for i in range(n) for entry in matrix[i:, i]], n, b)
    gram = matrix.T @ matrix
    for i, charge in enumerate(columns.norm_bounds):
        # The best set of rounds beside i, by trying all of them.
        sets = [np.flatnonzero([bits >> j & 1 for j in range(n)]) for bits in range(2**n)]
        apart = [s for s in sets if i in s and (len(s) < 2 or np.diff(s).min() >= b)]
        assert charge == pytest.approx(max(gram[i, s].sum() for s in apart), rel=1e-12)
    bound = _core.RoundProfile.public_participation(columns.norm_bounds, b, p, k, warm=False)
    for warm in (False, True):
        rows, weights = patterns(n, b, p, k, warm=warm)
        for epsilon in (0.0, 1.0, 4.0, 10.0):
            assert known_draws(rows, weights, matrix, epsilon) <= _core.Inspection.profile(bound, epsilon)[0]


def test_coming_late_may_be_charged_more() -> None:
    """A user that always joins takes round 1 at once; another user's draw may leave it to round 2, whose column is longer."""
    bound = _core.RoundProfile.public_participation([0.01, 1.0], 2, 1.0, 1, warm=False)
    late = known_draws(np.array([[0.0, 1.0]]), np.array([1.0]), np.diag([0.1, 1.0]), 1.0)
    assert _core.Inspection.profile(bound, 1.0)[0] >= late


def test_with_shared_records_the_published_pair_is_beaten() -> None:
    """n = b = 2, C = I, σ = 1, p = 0.01; the user's only record is shared with 600 users who have one more each.

    The others' gradients are orthogonal to the user's, so that their sums tell how likely the user's draw in round 1 was; given
    them the user's own coordinate is a subsampled Gaussian with that posterior probability. Draws in round 2 are left out, which
    can only make the mechanism look more private.
    """
    p, users = 0.01, 600
    grid = np.arange(-8.0, 30.0, 0.05)
    counts = np.arange(41)
    density = norm.pdf(grid[:, None] - counts)
    first = binom.pmf(counts, users, p)
    drawn = p * np.outer(density @ first, norm.pdf(grid))
    second = np.array([binom.pmf(counts, users - n, p) for n in counts])
    other = (1 - p) * (density * first) @ (second @ density.T)
    posterior = drawn / (drawn + other)
    for epsilon, published in ((1.0, 6.0e-7), (2.0, 5e-9)):
        with np.errstate(divide="ignore"):
            threshold = np.log((np.exp(epsilon) - 1 + posterior) / posterior) + 0.5
        gained = (1 - posterior) * norm.sf(threshold) + posterior * norm.sf(threshold - 1)
        truth = ((drawn + other) * (gained - np.exp(epsilon) * norm.sf(threshold))).sum() * 0.05**2
        # The pair for two records a user: f_1 = w_0·f_2 + φ_1, f_2 = w_0 + φ_2.
        x, y = np.meshgrid(np.arange(-8, 12, 0.02), np.arange(-8, 12, 0.02))
        none, join = (1 - p) ** 2, [2 * p * (1 - p) * np.exp(z - 0.5) + p**2 * np.exp(2 * z - 2) for z in (x, y)]
        ratio = none * (none + join[1]) + join[0]
        weight = norm.pdf(x) * norm.pdf(y) * 0.02**2
        claimed = (weight * np.maximum(ratio - np.exp(epsilon), 0)).sum()
        assert claimed == pytest.approx(published, rel=0.2)
        bound = _core.Inspection.profile(
            _core.RoundProfile.public_participation([1.0, 1.0], 2, p, 2, warm=False), epsilon
        )[0]
        assert truth > 100 * claimed
        assert truth < bound


def test_certificates_say_what_was_given_up() -> None:
    shared = certified(json.dumps(document("shared"))).data
    single = pyaccount.certify(document("single")).data
    assert shared.guarantee.kind == "deterministic"
    assert not shared.reductions[0].tight
    assert "secrecy is given up" in (shared.reductions[0].remark or "")
    assert "several users" in " ".join(shared.assumptions)
    assert single.guarantee.epsilon < shared.guarantee.epsilon < shared.unamplified.epsilon
    # Known draws are never worse than the worst ones, and the lower end lies below both.
    assert shared.guarantee.epsilon_lower < single.guarantee.epsilon


def test_shared_records_have_the_same_bound_from_any_start() -> None:
    """Other users in the way make a user available more often at the start, not less."""
    cold, warm = (
        certified(json.dumps(document("shared", sampler=USERS | {"start": start}))).epsilon
        for start in ("cold", "warm")
    )
    assert cold == warm


@pytest.mark.parametrize("matrix", [{"kind": "blt", "buffers": 2}, {"kind": "banded-inverse", "bands": 3}])
def test_shared_records_with_columns_that_overlap(matrix: dict[str, Any]) -> None:
    """More than with a band's columns, less than the worst draws."""
    data = pyaccount.certify(document("shared", matrix=matrix)).data
    assert data.guarantee.kind == "deterministic"
    assert "Γ_i" in data.reductions[0].pair
    assert data.guarantee.epsilon_lower < data.guarantee.epsilon < data.unamplified.epsilon


def test_blocked_users_take_part_less_often() -> None:
    """Simulated: two users share one of two records each; the law of S of either lies below that of a user alone."""
    rng = np.random.default_rng(5)
    n, b, p, runs = 12, 3, 0.35, 40_000
    waiting = np.zeros((runs, 2), dtype=int)
    squares = np.zeros(runs)
    for _ in range(n):
        free = waiting == 0
        own = (rng.random((runs, 2)) < p) & free
        common = (rng.random(runs) < p) & free.all(axis=1)
        squares += (own[:, 0].astype(int) + common) ** 2
        joined = own | common[:, None]
        waiting = np.where(joined, b - 1, np.maximum(waiting - 1, 0))
    rows, weights = patterns(n, b, p, 2, warm=False)
    alone = (rows**2).sum(axis=1)
    for s in range(1, 17):
        assert (squares >= s).mean() <= weights[alone >= s].sum() + 4 * np.sqrt(0.25 / runs)


@pytest.mark.parametrize(
    "other",
    [
        {"training": {"sampling_probability": 0.01, "iterations": 5}, "sampler": {"kind": "poisson"}},
        {"training": {"iterations": 5}, "sampler": {"kind": "none"}},
        {"training": {"iterations": 5}, "sampler": {"kind": "none"}, "noise": {"kind": "laplace", "multiplier": 9}},
    ],
)
def test_phases_that_protect_records_do_not_count_as_protecting_users(
    other: dict[str, Any], snapshot: Snapshot
) -> None:
    """A user may have several records in the other phase; with one record counted the certificate would be wrong."""
    users = document("shared")
    body = {key: users.pop(key) for key in ("training", "sampler", "matrix", "noise")}
    for phases in ([body, {"noise": {"multiplier": 9.0}} | other], [{"noise": {"multiplier": 9.0}} | other, body]):
        snapshot.raised(pyaccount.compile, users | {"phases": phases})
    both = certified(json.dumps(users | {"phases": [body, body]}))
    assert both.data.privacy.unit == "user"


def test_certificates_state_no_rate_that_users_do_not_share() -> None:
    training = {"sampling_probability": 0.02, "iterations": 60, "dataset_size": 1000}
    phase = pyaccount.certify(document("shared", training=training)).data.phases[0]
    assert phase.sampling_probability == 0.02
    assert phase.participation_rate is None
    assert phase.expected_batch_size is None
    assert phase.distinct_records is None


def test_the_fallback_counts_every_record() -> None:
    """All records of a user at once, as often as the separation allows."""
    data = pyaccount.certify(document("single", matrix={"kind": "identity"})).data
    turns = 8  # ⌈60/8⌉
    mu = 2 * np.sqrt(turns) / 1.5
    epsilon = data.unamplified.epsilon
    delta = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert delta == pytest.approx(1e-3, rel=1e-4)


USERS = {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "shared", "min_separation": 8}
WRONG: list[Any] = [
    {"sampler": {"kind": "user-b-min-sep", "records_per_user": 2}},
    {"sampler": USERS | {"attribution": "some"}},
    {"sampler": USERS | {"waits_after": "participation"}},
    {"sampler": USERS | {"records_per_user": 0}},
    {"sampler": USERS | {"min_separation": 3}},
    {"training": {"participation_rate": 0.02, "iterations": 60}},
    {"training": {"iterations": 60, "dataset_size": 100, "expected_batch_size": 5}},
    {"privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-3}},
    {"privacy": {"adjacency": "zero-out", "group_size": 2, "epsilon": "solve", "delta": 1e-3}},
    {"training": {"sampling_probability": 0.02, "iterations": 1_000_000}},
    {"accounting": {"method": "monte-carlo"}},
]


@pytest.mark.parametrize("changes", WRONG)
def test_what_is_wrong_is_located(changes: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.compile(document("shared", **changes)))


def test_hundreds_of_records_stay_within_the_stated_error() -> None:
    k, p, sigma = 700, 0.45, 40.0
    delta, error, *_ = _core.Inspection.profile(
        _core.RoundProfile.public_participation([sigma**-2], 1, p, k, warm=False), 5.0
    )
    with mpmath.workdps(40):
        q = mpmath.mpf(p)
        exact = mpmath.mpf(0)
        for j in range(1, k + 1):
            shift = j / mpmath.mpf(sigma)
            tails = mpmath.ncdf(shift / 2 - 5 / shift), mpmath.ncdf(-shift / 2 - 5 / shift)
            exact += mpmath.binomial(k, j) * q**j * (1 - q) ** (k - j) * (tails[0] - mpmath.exp(5) * tails[1])
    assert abs(delta - exact) <= error <= 1e-10 * delta
