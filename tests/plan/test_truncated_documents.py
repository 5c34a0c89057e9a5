"""Truncated batches from document to certificate: rounds that compose, refusals, what a certificate says."""

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from plain_documents import doc
from sampled_tools import estimated
from scipy.optimize import brentq  # type: ignore[import-untyped]
from scipy.stats import binom, norm
from snapshots import Snapshot

import pyaccount
from pyaccount import _core
from pyaccount.execute.engine import Engine, Question
from pyaccount.execute.unamplified import unamplified_bounds
from pyaccount.plan.samplers.truncated import chernoff_tail


def document(**changes: Any) -> dict[str, Any]:
    """A small document with truncated batches; nested keys are replaced whole."""
    return (
        doc(
            "name=truncated epsilon=1.0 delta=solve dataset_size=200 expected_batch_size=10 iterations=12",
            "sampler=b-min-sep min_separation=4 truncate_to=12 matrix=banded-square-root bands=4 multiplier=1.0",
            "seed=5 profile=[1.0]",
        )
        | changes
    )


POISSON: dict[str, Any] = {"sampler": {"kind": "poisson", "truncate_to": 12}, "matrix": {"kind": "identity"}}


@cache
def mixtures(q: float, present: float, absent: float, sigma: float, epsilon: float) -> tuple[float, float]:
    """Both directions of (1 − q)N(0) + qN(present) against (1 − q)N(0) + qN(−absent): the ratio increases in y."""

    def mass(shift: float, y: float) -> tuple[float, float]:
        """Below y and above."""
        below = (1 - q) * norm.cdf(y / sigma) + q * norm.cdf((y - shift) / sigma)
        above = (1 - q) * norm.sf(y / sigma) + q * norm.sf((y - shift) / sigma)
        return float(below), float(above)

    def loss(y: float) -> float:
        logs = [
            np.logaddexp(np.log1p(-q), np.log(q) + (shift * y - 0.5 * shift * shift) / sigma**2)
            for shift in (present, -absent)
        ]
        return float(logs[0] - logs[1])

    found = []
    for direction, target in ((0, epsilon), (1, -epsilon)):
        low, high = -80.0 * sigma, 80.0 * sigma
        if not loss(low) < target < loss(high):
            found.append(0.0)
            continue
        y = brentq(lambda y: loss(y) - target, low, high, xtol=1e-13)  # noqa: B023 - called at once
        if direction == 0:
            found.append(mass(present, y)[1] - math.exp(epsilon) * mass(-absent, y)[1])
        else:
            found.append(mass(-absent, y)[0] - math.exp(epsilon) * mass(present, y)[0])
    return found[0], found[1]


@pytest.mark.parametrize("sigma", [0.6, 2.0])
@pytest.mark.parametrize(
    ("size", "limit", "p"), [(40, 3, 0.1), (40, 1, 0.02), (40, 45, 0.1), (300, 60, 0.2), (2, 1, 0.5)]
)
def test_a_round_of_poisson_is_the_sum_over_the_counts(size: int, limit: int, p: float, sigma: float) -> None:
    profiles = {
        reverse: _core.RoundProfile.truncated_poisson(size, limit, p, sigma, reverse=reverse)
        for reverse in (False, True)
    }
    for epsilon in (0.05, 0.3, 1.0):
        expected = np.zeros(2)
        for r in range(size):
            chance = binom.pmf(r, size - 1, p)
            share = limit / (r + 1)
            pair = (p, 1.0, 0.0) if r < limit else (p * share, 2.0, 1.0)
            expected += chance * np.array(mixtures(*pair, sigma, epsilon))
        for reverse, value in zip((False, True), expected, strict=True):
            profile = profiles[reverse]
            delta, error, slope, _ = _core.Inspection.profile(profile, epsilon)
            assert delta == pytest.approx(value, rel=1e-9, abs=1e-14)
            assert error < 1e-12
            step = 1e-5
            above, below = (_core.Inspection.profile(profile, epsilon + d)[0] for d in (-step, step))
            assert slope == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-9)


def test_blocks_of_counts_are_an_upper_bound_close_to_the_sum() -> None:
    size, limit, p, sigma, epsilon = 60_000, 560, 0.01, 1.0, 0.5
    expected = np.zeros(2)
    for r in range(330, 900):
        pair = (p, 1.0, 0.0) if r < limit else (p * limit / (r + 1), 2.0, 1.0)
        expected += binom.pmf(r, size - 1, p) * np.array(mixtures(*pair, sigma, epsilon))
    for reverse, value in zip((False, True), expected, strict=True):
        delta, _, _, _ = _core.Inspection.profile(
            _core.RoundProfile.truncated_poisson(size, limit, p, sigma, reverse=reverse), epsilon
        )
        assert value * (1.0 - 1e-12) <= delta <= value * 1.01


