"""Documents with sampled and composed phases: against composition alone, every blank, the fallback, and refusals."""

import json
import math
from typing import Any

import pytest
from plain_documents import doc, sectioned
from scipy.stats import norm
from snapshots import Snapshot

import pyaccount
from pyaccount import cli

#: Poisson sampling, which composes; b-min-sep sampling with b = 1 is the same mechanism, but sampled.
POISSON: dict[str, Any] = {"kind": "poisson"}
SAMPLED: dict[str, Any] = {"kind": "b-min-sep", "min_separation": 1, "start": "cold"}
#: This case is recognised and composed, unless the matrix is a list.
LISTED = {"kind": "toeplitz", "coefficients": [1.0]}


def body(sampler: dict[str, Any], p: float, n: int, sigma: Any, **changes: Any) -> dict[str, Any]:
    training = {"sampling_probability": p, "iterations": n}
    matrix = {"matrix": LISTED} if sampler is SAMPLED else {}
    return {"training": training, "sampler": sampler, "noise": {"multiplier": sigma}} | matrix | changes


def document(*phases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return doc(name="mixed", epsilon=2.0, delta="solve", phases=list(phases), seed=7, profile=[0.5, 2.0]) | changes


LAPLACE = {"training": {"iterations": 1}, "sampler": {"kind": "none"}, "noise": {"kind": "laplace", "multiplier": 6}}


def agree(sampled: pyaccount.Certificate, composed: pyaccount.Certificate, width: float = 1.3) -> None:
    """Intervals overlap, upper ends are close, curves enclose the truth, and estimates are within their errors."""
    first, second = sampled.data.guarantee, composed.data.guarantee
    assert (first.kind, second.kind) == ("confidence", "deterministic")
    assert first.delta_lower <= second.delta
    assert second.delta_lower <= first.delta < width * second.delta
    assert first.epsilon_lower <= second.epsilon
    for one, other in zip(sampled.data.profile, composed.data.profile, strict=True):
        assert one.delta_lower <= other.delta
        assert other.delta_lower <= one.delta
        assert one.delta_estimate is not None
        assert one.standard_error is not None
        # An estimate may also be off by half the width of the bins and of the table.
        assert other.delta_lower - 5.0 * one.standard_error <= one.delta_estimate * 1.01
        assert one.delta_estimate <= (other.delta + 5.0 * one.standard_error) * 1.01


@pytest.mark.nightly(but=["zero-out", "replace-one"])
@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_a_sampled_phase_beside_a_composed_one_is_both_composed(adjacency: str) -> None:
    privacy = {"adjacency": adjacency, "epsilon": 2.0, "delta": "solve"}
    phases = [body(POISSON, 0.1, 20, 1.2), body(POISSON, 0.05, 30, 1.0), LAPLACE]
    composed = pyaccount.certify(document(*phases, privacy=privacy))
    phases[1] = body(SAMPLED, 0.05, 30, 1.0)
    sampled = pyaccount.certify(document(*phases, privacy=privacy))
    agree(sampled, composed)
    sampling = sampled.data.evidence.sampling
    assert sampling is not None
    curve = sampling.composed_curve
    assert curve is not None
    assert 0.0 < curve.tail_mass < 1e-3 * sampled.delta
    assert curve.reach > 1.0
    sources = {line.source for line in sampled.data.evidence.error_budget}
    assert any("beyond their curve" in source for source in sources)
    assert [phase.sampler for phase in sampled.data.phases] == ["poisson", "b-min-sep", "none"]
    assert len(sampled.data.reductions) == 3
    # The certificate's own profile draws new samples, weighed with the same curve.
    reread = pyaccount.Certificate.from_json(sampled.to_json())
    lower, upper = reread.profile.delta(epsilon=1.0)
    truth = composed.profile.delta(epsilon=1.0)
    assert lower <= truth.upper
    assert truth.lower <= upper < 1.6 * truth.upper


@pytest.mark.nightly(but=["True"])
@pytest.mark.parametrize("laplace", [False, True])
def test_several_sampled_phases_and_repeats(laplace: bool) -> None:
    rest = [LAPLACE] if laplace else []
    composed = pyaccount.certify(document(body(POISSON, 0.1, 10, 1.2, count=2), body(POISSON, 0.05, 20, 1.0), *rest))
    phases = [body(SAMPLED, 0.1, 10, 1.2, count=2), body(SAMPLED, 0.05, 20, 1.0), *rest]
    sampled = pyaccount.certify(document(*phases))
    agree(sampled, composed)
    assert sampled.data.reductions[0].rounds == "2 × 10"
    assert any("independently of one another" in text for text in sampled.data.assumptions)
    sampling = sampled.data.evidence.sampling
    assert sampling is not None
    assert all(len(test.proposal.further) == 1 for test in sampling.tests)
    assert (sampling.composed_curve is None) != laplace


def test_one_sampled_body_that_is_repeated() -> None:
    """Two Poisson phases are sampled if the document asks for it, at its top level or by the method of sampling."""
    privacy = {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-2}
    head = {key: value for key, value in document().items() if key != "phases"} | {"privacy": privacy}
    composed = pyaccount.certify(head | body(POISSON, 0.1, 10, 1.0, count=3))
    sampled = pyaccount.certify(head | body(SAMPLED, 0.1, 10, 1.0, count=3))
    accounting = {"seed": 1, "profile": [], "method": "monte-carlo"}
    phased = pyaccount.certify(
        head | {"phases": [body(POISSON, 0.1, 20, 1.0), body(POISSON, 0.1, 10, 1.0)]} | {"accounting": accounting}
    )
    for one in (sampled, phased):
        assert one.data.guarantee.kind == "confidence"
        assert composed.epsilon_lower <= one.epsilon < 1.03 * composed.epsilon
        assert one.epsilon_lower <= composed.epsilon


@pytest.mark.parametrize("blank", [0, 1], ids=["sampled", "composed"])
def test_the_noise_of_either_phase_may_be_the_blank(blank: int) -> None:
    """The σ found meets the target by composition alone, and a slightly smaller σ does not."""
    privacy = {"adjacency": "add-remove", "epsilon": 2.0, "delta": 5e-4}
    sigmas: list[Any] = [1.2, 1.1]
    sigmas[blank] = "solve"
    solved = pyaccount.certify(
        document(body(SAMPLED, 0.05, 30, sigmas[0]), body(POISSON, 0.05, 40, sigmas[1]), privacy=privacy)
    )
    assert solved.data.guarantee.kind == "verified"
    assert solved.data.solved is not None
    sigma = float(solved.data.solved.value)
    assert solved.data.solved.path == f"phases[{blank}].noise.multiplier"
    for factor, holds in ((1.0, True), (0.96, False)):
        sigmas[blank] = factor * sigma
        checked = document(body(POISSON, 0.05, 30, sigmas[0]), body(POISSON, 0.05, 40, sigmas[1]), privacy=privacy)
        assert pyaccount.certify(checked).holds == holds
    # A claim without a blank is tested.
    sigmas[blank] = 1.03 * sigma
    claimed = document(body(SAMPLED, 0.05, 30, sigmas[0]), body(POISSON, 0.05, 40, sigmas[1]), privacy=privacy)
    assert pyaccount.certify(claimed).data.guarantee.kind == "verified"


def test_the_fixed_sample_test_weighs_samples_too() -> None:
    privacy = {"adjacency": "zero-out", "epsilon": 2.0, "delta": 2e-3}
    phases = [body(SAMPLED, 0.1, 10, 1.5), body(POISSON, 0.1, 10, 1.5), LAPLACE]
    accounting = {"seed": 7, "profile": [], "verification": "fixed-sample"}
    certificate = pyaccount.certify(document(*phases, privacy=privacy, accounting=accounting))
    assert certificate.data.guarantee.kind == "verified"
    composed = document(body(POISSON, 0.1, 10, 1.5), *phases[1:], accounting={"profile": []})
    assert composed["privacy"] == privacy | {"delta": "solve"}
    truth = pyaccount.certify(composed)
    sampling = certificate.data.evidence.sampling
    assert sampling is not None
    for test in sampling.tests:
        # If no sample had a loss above ε, there is no standard error.
        assert test.mean <= truth.delta + 5.0 * (test.standard_error or 0.0)


def test_without_randomness_the_fallback_keeps_the_amplification_of_the_others() -> None:
    """p = 1 and b = n from a cold start are one Gaussian round, composed with the Poisson phase as it is analysed."""
    certain = body(
        {"kind": "b-min-sep", "min_separation": 4, "start": "cold"}, 1.0, 4, "solve", matrix={"kind": "identity"}
    )
    privacy = {"adjacency": "zero-out", "epsilon": 2.0, "delta": 1e-4}
    rest = body(POISSON, 0.02, 200, 1.0)
    certificate = pyaccount.certify(document(certain, rest, privacy=privacy))
    assert certificate.holds
    assert certificate.data.guarantee.kind == "deterministic"
    assert "public participations" in certificate.data.evidence.engine
    assert {line.direction for line in certificate.data.evidence.error_budget} == {"remove", "add"}
    assert certificate.data.solved is not None
    sigma = float(certificate.data.solved.value)
    once = {"training": {"iterations": 1}, "sampler": {"kind": "none"}}
    for factor, holds in ((1.0, True), (0.98, False)):
        gaussian = once | {"noise": {"multiplier": factor * sigma}}
        assert pyaccount.certify(document(gaussian, rest, privacy=privacy)).holds == holds
    # The contrast is for participation in every round.
    delta, epsilon = certificate.data.unamplified.delta, certificate.data.unamplified.epsilon
    assert epsilon is not None
    mu = math.sqrt(1.0 / sigma**2 + 200.0)
    expected = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
    assert expected == pytest.approx(delta, rel=1e-3)


def test_composed_phases_that_miss_the_target_alone_are_infeasible(snapshot: Snapshot) -> None:
    privacy = {"adjacency": "zero-out", "epsilon": 0.5, "delta": 1e-6}
    snapshot.raised(
        pyaccount.certify, document(body(SAMPLED, 0.05, 10, "solve"), body(POISSON, 0.1, 100, 1.0), privacy=privacy)
    )


def test_bounds_that_are_not_tight_enclose() -> None:
    """A fixed-size phase has an upper bound and a concrete pair as its lower bound, and so has the composition."""
    fixed = sectioned(dataset_size=200, expected_batch_size=4, iterations=20, sampler="fixed-size", multiplier=1.5)
    composed = pyaccount.certify(document(fixed, body(POISSON, 0.05, 30, 1.0))).data.guarantee
    sampled = pyaccount.certify(document(fixed, body(SAMPLED, 0.05, 30, 1.0))).data.guarantee
    assert composed.delta * 0.99 <= sampled.delta < 1.3 * composed.delta
    assert 0.5 * composed.delta_lower < sampled.delta_lower <= composed.delta


def test_threads_change_nothing() -> None:
    privacy = {"adjacency": "zero-out", "epsilon": 1.0, "delta": "solve"}
    phases = [body(SAMPLED, 0.1, 4, 1.2), body(POISSON, 0.1, 10, 1.2), LAPLACE]
    plan = pyaccount.compile(document(*phases, privacy=privacy))
    first, second = (json.loads(plan.run(threads=threads).to_json()) for threads in (1, 2))
    for name in ("created", "content_sha256"):
        del first[name], second[name]
    assert first == second


def test_plans_say_what_is_done(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mixed.yaml"
    path.write_text(json.dumps(document(body(SAMPLED, 0.1, 10, 1.2, count=2), LAPLACE)))
    assert cli.run(["plan", str(path)]) == 0
    shown = capsys.readouterr().out
    for words in ("phases[0]", "phases[1]", "weighed", "2 × 10", "fewer samples"):
        assert words in shown
    assert cli.run(["plan", str(path), "--estimate"]) == 0
    assert "not a guarantee" in capsys.readouterr().out


USERS = sectioned(
    "sampling_probability=0.01 iterations=8 sampler=user-b-min-sep records_per_user=2 attribution=single",
    "min_separation=4 multiplier=1.0",
)
REFUSED: list[Any] = [
    ([USERS, body(POISSON, 0.1, 10, 1.0)], {}),
    ([LAPLACE, USERS], {}),
    (
        [body(SAMPLED, 0.1, 10, 1.0), LAPLACE],
        {"privacy": {"adjacency": "zero-out", "epsilon": 1.0, "delta": 1e-3, "group_size": 65}},
    ),
    ([body(SAMPLED, 0.1, 10, 1.0), LAPLACE], {"accounting": {"method": "pld"}}),
    (
        [body(SAMPLED, 0.1, 10, 1.0), body(POISSON, 0.1, "solve", 1.0)],
        {"privacy": {"adjacency": "zero-out", "epsilon": 1.0, "delta": 1e-3}},
    ),
]


@pytest.mark.parametrize(("phases", "changes"), REFUSED)
def test_what_has_no_valid_composition_is_refused(
    phases: list[dict[str, Any]], changes: dict[str, Any], snapshot: Snapshot
) -> None:
    snapshot.raised(lambda: pyaccount.compile(document(*phases, **changes)))


def test_users_stand_beside_users() -> None:
    """Two phases protect users: one shares records and composes, the other shares none and is sampled."""
    shared = USERS | {"sampler": USERS["sampler"] | {"attribution": "shared"}, "noise": {"multiplier": 3.0}}
    certificate = pyaccount.certify(document(USERS, shared))
    assert certificate.data.privacy.unit == "user"
    assert certificate.data.guarantee.kind == "confidence"
    alone = pyaccount.certify(document(shared))
    assert alone.data.guarantee.delta_lower <= certificate.delta


def test_error_bars_count_the_width_of_the_composed_curve() -> None:
    """The sampled phase hardly matters here: samples do not show how wide the composed curve is, but the errors do."""
    sampled = sectioned(
        "sampling_probability=1e-7 iterations=2 sampler=b-min-sep min_separation=2 start=cold",
        "matrix=banded-square-root bands=2 multiplier=5",
    )
    unsampled = sectioned(iterations=1, sampler="none", max_participations=1, multiplier=1.3)
    document = doc("name=beside delta=1e-4 seed=3 profile=[0,0.5,1,2,3]", phases=[sampled, unsampled])
    data = pyaccount.certify(document).data
    mu = 1.0 / 1.3
    for point in data.directions.remove.profile:
        # The first phase changes δ by at most its total variation, 2e-7.
        exact = norm.cdf(mu / 2 - point.epsilon / mu) - math.exp(point.epsilon) * norm.cdf(-mu / 2 - point.epsilon / mu)
        assert point.delta_estimate is not None
        assert point.standard_error is not None
        assert abs(point.delta_estimate - exact) <= 3.0 * point.standard_error + 2e-7
