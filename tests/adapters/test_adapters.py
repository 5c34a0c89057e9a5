"""What other libraries have, as documents: the same mechanism, by their own accountants, or a refusal with its place."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from fractions import Fraction
from typing import Any

import dp_accounting as dp  # type: ignore[import-untyped]
import numpy as np
import oracle
import pytest
from adapter_samples import BASE, DELTA, only_problem
from dp_accounting.pld import PLDAccountant  # type: ignore[import-untyped]
from dp_accounting.rdp import RdpAccountant  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from places import GOLDEN
from plain_documents import sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.adapters import dp_accounting, opacus
from pyaccount.errors import DocumentError
from pyaccount.plan.combinators.best import RunLaw

G, L = dp.GaussianDpEvent, dp.LaplaceDpEvent
MIX = dp.dp_event.MixtureOfGaussiansDpEvent
P, Many, All = dp.PoissonSampledDpEvent, dp.SelfComposedDpEvent, dp.ComposedDpEvent
OPACUS = json.loads((GOLDEN / "opacus.json").read_text(encoding="utf-8"))
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


def by_round(document: dict[str, Any]) -> list[tuple[float, float]]:
    """Return the noise and the rate of each round of a document that an adapter made."""
    found = []
    for body in document.get("phases", [document]):
        noise, training = body["noise"]["multiplier"], body["training"]
        rate, rounds = training["sampling_probability"], training["iterations"]
        noises = noise["schedule"] if isinstance(noise, dict) else [noise] * rounds
        rates = rate["schedule"] if isinstance(rate, dict) else [rate] * rounds
        found += list(zip(noises, rates, strict=True))
    return found


@pytest.mark.parametrize(
    "history",
    [
        # An exponential scheduler of noise after every step, and one of noise and batches after every second step.
        [(1.1 * 0.99**step, 0.01, 1) for step in range(50)],
        [(1.1 * 0.99**step, 0.01 * 1.01**step, 2) for step in range(30)],
        # After every epoch: phases are shorter.
        [(1.1 * 0.9**epoch, 0.01, 100) for epoch in range(5)],
        [(1.1, 0.01, 5), (1.1, 0.02, 10**9)],
    ],
    ids=["every step", "every second step", "every epoch", "a long step"],
)
def test_a_history_of_schedulers_is_the_shorter_document(history: list[tuple[float, float, int]]) -> None:
    document = opacus.from_history(history, delta=DELTA)
    phases = [{"iterations": steps, "rate": rate, "noise": noise} for noise, rate, steps in history]
    assert ("phases" in document) is (history[0][2] >= 5)
    if history[-1][2] < 1000:
        assert by_round(document) == [(noise, rate) for noise, rate, steps in history for _ in range(steps)]
    assert len(json.dumps(document)) < len(json.dumps(phases)) + 1000


def test_a_history_may_have_more_entries_than_a_document_has_phases() -> None:
    history = [(2.0 + step / 20_000, 0.001, 1) for step in range(12_000)]
    loaded = pyaccount.load(opacus.from_history(history, delta=DELTA))
    assert len(loaded.phases) == 1
    assert loaded.run.training.iterations == 12_000


def test_a_schedule_is_an_event_for_each_kind_of_rounds(snapshot: Snapshot) -> None:
    schedule = {"schedule": [1.0, 2.0, 1.0, 1.0], "scale": 1.5}
    document = BASE | {"noise": {"multiplier": schedule}, "training": {"sampling_probability": 0.1, "iterations": 4}}
    rounds = [Many(P(0.1, G(1.5)), 3), P(0.1, G(3.0))]
    assert dp_accounting.to_event(document) == All(rounds)
    document["training"]["sampling_probability"] = {"schedule": [0.1, 0.2, 0.3, 0.1]}
    rounds = [Many(P(0.1, G(1.5)), 2), P(0.3, G(1.5)), P(0.2, G(3.0))]
    assert dp_accounting.to_event(document) == All(rounds)
    phases = [{key: BASE[key] for key in ("training", "sampler", "noise")}] * 2
    head = {key: BASE[key] for key in ("pyaccount", "name", "privacy")}
    assert dp_accounting.to_event({**head, "noise": {"scale": 3}, "phases": phases}) == All(
        [Many(P(0.1, G(6.0)), 20)] * 2
    )
    snapshot(only_problem(dp_accounting.to_event, {**head, "noise": {"scale": "solve"}, "phases": phases}))


def test_an_accountant_goes_on_from_a_history() -> None:
    history = [(1.1, 0.01, 5), (0.9, 0.02, 7)]
    accountant = opacus.accountant(history, delta=DELTA, epsilon=2)
    assert accountant.steps == 12
    document = opacus.from_history(history, delta=DELTA)
    assert accountant.epsilon_spent() == pyaccount.certify(document).epsilon
    accountant.step(noise_multiplier=0.9, sampling_probability=0.02)
    assert accountant.document()["phases"][1]["training"]["iterations"] == 8
    assert opacus.accountant([], delta=DELTA).epsilon_spent() == 0


def test_a_history_is_of_data_sets_of_one_size_unless_the_normaliser_is_a_constant(snapshot: Snapshot) -> None:
    """Opacus divides by int(len(dataset) · rate): with one record more that is another number, where sizes may differ."""
    rate = 1 / 10
    # Its own arithmetic, of 99 and of 100 records: the same noisy sum is released ten per cent apart.
    assert [int(records * rate) for records in (99, 100)] == [9, 10]
    history = [(1.1, rate, 30)]
    for read in (opacus.from_history, opacus.accountant):
        snapshot(only_problem(read, history, delta=DELTA, adjacency="add-remove"))
    document = opacus.from_history(history, delta=DELTA)
    assert document["privacy"]["adjacency"] == "zero-out"
    constant = opacus.from_history(history, delta=DELTA, adjacency="add-remove", constant_normaliser=True)
    assert constant["privacy"]["adjacency"] == "add-remove"
    # The rounds have one dominating pair.
    assert pyaccount.certify(document).epsilon == pyaccount.certify(constant).epsilon
    assert opacus.from_history(history, delta=DELTA, adjacency="replace-one")["privacy"]["adjacency"] == "replace-one"
    ledger = opacus.accountant(history, delta=DELTA, adjacency="add-remove", constant_normaliser=True)
    assert ledger.document()["privacy"]["adjacency"] == "add-remove"
    assert opacus.accountant(history, delta=DELTA).document()["privacy"]["adjacency"] == "zero-out"


@pytest.mark.parametrize(
    "source",
    [
        {},
        {"mechanism": "rdp"},
        [],
        None,
        "history",
        [1],
        [(1, 0.1)],
        [(1, 0.1, 5), (0, 0.1, 5)],
        [(1, 1.5, 5)],
        [(1, float("nan"), 5)],
        [(1, 0.1, 0)],
        [(1, 0.1, 5.0)],
        [(1, 0.1, True)],
        [("1", 0.1, 5)],
        [(10**400, 0.1, 5)],
    ],
)
def test_what_is_no_history(source: Any, snapshot: Snapshot) -> None:
    snapshot(only_problem(opacus.from_history, source, delta=DELTA))


def test_adaptive_clipping_is_refused_by_name() -> None:
    class AdaClipDPOptimizer:
        noise_multiplier = 1.8

    class Mine(AdaClipDPOptimizer):
        history = ((1.8, 0.01, 5),)

    for source in (AdaClipDPOptimizer(), Mine()):
        for read in (opacus.from_history, opacus.accountant):
            problem = only_problem(read, source, delta=DELTA)
            assert (problem.path_text, problem.slug, problem.value) == ("", "no-equivalent", type(source).__name__)
            assert "the σ that was asked for" in problem.message


def test_the_noise_that_adaptive_clipping_was_asked_for_covers_both_releases() -> None:
    """Gradients with σ′ and a count with 2σ_b, each moved by at most 1 and ½: together a Gaussian with σ, in closed form."""
    sigma, count = 1.0, 0.6
    gradients = (sigma**-2 - (2 * count) ** -2) ** -0.5
    together = np.sqrt(gradients**-2 + (0.5 / count) ** 2)
    certificate = pyaccount.certify(opacus.from_history([(sigma, 1.0, 4)], delta=DELTA))
    exact = float(oracle.gaussian_epsilon(2 * together, DELTA))
    assert certificate.epsilon_lower <= exact * (1 + 1e-9)
    assert exact <= certificate.epsilon * (1 + 1e-9)
    # The history has σ′, whose ε is too small.
    assert pyaccount.certify(opacus.from_history([(gradients, 1.0, 4)], delta=DELTA)).epsilon < exact


def test_the_peer_for_replacement_is_the_one_with_loss_distributions() -> None:
    """dp_accounting's RDP accountant does not double the contribution of an unsampled Gaussian event; the page says so."""
    document = dp_accounting.from_event(Many(G(20.0), 4), adjacency="replace-one", delta=DELTA)
    exact = float(oracle.gaussian_epsilon(2 * 2 / 20, DELTA))
    certificate = pyaccount.certify(document)
    assert certificate.epsilon_lower <= exact * (1 + 1e-9)
    assert exact <= certificate.epsilon * (1 + 1e-9)
    event = dp_accounting.to_event(document)
    relation = RELATIONS["replace-one"]
    assert PLDAccountant(relation).compose(event).get_epsilon(DELTA) == pytest.approx(exact, rel=1e-2)
    assert RdpAccountant(neighboring_relation=relation).compose(event).get_epsilon(DELTA) < 0.6 * exact


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


