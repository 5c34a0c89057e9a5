"""Rounds that are nearly alike: long schedules are grouped, and the result encloses the exact composition."""

import json
import math
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from plain_documents import sectioned
from scipy.optimize import brentq
from scipy.stats import norm

import pyaccount
from pyaccount.certificate.report import brief
from pyaccount.execute.engine import Answer, Engine, Question
from pyaccount.gate.agreement import FieldPlace
from pyaccount.gate.cross_check import ComposedCrossCheck
from pyaccount.plan import alike
from pyaccount.plan.rounds import Bounds
from pyaccount.profiles import GaussianProfile, LaplaceProfile, PoissonProfile, Rounds, TruncatedPoissonProfile
from pyaccount.records.fields import NATS, Role

DELTA = 1e-5
KINDS = 90
#: The tolerance of these tests: coarse, so that few groups suffice.
TOLERANCE = 0.06


@pytest.fixture(autouse=True)
def _short_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a schedule of more than 20 kinds count as long."""
    monkeypatch.setattr(alike, "MANY", 20)
    monkeypatch.setattr("pyaccount.plan.compiled.MANY", 20)


def phase(share: float, **changes: Any) -> dict[str, Any]:
    """Return a round of a schedule whose noise doubles from its beginning to its end."""
    training = {"sampling_probability": 0.02, "iterations": 1} | changes.pop("training", {})
    return sectioned(changes, training=training, sampler="poisson", multiplier=0.8 + 0.8 * share)


def schedule(tolerance: float | None = TOLERANCE, **privacy: Any) -> dict[str, Any]:
    """Return a document with a long schedule of different rounds."""
    accounting: dict[str, Any] = {"profile": [0.0, 1.0, 2.5]}
    if tolerance is not None:
        accounting["tolerance"] = tolerance
    return {
        "pyaccount": 1,
        "name": "schedule",
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": DELTA} | privacy,
        "phases": [phase(step / (KINDS - 1)) for step in range(KINDS)],
        "accounting": accounting,
    }


def exact(document: dict[str, Any], tolerance: float = 1e-4) -> Answer:
    """Return ε with every kind of rounds composed separately."""
    bounds = pyaccount.compile(document).at().bounds()
    assert not alike.composed_alike(bounds)
    return Engine().ask(bounds, Question(None, DELTA, tolerance))


@cache
def truth_to(tolerance: float) -> Answer:
    """Return ε of the schedule with every kind of rounds composed separately; several tests compare with it."""
    return exact(schedule(), tolerance)


def of_gaussians(squares: float) -> float:
    """Return ε of Gaussian mechanisms with this sum of squared sensitivities over noise (Balle & Wang 2018)."""
    mu = math.sqrt(squares)

    def excess(epsilon: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)) - DELTA

    return float(brentq(excess, 0.0, 50.0))


def one_sided(epsilon: float, rate: float, noise: float) -> float:
    """Return δ of pN(1, σ²) + (1 − p)N(0, σ²) against N(0, σ²), in closed form."""
    threshold = noise**2 * math.log1p(math.expm1(epsilon) / rate) + 0.5
    survival = norm.sf(threshold / noise)
    return float(rate * norm.sf((threshold - 1.0) / noise) + (1.0 - rate - math.exp(epsilon)) * survival)


def test_the_interval_contains_the_exact_composition_and_the_certificate_says_so() -> None:
    truth, certificate = truth_to(1e-4), pyaccount.certify(schedule())
    data = json.loads(certificate.to_json())
    evidence, guarantee = data["evidence"], data["guarantee"]
    assert guarantee["epsilon_lower"] <= truth.lower <= truth.upper <= guarantee["epsilon"]
    assert guarantee["epsilon"] - guarantee["epsilon_lower"] <= TOLERANCE * guarantee["epsilon"]
    assert evidence["within_tolerance"]
    assert evidence["alike"]["kinds"] == KINDS
    assert 3 * evidence["alike"]["composed"] <= KINDS
    lines = [line for line in evidence["error_budget"] if line["source"].startswith("rounds that are nearly alike")]
    assert [line["direction"] for line in lines] == ["remove", "add"]
    assert all(0.0 < line["contribution"] < DELTA for line in lines)
    assert {one["bound"] for one in evidence["compositions"]} == {"upper", "lower"}
    bounds = pyaccount.compile(schedule()).at().bounds()
    points = data["profile"]
    answers = Engine().ask_all([(bounds, Question(point["epsilon"], None, 1e-2)) for point in points])
    for point, answer in zip(points, answers, strict=True):
        assert point["delta_lower"] <= answer.upper
        assert answer.lower <= point["delta"]
    for side in ("remove", "add"):
        curve = data["directions"][side]["curve"]
        ask = [(bounds, Question(epsilon, None, 1e-2)) for epsilon in curve["epsilon"][::20]]
        for answer, delta in zip(Engine().ask_all(ask), curve["delta"][::20], strict=True):
            assert answer.directions[side].lower <= delta  # type: ignore[index]
    assert pyaccount.verify(certificate).agrees
    # Of so many phases, only the first and the last are shown.
    text = certificate.to_text()
    assert f"{KINDS - 40} more phases" in text
    assert f"{KINDS - 40} more reductions" in text
    assert text.count(" (poisson)") == 40
    assert "(phases[0])" in text
    assert f"(phases[{KINDS - 1}])" in text
    assert ("σ", f"from 0.8 to 1.6, in {KINDS} phases") in brief(certificate.data)


def test_noise_without_sampling_against_the_closed_form() -> None:
    noises = [20.0 + 20.0 * step / KINDS for step in range(KINDS)]
    rounds = tuple(Rounds(GaussianProfile(1.0, noise), 1) for noise in noises)
    bounds = alike.grouped_alike({side: Bounds(rounds, rounds) for side in ("remove", "add")}, 0.02)  # type: ignore[misc]
    assert alike.composed_alike(bounds)
    answer = Engine().ask(bounds, Question(None, DELTA, 1e-4))
    truth = of_gaussians(math.fsum(noise**-2 for noise in noises))
    assert answer.lower <= truth <= answer.upper
    # Half of the groups' width is on each side, and its first order is nearly all of it.
    assert answer.upper - answer.lower <= 0.04 * truth


@pytest.mark.parametrize("fall", [0.0, 0.3, -0.3], ids=["equal noise", "noise falls", "noise rises"])
def test_rates_are_grouped_with_the_noise(fall: float) -> None:
    shares = [step / KINDS for step in range(KINDS)]
    kinds = [(0.01 + 0.02 * share, 1.2 + fall * (0.5 - share)) for share in shares]
    rounds = tuple(Rounds(PoissonProfile(1, rate, noise, two_sided=False, reverse=False), 3) for rate, noise in kinds)
    side = alike.grouped_alike({name: Bounds(rounds, rounds) for name in ("remove", "add")}, 0.05)["remove"]  # type: ignore[misc]
    assert side.kinds == KINDS
    assert sum(one.count for one in side.upper) == sum(one.count for one in side.lower) == 3 * KINDS
    assert max(len(side.upper), len(side.lower)) <= KINDS / 3
    for rate, noise in kinds:
        # By its profile, each round has a group above with no more noise and no smaller rate, and one below vice versa.
        for epsilon in (0.0, 0.1, 1.0, 3.0):
            delta = one_sided(epsilon, rate, noise)
            above, below = ([one.profile.graded() for one in kind] for kind in (side.upper, side.lower))
            assert any(one_sided(epsilon, one.rate, one.noise) >= delta for one in above if one is not None)
            assert any(one_sided(epsilon, one.rate, one.noise) <= delta for one in below if one is not None)


def test_only_rounds_of_which_it_is_proven_are_grouped() -> None:
    others = {
        "laplace": [LaplaceProfile(1.0, 20.0 + step) for step in range(KINDS)],
        "truncated": [TruncatedPoissonProfile(100, 20, 0.1, 2.0 + step, reverse=False) for step in range(KINDS)],
        "hardly any noise": [GaussianProfile(1.0, 1e-3 + 1e-9 * step) for step in range(KINDS)],
    }
    for parts in others.values():
        rounds = tuple(Rounds(part, 1) for part in parts)
        bounds = {side: Bounds(rounds, rounds) for side in ("remove", "add")}
        assert alike.grouped_alike(bounds, 0.5) == bounds  # type: ignore[arg-type, comparison-overlap]
    # Rounds whose ends are of different pairs, or of few kinds, are not grouped either.
    rounds = tuple(Rounds(GaussianProfile(1.0, 20.0 + 1e-3 * step), 1) for step in range(KINDS))
    for apart in (Bounds(rounds, rounds[1:]), Bounds(rounds, rounds, rounds[1:]), Bounds(rounds[:20], rounds[:20])):
        found = alike.grouped_alike({"remove": apart, "add": apart}, 0.5)
        assert found == {"remove": apart, "add": apart}


def test_a_tolerance_that_no_groups_keep_composes_all_kinds() -> None:
    data = json.loads(pyaccount.certify(schedule(1e-4)).to_json())
    assert data["evidence"]["alike"] is None
    assert data["guarantee"]["epsilon"] == truth_to(1e-4).upper


def test_without_a_tolerance_a_long_schedule_has_a_wider_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = pyaccount.compile(schedule(None))
    assert plan.tolerance == 5e-3
    assert pyaccount.compile(schedule(1e-3)).tolerance == 1e-3
    monkeypatch.setattr("pyaccount.plan.compiled.MANY", KINDS)
    assert plan.tolerance == 1e-4


@pytest.mark.parametrize(("factor", "holds"), [(1.0005, True), (0.9995, False)])
def test_a_claim_within_the_groups_width_is_decided_by_finer_ones(factor: float, holds: bool) -> None:
    truth = truth_to(1e-5).upper
    assert pyaccount.certify(schedule(epsilon=truth * factor)).holds is holds


def test_noise_that_is_solved_for_holds_and_its_neighbour_fails_by_all_kinds() -> None:
    document = schedule(epsilon=3.0)
    document["phases"].append(phase(0.0, noise={"multiplier": "solve"}, training={"iterations": 20}))
    solved = json.loads(pyaccount.certify(document).to_json())["solved"]

    def epsilon(value: float) -> Answer:
        document["phases"][-1]["noise"] = {"multiplier": value}
        return exact(document | {"privacy": document["privacy"] | {"epsilon": "solve"}})

    assert epsilon(solved["value"]).upper <= 3.0
    assert epsilon(solved["fails_at"]).upper >= 3.0
    assert solved["value"] <= 1.07 * solved["fails_at"]


def test_what_all_kinds_prove_is_confirmed_and_what_they_refute_is_refuted() -> None:
    plan = pyaccount.compile(schedule())
    instance, truth = plan.at(), truth_to(1e-5)
    stated = SimpleNamespace(guarantee=SimpleNamespace(delta=DELTA, epsilon=truth.upper))
    judge = ComposedCrossCheck(stated, plan, instance, Engine(), plan.tolerance)  # type: ignore[arg-type]
    upper, lower = (FieldPlace(("guarantee", "epsilon"), role, NATS) for role in (Role.UPPER, Role.LOWER))
    assert judge(upper, 1.0001 * truth.upper).agrees
    assert judge(lower, 0.9999 * truth.lower).agrees
    for place, value in ((upper, 0.9999 * truth.lower), (lower, 1.0001 * truth.upper)):
        outcome = judge(place, value)
        assert not outcome.agrees
        assert outcome.reason.startswith("refuted")