@pytest.mark.parametrize("limit", [4, 6])
def test_composed_rounds_agree_with_samples_of_the_whole_run(limit: int) -> None:
    """b-min-sep with b = 1 is Poisson sampling: the recursion's samples and the composition are of the same pair."""
    n, size, p, sigma, epsilon = 20, 50, 0.1, 1.2, 0.8
    rounds = [
        (_core.RoundProfile.truncated_poisson(size, limit, p, sigma, reverse=reverse), n) for reverse in (False, True)
    ]
    found = _core.answer_all([([one], epsilon, None, 1e-4) for one in rounds])
    mechanism = _core.Sampled.renewal([1.0 / sigma], n, 1, p, False).truncated(size, limit)
    for interval, direction, stretch in zip(found, ("remove", "add"), (1.0, 0.0), strict=True):
        mean, error, _ = estimated(mechanism, direction, p, stretch, epsilon, 1.0, 200)
        assert interval.lower - 5 * error <= mean <= interval.upper + 5 * error
        assert error < 0.02 * mean


def solved(raw: dict[str, Any]) -> Any:
    """Its certificate, made once for all tests."""
    return _solved(json.dumps(raw))


@cache
def _solved(raw: str) -> Any:
    return pyaccount.certify(json.loads(raw))


# The next test with a profile asks about the same run: only its other samples are drawn.
@pytest.mark.usefixtures("drawn_once")
@pytest.mark.parametrize("changes", [POISSON, {}], ids=["poisson", "b-min-sep"])
def test_a_limit_that_no_batch_reaches_changes_nothing(changes: dict[str, Any]) -> None:
    raw = document(**changes, accounting={"seed": 5, "profile": []})
    out_of_reach = raw | {"sampler": raw["sampler"] | {"truncate_to": 200}}
    without = raw | {"sampler": {key: value for key, value in raw["sampler"].items() if key != "truncate_to"}}
    first, second = solved(out_of_reach), solved(without)
    assert first.data.guarantee == second.data.guarantee
    assert first.data.reductions == second.data.reductions
    assert first.data.assumptions == second.data.assumptions
    just_below = solved(raw | {"sampler": raw["sampler"] | {"truncate_to": 199}})
    assert just_below.data.reductions != second.data.reductions
    # Truncation costs something, and hardly anything where it hardly happens.
    assert solved(raw).delta > 1.02 * second.delta
    assert just_below.delta == pytest.approx(second.delta, rel=0.3)


def test_poisson_is_certified_by_composition() -> None:
    certificate = solved(document(**POISSON))
    assert certificate.data.guarantee.kind == "deterministic"
    assert 0.0 < certificate.data.guarantee.delta_lower < certificate.delta
    (reduction,) = certificate.data.reductions
    assert reduction.tight is False
    assert "before truncation" in str(reduction.remark)
    assert any("padded" in text for text in certificate.data.assumptions)
    assert any("dataset" in text or "data set's size is public" in text for text in certificate.data.assumptions)
    assert certificate.data.phases[0].expected_batch_size == 10
    bare = solved(document(sampler={"kind": "poisson"}, matrix={"kind": "identity"}))
    assert certificate.delta > bare.delta
    # The lower end is that of data sets whose other records contribute nothing.
    assert certificate.data.guarantee.delta_lower <= bare.delta * (1.0 + 1e-3)
    sampled = solved(
        document(**POISSON, accounting={"seed": 5, "profile": [], "method": "monte-carlo", "tolerance": 0.2})
    )
    assert sampled.delta == pytest.approx(certificate.delta, rel=0.35)


@pytest.mark.parametrize(
    "sampler",
    [
        {"kind": "b-min-sep", "min_separation": 4, "truncate_to": 12},
        {"kind": "b-min-sep", "min_separation": 4, "start": "cold", "truncate_to": 12},
        {"kind": "balls-in-bins", "bins": 20, "truncate_to": 12},
    ],
    ids=["warm", "cold", "bins"],
)
@pytest.mark.nightly(but=["warm", "bins"])
@pytest.mark.usefixtures("drawn_once")
def test_sampled_certificates_are_above_those_without_truncation(sampler: dict[str, Any]) -> None:
    # As many rounds as there are bins.
    training = document()["training"] | ({"iterations": 20} if sampler["kind"] == "balls-in-bins" else {})
    # One start of b-min-sep has a profile, drawn like the other's.
    accounting = {"seed": 5, "profile": [] if sampler.get("start") == "cold" else [1.0]}
    certificate = solved(document(sampler=sampler, training=training, accounting=accounting))
    assert certificate.data.guarantee.kind == "confidence"
    tests = certificate.data.evidence.sampling.tests
    assert all(test.weight_bound == 1.0 for test in tests)
    texts = " ".join(certificate.data.assumptions)
    assert "12 are kept" in texts
    assert ("its turn comes" if sampler["kind"] == "balls-in-bins" else "sits out the same iterations") in texts
    assert "truncated with probability at most" in str(certificate.data.reductions[0].remark)
    bare = solved(
        document(
            sampler={key: value for key, value in sampler.items() if key != "truncate_to"},
            training=training,
            accounting=accounting,
        )
    )
    assert certificate.delta > bare.delta


