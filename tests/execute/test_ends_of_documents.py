"""Documents at the limits of what may be written: closed forms at any size, and refusals that name the place."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_documents import doc, document, sectioned
from scipy import integrate, stats
from snapshots import Snapshot

import pyaccount
from pyaccount.document.loading import load
from pyaccount.execute.certified import CertifiedNumbers
from pyaccount.execute.curve import MOST, CurvePoint, points_between
from pyaccount.execute.engine import Answer, Engine
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.execute import execute_sampled
from pyaccount.execute.sampling.lower_ends import AWAY, _enough
from pyaccount.plan.compiling import compile_document


def test_the_gaussian_mechanism_of_a_long_run_with_hardly_any_noise_is_certified() -> None:
    mechanism = document(
        privacy={"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
        training={"iterations": 10**9},
        sampler={"kind": "none"},
        noise={"multiplier": 1e-6},
    )
    guarantee = pyaccount.certify(mechanism).data.guarantee
    # ε = μ²/2 + μ·Φ⁻¹(1 − δ) up to a smaller term, with μ² = n/σ².
    mu = math.sqrt(1e9) / 1e-6
    exact = 0.5 * mu * mu + mu * 4.264890793922825
    assert guarantee.epsilon_lower <= exact * (1 + 1e-12)
    assert exact * (1 - 1e-12) <= guarantee.epsilon <= exact * (1 + 1e-5)


def test_points_of_a_picture_are_few_wherever_a_profile_falls() -> None:
    points = [CurvePoint(0.0, 1.0), CurvePoint(4.4e20, 1.0), CurvePoint(5e20, 0.5), CurvePoint(5.000000001e20, 1e-5)]
    assert len(points_between([*points, CurvePoint(5.6e20, 1e-300)], 1e-300)) <= 4 * MOST


@pytest.mark.parametrize(("noise_multiplier", "least"), [(0.6, 16.733), (0.605, 16.534)])
def test_users_that_share_records_are_certified_in_numbers(noise_multiplier: float, least: float) -> None:
    mechanism = document(
        privacy={"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
        training={"sampling_probability": 0.51, "iterations": 2},
        sampler={
            "kind": "user-b-min-sep",
            "records_per_user": 2,
            "attribution": "shared",
            "min_separation": 2,
            "start": "cold",
        },
        noise={"multiplier": noise_multiplier},
    )
    data = pyaccount.certify(mechanism).data
    # ε is never larger than with two records in a round for certain.
    assert data.unamplified.epsilon is not None
    assert least <= data.guarantee.epsilon_lower <= data.guarantee.epsilon <= data.unamplified.epsilon
    assert all(math.isfinite(one.upper) for one in data.evidence.compositions)


@pytest.mark.parametrize("entries", [[1e-310], [5e-324, 5e-324]])
def test_a_matrix_too_small_to_be_scaled_is_refused_at_its_place(entries: list[float], snapshot: Snapshot) -> None:
    mechanism = document(
        training={"iterations": 20},
        sampler={"kind": "none"},
        privacy={"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
        matrix={"kind": "toeplitz", "coefficients": entries},
    )
    snapshot.raised(pyaccount.certify, mechanism)
    # This is the same matrix at a size that can be scaled.
    certified = pyaccount.certify(
        {**mechanism, "matrix": {"kind": "toeplitz", "coefficients": [e * 1e300 for e in entries]}}
    )
    assert certified.data.guarantee.epsilon > 0.0


@pytest.mark.usefixtures("in_tmp_path")
def test_a_dense_matrix_too_small_to_be_scaled_is_refused_at_its_place(tmp_path: Path, snapshot: Snapshot) -> None:
    np.save(tmp_path / "small.npy", np.tril(np.full((4, 4), 1e-310)))
    mechanism = document(
        training={"iterations": 4},
        sampler={"kind": "none"},
        privacy={"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
        matrix={"kind": "dense", "file": str(tmp_path / "small.npy")},
    )
    snapshot.raised(pyaccount.certify, mechanism)


# ---- The proposals and the number of samples for lower ends, and powers that other proposals are better than


ALLOCATION: dict[str, Any] = doc(
    "name=allocation adjacency=add-remove iterations=40 multiplier=1.0 method=monte-carlo seed=7 profile=[] tolerance=0.005",
    sampler={"kind": "random-allocation", "iterations_per_allocation": 40, "participations": 3},
)
#: If ε and δ are both tiny, a sample of the second power is often 0.
TINY: dict[str, Any] = doc(
    "name=tiny adjacency=add-remove epsilon=0.05469 delta=solve iterations=3 sampling_probability=0.05",
    "sampler=cyclic-poisson partitions=2 phase=random matrix=identity multiplier=2.9 seed=3 profile=[]",
)


def executed(document: dict[str, Any]) -> CertifiedNumbers:
    return execute_sampled(compile_document(load(document)), RunOptions(threads=1, seed=7))


def test_a_lower_end_is_as_near_as_the_tolerance_says() -> None:
    found = executed(ALLOCATION)
    # The tolerance is 0.5 %, and the least value that a test accepts is as far above the true one.
    assert 0.987 * found.guarantee.epsilon < found.guarantee.epsilon_lower < found.guarantee.epsilon


def test_a_power_that_takes_long_is_compared_with_scaled_means() -> None:
    found = executed(TINY)
    assert found.evidence.sampling is not None
    removals = [test for test in found.evidence.sampling.tests if test.direction == "remove"]
    assert all(test.accepted and test.proposal.order is None for test in removals)
    # By the second power the last test alone would take 15 million samples.
    assert sum(test.samples for test in removals) < 3_000_000
    assert found.guarantee.delta_lower > 0.5 * found.guarantee.delta


@pytest.mark.parametrize(
    ("needed", "shards"),
    [
        ((1e5, 2e5, 1e6), 254),
        ((1e5, math.inf, 1e6), 127),
        # Lower ends that are possible only far away, or nearer than asked for, are not sought.
        ((math.inf, math.inf, 1e6), 0),
    ],
)
def test_so_many_samples_are_drawn_that_a_lower_end_is_near(needed: tuple[float, ...], shards: int) -> None:
    assert _enough((0.02, 0.01, 0.005), needed, 0.01) == shards
    assert _enough((0.2, 0.1, 0.05), needed, 0.04 / AWAY) == 0


# ---- Claims of an ε near zero at a δ that is hardly below δ(0): judged by δ at this ε, with little work


pytestmark = pytest.mark.usefixtures("without_profiles")

POISSON: dict[str, Any] = sectioned(
    dataset_size=60_000, expected_batch_size=256, iterations=1000, sampler="poisson", multiplier=1
)
TWO: dict[str, Any] = {
    "phases": [{"mechanism": {"kind": "gaussian", "sigma": 10}}, {"mechanism": {"kind": "laplace", "scale": 10}}]
}


def claimed(body: dict[str, Any], epsilon: float, delta: float) -> Any:
    privacy = {"adjacency": "zero-out", "epsilon": epsilon, "delta": delta}
    return pyaccount.certify({"pyaccount": 1, "name": "near zero", "privacy": privacy, **body})


def delta_of_two(epsilon: float) -> float:
    """Return E δ_G(ε − L), L the loss of Laplace noise of scale 10 and δ_G the curve of Gaussian noise of σ = 10."""

    def gaussian(left: float) -> float:
        tails = stats.norm.cdf([0.05 - 10 * left, -0.05 - 10 * left])
        return float(tails[0] - math.exp(left) * tails[1])

    def between(y: float) -> float:
        return math.exp(-y / 10) / 20 * gaussian(epsilon - (1 - 2 * y) / 10)

    inner, _ = integrate.quad(between, 0, 1, epsabs=1e-14)
    return 0.5 * gaussian(epsilon - 0.1) + inner + 0.5 * math.exp(-0.1) * gaussian(epsilon + 0.1)


@pytest.mark.parametrize(("epsilon", "holds"), [(1e-9, False), (1e-3, True)])
def test_the_verdict_and_the_delta_are_those_of_the_composition(epsilon: float, holds: bool) -> None:
    delta = delta_of_two(0.0) * (1 - 1e-3)
    assert (delta_of_two(epsilon) <= delta) is holds
    certificate = claimed(TWO, epsilon, delta)
    guarantee = certificate.data.guarantee
    assert certificate.holds is holds
    assert guarantee.epsilon == epsilon
    assert guarantee.delta * (1 - 1e-3) <= delta_of_two(epsilon) <= guarantee.delta
    # Nothing is said of an ε below the claimed one.
    assert guarantee.epsilon_lower == 0.0
    assert pyaccount.verify(certificate).agrees


@pytest.mark.parametrize("share", [1e-4, 1e-3])
def test_no_lattice_resolves_an_epsilon_of_a_hundred_thousandth(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Answer] = []
    ask_all = Engine.ask_all

    def kept(self: Engine, items: Any) -> list[Answer]:
        found = ask_all(self, items)
        answers.extend(found)
        return found

    monkeypatch.setattr(Engine, "ask_all", kept)
    # δ(0) is between 0.06975 and 0.06975384.
    assert not claimed(POISSON, 1e-9, 0.06975 * (1 - share)).holds
    accounts = [side.upper_account for answer in answers for side in answer.directions.values()]
    assert answers
    assert max(account.nodes for account in accounts) < 2000


def test_an_epsilon_that_is_not_near_zero_is_found_at_the_claimed_delta() -> None:
    for epsilon, delta in ((1e-3, 0.01), (1e-9, 0.98 * delta_of_two(0.0))):
        guarantee = claimed(TWO, epsilon, delta).data.guarantee
        assert guarantee.delta == delta
        assert delta_of_two(guarantee.epsilon) <= delta <= delta_of_two(guarantee.epsilon_lower) * (1 + 1e-9)
