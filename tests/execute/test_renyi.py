"""Guarantees by moments alone: against enumeration, each blank against the others, and what is refused."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from exact_documents import Truth
from gate_tools import save
from plain_documents import doc, sectioned, with_changes
from scipy.optimize import brentq  # type: ignore[import-untyped]
from scipy.stats import norm  # type: ignore[import-untyped]
from snapshots import Snapshot

import pyaccount
from pyaccount.execute.sampling.renyi import _crossing
from pyaccount.risk.polynomials import MomentPolynomial


def document(**changes: Any) -> dict[str, Any]:
    """Return b-min-sep sampling of four rounds, by moments; `section__key=value` changes it."""
    raw: dict[str, Any] = doc(
        "name=moments epsilon=2 delta=solve sampling_probability=0.2 iterations=4 sampler=b-min-sep",
        "min_separation=2 start=warm matrix=toeplitz coefficients=[1,0.6] multiplier=1.0 method=renyi seed=5",
        "profile=[]",
    )
    return with_changes(raw, changes)


def order_of(certificate: pyaccount.Certificate) -> int:
    sampling = certificate.data.evidence.sampling
    assert sampling is not None
    assert sampling.moment is not None
    return sampling.moment.order


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_delta_is_above_the_true_one_and_near_it(epsilon: float, tmp_path: Path) -> None:
    raw = document(privacy__epsilon=epsilon)
    certificate = pyaccount.certify(raw, threads=1)
    truth, guarantee = Truth(raw, tmp_path), certificate.data.guarantee
    exact = max(truth.delta("remove", epsilon), truth.delta("add", epsilon))
    assert guarantee.kind == "deterministic"
    assert guarantee.failure_probability == 0.0
    assert exact <= guarantee.delta < 12.0 * exact
    assert guarantee.delta_lower <= exact
    assert guarantee.delta_lower > 0.0


def test_every_blank_gives_the_same_mechanism() -> None:
    solved = pyaccount.certify(document(), threads=1)
    delta, order = solved.data.guarantee.delta, order_of(solved)
    epsilon = pyaccount.certify(document(privacy__epsilon="solve", privacy__delta=delta), threads=1)
    assert epsilon.data.guarantee.epsilon == pytest.approx(2.0, rel=1e-2)
    claimed = {"privacy__delta": delta, "noise__multiplier": "solve"}
    noise = pyaccount.certify(document(**claimed), threads=1)
    assert noise.data.solved is not None
    assert noise.data.solved.value == pytest.approx(1.0, rel=1e-2)
    assert noise.data.guarantee.kind == "deterministic"
    # The value found holds as a claim, and a slightly smaller one does not.
    sigma = float(noise.data.solved.value)
    held = pyaccount.certify(document(privacy__delta=delta, noise__multiplier=sigma), threads=1)
    assert held.data.holds
    assert held.data.guarantee.epsilon == 2.0
    missed = pyaccount.certify(document(privacy__delta=delta, noise__multiplier=0.98 * sigma), threads=1)
    assert not missed.data.holds
    assert missed.data.guarantee.kind == "deterministic"
    assert 2.0 < missed.data.guarantee.epsilon < 2.2
    assert {order_of(one) for one in (epsilon, noise, held, missed)} <= {order - 1, order, order + 1}


@pytest.mark.parametrize("sigma", [1.0, 0.35])
def test_an_epsilon_is_the_one_at_which_moments_give_delta(sigma: float) -> None:
    raw = document(privacy__epsilon="solve", privacy__delta=1e-6, noise__multiplier=sigma)
    certificate = pyaccount.certify(raw, threads=1)
    moment, guarantee = certificate.data.evidence.sampling.moment, certificate.data.guarantee
    m = moment.order
    log = moment.log_moment + (m - 1) * math.log(m - 1) - m * math.log(m)
    single = (log - math.log(1e-6)) / (m - 1)
    if moment.polynomial is None:
        # With little noise, orders are too small for more than one moment.
        assert m < 4
        assert guarantee.epsilon == pytest.approx(single, rel=1e-9)
    else:
        assert guarantee.epsilon < 0.995 * single
        bounds = zip(moment.polynomial.log_moments_lower, moment.polynomial.log_moments_upper, strict=True)
        found = MomentPolynomial(tuple(moment.polynomial.coefficients), tuple(bounds))
        assert found.dominates
        assert found.bound(guarantee.epsilon) == pytest.approx(moment.remove, rel=1e-9)
        assert found.bound(0.999 * guarantee.epsilon) > 1e-6
    assert (moment.polynomial is None) == (sigma < 1.0)
    assert moment.remove <= 1e-6
    assert moment.add <= 1e-6


@pytest.mark.nightly(but=["delta", "multiplier"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"privacy__epsilon": "solve", "privacy__delta": 1e-5},
        {"privacy__delta": 1e-4, "noise__multiplier": "solve"},
        {"privacy__delta": 1e-5},
    ],
    ids=["delta", "epsilon", "multiplier", "claim that fails"],
)
def test_it_is_recomputed_and_retested(changes: dict[str, Any], tmp_path: Path) -> None:
    certificate = pyaccount.certify(document(accounting__profile=[1, 3], **changes), threads=1)
    assert pyaccount.verify(certificate, threads=1).agrees
    assert pyaccount.verify(certificate, threads=1, seed=77).agrees
    # If a bound was the blank, a smaller one cannot be found.
    raw = json.loads(certificate.to_json())
    blank = {"delta", "epsilon"} & {key for key in ("delta", "epsilon") if raw["document"]["privacy"][key] == "solve"}
    for key in blank:
        raw["guarantee"][key] *= 0.9
        assert not pyaccount.verify(save(tmp_path, raw), threads=1, seed=77).agrees


def test_what_holds_without_amplification_is_taken_where_it_is_less() -> None:
    raw = document(training__sampling_probability=1.0, privacy__epsilon="solve", privacy__delta=1e-5)
    certificate = pyaccount.certify(raw, threads=1)
    assert certificate.data.guarantee.epsilon <= certificate.data.unamplified.epsilon * (1.0 + 1e-9)
    assert certificate.data.guarantee.kind == "deterministic"


def test_noise_that_needs_no_amplification_is_that_of_one_gaussian_mechanism() -> None:
    # Rounds 1 and 3 of four have columns that do not overlap and have norm 1: μ = √2/σ (Balle & Wang 2018, Theorem 8).
    def excess(sigma: float) -> float:
        mu = math.sqrt(2.0) / sigma
        return float(norm.cdf(mu / 2 - 2 / mu) - math.exp(2) * norm.cdf(-mu / 2 - 2 / mu)) - 1e-5

    raw = document(
        training__sampling_probability=1.0, sampler__start="cold", privacy__delta=1e-5, noise__multiplier="solve"
    )
    certificate = pyaccount.certify(raw, threads=1)
    exact = brentq(excess, 1.0, 10.0)
    assert certificate.data.solved is not None
    assert exact <= float(certificate.data.solved.value) <= exact * (1.0 + 3e-4)
    assert "no moment improved on" in certificate.data.evidence.engine


@pytest.mark.parametrize(
    "changes",
    [
        {"sampler": {"kind": "poisson"}, "matrix": {"kind": "identity"}},
        {"sampler": {"kind": "balls-in-bins"}, "training": {"iterations": 4, "participation_rate": 0.25}},
        {"privacy": {"adjacency": "replace-one", "epsilon": 2, "delta": "solve"}},
        {"accounting": {"method": "renyi", "verification": "fixed-sample"}},
        sectioned(
            "dataset_size=200 sampling_probability=0.1 iterations=4 sampler=b-min-sep min_separation=2 truncate_to=20"
        ),
    ],
    ids=["poisson", "balls in bins", "replaced", "fixed sample", "truncated"],
)
def test_what_has_no_moments_is_refused_at_its_place(changes: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.certify(document(**changes), threads=1))


def test_claims_that_no_moment_proves_are_said_to_be_so(snapshot: Snapshot) -> None:
    # W_m is at least c_m e^{−(m−1)ε} at any σ: about 1/(em) here.
    with snapshot.raises(pyaccount.NumericsError):
        pyaccount.certify(
            document(privacy={"adjacency": "zero-out", "epsilon": 1e-3, "delta": 1e-5}, noise__multiplier="solve")
        )


@pytest.mark.parametrize("start", [0.5, 3.0, 40.0])
def test_a_bound_that_jumps_is_crossed_where_it_jumps(start: float) -> None:
    """A bound of few busy replicas is infinite up to some σ, and may be far below the claim from there on."""

    def excess(sigma: float) -> float:
        return 70.0 if sigma < 2.345 else -30.0 - sigma

    sigma, _ = _crossing(excess, start, -10.0, 5e-4)
    assert 2.345 <= sigma < 2.345 * (1.0 + 2e-6)


def test_a_time_limit_ends_the_search() -> None:
    raw = document(
        privacy={"adjacency": "zero-out", "epsilon": 1, "delta": 1e-5},
        training={"participation_rate": 0.01, "iterations": 2000},
        sampler={"kind": "b-min-sep", "min_separation": 8},
        matrix={"kind": "banded-square-root", "bands": 8},
        noise={"multiplier": "solve"},
    )
    with pytest.raises(pyaccount.LimitError):
        pyaccount.certify(raw, threads=1, time_limit=0.5)