@pytest.mark.usefixtures("without_profiles")
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


@pytest.mark.usefixtures("without_profiles")
def test_truncated_batches_under_zero_out(snapshot: Snapshot) -> None:
    event = Many(dp.TruncatedSubsampledGaussianDpEvent(200, 0.05, 12, 1.5), 10)
    document = dp_accounting.from_event(event, adjacency="zero-out", delta=DELTA)
    assert document["sampler"] == {"kind": "poisson", "truncate_to": 12}
    theirs = PLDAccountant(RELATIONS["zero-out"]).compose(event).get_epsilon(DELTA)
    assert pyaccount.certify(document).epsilon_lower <= theirs * (1 + 1e-6)
    assert dp_accounting.to_event(document) == event
    with snapshot.raises(DocumentError):
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
        sectioned(dataset_size=1000, expected_batch_size=10, iterations=5, sampler="fixed-size", multiplier=2),
        sectioned(dataset_size=1000, expected_batch_size=20, iterations=1, sampler="with-replacement", multiplier=3),
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


@pytest.mark.parametrize("steps", [1, 7, 1000, 1023, 1024, [5, 300, 20], [0, 1]])
@pytest.mark.parametrize("runs", [1, 4])
def test_trees_of_partial_sums_are_never_looser_than_their_accountant(steps: int | list[int], runs: int) -> None:
    """ε by the closed form of one Gaussian mechanism, with as many blocks of a leaf as dp_accounting counts."""
    event = Many(dp.SingleEpochTreeAggregationDpEvent(6.0, steps), runs)
    document = dp_accounting.from_event(event, adjacency="zero-out", delta=DELTA)
    guarantee = pyaccount.certify(document).data.guarantee
    accountant = RdpAccountant(neighboring_relation=dp.NeighboringRelation.REPLACE_SPECIAL)
    theirs = accountant.compose(event).get_epsilon(DELTA)
    assert guarantee.epsilon < theirs
    longest = steps if isinstance(steps, int) else max(steps)
    mu = np.sqrt(runs * np.ceil(np.log2(longest + 1))) / 6.0
    exact = float(oracle.gaussian_epsilon(mu, DELTA))
    assert guarantee.epsilon_lower <= exact <= guarantee.epsilon <= exact * (1 + 3e-4)


