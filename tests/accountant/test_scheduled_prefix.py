"""The first rounds of a run with schedules have the first values of these, and the factor of all phases."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scheduled_documents import SAMPLED, body, document, head, in_phases
from snapshots import Snapshot

import pyaccount
from pyaccount.accountant.planned import planned

NOISES = [1.5, 0.9, 1.2, 2.0, 0.8]
RATES = [0.05, 0.01, 0.02, 0.03, 0.04]


def bounds(source: Any) -> Any:
    return pyaccount.compile(source).at().bounds()


def expected(steps: int) -> Any:
    return bounds(
        in_phases("poisson", [(n, {"sampling_probability": p}) for n, p in zip(NOISES[:steps], RATES, strict=False)])
    )


@pytest.mark.parametrize("steps", [1, 3, 5])
def test_the_first_values_of_a_list(steps: int) -> None:
    whole = document("poisson", NOISES, 5, sampling_probability={"schedule": RATES})
    plan = planned(pyaccount.load(whole))
    assert plan.covers(steps) == steps
    assert bounds(plan.prefix(steps)) == expected(steps)


@pytest.mark.parametrize("steps", [1, 3, 5])
def test_the_first_values_of_a_file(steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.array([NOISES, RATES]).T)
    whole = document(
        "poisson",
        {"file": "a.npy", "column": 0},
        5,
        sampling_probability={"schedule": {"file": "a.npy", "column": 1}},
    )
    assert bounds(planned(pyaccount.load(whole)).prefix(steps)) == expected(steps)


def test_the_first_values_of_a_decaying_schedule() -> None:
    decaying = {"start": 2, "decay": 0.5, "every": 2}
    plan = planned(pyaccount.load(document("poisson", decaying, 6)))
    assert bounds(plan.prefix(3)) == bounds(document("poisson", [2.0, 2.0, 1.0], 3))


@pytest.mark.parametrize("steps", [2, 3, 6, 8])
def test_the_factor_of_all_phases_stays(steps: int) -> None:
    phases = [body(SAMPLED["poisson"], 3, 2.0), body(SAMPLED["poisson"], 5, {"schedule": NOISES, "scale": 0.5})]
    plan = planned(pyaccount.load({**head(), "noise": {"scale": 3}, "phases": phases}))
    noises = [6.0] * 3 + [1.5 * noise for noise in NOISES]
    assert bounds(plan.prefix(steps)) == bounds(in_phases("poisson", [(noise, {}) for noise in noises[:steps]]))


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_the_factor_stays_beside_mechanisms(steps: int) -> None:
    release = {"mechanism": {"kind": "laplace", "scale": 2.0, "sensitivity": 1.0}, "count": 2}

    def phases(factor: float) -> list[dict[str, Any]]:
        drawn = {"sampler": {"kind": "poisson", "sampling_probability": 0.1}, "count": 2}
        return [release, {**drawn, "phases": [body(SAMPLED["poisson"], 3, 2.0 * factor), release]}]

    plan = planned(pyaccount.load({**head(), "noise": {"scale": 3}, "phases": phases(1.0)}))
    expected = phases(3.0) if steps > 2 else [release | {"count": steps}]
    if steps == 3:
        expected[1]["count"] = 1
    assert bounds(plan.prefix(steps)) == bounds({**head(), "phases": expected})


@pytest.mark.parametrize("probability", [{"max": 0.04}, {"strata": {"rare": 0.04, "common": 0.01}}])
def test_records_with_different_probabilities_keep_them(probability: dict[str, Any]) -> None:
    plan = planned(pyaccount.load(document("poisson", NOISES, 5, sampling_probability=probability)))
    prefix = plan.prefix(3)
    assert prefix.run.own_probabilities == plan.document.run.own_probabilities
    assert bounds(prefix) == bounds(document("poisson", NOISES[:3], 3, sampling_probability=0.04))


def test_rounds_are_added_one_by_one_without_a_schedule(snapshot: Snapshot) -> None:
    accountant = pyaccount.Accountant(adjacency="zero-out", delta=1e-5)
    snapshot.raised(accountant.step, noise_multiplier={"schedule": [1.0]}, sampling_probability=0.1)  # type: ignore[arg-type]
