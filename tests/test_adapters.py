"""What other libraries have, as documents: the same mechanism, by their own accountants, or a refusal with its place."""

from __future__ import annotations

import copy
import dataclasses
import enum
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dp_accounting as dp  # type: ignore[import-untyped]
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from sampled_tools import lower_toeplitz

import pyaccount
from pyaccount.adapters import dp_accounting, jax_privacy, opacus
from pyaccount.errors import DocumentError, MissingExtraError

G, L = dp.GaussianDpEvent, dp.LaplaceDpEvent
P, Many, All = dp.PoissonSampledDpEvent, dp.SelfComposedDpEvent, dp.ComposedDpEvent
OPACUS = json.loads((Path(__file__).parent / "golden" / "opacus.json").read_text(encoding="utf-8"))
DELTA = 1e-5


def only_problem(call: Callable[..., object], *args: Any, **keywords: Any) -> Any:
    with pytest.raises(DocumentError) as caught:
        call(*args, **keywords)
    (problem,) = caught.value.problems
    return problem


# Opacus.


@pytest.mark.parametrize("case", OPACUS["cases"], ids=lambda case: case["state_dict"]["mechanism"])
def test_a_state_of_opacus_certifies_what_its_accountant_bounds(case: dict[str, Any]) -> None:
    document = opacus.from_history(case["state_dict"], delta=case["delta"])
    bodies = document.get("phases", [document])
    told = [
        [b["noise"]["multiplier"], b["training"]["sampling_probability"], b["training"]["iterations"]] for b in bodies
    ]
    assert told == case["state_dict"]["history"]
    certificate = pyaccount.certify(document)
    match case["state_dict"]["mechanism"]:
        case "rdp":
            assert certificate.epsilon_lower <= case["epsilon"]
        case "prv":
            assert certificate.epsilon_lower <= case["epsilon"] <= certificate.epsilon + 0.02
        case "gdp":
            # The accountant that Opacus itself warns of.
            assert case["epsilon"] < certificate.epsilon_lower


def test_a_history_in_every_form_is_one_document() -> None:
    class Live:
        def __init__(self) -> None:
            self.history = [(1.1, 0.01, 5), (np.float64(1.1), 0.01, np.int64(7))]

    live = Live()
    state = {"history": [[1.1, 0.01, 5], [1.1, 0.01, 7]], "mechanism": "prv"}
    documents = [opacus.from_history(form, delta=DELTA) for form in (live, live.history, state)]
    assert documents[0] == documents[1] == documents[2]
    assert documents[0]["training"] == {"sampling_probability": 0.01, "iterations": 12}
    assert opacus.from_history(live, delta=DELTA, epsilon=3)["privacy"]["epsilon"] == 3


def test_an_accountant_goes_on_from_a_history() -> None:
    history = [(1.1, 0.01, 5), (0.9, 0.02, 7)]
    accountant = opacus.accountant(history, delta=DELTA, epsilon=2)
    assert accountant.steps == 12
    document = opacus.from_history(history, delta=DELTA)
    assert accountant.epsilon_spent() == pyaccount.certify(document).epsilon
    accountant.step(noise_multiplier=0.9, sampling_probability=0.02)
    assert accountant.document()["phases"][1]["training"]["iterations"] == 8
    assert opacus.accountant([], delta=DELTA).epsilon_spent() == 0


@pytest.mark.parametrize(
    ("source", "path", "slug"),
    [
        ({}, "", "no-equivalent"),
        ({"mechanism": "rdp"}, "", "no-equivalent"),
        ([], "history", "no-equivalent"),
        (None, "history", "wrong-type"),
        ("history", "history", "wrong-type"),
        ([1], "history[0]", "wrong-type"),
        ([(1, 0.1)], "history[0]", "wrong-type"),
        ([(1, 0.1, 5), (0, 0.1, 5)], "history[1][0]", "out-of-range"),
        ([(1, 1.5, 5)], "history[0][1]", "out-of-range"),
        ([(1, float("nan"), 5)], "history[0][1]", "out-of-range"),
        ([(1, 0.1, 0)], "history[0][2]", "out-of-range"),
        ([(1, 0.1, 5.0)], "history[0][2]", "wrong-type"),
        ([(1, 0.1, True)], "history[0][2]", "wrong-type"),
        ([("1", 0.1, 5)], "history[0][0]", "wrong-type"),
        ([(10**400, 0.1, 5)], "history[0][0]", "wrong-type"),
    ],
)
def test_what_is_no_history(source: Any, path: str, slug: str) -> None:
    problem = only_problem(opacus.from_history, source, delta=DELTA)
    assert (problem.path_text, problem.slug) == (path, slug)


