"""Bounds of correlated noise, compared with quadratures over two rounds, and verdicts on certificates of it."""

from __future__ import annotations

import copy
import json
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

import pyaccount
from pyaccount.independent.correlated import Correlated, prove
from pyaccount.independent.polynomials import is_above
from pyaccount.independent.replicas import EqualColumns, MovedColumns, Renewals
from pyaccount.independent.rounds import GaussianRound, MixtureRound
from pyaccount.independent.separated import seldom
from pyaccount.independent.shapes import NotCheckableError
from pyaccount.independent.verdict import check, parsed

Weighted = list[tuple[float, list[float]]]


def two_rounds(p: float, b: int, columns: list[list[float]], sigma: float, *, warm: bool) -> Weighted:
    """Return the weights of all patterns of two rounds, with what they move in units of the noise."""
    start = {1: 1.0}
    if warm:
        start = {j: (1.0 if j == 1 else p) / (1 + (b - 1) * p) for j in range(1, b + 1)}
    found = []
    for first in (0, 1):
        for second in (0, 1):
            weight = sum(
                chance
                * step(first, free <= 1, p)
                * step(second, (free <= 2 and not first) or (bool(first) and b == 1), p)
                for free, chance in start.items()
            )
            moved = [
                first * columns[0][0],
                (first * columns[0][1] if len(columns[0]) > 1 else 0) + second * columns[1][0],
            ]
            found.append((weight, [each / sigma for each in moved]))
    return found


def step(joins: int, free: bool, p: float) -> float:
    return (p if joins else 1 - p) if free else float(not joins)


def deltas(patterns: Weighted, epsilon: float) -> tuple[float, float]:
    """Return δ if the record is removed, and added, by the trapezoidal rule."""
    far = 9 + 2 * max(max(moved) for _, moved in patterns)
    y = np.linspace(-far, far, 701)
    one, two = np.meshgrid(y, y, indexing="ij")
    ratio = sum(w * np.exp(a * one + c * two - (a * a + c * c) / 2) for w, (a, c) in patterns)
    density = np.exp(-(one**2 + two**2) / 2) / (2 * math.pi) * (y[1] - y[0]) ** 2
    growth = math.exp(epsilon)
    return float(np.sum(density * np.maximum(0, ratio - growth))), float(
        np.sum(density * np.maximum(0, 1 - growth * ratio))
    )