def test_trees_in_a_row_are_runs_of_their_own() -> None:
    """A record is in one block of each size in both: two runs, and not one in which it takes part once."""
    tree = dp.SingleEpochTreeAggregationDpEvent
    for second in (8, 15):
        document = dp_accounting.from_event(All([tree(6.0, 8), tree(6.0, second)]), adjacency="zero-out", delta=DELTA)
        assert [phase["training"]["iterations"] for phase in document["phases"]] == [8, second]
        guarantee = pyaccount.certify(document).data.guarantee
        assert guarantee.epsilon_lower <= float(oracle.gaussian_epsilon(np.sqrt(8.0) / 6.0, DELTA)) <= guarantee.epsilon


def test_a_tree_of_no_steps_releases_nothing(snapshot: Snapshot) -> None:
    event = dp.SingleEpochTreeAggregationDpEvent(6.0, [0, 0])
    snapshot(only_problem(dp_accounting.from_event, event, adjacency="zero-out", delta=DELTA))
    snapshot(
        only_problem(
            dp_accounting.from_event, dp.SingleEpochTreeAggregationDpEvent(6.0, 2.5), adjacency="zero-out", delta=DELTA
        )
    )


@pytest.mark.parametrize(
    "tree",
    [
        dp.NonPrivateDpEvent(),
        dp.UnsupportedDpEvent(),
        dp.SampledWithoutReplacementDpEvent(10, 2, Many(G(1.0), 2)),
        dp.SampledWithReplacementDpEvent(10, 2, L(1.0)),
        P(0.1, Many(P(0.1, All([G(1.0), L(1.0)])), 2)),
        dp.RandomizedResponseDpEvent(0.0, 2),
        dp.dp_event.DiscreteLaplaceDpEvent(0.0, 1),
        MIX(1.0, [float(j) for j in range(1001)], [1 / 1001] * 1001),
        MIX(1.0, [0.0, 1.0], [0.5]),
        MIX(1.0, [0.0, 1.0], [0.5, 0.4]),
        dp.SampledWithReplacementDpEvent(10, 2, dp.SingleEpochTreeAggregationDpEvent(1.0, 4)),
        dp.dp_event.RepeatAndSelectDpEvent(G(1.0), 1.0, 1.0),
        dp.dp_event.RepeatAndSelectDpEvent(dp.dp_event.RepeatAndSelectDpEvent(G(1.0), 2.0, 1.0), 2.0, 1.0),
        object(),
        None,
        All([dp.NoOpDpEvent()]),
        P(0.0, G(1.0)),
        Many(Many(G(1.0), 10**6), 10**6),
    ],
)
def test_events_without_a_document(tree: Any, snapshot: Snapshot) -> None:
    snapshot(only_problem(dp_accounting.from_event, tree, adjacency="add-remove", delta=DELTA))


