"""Claims of an ε near zero at a δ that is hardly below δ(0): judged by δ at this ε, with little work."""

import math
from typing import Any

import pytest
from plain_documents import sectioned
from scipy import integrate, stats

import pyaccount
from pyaccount.execute.engine import Answer, Engine

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
