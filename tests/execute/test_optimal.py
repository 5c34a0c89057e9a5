"""Matrices optimised for sampling: derivatives against differences, optima against quadrature, certificates."""

import functools
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gate_tools import rehashed
from patterns import Array, Patterns, exact_delta, renewal_patterns
from plain_documents import doc, sectioned
from scipy import optimize  # type: ignore[import-untyped]
from snapshots import Snapshot

import pyaccount
from pyaccount import cli
from pyaccount.errors import LimitError
from pyaccount.execute.choose import choose
from pyaccount.execute.optimal import improvement, optimise, search
from pyaccount.execute.optimal.improvement import CLOSE, PATIENCE, SHARDS, Improvement, Judge, Slope
from pyaccount.execute.optimal.objective import LogError
from pyaccount.execute.optimal.parametrisation import family_around, positive
from pyaccount.execute.options import RunOptions
from pyaccount.plan.compiled import CompiledDocument
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.matrices.base import workload_of
from pyaccount.strategies.toeplitz import optimal_toeplitz

HEAD: dict[str, Any] = doc(
    name="optimised", epsilon=1, delta=1e-2, multiplier="solve", seed=20261123, profile=[], tolerance=0.2
)
SAMPLERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "warm": ({"kind": "b-min-sep"}, {"participation_rate": 0.1}),
    "cold": ({"kind": "b-min-sep", "start": "cold", "min_separation": 5}, {"participation_rate": 0.1}),
    "users": (
        {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "single"},
        {"sampling_probability": 0.08},
    ),
    "phases": ({"kind": "cyclic-poisson", "partitions": 4, "phase": "random"}, {"participation_rate": 0.1}),
    "bins": ({"kind": "balls-in-bins", "bins": 5}, {}),
}


def document(name: str, bands: Any = 4, iterations: int = 16, **changes: Any) -> dict[str, Any]:
    sampler, training = SAMPLERS[name]
    matrix = {"kind": "optimal-toeplitz", "bands": bands, "optimize_for": "sampling"}
    return HEAD | {"sampler": sampler, "training": training | {"iterations": iterations}, "matrix": matrix} | changes


def planned(raw: dict[str, Any]) -> CompiledDocument:
    return compile_document(pyaccount.load(raw))


def searched(raw: dict[str, Any], threads: int = 1) -> CompiledDocument:
    return optimise(planned(raw), RunOptions(threads=threads, seed=7))


def column(plan: CompiledDocument) -> Array:
    return np.array(plan.document.to_mapping()["matrix"]["coefficients"])


def differences(function: Any, at: Array, h: float) -> Array:
    """Return central differences."""
    return np.array([(function(at + one) - function(at - one)) / (2.0 * h) for one in h * np.eye(len(at))])


@pytest.mark.parametrize("bands", [2, 5, 15, 16, 64])
def test_columns_have_unit_norm_and_the_chain_rule_holds(bands: int) -> None:
    generator = np.random.default_rng(bands)
    start = generator.random(bands) + 0.1
    columns = family_around(start)
    size = len(columns.zero)
    assert np.allclose(columns.at(np.zeros(size)), start / np.sqrt(start @ start), rtol=1e-14)
    # No parameter is redundant: each changes the column in a direction of its own.
    moves = differences(columns.at, np.zeros(size), 1e-5)
    assert np.linalg.matrix_rank(moves, tol=1e-5) == size == (bands - 1 if bands < 16 else 8)
    a, weights = 0.05 * generator.standard_normal(size), generator.standard_normal(bands)
    assert math.isclose(float(np.square(columns.at(a)).sum()), 1.0, rel_tol=1e-12)

    def function(where: Array) -> float:
        return float(np.sin(columns.at(where)) @ weights)

    c = columns.at(a)
    found = columns.pulled(a, np.cos(c) * weights)
    assert np.allclose(found, differences(function, a, 1e-5), rtol=1e-6, atol=1e-9)


def test_what_is_next_to_nothing_is_raised() -> None:
    raised = positive(np.array([3.0, 0.0, 4.0]))
    assert np.allclose(raised, [0.6, 1.8e-9 / 3.0, 0.8], rtol=1e-8)