MECHANISMS: list[tuple[Any, dict[str, Any]]] = [
    (dp.ZCDpEvent(0.1), {"kind": "stated", "rho": 0.1}),
    (dp.ZCDpEvent(0.1, 0.2), {"kind": "stated", "rho": 0.1, "xi": 0.2}),
    (dp.dp_event.DiscreteLaplaceDpEvent(0.5, 3), {"kind": "discrete-laplace", "scale": 2.0, "sensitivity": 3}),
    (dp.RandomizedResponseDpEvent(0.4, 5), {"kind": "randomized-response", "values": 5, "truth_probability": 0.68}),
]


@pytest.mark.parametrize(("event", "mechanism"), MECHANISMS)
def test_mechanisms_of_events(event: Any, mechanism: dict[str, Any]) -> None:
    found = dp_accounting.from_event(event, adjacency="replace-one", delta=DELTA)["mechanism"]
    assert set(found) == set(mechanism)
    assert all(
        value == (stated if isinstance(stated, str) else pytest.approx(stated))
        for value, stated in ((found[key], mechanism[key]) for key in mechanism)
    )
    sampled = dp_accounting.from_event(Many(P(0.1, event), 3), adjacency="replace-one", delta=DELTA)
    assert sampled["sampler"] == {"kind": "poisson", "sampling_probability": 0.1}
    assert (sampled["count"], sampled["mechanism"]) == (3, found)


