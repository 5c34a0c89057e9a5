"""Rounds that differ by a schedule: their composition is that of the phases they stand for, and of closed forms."""

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_documents import sectioned
from scheduled_documents import DELTA, SAMPLED, body, document, head, in_phases
from scipy.optimize import brentq
from scipy.stats import norm
from snapshots import Snapshot

import pyaccount
from pyaccount.execute.engine import Engine, Question
from pyaccount.plan import alike
from pyaccount.reading.numerals import Range

NOISES = [1.5, 0.9, 1.2, 0.9, 2.0, 1.5, 0.9]


def composed(source: Any) -> Any:
    return pyaccount.compile(source).at().composed()


def gaussian_epsilon(squares: float) -> float:
    """Return ε of Gaussian mechanisms with this sum of squared sensitivities over noise (Balle & Wang 2018)."""
    mu = math.sqrt(squares)

    def excess(epsilon: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)) - DELTA

    return float(brentq(excess, 0.0, 400.0))


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
@pytest.mark.parametrize("name", SAMPLED)
def test_the_rounds_are_those_of_phases_bit_for_bit(name: str, adjacency: str) -> None:
    one, many = document(name, NOISES, len(NOISES)), in_phases(name, [(noise, {}) for noise in NOISES])
    for each in (one, many):
        each["privacy"]["adjacency"] = adjacency
    assert composed(one) == composed(many)
    assert len(composed(one)["remove"].upper) == (1 if name == "none" else len(set(NOISES)))


def test_rates_differ_with_the_noise() -> None:
    rates = [0.01, 0.02, 0.01, 0.03]
    one = document("poisson", NOISES[:4], 4, sampling_probability={"schedule": rates})
    many = in_phases(
        "poisson", [(noise, {"sampling_probability": rate}) for noise, rate in zip(NOISES, rates, strict=False)]
    )
    assert composed(one) == composed(many)
    # With one noise multiplier and rates alone.
    one["noise"] = {"multiplier": 1.1}
    many = in_phases("poisson", [(1.1, {"sampling_probability": rate}) for rate in rates])
    assert composed(one) == composed(many)


@pytest.mark.parametrize("name", ["fixed-size", "with-replacement"])
def test_batches_differ_with_the_noise(name: str) -> None:
    batches = [10, 20, 10, 1]
    one = document(name, NOISES[:4], 4, expected_batch_size={"schedule": batches})
    many = in_phases(
        name, [(noise, {"expected_batch_size": size}) for noise, size in zip(NOISES, batches, strict=False)]
    )
    assert composed(one) == composed(many)


def test_expected_batches_of_poisson_sampling_are_rates() -> None:
    one = document("poisson", NOISES[:2], 2, dataset_size=300, expected_batch_size={"schedule": [3, 7]})
    del one["training"]["sampling_probability"]
    many = in_phases(
        "poisson", [(NOISES[0], {"sampling_probability": 0.01}), (NOISES[1], {"sampling_probability": 7 / 300})]
    )
    assert composed(one) == composed(many)


def test_runs_repeat_the_schedule() -> None:
    one = document("poisson", NOISES, len(NOISES)) | {"count": 3}
    many = in_phases("poisson", [(noise, {}) for _ in range(3) for noise in NOISES])
    assert composed(one) == composed(many)


def test_the_scale_multiplies_every_value() -> None:
    one = document("poisson", NOISES, len(NOISES), scale=1.25)
    assert composed(one) == composed(in_phases("poisson", [(1.25 * noise, {}) for noise in NOISES]))
    shared = {
        **head(),
        "noise": {"scale": 1.25},
        "phases": in_phases("poisson", [(noise, {}) for noise in NOISES])["phases"],
    }
    assert composed(one) == composed(shared)
    shared["phases"] = [body(SAMPLED["poisson"], len(NOISES), {"schedule": NOISES, "scale": 0.5})]
    assert composed(document("poisson", NOISES, len(NOISES), scale=0.625)) == composed(shared)


def test_several_releases_of_a_batch_are_joined_in_every_round() -> None:
    also = [{"what": "counts", "multiplier": 4}]
    one, many = document("poisson", NOISES, len(NOISES)), in_phases("poisson", [(noise, {}) for noise in NOISES])
    one["noise"]["also"] = also
    for phase in many["phases"]:
        phase["noise"]["also"] = also
    assert composed(one) == composed(many)


