"""Buffered matrices optimised for balls in bins: derivatives against differences, optima, certificates."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from certificate_oracle import inconsistencies
from patterns import Array, exact_delta
from plain_documents import doc, sectioned
from scipy import optimize  # type: ignore[import-untyped]
from snapshots import Snapshot

import pyaccount
from pyaccount.execute.optimal import optimise
from pyaccount.execute.optimal.improvement import Judge
from pyaccount.execute.optimal.objective import LogError
from pyaccount.execute.optimal.parametrisation import LEAST, BufferedColumns
from pyaccount.execute.options import RunOptions
from pyaccount.plan.compiled import CompiledDocument
from pyaccount.plan.compiling import compile_document
from pyaccount.strategies.inverse import optimal_blt

N, BINS, DELTA = 12, 2, 1e-2


def document(buffers: int = 1, **changes: Any) -> dict[str, Any]:
    return doc(
        "name=buffers epsilon=1 sampler=balls-in-bins matrix=blt optimize_for=sampling multiplier=solve",
        "seed=20261123 profile=[] tolerance=0.2",
        changes,
        delta=DELTA,
        iterations=N,
        bins=BINS,
        buffers=buffers,
    )


def planned(raw: dict[str, Any]) -> CompiledDocument:
    return compile_document(pyaccount.load(raw))


def differences(function: Any, at: Array, h: float) -> Array:
    """Return central differences."""
    return np.array([(function(at + one) - function(at - one)) / (2.0 * h) for one in h * np.eye(len(at))])


def test_columns_have_unit_norm_and_the_chain_rule_holds() -> None:
    generator = np.random.default_rng(4)
    columns = BufferedColumns.of(np.array([0.3, 0.1]), np.array([0.5, 0.95]), 40)
    expected = np.array([1.0, *(0.3 * 0.5**i + 0.1 * 0.95**i for i in range(39))])
    assert np.allclose(columns.start, expected / np.linalg.norm(expected), rtol=1e-12)
    assert np.allclose(columns.at(columns.zero), columns.start, rtol=1e-12)
    a, weights = 0.1 * generator.standard_normal(4), generator.standard_normal(40)
    assert math.isclose(float(np.square(columns.at(a)).sum()), 1.0, rel_tol=1e-12)

    def function(where: Array) -> float:
        return float(np.sin(columns.at(where)) @ weights)

    found = columns.pulled(a, np.cos(columns.at(a)) * weights)
    assert np.allclose(found, differences(function, a, 1e-5), rtol=1e-6, atol=1e-9)
    assert np.allclose(columns.moved(a).start, columns.at(a), rtol=1e-12)


def test_no_step_leaves_the_stable_matrices() -> None:
    """Moved to the bounds repeatedly, scales stay positive and decays below 1."""
    for side in (0, 1):
        columns: Any = BufferedColumns.of(np.array([0.0, 20.0]), np.array([1.0, 0.0]), 10)
        for _ in range(80):
            columns = columns.moved(np.array([bound[side] for bound in columns.bounds]))
            assert (columns.scales >= LEAST * (1.0 - 1e-12)).all()
            assert ((columns.decays > 0.0) & (columns.decays < 1.0)).all()
            assert np.isfinite(columns.start).all()


def test_the_gradient_is_that_of_the_objective_with_the_same_samples() -> None:
    judge = Judge(planned(document(2)), RunOptions(threads=1, seed=7))
    columns = BufferedColumns.of(np.array([0.4, 0.2]), np.array([0.3, 0.8]), N)
    sigma = judge(columns).proposed.noise_multiplier
    samples = replace(judge.samples(columns, sigma), candidate=3, shards=2)
    objective = LogError(columns, judge.differentiable, samples, judge.target, judge.log_error(N), sigma, 1e-12)
    a = np.array([0.02, -0.03, 0.01, 0.02])
    expected = differences(lambda where: objective(where)[0], a, 1e-4)
    assert np.abs(expected).max() > 0.02, "the test says something"
    assert np.allclose(objective(a)[1], expected, rtol=1e-4, atol=1e-4)


def exact_error(scale: float, decay: float, near: float) -> float:
    """Return ln of the error at the σ found by quadrature in the plane of the modes."""
    c = np.array([1.0, *(scale * decay**i for i in range(N - 1))])
    c /= np.linalg.norm(c)
    matrix = np.array([[c[i - j] if i >= j else 0.0 for j in range(N)] for i in range(N)])
    modes = np.array([matrix[:, t::BINS].sum(axis=1) for t in range(BINS)])
    factor = np.linalg.cholesky(modes @ modes.T).T
    patterns = (np.eye(BINS), np.full(BINS, 1.0 / BINS))

    def excess(log_noise: float) -> float:
        return math.log(exact_delta(patterns, factor / math.exp(log_noise), "remove", 1.0) / DELTA)

    log_noise = optimize.newton(excess, near, x1=near + 0.1, tol=1e-4, rtol=0.0)
    return 2.0 * float(log_noise) + math.log(np.square(np.tril(np.ones((N, N))) @ np.linalg.inv(matrix)).sum() / N)


def test_the_optimum_is_that_of_quadrature() -> None:
    """The scale is that of a parabola through exact errors. The decay is the least allowed, and a larger one is worse.

    With two bins a larger second coefficient would cost twice.
    """
    plan = optimise(planned(document()), RunOptions(threads=1, seed=7))
    assert plan.searched is not None
    matrix = plan.document.to_mapping()["matrix"]
    (scale,), (decay,) = matrix["scales"], matrix["decays"]
    near = math.log(plan.searched.found.noise_multiplier)
    here = exact_error(scale, decay, near)
    ends = [exact_error(scale * math.exp(step), decay, near) for step in (-0.3, 0.3)]
    curvature, slope = (ends[0] + ends[1] - 2.0 * here) / 2.0, (ends[1] - ends[0]) / 2.0
    assert curvature > 2e-3, "the test says something"
    assert slope**2 / (4.0 * curvature) < 1e-3
    assert math.isclose(decay, 1e-3, rel_tol=1e-6)
    assert exact_error(scale, 0.1, near) > here + 1e-3
    # A parameter at its bound does not count as a slope: samples show that of the decay, 0.07.
    assert plan.searched.gradient_norm < 0.03
    scales, decays = optimal_blt(N, 1, BINS, N // BINS)
    assert exact_error(float(scales[0]), float(decays[0]), near) > here + 0.05


@pytest.fixture(scope="module")
def certificate() -> pyaccount.Certificate:
    return pyaccount.certify(document(2), threads=1)


def test_a_certificate_is_of_the_buffers_that_it_states(
    certificate: pyaccount.Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, found = certificate.data, certificate.data.evidence.searched
    assert found is not None
    assert found.prefix_sum_mse_estimate <= found.start_prefix_sum_mse_estimate
    buffers = data.phases[0].matrix.buffers
    assert buffers is not None
    assert data.phases[0].matrix.kind == "blt"
    assert inconsistencies(data) == []
    explicit = {"kind": "blt", "scales": buffers.scales, "decays": buffers.decays}
    same = pyaccount.certify(document(matrix=explicit), threads=1).data
    assert (same.guarantee, same.solved, same.utility) == (data.guarantee, data.solved, data.utility)
    monkeypatch.setattr("pyaccount.execute.optimal.optimise", lambda *_a, **_k: pytest.fail("nothing is optimised"))
    assert pyaccount.verify(certificate, threads=1).agrees
    changed = json.loads(certificate.to_json())
    changed["phases"][0]["matrix"]["buffers"]["scales"][0] *= 1.1
    assert inconsistencies(type(data).model_validate(changed))


WRONG: dict[str, Any] = {
    "both": {"matrix": {"kind": "blt", "scales": [0.5], "decays": [0.5], "optimize_for": "sampling"}},
    "not normalised": {"matrix": {"kind": "blt", "buffers": 1, "optimize_for": "sampling", "normalize": False}},
    "overlapping": sectioned(sampler="b-min-sep", min_separation=4, iterations=N, participation_rate=0.1),
    "fixed parts": sectioned(sampler="cyclic-poisson", partitions=4, iterations=N, participation_rate=0.1),
    "unsampled": {"sampler": {"kind": "none"}},
    "claim": {"noise": {"multiplier": 2}},
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_optimised_is_refused_at_its_place(name: str, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.compile(document(**WRONG[name])))
