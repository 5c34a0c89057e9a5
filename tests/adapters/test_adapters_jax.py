"""Strategies and coefficients of jax_privacy, as sections of documents.

Stand-ins have the names and fields of version 2.0.0, since the library pulls in half a gigabyte; where it is installed, it is
tested too, and so is that the stand-ins are like it.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import oracle
import pytest
from adapter_samples import BASE, DELTA, only_problem
from sampled_tools import lower_toeplitz
from snapshots import Snapshot

import pyaccount
from pyaccount.adapters import jax_privacy


class PartitionType(enum.Enum):
    INDEPENDENT = enum.auto()
    EQUAL_SPLIT = enum.auto()


@dataclasses.dataclass(frozen=True)
class CyclicPoissonSampling:
    sampling_prob: float
    iterations: int
    truncated_batch_size: int | None = None
    cycle_length: int = 1
    partition_type: PartitionType = PartitionType.EQUAL_SPLIT


@dataclasses.dataclass(frozen=True)
class BallsInBinsSampling:
    iterations: int
    cycle_length: int


@dataclasses.dataclass(frozen=True)
class FixedBatchSampling:
    batch_size: int
    iterations: int
    replace: bool = False


@dataclasses.dataclass(frozen=True)
class BMinSepSampling:
    sampling_prob: float
    iterations: int
    min_sep: int
    warm_start: bool = True
    truncated_batch_size: int | None = None


@dataclasses.dataclass(frozen=True)
class UserSelectionStrategy:
    base_strategy: object
    examples_per_user_per_batch: int = 1
    shuffle_per_user: bool = False


STAND_INS = (CyclicPoissonSampling, BallsInBinsSampling, FixedBatchSampling, BMinSepSampling, UserSelectionStrategy)


def test_the_stand_ins_are_like_the_library() -> None:
    library = pytest.importorskip("jax_privacy.batch_selection")
    for ours in STAND_INS:
        theirs = getattr(library, ours.__name__)
        assert [(f.name, str(f.default)) for f in dataclasses.fields(theirs)] == [
            (f.name, str(f.default)) for f in dataclasses.fields(ours)
        ]
    assert [kind.name for kind in library.PartitionType] == [kind.name for kind in PartitionType]
    strategies = {
        name for name, value in vars(library).items() if isinstance(value, type) and hasattr(value, "batch_iterator")
    }
    assert strategies == {ours.__name__ for ours in STAND_INS} | {"BatchSelectionStrategy"}


@pytest.fixture(params=["stand-ins", "library"])
def selection(request: pytest.FixtureRequest) -> Any:
    return sys.modules[__name__] if request.param == "stand-ins" else pytest.importorskip("jax_privacy.batch_selection")


def sections(strategy: Any, **keywords: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sections, which with noise and a budget make a document that can be planned."""
    keywords = {"adjacency": "zero-out"} | keywords
    made = jax_privacy.from_strategy(strategy, **keywords)
    pyaccount.compile(
        {**copy.deepcopy(BASE), "privacy": {**BASE["privacy"], "adjacency": keywords["adjacency"]}, **made}
    )
    return made["training"], made["sampler"]


def test_strategies(selection: Any) -> None:
    s = selection
    rate = {"iterations": 8, "sampling_probability": 0.25}
    assert sections(s.CyclicPoissonSampling(0.25, 8)) == (rate, {"kind": "poisson"})
    assert sections(s.CyclicPoissonSampling(0.25, 8, truncated_batch_size=9), dataset_size=100) == (
        {**rate, "dataset_size": 100},
        {"kind": "poisson", "truncate_to": 9},
    )
    cyclic = s.CyclicPoissonSampling(0.25, 8, cycle_length=4)
    known = {"kind": "cyclic-poisson", "partitions": 4, "phase": "fixed"}
    assert sections(cyclic) == (rate, known)
    independent = dataclasses.replace(cyclic, partition_type=s.PartitionType.INDEPENDENT)
    for adjacency in ("add-remove", "zero-out"):
        assert sections(independent, adjacency=adjacency) == (rate, {**known, "phase": "random"})
        assert sections(independent, adjacency=adjacency, known_parts=True) == (rate, known)
    assert sections(s.BallsInBinsSampling(8, 4)) == ({"iterations": 8}, {"kind": "balls-in-bins", "bins": 4})
    fixed = {"iterations": 8, "dataset_size": 100, "expected_batch_size": 5}
    assert sections(s.FixedBatchSampling(5, 8), dataset_size=100) == (fixed, {"kind": "fixed-size"})
    replaced = sections(s.FixedBatchSampling(5, 8, replace=True), dataset_size=np.int64(100))
    assert replaced == (fixed, {"kind": "with-replacement"})
    apart = {"kind": "b-min-sep", "min_separation": 3, "start": "warm"}
    assert sections(s.BMinSepSampling(0.25, 8, 3)) == (rate, apart)
    cold = s.BMinSepSampling(0.25, 8, 3, warm_start=False, truncated_batch_size=40)
    assert sections(cold, dataset_size=100) == (
        {**rate, "dataset_size": 100},
        {**apart, "start": "cold", "truncate_to": 40},
    )