def test_a_decaying_schedule_is_its_products() -> None:
    values, value = [], 2.0
    for step in range(10):
        values += [max(value, 1.0)] * 3
        value *= 0.9
        assert step < 10
    decaying = {"start": 2, "decay": 0.9, "every": 3, "least": 1}
    assert composed(document("poisson", decaying, 29)) == composed(document("poisson", values[:29], 29))


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("a.csv", "1.5\n0.9\n1.2\n", None),
        ("a.csv", "\ufeffstep,sigma\n0,1.5\n1,0.9\n2,1.2\n", "sigma"),
        ("a.csv", "step,sigma\n0,1.5\n1,0.9\n2,1.2\n", 1),
        ("a.txt", "# noise of each round\n0 1.5\n\n1 0.9 # less\n2 1.2\n", 1),
    ],
)
def test_a_text_file_has_the_values(name: str, text: str, column: object, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text, encoding="utf-8")
    schedule = {"file": name} | ({} if column is None else {"column": column})
    assert composed(document("poisson", schedule, 3)) == composed(document("poisson", NOISES[:3], 3))
    assert composed(document("poisson", schedule | {"rounds": 2}, 2)) == composed(document("poisson", NOISES[:2], 2))


def test_an_array_has_the_values(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.array(NOISES))
    np.save("b.npy", np.array([[7.0] * len(NOISES), NOISES]).T)
    expected = composed(document("poisson", NOISES, len(NOISES)))
    assert composed(document("poisson", {"file": "a.npy"}, len(NOISES))) == expected
    assert composed(document("poisson", {"file": "b.npy", "column": 1}, len(NOISES))) == expected


@pytest.mark.parametrize(
    ("file", "schedule"),
    [
        (("a.csv", None), {}),
        (("a.csv", "1,2\n3,4\n"), {}),
        (("a.csv", "1,2\n3,4\n"), {"column": 2}),
        (("a.csv", "s,t\n3,4\n"), {"column": "u"}),
        (("a.csv", "3,4\n"), {"column": "u"}),
        (("a.csv", "1\nx\n"), {}),
        (("a.csv", "1,2\n3\n"), {"column": 0}),
        (("a.csv", ""), {}),
        (("a.csv", "sigma\n"), {}),
        (("a.npy", "no array"), {}),
        (("a.yaml", "1\n"), {}),
    ],
)
def test_a_file_without_a_schedule_is_refused(
    file: tuple[str, str | None], schedule: dict[str, Any], tmp_path: Path, monkeypatch: Any, snapshot: Snapshot
) -> None:
    name, content = file
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    snapshot.raised(lambda: pyaccount.compile(document("poisson", {"file": name, **schedule}, 2)))


def test_values_in_a_file_are_checked_like_those_in_a_document(
    tmp_path: Path, monkeypatch: Any, snapshot: Snapshot
) -> None:
    monkeypatch.chdir(tmp_path)
    for values in ([1.0, 2.0, 3.0], [1.0, -2.0], [math.nan, 1.0], [1.0, math.inf]):
        np.save("a.npy", np.array(values))
        snapshot.raised(pyaccount.compile, document("poisson", {"file": "a.npy"}, 2))


def test_objects_in_an_array_are_not_unpickled(tmp_path: Path, monkeypatch: Any, snapshot: Snapshot) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    snapshot.raised(lambda: pyaccount.compile(document("poisson", {"file": "a.npy"}, 2)))


def test_a_file_is_read_once_for_an_analysis(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.array([1.0, 2.0]))
    plan = pyaccount.compile(document("poisson", {"file": "a.npy"}, 2))
    before = plan.at().bounds()
    np.save("a.npy", np.array([3.0, 4.0]))
    assert plan.at().bounds() == before
    assert composed(document("poisson", {"file": "a.npy"}, 2)) == composed(document("poisson", [3.0, 4.0], 2))


@pytest.mark.parametrize("most", [1, 2, 4, 7])
def test_without_sampling_the_rounds_with_the_least_noise_are_the_worst(most: int) -> None:
    one = document("none", NOISES, len(NOISES)) | {"sampler": {"kind": "none", "max_participations": most}}
    worst = max(gaussian_epsilon(math.fsum(noise**-2 for noise in pattern)) for pattern in combinations(NOISES, most))
    answer = Engine().ask(composed(one), Question(None, DELTA, 1e-6))
    assert answer.lower <= worst * (1 + 1e-9)
    assert worst <= answer.upper * (1 + 1e-9)
    assert answer.upper - answer.lower <= 1e-5 * worst


def test_laplace_noise_with_a_schedule_sums_its_losses() -> None:
    one = document("none", [10.0, 20.0, 40.0], 3)
    one["noise"]["kind"] = "laplace"
    one["privacy"]["delta"] = 0
    certificate = pyaccount.certify(one)
    assert certificate.epsilon_lower == certificate.epsilon == pytest.approx(0.175, rel=1e-15)