def test_without_amplification_a_record_may_displace_another() -> None:
    """The fallback of a calibration: twice the sensitivity of the same run without truncation."""
    engine = Engine()
    found = {}
    for limit in (12, 200):
        raw = document(noise={"multiplier": 1.5 if limit == 200 else 3.0})
        raw["sampler"] = raw["sampler"] | {"truncate_to": limit}
        found[limit] = engine.ask(unamplified_bounds(pyaccount.compile(raw).at()), Question(1.0, None, 1e-6)).upper
    assert found[12] == pytest.approx(found[200], rel=1e-9)


@pytest.mark.parametrize(
    ("records", "rate", "count"), [(100, 0.1, 11), (100, 0.1, 40), (1000, 0.5, 520), (50, 0.3, 50), (9, 0.2, 10)]
)
def test_the_bound_on_truncation_is_a_bound(records: int, rate: float, count: int) -> None:
    exact = binom.sf(count - 1, records, rate)
    assert exact <= chernoff_tail(records, rate, count) * (1.0 + 1e-12)
    assert chernoff_tail(records, rate, count) <= 60.0 * exact
    assert chernoff_tail(100, 0.5, 40) == 1.0


USERS = {
    "kind": "user-b-min-sep",
    "records_per_user": 2,
    "attribution": "single",
    "min_separation": 4,
    "truncate_to": 12,
}
REFUSED: list[Any] = [
    {"privacy": {"adjacency": "add-remove", "epsilon": 1.0, "delta": "solve"}},
    {"privacy": {"adjacency": "replace-one", "epsilon": 1.0, "delta": "solve"}},
    {"privacy": {"adjacency": "zero-out", "group_size": 2, "epsilon": 1.0, "delta": "solve"}},
    POISSON | {"privacy": {"adjacency": "zero-out", "group_size": "solve", "epsilon": 1.0, "delta": 1e-3}},
    {"training": {"participation_rate": 0.05, "iterations": 24}},
    {"matrix": {"kind": "banded-inverse", "bands": 3}},
    {"sampler": {"kind": "cyclic-poisson", "partitions": 4, "truncate_to": 12}},
    {"sampler": {"kind": "cyclic-poisson", "partitions": 4, "phase": "random", "truncate_to": 12}},
    {"sampler": USERS, "training": {"dataset_size": 200, "sampling_probability": 0.05, "iterations": 24}},
    {"sampler": {"kind": "fixed-size", "truncate_to": 12}, "matrix": {"kind": "identity"}},
    {"sampler": {"kind": "none", "truncate_to": 12}},
    {"sampler": {"kind": "poisson", "truncate_to": 0}},
    {"sampler": {"kind": "poisson", "truncate_to": 1.5}},
]


@pytest.mark.parametrize("changes", REFUSED)
def test_what_is_refused_says_why(changes: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.compile(pyaccount.load(document(**changes))))


def test_one_shot_amplification_knows_no_truncation(snapshot: Snapshot) -> None:
    raw = {
        "pyaccount": 1,
        "kind": "amplification",
        "name": "one draw",
        "base": {"kind": "gaussian", "multiplier": 1, "epsilon": 1},
        "sampler": {"kind": "poisson", "truncate_to": 12},
        "sampling": {"dataset_size": 100, "sampling_probability": 0.1},
    }
    snapshot.raised(pyaccount.amplify, raw)


def test_users_and_random_phases_are_refused_by_the_core(snapshot: Snapshot) -> None:
    for mechanism in (_core.Sampled.users([1.0], 9, 3, 0.1, 2, True), _core.Sampled.phases([1.0], 9, 3, 0.1)):
        snapshot.raised(mechanism.truncated, 100, 12)
    for size, limit in ((0, 3), (10, 0), (1 << 60, 3)):
        with snapshot.raises(ValueError):
            _core.Sampled.renewal([1.0], 9, 3, 0.1, True).truncated(size, limit)


def test_phases_of_truncated_poisson_batches_compose() -> None:
    phase = {"training": document()["training"], **POISSON, "noise": document()["noise"]}
    head = {key: document()[key] for key in ("pyaccount", "name", "privacy", "accounting")}
    two = solved(head | {"phases": [phase, phase]})
    twice = solved(document(**POISSON, count=2))
    assert two.delta == twice.delta
