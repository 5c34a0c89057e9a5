"""Small documents of what the adversary does not build: blanks, choices, risks, shared scales, and matrices under sampling."""

from __future__ import annotations

from typing import Any

from forging.certificates import Json

_NONE = {"kind": "none"}
_POISSON = {"kind": "poisson"}


def _privacy(adjacency: str = "add-remove", delta: float = 1e-5, epsilon: float | str = "solve", **more: Any) -> Json:
    return {"adjacency": adjacency, "epsilon": epsilon, "delta": delta, **more}


def _run(training: Json, sampler: Json, multiplier: Any = 2, **more: Any) -> Json:
    return {
        "privacy": _privacy(),
        "training": training,
        "sampler": sampler,
        "noise": {"multiplier": multiplier},
        **more,
    }


_SPACED = {"iterations": 6, "sampling_probability": 0.1}
#: Documents beside those that the adversary builds: blanks, choices, risks, shared scales, and matrices under sampling.
DOCUMENTS: dict[str, Json] = {
    "solved noise": _run({"iterations": 20, "sampling_probability": 0.02}, _POISSON, "solve", privacy=_privacy(epsilon=2)),
    "solved steps": _run({"iterations": "solve", "sampling_probability": 0.02}, _POISSON, 1.5, privacy=_privacy(epsilon=2)),
    "solved group": _run(
        {"iterations": 4, "sampling_probability": 0.02}, _POISSON, 3, privacy=_privacy(epsilon=9, group_size="solve")
    ),
    "risk": _run(
        {"iterations": 10, "dataset_size": 1000, "expected_batch_size": 50}, _POISSON, "solve",
        privacy={"adjacency": "zero-out", "risk": {"true_positive_rate": 0.01, "false_positive_rate": 0.001}},
    ),
    "advantage": _run({"iterations": 6}, _NONE, "solve", privacy={"adjacency": "replace-one", "risk": {"advantage": 0.2}}),
    "epochs": _run({"epochs": 3, "dataset_size": 1000, "expected_batch_size": 100}, {"kind": "fixed-size"}, 4,
                   privacy=_privacy("replace-one")),
    "schedules": _run(
        {"iterations": 6, "dataset_size": 1000, "expected_batch_size": {"schedule": {"start": 20, "decay": 1.5, "every": 2}}},
        _POISSON, {"schedule": {"start": 2, "decay": 0.9, "every": 3}, "scale": 1.5},
    ),
    "schedule of fixed draws": _run(
        {"iterations": 3, "dataset_size": 50, "expected_batch_size": {"schedule": [5, 6, 7]}}, {"kind": "with-replacement"}, 3
    ),
    "strata": _run({"iterations": 8, "sampling_probability": {"strata": {"a": 0.02, "b": 0.1}}}, _POISSON, 1.5),
    "shared scale": {
        "privacy": _privacy(epsilon=3), "noise": {"scale": "solve"},
        "phases": [
            {"parallel": [
                {"name": "north", **_run({"iterations": 5, "sampling_probability": 0.1}, _POISSON, 1) | {"privacy": None}},
                {"name": "south", **_run({"iterations": 8, "sampling_probability": 0.05}, _POISSON, 1.2) | {"privacy": None}},
            ]},
            {"name": "count", "mechanism": {"kind": "laplace", "scale": 20}},
        ],
    },
    "cyclic, choices": _run(
        {"participation_rate": 0.05, "iterations": 40}, {"kind": "cyclic-poisson"}, "solve", privacy=_privacy(epsilon=2),
        matrix={"kind": "optimal-toeplitz", "bands": {"choose": [2, 4]}},
    ),
    "cyclic, random parts": _run(
        {"sampling_probability": 0.3, "iterations": 9}, {"kind": "cyclic-poisson", "partitions": 3, "phase": "random"}, 2,
        matrix={"kind": "toeplitz", "coefficients": [1, 0.5]},
    ),
    "a tree with a count": _run(
        {"iterations": 32}, {"kind": "none", "max_participations": 4, "min_separation": 8}, "solve",
        privacy=_privacy("zero-out", epsilon=6),
        matrix={"kind": "tree", "restart_every": 8, "estimation": "efficient"},
    ) | {"noise": {"multiplier": "solve", "also": [{"what": "a count", "multiplier": 40}]}},
    "buffers": _run(
        {"iterations": 20}, {"kind": "none", "max_participations": 3, "min_separation": 5}, 3,
        matrix={"kind": "blt", "buffers": 2},
    ),
    "optimal matrix": _run(
        {"iterations": 24}, {"kind": "none", "max_participations": 3, "min_separation": 8}, 3,
        matrix={"kind": "optimal-toeplitz", "bands": 4},
    ),
    "separated, matrix": _run(_SPACED, {"kind": "b-min-sep", "min_separation": 3, "start": "cold"}, 1.2,
                              matrix={"kind": "banded-square-root", "bands": 3}),
    "separated, replaced": _run(_SPACED, {"kind": "b-min-sep", "min_separation": 3}, 3, privacy=_privacy("replace-one")),
    "separated, truncated": _run(
        _SPACED | {"dataset_size": 1000}, {"kind": "b-min-sep", "min_separation": 3, "truncate_to": 200}, 2,
        privacy=_privacy("zero-out"),
    ),
    "separated, by moments": _run(
        _SPACED, {"kind": "b-min-sep", "min_separation": 3}, 1.5, matrix={"kind": "toeplitz", "coefficients": [1, 0.5]},
        accounting={"method": "renyi", "seed": 1},
    ),
    "users": _run(
        {"iterations": 20, "sampling_probability": 0.02},
        {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "shared", "min_separation": 4}, 3,
        privacy=_privacy("zero-out"), matrix={"kind": "banded-square-root", "bands": 4},
    ),
    "users, single": _run(
        {"iterations": 8, "sampling_probability": 0.05},
        {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "single", "min_separation": 3, "waits_after": "draw"}, 3,
    ),
    "bins, matrix": _run({"iterations": 8, "participation_rate": 0.25}, {"kind": "balls-in-bins"}, 2,
                         matrix={"kind": "toeplitz", "coefficients": [1, 0.6, 0.3]}),
    "pate": {
        "privacy": _privacy(delta=1e-6),
        "phases": [
            {"mechanism": {"kind": "gaussian", "sensitivity": 1.4142135623730951, "sigma": 40}, "count": 300},
            {"mechanism": {"kind": "gaussian", "sensitivity": 1, "sigma": 200}, "count": 1000},
        ],
    },
    "stated, rho": {"privacy": _privacy("zero-out"), "phases": [
        {"mechanism": {"kind": "stated", "rho": 0.05}}, {"mechanism": {"kind": "stated", "rho": 0.01, "xi": 0.1}, "count": 2}]},
    "stated, rho and delta": {"privacy": _privacy(), "mechanism": {"kind": "stated", "rho": 0.05, "delta": 1e-7}},
    "stated, renyi": {"privacy": _privacy(), "mechanism": {
        "kind": "stated", "renyi": [{"order": 2, "epsilon": 0.1}, {"order": 16, "epsilon": 1}]}},
    "stated, table": {"privacy": _privacy("replace-one", 1e-3), "count": 2, "mechanism": {
        "kind": "stated", "guarantees": [{"epsilon": 0.5, "delta": 1e-4}, {"epsilon": 1, "delta": 1e-7}]}},
    "stated, mu": {"privacy": _privacy(group_size=2), "mechanism": {"kind": "stated", "mu": 0.4}},
    "tuned": {"privacy": _privacy(delta=1e-6), "phases": [
        {"select": {"kind": "geometric", "stopping_probability": 0.1},
         "phases": [{"training": {"iterations": 5, "sampling_probability": 0.02}, "sampler": _POISSON,
                     "noise": {"multiplier": 1.2}},
                    {"mechanism": {"kind": "laplace", "scale": 50}}]},
        {"mechanism": {"kind": "discrete-laplace", "scale": 20}}]},
    "on a sample": {"privacy": _privacy("zero-out", 1e-6), "phases": [
        {"sampler": {"kind": "poisson", "sampling_probability": 0.1}, "count": 3,
         "phases": [{"mechanism": {"kind": "gaussian", "sigma": 3}}, {"mechanism": {"kind": "laplace", "scale": 9}}]}]},
}  # fmt: skip
#: Sections of the kinds that the documents above do not have.
DONORS: tuple[Json, ...] = (
    _run({"iterations": 4, "dataset_size": 60, "expected_batch_size": 5}, {"kind": "must-wo", "subset_size": 9}),
    _run({"iterations": 4, "dataset_size": 60, "expected_batch_size": 5}, {"kind": "must-ow", "subset_size": 9}),
    _run({"iterations": 4, "dataset_size": 60, "expected_batch_size": 5}, {"kind": "must-ww", "subset_size": 9}),
    _run({"iterations": 6}, {"kind": "random-allocation", "iterations_per_allocation": 3, "participations": 2}),
    _run({"iterations": 4, "dataset_size": 90, "sampling_probability": 0.1}, {"kind": "poisson", "truncate_to": 12}, 3),
    _run({"iterations": 4, "sampling_probability": 0.1}, {"kind": "poisson", "draws_per_iteration": 3}, 3),
    _run({"iterations": 6}, {"kind": "none"}, 3, matrix={"kind": "banded-inverse", "inverse_coefficients": [1, -0.4, -0.1]}),
    _run({"iterations": 6}, {"kind": "none"}, 3, matrix={"kind": "blt", "scales": [0.5, 0.1], "decays": [0.6, 0.9]}),
    _run({"iterations": 6}, {"kind": "none"}, 3, matrix={"kind": "banded-square-root", "bands": 2, "normalize": False}),
    {"privacy": {"adjacency": "zero-out", "risk": {"gaussian_mu": 1, "report_delta": 1e-5}}, "phases": [
        {"mechanism": one, "count": 2} for one in (
            {"kind": "mixture-of-gaussians", "sigma": 2, "sensitivities": [0, 1, 2], "probabilities": [0.5, 0.3, 0.2]},
            {"kind": "discrete-gaussian", "sigma": 3, "step": 0.5, "sensitivity": 1, "moved": 2},
            {"kind": "discrete-laplace", "scale": 3, "step": 0.5, "sensitivity": 1, "moved": 2},
            {"kind": "randomized-response", "values": 3, "truth_probability": 0.6, "answers": "once"},
            {"kind": "randomized-response", "values": 3, "truth_probability": 0.6, "empty_record": "uniform"},
            {"kind": "permute-and-flip", "utility_sensitivity": 1, "scale": 9, "monotone": True},
            {"kind": "report-noisy-max", "utility_sensitivity": 1, "scale": 9, "noise": "laplace"},
            {"kind": "report-noisy-max", "epsilon": 0.3, "noise": "gumbel"},
            {"kind": "exponential", "epsilon": 0.3},
        )]},
    {"phases": [{"select": one, "count": 2, "phases": []} for one in (
        {"kind": "logarithmic", "stopping_probability": 0.3}, {"kind": "poisson", "mean": 3},
        {"kind": "negative-binomial", "stopping_probability": 0.3, "shape": 0.5},
        {"kind": "binomial", "trials": 5, "probability": 0.2},
    )]},
    {"sampler": {"kind": "poisson", "draws": "clients", "sampling_probability": {"strata": {"a": 0.1, "b": 0.01}}}},
)  # fmt: skip
for _part in DOCUMENTS["shared scale"]["phases"][0]["parallel"]:
    _part.pop("privacy")