def test_a_long_schedule_is_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "MANY", 20)
    monkeypatch.setattr("pyaccount.plan.compiled.MANY", 20)
    noises = [0.8 + 0.8 * step / 89 for step in range(90)]
    long = document("poisson", noises, 90) | {"accounting": {"tolerance": 0.06, "profile": [0.0, 1.0]}}
    plan = pyaccount.compile(long)
    assert plan.long
    certificate = pyaccount.certify(long)
    alike_record = certificate.data.evidence.alike
    assert alike_record is not None
    assert alike_record.kinds == 90
    assert alike_record.composed <= 30
    monkeypatch.setattr(alike, "MANY", 1000)
    exact = Engine().ask(composed(in_phases("poisson", [(noise, {}) for noise in noises])), Question(None, DELTA, 1e-4))
    assert certificate.epsilon_lower <= exact.lower
    assert exact.upper <= certificate.epsilon


def test_a_file_that_is_too_long_is_rejected_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pyaccount.plan.schedule_files.SCHEDULED", Range(1, 3))
    (tmp_path / "a.csv").write_text("1\n" * 4 + "not a number\n", encoding="utf-8")
    snapshot.raised(lambda: pyaccount.compile(document("poisson", {"file": "a.csv"}, 2)))


LAPLACE = {"mechanism": {"kind": "laplace", "scale": 2.0, "sensitivity": 1.0}, "count": 3}


def sampled(*phases: dict[str, Any]) -> dict[str, Any]:
    return {"sampler": {"kind": "poisson", "sampling_probability": 0.1}, "phases": list(phases)}


def test_a_factor_multiplies_training_runs_inside_of_phases_and_no_mechanism() -> None:
    def phases(factor: float) -> list[dict[str, Any]]:
        one = body(SAMPLED["poisson"], 3, 2.0 * factor)
        many = body(SAMPLED["poisson"], 4, {"schedule": [1.0, 2.0, 3.0, 2.0], "scale": factor})
        best = {"select": {"kind": "geometric", "stopping_probability": 0.25}, "phases": [sampled(one)]}
        return [many, LAPLACE, sampled(one, LAPLACE), best]

    shared = head() | {"noise": {"scale": 1.5}, "phases": phases(1.0)}
    assert composed(shared) == composed(head() | {"phases": phases(1.5)})
    # What the record states needs neither a narrow interval nor a profile.
    certificate = pyaccount.certify(shared | {"accounting": {"profile": [], "tolerance": 0.1}})
    scheduled, mechanism, inside, best = certificate.data.phases
    assert (scheduled.noise_multiplier, scheduled.mechanism) == (None, None)
    assert (mechanism.noise, mechanism.schedules) == (None, None)
    assert mechanism.mechanism is not None
    assert "noise" not in mechanism.mechanism.stated
    assert inside.mechanism is not None
    assert best.mechanism is not None
    # The phases are as in the document, so the record states the factor beside them.
    assert inside.mechanism.stated["noise"] == best.mechanism.stated["noise"] == {"scale": 1.5}
    assert inside.mechanism.stated["phases"][0]["noise"]["multiplier"] == 2.0


def test_a_factor_is_solved_beside_mechanisms() -> None:
    asked = head(epsilon=3.0) | sectioned(
        noise={"scale": "solve"},
        phases=[LAPLACE, sampled(body(SAMPLED["poisson"], 3, 0.5))],
        profile=[],
        tolerance=0.01,
    )
    certificate = pyaccount.certify(asked)
    assert certificate.data.solved is not None
    factor = certificate.data.solved.value

    def epsilon(value: float) -> Any:
        phases = [LAPLACE, sampled(body(SAMPLED["poisson"], 3, 0.5 * value))]
        return Engine().ask(composed(head() | {"phases": phases}), Question(None, DELTA, 1e-4))

    assert epsilon(factor).upper <= 3.0
    assert epsilon(0.98 * factor).lower > 3.0


def test_an_inner_phase_has_no_schedule_and_no_dependent_rounds(snapshot: Snapshot) -> None:
    inner = body(SAMPLED["poisson"], 2, {"schedule": [1.0, 2.0]})
    snapshot.raised(pyaccount.compile, head() | {"phases": [sampled(inner)]})
    # A matrix makes the rounds of an inner phase depend on one another, as those of any other phase.
    correlated = body(SAMPLED["poisson"], 2, 1.0) | {"matrix": {"kind": "toeplitz", "coefficients": [1.0, 0.5]}}
    snapshot.raised(pyaccount.compile, head() | {"phases": [sampled(correlated)]})