def objective_of(name: str, close: float, **changes: Any) -> LogError:
    """Return the family around a column that is not optimal, so that no derivative is close to 0."""
    plan = planned(document(name, **changes))
    judge = Judge(plan, RunOptions(threads=1, seed=7))
    judged = judge(family_around(np.array([1.0, 0.6, 0.2, 0.3])))
    sigma = judged.proposed.noise_multiplier
    samples = replace(judge.samples(judged.columns, sigma), candidate=3, shards=2)
    squares = judge.log_error(len(judged.columns.start))
    return LogError(judged.columns, judge.differentiable, samples, judge.target, squares, sigma, close)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_gradient_is_that_of_the_objective_with_the_same_samples(name: str) -> None:
    """σ(c) is exact to its last digits: differences test the implicit function theorem, the derivatives and the chain rule."""
    objective = objective_of(name, 1e-12)
    a = np.array([0.02, -0.03, 0.01])
    expected = differences(lambda where: objective(where)[0], a, 1e-4)
    assert np.abs(expected).max() > 0.05, "the test says something"
    # Samples cross the boundary where a loss is ε as σ moves, so the second derivative jumps there.
    assert np.allclose(objective(a)[1], expected, rtol=1e-4, atol=1e-4)
    # The error in σ after the last linear step is far below a gain that is worth a round.
    assert math.isclose(objective_of(name, CLOSE)(a)[0], objective(a)[0], abs_tol=1e-4)


def test_the_objective_is_that_of_the_workload() -> None:
    """The σ is the same, and the error is that of the optimizer: averages of iterates under momentum and rates."""
    rates = np.linspace(2.0, 0.1, 16)
    said = {"momentum": 0.5, "ema_decay": 0.8, "learning_rates": rates.tolist()}
    objective, usual = (objective_of("bins", 1e-12, **one) for one in ({"workload": said}, {}))
    a = np.array([0.02, -0.03, 0.01])
    momentum, average = (np.tril(decay ** np.subtract.outer(range(16), range(16))) for decay in (0.5, 0.8))
    weights = 0.2 * average @ np.tril(np.ones((16, 16))) @ np.diag(rates) @ momentum
    c = objective.columns.at(a)
    matrix = sum(np.diag(np.full(16 - k, value), -k) for k, value in enumerate(c))
    expected = (
        usual(a)[0] - math.log(mean_error(c, 16)) + math.log(np.square(weights @ np.linalg.inv(matrix)).sum() / 16)
    )
    assert math.isclose(objective(a)[0], expected, rel_tol=1e-9)
    slopes = differences(lambda where: objective(where)[0], a, 1e-4)
    assert np.allclose(objective(a)[1], slopes, rtol=1e-4, atol=1e-4)


def mean_error(c: Array, n: int, rates: Any = 1.0) -> float:
    """Return (1/n)‖AC⁻¹‖_F² by linear algebra, A the lower triangle of ones, its columns times the learning rates."""
    matrix = np.array([[c[i - j] if 0 <= i - j < len(c) else 0.0 for j in range(n)] for i in range(n)])
    return float(np.square((np.tril(np.ones((n, n))) * rates) @ np.linalg.inv(matrix)).sum() / n)


def bins_delta(c: Array, n: int, bins: int, sigma: float, epsilon: float) -> float:
    """Return δ by quadrature in the plane of two modes, for a removed record, where it is larger here."""
    modes = np.zeros((bins, n))
    for i in range(n):
        for j in range(min(len(c), n - i)):
            modes[i % bins, i + j] += c[j]
    matrix = np.linalg.cholesky(modes @ modes.T).T / sigma
    patterns: Patterns = (np.eye(bins), np.full(bins, 1.0 / bins))
    return exact_delta(patterns, matrix, "remove", epsilon)


def rounds_delta(c: Array, sigma: float, epsilon: float) -> float:
    """Return δ of two rounds of b-min-sep sampling, by quadrature, for a removed record as above."""
    matrix = np.array([[c[0], 0.0], [c[1], c[0]]]) / sigma
    patterns = renewal_patterns(2, 2, 0.3, warm=False)
    return exact_delta(patterns, matrix, "remove", epsilon)


