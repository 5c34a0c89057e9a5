"""Several Gaussian releases of one batch: all of them together are one with the effective multiplier."""

import copy
import json
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import oracle
import pytest
from certificate_oracle import inconsistencies
from hypothesis import given
from hypothesis import strategies as st
from plain_documents import changed, doc, sectioned
from scipy import integrate, optimize  # type: ignore[import-untyped]
from snapshots import Snapshot

import pyaccount
from pyaccount import Accountant
from pyaccount.document.loading import load
from pyaccount.document.noise import effective
from pyaccount.errors import DocumentError
from pyaccount.plan.compiling import compile_document

DELTA = 1e-5
EPSILONS = [0.0, 0.2, 0.7]
BASE: dict[str, Any] = doc(
    "name='several releases' adjacency=add-remove sampling_probability=0.15 iterations=1 sampler=poisson",
    "multiplier=1.5 tolerance=1e-6",
    delta=DELTA,
    also=[{"what": "a count", "multiplier": 2.5}],
    profile=EPSILONS,
)


def document(changes: dict[str, Any] | None = None, **sections: dict[str, Any]) -> dict[str, Any]:
    return changed(BASE, changes, sections)


def alone(raw: dict[str, Any]) -> dict[str, Any]:
    """The document with one release of the effective multiplier, to the nearest double."""
    with mp.workdps(40):
        inner = [raw["noise"]["multiplier"], *(one["multiplier"] for one in raw["noise"]["also"])]
        together = float(1 / mp.sqrt(mp.fsum(1 / mp.mpf(sigma) ** 2 for sigma in inner)))
    return {**raw, "noise": {"multiplier": together}}


@given(st.lists(st.floats(1e-6, 1e9), min_size=2, max_size=20))
def test_the_effective_multiplier_is_enclosed(multipliers: list[float]) -> None:
    low, high = effective(multipliers)
    squares = sum(1 / Fraction(sigma) ** 2 for sigma in multipliers)
    assert Fraction(low) ** 2 * squares < 1 < Fraction(high) ** 2 * squares
    assert high / low <= 1 + 3e-15


def test_one_release_is_itself() -> None:
    assert effective([0.1]) == (0.1, 0.1)


def normal(y: float) -> float:
    return math.exp(-0.5 * y * y) / math.sqrt(2.0 * math.pi)


def in_the_plane(p: float, shifts: tuple[float, float], epsilon: float, *, reverse: bool, mirrored: bool) -> float:
    """∫∫ (P − e^ε Q)₊ of (1−p)N(0, I) + pN(s, I) against N(0, I), or its mirror image: for each y₁ where y₂ changes the sign."""
    first, second = shifts
    mean = -np.array(shifts) if mirrored else np.zeros(2)

    def excess(y2: float, y1: float) -> float:
        still = normal(y1) * normal(y2)
        with_record = (1 - p) * still + p * normal(y1 - first) * normal(y2 - second)
        there = p if mirrored else 0.0
        without = (1 - there) * still + there * normal(y1 - mean[0]) * normal(y2 - mean[1])
        one, other = (without, with_record) if reverse else (with_record, without)
        return float(one - math.exp(epsilon) * other)

    def along(y1: float) -> float:
        grid = np.linspace(-9.0, 9.0, 73)
        values = [excess(y2, y1) for y2 in grid]
        roots = [
            optimize.brentq(excess, grid[i], grid[i + 1], args=(y1,), xtol=1e-13)
            for i in range(len(grid) - 1)
            if values[i] * values[i + 1] < 0
        ]
        ends = [-9.0, *roots, 9.0]
        total = 0.0
        for low, high in pairwise(ends):
            if excess((low + high) / 2, y1) > 0:
                total += integrate.quad(excess, low, high, args=(y1,), epsabs=1e-13, limit=200)[0]
        return total

    nodes, weights = np.polynomial.legendre.leggauss(60)
    return float(sum(w * along(9.0 * x) for x, w in zip(nodes, weights, strict=True)) * 9.0)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_a_sampled_round_is_the_pair_in_the_plane(adjacency: str) -> None:
    raw = document(privacy={"adjacency": adjacency, "epsilon": 0.2, "delta": "solve"})
    data = pyaccount.certify(raw).data
    mirrored = adjacency == "replace-one"
    for side in ("remove", "add"):
        for point in getattr(data.directions, side).profile:
            truth = in_the_plane(0.15, (1 / 1.5, 1 / 2.5), point.epsilon, reverse=side == "add", mirrored=mirrored)
            assert point.delta_lower <= truth * (1 + 1e-6)
            assert truth * (1 - 1e-6) <= point.delta
            assert point.delta == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