def test_opacus_itself_where_it_is_installed() -> None:
    accountants = pytest.importorskip("opacus.accountants")
    theirs = accountants.create_accountant("rdp")
    for _ in range(5):
        theirs.step(noise_multiplier=1.5, sample_rate=0.1)
    certificate = pyaccount.certify(opacus.from_history(theirs, delta=DELTA))
    assert certificate.data.phases[0].iterations == 5
    assert certificate.epsilon_lower <= theirs.get_epsilon(DELTA)


# dp_accounting.

RELATIONS = {
    "add-remove": dp.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "zero-out": dp.NeighboringRelation.REPLACE_SPECIAL,
    "replace-one": dp.NeighboringRelation.REPLACE_ONE,
}
GRID = 1e-4
TREES: list[tuple[Any, list[str], int]] = [
    (All([Many(P(0.01, G(1.1)), 100), G(8.0), Many(L(20.0), 3), dp.NoOpDpEvent()]), ["add-remove", "zero-out"], 104),
    (Many(All([P(0.02, G(1.0)), Many(P(0.05, G(2.0)), 2)]), 30), list(RELATIONS), 90),
    (All([Many(G(20.0), 4), P(0.3, G(9.0))]), list(RELATIONS), 5),
    (Many(Many(P(1.0, G(6.0)), 2), 3), list(RELATIONS), 6),
    (P(0.1, All([Many(G(1.5), 1)])), ["add-remove"], 1),
]


@pytest.mark.parametrize(
    ("tree", "adjacency", "rounds"), [(tree, adjacency, n) for tree, known, n in TREES for adjacency in known]
)
def test_the_peers_figure_meets_the_interval(tree: Any, adjacency: str, rounds: int) -> None:
    certificate = pyaccount.certify(dp_accounting.from_event(tree, adjacency=adjacency, delta=DELTA))
    simple = Many(P(0.1, G(1.5)), 1) if isinstance(tree, P) else tree
    peer = PLDAccountant(RELATIONS[adjacency], value_discretization_interval=GRID)
    theirs = peer.compose(simple).get_epsilon(DELTA)
    # The peer's figure is an upper bound, and its grid moves it by at most one interval for each round.
    assert certificate.epsilon_lower <= theirs * (1 + 1e-6)
    assert theirs <= certificate.epsilon + rounds * GRID


def test_truncated_batches_under_zero_out() -> None:
    event = Many(dp.TruncatedSubsampledGaussianDpEvent(1000, 0.05, 60, 1.5), 10)
    document = dp_accounting.from_event(event, adjacency="zero-out", delta=DELTA)
    assert document["sampler"] == {"kind": "poisson", "truncate_to": 60}
    theirs = PLDAccountant(RELATIONS["zero-out"]).compose(event).get_epsilon(DELTA)
    assert pyaccount.certify(document).epsilon_lower <= theirs * (1 + 1e-6)
    assert dp_accounting.to_event(document) == event
    with pytest.raises(DocumentError):
        pyaccount.certify({**document, "privacy": {**document["privacy"], "adjacency": "add-remove"}})


def test_batches_of_a_fixed_size() -> None:
    tree = All(
        [
            Many(dp.SampledWithoutReplacementDpEvent(1000, 10, G(2.0)), 5),
            dp.SampledWithReplacementDpEvent(1000, 20, G(3.0)),
        ]
    )
    document = dp_accounting.from_event(tree, adjacency="replace-one", delta=DELTA, epsilon=4, group_size=1)
    assert document["phases"] == [
        {
            "training": {"dataset_size": 1000, "expected_batch_size": 10, "iterations": 5},
            "sampler": {"kind": "fixed-size"},
            "noise": {"multiplier": 2},
        },
        {
            "training": {"dataset_size": 1000, "expected_batch_size": 20, "iterations": 1},
            "sampler": {"kind": "with-replacement"},
            "noise": {"multiplier": 3},
        },
    ]
    assert dp_accounting.to_event(document) == tree
    assert pyaccount.certify(document).holds