RATES = [1.0, 3.0]
CASES: dict[str, tuple[dict[str, Any], int, Any]] = {
    "bins": (
        {"sampler": {"kind": "balls-in-bins", "bins": 2}, "training": {"iterations": 12}},
        12,
        lambda c, sigma: bins_delta(c, 12, 2, sigma, 1.0),
    ),
    "rounds": (
        sectioned(sampler="b-min-sep", start="cold", sampling_probability=0.3, iterations=2),
        2,
        lambda c, sigma: rounds_delta(c, sigma, 1.0),
    ),
}
CASES["rates"] = ({**CASES["rounds"][0], "workload": {"learning_rates": RATES}}, *CASES["rounds"][1:])


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_that_of_quadrature(name: str) -> None:
    """The same minimum of σ²·(1/n)‖AC⁻¹‖_F² is found without samples, derivatives or the parametrisation."""
    changes, n, delta = CASES[name]
    raw = document("warm", 2, n) | changes
    plan = searched(raw)
    assert plan.searched is not None
    near = math.log(plan.searched.found.noise_multiplier)

    def exact_error(ratio: float) -> float:
        c = np.array([1.0, ratio]) / math.hypot(1.0, ratio)
        # ln δ is nearly linear in ln σ, so that few values suffice to find the root.
        log_noise = optimize.newton(
            lambda x: math.log(delta(c, math.exp(x)) / 1e-2), near, x1=near + 0.1, tol=1e-4, rtol=0.0
        )
        return 2.0 * log_noise + math.log(mean_error(c, n, RATES if "workload" in changes else 1.0))

    c = column(plan)
    found = c[1] / c[0]
    # Fit a parabola in the ratio, and take its minimum.
    ratios = found + np.array([-0.15, 0.0, 0.15])
    errors = np.array([exact_error(one) for one in ratios])
    curvature, slope, _ = np.polyfit(ratios - found, errors, 2)
    assert curvature > 0.1, "the test says something"
    assert slope**2 / (4.0 * curvature) < 2e-3
    start = optimal_toeplitz(n, 2, workload_of(pyaccount.load(raw).run))
    assert exact_error(start[1] / start[0]) > errors[1] - 1e-4


@functools.cache
def optimum(name: str) -> CompiledDocument:
    return searched(document(name))


@pytest.mark.nightly(but=["bins"])
@pytest.mark.parametrize("name", ["warm", "bins"])
def test_the_result_does_not_depend_on_threads(name: str) -> None:
    plan, other = optimum(name), searched(document(name), threads=3)
    assert column(plan).tolist() == column(other).tolist()
    assert plan.searched == other.searched


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_result_is_never_worse(name: str) -> None:
    plan = optimum(name)
    assert plan.searched is not None
    assert plan.searched.found.prefix_sum_mse <= plan.searched.start.prefix_sum_mse
    # The gradient vanishes within its error by samples that the search had not seen, and so does the exact one.
    assert plan.searched.gradient_norm < min(3.0 * plan.searched.gradient_error, 0.05)
    assert plan.searched.note is None
    assert len(column(plan)) == 4


