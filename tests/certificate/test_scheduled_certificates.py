"""What certificates of runs with schedules state, and that they are verified, shown and run as they are."""

import math
from pathlib import Path
from typing import Any

import certificate_oracle
import numpy as np
import pytest
from scheduled_documents import SAMPLED, body, document, head
from snapshots import Snapshot

import pyaccount
from pyaccount.certificate.report import brief

DECAYING = {"start": 1.5, "decay": 0.9, "every": 5}
TARGET = {"epsilon": 2.0, "delta": 1e-5}


def solved(noises: Any, rounds: int) -> Any:
    asked = document("poisson", noises, rounds, scale="solve")
    asked["privacy"] |= TARGET
    return asked


def test_a_scale_meets_the_target_and_a_smaller_one_does_not() -> None:
    asked = solved(DECAYING, 40)
    certificate = pyaccount.certify(asked)
    found = certificate.data.solved
    assert found is not None
    assert found.path == "noise.multiplier.scale"
    assert certificate.epsilon <= 2.0
    asked["privacy"]["epsilon"] = "solve"
    for factor, holds in ((1.0, True), (0.999, False)):
        asked["noise"]["multiplier"]["scale"] = factor * found.value
        again = pyaccount.certify(asked)
        assert (again.epsilon <= 2.0) is holds
        assert (again.epsilon_lower <= 2.0) is holds
    assert certificate_oracle.inconsistencies(certificate.data) == []
    (stated,) = certificate.data.phases[0].schedules or ()
    assert (stated.scale, stated.distinct) == (found.value, 8)
    assert certificate.noise_multiplier is None
    assert certificate.document().blank is None
    assert pyaccount.verify(certificate).agrees
    lines = dict(brief(certificate.data))
    assert lines["solved"].startswith("noise.multiplier.scale = ")
    assert lines["σ"].endswith("by its schedule")
    text = certificate.to_text()
    assert stated.sha256 in text
    assert lines["solved"].endswith(" does not meet the target)")
    assert pyaccount.Certificate.from_json(certificate.to_json()) == certificate


def test_one_scale_of_several_phases_meets_the_target_and_a_smaller_one_does_not() -> None:
    phases = [
        body(SAMPLED["poisson"], 30, 2.0),
        body(SAMPLED["poisson"], 40, {"schedule": DECAYING, "scale": 1.25}),
        body(SAMPLED["none"], 1, 8.0),
    ]
    asked = {**head(**TARGET), "noise": {"scale": "solve"}, "phases": phases}
    certificate = pyaccount.certify(asked)
    found = certificate.data.solved
    assert found is not None
    assert found.path == "noise.scale"
    assert certificate_oracle.inconsistencies(certificate.data) == []
    asked["privacy"]["epsilon"] = "solve"
    for factor, holds in ((1.0, True), (0.999, False)):
        asked["noise"]["scale"] = factor * found.value
        again = pyaccount.certify(asked)
        assert (again.epsilon <= 2.0) is holds
        assert (again.epsilon_lower <= 2.0) is holds
    assert [phase.noise_multiplier for phase in certificate.data.phases] == [2.0 * found.value, None, 8.0 * found.value]
    # The same, with the scale multiplied into every phase.
    written = [
        body(SAMPLED["poisson"], 30, 2.0 * found.value),
        body(SAMPLED["poisson"], 40, {"schedule": DECAYING, "scale": found.value * 1.25}),
        body(SAMPLED["none"], 1, 8.0 * found.value),
    ]
    assert pyaccount.certify({**head(), "phases": written}).epsilon == pytest.approx(certificate.epsilon, rel=1e-4)
    assert pyaccount.verify(certificate).agrees


def test_no_scale_reaches_a_target_below_what_other_releases_cost(snapshot: Snapshot) -> None:
    asked = solved([1.0, 2.0], 2)
    asked["noise"]["also"] = [{"what": "counts", "multiplier": 0.1}]
    snapshot.raised(pyaccount.certify, asked)


def test_values_that_are_all_equal_are_one_noise_multiplier() -> None:
    certificate = pyaccount.certify(document("poisson", [1.5] * 4, 4, scale=2))
    assert certificate.noise_multiplier == 3.0
    (stated,) = certificate.data.phases[0].schedules or ()
    assert (stated.least, stated.most, stated.distinct) == (3.0, 3.0, 1)
    plain = pyaccount.certify(document("poisson", [3.0] * 4, 4) | {"noise": {"multiplier": 3.0}})
    assert (certificate.epsilon, certificate.epsilon_lower) == (plain.epsilon, plain.epsilon_lower)
    assert plain.data.phases[0].schedules is None


def test_rates_are_null_where_they_differ() -> None:
    rate = {"schedule": [0.01, 0.02, 0.03]}
    certificate = pyaccount.certify(
        document("poisson", [1.0, 1.5, 1.0], 3, sampling_probability=rate, dataset_size=500)
    )
    phase = certificate.data.phases[0]
    rates = (phase.sampling_probability, phase.participation_rate, phase.expected_batch_size, phase.distinct_records)
    assert rates == (None, None, None, None)
    assert {one.of for one in phase.schedules or ()} == {"noise.multiplier", "training.sampling_probability"}
    assert certificate_oracle.inconsistencies(certificate.data) == []
    assert pyaccount.verify(certificate).agrees


def test_the_error_of_prefix_sums_is_that_of_their_variances() -> None:
    noises = [1.0, 3.0, 2.0]
    utility = pyaccount.certify(document("poisson", noises, 3)).data.utility
    assert utility is not None
    variances = [sum(noise**2 for noise in noises[: count + 1]) for count in range(3)]
    assert utility.prefix_sum_mse == pytest.approx(sum(variances) / 3, rel=1e-14)
    assert utility.max_error == pytest.approx(math.sqrt(max(variances)), rel=1e-14)


@pytest.mark.parametrize("field", ["least", "most", "distinct", "scale", "sha256"])
def test_the_oracle_finds_a_changed_field(field: str) -> None:
    data = pyaccount.certify(document("poisson", [1.0, 1.5, 1.0], 3, scale=2)).data
    (stated,) = data.phases[0].schedules or ()
    wrong = stated.model_copy(update={field: "0" * 64 if field == "sha256" else getattr(stated, field) + 1})
    phase = data.phases[0].model_copy(update={"schedules": [wrong]})
    assert certificate_oracle.inconsistencies(data.model_copy(update={"phases": [phase]})) != []


def test_a_certificate_does_not_stand_for_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.array([1.0, 2.0, 3.0]))
    asked = document("poisson", {"file": "a.npy"}, 3)
    certificate = pyaccount.certify(asked)
    listed = pyaccount.certify(document("poisson", [1.0, 2.0, 3.0], 3))
    assert certificate.epsilon == listed.epsilon
    assert certificate.data.phases == listed.data.phases
    assert pyaccount.verify(certificate).agrees
    accountant = pyaccount.Accountant.from_certificate(certificate)
    np.save("a.npy", np.array([1.0, 2.0, 3.5]))
    assert not pyaccount.verify(certificate).agrees
    snapshot.raised(pyaccount.Accountant.from_certificate, certificate)
    accountant.step(2)
    snapshot.raised(accountant.epsilon_spent)