def leaves(event: Any, runs: int = 1) -> Counter[Any]:
    """How often each sampled or plain release is run."""
    if isinstance(event, Many):
        return leaves(event.event, runs * event.count)
    if isinstance(event, All):
        return sum((leaves(part, runs) for part in event.events), Counter())
    return Counter() if isinstance(event, dp.NoOpDpEvent) else Counter({event: runs})


RELEASES = st.one_of(
    st.builds(G, st.sampled_from([1.0, 2.5])),
    st.builds(L, st.sampled_from([3.0])),
    st.builds(P, st.sampled_from([0.1, 0.25]), st.builds(G, st.sampled_from([1.0, 2.0]))),
    st.builds(dp.SampledWithoutReplacementDpEvent, st.just(100), st.integers(1, 3), st.just(G(2.0))),
    st.builds(dp.NoOpDpEvent),
)


@given(
    st.recursive(
        RELEASES, lambda inner: st.builds(Many, inner, st.integers(0, 4)) | st.builds(All, st.lists(inner, max_size=4))
    )
)
def test_trees_there_and_back(tree: Any) -> None:
    expected = +leaves(tree)
    if not expected:
        assert only_problem(dp_accounting.from_event, tree, adjacency="add-remove", delta=DELTA).slug == "no-equivalent"
        return
    document = dp_accounting.from_event(tree, adjacency="add-remove", delta=DELTA)
    back = dp_accounting.to_event(document)
    assert leaves(back) == expected
    assert dp_accounting.from_event(back, adjacency="add-remove", delta=DELTA) == document


@pytest.mark.parametrize(
    ("tree", "path", "words"),
    [
        (dp.NonPrivateDpEvent(), "", "without noise"),
        (dp.UnsupportedDpEvent(), "", "nothing is known"),
        (Many(All([G(1.0), dp.ZCDpEvent(0.1)]), 2), "event.events[1]", "which mechanism"),
        (P(0.1, Many(G(1.0), 2)), "event", "one draw"),
        (P(0.1, All([G(1.0), G(2.0)])), "event", "one draw"),
        (P(0.1, P(0.1, G(1.0))), "event", "below a sampler"),
        (P(0.1, dp.ZCDpEvent(0.1)), "event", "which mechanism"),
        (Many(P(0.1, L(1.0)), 3), "event.event", "amplification"),
        (dp.dp_event.DiscreteLaplaceDpEvent(0.5, 1), "", "integers"),
        (dp.dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5]), "", "sampler"),
        (dp.SingleEpochTreeAggregationDpEvent(1.0, 4), "", "tree aggregation"),
        (dp.dp_event.RepeatAndSelectDpEvent(G(1.0), 2.0, 1.0), "", "choice"),
        (dp.RandomizedResponseDpEvent(0.5, 2), "", "randomized response"),
        (object(), "", "no document describes"),
        (None, "", "no document describes"),
        (All([dp.NoOpDpEvent()]), "", "release nothing"),
        (P(0.0, G(1.0)), "", "release nothing"),
        (Many(Many(G(1.0), 10**6), 10**6), "event.event", "more than a document"),
    ],
)
def test_events_without_a_document(tree: Any, path: str, words: str) -> None:
    problem = only_problem(dp_accounting.from_event, tree, adjacency="add-remove", delta=DELTA)
    assert (problem.slug, problem.path_text) == ("no-equivalent", path)
    assert words in problem.message


@pytest.mark.parametrize(
    ("tree", "path", "slug"),
    [
        (G(0.0), "noise_multiplier", "out-of-range"),
        (Many(P(0.1, G(-1.0)), 2), "event.event.noise_multiplier", "out-of-range"),
        (All([G(1.0), P(1.5, G(1.0))]), "events[1].sampling_probability", "out-of-range"),
        (Many(G(1.0), -1), "count", "out-of-range"),
        (Many(G(1.0), 2.5), "count", "wrong-type"),
        (G("1"), "noise_multiplier", "wrong-type"),
        (All(3), "events", "wrong-type"),
        (dp.SampledWithoutReplacementDpEvent(0, 1, G(1.0)), "source_dataset_size", "out-of-range"),
        (dp.SampledWithReplacementDpEvent(10, 0, G(1.0)), "sample_size", "out-of-range"),
    ],
)
def test_wrong_numbers_in_events(tree: Any, path: str, slug: str) -> None:
    problem = only_problem(dp_accounting.from_event, tree, adjacency="add-remove", delta=DELTA)
    assert (problem.path_text, problem.slug) == (path, slug)