def test_what_samples_propose_in_error_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends after rounds that keep none of the gain they promise, although each doubled the samples."""
    drawn = []

    def overfitted(objective: LogError) -> tuple[float, Array, float]:
        drawn.append(objective.samples.shards)
        far = np.full(len(objective.columns.zero), 2.0)
        return 1.0, far, objective.noise(far)

    monkeypatch.setattr(improvement, "_improved", overfitted)
    plan = searched(document("warm"))
    assert plan.searched is not None
    assert plan.searched.found == plan.searched.start
    assert plan.searched.rounds == PATIENCE
    assert drawn == [SHARDS * 2**k for k in range(PATIENCE)]
    # The note says that samples still show a gradient there.
    assert plan.searched.note == (
        "no better matrix was found than those known without sampling, although samples tell the gradient there from 0"
    )
    assert plan.searched.gradient_norm > 3.0 * plan.searched.gradient_error


def test_a_weak_round_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """One round that finds nothing is followed by another, which then gains."""
    honest, seen = improvement._improved, []

    def once_weak(objective: LogError) -> tuple[float, Array, float]:
        seen.append(objective)
        zero = objective.columns.zero
        return (1.0, zero, objective.noise(zero)) if len(seen) == 1 else honest(objective)

    monkeypatch.setattr(improvement, "_improved", once_weak)
    plan = planned(document("warm"))
    judge = Judge(plan, RunOptions(threads=1, seed=7))
    judged = judge(family_around(np.array([1.0, 0.6, 0.2, 0.3])))
    way = Improvement(judge, judged.columns, judged.proposed.noise_multiplier)
    way.step()
    assert abs(way.gain) < 1e-4
    assert not way.ended
    assert math.isclose(way.slope.norm, way.first.norm, rel_tol=0.01)
    way.step()
    assert way.gain > 0.01
    assert not way.ended
    assert way.slope.norm < way.first.norm


def test_the_error_of_a_gradient_is_that_of_sets_of_samples() -> None:
    """For known sets: the mean of their rows, and its root mean square error."""
    generator = np.random.default_rng(5)
    columns = family_around(np.array([1.0, 0.5, 0.25, 0.0]))
    rows = generator.normal([3.0, -4.0, 5.0], [1.0, 2.0, 1.0], (4000, 3))
    found = improvement._slope(columns, rows)
    # The last coefficient is at its lower bound, and a larger one is worse: that does not count as a slope.
    assert math.isclose(found.norm, 5.0, rel_tol=0.05)
    assert math.isclose(found.error, math.sqrt(5.0 / 4000), rel_tol=0.05)
    assert not found.flat
    assert Slope(2.9, 1.0).flat


def test_a_search_that_has_not_settled_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "ROUNDS", 1)
    plan = searched(document("bins"))
    assert plan.searched is not None
    assert plan.searched.note is not None
    assert "was ended after 1 rounds" in plan.searched.note
    # The best matrix found is taken all the same, and its gradient is reported.
    assert plan.searched.found.squared_error < plan.searched.start.squared_error
    assert plan.searched.gradient_norm > 0.0


def test_a_certificate_tells_of_a_search_that_has_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "ROUNDS", 1)
    certificate = pyaccount.certify(document("bins"), threads=1)
    found = certificate.data.evidence.searched
    assert found is not None
    assert certificate.holds
    for text in (certificate.to_markdown(), certificate.to_html()):
        assert f"{found.gradient_norm_estimate:.2g}" in text
        assert "was ended after 1 rounds, while the last one still gained" in text


def test_a_gradient_that_is_left_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(improvement, "STATIONARY", 0.0)
    plan = searched(document("bins"))
    assert plan.searched is not None
    assert plan.searched.note == "the search ended where samples still tell the gradient from 0"


def test_one_band_leaves_nothing_to_search() -> None:
    plan = searched(document("warm", 1))
    assert plan.searched is None
    assert column(plan).tolist() == [1.0]


def test_bands_are_chosen_with_their_matrices() -> None:
    asked = planned(document("bins", {"choose": [2, 4]}))
    plan = choose(asked, RunOptions(threads=1, seed=7))
    assert plan.searched is not None
    assert [one.bands for one in plan.considered] == [2, 4]
    assert plan.searched.found.prefix_sum_mse == min(one.prefix_sum_mse for one in plan.considered)
    assert plan.asked == pyaccount.load(document("bins", {"choose": [2, 4]}))


def test_time_limits_stop_the_search() -> None:
    with pytest.raises(LimitError) as caught:
        pyaccount.certify(
            document("warm", 64, 2000, training={"participation_rate": 0.01, "iterations": 2000}), time_limit=0.5
        )
    assert caught.value.slug == "limit"


@pytest.fixture(scope="module")
def certificate() -> pyaccount.Certificate:
    return pyaccount.certify(document("bins"), threads=1)


def test_a_certificate_is_of_the_matrix_that_it_states(certificate: pyaccount.Certificate) -> None:
    data, found = certificate.data, certificate.data.evidence.searched
    assert found is not None
    assert data.phases[0].matrix.kind == "optimal-toeplitz"
    assert data.document["matrix"]["optimize_for"] == "sampling"
    assert found.prefix_sum_mse_estimate < found.start_prefix_sum_mse_estimate
    for text in (certificate.to_markdown(), certificate.to_html()):
        assert f"{found.start_prefix_sum_mse_estimate:.4g}" in text
    # A document with these coefficients has the same certificate: the search does not affect it.
    explicit = {"kind": "toeplitz", "coefficients": data.phases[0].matrix.coefficients, "normalize": False}
    same = pyaccount.certify(document("bins", matrix=explicit), threads=1).data
    assert (same.guarantee, same.solved, same.utility) == (data.guarantee, data.solved, data.utility)
    assert same.evidence.sampling == data.evidence.sampling
    assert same.evidence.searched is None
    assert json.loads(same.model_dump_json())["evidence"]["searched"] is None


def test_it_is_verified_without_searching(certificate: pyaccount.Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyaccount.execute.optimal.optimise", lambda *_a, **_k: pytest.fail("nothing is optimised"))
    found = pyaccount.verify(certificate, threads=1)
    assert found.agrees
    assert any("the search for its matrix is not repeated" in note for note in found.notes)
    assert pyaccount.verify(certificate, threads=1, seed=5).agrees


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("phases", 0, "matrix", "coefficients", 1), 0.7),
        (("evidence", "searched", "prefix_sum_mse_estimate"), 1.0),
        (("evidence", "searched"), None),
        (("document", "matrix", "optimize_for"), "column-norm"),
    ],
)
def test_what_is_changed_afterwards_is_seen(
    certificate: pyaccount.Certificate, path: Any, value: Any, tmp_path: Any
) -> None:
    raw = json.loads(certificate.to_json())
    place = raw
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(rehashed(raw)), encoding="utf-8")
    assert not pyaccount.verify(file, threads=1).agrees


@pytest.mark.nightly
def test_a_matrix_that_begins_far_from_its_optimum_gets_there() -> None:
    """With as many bands as bins and a small ε, σ falls to a third, farther than first samples allow in one step."""
    raw = document("bins", 48, 96, sampler={"kind": "balls-in-bins", "bins": 48})
    raw |= {"privacy": {"adjacency": "zero-out", "epsilon": 0.25, "delta": 1e-5}}
    found = searched(raw).searched
    assert found is not None
    # Narrower matrices are limits of wide ones, and the narrowest is certified without samples.
    identity = pyaccount.certify(raw | {"matrix": {"kind": "identity"}}, threads=1).data
    assert identity.guarantee.kind == "deterministic"
    assert identity.utility is not None
    assert found.start.prefix_sum_mse > 1.5 * identity.utility.prefix_sum_mse
    assert found.found.prefix_sum_mse < 0.95 * identity.utility.prefix_sum_mse
    assert found.found.noise_multiplier < 0.5 * found.start.noise_multiplier


def test_a_plan_says_that_the_matrix_is_still_to_be_found(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "document.yaml"
    path.write_text(json.dumps(document("bins")), encoding="utf-8")
    assert cli.run(["plan", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "optimised for sampling first" in " ".join(printed.split())
    assert "candidates are compared" not in printed


OTHERS: dict[str, Any] = {
    "shared": sectioned(
        sampler="user-b-min-sep", records_per_user=2, attribution="shared", sampling_probability=0.08, iterations=16
    ),
    "replaced": {"privacy": {"adjacency": "replace-one", "epsilon": 1, "delta": 1e-2}},
    "several runs": {"count": 2},
    "no blank": {"noise": {"multiplier": 1}},
    "epsilon": {"noise": {"multiplier": 1}, "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-2}},
    "risk": {"privacy": {"adjacency": "zero-out", "risk": {"advantage": 0.2}}},
    "explicit": {"matrix": {"kind": "toeplitz", "coefficients": [1, 0.5], "optimize_for": "sampling"}},
    "delta": {"noise": {"multiplier": 1}, "privacy": {"adjacency": "zero-out", "epsilon": 1, "delta": "solve"}},
    "more bands than apart": {"sampler": {"kind": "b-min-sep", "min_separation": 3}},
    "more bands than parts": {"sampler": {"kind": "cyclic-poisson", "partitions": 2, "phase": "random"}},
    "more bands than rounds": sectioned(sampler="balls-in-bins", bins=2, iterations=3),
    "workload of another length": {"workload": {"learning_rates": [1.0] * 15}},
    "workload without gradients": {"workload": {"learning_rates": [1.0] * 16, "error": "largest"}},
    "word": {"matrix": {"kind": "optimal-toeplitz", "bands": 2, "optimize_for": "sampled"}},
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_cannot_be_optimised_is_refused_at_its_place(name: str, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.compile(document("warm", **OTHERS[name])))


def test_phases_truncation_and_further_releases_are_refused(snapshot: Snapshot) -> None:
    body = {key: value for key, value in document("warm").items() if key in ("sampler", "training", "matrix", "noise")}
    phases = {**{key: value for key, value in HEAD.items() if key != "noise"}, "phases": [
        {"name": "one", **body},
        {"name": "two", "sampler": {"kind": "none"}, "training": {"iterations": 1}, "noise": {"multiplier": 9}},
    ]}  # fmt: skip
    snapshot.raised(pyaccount.compile, phases)
    sampler = {"kind": "b-min-sep", "truncate_to": 40}
    training = {"dataset_size": 200, "participation_rate": 0.1, "iterations": 16}
    snapshot.raised(lambda: pyaccount.compile(document("warm", sampler=sampler, training=training)))
