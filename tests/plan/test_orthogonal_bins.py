"""Balls in bins whose modes move no coordinate in common: when that is so, and certificates against independent values."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from certificate_oracle import inconsistencies
from log_normals import quadrature
from numpy.typing import NDArray
from phases import phase
from plain_documents import changed, doc, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.document.loading import load
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.matrices import strategy
from pyaccount.plan.samplers import sampler_plan
from pyaccount.plan.samplers.allocation import MOST_KINDS, graded

BASE: dict[str, Any] = doc(
    "name=modes adjacency=add-remove epsilon=1.0 delta=solve iterations=12 sampler=balls-in-bins bins=4",
    "matrix=toeplitz coefficients=[1.0,0.0,0.0,0.0,0.5] multiplier=1.5 tolerance=1e-3",
)


def document(changes: dict[str, Any] | None = None, **sections: dict[str, Any]) -> dict[str, Any]:
    return changed(BASE, changes, sections)


def stored(folder: Path, matrix: NDArray[np.float64]) -> dict[str, Any]:
    np.save(folder / "c.npy", matrix)
    return {"kind": "dense", "file": str(folder / "c.npy"), "normalize": False}


def apart(rounds: int, bins: int) -> NDArray[np.bool_]:
    """Which entries of a matrix lie between rounds of one bin."""
    return np.subtract.outer(np.arange(rounds), np.arange(rounds)) % bins == 0


def sampled(raw: dict[str, Any]) -> bool:
    return compile_document(load(raw)).sampled


def exact_gram(matrix: NDArray[np.float64], bins: int) -> list[list[Fraction]]:
    rounds = len(matrix)
    modes = [[sum(map(Fraction, matrix[row, t::bins].tolist())) for row in range(rounds)] for t in range(bins)]
    return [[sum((a * b for a, b in zip(m, other, strict=True)), Fraction(0)) for other in modes] for m in modes]


@pytest.mark.parametrize(
    ("coefficients", "bins", "without"),
    [
        ([1.0], 5, True),
        ([1.0, 0.0, 0.0, 0.3], 3, True),
        ([1.0, 0.0, 0.0, 0.3], 2, False),
        ([1.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.2], 2, True),
        ([1.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.2], 4, False),
        ([1.0, 0.5], 1, True),
        ([1.0, 0.5], 2, False),
        # Products of these underflow, and yet they are not 0.
        ([1e-150, 0.0, 1e-150, 1e-180], 2, False),
    ],
)
@pytest.mark.usefixtures("in_tmp_path")
def test_samples_go_where_the_gram_matrix_is_diagonal(
    coefficients: list[float], bins: int, without: bool, tmp_path: Path
) -> None:
    """By fractions, which do not round; and the same of the matrix from a file."""
    rounds = 7
    column = np.array([*coefficients, *[0.0] * (rounds - len(coefficients))])
    matrix = np.array([[column[i - j] if i >= j else 0.0 for j in range(rounds)] for i in range(rounds)])
    gram = exact_gram(matrix, bins)
    assert without == all(gram[s][t] == 0 for s in range(bins) for t in range(bins) if s != t)
    toeplitz = {"kind": "toeplitz", "coefficients": coefficients, "normalize": False}
    for described in (toeplitz, stored(tmp_path, matrix)):
        raw = document({"matrix": described}, training={"iterations": rounds}, sampler={"bins": bins})
        assert sampled(raw) is not without
        if without:
            built = strategy(phase(load(raw)))
            for upper in (False, True):
                found = [value for value, count in built.mode_squares(bins, upper=upper) for _ in range(count)]
                for value, exact in zip(found, sorted(gram[t][t] for t in range(bins)), strict=True):
                    assert value >= exact if upper else value <= exact
                    assert value == pytest.approx(float(exact), rel=1e-8)


@pytest.mark.parametrize(
    "changes",
    [
        {"matrix": {"kind": "banded-square-root", "bands": 4}},
        {"matrix": {"kind": "blt", "buffers": 2}},
        {"privacy": {"adjacency": "replace-one"}},
        sectioned(adjacency="zero-out", dataset_size=100, sampler={"truncate_to": 60}),
        {"accounting": {"method": "monte-carlo"}},
        # Norms so different that one grid does not serve both.
        {"matrix": {"kind": "toeplitz", "coefficients": [1.0, 0.0, 0.0, 0.0, 1e3]}, "training": {"iterations": 7}},
    ],
)
def test_samples_stay_where_nothing_else_is_proven(changes: dict[str, Any]) -> None:
    assert not sampled(document())
    whole = {"matrix": changes["matrix"]} if "matrix" in changes else {}
    assert sampled(document(whole, **{section: values for section, values in changes.items() if section != "matrix"}))


def test_no_batch_is_solved_for(snapshot: Snapshot) -> None:
    """How many bins there are follows from the batch then."""
    raw = document(privacy={"epsilon": 2.0, "delta": 1e-5})
    raw["training"] = {"dataset_size": 1200, "expected_batch_size": "solve", "iterations": 24}
    raw["sampler"] = {"kind": "balls-in-bins"}
    snapshot.raised(lambda: compile_document(load(raw)))


@pytest.mark.usefixtures("in_tmp_path")
def test_a_matrix_that_cannot_be_built_is_refused_at_its_place(tmp_path: Path, snapshot: Snapshot) -> None:
    for matrix in ({"kind": "dense", "file": str(tmp_path / "none.npy")}, stored(tmp_path, np.eye(12) * 1e-170)):
        snapshot.raised(compile_document, load(document({"matrix": matrix})))


@pytest.mark.parametrize("matrix", ["banded-square-root", "optimal-toeplitz"])
def test_one_band_is_no_matrix(matrix: str) -> None:
    for iterations in (12, 10):
        length = {"training": {"iterations": iterations}}
        plain = pyaccount.certify(document({"matrix": {"kind": "identity"}}, **length)).data
        banded = pyaccount.certify(document({"matrix": {"kind": matrix, "bands": 1}}, **length)).data
        assert banded.guarantee == plain.guarantee
        assert banded.reductions[0].pair == plain.reductions[0].pair


def test_a_scaled_identity_is_more_or_less_noise() -> None:
    scaled = {"kind": "toeplitz", "coefficients": [2.0], "normalize": False}
    found = pyaccount.certify(document({"matrix": scaled}, noise={"multiplier": 3.0})).data.guarantee
    plain = pyaccount.certify(document({"matrix": {"kind": "identity"}})).data.guarantee
    assert found.delta_lower <= plain.delta_lower
    assert plain.delta <= found.delta <= plain.delta * (1 + 1e-7)


@pytest.mark.parametrize(
    ("rounds", "bins", "coefficients"), [(2, 2, []), (5, 2, [1.0, 0.0, 0.5]), (3, 3, []), (4, 3, [1.0, 0.0, 0.0, 0.7])]
)
@pytest.mark.usefixtures("in_tmp_path")
def test_two_and_three_bins_by_quadrature(rounds: int, bins: int, coefficients: list[float], tmp_path: Path) -> None:
    """Unequal norms: a diagonal matrix, or a bin with one turn more."""
    if coefficients:
        matrix = {"kind": "toeplitz", "coefficients": coefficients, "normalize": False}
        column = np.array([*coefficients, *[0.0] * (rounds - len(coefficients))])
        dense = np.array([[column[i - j] if i >= j else 0.0 for j in range(rounds)] for i in range(rounds)])
    else:
        dense = np.diag([1.0, 0.6, 1.3][:rounds])
        matrix = stored(tmp_path, dense)
    modes = [dense[:, t::bins].sum(axis=1) for t in range(bins)]
    squares = [float(mode @ mode) / 1.5**2 for mode in modes]
    assert len(set(squares)) > 1
    raw = document({"matrix": matrix}, training={"iterations": rounds}, sampler={"bins": bins})
    raw["accounting"]["profile"] = [0.0, 0.3, 1.0]
    data = pyaccount.certify(raw).data
    assert data.guarantee.kind == "deterministic"
    assert not inconsistencies(data)
    for reverse, direction in enumerate((data.directions.remove, data.directions.add)):
        for row in direction.profile:
            truth = quadrature(squares, row.epsilon, reverse=bool(reverse))
            assert row.delta_lower <= truth * (1 + 1e-7)
            assert truth * (1 - 1e-7) <= row.delta <= row.delta_lower * 1.01


def test_one_bin_is_one_gaussian_mechanism() -> None:
    """Of whatever matrix: a record is in every round."""
    raw = document({"matrix": {"kind": "blt", "buffers": 2}}, sampler={"bins": 1}, privacy={"epsilon": "solve"})
    raw["privacy"]["delta"] = 1e-5
    data = pyaccount.certify(raw).data
    built = strategy(phase(load(raw)))
    assert built.coefficients is not None
    norm = math.hypot(*np.cumsum(built.coefficients))
    truth = float(oracle.gaussian_epsilon(norm / 1.5, 1e-5))
    assert data.guarantee.epsilon_lower <= truth <= data.guarantee.epsilon <= truth * 1.002


@pytest.mark.parametrize("kind", ["toeplitz", "one norm each", "many norms"])
@pytest.mark.usefixtures("in_tmp_path")
def test_samples_agree(kind: str, tmp_path: Path) -> None:
    rounds, bins, generator = (14, 4, np.random.default_rng(20261123))[0:3]
    matrix: dict[str, Any] = {"kind": "toeplitz", "coefficients": [1.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.25]}
    if kind != "toeplitz":
        # More norms than are summed one by one, close to each other, in the second case.
        rounds, bins, least = (12, 6, 0.4) if kind == "one norm each" else (40, 20, 0.98)
        entries = np.tril(generator.uniform(least, 1.0, (rounds, rounds))) * apart(rounds, bins)
        matrix = {**stored(tmp_path, entries), "normalize": True}
    raw = document({"matrix": matrix}, training={"iterations": rounds}, sampler={"bins": bins})
    kinds = len(strategy(phase(load(raw))).mode_squares(bins, upper=True))
    assert kinds == {"toeplitz": 2, "one norm each": 6, "many norms": 20}[kind]
    assert (kinds > MOST_KINDS) == (kind == "many norms")
    exact = pyaccount.certify(raw).data
    assert exact.guarantee.kind == "deterministic"
    assert exact.phases[0].matrix.kind == matrix["kind"]
    assert exact.guarantee.delta <= 1.02 * exact.guarantee.delta_lower
    accounting = {"method": "monte-carlo", "tolerance": 0.05, "seed": 20261123}
    samples = pyaccount.certify(raw | {"accounting": accounting}).data
    assert samples.guarantee.kind != "deterministic"
    assert samples.guarantee.delta_lower <= exact.guarantee.delta
    assert exact.guarantee.delta_lower <= samples.guarantee.delta <= 1.2 * exact.guarantee.delta


def test_values_are_moved_to_the_safe_side() -> None:
    generator = np.random.default_rng(3)
    for count in (3, MOST_KINDS + 1, 200):
        values = sorted(generator.uniform(1.0, 1.3, count).tolist())
        squares = tuple((value, 1 + k % 3) for k, value in enumerate(values))
        for upper in (False, True):
            found = graded(squares, upper=upper)
            assert len(found) <= max(MOST_KINDS + 1, 3)
            moved = [value for value, many in found for _ in range(many)]
            given = [value for value, many in squares for _ in range(many)]
            for at, value in zip(moved, given, strict=True):
                assert value <= at <= value * 1.3 ** (1 / 15) if upper else at <= value <= at * 1.3 ** (1 / 15)


def test_a_choice_of_bands_may_go_without_samples_for_one_of_them() -> None:
    raw = document({"matrix": {"kind": "banded-square-root", "bands": {"choose": [1, 2]}}})
    raw["privacy"] = {"adjacency": "add-remove", "epsilon": 2.0, "delta": 1e-3}
    raw |= {"noise": {"multiplier": "solve"}, "accounting": {"tolerance": 0.05, "seed": 20261123}}
    certificate = pyaccount.certify(raw)
    one, two = certificate.data.evidence.considered
    assert (one.bands, two.bands) == (1, 2)
    assert two.prefix_sum_mse_estimate < one.prefix_sum_mse_estimate
    assert certificate.data.guarantee.kind == "verified"
    raw["matrix"] = {"kind": "banded-square-root", "bands": 1}
    alone = pyaccount.certify(raw)
    assert alone.data.guarantee.kind == "deterministic"
    assert alone.noise_multiplier == pytest.approx(one.noise_multiplier_estimate, rel=0.01)


def test_the_bin_known_needs_no_vectors() -> None:
    """4096 modes of a hundred million rounds each would not fit anywhere."""
    raw = document({"matrix": {"kind": "identity"}}, training={"iterations": 10**8}, sampler={"bins": 4096})
    norm = sampler_plan(phase(load(raw))).worst().norm()
    turns = -(-(10**8) // 4096)
    assert math.sqrt(turns) <= norm <= math.sqrt(turns) * (1 + 1e-6)