def test_a_tree_that_never_ends() -> None:
    tree: Any = G(1.0)
    for _ in range(200):
        tree = Many(tree, 2)
    assert "levels" in only_problem(dp_accounting.from_event, tree, adjacency="add-remove", delta=DELTA).message


def test_every_event_of_the_library_is_read_or_refused_by_name() -> None:
    """A new version's events are told from those that were thought of."""
    known = {*dp_accounting._REFUSED, *dp_accounting._READ.replace(",", "").split(), "DpEvent"}
    theirs = {name for name in vars(dp.dp_event) if name.endswith("DpEvent")}
    assert theirs <= known


BASE: dict[str, Any] = {
    "pyaccount": 1,
    "name": "base",
    "privacy": {"adjacency": "zero-out", "epsilon": 4, "delta": DELTA},
    "training": {"sampling_probability": 0.1, "iterations": 20},
    "sampler": {"kind": "poisson"},
    "noise": {"multiplier": 2},
}


@pytest.mark.parametrize(
    ("changes", "path", "slug"),
    [
        ({"sampler": {"kind": "b-min-sep", "min_separation": 3}}, "sampler.kind", "no-equivalent"),
        ({"sampler": {"kind": "cyclic-poisson", "partitions": 2}}, "sampler.kind", "no-equivalent"),
        ({"privacy": {**BASE["privacy"], "group_size": 2}}, "privacy.group_size", "no-equivalent"),
        ({"noise": {"multiplier": "solve"}}, "noise.multiplier", "unfilled-blank"),
    ],
)
def test_documents_without_an_event(changes: dict[str, Any], path: str, slug: str) -> None:
    problem = only_problem(dp_accounting.to_event, {**BASE, **changes})
    assert (problem.path_text, problem.slug) == (path, slug)


def test_a_matrix_has_no_event() -> None:
    matrix = {"kind": "banded-square-root", "bands": 2}
    problem = only_problem(
        dp_accounting.to_event,
        {**BASE, "training": {"iterations": 20}, "sampler": {"kind": "none"}, "matrix": matrix},
    )
    assert problem.path_text == "matrix"


def test_documents_of_events() -> None:
    assert dp_accounting.to_event(BASE) == Many(P(0.1, G(2.0)), 20)
    limited = {**BASE, "training": {"iterations": 20}, "sampler": {"kind": "none", "max_participations": 3}, "count": 2}
    assert dp_accounting.to_event(limited) == Many(G(2.0), 6)
    blank = {**BASE, "privacy": {**BASE["privacy"], "epsilon": "solve"}}
    assert dp_accounting.to_event(blank) == dp_accounting.to_event(BASE)


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtraError, match=r"pyaccount\[dp-accounting\]"):
        dp_accounting.to_event(BASE)
    # Reading takes no library.
    assert dp_accounting.from_event(G(1.0), adjacency="add-remove", delta=DELTA)["noise"] == {"multiplier": 1}


# jax_privacy. Stand-ins with the names and fields of version 2.0.0; the library itself pulls in half a gigabyte.


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
    import oracle

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
    ("coefficients", "path", "slug"),
    [
        ([], "coefficients", "wrong-type"),
        (3.0, "coefficients", "wrong-type"),
        (np.float64(3), "coefficients", "wrong-type"),
        ("abc", "coefficients", "wrong-type"),
        ([1, -0.5], "coefficients[1]", "out-of-range"),
        ([1, float("nan")], "coefficients[1]", "out-of-range"),
        ([1, [2]], "coefficients[1]", "wrong-type"),
        (np.eye(2), "coefficients[0]", "wrong-type"),
    ],
)
def test_what_are_no_coefficients(coefficients: Any, path: str, slug: str) -> None:
    problem = only_problem(jax_privacy.from_coefficients, coefficients, iterations=8)
    assert (problem.path_text, problem.slug) == (path, slug)