def test_two_rounds_have_a_law() -> None:
    patterns = two_rounds(0.3, 2, [[0.8, 0.6], [0.8, 0.6]], 1.0, warm=True)
    assert [weight for weight, _ in patterns] == pytest.approx([0.7 / 1.3, 0.3 / 1.3, 0.3 / 1.3, 0], rel=1e-12)
    assert deltas(patterns, 0.0)[0] == pytest.approx(deltas(patterns, 0.0)[1], rel=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_are_above_quadratures(seed: int) -> None:
    drawn = random.Random(seed)
    b, warm = drawn.choice([1, 2, 2, 3]), seed % 2 == 0
    p, sigma = Fraction(drawn.randint(1, 40), 100), Fraction(drawn.randint(6, 25), 10)
    listed = [[drawn.randint(1, 10) / 10 for _ in range(min(b, 2))] for _ in range(2)]
    toeplitz = seed % 3 > 0
    if toeplitz:
        listed[1] = listed[0]
    entries = [[Fraction(round(10 * each), 10) for each in column] for column in listed]
    columns = EqualColumns(entries[0], 1 / sigma**2, b) if toeplitz else MovedColumns(entries, 1 / sigma**2, b)
    run = Correlated(Renewals(2, b, p, warm=warm), columns, Fraction(0))
    patterns = two_rounds(float(p), b, listed, float(sigma), warm=warm)
    for epsilon in (0.3, 2.0):
        removed, added = deltas(patterns, epsilon)
        exact = max(removed, added)
        if exact < 1e-9:
            continue
        found = prove([(run, 1)], Fraction(epsilon), Fraction(exact * 1.01), 5.0, lambda line: None)
        assert found.delta >= exact * (1 - 1e-4)
        assert found.lower is None
        if found.epsilon is not None:
            # The ε that is proven at this δ has no larger δ.
            assert max(deltas(patterns, float(found.epsilon))) <= exact * 1.01 * (1 + 1e-4)


def test_a_tangent_is_below_the_loss_and_touches_it() -> None:
    law = Renewals(2, 2, Fraction(3, 10), warm=True)
    columns = EqualColumns([Fraction(4, 5), Fraction(3, 5)], Fraction(1), 2)
    run, patterns = Correlated(law, columns, Fraction(0)), two_rounds(0.3, 2, [[0.8, 0.6]] * 2, 1.0, warm=True)

    def loss(y: np.ndarray) -> float:
        return math.log(sum(w * math.exp(np.dot(x, y) - np.dot(x, x) / 2) for w, x in patterns))

    unit = 1 << 320
    along, theta = [unit // 2, unit // 3], Fraction(3, 2)
    tangent = run.tangent(along, theta)
    assert tangent is not None
    moved = np.array([[0.8, 0.0], [0.6, 0.8]])
    d = float(theta) * moved @ np.array([0.5, 1 / 3])
    g = moved @ np.array([each / unit for each in tangent.along])
    assert float(tangent.low) == pytest.approx(g @ g, rel=1e-12)
    assert tangent.low <= tangent.high <= tangent.low * (1 + Fraction(1, 10**60))
    assert loss(-d) == pytest.approx(float(tangent.rise) - g @ d, rel=1e-10)
    drawn = np.random.default_rng(5)
    for y in drawn.normal(0, 3, (200, 2)):
        assert loss(y) >= float(tangent.rise) + g @ y - 1e-12


@pytest.mark.parametrize(
    ("rounds", "b", "warm"), [(2, 2, True), (2, 3, True), (2, 5, True), (2, 1, True), (2, 2, False)]
)
def test_the_probability_of_never_taking_part(rounds: int, b: int, warm: bool) -> None:
    run = Correlated(
        Renewals(rounds, b, Fraction(3, 10), warm=warm), EqualColumns([Fraction(1)], Fraction(1), b), Fraction(0)
    )
    nobody = two_rounds(0.3, b, [[1.0], [1.0]], 1.0, warm=warm)[0][0]
    never = run.never()
    assert never is not None
    assert float(never) >= -math.log(nobody) - 1e-15
    if b <= rounds + 1:
        assert float(never) == pytest.approx(-math.log(nobody), rel=1e-12)
    assert Correlated(Renewals(rounds, 1, Fraction(1), warm=True), run.columns, Fraction(0)).never() is None


def test_independent_phases_multiply_their_moments() -> None:
    # One round without a matrix is Poisson sampling, which the lattice composes as well.
    p, square = Fraction(1, 10), Fraction(1, 4)
    single = Correlated(Renewals(1, 1, p, warm=False), EqualColumns([Fraction(1)], square, 1), Fraction(0))
    shift = GaussianRound(lambda bits: 1 << (bits - 1)).shift
    same = MixtureRound({1: p}, shift)
    rounds, epsilon, target = 20, Fraction(3), Fraction(1, 10**5)
    three = prove([(single, rounds)], epsilon, target, 20.0, lambda line: None)
    mixed = prove([(single, 12), (same, 8)], epsilon, target, 20.0, lambda line: None)
    truth = prove([(same, rounds)], epsilon, target, 4.0, lambda line: None)
    whole = prove(
        [(Correlated(Renewals(rounds, 1, p, warm=False), single.columns, Fraction(0)), 1)],
        epsilon,
        target,
        20.0,
        lambda line: None,
    )
    assert truth.delta <= whole.delta
    assert float(three.delta) == pytest.approx(float(whole.delta), rel=1e-9)
    assert float(mixed.delta) == pytest.approx(float(whole.delta), rel=1e-9)


def test_polynomials_are_proven_to_be_above() -> None:
    for m in range(2, 8):
        least = Fraction((m - 1) ** (m - 1), m**m)
        assert is_above([*[Fraction(0)] * m, least * Fraction(1001, 1000)])
        assert not is_above([*[Fraction(0)] * m, least * Fraction(999, 1000)])
    # Parabolas with a negative coefficient: 0.3x² − 1.1x + 1.02 has no root, 0.295x² − 1.1x + 1.02 has two.
    assert is_above([Fraction(2, 100), Fraction(-1, 10), Fraction(300, 1000)])
    assert not is_above([Fraction(2, 100), Fraction(-1, 10), Fraction(295, 1000)])
    assert not is_above([Fraction(0), Fraction(1), Fraction(0), Fraction(-1, 10**9)])
    assert not is_above([Fraction(-1, 10**9), Fraction(1)])
    assert is_above([Fraction(0), Fraction(1)])


@pytest.mark.parametrize(
    ("records", "rate", "most"),
    [(1000, Fraction(1, 50), 40), (10**7, Fraction(1, 10**4), 1200), (50, Fraction(1, 2), 50)],
)
def test_how_seldom_a_batch_is_truncated(records: int, rate: Fraction, most: int) -> None:
    assert float(seldom(3, records, rate, most)) == pytest.approx(
        3 * float(rate) * binom.sf(most - 1, records, float(rate)), rel=1e-7
    )


def test_batches_that_are_often_truncated_have_no_bound() -> None:
    assert seldom(3, 40, Fraction(1, 2), 41) == 0
    with pytest.raises(NotCheckableError, match="often truncated"):
        seldom(3, 100, Fraction(1, 2), 50)


DOCUMENT: dict[str, Any] = {
    "pyaccount": 1,
    "name": "correlated",
    "privacy": {"adjacency": "zero-out", "epsilon": 3, "delta": 1e-5},
    "training": {"participation_rate": 0.02, "iterations": 40},
    "sampler": {"kind": "b-min-sep", "min_separation": 3},
    "matrix": {"kind": "banded-square-root", "bands": 3},
    "noise": {"multiplier": 1},
}
NORMAL = math.sqrt(1 + 0.25 + 0.140625)
CLAIM: dict[str, Any] = {
    "document": DOCUMENT,
    "guarantee": {"epsilon": 3, "delta": 1e-5},
    "phases": [{"matrix": {"coefficients": [1 / NORMAL, 0.5 / NORMAL, 0.375 / NORMAL], "bands": 3}}],
}


def judged(certificate: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the verdict on a certificate with changes, each a path with __ between its keys."""
    data = copy.deepcopy(certificate)
    for path, value in changes.items():
        place: Any = data
        *keys, last = path.split("__")
        for key in keys:
            place = place[int(key) if key.isdigit() else key]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return check(parsed(json.dumps(data)), 5.0)


def test_a_claim_is_proven_by_a_moment() -> None:
    found = judged(CLAIM)
    assert found["verdict"] == "proven"
    assert found["proven"]["epsilon"] < 3
    # The order at which the claim is out of reach has the least ε.
    below = judged(CLAIM, guarantee__epsilon=0.5)
    assert below["verdict"] == "consistent"
    assert "proven to be at most" in below["reason"]
    least = below["proven"]["epsilon"]
    assert 0.5 < least < found["proven"]["epsilon"]
    assert judged(CLAIM, guarantee__epsilon=least * 1.0001)["verdict"] == "proven"
    assert judged(CLAIM, guarantee__epsilon=least * 0.99)["verdict"] == "consistent"


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("document__sampler__min_separation", 2, "bands than the separation"),
        ("document__training__participation_rate", 0.4, "rate above 1/3"),
        ("document__sampler__start", "lukewarm", "start 'lukewarm'"),
        ("document__sampler__truncate_to", 5, "dataset_size"),
        ("document__matrix__kind", "tree", "tree"),
    ],
)
def test_what_has_no_theorem_or_is_not_what_it_says_is_refused(path: str, value: object, reason: str) -> None:
    found = judged(CLAIM, **{path: value})
    assert found["verdict"] == "not checkable"
    assert reason in found["reason"]


@pytest.mark.parametrize("coefficients", [[0.8, 0.5, 0.3], [1.0, 0.0, 0.0], [0.5, 0.5], None])
def test_the_document_defines_the_matrix(coefficients: object) -> None:
    """Smaller coefficients in the certificate would make the claim smaller."""
    found, plain = judged(CLAIM, phases__0__matrix__coefficients=coefficients), judged(CLAIM)
    assert found["proven"] == plain["proven"]


def test_negative_coefficients_are_refused() -> None:
    first = [0.8, -0.6]
    matrix = {"kind": "toeplitz", "coefficients": first, "normalize": False}
    found = judged(CLAIM, document__matrix=matrix, phases__0__matrix={"coefficients": first})
    assert "coefficients -0.6" in found["reason"]
    positive = matrix | {"coefficients": [0.8, 0.6]}
    found = judged(CLAIM, document__matrix=positive, phases__0__matrix={"coefficients": [0.8, 0.6]})
    assert found["verdict"] == "proven"


def test_a_matrix_from_a_file_has_its_entries_in_the_certificate() -> None:
    rows = [[0.9], [0.4, 0.8]]
    exact = max(deltas(two_rounds(0.1, 2, [[0.9, 0.4], [0.8]], 0.7, warm=True), 1.5))
    data: dict[str, Any] = {
        "document": DOCUMENT
        | {
            "training": {"sampling_probability": 0.1, "iterations": 2},
            "sampler": {"kind": "b-min-sep", "min_separation": 2},
            "matrix": {"kind": "dense", "file": "matrix.npy", "normalize": False},
            "noise": {"multiplier": 0.7},
        },
        "guarantee": {"epsilon": 1.5, "delta": exact * 15},
        "phases": [{"matrix": {"coefficients": None, "entries": rows}}],
    }
    assert judged(data)["verdict"] == "proven"
    assert judged(data, guarantee__delta=exact * 0.95)["verdict"] == "consistent"
    assert "this matrix in 3 rounds" in judged(data, document__training__iterations=3)["reason"]
    assert "not normalised" in judged(data, document__matrix__normalize=True)["reason"]
    whole = [[0.9], [0.4, 0.8], [0.1, 0.0, 0.9]]
    longer = judged(data, document__training__iterations=3, phases__0__matrix__entries=whole)
    assert "more bands than the separation" in longer["reason"]


def two_round_claim(drawn: random.Random) -> dict[str, Any]:
    """Return a certificate of two rounds that claims what was proven of it."""
    first = [round(drawn.uniform(0.4, 1.0), 3), round(drawn.uniform(0.1, 0.9), 3)]
    data: dict[str, Any] = {
        "document": DOCUMENT
        | {
            "training": {"sampling_probability": round(drawn.uniform(0.05, 0.3), 3), "iterations": 2},
            "sampler": {"kind": "b-min-sep", "min_separation": 2, "start": drawn.choice(["warm", "cold"])},
            "matrix": {"kind": "toeplitz", "coefficients": first, "normalize": False},
            "noise": {"multiplier": round(drawn.uniform(0.5, 1.5), 3)},
        },
        "guarantee": {"epsilon": round(drawn.uniform(0.3, 3.0), 3), "delta": 1e-3},
        "phases": [{"matrix": {"coefficients": first}}],
    }
    return data


def test_false_claims_are_never_proven() -> None:
    drawn, false, proven = random.Random(11), 0, 0
    for _ in range(14):
        data = two_round_claim(drawn)
        document, first = data["document"], data["phases"][0]["matrix"]["coefficients"]
        p, sigma = document["training"]["sampling_probability"], document["noise"]["multiplier"]
        warm = document["sampler"]["start"] == "warm"
        exact = max(deltas(two_rounds(p, 2, [first] * 2, sigma, warm=warm), data["guarantee"]["epsilon"]))
        for factor in (0.5, 0.95, 2.0, 10.0):
            if exact * factor < 1e-12:
                continue
            found = judged(data, guarantee__delta=exact * factor)
            if factor < 1:
                false += 1
                assert found["verdict"] != "proven", (data, factor)
            proven += found["verdict"] == "proven"
    assert false > 20
    assert proven > 8


def test_a_certificate_by_a_polynomial_is_proven_and_false_ones_are_not() -> None:
    document = DOCUMENT | {
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-4},
        "accounting": {"method": "renyi", "seed": 3},
        "training": {"participation_rate": 0.05, "iterations": 8},
    }
    certificate: dict[str, Any] = json.loads(pyaccount.certify(document).to_json())
    moment = certificate["evidence"]["sampling"]["moment"]
    assert len(moment["polynomial"]["coefficients"]) > 3
    found = judged(certificate)
    assert found["verdict"] == "proven"
    assert found["proven"]["epsilon"] <= certificate["guarantee"]["epsilon"] * 1.001
    changes: list[tuple[str, Any]] = [
        ("guarantee__epsilon", certificate["guarantee"]["epsilon"] * 0.8),
        ("guarantee__delta", 5e-5),
        ("document__noise__multiplier", 0.8),
        ("document__training__participation_rate", 0.1),
        ("document__training__iterations", 16),
    ]
    for path, value in changes:
        assert judged(certificate, **{path: value})["verdict"] == "consistent", path
    # A polynomial that is not above (x − 1)₊ proves nothing.
    lower = [each * 0.9 for each in moment["polynomial"]["coefficients"]]
    assert judged(certificate, evidence__sampling__moment__polynomial__coefficients=lower)["verdict"] == "consistent"


TARGET = {"epsilon": "solve", "delta": 1e-5}
SAMPLERS: dict[str, tuple[dict[str, Any], float]] = {
    # What a record moves at most, squared, in units of the largest column norm.
    "bins": ({"sampler": {"kind": "balls-in-bins", "bins": 8}}, 5),
    "random parts": ({"sampler": {"kind": "cyclic-poisson", "partitions": 5, "phase": "random"}}, 8),
    "users": ({"sampler": {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "single"}}, 4 * 14),
    "replaced": (
        {"privacy": TARGET | {"adjacency": "replace-one"}, "sampler": {"kind": "b-min-sep", "min_separation": 4}},
        4 * 10,
    ),
    "groups": (
        {
            "privacy": TARGET | {"adjacency": "zero-out", "group_size": 3},
            "sampler": {"kind": "b-min-sep", "min_separation": 4},
        },
        9 * 10,
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_known_participations_are_a_gaussian_mechanism(name: str) -> None:
    sections, square = SAMPLERS[name]
    data = CLAIM | {"document": DOCUMENT | sections}
    s = math.sqrt(square)
    exact = norm.cdf(s / 2 - 30 / s) - math.exp(30) * norm.cdf(-s / 2 - 30 / s)
    rate = {} if name == "bins" else {"sampling_probability": 0.02}
    change = {"document__training": {"iterations": 40} | rate, "guarantee__epsilon": 30}
    assert judged(data, **change, guarantee__delta=exact * 1.01)["verdict"] == "proven"
    # It is no lower bound, so that smaller claims are not refuted.
    assert judged(data, **change, guarantee__delta=exact * 0.5)["verdict"] == "consistent"
    sampler = data["document"]["sampler"] | {"truncate_to": 9}
    assert judged(data, **change, document__sampler=sampler)["verdict"] == "not checkable"