@pytest.mark.parametrize(
    ("make", "keywords", "path", "slug"),
    [
        (
            lambda s: s.CyclicPoissonSampling(0.1, 8, None, 4),
            {"adjacency": "add-remove"},
            "partition_type",
            "no-equivalent",
        ),
        (lambda s: s.CyclicPoissonSampling(0.1, 8, 9, 4), {}, "truncated_batch_size", "no-equivalent"),
        (lambda s: s.CyclicPoissonSampling(0.1, 8, 9), {}, "dataset_size", "no-equivalent"),
        (lambda s: s.CyclicPoissonSampling(0.1, 8, None, 4, None), {}, "partition_type", "no-equivalent"),
        (lambda s: s.CyclicPoissonSampling(0.0, 8), {}, "sampling_prob", "out-of-range"),
        (lambda s: s.CyclicPoissonSampling(0.1, 0), {}, "iterations", "out-of-range"),
        (lambda s: s.FixedBatchSampling(5, 8), {}, "dataset_size", "no-equivalent"),
        (lambda s: s.FixedBatchSampling(0, 8), {"dataset_size": 10}, "batch_size", "out-of-range"),
        (lambda s: s.BallsInBinsSampling(8, 2.0), {}, "cycle_length", "wrong-type"),
        (lambda s: s.UserSelectionStrategy(s.BallsInBinsSampling(8, 2)), {}, "base_strategy", "no-equivalent"),
        (lambda s: object(), {}, "", "no-equivalent"),
    ],
)
def test_strategies_without_a_document(
    selection: Any, make: Callable[[Any], Any], keywords: dict[str, Any], path: str, slug: str
) -> None:
    problem = only_problem(jax_privacy.from_strategy, make(selection), **{"adjacency": "zero-out"} | keywords)
    assert (problem.path_text, problem.slug) == (path, slug)


def test_coefficients_mean_the_matrix_as_it_is() -> None:
    column = np.array([1.0, 0.5, 0.375], dtype=np.float32)
    matrix = jax_privacy.from_coefficients(column, iterations=6)
    assert matrix == {"kind": "toeplitz", "coefficients": [1.0, 0.5, 0.375], "normalize": False}
    assert jax_privacy.from_coefficients((1, 0.5, 0.375), iterations=2)["coefficients"] == [1.0, 0.5]
    document = {
        **BASE,
        "privacy": {**BASE["privacy"], "epsilon": "solve"},
        "training": {"iterations": 6},
        "sampler": {"kind": "none"},
        "matrix": matrix,
    }
    certificate = pyaccount.certify(document)
    # Training adds C⁻¹Z with noise of standard deviation 2: every record in every round moves Z by ‖C·1‖ at most.
    moved = float(np.linalg.norm(lower_toeplitz(column.astype(float), 6).sum(axis=1)))
    exact = float(oracle.gaussian_epsilon(moved / 2, DELTA))
    assert exact <= certificate.epsilon <= exact * (1 + 3e-4)


def test_coefficients_of_the_library() -> None:
    toeplitz = pytest.importorskip("jax_privacy.matrix_factorization.toeplitz")
    column = toeplitz.optimal_max_error_strategy_coefs(8)
    matrix = jax_privacy.from_coefficients(column, iterations=8)
    assert matrix["coefficients"] == [float(c) for c in column]
    theirs = float(toeplitz.minsep_sensitivity_squared(column, min_sep=4, max_participations=2, n=8)) ** 0.5
    document = {
        **BASE,
        "training": {"iterations": 8},
        "sampler": {"kind": "none", "min_separation": 4, "max_participations": 2},
        "matrix": matrix,
    }
    pair = pyaccount.compile(document).reductions[0].pair
    assert float(pair.split("·")[1].split(",")[0]) == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize(
    "coefficients",
    [
        [],
        3.0,
        np.float64(3),
        "abc",
        [1, -0.5],
        [1, float("nan")],
        [1, [2]],
        np.eye(2),
    ],
)
def test_what_are_no_coefficients(coefficients: Any, snapshot: Snapshot) -> None:
    snapshot(only_problem(jax_privacy.from_coefficients, coefficients, iterations=8))


@dataclasses.dataclass(frozen=True)
class Relation:
    """A neighbouring relation of dp_accounting, by name, or an accountant that has one."""

    name: str = "REPLACE_SPECIAL"

    @property
    def neighboring_relation(self) -> Relation:
        return self


@dataclasses.dataclass(frozen=True)
class BandMFExecutionPlanConfig:
    """The fields that say what is run, with the defaults of version 2.0.0."""

    iterations: int
    strategy: Any
    epsilon: float | None
    delta: float | None
    noise_multiplier: float | None = None
    sampling_prob: float = 1.0
    truncated_batch_size: int | None = None
    num_examples: int | None = None
    partition_type: Any = PartitionType.EQUAL_SPLIT
    column_normalize: bool = False
    accountant: Any = Relation()