@pytest.mark.parametrize(
    ("mean", "shape", "kind"),
    [
        (10.0, 1.0, "geometric"),
        (3.0, 0.0, "logarithmic"),
        (7.0, 0.5, "negative-binomial"),
        (4.0, float("inf"), "poisson"),
    ],
)
def test_selections_of_events(mean: float, shape: float, kind: str) -> None:
    """The mean of the law that the document states is the one that the event states."""
    tree = dp.dp_event.RepeatAndSelectDpEvent(G(2.0), mean, shape)
    (phase,) = dp_accounting.from_event(tree, adjacency="add-remove", delta=DELTA)["phases"]
    law = dict(phase["select"])
    assert law.pop("kind") == kind
    assert RunLaw(kind, tuple(law.values())).mean() == pytest.approx(mean, rel=1e-9)


def test_several_releases_of_one_sample() -> None:
    document = dp_accounting.from_event(Many(P(0.1, All([G(1.0), L(2.0)])), 5), adjacency="add-remove", delta=DELTA)
    (phase,) = document["phases"]
    assert phase["sampler"] == {"kind": "poisson", "sampling_probability": 0.1}
    assert phase["count"] == 5
    assert [inner["noise"]["multiplier"] for inner in phase["phases"]] == [1.0, 2.0]
    # A sample of a sample is a smaller sample.
    twice = dp_accounting.from_event(P(0.1, P(0.2, G(1.0))), adjacency="add-remove", delta=DELTA)
    once = dp_accounting.from_event(P(0.02, G(1.0)), adjacency="add-remove", delta=DELTA)
    assert pyaccount.certify(twice).epsilon == pytest.approx(pyaccount.certify(once).epsilon, rel=1e-3)


def test_a_mechanism_has_no_event() -> None:
    document = dp_accounting.from_event(dp.ZCDpEvent(0.1), adjacency="add-remove", delta=DELTA)
    assert only_problem(dp_accounting.to_event, document).path_text == "mechanism"


@pytest.mark.parametrize(
    "tree",
    [
        G(0.0),
        Many(P(0.1, G(-1.0)), 2),
        All([G(1.0), P(1.5, G(1.0))]),
        Many(G(1.0), -1),
        Many(G(1.0), 2.5),
        G("1"),
        All(3),
        dp.SampledWithoutReplacementDpEvent(0, 1, G(1.0)),
        dp.SampledWithReplacementDpEvent(10, 0, G(1.0)),
    ],
)
def test_wrong_numbers_in_events(tree: Any, snapshot: Snapshot) -> None:
    snapshot(only_problem(dp_accounting.from_event, tree, adjacency="add-remove", delta=DELTA))


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


