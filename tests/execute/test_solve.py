"""The blank: the value returned holds, its neighbour fails, and impossible targets are refused with the reason."""

import importlib
import math
from dataclasses import dataclass
from typing import Any

import oracle
import pytest
from plain_documents import document
from snapshots import Snapshot

import pyaccount
from pyaccount._core import RoundProfile, answer_all
from pyaccount.execute.progress import silent

solving = importlib.import_module("pyaccount.execute.solve")


@dataclass
class Told:
    """A stand-in for an interval that is as narrow as the engine can make it."""

    lower: float
    upper: float
    within_tolerance: bool = False


class Untold:
    """A bound whose interval cannot be narrowed: candidates between two values get no verdict."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: float, holds: float) -> None:
        self.fails, self.holds, self.asked = fails, holds, list[float]()
        monkeypatch.setattr(solving, "decide", self.decide)

    def decide(self, instance: Any, engine: Any, tolerance: float) -> Any:
        privacy, bodies = instance.document.privacy, list(instance.document.runs())
        value = bodies[0].noise.multiplier if privacy.epsilon == 2 else bodies[0].training.iterations
        self.asked.append(value)
        rising = self.holds < self.fails
        below, above = value <= min(self.holds, self.fails), value >= max(self.holds, self.fails)
        holds, fails = (below, above) if rising else (above, below)
        excess = math.log(value / math.sqrt(self.holds * self.fails)) * (1 if rising else -1)
        # The upper end meets the target at the value that holds; the lower end exceeds it at the value that fails.
        ends = [privacy.epsilon * (value / known) ** (1 if rising else -1) for known in (self.holds, self.fails)]
        return solving.CandidateVerdict(holds, fails, excess, Told(min(ends), max(ends)))  # type: ignore[arg-type]


def test_noise_that_cannot_be_told_is_enclosed_from_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Untold(monkeypatch, fails=0.93, holds=1.07)
    plan = pyaccount.compile(document(noise__multiplier="solve"))
    found = solving.solve(plan, None, silent)  # type: ignore[arg-type]
    assert 1.07 <= found.value <= 1.07 * (1 + 1e-4)
    assert found.fails_at is not None
    assert 0.93 * (1 - 1e-4) <= found.fails_at <= 0.93
    # The search follows each end of the interval to the target, from a bracket of a factor of a few down to 1e-4.
    assert len(engine.asked) <= 15


def test_rounds_that_cannot_be_told_are_enclosed_from_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Untold(monkeypatch, fails=1234, holds=1000)
    plan = pyaccount.compile(document(privacy__epsilon=3, training__iterations="solve", accounting__tolerance=1e-6))
    found = solving.solve(plan, None, silent)  # type: ignore[arg-type]
    assert (found.value, found.fails_at) == (1000, 1234)
    assert len(engine.asked) <= 40


def epsilon_of(p: float, sigma: float, count: int, delta: float, group: int = 1) -> tuple[float, float]:
    """Return the proven interval at a fine tolerance, directly from the core."""
    profile = RoundProfile.poisson(group, p, sigma, two_sided=False, reverse=False)
    found = answer_all([([(profile, count)], None, delta, 1e-6)])[0]
    return found.lower, found.upper


@pytest.mark.parametrize("target", [0.1, 1.0, 8.0, 60.0])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_noise_never_overshoots_and_is_nearly_the_smallest(target: float, tolerance: float) -> None:
    certificate = pyaccount.certify(
        document(privacy__epsilon=target, noise__multiplier="solve", accounting={"profile": [], "tolerance": tolerance})
    )
    sigma = certificate.noise_multiplier
    assert sigma is not None
    assert certificate.holds
    assert certificate.epsilon <= target
    assert epsilon_of(0.01, sigma, 400, 1e-6)[0] <= target
    # A σ that is smaller by the tolerance misses the target.
    assert epsilon_of(0.01, sigma / (1 + 1.01 * tolerance), 400, 1e-6)[1] > target
    solved = certificate.data.solved
    assert solved is not None
    assert solved.fails_at is not None
    assert solved.fails_at < solved.value <= solved.fails_at * (1 + tolerance) * (1 + 1e-12)
    assert epsilon_of(0.01, solved.fails_at, 400, 1e-6)[1] > target


def test_noise_without_sampling_matches_the_closed_form() -> None:
    certificate = pyaccount.certify(
        document(sampler={"kind": "none"}, training={"iterations": 49}, noise__multiplier="solve")
    )
    assert certificate.noise_multiplier is not None
    exact = float(oracle.gaussian_epsilon(7.0 / certificate.noise_multiplier, 1e-6))
    assert exact == pytest.approx(2.0, rel=3e-4)
    assert exact <= 2.0


def test_iterations_is_the_largest() -> None:
    certificate = pyaccount.certify(document(training__iterations="solve"))
    n = certificate.data.phases[0].iterations
    assert epsilon_of(0.01, 1.0, n, 1e-6)[1] <= 2.0
    assert epsilon_of(0.01, 1.0, n + 1, 1e-6)[0] > 2.0


def test_group_size_is_the_largest() -> None:
    certificate = pyaccount.certify(document(privacy__group_size="solve", privacy__epsilon=9))
    k = certificate.data.privacy.group_size
    assert epsilon_of(0.01, 1.0, 400, 1e-6, k)[1] <= 9.0
    assert epsilon_of(0.01, 1.0, 400, 1e-6, k + 1)[0] > 9.0


def test_batch_is_the_largest() -> None:
    certificate = pyaccount.certify(document(training__expected_batch_size="solve"))
    solved = certificate.data.solved
    assert solved is not None
    assert epsilon_of(solved.value / 10_000, 1.0, 400, 1e-6)[1] <= 2.0
    assert epsilon_of((solved.value + 1) / 10_000, 1.0, 400, 1e-6)[0] > 2.0


def test_delta_blank_inverts_epsilon_blank() -> None:
    forward = pyaccount.certify(document(privacy__epsilon="solve"))
    backward = pyaccount.certify(document(privacy__epsilon=forward.epsilon, privacy__delta="solve"))
    assert backward.data.guarantee.delta_lower <= 1e-6 <= 1.001 * backward.delta


def test_a_claim_is_checked() -> None:
    at = pyaccount.certify(document(privacy__epsilon="solve"))
    assert pyaccount.certify(document(privacy__epsilon=at.epsilon * 1.001)).holds
    refuted = pyaccount.certify(document(privacy__epsilon=at.epsilon_lower * 0.999))
    assert not refuted.holds
    assert "is not" in refuted.statement
    # The certificate of a refuted claim still states the bounds that do hold.
    assert refuted.epsilon > refuted.epsilon_lower > at.epsilon_lower * 0.999


def test_a_claim_within_the_default_interval_is_decided_by_narrowing() -> None:
    lower, upper = epsilon_of(0.01, 1.0, 400, 1e-6)
    assert pyaccount.certify(document(privacy__epsilon=upper * (1 + 1e-6))).holds
    assert not pyaccount.certify(document(privacy__epsilon=lower * (1 - 1e-6))).holds


def test_zero_epsilon_is_total_variation() -> None:
    certificate = pyaccount.certify(document(privacy__epsilon=0, privacy__delta="solve"))
    assert certificate.epsilon == 0.0
    assert 0.0 < certificate.data.guarantee.delta_lower <= certificate.delta < 1.0


@pytest.mark.parametrize(
    "changes",
    [
        {"noise__multiplier": "solve", "privacy__delta": 0.999},
        {"training__iterations": "solve", "privacy__epsilon": 1e-3},
        {"privacy__group_size": "solve", "privacy__epsilon": 0.1},
        {"noise__multiplier": "solve", "privacy__epsilon": 0, "privacy__delta": 1e-12},
    ],
)
def test_impossible_targets_are_refused(changes: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.certify(document(**changes)))


def test_phases_and_counts_are_one_computation() -> None:
    body = {k: document()[k] for k in ("training", "sampler", "noise")}
    head = {k: v for k, v in document(privacy__epsilon="solve").items() if k not in body}
    counted = pyaccount.certify({**head, **body, "count": 3})
    phased = pyaccount.certify({**head, "phases": [body, body, body]})
    longer = pyaccount.certify({**head, **body, "training": {**body["training"], "iterations": 1200}})
    assert counted.epsilon == phased.epsilon == longer.epsilon
    for event in [{"sampler": {"kind": "none"}, "training": {"iterations": 9}}, {"sampler": {"kind": "fixed-size"}}]:
        one = {**body, **event}
        counted = pyaccount.certify({**head, **one, "count": 3})
        phased = pyaccount.certify({**head, "phases": [one, one, one]})
        assert counted.epsilon == phased.epsilon


def test_the_order_of_phases_does_not_matter() -> None:
    body = {k: document()[k] for k in ("training", "sampler", "noise")}
    other = {**body, "noise": {"multiplier": 2.0}, "sampler": {"kind": "none"}, "training": {"iterations": 3}}
    head = {k: v for k, v in document(privacy__epsilon="solve").items() if k not in body}
    assert (
        pyaccount.certify({**head, "phases": [body, other]}).epsilon
        == pyaccount.certify({**head, "phases": [other, body]}).epsilon
    )


def test_closed_form_and_engine_agree() -> None:
    plain = {"sampler": {"kind": "none"}, "training": {"iterations": 30}, "noise__multiplier": 4.0}
    auto = pyaccount.certify(document(**plain, privacy__epsilon="solve"))
    engine = pyaccount.certify(document(**plain, privacy__epsilon="solve", accounting={"method": "pld", "profile": []}))
    assert auto.data.evidence.compositions[0].transform_length == 0
    assert engine.data.evidence.compositions[0].transform_length > 0
    assert engine.epsilon_lower <= auto.epsilon
    assert auto.epsilon_lower <= engine.epsilon
    exact = float(oracle.gaussian_epsilon(math.sqrt(30) / 4.0, 1e-6))
    assert auto.epsilon_lower <= exact <= auto.epsilon
    assert auto.epsilon - auto.epsilon_lower < 1e-9


def test_participations_follow_from_separation() -> None:
    def epsilon(**sampler: int) -> float:
        return pyaccount.certify(
            document(
                sampler={"kind": "none", **sampler},
                training={"iterations": 100},
                noise__multiplier=5.0,
                privacy__epsilon="solve",
            )
        ).epsilon

    assert epsilon(min_separation=30) == epsilon(max_participations=4)
    assert epsilon(min_separation=30, max_participations=2) == epsilon(max_participations=2)
    assert epsilon(max_participations=100) == epsilon()
