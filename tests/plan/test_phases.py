"""Cyclic Poisson sampling with a random secret phase: enumeration, identities with its neighbours, and documents."""

import itertools
from typing import Any

import numpy as np
import pytest
from log_sums import logsumexp
from plain_documents import doc
from sampled_tools import Array, estimated, lower_toeplitz
from snapshots import Snapshot

import pyaccount
from pyaccount import _core
from pyaccount.errors import DocumentError


def patterns(n: int, b: int, p: float) -> tuple[Array, Array]:
    """Every phase, and every subset of its rounds."""
    rows, weights = [], []
    for phase in range(b):
        rounds = range(phase, n, b)
        for taken in itertools.product([0, 1], repeat=len(rounds)):
            row = np.zeros(n)
            row[list(rounds)] = taken
            rows.append(row)
            weights.append(float(np.prod([p if one else 1.0 - p for one in taken])) / b)
    kept = np.asarray(weights) > 0
    return np.array(rows)[kept], np.asarray(weights)[kept]


@pytest.mark.parametrize(
    ("n", "b", "bands", "p"),
    [
        (1, 1, 1, 0.3),
        (6, 1, 1, 0.2),
        (8, 2, 2, 1.0),
        (9, 3, 3, 0.25),
        (10, 4, 2, 0.6),
        (11, 5, 5, 0.9),
        (12, 12, 7, 0.1),
    ],
)
@pytest.mark.parametrize("sigma", [0.3, 1.0, 6.0])
def test_densities_are_the_sum_over_all_patterns(n: int, b: int, bands: int, p: float, sigma: float) -> None:
    rows, weights = patterns(n, b, p)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    rng = np.random.default_rng(n + b)
    column = np.sort(rng.uniform(0.1, 1.0, bands))[::-1]
    means = rows @ lower_toeplitz(column, n).T / sigma
    far = 12.0 * rng.normal(size=(3, n))
    y = np.concatenate(
        [means[rng.choice(len(weights), 6, p=weights)] + rng.normal(size=(6, n)), rng.normal(size=(4, n)), far]
    )
    found = np.array(
        _core.Inspection.log_densities(_core.Sampled.phases((column / sigma).tolist(), n, b, p), y.tolist())
    )
    for sign, computed in zip((1.0, -1.0), found.T, strict=True):
        exponents = sign * y @ means.T - 0.5 * (means**2).sum(axis=1) + np.log(weights)
        np.testing.assert_allclose(computed, logsumexp(exponents, axis=1), rtol=0, atol=1e-10)


def test_long_runs_leave_the_linear_domain_and_come_back() -> None:
    """At small noise the phases' products differ by hundreds of orders of magnitude."""
    n, b, p, sigma = 200, 4, 0.5, 0.05
    rng = np.random.default_rng(1)
    y = (rng.integers(0, 2, size=(3, n)) / sigma + rng.normal(size=(3, n))).tolist()
    found = _core.Inspection.log_densities(_core.Sampled.phases([1.0 / sigma], n, b, p), y)
    for outcome, (mixture, _) in zip(np.asarray(y), found, strict=True):
        steps = np.logaddexp(np.log(1 - p), np.log(p) + outcome / sigma - 0.5 / sigma**2)
        expected = logsumexp([steps[phase::b].sum() for phase in range(b)]) - np.log(b)
        assert mixture == pytest.approx(expected, rel=1e-12)


def test_certain_participation_is_balls_in_bins() -> None:
    n, bins = 24, 6
    column = np.array([0.8, 0.5, 0.3])
    modes = np.array([lower_toeplitz(column, n)[:, t::bins].sum(axis=1) for t in range(bins)])
    gram = (modes @ modes.T).ravel().tolist()
    y = np.random.default_rng(2).normal(size=(5, n))
    phases = np.array(_core.Inspection.log_densities(_core.Sampled.phases(column.tolist(), n, bins, 1.0), y.tolist()))
    balls = np.array(_core.Inspection.log_densities(_core.Sampled.bins(gram, n), (y @ modes.T).tolist()))
    np.testing.assert_allclose(phases, balls, atol=1e-10)


def document(sampler: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return (
        doc(
            "name=phases delta=1e-3 participation_rate=0.05 iterations=60 matrix=banded-square-root bands=4",
            "multiplier=1.0 seed=7 profile=[0.5,1.0] tolerance=0.02",
            sampler=sampler,
        )
        | changes
    )


def test_one_part_is_poisson_sampling() -> None:
    changes: dict[str, Any] = {"matrix": {"kind": "identity"}}
    sampled = pyaccount.certify(document({"kind": "cyclic-poisson", "partitions": 1, "phase": "random"}, **changes))
    composed = pyaccount.certify(document({"kind": "poisson"}, **changes))
    assert sampled.data.guarantee.kind == "confidence"
    assert sampled.epsilon_lower <= composed.epsilon
    assert composed.epsilon_lower <= sampled.epsilon <= 1.05 * composed.epsilon


@pytest.mark.nightly(but=["zero-out"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_a_secret_phase_amplifies(adjacency: str) -> None:
    privacy = {"adjacency": adjacency, "epsilon": "solve", "delta": 1e-3}
    fixed = pyaccount.certify(document({"kind": "cyclic-poisson", "partitions": 10}, privacy=privacy))
    secret = pyaccount.certify(
        document({"kind": "cyclic-poisson", "partitions": 10, "phase": "random"}, privacy=privacy)
    )
    assert secret.epsilon < fixed.epsilon_lower
    assert any("not used for another run" in text for text in secret.data.assumptions)
    assert "secret parts" in secret.data.reductions[0].subject


def test_proposals_agree_with_plain_samples() -> None:
    """Importance samples from far away, drawn for the guarantee, estimate what plain ones do; both directions."""
    mechanism = _core.Sampled.phases([0.9, 0.4], 30, 5, 0.3)
    for direction, plain, stretched in (("remove", 1.0, 1.8), ("add", 0.0, -0.8), ("replace", 1.0, 1.4)):
        found = []
        for stretch, parameter in ((plain, 0.3), (stretched, 0.4)):
            cap, _, _ = mechanism.bounds(direction, parameter, stretch, 1.0)
            mean, spread, _ = estimated(mechanism, direction, parameter, stretch, 1.0, cap, 64)
            found.append((mean, spread, cap))
        (first, error, _), (second, other, cap) = found
        assert np.isfinite(cap)
        assert abs(first - second) < 4.5 * np.hypot(error, other)
        assert 0.0 < second <= cap


def test_what_is_wrong_is_located(snapshot: Snapshot) -> None:
    with snapshot.raises(DocumentError):
        pyaccount.compile(
            document(
                {"kind": "cyclic-poisson", "partitions": 10, "phase": "random"}, matrix={"kind": "blt", "buffers": 2}
            )
        )
    snapshot.raised(pyaccount.compile, document({"kind": "cyclic-poisson", "partitions": 10, "phase": "secret"}))
    with snapshot.raises(DocumentError):
        pyaccount.compile(
            document({"kind": "cyclic-poisson", "partitions": 10, "phase": "random"}, accounting={"method": "pld"})
        )
    snapshot.raised(_core.Sampled.phases, [1.0], 3, 5, 0.5)
