"""Shared goldens: recomputed if that is quick, and compared with the core's answers."""

import json

import oracle
import pytest
from places import GOLDEN

from pyaccount._core import RoundProfile, answer_all

GAUSSIAN = json.loads((GOLDEN / "gaussian.json").read_text(encoding="utf-8"))
PEERS = json.loads((GOLDEN / "peers.json").read_text(encoding="utf-8"))


def test_goldens_say_where_they_come_from() -> None:
    for golden in (GAUSSIAN, PEERS):
        assert golden["provenance"]["source"]
        assert len(golden["cases"]) >= 20


@pytest.mark.parametrize("case", GAUSSIAN["cases"][::5], ids=str)
def test_the_gaussian_goldens_are_what_they_claim(case: dict[str, float]) -> None:
    assert float(oracle.gaussian_epsilon(case["mu"], case["delta"])) == case["epsilon"]


@pytest.mark.parametrize("case", PEERS["cases"], ids=lambda c: f"{c['kind']}-{c['count']}-{c['delta']:g}")
def test_agreement_with_dp_accounting(case: dict[str, float]) -> None:
    """The core's interval and the peer's must overlap: the peer's pessimistic value is a bound up to its rounding."""
    group = int(case.get("group_size", 1))
    if case["kind"] == "gaussian":
        profiles = [RoundProfile.gaussian(1.0, case["noise_multiplier"])]
    else:
        profiles = [
            RoundProfile.poisson(
                group, case["sampling_probability"], case["noise_multiplier"], two_sided=False, reverse=reverse
            )
            for reverse in (False, True)
        ]
    questions = [([(profile, int(case["count"]))], None, case["delta"], 1e-4) for profile in profiles]
    answers = answer_all(questions)
    lower, upper = max(a.lower for a in answers), max(a.upper for a in answers)
    # The peer's transform has an absolute error near 1e-15 that its bound does not include: a relative 1e-7 at these δ.
    assert lower <= case["epsilon_upper_pessimistic"] * (1 + 1e-7)
    optimistic = case.get("epsilon_optimistic")
    if optimistic is not None:
        assert upper >= optimistic * (1 - 1e-7)
