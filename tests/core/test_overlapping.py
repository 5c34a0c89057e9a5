"""b-min-sep sampling with columns that overlap: the bounds on the likelihood ratio, by enumeration of all patterns."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from plain_documents import doc, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount import _core

N = 7
COEFFICIENTS = [1.0, 0.6, 0.45, 0.5, 0.3, 0.2, 0.25]
SCALES, DECAYS = [0.3, 0.2], [0.9, 0.5]

Matrix = NDArray[np.float64]


def toeplitz(column: list[float]) -> Matrix:
    n = len(column)
    return np.array([[column[k - i] if k >= i else 0.0 for i in range(n)] for k in range(n)])


def blt(first: float) -> list[float]:
    terms = ([w * t**i for w, t in zip(SCALES, DECAYS, strict=True)] for i in range(N - 1))
    return [first] + [first * sum(term) for term in terms]


def matrices(b: int) -> dict[str, tuple[Matrix, _core.Columns]]:
    rng = np.random.default_rng(5)
    dense = np.tril(rng.uniform(0.0, 1.0, (N, N)))
    entries = np.concatenate([dense[i:, i] for i in range(N)]).tolist()
    return {
        "toeplitz": (toeplitz(COEFFICIENTS), _core.Columns.toeplitz(COEFFICIENTS, b)),
        "blt": (toeplitz(blt(1.5)), _core.Columns.buffers(1.5, SCALES, DECAYS, N, b)),
        "dense": (dense, _core.Columns.dense(entries, N, b)),
    }


def patterns(b: int, p: float, k: int, *, warm: bool) -> list[tuple[float, Matrix]]:
    """Return every vector of participations with its probability, by following the rounds."""
    found: list[tuple[float, Matrix]] = []

    def walk(i: int, probability: float, x: tuple[int, ...]) -> None:
        if i >= N:
            found.append((probability, np.array(x[:N], dtype=float)))
            return
        for j in range(k + 1):
            chance = math.comb(k, j) * p**j * (1 - p) ** (k - j)
            if j == 0:
                walk(i + 1, probability * chance, (*x, 0))
            else:
                walk(i + b, probability * chance, (*x, j, *([0] * (b - 1))))

    joins = 1 - (1 - p) ** k
    walk(0, 1.0 / (1 + (b - 1) * joins) if warm else 1.0, ())
    if warm:
        for wait in range(1, b):
            walk(wait, joins / (1 + (b - 1) * joins), (0,) * wait)
    return found


def charges(matrix: Matrix, b: int) -> Matrix:
    """Return Γ_i by trying every set of rounds at least b apart."""
    gram = matrix.T @ matrix
    most = np.zeros(N)
    for size in range(1, N + 1):
        for rounds in itertools.combinations(range(N), size):
            if all(later - earlier >= b for earlier, later in itertools.pairwise(rounds)):
                for i in rounds:
                    most[i] = max(most[i], sum(gram[i, j] for j in rounds if j != i))
    return most


@pytest.mark.parametrize("kind", ["toeplitz", "blt", "dense"])
@pytest.mark.parametrize(("b", "k", "warm"), [(2, 1, False), (2, 1, True), (3, 2, True), (1, 1, False), (N, 2, True)])
def test_both_recursions_by_enumeration(kind: str, b: int, k: int, warm: bool) -> None:
    """f↑ and f↓ are the sums over patterns that define them, and enclose the likelihood ratio."""
    p, sigma = 0.3, 0.8
    matrix, columns = matrices(b)[kind]
    above, below = (_core.Sampled.overlapping(columns, sigma, p, k, warm, side) for side in (False, True))
    squares, crossing = (matrix**2).sum(axis=0) / sigma**2, charges(matrix, b) / sigma**2
    assert columns.gap == pytest.approx(
        0.5 * sigma**2 * max(((x > 0) * crossing).sum() for _, x in patterns(b, p, k, warm=warm)), abs=1e-12
    )
    rng = np.random.default_rng(1)
    outcomes = rng.normal(0.0, 1.5, (30, N)) + rng.uniform(-1.0, 2.0, (30, 1))
    found = {
        (side, direction): _core.Inspection.log_densities(mechanism, outcomes.tolist(), direction)
        for side, mechanism in (("above", above), ("below", below))
        for direction in ("remove", "add", "replace")
    }
    for t, y in enumerate(outcomes):
        # Sums with the exact norm, without any cross term, and with the bound on all cross terms.
        exact, high, low, mirrored = 0.0, 0.0, 0.0, 0.0
        for w, x in patterns(b, p, k, warm=warm):
            mean = matrix @ x / sigma
            exact += w * math.exp(mean @ y - 0.5 * mean @ mean)
            high += w * math.exp(mean @ y - 0.5 * (x**2) @ squares)
            low += w * math.exp(mean @ y - 0.5 * (x**2) @ (squares + crossing))
            mirrored += w * math.exp(-mean @ y - 0.5 * (x**2) @ (squares + crossing))
        assert low <= exact * (1 + 1e-12) <= high * (1 + 1e-11)
        assert found["above", "remove"][t][0] == pytest.approx(math.log(high), abs=1e-10)
        assert found["above", "add"][t][0] == pytest.approx(math.log(low), abs=1e-10)
        assert found["above", "replace"][t] == pytest.approx((math.log(high), math.log(mirrored)), abs=1e-10)
        assert found["below", "remove"][t][0] == pytest.approx(math.log(low), abs=1e-10)
        assert found["below", "add"][t][0] == pytest.approx(math.log(high), abs=1e-10)
        if b == N:
            assert found["above", "add"][t][0] == pytest.approx(math.log(exact), abs=1e-10)


@pytest.mark.parametrize(("n", "bands"), [(300, 300), (300, 64)])
def test_long_runs_agree_with_plain_sums(n: int, bands: int) -> None:
    """Transforms, buffers and rows entry by entry are one and the same mechanism."""
    coefficients = [0.0] * n
    coefficients[0] = 0.7
    for i in range(1, bands):
        coefficients[i] = 0.7 * (0.4 * 0.95 ** (i - 1) + 0.1 * 0.2 ** (i - 1))
    b = 40
    matrix = np.array([[coefficients[k - i] if k >= i else 0.0 for i in range(n)] for k in range(n)])
    forms = {
        "toeplitz": _core.Columns.toeplitz(coefficients, b),
        "dense": _core.Columns.dense(np.concatenate([matrix[i:, i] for i in range(n)]).tolist(), n, b),
    }
    if bands == n:
        forms["blt"] = _core.Columns.buffers(0.7, [0.4, 0.1], [0.95, 0.2], n, b)
    outcomes = np.random.default_rng(2).normal(0.3, 1.0, (9, n)).tolist()
    for direction in ("remove", "add"):
        values = [
            [
                d[0]
                for d in _core.Inspection.log_densities(
                    _core.Sampled.overlapping(columns, 1.1, 0.02, 1, True, False), outcomes, direction
                )
            ]
            for columns in forms.values()
        ]
        for other in values[1:]:
            assert other == pytest.approx(values[0], abs=1e-10)
    if bands == 64:
        # If the separation is larger than the bands, nothing overlaps, and the recursion is the exact one.
        columns = _core.Columns.toeplitz(coefficients, 64)
        assert columns.gap == 0.0
        wide = _core.Sampled.overlapping(columns, 1.1, 0.02, 1, True, False)
        banded = _core.Sampled.renewal([c / 1.1 for c in coefficients[:64]], n, 64, 0.02, True)
        for direction in ("remove", "add"):
            ours = [d[0] for d in _core.Inspection.log_densities(wide, outcomes, direction)]
            assert ours == pytest.approx([d[0] for d in _core.Inspection.log_densities(banded, outcomes)], abs=1e-10)


def simulate(
    mechanism: _core.Sampled, direction: str, proposal: tuple[float, float], bets: list[tuple[float, float]], cap: float
) -> tuple[float, float]:
    """Return the mean of V and its standard error."""
    shards, _ = mechanism.simulate(
        direction,
        *proposal,
        [(0.5, cap, bets)],
        edges=None,
        key=(11, 1, 1, 0),
        first=0,
        count=64,
        threads=0,
        time_limit=None,
    )
    total = sum(shard[0][1] for shard in shards)
    square = sum(shard[0][2] for shard in shards)
    mean = total / (64 * 1024)
    return mean, math.sqrt((square / (64 * 1024) - mean * mean) / (64 * 1024))


@pytest.mark.parametrize("direction", ["remove", "add", "replace"])
def test_samples_mean_what_they_should(direction: str) -> None:
    """Plain samples agree with sums over all patterns, other proposals with them; bounded samples enclose δ."""
    b, p, sigma, epsilon = 2, 0.2, 1.2, 0.5
    matrix, columns = matrices(b)["toeplitz"]
    above, below = (_core.Sampled.overlapping(columns, sigma, p, 1, False, side) for side in (False, True))
    squares, crossing = (matrix**2).sum(axis=0) / sigma**2, charges(matrix, b) / sigma**2
    law = patterns(b, p, 1, warm=False)
    weights = np.array([w for w, _ in law])
    points = np.array([x for _, x in law])
    means = points @ matrix.T / sigma
    norms = (means**2).sum(axis=1)
    rng = np.random.default_rng(4)
    size = 200_000
    noise = rng.normal(size=(size, N))
    y = noise if direction == "add" else noise + means[rng.choice(len(law), size, p=weights / weights.sum())]
    inner = y @ means.T

    def ratio(norm: Matrix, sign: float = 1.0) -> Matrix:
        return np.asarray(np.exp(sign * inner - 0.5 * norm) @ weights)

    least, most = points**2 @ squares, points**2 @ (squares + crossing)
    if direction == "remove":
        losses = [np.log(ratio(n)) for n in (norms, least, most)]
    elif direction == "add":
        losses = [-np.log(ratio(n)) for n in (norms, most, least)]
    else:
        pairs = ((norms, norms), (least, most), (most, least))
        losses = [np.log(ratio(n)) - np.log(ratio(m, -1.0)) for n, m in pairs]
    values = [np.maximum(0.0, -np.expm1(epsilon - loss)) for loss in losses]
    exact, high, low = (float(v.mean()) for v in values)
    noise_of_mean = [float(v.std()) / math.sqrt(size) for v in values]
    assert low < exact < high
    plain = (p, 0.0 if direction == "add" else 1.0)
    mean, error = simulate(above, direction, plain, [], 1.0)
    assert abs(mean - high) < 5 * math.hypot(error, noise_of_mean[1])
    mean, error = simulate(below, direction, plain, [], 1.0)
    assert abs(mean - low) < 5 * math.hypot(error, noise_of_mean[2])
    for proposal in ((0.35, -0.5), (0.1, -0.2)) if direction == "add" else ((0.35, 1.4), (0.2, 1.2)):
        mean, error = simulate(above, direction, proposal, [], math.inf)
        assert abs(mean - high) < 5 * math.hypot(error, noise_of_mean[1])
        cap, generator, _ = above.bounds(direction, *proposal, epsilon)
        assert math.isfinite(cap)
        assert generator < 1e-9
        # With a bet, V is bounded, and its mean is an upper bound.
        mean, error = simulate(above, direction, proposal, [(0.1, 1e-3)], cap)
        assert mean + 5 * error > exact
        mean, error = simulate(below, direction, proposal, [(0.1, -1e-3)], math.inf)
        assert 0.0 <= mean - 5 * error < exact


@pytest.mark.parametrize("direction", ["remove", "add", "replace"])
def test_no_sample_exceeds_its_cap(direction: str) -> None:
    """V is computed at random and at hostile outcomes, from log densities that an enumeration gives."""
    b, p, sigma = 2, 0.2, 0.9
    rng = np.random.default_rng(9)
    for kind in ("toeplitz", "dense"):
        matrix, columns = matrices(b)[kind]
        mechanism = _core.Sampled.overlapping(columns, sigma, p, 1, False, False)
        squares, crossing = (matrix**2).sum(axis=0) / sigma**2, charges(matrix, b) / sigma**2
        law = patterns(b, p, 1, warm=False)
        points = np.array([x for _, x in law])
        means = points @ matrix.T / sigma
        least, most = points**2 @ squares, points**2 @ (squares + crossing)
        weights = np.array([w for w, _ in law])
        for parameter, stretch in ((0.3, 1.5), (0.2, 2.5), (0.6, 1.1)):
            kappa = 1.0 - stretch if direction == "add" else stretch
            other = np.array([w for w, _ in patterns(b, parameter, 1, warm=False)])
            for epsilon in (0.2, 2.0):
                cap = mechanism.bounds(direction, parameter, kappa, epsilon)[0]
                y = rng.normal(0.0, 3.0, (4000, N)) + rng.uniform(-4.0, 4.0) * means[rng.choice(len(law), 4000)]
                inner = y @ means.T
                high = np.exp(inner - 0.5 * least) @ weights
                low = np.exp(inner - 0.5 * most) @ weights
                mirrored = np.exp(-inner - 0.5 * most) @ weights
                density = np.exp(kappa * inner - 0.5 * kappa**2 * most) @ other
                value = {
                    "remove": high - math.exp(epsilon),
                    "add": 1.0 - math.exp(epsilon) * low,
                    "replace": high - math.exp(epsilon) * mirrored,
                }[direction]
                assert (np.maximum(value, 0.0) / density).max() <= cap


def document(**changes: Any) -> dict[str, Any]:
    return (
        doc(
            "name=overlapping epsilon=2.0 delta=1e-3 participation_rate=0.02 iterations=64 sampler=b-min-sep",
            "min_separation=16 matrix=blt buffers=2 multiplier=solve seed=3 tolerance=0.05 profile=[1.0,2.0]",
        )
        | changes
    )


@pytest.mark.parametrize("matrix", ["blt", "banded-inverse", "dense"])
def test_certificates_say_what_the_enclosure_gives_up(matrix: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"blt": {"buffers": 2}, "banded-inverse": {"bands": 4}, "dense": {"file": "c.npy"}}[matrix]
    # The loose bounds make tests of the banded inverse long; a larger δ and half the rounds make them short.
    long = matrix == "banded-inverse"
    changes: dict[str, Any] = {"privacy": {"adjacency": "zero-out", "epsilon": 2.0, "delta": 1e-2 if long else 1e-3}}
    if long:
        changes |= {"training": {"participation_rate": 0.04, "iterations": 32}}
        changes |= {"sampler": {"kind": "b-min-sep", "min_separation": 8}}
    square_root = np.cumprod([1.0, *((2 * j - 1) / (2 * j) for j in range(1, 64))]).tolist()
    np.save(
        tmp_path / "c.npy", np.array([[square_root[k - i] if k >= i else 0.0 for i in range(64)] for k in range(64)])
    )
    (tmp_path / "document.yaml").write_text(yaml.safe_dump(document(matrix={"kind": matrix, **given}, **changes)))
    certificate = pyaccount.certify(tmp_path / "document.yaml")
    data = certificate.data
    assert data.guarantee.kind == "verified"
    assert 0.0 < data.guarantee.epsilon_lower < 2.0
    assert data.guarantee.delta_lower < data.guarantee.delta
    (reduction,) = data.reductions
    assert not reduction.tight
    assert "enclosed" in (reduction.remark or "")
    # The samples that certify use a loss that is never too small: δ at the certified σ is computed from exact ratios.
    assert data.unamplified.epsilon is not None
    assert data.unamplified.epsilon > 2.0


def test_users_whose_columns_overlap() -> None:
    sampler = {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "single", "min_separation": 16}
    # Two records for each user, each with half the probability, so that a user takes part as often as one record would.
    changes: dict[str, Any] = sectioned(sampling_probability=0.01, iterations=64, seed=3, tolerance=0.05, profile=[])
    users = pyaccount.certify(document(sampler=sampler, **changes)).data
    assert users.privacy.unit == "user"
    single = {**sampler, "records_per_user": 1}
    one = pyaccount.certify(document(sampler=single, **changes)).data
    record = pyaccount.certify(document(sampler={"kind": "b-min-sep", "min_separation": 16}, **changes)).data
    assert one.noise_multiplier == record.noise_multiplier
    assert users.noise_multiplier is not None
    assert record.noise_multiplier is not None
    assert users.noise_multiplier > record.noise_multiplier


def test_what_no_enclosure_covers(snapshot: Snapshot) -> None:
    sampler = {"kind": "cyclic-poisson", "partitions": 16, "phase": "random"}
    snapshot.raised(
        pyaccount.compile, document(sampler=sampler, training={"sampling_probability": 0.02, "iterations": 64})
    )


@pytest.mark.parametrize("kind", ["toeplitz", "blt", "dense"])
@pytest.mark.parametrize("direction", ["remove", "add", "replace"])
def test_every_instruction_set_gives_the_same_bits(kind: str, direction: str) -> None:
    mechanism = _core.Sampled.overlapping(matrices(2)[kind][1], 0.9, 0.2, 2, True, False)
    proposal = (0.4, -0.3 if direction == "add" else 1.3)
    results = [
        _core.Inspection.probe(mechanism, direction, *proposal, key=(5, 2, 3, 0), shard=1, instruction_set=name)
        for name in ("AVX-512", "AVX2", "portable")
    ]
    found = [result for result in results if result is not None]
    assert found
    assert all(result == found[0] for result in found)
