"""Documents that the independent checker could read wrongly: none makes it prove a false claim, or refute a true one."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from typing import Any

import pytest
from places import CERTIFICATES

import pyaccount
from pyaccount.independent import derived, kinds, lattice, rounds
from pyaccount.independent.verdict import check, parsed


def verdict(certificate: dict[str, Any], seconds: float = 3.0) -> dict[str, Any]:
    return check(parsed(json.dumps(certificate)), seconds)


def claimed(document: dict[str, Any], epsilon: float = 50.0) -> dict[str, Any]:
    """Return a certificate that nobody computed, of an ε so large that it would be proven if nothing were refused."""
    return {
        "name": "forged",
        "document": {"pyaccount": 1, "name": "forged", **document},
        "guarantee": {"epsilon": epsilon, "delta": 1e-5},
    }


def certified(document: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(pyaccount.certify({"pyaccount": 1, "name": "checked", **document}).to_json())
    return data


def private(adjacency: str = "add-remove", **more: object) -> dict[str, Any]:
    return {"adjacency": adjacency, "epsilon": "solve", "delta": 1e-5, **more}


LAPLACE = {"mechanism": {"kind": "laplace", "scale": 10}}
TRAINING = {"dataset_size": 1000, "sampling_probability": 0.01, "iterations": 4}
NOISE = {"multiplier": 4}
POISSON = {"training": TRAINING, "sampler": {"kind": "poisson"}, "noise": NOISE}
PLAIN = {"training": {"iterations": 4}, "sampler": {"kind": "none"}, "noise": NOISE}

#: What is not read: another reading than the intended one would have a smaller ε. The words are those of the reason.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "truncated batches of fixed parts": (
        {**POISSON, "sampler": {"kind": "cyclic-poisson", "partitions": 2, "truncate_to": 12}},
        "truncate_to",
    ),
    "truncated batches of users": (
        {**POISSON, "sampler": {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "shared",
                                "min_separation": 2, "truncate_to": 12}, "privacy": private("zero-out")},
        "truncate_to",
    ),
    "truncated batches, groups": (
        {**POISSON, "sampler": {"kind": "poisson", "truncate_to": 12}, "privacy": private("zero-out", group_size=4)},
        "truncated",
    ),
    "truncated batches, a record more": ({**POISSON, "sampler": {"kind": "poisson", "truncate_to": 12}}, "truncated"),
    "truncated batches, several draws": (
        {**POISSON, "sampler": {"kind": "poisson", "truncate_to": 12, "draws_per_iteration": 4},
         "privacy": private("zero-out")},
        "truncated",
    ),
    "a key of another kind": ({**POISSON, "sampler": {"kind": "poisson", "records_per_user": 9}}, "records_per_user"),
    "releases beside Laplace noise": (
        {**PLAIN, "noise": {"kind": "laplace", "multiplier": 4, "also": [{"multiplier": 0.1, "what": "a count"}]}},
        "also",
    ),
    "noise of an unknown kind": ({**PLAIN, "noise": {"kind": "cauchy", "multiplier": 4}}, "cauchy"),
    "a scale that is not read": ({**PLAIN, "noise": {"multiplier": 4, "scale": 0.1}}, "scale"),
    "a count beside phases": ({"count": 50, "phases": [LAPLACE]}, "count"),
    "a selection of a whole document": (
        {"select": {"kind": "geometric", "stopping_probability": 0.1}, "phases": [LAPLACE]}, "select"),
    "training beside phases": ({**POISSON, "phases": [LAPLACE]}, "phases, privacy"),
    "training beside a mechanism": ({**POISSON, **LAPLACE}, "mechanism, name, noise"),
    "parts beside a mechanism": ({"phases": [{**LAPLACE, "parallel": [LAPLACE, LAPLACE]}]}, "mechanism"),
    "a release with an unknown key": (
        {**PLAIN, "noise": {"multiplier": 4, "also": [{"multiplier": 9, "what": "x", "count": 40}]}}, "count"),
    "a short schedule": ({**POISSON, "noise": {"multiplier": {"schedule": [4, 4]}}}, "schedule of 2"),
    "a schedule with an unknown key": (
        {**POISSON, "noise": {"multiplier": {"schedule": {"start": 4, "decay": 1, "until": 2}}}}, "until"),
    "both of max and strata": (
        {**POISSON, "training": {"iterations": 4, "sampling_probability": {"strata": {"a": 0.01}, "max": 0.5}}}, "strata"),
    "a number as a word": ({"mechanism": {"kind": "exponential", "utility_sensitivity": 1, "scale": 9, "monotone": "false"}},
                           "monotone"),
    "a list in place of a word": (
        {**PLAIN, "matrix": {"kind": "toeplitz", "coefficients": [2, 1], "normalize": [False]}}, "normalize"),
    "a mapping in place of a word": (
        {**PLAIN, "matrix": {"kind": "toeplitz", "coefficients": [2, 1], "normalize": {"max": 0}}}, "normalize"),
    "a list in place of an adjacency": ({**PLAIN, "privacy": private() | {"adjacency": ["replace-one"]}}, "adjacency"),
    "noise that no theorem is about": (
        {"mechanism": {"kind": "report-noisy-max", "utility_sensitivity": 1, "scale": 9, "noise": "gaussian"}}, "noise"),
    "a number that moves several": ({"mechanism": {"kind": "gaussian", "sigma": 9, "moved": 40}}, "moved"),
    "a probability above 1": ({**POISSON, "training": {"iterations": 4, "sampling_probability": 2}}, "probability"),
    "a batch that is no whole number": (
        {**POISSON, "training": {"dataset_size": 100, "expected_batch_size": 9.9, "iterations": 4},
         "sampler": {"kind": "fixed-size"}},
        "expected_batch_size",
    ),
    "a fraction of a record": ({**PLAIN, "privacy": private(group_size=2.9)}, "group_size"),
    "more bands than rounds": (
        {"training": {"sampling_probability": 0.1, "iterations": 2}, "sampler": {"kind": "cyclic-poisson", "partitions": 3},
         "matrix": {"kind": "toeplitz", "coefficients": [1, 1, 1]}, "noise": NOISE},
        "bands",
    ),
    "batches of one size on a sample": (
        {"privacy": private("zero-out"),
         "phases": [{"sampler": {"kind": "poisson", "sampling_probability": 0.1},
                     "phases": [{"training": {"dataset_size": 100, "expected_batch_size": 50, "iterations": 1},
                                 "sampler": {"kind": "fixed-size"}, "noise": NOISE}]}]},
        "sample",
    ),
    "reports of a sample": (
        {"privacy": private("zero-out"),
         "phases": [{"mechanism": {"kind": "randomized-response", "values": 3, "truth_probability": 0.5},
                     "sampler": {"kind": "poisson", "sampling_probability": 0.1}}]},
        "drawn",
    ),
    "reports of records that may be absent": (
        {"mechanism": {"kind": "randomized-response", "values": 3, "truth_probability": 0.5}}, "absent"),
    "chances that are not one": (
        {"mechanism": {"kind": "mixture-of-gaussians", "sigma": 9, "sensitivities": [0, 1], "probabilities": [0.1, 0.1]}},
        "probabilities",
    ),
    "two statements": ({"mechanism": {"kind": "stated", "epsilon": 9, "rho": 0.001}}, "epsilon, kind, rho"),
    "a guarantee with an unknown key": (
        {"mechanism": {"kind": "stated", "guarantees": [{"epsilon": 1, "delta": 1e-9, "records": 9}]}}, "records"),
    "a selection with a key of another law": (
        {"phases": [{"select": {"kind": "geometric", "stopping_probability": 0.1, "mean": 1}, "phases": [LAPLACE]}]}, "mean"),
    "zCDP beside a delta": ({"mechanism": {"kind": "stated", "rho": 0.01, "delta": 0.5}}, "delta, kind, rho"),
    "zCDP beside a delta, in a phase": ({"phases": [{"mechanism": {"kind": "stated", "rho": 0.01, "delta": 0.5}}]}, "delta"),
    "an epsilon beside xi": ({"mechanism": {"kind": "stated", "epsilon": 1, "xi": 100}}, "xi"),
    "nothing stated": ({"mechanism": {"kind": "stated"}}, "kind"),
    "a selection with an epsilon and a scale": (
        {"mechanism": {"kind": "exponential", "epsilon": 0.1, "utility_sensitivity": 1, "scale": 0.01}}, "scale"),
    "bins beside another rate": (
        {**POISSON, "training": {"participation_rate": 0.5, "iterations": 20}, "sampler": {"kind": "balls-in-bins", "bins": 10}},
        "contradict"),
    "bins beside a probability": ({**POISSON, "sampler": {"kind": "balls-in-bins", "bins": 2}}, "sampling_probability"),
    "a rate beside fixed draws": (
        {**POISSON, "training": {**TRAINING, "expected_batch_size": 10}, "sampler": {"kind": "fixed-size"}},
        "sampling_probability"),
    "a rate beside no sampling": ({**PLAIN, "training": TRAINING}, "sampling_probability"),
    "a rate beside an allocation": (
        {**POISSON, "training": {"participation_rate": 0.5, "iterations": 20},
         "sampler": {"kind": "random-allocation", "iterations_per_allocation": 10}}, "contradict"),
    "two rates": ({**POISSON, "training": {**TRAINING, "participation_rate": 0.001}}, "contradict"),
    "a rate beside a schedule of rates": (
        {**POISSON, "training": {"iterations": 2, "sampling_probability": {"schedule": [0.01, 0.01]}, "participation_rate": 0.5}},
        "schedule"),
    "a rate beside the largest one": (
        {**POISSON, "training": {"iterations": 2, "sampling_probability": {"max": 0.01}, "participation_rate": 0.5}},
        "different probabilities"),
    "a multiplier that no document has": ({**PLAIN, "noise": {"multiplier": 1e30}}, "multiplier"),
    "a multiplier that decays to nothing": (
        {**POISSON, "noise": {"multiplier": {"schedule": {"start": 1, "decay": 1e-4}}}}, "multiplier"),
    "phases in a phase without a sampler": ({"phases": [{"phases": [LAPLACE]}]}, "phases"),
    "a selection in a selection": (
        {"phases": [{"select": {"kind": "poisson", "mean": 1}, "phases": [{"select": {"kind": "poisson", "mean": 1},
                                                                           "phases": [LAPLACE]}]}]}, "select"),
    "parts in a part": ({"phases": [{"parallel": [{"parallel": [LAPLACE]}]}]}, "parallel"),
    "a factor of noise that multiplies nothing": ({"noise": {"scale": 100}, "phases": [LAPLACE]}, "multiplies nothing"),
    "a factor of noise beside a mechanism": ({"noise": {"scale": 100}, **LAPLACE}, "noise"),
    "a budget of risk beside an epsilon": ({"privacy": private(risk={"advantage": 0.1}), **LAPLACE}, "risk"),
    "a target without a delta": ({"privacy": {"adjacency": "add-remove", "epsilon": 1}, **LAPLACE}, "adjacency, epsilon"),
    "a word in place of an epsilon": ({"privacy": private() | {"epsilon": "much"}, **LAPLACE}, "epsilon"),
    "a factor of a schedule of probabilities": (
        {**POISSON, "training": {"iterations": 4, "sampling_probability": {"schedule": [0.01] * 4, "scale": 100}}}, "scale"),
    "no name": ({"name": None, **LAPLACE}, "name"),
    "no name of a phase": ({"phases": [{"name": None, **LAPLACE}]}, "name"),
    "another version": ({"pyaccount": 7, **LAPLACE}, "pyaccount"),
    "no mean": ({"phases": [{"select": {"kind": "poisson"}, "phases": [LAPLACE]}]}, "select poisson"),
    "a certain stop": (
        {"phases": [{"select": {"kind": "geometric", "stopping_probability": 1}, "phases": [LAPLACE]}]}, "stopping_probability"),
    "no parts": ({"phases": [{"parallel": []}]}, "parallel"),
    "no phases": ({"phases": []}, "phases"),
    "phases that are a number": ({"phases": 3}, "cannot be read"),
    "more parts than can be told apart": ({"phases": [{"parallel": [LAPLACE, LAPLACE]}] * 18}, "combinations"),
    "an empty record where none is set to zero": (
        {"privacy": private("replace-one"),
         "mechanism": {"kind": "randomized-response", "values": 3, "truth_probability": 0.5, "empty_record": "uniform"}},
        "empty_record"),
    "truncated batches on a sample": (
        {"phases": [{"sampler": {"kind": "poisson", "sampling_probability": 0.1, "truncate_to": 5}, "phases": [PLAIN]}]},
        "truncate_to",
    ),
    "one part": ({"phases": [{"parallel": [{"name": "a", **LAPLACE}]}]}, "one part"),
    "two parts of one name": ({"phases": [{"parallel": [{"name": "a", **LAPLACE}, {"name": "a", **LAPLACE}]}]}, "one name"),
    "two blanks": ({"privacy": private() | {"delta": "solve"}, **LAPLACE}, "several blanks"),
    "a target that no document has": ({"privacy": private() | {"delta": 1e-305}, **LAPLACE}, "delta"),
    "a target of 0 beside a claim of more": ({"privacy": private() | {"delta": 0}, **LAPLACE}, "δ = 0"),
    "rates of an attack that guesses": (
        {"privacy": {"adjacency": "add-remove", "risk": {"true_positive_rate": 0.1, "false_positive_rate": 0.1}}, **LAPLACE},
        "positive rate"),
    "a rho that no document has": ({"mechanism": {"kind": "stated", "rho": 1e-300}}, "rho"),
    "a subset that is larger than the data set": (
        {"training": {"dataset_size": 60, "expected_batch_size": 5, "iterations": 4},
         "sampler": {"kind": "must-ow", "subset_size": 900}, "noise": NOISE}, "subset"),
    "a batch that is larger than the subset": (
        {"training": {"dataset_size": 60, "expected_batch_size": 50, "iterations": 4},
         "sampler": {"kind": "must-wo", "subset_size": 9}, "noise": NOISE}, "subset"),
    "a batch that is larger than the data set": (
        {**PLAIN, "training": {"dataset_size": 60, "expected_batch_size": 100, "iterations": 4}}, "data set"),
    "a diagonal of zeros": ({**PLAIN, "matrix": {"kind": "toeplitz", "coefficients": [0, 1]}}, "diagonal"),
    "a matrix with more bands than rounds": ({**PLAIN, "matrix": {"kind": "banded-square-root", "bands": 5}}, "more bands"),
    "a tree that is longer than the run": ({**PLAIN, "matrix": {"kind": "tree", "restart_every": 8}}, "restarts"),
    "separated records without a rate": (
        {"privacy": private("replace-one"), "training": {"iterations": 9}, "sampler": {"kind": "b-min-sep", "min_separation": 3},
         "noise": NOISE}, "without a rate"),
    "random parts without a rate": (
        {"training": {"iterations": 9}, "sampler": {"kind": "cyclic-poisson", "partitions": 3, "phase": "random"},
         "noise": NOISE},
        "without a rate"),
    "random parts of fewer rounds than bands": (
        {"training": {"iterations": 9, "sampling_probability": 0.1}, "noise": NOISE,
         "matrix": {"kind": "banded-square-root", "bands": 4},
         "sampler": {"kind": "cyclic-poisson", "partitions": 3, "phase": "random"}}, "4 bands"),
    "bins that are no whole number": (
        {"training": {"iterations": 9, "participation_rate": 0.225}, "sampler": {"kind": "balls-in-bins"}, "noise": NOISE,
         "matrix": {"kind": "toeplitz", "coefficients": [1, 0.5]}}, "bins"),
    "a group of records that move less than a step": (
        {"privacy": private(group_size=3), "mechanism": {"kind": "discrete-laplace", "scale": 9, "sensitivity": 2, "step": 3}},
        "steps"),
    "more bins than rounds": (
        {"training": {"iterations": 9, "participation_rate": 0.05}, "sampler": {"kind": "balls-in-bins"}, "noise": NOISE,
         "matrix": {"kind": "toeplitz", "coefficients": [1, 0.5]}}, "bins"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_be_misread_is_refused(name: str) -> None:
    document, words = REFUSED[name]
    found = verdict(claimed({"privacy": private(), **document}))
    assert found["verdict"] == "not checkable"
    assert words in found["reason"]


def test_a_value_is_only_filled_into_a_blank() -> None:
    certificate = certified({"privacy": private(), **PLAIN})
    for path, value in (("noise.multiplier", 400), ("privacy.adjacency", "zero-out")):
        forged = certificate | {"solved": {"path": path, "value": value}}
        assert "not the blank" in verdict(forged)["reason"]


@pytest.mark.parametrize(("key", "value"), [("adjacency", "replace-one"), ("group_size", 8)])
def test_a_certificate_says_what_its_document_says(key: str, value: object) -> None:
    certificate = certified({"privacy": private(), **PLAIN})
    certificate["privacy"][key] = value
    assert "than its document" in verdict(certificate)["reason"]


MATRICES = [
    {"kind": "toeplitz", "coefficients": [2, 1, 0.5, 0.25, 0.1]},
    {"kind": "banded-square-root", "bands": 6},
    {"kind": "blt", "scales": [0.5, 0.1], "decays": [0.6, 0.9]},
    {"kind": "banded-inverse", "bands": 3},
    {"kind": "banded-inverse", "inverse_coefficients": [1, -0.4, -0.1]},
]


@pytest.mark.parametrize("matrix", MATRICES, ids="-".join)
def test_the_document_says_what_its_matrix_is(matrix: dict[str, Any]) -> None:
    body = {"training": {"iterations": 14}, "sampler": {"kind": "none", "max_participations": 3, "min_separation": 4}}
    certificate = certified({"privacy": private(), **body, "matrix": matrix, "noise": NOISE})
    assert verdict(certificate)["verdict"] == "proven"
    # A certificate may not replace the document's matrix by one of less overlap.
    certificate["phases"][0]["matrix"]["coefficients"] = [1, 0.01, 0.001]
    certificate["guarantee"]["epsilon"] *= 0.99
    assert verdict(certificate)["verdict"] == "refuted"


def test_coefficients_of_a_search_are_normalised_and_counted() -> None:
    body = {"training": {"iterations": 14}, "sampler": {"kind": "none", "max_participations": 3, "min_separation": 4}}
    certificate = certified(
        {"privacy": private(), **body, "matrix": {"kind": "optimal-toeplitz", "bands": 4}, "noise": NOISE}
    )
    matrix = certificate["phases"][0]["matrix"]
    smaller = copy.deepcopy(certificate)
    smaller["phases"][0]["matrix"]["coefficients"] = [each / 2 for each in matrix["coefficients"]]
    assert verdict(smaller)["proven"] == verdict(certificate)["proven"]
    smaller["phases"][0]["matrix"]["coefficients"][1] *= -1
    assert "coefficients" in verdict(smaller)["reason"]
    matrix["coefficients"] = matrix["coefficients"][:2]
    assert "2 coefficients" in verdict(certificate)["reason"]


def test_coefficients_of_a_phase_are_not_those_of_another() -> None:
    here = {**PLAIN, "matrix": {"kind": "optimal-toeplitz", "bands": 2}}
    other = {"kind": "toeplitz", "coefficients": [1]}
    certificate = claimed(
        {"privacy": private(), "phases": [{"parallel": [{"name": "a", **PLAIN}, {"name": "b", **here}]}, PLAIN]}
    )
    certificate["phases"] = [{"matrix": None}, {"matrix": {**other, "coefficients": [1.0, 0.0]}}]
    assert "optimal-toeplitz" in verdict(certificate)["reason"]


@pytest.mark.parametrize("normalize", [True, False])
def test_columns_that_end_with_the_run_are_not_refuted(normalize: bool) -> None:
    matrix = {"kind": "toeplitz", "coefficients": [2, 1, 0.5, 0.25], "normalize": normalize}
    none = {"training": {"iterations": 6}, "sampler": {"kind": "none", "max_participations": 2, "min_separation": 4}}
    cyclic = {
        "training": {"iterations": 9, "sampling_probability": 0.3},
        "sampler": {"kind": "cyclic-poisson", "partitions": 4},
    }
    for body in (none, cyclic):
        found = verdict(certified({"privacy": private(), **body, "matrix": matrix, "noise": NOISE}))
        assert found["verdict"] == "proven"


def test_the_largest_pattern_is_the_largest_of_all() -> None:
    for entries, apart in (([3, 1, 0, 2], 4), ([4, 3, 3, 1], 2), ([2, 1], 3)):
        n, fractions = 7, [Fraction(each) for each in entries]
        columns = [[0] * i + entries[: n - i] + [0] * (n - i - len(entries)) for i in range(n)]
        best = max(
            sum(sum(columns[i][row] for i in chosen) ** 2 for row in range(n))
            for chosen in ((i, j) for i in range(n) for j in range(i + apart, n))
        )
        assert derived.pattern(fractions, n, apart, 2) == best


def test_selections_without_an_attained_pair_are_never_refuted() -> None:
    for epsilon in (0.5, 1.9):
        document = {
            "privacy": private(),
            "phases": [{"mechanism": {"kind": "permute-and-flip", "epsilon": 0.5}, "count": 4}],
        }
        assert verdict(claimed(document, epsilon), 0.3)["verdict"] == "consistent"
    assert (
        verdict(claimed({"privacy": private(), "mechanism": {"kind": "laplace", "scale": 1}}, 0.5))["verdict"]
        == "refuted"
    )


def test_users_who_share_records_are_never_refuted() -> None:
    sampler = {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "shared", "min_separation": 2}
    found = verdict(claimed({**POISSON, "privacy": private("zero-out"), "sampler": sampler}, 1e-4))
    assert found["verdict"] == "consistent"


def test_weights_that_are_left_out_do_not_make_a_pair_better() -> None:
    grid = lattice.LossGrid(lattice.spacing_of(0.01), 25, 160)
    half, least = Fraction(1, 2), Fraction(1, 10**4)
    shift = derived.rounded_root(Fraction(1))
    whole = rounds.MixtureRound({1: half, 2: least}, shift, {-1: half, -2: least})
    cut = rounds.MixtureRound({1: half}, shift, {-1: half}, least)
    for k in (0, 50, 300, 500):
        assert cut.value(grid, k) >= whole.value(grid, k) - 2**40


def test_cells_are_nested_whatever_thresholds_were_found() -> None:
    class Mixed(kinds.LaplaceRound):
        def masses(self, grid: lattice.LossGrid, k: int) -> tuple[int, int] | None:
            return super().masses(grid, -k)

    grid = lattice.LossGrid(lattice.spacing_of(0.1), 30, 160)
    cells = Mixed(Fraction(1)).cells(grid, list(range(-9, 10)), mirrored=False)
    assert cells is not None
    assert sum(cells.under_p) <= 10**30
    assert sum(cells.under_q) >= 10**30
    assert min(cells.under_q) >= 0


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1e999999999}', '{"a": 1e-999999999}', "[" * 100_000]
)
def test_text_that_readers_read_differently_is_no_certificate(text: str) -> None:
    with pytest.raises(ValueError, match=r"twice|number|deeply"):
        parsed(text)


def judged(epsilon: float, phases: list[dict[str, Any]] | None = None, **document: Any) -> tuple[str, str]:
    """Return the verdict on a claim that was made by hand, and its reason."""
    found = verdict(claimed({"privacy": private("zero-out"), **document}, epsilon) | {"phases": phases or [{}]})
    return found["verdict"], found["reason"] or ""


CYCLIC: dict[str, Any] = {
    "training": {"iterations": 20, "sampling_probability": 0.01},
    "sampler": {"kind": "cyclic-poisson", "partitions": 4},
    "matrix": {"kind": "toeplitz", "coefficients": [1, 0.5]},
    "noise": {"multiplier": 1},
}


def test_a_rate_beside_a_probability_counts_for_each_part() -> None:
    """A rate of 0.2 with four parts is a probability of 0.8 for the records of a part."""
    plain, _ = judged(4, **CYCLIC)
    rated, _ = judged(4, **CYCLIC | {"training": {"iterations": 20, "participation_rate": 0.2}})
    both, why = judged(4, **CYCLIC | {"training": CYCLIC["training"] | {"participation_rate": 0.2}})
    same, _ = judged(4, **CYCLIC | {"training": CYCLIC["training"] | {"participation_rate": 0.0025}})
    assert (plain, rated, both, same) == ("proven", "refuted", "not checkable", "proven")
    assert "contradict" in why


SERIES = {"kind": "blt", "scales": [0.5], "decays": [0.5]}
SPACED: dict[str, Any] = {
    "training": {"iterations": 20, "sampling_probability": 0.1},
    "sampler": {"kind": "b-min-sep", "min_separation": 2},
    "noise": {"multiplier": 2},
}
DENSE = {"kind": "dense", "file": "matrix.npy", "normalize": False}


@pytest.mark.parametrize(
    ("document", "entries", "reason"),
    [
        (CYCLIC | {"training": CYCLIC["training"] | {"epochs": 50}}, None, "epochs, iterations"),
        (SPACED | {"matrix": DENSE, "training": {"iterations": 2, "sampling_probability": 0.1}}, [[1, 9], [0, 1]], "diagonal"),
        (SPACED | {"matrix": DENSE}, [[0.001]], "in 20 rounds"),
        (SPACED | {"matrix": SERIES, "sampler": {"kind": "b-min-sep"}, "privacy": private("replace-one")}, None,
         "min_separation"),
        (CYCLIC | {"matrix": SERIES, "sampler": {"kind": "cyclic-poisson", "phase": "random"}}, None, "partitions"),
        (CYCLIC | {"privacy": private(group_size=10**9)}, None, "group_size"),
        (SPACED | {"matrix": {"kind": "banded-square-root", "bands": 10**4}, "training": {"iterations": 10**5,
                   "sampling_probability": 0.1}}, None, "4,000 bands"),
        (SPACED | {"sampler": {"kind": "b-min-sep", "min_separation": 10**9}}, None, "this matrix in 20 rounds"),
        (SPACED | {"count": 10**9}, None, "so many rounds"),
    ],
)  # fmt: skip
def test_what_would_be_misread_or_take_hours_is_refused(
    document: dict[str, Any], entries: list[list[float]] | None, reason: str
) -> None:
    """Documents that were misread, or that took hours or gigabytes."""
    found, why = judged(200, [{"matrix": {"entries": entries}}], **document)
    assert (found, reason in why) == ("not checkable", True), why


def test_a_certificate_of_samples_protects_what_its_document_does() -> None:
    data = json.loads((CERTIFICATES / "v1" / "verified.json").read_text())
    data["document"]["privacy"] |= {"adjacency": "replace-one", "group_size": 5}
    assert verdict(data)["verdict"] == "not checkable"
    data["document"]["privacy"] = {"adjacency": "zero-out", "epsilon": 2, "delta": 0.01}
    data["privacy"] |= {"adjacency": "replace-one"}
    assert "protects others" in verdict(data)["reason"]


def test_what_is_too_small_or_too_deep_is_no_error() -> None:
    data = certified({"privacy": private(), "mechanism": {"kind": "gaussian", "sigma": 4}})
    deep: list[Any] = []
    for _ in range(700):
        deep = [deep]
    data["guarantee"]["delta"] = 1e-200
    assert verdict(data)["verdict"] == "refuted"
    data["document"]["accounting"] = {"profile": deep}
    assert "RecursionError" in verdict(data)["reason"]
    tiny = json.dumps(data | {"guarantee": data["guarantee"] | {"delta": 7}}).replace('"delta": 7', '"delta": 1e-390')
    assert check(parsed(tiny), 3.0)["verdict"] == "not checkable"
