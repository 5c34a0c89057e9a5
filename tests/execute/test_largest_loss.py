"""Laplace releases have a largest loss: an atom at it, δ = 0 beyond it, and questions that have exact answers."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath as mp
import pytest
from oracle import decreasing_root, gaussian_epsilon
from plain_documents import document, one_step
from snapshots import Snapshot

import pyaccount
from pyaccount import _core
from pyaccount.execute import Engine, Question
from pyaccount.execute.curve import MOST, CurvePoint, points_between
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.rounds import LargestLoss, largest_loss
from pyaccount.profiles import GaussianProfile, LaplaceProfile, Rounds


def releases(count: int, scale: float | str, **changes: Any) -> dict[str, Any]:
    """Return a document of Laplace releases that asks for ε at δ = 0."""
    base = {
        "training": {"iterations": count},
        "sampler": {"kind": "none"},
        "noise": {"kind": "laplace", "multiplier": scale},
        "privacy__epsilon": "solve",
        "privacy__delta": 0,
    }
    return document(**{**base, **changes})


def phase(count: int, noise: dict[str, Any]) -> dict[str, Any]:
    return {"training": {"iterations": count}, "sampler": {"kind": "none"}, "noise": noise}


def phases(*bodies: dict[str, Any], epsilon: float | str = "solve", delta: float = 0.0) -> dict[str, Any]:
    privacy = {"adjacency": "add-remove", "epsilon": epsilon, "delta": delta}
    return {"pyaccount": 1, "name": "phases", "privacy": privacy, "phases": list(bodies)}


def two_releases_delta(theta: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
    """Return δ(ε) of two Laplace releases with losses up to θ, for 0 ≤ ε ≤ 2θ: 1 − e^{−x/2}(1 + x/4) with x = 2θ − ε.

    This is the δ of one release, 1 − e^{(ε−θ)/2}, averaged over the loss ℓ of the other: θ with probability ½, and with
    the density ¼e^{(ℓ−θ)/2} from ε − θ to θ; below ε − θ nothing is left of δ(ε − ℓ).
    """
    x = 2 * theta - epsilon
    return -mp.expm1(-x / 2) - x / 4 * mp.exp(-x / 2) if x > 0 else mp.mpf(0)


@pytest.mark.parametrize(
    ("count", "scale", "epsilon"),
    [(20, 10, "2"), (3, 10, "0.3"), (19, 10, "1.9"), (7, 0.7, "10"), (1, 3, "1/3"), (1, 1e-6, "1000000")],
)
def test_epsilon_at_delta_zero_is_the_sum_of_the_largest_losses(count: int, scale: float, epsilon: str) -> None:
    guarantee = pyaccount.certify(releases(count, scale)).data.guarantee
    exact = Fraction(epsilon)
    assert (guarantee.delta, guarantee.delta_lower) == (0.0, 0.0)
    assert Fraction(repr(guarantee.epsilon_lower)) <= exact <= Fraction(repr(guarantee.epsilon))
    # No double lies between the two ends.
    assert guarantee.epsilon <= math.nextafter(guarantee.epsilon_lower, math.inf)


def test_what_is_solved_at_delta_zero() -> None:
    def solved(source: dict[str, Any]) -> Any:
        data = pyaccount.certify(source).data
        assert data.holds
        assert data.guarantee.delta == 0.0
        assert data.solved is not None
        return data.solved.value

    assert solved(releases(1, 10, training={"iterations": "solve"}, privacy__epsilon=2)) == 20
    assert solved(releases(20, 10, privacy__epsilon=7, privacy__group_size="solve")) == 3
    assert 10.0 <= solved(releases(20, "solve", privacy__epsilon=2)) <= 10.0 * (1.0 + 2e-4)
    assert solved(releases(20, 10, privacy__epsilon=2, privacy__delta="solve")) == 0.0


def test_claims_at_delta_zero() -> None:
    for epsilon, holds in ((2.0, True), (2.5, True), (math.nextafter(2.0, 0.0), False)):
        certificate = pyaccount.certify(releases(20, 10, privacy__epsilon=epsilon))
        assert certificate.data.holds is holds
        # δ is 0 from ε = 2 on.
        assert certificate.profile.delta(2.0) == (0.0, 0.0)
    assert "is (2, 0)-differentially private" in pyaccount.certify(releases(20, 10, privacy__epsilon=2)).data.statement
    perfect = pyaccount.certify(releases(1, 10, privacy__epsilon=0)).data
    assert not perfect.holds
    assert perfect.guarantee.delta_lower <= -math.expm1(-0.05) <= perfect.guarantee.delta


def test_phases_and_groups_at_delta_zero() -> None:
    thirds = phases(phase(1, {"kind": "laplace", "multiplier": 3}), phase(1, {"kind": "laplace", "multiplier": 1.5}))
    assert pyaccount.certify(thirds).epsilon == 1.0
    group = pyaccount.certify(releases(20, 10, privacy__group_size=3)).data
    assert group.guarantee.epsilon == 6.0
    # The lemma for groups gives the same, since δ = 0 for one record implies δ = 0 for three.
    assert group.group_lemma is not None
    assert group.group_lemma.epsilon == pytest.approx(6.0, rel=1e-15)
    assert pyaccount.certify(releases(20, 10, privacy__adjacency="replace-one")).epsilon == 4.0


def test_many_scales_are_added_up_exactly() -> None:
    rounds = tuple(Rounds(LaplaceProfile(1.0, float(k * (k + 1))), 1) for k in range(1, 400))
    # Σ 1/(k(k+1)) telescopes.
    assert largest_loss(rounds) == LargestLoss(*(float(Fraction(399, 400)),) * 2)
    assert largest_loss((*rounds, Rounds(GaussianProfile(1.0, 1.0), 1))) is None


@pytest.mark.nightly(but=["1e-280", "1e-12", "1e-10", "1e-09"])
@pytest.mark.parametrize("delta", [1e-280, 1e-100, 1e-30, 1e-12, 1e-10, 1e-9])
def test_no_bound_exceeds_the_largest_loss(delta: float) -> None:
    guarantee = pyaccount.certify(releases(20, 10, privacy__delta=delta, accounting={"profile": []})).data.guarantee
    # All twenty losses are the largest with probability 2⁻²⁰.
    below = 2.0 + math.log1p(-delta * 2.0**20)
    assert below - 1e-14 <= guarantee.epsilon_lower <= guarantee.epsilon <= 2.0
    assert guarantee.epsilon - guarantee.epsilon_lower <= 2e-4


@pytest.mark.parametrize("delta", [0.2, 1e-2, 1e-4, 1e-6, 1e-9, 1e-15])
def test_two_releases_have_a_closed_form(delta: float) -> None:
    with mp.workdps(40):
        truth = decreasing_root(lambda epsilon: two_releases_delta(mp.mpf(1) / 3, epsilon), mp.mpf(delta), mp.mpf(1))
    question = ([(_core.RoundProfile.laplace(1.0, 3.0), 2)], None, delta, 1e-6)
    (found,) = _core.answer_all([question])
    assert found.lower <= truth <= found.upper
    assert found.within_tolerance


@pytest.mark.parametrize("delta", [1e-3, 1e-8, 1e-12, 1e-100, 1e-280])
def test_one_release_is_answered_at_every_delta(delta: float) -> None:
    data = pyaccount.certify(releases(1, 1, privacy__delta=delta, accounting={"time_limit": 60})).data
    exact = 1.0 + 2.0 * math.log1p(-delta)
    assert data.guarantee.epsilon_lower - 1e-15 <= exact <= data.guarantee.epsilon + 1e-15
    assert data.guarantee.epsilon - data.guarantee.epsilon_lower <= 1e-14
    assert not data.not_computed
    for direction in (data.directions.remove, data.directions.add):
        assert direction.curve is not None
        for epsilon, bound in zip(direction.curve.epsilon, direction.curve.delta, strict=True):
            assert bound >= -math.expm1((epsilon - 1.0) / 2.0)


def test_a_profile_that_ends_has_a_picture() -> None:
    # δ falls to 0 next to a point of the guarantee, within one double or within a tiny distance.
    beside = math.nextafter(1.0, 2.0)
    for last in (beside, 1.0 + 1e-12, 1.001):
        points = [CurvePoint(0.0, 0.4), CurvePoint(0.9, 0.05), CurvePoint(1.0, 1e-8), CurvePoint(last, 0.0)]
        assert 5 <= len(points_between(points, 1e-300)) <= 3 * MOST
    assert points_between([CurvePoint(0.0, 0.0), CurvePoint(1.0, 0.0)], 1.0) == ()


LAPLACE, GAUSSIAN = {"kind": "laplace", "multiplier": 10}, {"multiplier": 5}


@pytest.mark.parametrize(
    ("blank", "delta"), [("epsilon", 1e-3), ("epsilon", 1e-12), ("multiplier", 1e-3), ("multiplier", 1e-12)]
)
def test_laplace_releases_beside_gaussian_ones_are_answered_at_every_delta(blank: str, delta: float) -> None:
    """ε is at least that of the Gaussian mechanism, and at most that plus the sum of the largest losses."""
    laplace, gauss = phase(4, dict(LAPLACE)), phase(3, dict(GAUSSIAN))
    alone = float(gaussian_epsilon(math.sqrt(3.0) / 5.0, delta))
    if blank == "multiplier":
        laplace["noise"]["multiplier"] = "solve"
    source = phases(laplace, gauss, epsilon="solve" if blank == "epsilon" else alone + 0.4, delta=delta)
    data = pyaccount.certify({**source, "accounting": {"profile": []}}).data
    guarantee = data.guarantee
    assert data.holds
    assert guarantee.epsilon >= alone * (1.0 - 1e-12)
    assert guarantee.epsilon_lower <= alone + 0.4
    assert data.evidence.within_tolerance
    if blank == "multiplier":
        # With scale 10 the losses sum to 0.4, so that more noise is never needed.
        assert data.solved is not None
        assert data.solved.value <= 10.0 * (1.0 + 2e-3)


@pytest.mark.parametrize(
    "source",
    [
        one_step(1.0, privacy__epsilon="solve", privacy__delta=0),
        phases(phase(20, LAPLACE), phase(1, GAUSSIAN)),
        document(
            privacy={"adjacency": "zero-out", "epsilon": 1, "delta": 0},
            training={"participation_rate": 0.05, "iterations": 40},
            sampler={"kind": "b-min-sep", "min_separation": 4},
            noise={"multiplier": "solve"},
        ),
    ],
)
def test_an_unbounded_loss_is_refused_at_delta_zero(source: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.load, source)


def test_delta_zero_is_asked_where_losses_are_bounded_alone(snapshot: Snapshot) -> None:
    bounds = compile_document(pyaccount.load(one_step(1.0, privacy__epsilon=1))).at().bounds()
    snapshot.raised(lambda: Engine().ask(bounds, Question(None, 0.0, 1e-3)))
    snapshot.raised(lambda: pyaccount.certify(one_step(1.0, privacy__epsilon=1)).profile.epsilon(0.0))
    assert pyaccount.certify(releases(20, 10)).profile.epsilon(0) == (2.0, 2.0)


def test_gates_reports_and_recomputation_read_delta_zero(tmp_path: Path) -> None:
    certificate = pyaccount.certify(releases(20, 10))
    path = tmp_path / "pure.json"
    certificate.save(path)
    assert json.loads(path.read_text(encoding="utf-8"))["guarantee"]["delta"] == 0.0
    for epsilon, delta, passes in ((2.0, 0.0, True), (2.0, 1e-9, True), (1.99, 0.0, False)):
        assert pyaccount.check(path, max_epsilon=epsilon, max_delta=delta).passes is passes
    gauss = pyaccount.certify(one_step(1.0, privacy__epsilon=1))
    assert not pyaccount.check(gauss, max_epsilon=2, max_delta=0).passes
    assert pyaccount.verify(path).agrees
    assert "(2, 0)-differentially private" in certificate.to_markdown()
    assert "<svg" in certificate.to_html()
    assert pyaccount.compare([releases(20, 10)]).rows[0].delta == 0.0


def test_an_accountant_may_have_a_budget_without_delta(snapshot: Snapshot) -> None:
    accountant = pyaccount.Accountant(adjacency="add-remove", delta=0, epsilon=2)
    accountant.step(19, noise="laplace", sampler="none", noise_multiplier=10)
    assert accountant.epsilon_spent() == 1.9
    assert accountant.remaining_steps() == 1
    assert not accountant.would_exceed(1)
    assert accountant.would_exceed(2)
    assert accountant.epsilon_spent(1e-6) < 1.9
    snapshot.raised(accountant.step, noise_multiplier=5, sampler="none")
    assert accountant.steps == 19


def test_the_contrast_keeps_to_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laplace releases are composed for the contrast too; if there is no time, their largest losses are added."""
    source = phases(phase(20, LAPLACE), phase(4, GAUSSIAN), delta=1e-6)
    whole = pyaccount.certify(source).data
    ask = Engine.ask

    def out_of_time(engine: Engine, bounds: Any, question: Question) -> Any:
        if question.tolerance == 1e-3 and len(bounds["remove"].upper) > 1:
            raise pyaccount.LimitError("the time limit was reached")
        return ask(engine, bounds, question)

    monkeypatch.setattr(Engine, "ask", out_of_time)
    cut = pyaccount.certify(source).data
    # Four Gaussian releases with σ = 5 are equivalent to one with σ = 2.5.
    together = 2.0 + float(gaussian_epsilon(1.0 / 2.5, 1e-6))
    assert whole.unamplified.epsilon is not None
    assert cut.unamplified.epsilon is not None
    assert whole.unamplified.epsilon < cut.unamplified.epsilon
    assert together <= cut.unamplified.epsilon <= together * (1.0 + 1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-12, 1e-100, 1e-280])
def test_laplace_releases_move_what_one_gaussian_mechanism_costs(delta: float) -> None:
    """All four losses are 0.1 with probability 1/16: ε is between 0.4 + ε(16δ) and 0.4 + ε(δ) of the Gaussian one."""
    releases = [(_core.RoundProfile.laplace(1.0, 10.0), 4), (_core.RoundProfile.gaussian(1.0, 2.0), 1)]
    (found,) = _core.answer_all([(releases, None, delta, 0.02)])
    assert found.upper <= 0.4 + float(gaussian_epsilon(0.5, delta)) + 1e-9
    assert found.lower >= 0.4 + float(gaussian_epsilon(0.5, 16.0 * delta)) - 1e-9
    assert found.within_tolerance
