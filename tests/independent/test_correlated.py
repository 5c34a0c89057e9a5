"""Bounds of correlated noise, compared with quadratures over two rounds, and verdicts on certificates of it."""

import json
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from normal_forms import form, judged, spaced, verdict_of
from scipy.stats import binom, norm

import pyaccount
from pyaccount.independent import search
from pyaccount.independent.draws import binomial, truncated
from pyaccount.independent.lattice import NotCheckableError
from pyaccount.independent.moments import Correlated, MovedColumns, Renewals

Weighted = list[tuple[float, list[float]]]


def equal(first: list[Fraction], square: Fraction, apart: int) -> MovedColumns:
    return MovedColumns(first, square, apart, Fraction(0))


def prove(parts: list[tuple[Any, int]], epsilon: Fraction, target: Fraction, seconds: float) -> Any:
    return search.prove(parts, epsilon, target, seconds)


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
    listed = [[drawn.randint(1, 10) / 10 for _ in range(min(b, 2))]] * 2
    columns = equal([Fraction(round(10 * each), 10) for each in listed[0]], 1 / sigma**2, b)
    run = Correlated(Renewals(2, b, p, warm=warm), columns)
    patterns = two_rounds(float(p), b, listed, float(sigma), warm=warm)
    for epsilon in (0.3, 2.0):
        removed, added = deltas(patterns, epsilon)
        exact = max(removed, added)
        if exact < 1e-9:
            continue
        found = prove([(run, 1)], Fraction(epsilon), Fraction(exact * 1.01), 5.0)
        assert found.delta >= exact * (1 - 1e-4)
        assert found.lower is None
        if found.epsilon is not None:
            # The ε that is proven at this δ has no larger δ.
            assert max(deltas(patterns, float(found.epsilon))) <= exact * 1.01 * (1 + 1e-4)


@pytest.mark.parametrize(
    ("rounds", "b", "warm"), [(2, 2, True), (2, 3, True), (2, 5, True), (2, 1, True), (2, 2, False)]
)
def test_the_probability_of_never_taking_part(rounds: int, b: int, warm: bool) -> None:
    law = Renewals(rounds, b, Fraction(3, 10), warm=warm)
    nobody = two_rounds(0.3, b, [[1.0], [1.0]], 1.0, warm=warm)[0][0]
    exact = Fraction(-math.log(nobody))
    assert not law.may_be_absent(exact * Fraction(999_999, 10**6))
    if not warm or b == 1:
        assert law.may_be_absent(exact * Fraction(1_000_001, 10**6))
    # Somebody who is waiting is absent from more rounds than are counted.
    assert law.may_be_absent(Fraction(-rounds * math.log(0.7)) * Fraction(1_000_001, 10**6))
    assert not Renewals(rounds, 1, Fraction(1), warm=True).may_be_absent(Fraction(1000))


@pytest.mark.parametrize(
    ("others", "rate", "size"),
    [(1000, Fraction(1, 50), 40), (10**7, Fraction(1, 10**4), 1200), (50, Fraction(1, 2), 50)],
)
def test_batches_are_seldom_full(others: int, rate: Fraction, size: int) -> None:
    found, lost = binomial(others, rate, Fraction(1, 2**200), size)
    assert float(sum(found.values())) == pytest.approx(binom.sf(size - 1, others, float(rate)), rel=1e-7)
    assert float(found[size]) == pytest.approx(binom.pmf(size, others, float(rate)), rel=1e-7)
    assert lost <= Fraction(1, 2**200)


def test_batches_that_are_often_truncated_have_no_bound() -> None:
    assert binomial(40, Fraction(1, 2), Fraction(0), 41) == ({}, 0)
    with pytest.raises(NotCheckableError, match="often truncated"):
        truncated(Fraction(1, 2), 101, 50, Fraction(1))


ROOT = {"bands": "3", "kind": "banded-square-root", "normalised": "yes"}
#: The rate 0.02 of records that wait for two rounds.
CLAIM = spaced(40, 3, "0.0208333333333333333", ROOT, "1")


