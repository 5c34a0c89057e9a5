"""Private selection against dp_accounting's Rényi accountant, on a grid: never looser."""

import math

import pytest
from dp_accounting import dp_event  # type: ignore[import-untyped]
from dp_accounting.privacy_accountant import NeighboringRelation  # type: ignore[import-untyped]
from dp_accounting.rdp import RdpAccountant  # type: ignore[import-untyped]

from pyaccount._core import RoundProfile, answer_all

#: The laws: ours with its parameters, and the peer's mean and shape.
LAWS = {
    "geometric": ("geometric", (0.1,), 10.0, 1.0),
    "logarithmic": ("logarithmic", (0.01,), 0.99 / (0.01 * math.log(100.0)), 0.0),
    "many": ("negative-binomial", (0.5, 0.001), 0.5 * 999.0 / (1.0 - math.sqrt(0.001)), 0.5),
    "few": ("negative-binomial", (4.0, 0.5), 4.0 / (1.0 - 0.5**4), 4.0),
    "poisson": ("poisson", (10.0,), 10.0, math.inf),
}
DELTAS = (1e-3, 1e-6)


def runs() -> dict[str, tuple[RoundProfile, dp_event.DpEvent]]:
    """Return mechanisms by name: the profile of one run, which is that of both directions, and the peer's event."""
    all_runs = {
        f"gaussian-{sigma}": (RoundProfile.gaussian(1.0, sigma), dp_event.GaussianDpEvent(sigma))
        for sigma in (0.5, 1.0, 2.0, 5.0, 20.0)
    }
    all_runs["laplace"] = (RoundProfile.laplace(1.0, 2.0), dp_event.LaplaceDpEvent(2.0))
    # Binary randomized response with 0.25 of noise: 0.875 against 0.125.
    response = RoundProfile.finite([0.875, 0.125], [0.125, 0.875], reverse=False)
    all_runs["response"] = (response, dp_event.RandomizedResponseDpEvent(0.25, 2))
    return all_runs


RUNS = runs()


#: Each mechanism with a law, and each law with a mechanism, on every change.
USUAL = ["gaussian-0.5-many", "gaussian-1.0-poisson", "gaussian-2.0-geometric", "gaussian-5.0-logarithmic"]
USUAL += ["gaussian-20.0-few", "laplace-poisson", "response-many"]


@pytest.mark.nightly(but=USUAL)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("run", RUNS)
def test_never_looser_than_the_renyi_accountant(run: str, law: str) -> None:
    profile, event = RUNS[run]
    name, parameters, mean, shape = LAWS[law]
    selection = RoundProfile.selection(profile, profile, name, parameters, reverse=False)
    ours = answer_all([([(selection, 1)], None, delta, 1e-4) for delta in DELTAS])
    relation = NeighboringRelation.REPLACE_ONE if run == "response" else NeighboringRelation.ADD_OR_REMOVE_ONE
    peer = RdpAccountant(neighboring_relation=relation)
    peer.compose(dp_event.RepeatAndSelectDpEvent(event, mean, shape))
    for delta, answer in zip(DELTAS, ours, strict=True):
        assert answer.upper <= peer.get_epsilon(delta) * (1.0 + 1e-9), (run, law, delta)
        (one,) = answer_all([([(profile, 1)], None, delta, 1e-4)])
        # More runs than one cost something, wherever that leaves a loss at all.
        assert answer.upper >= one.lower


@pytest.mark.parametrize("law", ["geometric", "poisson"])
@pytest.mark.parametrize("run", ["gaussian-2.0", "gaussian-20.0", "laplace"])
def test_compositions_of_selections_are_not_looser_either(run: str, law: str) -> None:
    """The peer adds Rényi divergences; profiles compose through one pair for all α, which no divergence has to be small for."""
    profile, event = RUNS[run]
    name, parameters, mean, shape = LAWS[law]
    selection = RoundProfile.selection(profile, profile, name, parameters, reverse=False)
    for count in (4, 25):
        (answer,) = answer_all([([(selection, count)], None, 1e-6, 1e-3)])
        peer = RdpAccountant()
        peer.compose(dp_event.RepeatAndSelectDpEvent(event, mean, shape), count)
        assert answer.upper <= peer.get_epsilon(1e-6) * (1.0 + 1e-9), (run, law, count)
