"""Matrices of runs without sampling, found for the σ that they need: no samples are drawn, and certificates compose."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from plain_documents import doc
from scipy import optimize, stats  # type: ignore[import-untyped]

import pyaccount
from pyaccount.errors import LimitError
from pyaccount.execute.optimal import search

EPSILON, DELTA, N, APART = 2.0, 1e-3, 10, 3


def document(bands: int = 4, **changes: Any) -> dict[str, Any]:
    return doc(
        "name=unsampled sampler=none max_participations=2 matrix=optimal-toeplitz optimize_for=sampling multiplier=solve",
        changes,
        epsilon=EPSILON,
        delta=DELTA,
        iterations=N,
        min_separation=APART,
        bands=bands,
    )


def gaussian_noise(sensitivity: float) -> float:
    """Return σ at which δ of a Gaussian mechanism is the target's, by its closed form."""

    def excess(log_sigma: float) -> float:
        mu = sensitivity / math.exp(log_sigma)
        ends = mu / 2.0 - EPSILON / mu, -mu / 2.0 - EPSILON / mu
        return float(stats.norm.cdf(ends[0]) - math.exp(EPSILON) * stats.norm.cdf(ends[1])) - DELTA

    return math.exp(optimize.brentq(excess, -3.0, 4.0, xtol=1e-12))


@pytest.fixture(scope="module")
def certificate() -> pyaccount.Certificate:
    return pyaccount.certify(document(), threads=1)


def test_the_certificate_is_that_of_the_matrix_stated(certificate: pyaccount.Certificate) -> None:
    data, found = certificate.data, certificate.data.evidence.searched
    assert found is not None
    assert data.guarantee.kind == "deterministic"
    assert data.evidence.sampling is None
    c = np.array(data.phases[0].matrix.coefficients)
    matrix = np.array([[c[i - j] if 0 <= i - j < len(c) else 0.0 for j in range(N)] for i in range(N)])
    pairs = [two for two in combinations(range(N), 2) if two[1] - two[0] >= APART]
    moved = max(float(np.linalg.norm(matrix[:, two].sum(axis=1))) for two in pairs)
    sigma = gaussian_noise(moved)
    assert certificate.noise_multiplier is not None
    assert sigma * (1.0 - 1e-12) <= certificate.noise_multiplier <= sigma * (1.0 + 1e-4)
    assert data.utility is not None
    mse = certificate.noise_multiplier**2 * float(
        np.square(np.tril(np.ones((N, N))) @ np.linalg.inv(matrix)).mean(axis=0).sum()
    )
    assert math.isclose(data.utility.prefix_sum_mse, mse, rel_tol=1e-6)
    assert found.prefix_sum_mse_estimate < 0.99 * found.start_prefix_sum_mse_estimate
    assert found.gradient_norm_estimate < 1e-6
    assert found.note is None
    for usual in ("column-norm", None):
        matrix_of = {"kind": "optimal-toeplitz", "bands": 4} if usual else {"kind": "banded-square-root", "bands": 4}
        utility = pyaccount.certify(document(matrix=matrix_of), threads=1).data.utility
        assert utility is not None
        assert utility.prefix_sum_mse > data.utility.prefix_sum_mse


def test_what_is_told_of_it_speaks_of_no_samples(certificate: pyaccount.Certificate) -> None:
    for text in (certificate.to_markdown(), certificate.to_html()):
        assert "optimised for the rounds that a record may take part in" in " ".join(text.split())
        assert "standard error" not in text


def test_it_is_verified_without_searching(certificate: pyaccount.Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyaccount.execute.optimal.optimise", lambda *_a, **_k: pytest.fail("nothing is optimised"))
    assert pyaccount.verify(certificate, threads=1).agrees


@pytest.mark.parametrize(
    "changes", [{"privacy": {"adjacency": "replace-one", "group_size": 2, "epsilon": 2, "delta": 1e-3}}, {"count": 3}]
)
def test_the_matrix_does_not_depend_on_what_only_scales_the_noise(
    certificate: pyaccount.Certificate, changes: dict[str, Any]
) -> None:
    other = pyaccount.certify(document(**changes), threads=1)
    assert other.data.phases[0].matrix.coefficients == certificate.data.phases[0].matrix.coefficients
    assert other.noise_multiplier > certificate.noise_multiplier  # type: ignore[operator]


def test_an_optimum_that_was_known_is_said_to_be_one() -> None:
    """No column is cut off, so the matrix of least error for its column norm has the least error here too."""
    sampler = {"kind": "none", "min_separation": 5}
    ours = pyaccount.certify(document(3, sampler=sampler), threads=1).data
    assert ours.evidence.searched is not None
    assert ours.evidence.searched.note == "no better matrix was found than those known without sampling"
    usual = pyaccount.certify(
        document(sampler=sampler, matrix={"kind": "optimal-toeplitz", "bands": 3}), threads=1
    ).data
    assert ours.solved is not None
    assert usual.solved is not None
    assert math.isclose(ours.solved.value, usual.solved.value, rel_tol=2e-4)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_fixed_parts_have_the_optimum_of_the_column_norm(adjacency: str) -> None:
    """No column is cut off, so no matrix near it has a smaller error at the σ for which it is certified."""
    parts = {
        "privacy": {"adjacency": adjacency, "epsilon": EPSILON, "delta": DELTA},
        "training": {"iterations": 20, "participation_rate": 0.05},
        "sampler": {"kind": "cyclic-poisson", "partitions": 4},
    }
    ours = pyaccount.certify(document(3, **parts), threads=1).data
    assert ours.evidence.searched is not None
    assert ours.evidence.searched.note == "no better matrix was found than those known without sampling"
    assert ours.utility is not None
    found = np.array(ours.phases[0].matrix.coefficients)
    for change in ([0, 0.05, 0], [0, -0.05, 0], [0, 0, 0.05], [0, 0, -0.05]):
        matrix = {"kind": "toeplitz", "coefficients": (found + change).tolist()}
        other = pyaccount.certify(document(matrix=matrix, **parts), threads=1).data.utility
        assert other is not None
        assert other.prefix_sum_mse > ours.utility.prefix_sum_mse


def test_a_search_that_has_not_converged_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "STATIONARY", 0.0)
    found = pyaccount.certify(document(), threads=1).data.evidence.searched
    assert found is not None
    assert found.note is not None
    assert "the gradient had not vanished" in found.note


def test_a_time_limit_stops_it() -> None:
    training, sampler = {"iterations": 3000}, {"kind": "none", "min_separation": 20}
    with pytest.raises(LimitError) as caught:
        pyaccount.certify(document(1000, training=training, sampler=sampler), time_limit=0.2, threads=1)
    assert "optimising the matrix" in caught.value.stage