@pytest.mark.parametrize("group", [1, 3])
def test_without_sampling_they_are_rounds_that_compose(adjacency: str, group: int) -> None:
    """One batch of all records: releases are then Gaussian mechanisms one after the other, in closed form."""
    raw = document(
        {"sampler": {"kind": "none", "max_participations": 4}, "training": {"iterations": 9}},
        privacy={"adjacency": adjacency, "group_size": group},
    )
    certificate = pyaccount.certify(raw)
    moved = group * (2 if adjacency == "replace-one" else 1)
    truth = float(oracle.gaussian_epsilon(moved * math.sqrt(4 * (1.5**-2 + 2.5**-2)), DELTA))
    assert certificate.epsilon_lower <= truth <= certificate.epsilon
    assert certificate.epsilon == pytest.approx(truth, rel=1e-9)
    phases = [
        {"training": {"iterations": 9}, "sampler": raw["sampler"], "noise": {"multiplier": sigma}}
        for sigma in (1.5, 2.5)
    ]
    head = {key: raw[key] for key in ("pyaccount", "name", "privacy", "accounting")}
    assert pyaccount.certify({**head, "phases": phases}).epsilon == pytest.approx(certificate.epsilon, rel=1e-12)


BODIES: dict[str, dict[str, Any]] = {
    "groups": {"privacy": {**BASE["privacy"], "group_size": 3}},
    "several draws": {"sampler": {"kind": "poisson", "draws_per_iteration": 2}},
    "fixed-size": sectioned(
        "dataset_size=50 expected_batch_size=5 iterations=3 sampler=fixed-size",
        privacy={**BASE["privacy"], "adjacency": "zero-out"},
    ),
    "with-replacement": sectioned(dataset_size=50, expected_batch_size=5, iterations=3, sampler="with-replacement"),
    "must-ow": sectioned(
        "dataset_size=50 expected_batch_size=5 iterations=3 sampler=must-ow subset_size=10",
        privacy={**BASE["privacy"], "adjacency": "replace-one"},
    ),
    "truncated": sectioned(
        "dataset_size=50 expected_batch_size=5 iterations=3 sampler=poisson truncate_to=8",
        privacy={**BASE["privacy"], "adjacency": "zero-out"},
    ),
    "cyclic-poisson": sectioned(sampling_probability=0.2, iterations=7, sampler="cyclic-poisson", partitions=3),
    "users who share records": {
        "training": {"sampling_probability": 0.1, "iterations": 8},
        "sampler": {
            "kind": "user-b-min-sep",
            "min_separation": 3,
            "records_per_user": 2,
            "attribution": "shared",
            "waits_after": "draw",
        },
        "privacy": {**BASE["privacy"], "adjacency": "zero-out"},
    },
    "certain": {"training": {"sampling_probability": 1, "iterations": 5}},
}


@pytest.mark.parametrize("name", BODIES)
def test_every_composed_sampler_is_that_of_the_effective_multiplier(name: str) -> None:
    raw = document({**BODIES[name], "accounting": {"tolerance": 1e-5}})
    composed = alone(raw)
    if name == "fixed-size":
        # A recursion over the rounds is for one release of each batch.
        composed["accounting"]["method"] = "pld"
    found, one = pyaccount.certify(raw).data, pyaccount.certify(composed).data
    assert found.guarantee.epsilon == pytest.approx(one.guarantee.epsilon, rel=1e-6)
    assert found.guarantee.epsilon_lower == pytest.approx(one.guarantee.epsilon_lower, rel=1e-6)
    assert found.unamplified.epsilon == pytest.approx(one.unamplified.epsilon, rel=1e-6)
    assert [reduction.tight for reduction in found.reductions] == [reduction.tight for reduction in one.reductions]
    assert not inconsistencies(found)


SAMPLED: dict[str, dict[str, Any]] = {
    "balls-in-bins": {"training": {"iterations": 8}, "sampler": {"kind": "balls-in-bins", "bins": 4}},
    "b-min-sep": sectioned(sampling_probability=0.2, iterations=8, sampler="b-min-sep", min_separation=3),
    "random cyclic-poisson": sectioned(
        sampling_probability=0.2, iterations=8, sampler="cyclic-poisson", partitions=3, phase="random"
    ),
    "poisson": {"training": {"sampling_probability": 0.2, "iterations": 8}, "sampler": {"kind": "poisson"}},
}