@pytest.mark.parametrize(
    "changes",
    [
        {"sampler": {"kind": "b-min-sep", "min_separation": 3}},
        {"sampler": {"kind": "cyclic-poisson", "partitions": 2}},
        {"privacy": {**BASE["privacy"], "group_size": 2}},
        {"training": {"sampling_probability": {"max": 0.1}, "iterations": 20}},
        {"noise": {"multiplier": "solve"}},
    ],
)
def test_documents_without_an_event(changes: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot(only_problem(dp_accounting.to_event, {**BASE, **changes}))


def test_a_matrix_has_no_event(snapshot: Snapshot) -> None:
    matrix = {"kind": "banded-square-root", "bands": 2}
    snapshot(
        only_problem(
            dp_accounting.to_event,
            {**BASE, "training": {"iterations": 20}, "sampler": {"kind": "none"}, "matrix": matrix},
        )
    )


def test_documents_of_events() -> None:
    assert dp_accounting.to_event(BASE) == Many(P(0.1, G(2.0)), 20)
    limited = {**BASE, "training": {"iterations": 20}, "sampler": {"kind": "none", "max_participations": 3}, "count": 2}
    assert dp_accounting.to_event(limited) == Many(G(2.0), 6)
    blank = {**BASE, "privacy": {**BASE["privacy"], "epsilon": "solve"}}
    assert dp_accounting.to_event(blank) == dp_accounting.to_event(BASE)


@pytest.mark.usefixtures("without_profiles")
@pytest.mark.parametrize(("adjacency", "draws"), [("add-remove", 5), ("zero-out", 2)])
def test_several_draws_are_a_mixture(adjacency: str, draws: int) -> None:
    """The library's own accountant of mixtures finds the ε of the certificate, which is not below the truth."""
    raw = {
        **BASE,
        "privacy": {"adjacency": adjacency, "epsilon": "solve", "delta": DELTA},
        "sampler": {"kind": "poisson", "draws_per_iteration": draws},
    }
    event = dp_accounting.to_event(raw)
    assert event.count == 20
    assert event.event.standard_deviation == 2.0
    assert event.event.sensitivities == [float(j) for j in range(draws + 1)]
    assert sum(event.event.sampling_probs) == pytest.approx(1.0, rel=1e-14)
    relation = dp.NeighboringRelation
    theirs = dp.pld.PLDAccountant(
        relation.ADD_OR_REMOVE_ONE if adjacency == "add-remove" else relation.REPLACE_SPECIAL,
        # Its own error is below 2e-5 there.
        value_discretization_interval=2e-3,
    )
    theirs.compose(event)
    assert pyaccount.certify(raw).epsilon == pytest.approx(theirs.get_epsilon(DELTA), rel=1e-3)


def binomial(draws: int, rate: float) -> list[float]:
    """The binomial law, from exact fractions."""
    p = Fraction(rate)
    return [float(math.comb(draws, j) * p**j * (1 - p) ** (draws - j)) for j in range(draws + 1)]


def test_a_mixture_is_its_components() -> None:
    mixture = MIX(2.0, [3.0, 0.0, 1.0, 3.0, 2.0], [0.25, 0.5, 0.125, 0.125, 0.0])
    found = dp_accounting.from_event(Many(mixture, 7), adjacency="zero-out", delta=DELTA)
    law = {"sensitivities": [3, 0, 1], "probabilities": [0.375, 0.5, 0.125]}
    assert found["mechanism"] == {"kind": "mixture-of-gaussians", "sigma": 2, **law}
    assert found["count"] == 7
    sampled = dp_accounting.from_event(Many(P(0.1, mixture), 7), adjacency="zero-out", delta=DELTA)
    assert sampled["mechanism"] == found["mechanism"]
    assert sampled["sampler"] == {"kind": "poisson", "sampling_probability": 0.1}
    # One of one component is Gaussian noise.
    one = dp_accounting.from_event(MIX(3.0, [2.0], [1.0]), adjacency="add-remove", delta=DELTA)
    noise = dp_accounting.from_event(G(1.5), adjacency="add-remove", delta=DELTA)
    assert pyaccount.certify(one).epsilon == pytest.approx(pyaccount.certify(noise).epsilon, rel=1e-9)


@pytest.mark.usefixtures("without_profiles")
@pytest.mark.parametrize("draws", [1, 2, 5])
def test_a_binomial_mixture_is_its_sampler(draws: int) -> None:
    sampler = {
        **BASE,
        "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": DELTA},
        "training": {"sampling_probability": 0.05, "iterations": 9},
        "sampler": {"kind": "poisson", "draws_per_iteration": draws},
        "noise": {"multiplier": 0.8},
    }
    mixture = Many(MIX(0.8, [float(j) for j in range(draws + 1)], binomial(draws, 0.05)), 9)
    found = dp_accounting.from_event(mixture, adjacency="zero-out", delta=DELTA)
    assert pyaccount.certify(found).epsilon == pytest.approx(pyaccount.certify(sampler).epsilon, rel=1e-6)


