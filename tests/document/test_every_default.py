"""Every default of the document language: it changes no ε, is the worst case, or is an assumption of the certificate.

The defaults are collected from the sections, so a new one without a judgement here fails.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from plain_documents import document, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.document import amplification, data_set, models, policy, sweeps
from pyaccount.document.schedules import ScheduleFile
from pyaccount.reading.kinds import Section

#: The modules that read documents; with them every section is known. A policy without a limit limits nothing, and its verdict
#: says so; data sets say what they protect in every status of their ledger.
READ = (amplification, models, sweeps, ScheduleFile)
OTHERS = (policy.__name__, data_set.__name__)

#: Nothing: another key has the number instead, a rule asks for it, or what is not in the document is not in the certificate.
ABSENT = (
    "adjacency advantage also bands bins buffers column count dataset_size decays delta epochs epsilon expected_batch_size "
    "false_positive_rate gaussian_mu guarantees inverse_coefficients iterations max mu noise participation_rate renyi rho risk "
    "report_delta rounds sampler sampling_probability scale scales sigma strata threshold true_positive_rate "
    "utility_sensitivity vary xi"
)
#: No bound depends on it: how it is computed, for what error, and how things are called.
NO_EFFECT = (
    "accounting composed_from ema_decay error estimation kind learning_rates method momentum name optimize_for profile seed "
    "sha256 spacing statement time_limit tolerance verification workload"
)
#: A short run.
RATE = {"sampling_probability": 0.1, "iterations": 2}
#: The worst case: every other value gives at most the same ε.
WORST = {
    "max_participations": ({"sampler": {"kind": "none"}}, {"sampler": {"kind": "none", "max_participations": 20}}),
    "min_separation": (
        {"sampler": {"kind": "none", "max_participations": 5}, "matrix": {"kind": "banded-square-root", "bands": 2}},
        sectioned(sampler="none", max_participations=5, min_separation=3, matrix="banded-square-root", bands=2),
    ),
    "restart_every": (
        {"sampler": {"kind": "none", "max_participations": 5}, "matrix": {"kind": "tree", "normalize": False}},
        sectioned(sampler="none", max_participations=5, matrix="tree", normalize=False, restart_every=5),
    ),
    "phase": (
        {"sampler": {"kind": "cyclic-poisson", "partitions": 2}, "training": RATE},
        {"sampler": {"kind": "cyclic-poisson", "partitions": 2, "phase": "random"}, "training": RATE},
    ),
    "least": (
        {"noise": {"multiplier": {"schedule": {"start": 2, "decay": 0.9}}}},
        {"noise": {"multiplier": {"schedule": {"start": 2, "decay": 0.9, "least": 1}}}},
    ),
    "every": (
        {"noise": {"multiplier": {"schedule": {"start": 2, "decay": 0.9}}}},
        {"noise": {"multiplier": {"schedule": {"start": 2, "decay": 0.9, "every": 5}}}},
    ),
}
WORST_OF_MECHANISMS = {
    "monotone": ({"kind": "exponential", "scale": 2, "utility_sensitivity": 1}, True),
    "answers": ({"kind": "randomized-response", "values": 3, "truth_probability": 0.7}, "once"),
    "empty_record": ({"kind": "randomized-response", "values": 3, "truth_probability": 0.7}, "uniform"),
}
#: A fact of the run, which an assumption of the certificate says.
SAID: dict[str, list[dict[str, Any]]] = {
    "group_size": [{}],
    "draws_per_iteration": [{}],
    "truncate_to": [{}],
    "matrix": [{}],
    "partitions": [
        {
            "privacy__adjacency": "add-remove",
            "sampler": {"kind": "cyclic-poisson"},
            "matrix": {"kind": "banded-square-root", "bands": 2},
        }
    ],
    "rounds_per_subset": [{"sampler": {"kind": "must-wo", "subset_size": 1000}}],
    "participations": [{"sampler": {"kind": "random-allocation", "iterations_per_allocation": 10}}],
    "start": [{"sampler": {"kind": "b-min-sep", "min_separation": 2}, "training": RATE}],
    "waits_after": [
        sectioned(sampler="user-b-min-sep", records_per_user=1, attribution="shared", min_separation=2, training=RATE)
    ],
    "normalize": [{"sampler": {"kind": "none"}, "matrix": {"kind": "banded-square-root", "bands": 2}}],
    "sensitivity": [
        {"mechanism": {"kind": "gaussian", "sigma": 2}},
        {"mechanism": {"kind": "laplace", "scale": 2}},
        {"mechanism": {"kind": "discrete-laplace", "scale": 2}},
    ],
    "moved": [{"mechanism": {"kind": "laplace", "scale": 2}}],
    "step": [{"mechanism": {"kind": "discrete-gaussian", "sigma": 2}}],
    "parties": [{"mechanism": {"kind": "skellam", "variance": 4}}],
    "draws": [
        {
            "phases": [
                {
                    "sampler": {"kind": "poisson", "sampling_probability": 0.1},
                    "phases": [{"mechanism": {"kind": "gaussian", "sigma": 2}}],
                }
            ]
        }
    ],
    "failure_probability": [{"mechanism": {"kind": "stated", "epsilon": 1}}],
    "verified": [{"mechanism": {"kind": "stated", "epsilon": 1}}],
}


def sections(above: type[Section] = Section) -> Iterator[type[Section]]:
    for section in above.__subclasses__():
        if section.__module__.startswith("pyaccount.") and section.__module__ not in OTHERS:
            yield section
        yield from sections(section)


def training() -> dict[str, Any]:
    run = {"dataset_size": 1_000, "expected_batch_size": 100, "iterations": 20}
    base = document(
        privacy__adjacency="zero-out",
        privacy__epsilon="solve",
        privacy__delta=1e-3,
        training=run,
        noise__multiplier=2.0,
    )
    return base | {"accounting": {"profile": [], "tolerance": 0.2}}


def run_of(changes: dict[str, Any]) -> dict[str, Any]:
    """A document with these sections, which are those of a training run unless they stand for it."""
    base = training()
    if "mechanism" in changes or "phases" in changes:
        base = {key: value for key, value in base.items() if key not in ("training", "sampler", "noise", "matrix")}
        return base | changes
    base["privacy"] = base["privacy"] | {"adjacency": changes.get("privacy__adjacency", "zero-out")}
    return base | {key: value for key, value in changes.items() if "__" not in key}


def test_every_default_is_judged() -> None:
    assert READ
    found = {name for one in sections() for name, field in one.model_fields.items() if not field.is_required()}
    judged = [*ABSENT.split(), *NO_EFFECT.split(), *WORST, *WORST_OF_MECHANISMS, *SAID]
    assert sorted(found) == sorted(judged)


@pytest.mark.parametrize("name", WORST)
def test_a_default_is_the_worst_case(name: str) -> None:
    usual, other = (pyaccount.certify(run_of(changes)) for changes in WORST[name])
    assert usual.epsilon >= other.epsilon_lower


@pytest.mark.parametrize("name", WORST_OF_MECHANISMS)
def test_a_default_of_a_mechanism_is_the_worst_case(name: str) -> None:
    usual, other = WORST_OF_MECHANISMS[name]
    epsilons = [pyaccount.certify(run_of({"mechanism": one})).epsilon for one in (usual, usual | {name: other})]
    assert epsilons[0] >= epsilons[1]


@pytest.mark.parametrize(("name", "changes"), [(name, one) for name, said in SAID.items() for one in said])
def test_a_default_that_is_a_fact_is_an_assumption(name: str, changes: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot(pyaccount.certify(run_of(changes)).data.assumptions)