@pytest.mark.parametrize("name", SAMPLED)
def test_every_sampled_sampler_is_that_of_the_effective_multiplier(name: str) -> None:
    """The intervals of both enclose one number; that of Poisson sampling is composed too."""
    raw = document(
        {**SAMPLED[name], "accounting": {"method": "monte-carlo", "seed": 3}},
        privacy={"adjacency": "zero-out", "delta": 0.01},
    )
    found, one = pyaccount.certify(raw).data, pyaccount.certify(alone(raw)).data
    assert found.guarantee.epsilon_lower <= one.guarantee.epsilon
    assert one.guarantee.epsilon_lower <= found.guarantee.epsilon
    assert found.guarantee.epsilon == pytest.approx(one.guarantee.epsilon, rel=0.02)
    if name == "poisson":
        truth = pyaccount.certify({**alone(raw), "accounting": {"tolerance": 1e-6}}).epsilon
        assert found.guarantee.epsilon_lower <= truth <= found.guarantee.epsilon
    assert not inconsistencies(found)


def test_the_main_release_is_what_is_solved_for() -> None:
    raw = document({"accounting": {}}, privacy={"epsilon": 2.0}, training={"iterations": 50})
    raw["noise"]["multiplier"] = "solve"
    data = pyaccount.certify(raw).data
    alone_ = pyaccount.certify({**raw, "noise": {"multiplier": "solve"}}).data
    assert data.solved is not None
    assert alone_.solved is not None
    assert data.solved.path == "noise.multiplier"
    expected = (alone_.solved.value**-2 - 2.5**-2) ** -0.5
    assert data.solved.value == pytest.approx(expected, rel=2e-3)
    assert data.noise_multiplier == data.phases[0].noise_multiplier == data.solved.value
    assert data.utility is not None
    # The error of the released sums is that of the main release alone.
    assert data.utility.max_error == pytest.approx(data.solved.value * math.sqrt(50), rel=1e-12)
    assert not inconsistencies(data)


def infeasible(changes: dict[str, Any]) -> Any:
    raw = document({"accounting": {"seed": 1}, **changes}, privacy={"epsilon": 0.3})
    raw["noise"] = {"multiplier": "solve", "also": [{"what": "a count", "multiplier": 0.9}]}
    with pytest.raises(DocumentError) as caught:
        pyaccount.certify(raw)
    (problem,) = caught.value.problems
    assert (problem.slug, problem.path_text) == ("target-infeasible", "noise.multiplier")
    assert "more noise on the other releases" in problem.message
    return problem


def test_what_the_others_cost_alone_is_told() -> None:
    training = {"sampling_probability": 0.15, "iterations": 20}
    problem = infeasible({"training": training})
    raw = document({"accounting": {"tolerance": 1e-4}, "training": training, "noise": {"multiplier": 0.9}})
    rest = pyaccount.certify(raw).epsilon
    said = float(problem.message.split("alone cost ε ≥ ")[1].split()[0])
    assert said == pytest.approx(rest, rel=1e-2)
    assert said <= rest


IN_BINS = {"sampler": {"kind": "balls-in-bins", "bins": 4}, "training": {"iterations": 20}}


def test_sampled_too() -> None:
    assert "noise.also" in infeasible(IN_BINS).message


def test_the_blank_of_a_sampled_run() -> None:
    """Also where the other releases hold only because they are sampled: without that they exceed the target for every σ."""
    sampled = {"seed": 1, "tolerance": 0.05, "method": "monte-carlo"}
    raw = document({**IN_BINS, "accounting": sampled}, privacy={"epsilon": 2.5, "delta": 0.01})
    raw["noise"] = {"multiplier": "solve", "also": [{"what": "a count", "multiplier": 2.0}]}
    data = pyaccount.certify(raw).data
    assert data.holds
    assert data.guarantee.kind == "verified"
    assert data.solved is not None
    one = pyaccount.certify({**raw, "noise": {"multiplier": "solve"}}).data
    assert one.solved is not None
    assert data.phases[0].effective_noise_multiplier == pytest.approx(one.solved.value, rel=0.1)
    public = float(oracle.gaussian_epsilon(math.sqrt(5) / 2.0, 0.01))
    assert public > 2.5
    assert not inconsistencies(data)


def test_a_matrix_with_sampling_is_refused(snapshot: Snapshot) -> None:
    matrix = {"kind": "banded-square-root", "bands": 2}
    for sampler in ({"kind": "b-min-sep"}, {"kind": "cyclic-poisson", "phase": "random"}):
        raw = document({"matrix": matrix, "sampler": sampler}, training={"iterations": 10})
        snapshot.raised(compile_document, load(raw))