@pytest.mark.usefixtures("without_profiles")
@pytest.mark.parametrize(
    ("sigma", "sensitivities", "law", "count"),
    [
        (2.0, [0.0, 0.5, 1.0, 1.5], binomial(3, 0.02), 10),
        (1.5, [2.0], [1.0], 2),
        (1.0, [0.0, 1.0, 2.5], [0.7, 0.2, 0.1], 2),
        (2.0, [0.5, 1.0, 1.75, 4.0], [0.4, 0.3, 0.2, 0.1], 4),
    ],
)
def test_the_accountant_of_mixtures_finds_the_same(
    sigma: float, sensitivities: list[float], law: list[float], count: int
) -> None:
    """Its grid rounds up, so that its ε is above our lower end, and ours is at most its ε."""
    event = Many(MIX(sigma, sensitivities, law), count)
    for adjacency, relation in (("add-remove", "ADD_OR_REMOVE_ONE"), ("zero-out", "REPLACE_SPECIAL")):
        # On a grid of 1e-4 it takes minutes.
        theirs = PLDAccountant(dp.NeighboringRelation[relation], 5e-3).compose(event).get_epsilon(DELTA)
        document = dp_accounting.from_event(event, adjacency=adjacency, delta=DELTA)
        certificate = pyaccount.certify({**document, "accounting": {"tolerance": 1e-6}})
        assert certificate.epsilon_lower <= theirs
        assert certificate.epsilon <= theirs * (1.0 + 1e-9)
        assert theirs == pytest.approx(certificate.epsilon_lower, rel=2e-2)


@pytest.mark.parametrize(
    "event",
    [
        MIX(1.0, [0.0, -1.0], [0.5, 0.5]),
        MIX(1.0, [0.0, 1.0], [0.5, 1.5]),
        MIX(0.0, [0.0, 1.0], [0.5, 0.5]),
        MIX(1.0, 3.0, [1.0]),
        MIX(1.0, [0.0, "one"], [0.5, 0.5]),
    ],
)
def test_numbers_of_mixtures_are_checked_in_place(event: Any, snapshot: Snapshot) -> None:
    snapshot(only_problem(dp_accounting.from_event, event, adjacency="zero-out", delta=DELTA))


@pytest.mark.parametrize("event", [MIX(1.0, [1.0], [1.0]), All([G(1.0), Many(MIX(1.0, [0.0, 1.0], [0.5, 0.5]), 3)])])
def test_mixtures_under_replacement_are_refused(event: Any, snapshot: Snapshot) -> None:
    snapshot(only_problem(dp_accounting.from_event, event, adjacency="replace-one", delta=DELTA))


def test_mixtures_that_move_nothing_release_nothing() -> None:
    found = dp_accounting.from_event(All([MIX(1.0, [0.0], [1.0]), G(1.0)]), adjacency="add-remove", delta=DELTA)
    assert found["training"] == {"iterations": 1}


def test_several_draws_under_replacement_have_no_event(snapshot: Snapshot) -> None:
    changes = sectioned(
        privacy={**BASE["privacy"], "adjacency": "replace-one"}, sampler="poisson", draws_per_iteration=2
    )
    snapshot(only_problem(dp_accounting.to_event, {**BASE, **changes}))


def test_without_the_library_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    snapshot.raised(dp_accounting.to_event, BASE)
    # Reading takes no library.
    assert dp_accounting.from_event(G(1.0), adjacency="add-remove", delta=DELTA)["noise"] == {"multiplier": 1}
