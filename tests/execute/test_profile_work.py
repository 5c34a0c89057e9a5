"""A profile takes no more counted work than ten times its guarantee; where that is too little, it is coarser, and says so."""

import math
from functools import cache
from typing import Any

import numpy as np
import oracle
import pytest
from certificate_oracle import inconsistencies
from plain_documents import doc, sectioned

import pyaccount
from pyaccount import _core
from pyaccount.certificate.meaning import failure_probability
from pyaccount.directions import DIRECTIONS
from pyaccount.execute import composed
from pyaccount.execute.engine import Engine, Question
from pyaccount.execute.shared_points import at_its_upper_end, points_of
from pyaccount.records.certificate import CertificateModel

#: The losses of these mechanisms are far apart, so that δ is a staircase whose steps only very fine lattices resolve. Two numbers
#: of each are released, and a record moves each of them by 1.
SIGMAS, MOVED, DELTA = (4.0825, 0.44194), 2, 1e-10
POINTS = [0.0, 8.0, 19.0, 29.0, 35.0]


def document(points: list[float] | None = None) -> dict[str, Any]:
    """Return the document of two discrete Gaussians."""
    return doc(
        "name=two adjacency=add-remove",
        delta=DELTA,
        phases=[{"mechanism": {"kind": "discrete-gaussian", "sigma": sigma, "moved": MOVED}} for sigma in SIGMAS],
        profile=POINTS if points is None else points,
    )