@pytest.mark.parametrize(
    "also",
    [
        [],
        {"what": "a", "multiplier": 2},
        [{"what": "a"}],
        [{"multiplier": 2}],
        [{"what": "a", "multiplier": 0}],
        [{"what": "a", "multiplier": "solve"}],
        [{"what": "a", "multiplier": 2}, {"what": "", "multiplier": 2}],
        [{"what": "a", "multipliers": 2}],
        [2],
    ],
)
def test_what_may_not_stand_there(also: object, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: load(document(noise={"also": also})))


def test_laplace_noise_has_one_release(snapshot: Snapshot) -> None:
    snapshot.raised(lambda: load(document(noise={"kind": "laplace"})))


def test_what_is_said(snapshot: Snapshot) -> None:
    also = [{"what": "clipped counts", "multiplier": 20}, {"what": "the loss", "multiplier": 3}]
    certificate = pyaccount.certify(document(noise={"also": also}))
    (phase,) = certificate.data.phases
    assert [(one.what, one.noise_multiplier) for one in phase.also or ()] == [
        ("clipped counts", 20.0),
        ("the loss", 3.0),
    ]
    exact = (1.5**-2 + 20**-2 + 3**-2) ** -0.5
    assert phase.effective_noise_multiplier is not None
    assert phase.effective_noise_multiplier < exact == pytest.approx(phase.effective_noise_multiplier, rel=2e-15)
    snapshot(certificate.data.assumptions)
    for text in (certificate.to_text(), certificate.to_markdown(), certificate.to_html()):
        assert all(words in text for words in ("clipped counts", "the loss", "effective multiplier"))
    assert pyaccount.Certificate.from_json(certificate.to_json()).data == certificate.data


def test_one_release_says_nothing_new() -> None:
    written = json.loads(pyaccount.certify({**BASE, "noise": {"multiplier": 1.5}}).to_json())
    assert (written["phases"][0]["also"], written["phases"][0]["effective_noise_multiplier"]) == (None, None)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda phase: phase.update(effective_noise_multiplier=1.4), "phases[0].effective_noise_multiplier"),
        (lambda phase: phase.update(effective_noise_multiplier=None), "phases[0].effective_noise_multiplier"),
        (lambda phase: phase["also"][0].update(noise_multiplier=3.0), "phases[0].also"),
        (lambda phase: phase["also"][0].update(what="another"), "phases[0].also"),
        (lambda phase: phase.update(also=None), "phases[0].also"),
    ],
)
def test_a_certificate_that_says_otherwise_contradicts_itself(change: Callable[[Any], object], path: str) -> None:
    raw = json.loads(pyaccount.certify(BASE).to_json())
    change(raw["phases"][0])
    assert path in [one.path for one in inconsistencies(pyaccount.Certificate.from_json(json.dumps(raw)).data)]


def test_an_accountant_counts_such_rounds() -> None:
    raw = document({"accounting": {}}, training={"iterations": 20})
    expected = pyaccount.certify(raw).epsilon
    ledger = Accountant(adjacency="add-remove", delta=DELTA)
    ledger.step(20, noise_multiplier=1.5, sampling_probability=0.15, also=BASE["noise"]["also"])
    assert ledger.epsilon_spent() == pytest.approx(expected, rel=1e-3)
    again = Accountant(adjacency="add-remove", delta=DELTA)
    again.load_state_dict(ledger.state_dict())
    assert again.epsilon_spent() == ledger.epsilon_spent()
    planned = Accountant(raw)
    planned.step(20)
    assert planned.epsilon_spent() == pytest.approx(expected, rel=1e-3)
    planned = Accountant(document({"accounting": {}}, training={"iterations": 40}))
    planned.step(20)
    assert planned.epsilon_spent() == pytest.approx(expected, rel=1e-3)
    blank = copy.deepcopy(raw)
    blank["noise"]["multiplier"], blank["privacy"]["epsilon"] = "solve", 2.0
    certified = Accountant.from_certificate(pyaccount.certify(blank))
    certified.step(20)
    assert certified.epsilon_spent() <= 2.0


def test_phases_with_and_without() -> None:
    body = {key: BASE[key] for key in ("training", "sampler", "noise")}
    head = {key: BASE[key] for key in ("pyaccount", "name", "privacy")}
    plain = {**body, "noise": {"multiplier": 3.0}}
    data = pyaccount.certify({**head, "phases": [{"name": "one", **body}, {"name": "two", **plain}]}).data
    assert data.phases[0].also is not None
    assert data.phases[1].also is None
    assert any(text.startswith("one: Each round also releases") for text in data.assumptions)
    assert any(text.startswith("two: Fresh Gaussian noise") for text in data.assumptions)
    assert "main one" in data.noise_convention
