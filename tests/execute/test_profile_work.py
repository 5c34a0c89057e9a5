"""A profile takes no more counted work than ten times its guarantee; where that is too little, it is coarser, and says so."""

import math
from typing import Any

import numpy as np
import pytest
from plain_documents import doc

import pyaccount
from pyaccount import _core
from pyaccount.directions import DIRECTIONS
from pyaccount.execute import composed

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