def test_a_configuration_is_a_document() -> None:
    config = BandMFExecutionPlanConfig(8, np.array([2.0, 1.0]), 1.0, 1e-5, sampling_prob=0.25)
    document = jax_privacy.from_config(config, dataset_size=100)
    assert document["privacy"] == {"adjacency": "zero-out", "epsilon": 1.0, "delta": 1e-5}
    assert document["training"] == {"dataset_size": 100, "sampling_probability": 0.25, "iterations": 8}
    assert document["sampler"] == {"kind": "cyclic-poisson", "partitions": 2, "phase": "fixed"}
    assert document["matrix"] == {"kind": "toeplitz", "coefficients": [2.0, 1.0], "normalize": True}
    assert document["noise"]["multiplier"] == "solve"
    alone = dataclasses.replace(config, strategy=[3.0], epsilon=None, delta=None, noise_multiplier=1.5)
    document = jax_privacy.from_config(alone, delta=1e-6)
    assert document["privacy"] == {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-6}
    assert document["sampler"]["kind"] == "poisson"
    assert document.get("matrix", {"kind": "identity"})["kind"] == "identity"
    assert document["noise"]["multiplier"] == 1.5
    # Under REPLACE_ONE their unit is the distance of two sums.
    replaced = dataclasses.replace(alone, accountant=Relation("REPLACE_ONE"))
    assert jax_privacy.from_config(replaced, delta=1e-6)["noise"]["multiplier"] == 3.0


@pytest.mark.parametrize(
    "changes",
    [
        {"column_normalize": True},
        {"accountant": Relation("NEAR")},
        {"accountant": Relation("ADD_OR_REMOVE_ONE")},
        {"truncated_batch_size": 9, "num_examples": 100},
        {"noise_multiplier": 1.0, "epsilon": None, "delta": None},
        {"strategy": [1.0, -0.5]},
        {"iterations": 0},
    ],
)
def test_configurations_without_a_document(changes: dict[str, Any], snapshot: Snapshot) -> None:
    config = BandMFExecutionPlanConfig(8, [1.0, 0.5], 1.0, 1e-5, sampling_prob=0.25)
    snapshot(only_problem(jax_privacy.from_config, dataclasses.replace(config, **changes)))


@pytest.mark.parametrize(
    ("relation", "strategy", "rate"),
    [
        ("REPLACE_SPECIAL", [1.0], 0.1),
        ("REPLACE_SPECIAL", [2.0, 1.0, 0.5], 0.25),
        ("ADD_OR_REMOVE_ONE", [1.0, 0.5], 0.25),
        ("REPLACE_ONE", [1.0, 0.5], 1.0),
    ],
)
def test_the_document_of_a_configuration_of_the_library_has_its_epsilon(
    relation: str, strategy: list[float], rate: float
) -> None:
    """The bound of dp_accounting for the event of their plan, and the noise that their plan adds to a sum."""
    plans = pytest.importorskip("jax_privacy.experimental.execution_plan")
    accounting, selection = pytest.importorskip("dp_accounting"), pytest.importorskip("jax_privacy.batch_selection")
    kinds = selection.PartitionType
    config = plans.BandMFExecutionPlanConfig(
        iterations=12,
        strategy=np.array(strategy),
        epsilon=None,
        delta=None,
        noise_multiplier=2.0,
        sampling_prob=rate,
        l2_clip_norm=0.5,
        rescale_to_unit_norm=False,
        partition_type=kinds.INDEPENDENT if relation == "ADD_OR_REMOVE_ONE" else kinds.EQUAL_SPLIT,
        accountant=accounting.pld.PLDAccountant(getattr(accounting.NeighboringRelation, relation)),
        noise_seed=1,
    )
    document = jax_privacy.from_config(config, delta=DELTA)
    certificate = pyaccount.certify(document)
    accountant = accounting.pld.PLDAccountant(
        # An event has no sensitivity; that of a replacement is in the multiplier.
        accounting.NeighboringRelation.REPLACE_SPECIAL
        if relation == "REPLACE_ONE"
        else getattr(accounting.NeighboringRelation, relation)
    )
    theirs = accountant.compose(config.plan.dp_event).get_epsilon(DELTA)
    assert certificate.epsilon == pytest.approx(theirs, rel=1e-3)
    # The first row of C⁻¹Z is Z/c₀: its standard deviation is σ·clip norm/c₀ for the normalised matrix.
    jax = pytest.importorskip("jax")
    transform = config.plan.noise_addition_transform
    zeros = jax.numpy.zeros(200_000)
    first = np.asarray(transform.update(zeros, transform.init(zeros))[0])
    matrix = document.get("matrix", {})
    column = np.array(matrix.get("coefficients", [1.0]))
    expected = document["noise"]["multiplier"] * 0.5 * float(np.linalg.norm(column)) / column[0]
    assert first.std() == pytest.approx(expected, rel=0.01)