def test_a_claim_is_proven_by_a_moment() -> None:
    text = form(CLAIM, "zero-out")
    found = judged(text, 3, 1e-5)
    assert (found["verdict"], found["failure_probability"]) == ("proven", 0.0)
    assert found["proven"]["epsilon"] < 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"sampler": {"kind": "spaced", "probability": "0.02", "separation": "2", "start": "warm"}},
            "bands than the sep",
        ),
        ({"sampler": {"kind": "spaced", "probability": "0.02", "separation": "3", "start": "lukewarm"}}, "lukewarm"),
        ({"matrix": {"every": "40", "kind": "tree", "normalised": "yes"}}, "tree"),
        ({"matrix": {"column": ["0.8", "-0.6"], "kind": "toeplitz", "normalised": "no"}}, "negative"),
        ({"matrix": {"kind": "dense", "normalised": "no", "sha256": "0" * 64}}, "beside"),
    ],
    ids=["bands", "start", "tree", "negative", "dense"],
)
def test_what_has_no_theorem_is_refused(change: dict[str, Any], reason: str) -> None:
    found = judged(form(CLAIM | change, "zero-out"), 3, 1e-5)
    assert found["verdict"] == "not checkable"
    assert reason in found["reason"]


def test_false_claims_are_never_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, false, proven = random.Random(11), 0, 0
    # Without samples, which would only take longer.
    monkeypatch.setattr("pyaccount.independent.samples.tested", lambda *_: [])
    for _ in range(14):
        first = [round(drawn.uniform(0.4, 1.0), 3), round(drawn.uniform(0.1, 0.9), 3)]
        p, sigma = round(drawn.uniform(0.05, 0.3), 3), round(drawn.uniform(0.5, 1.5), 3)
        start, epsilon = drawn.choice(["warm", "cold"]), round(drawn.uniform(0.3, 3.0), 3)
        matrix = {"column": [str(each) for each in first], "kind": "toeplitz", "normalised": "no"}
        text = form(spaced(2, 2, str(p), matrix, str(sigma), start=start), "zero-out")
        exact = max(deltas(two_rounds(p, 2, [first] * 2, sigma, warm=start == "warm"), epsilon))
        for factor in (0.5, 0.95, 2.0, 10.0):
            if exact * factor < 1e-12:
                continue
            found = judged(text, epsilon, exact * factor)
            if factor < 1:
                false += 1
                assert found["verdict"] != "proven", (text, factor)
            proven += found["verdict"] == "proven"
    assert false > 20
    assert proven > 8


def test_a_certificate_by_a_polynomial_is_proven_by_samples_and_false_ones_are_not() -> None:
    document = {
        "pyaccount": 1,
        "name": "correlated",
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-4},
        "training": {"participation_rate": 0.05, "iterations": 8},
        "sampler": {"kind": "b-min-sep", "min_separation": 3},
        "matrix": {"kind": "banded-square-root", "bands": 3},
        "noise": {"multiplier": 1},
        "accounting": {"method": "renyi", "seed": 3},
    }
    certificate: dict[str, Any] = json.loads(pyaccount.certify(document).to_json())
    assert certificate["evidence"]["sampling"]["moment"]["polynomial"] is not None
    found = verdict_of(certificate)
    assert (found["verdict"], found["failure_probability"]) == ("proven", 1e-10)
    certificate["guarantee"]["epsilon"] = certificate["guarantee"]["epsilon_lower"] * 0.97
    assert verdict_of(certificate, 2.0)["verdict"] != "proven"


PATTERNS: dict[str, tuple[dict[str, Any], str, int, float]] = {
    # What a record moves at most, squared, in units of the largest column norm.
    "bins": ({"bins": "8", "kind": "bins"}, "zero-out", 1, 5),
    "random parts": ({"kind": "cyclic", "parts": "5", "phase": "random", "probability": "0.1"}, "zero-out", 1, 8),
    "users": (
        {"attribution": "single", "kind": "users", "probability": "0.02", "records": "2", "separation": "3", "start": "warm"},
        "zero-out", 1, 4 * 14,
    ),
    "replaced": ({"kind": "spaced", "probability": "0.02", "separation": "4", "start": "warm"}, "replace-one", 1, 4 * 10),
    "groups": ({"kind": "spaced", "probability": "0.02", "separation": "4", "start": "warm"}, "zero-out", 3, 9 * 10),
}  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
def test_known_participations_are_a_gaussian_mechanism(name: str) -> None:
    sampler, adjacency, group, square = PATTERNS[name]
    text, s = form(CLAIM | {"sampler": sampler}, adjacency, group), math.sqrt(square)
    exact = norm.cdf(s / 2 - 30 / s) - math.exp(30) * norm.cdf(-s / 2 - 30 / s)
    assert judged(text, 30, exact * 1.01)["verdict"] == "proven"
    if name != "bins":
        # It is no lower bound, so that smaller claims are not refuted.
        assert judged(text, 30, exact * 0.5)["verdict"] == "consistent"