def law(sigma: float, reach: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the law of the sum of two numbers' noise, each moved by 1, and the losses, which depend on the sum alone."""
    outcomes = np.arange(-reach, reach + 1, dtype=float)
    mass = np.exp(-(outcomes**2) / (2.0 * sigma**2))
    mass /= mass.sum()
    return np.convolve(mass, mass), (MOVED - 2.0 * np.arange(-2.0 * reach, 2.0 * reach + 1.0)) / (2.0 * sigma**2)


def enumerated(epsilon: float) -> float:
    """Return δ(ε) of both mechanisms by enumerating their outcomes."""
    (p, one), (q, two) = law(SIGMAS[0], 120), law(SIGMAS[1], 16)
    losses = one[:, None] + two[None, :]
    above = losses > epsilon
    return math.fsum(((p[:, None] * q[None, :])[above] * -np.expm1(epsilon - losses[above])).tolist())


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let profiles take no more work than their guarantee, and without a least number of cells."""
    monkeypatch.setattr(composed, "PROFILE_WORK", 1)
    monkeypatch.setattr(composed, "LEAST_PROFILE_WORK", 1)


@pytest.mark.usefixtures("little")
def test_a_profile_of_little_work_is_coarser_and_holds() -> None:
    certificate = pyaccount.certify(document())
    work = certificate.data.evidence.profile_work
    assert work is not None
    assert 0 < work.taken <= work.allowed == work.guarantee
    for point in certificate.data.profile:
        truth = enumerated(point.epsilon)
        assert point.delta_lower <= truth * (1.0 + 1e-9)
        assert truth <= point.delta * (1.0 + 1e-9)
    for side in DIRECTIONS:
        curve = getattr(certificate.data.directions, side).curve
        assert all(
            enumerated(epsilon) <= delta * (1.0 + 1e-9)
            for epsilon, delta in zip(curve.epsilon, curve.delta, strict=True)
        )
    # Some point is wider than a profile usually is, and the pages say so.
    assert any(point.delta - point.delta_lower > 0.02 * point.delta for point in certificate.data.profile)
    assert "coarser than usual" in certificate.to_text()
    assert certificate.to_dict()["evidence"]["profile_work"]["taken"] == work.taken


@pytest.mark.usefixtures("little")
def test_the_number_of_threads_changes_no_number() -> None:
    one, two = (pyaccount.certify(document(), threads=threads).to_dict() for threads in (1, 2))
    for field in ("guarantee", "profile", "directions", "evidence"):
        assert one[field] == two[field]


def test_the_guarantee_does_not_depend_on_what_a_profile_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = pyaccount.certify(document([1.0])).data
    assert usual.evidence.profile_work is None
    monkeypatch.setattr(composed, "PROFILE_WORK", 0)
    monkeypatch.setattr(composed, "LEAST_PROFILE_WORK", 1)
    least = pyaccount.certify(document([1.0])).data
    assert least.evidence.profile_work is not None
    assert least.guarantee == usual.guarantee
    assert least.evidence.compositions == usual.evidence.compositions
    (point,), (finer,) = least.profile, usual.profile
    assert point.delta_lower <= finer.delta_lower <= finer.delta <= point.delta


def test_ten_times_the_guarantee_is_allowed() -> None:
    certificate = pyaccount.certify(document([29.0, 32.0, 35.0]))
    work = certificate.data.evidence.profile_work
    assert work is not None
    assert work.allowed == max(10 * work.guarantee, 67_108_864)
    assert work.taken <= work.allowed


def test_equal_work_is_counted_for_equal_questions() -> None:
    noise = _core.RoundProfile.discrete_gaussian
    rounds = [(noise(1, sigma), MOVED) for sigma in SIGMAS]
    for most in (None, 1 << 18, 1 << 20):
        answers = [
            _core.answer_all([(rounds, 29.0, None, 0.01)] * 2, threads=threads, most_work=most) for threads in (1, 2)
        ]
        found = {(one.lower, one.upper, one.work, one.coarser) for pair in answers for one in pair}
        ((lower, upper, work, coarser),) = found
        assert lower <= enumerated(29.0) * (1.0 + 1e-9)
        assert enumerated(29.0) <= upper * (1.0 + 1e-9)
        assert work > 0
        assert most is None or (work <= most and coarser == (upper - lower > 0.01 * upper))


# ---- Points of a profile that share their compositions, compared with points that are asked for one by one


_ROUNDS = {"dataset_size": 1000, "expected_batch_size": 10}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "rounds above and below": sectioned(
        "adjacency=zero-out epsilon=solve delta=1e-5 sampler=poisson truncate_to=15 multiplier=1.0",
        training={**_ROUNDS, "iterations": 50},
    ),
    "many kinds": {
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
        "phases": [
            sectioned(name=f"p{k}", training={**_ROUNDS, "iterations": 1}, sampler="poisson", multiplier=0.8 + 0.01 * k)
            for k in range(32)
        ],
    },
    # In the direction add, δ at the ε of the direction remove is about 1e-25.
    "far directions": {
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
        "phases": [
            {"mechanism": {"kind": "stated", "epsilon": 0.0043}, "count": 24},
            {"mechanism": {"kind": "laplace", "scale": 3.22}, "count": 2},
            {
                "mechanism": {
                    "kind": "mixture-of-gaussians",
                    "sigma": 4.4642,
                    "sensitivities": [0, 0.3, 3],
                    "probabilities": [0.5, 0.3, 0.2],
                },
                "count": 5,
            },
            {
                "mechanism": {"kind": "laplace", "scale": 5.996},
                "sampler": {"kind": "poisson", "sampling_probability": 0.341},
                "count": 7,
            },
        ],
    },
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_points_that_share_compositions_are_those_asked_for_one_by_one(name: str) -> None:
    bounds = pyaccount.compile({"pyaccount": 1, "name": "shared", **DOCUMENTS[name]}).at().bounds()
    engine, points, tolerance = Engine(), (0.0, 2.0, 0.3, 1.0, 4.0, 0.3), 0.01
    points = points[:4] if name == "far directions" else points
    found = points_of(engine, bounds, points, tolerance, 0.0)
    for point, answer in zip(points, found, strict=True):
        assert answer.question == Question(point, None, tolerance)
        alone = engine.ask(bounds, answer.question)
        for side in DIRECTIONS:
            one, other = answer.directions[side], alone.directions[side]
            # Both enclose the range between the mechanism's bounds.
            assert one.lower <= other.upper
            assert other.lower <= one.upper
            for account, single in ((one.upper_account, other.upper_account), (one.lower_account, other.lower_account)):
                assert account.upper - account.lower <= tolerance * account.upper
                assert max(account.lower, single.lower) <= min(account.upper, single.upper)


def test_what_is_not_resolved_is_bounded_from_both_sides() -> None:
    bounds = pyaccount.compile({"pyaccount": 1, "name": "far", **DOCUMENTS["far directions"]}).at().bounds()
    engine, ignored = Engine(), 1e-11
    at_delta = engine.ask(bounds, Question(None, 1e-5, 1e-4))
    found = at_its_upper_end(engine, bounds, at_delta, 0.01, ignored)
    (among_others,) = points_of(engine, bounds, [at_delta.upper], 0.01, ignored)
    alone = engine.ask(bounds, found.question)
    for side in DIRECTIONS:
        exact, coarse = alone.directions[side], found.directions[side]
        assert coarse.lower <= exact.upper
        assert exact.lower <= coarse.upper
        assert coarse.upper - coarse.lower <= max(0.01 * coarse.upper, ignored)
        assert max(coarse.lower, among_others.directions[side].lower) <= exact.upper
    assert found.directions["remove"].upper > 9e-6
    assert engine.compositions < 10


# ---- A sampled profile and its guarantee are about one mechanism: no bound is looser than what the rest implies


@cache
def certified(kind: str) -> Any:
    """Return a certificate whose own samples would leave δ far above the guarantee's from its ε on."""
    verified = kind == "verified"
    return pyaccount.certify(
        doc(
            "delta=1e-4 iterations=20 sampling_probability=0.1 sampler=b-min-sep min_separation=2 matrix=toeplitz",
            "coefficients=[1,0.5] seed=1 tolerance=0.05",
            name=kind,
            epsilon=8 if verified else "solve",
            multiplier="solve" if verified else 1.0,
        )
    )


def record(kind: str, **changes: Any) -> CertificateModel:
    raw = certified(kind).to_dict()
    raw["evidence"]["sampling"] |= changes
    return CertificateModel.model_validate(raw)


@pytest.mark.parametrize("kind", ["verified", "confidence"])
def test_the_profile_is_no_looser_than_the_guarantee(kind: str) -> None:
    """By its own samples alone δ at and beyond the guarantee's ε would be up to five times the guarantee's."""
    raw = certified(kind).to_dict()
    guarantee, directions = raw["guarantee"], raw["directions"]
    assert guarantee["kind"] == kind
    for points in (raw["profile"], directions["remove"]["profile"], directions["add"]["profile"]):
        beyond = [point for point in points if point["epsilon"] >= guarantee["epsilon"]]
        assert len(beyond) >= 4
        assert all(point["delta"] <= guarantee["delta"] for point in beyond)
        assert all(point["delta_lower"] <= point["delta"] for point in points)
    assert inconsistencies(record(kind)) == []


@pytest.mark.parametrize("kind", ["verified", "confidence"])
def test_the_tests_behind_a_guarantee_count_in_each_point_and_once_in_all_of_them(kind: str) -> None:
    data = record(kind)
    sampling = data.evidence.sampling
    assert sampling is not None
    parts = sampling.pointwise_failure_probability + sampling.total_probability
    assert sampling.profile_failure_probability == pytest.approx(parts, rel=1e-12)
    # The error probability of all bounds together: that of each point's own ends, and that of the tests once.
    ends = 2 * len(data.profile) + 2
    together = sampling.total_probability + ends * sampling.pointwise_failure_probability
    assert failure_probability(data) == pytest.approx(together, rel=1e-12)


def test_a_forged_probability_of_the_profile_is_found() -> None:
    for kind, stated in (("verified", 1e-12), ("confidence", 1e-9)):
        found = [one.path for one in inconsistencies(record(kind, profile_failure_probability=stated))]
        assert found == ["evidence.sampling.profile_failure_probability"]


def test_any_point_on_request_is_bounded_too() -> None:
    certificate = certified("verified")
    for epsilon in (8.0, 9.37, 30.0):
        assert certificate.profile.delta(epsilon).upper <= 1e-4


def test_what_holds_without_samples_bounds_the_profile() -> None:
    """If a record nearly always joins both rounds, far out samples give weaker bounds than one Gaussian mechanism of √2."""
    sigma, far = 2.0, 6.0
    certificate = pyaccount.certify(
        doc(
            "name=often delta=1e-3 iterations=2 sampling_probability=0.9 sampler=b-min-sep min_separation=1",
            "matrix=toeplitz coefficients=[1] normalize=False seed=1 tolerance=0.1 method=monte-carlo",
            multiplier=sigma,
            profile=[0.5, far],
        )
    )
    raw = certificate.to_dict()
    assert raw["evidence"]["sampling"] is not None
    gaussian = float(oracle.gaussian_delta(2.0**0.5 / sigma, far))
    assert raw["profile"][-1]["delta"] <= gaussian * (1.0 + 1e-6)
