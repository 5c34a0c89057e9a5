"""Several draws in one round: a record is drawn Bin(m, p) times, and noise is added once."""

import copy
import json
import math
from functools import cache
from itertools import pairwise, product
from typing import Any

import exact_mixtures
import mpmath as mp
import numpy as np
import oracle
import pytest
from certificate_oracle import inconsistencies
from plain_documents import changed, doc, sectioned
from scipy.optimize import brentq  # type: ignore[import-untyped]
from scipy.stats import norm  # type: ignore[import-untyped]
from snapshots import Snapshot

import pyaccount
from pyaccount import Accountant
from pyaccount.document.loading import load
from pyaccount.plan.compiling import compile_document
from pyaccount.profiles import PoissonProfile

EPSILONS = [0.0, 0.3, 1.0, 2.5]
BASE: dict[str, Any] = doc(
    "name='several draws' adjacency=add-remove sampling_probability=0.1 iterations=1 sampler=poisson",
    "draws_per_iteration=3 multiplier=1.2 tolerance=1e-6",
    profile=EPSILONS,
)


def document(changes: dict[str, Any] | None = None, **sections: dict[str, Any]) -> dict[str, Any]:
    return changed(BASE, changes, sections)


def law(coins: int, p: float) -> list[tuple[mp.mpf, int]]:
    """How often records are drawn whose draws are so many coins, by going through all outcomes of the coins."""
    weights = [mp.mpf(0)] * (coins + 1)
    for outcome in product((0, 1), repeat=coins):
        drawn = sum(outcome)
        weights[drawn] += mp.mpf(p) ** drawn * (1 - mp.mpf(p)) ** (coins - drawn)
    return [(weight, drawn) for drawn, weight in enumerate(weights)]


def integrated(p: oracle.Mixture, q: oracle.Mixture, epsilon: float) -> float:
    """∫ (P − e^ε Q)₊ by quadrature, cut where the integrand begins or ends; between cuts it is entire, and 40 nodes suffice."""
    scaled = [*p, *((-math.exp(epsilon) * weight, mean) for weight, mean in q)]
    weights, means = np.array(scaled, dtype=float).T

    def excess(y: Any) -> Any:
        return norm.pdf(np.subtract.outer(y, means)) @ weights

    grid = np.linspace(-15.0, 15.0, 121)
    signs = np.sign(excess(grid))
    changes = [brentq(excess, grid[i], grid[i + 1], xtol=1e-15) for i in np.flatnonzero(signs[1:] != signs[:-1])]
    nodes, shares = np.polynomial.legendre.leggauss(40)
    total = 0.0
    for low, high in pairwise([-20.0, *changes, 20.0]):
        if excess((low + high) / 2) > 0:
            for first, last in pairwise(np.linspace(low, high, 12)):
                half = (last - first) / 2
                total += float(half * (shares @ excess(first + half * (nodes + 1))))
    return total


@cache
def of_one_round(coins: int, side: str, epsilon: float, *, mirrored: bool) -> float:
    """δ(ε) of a record whose draws are so many coins, against none or against its mirror image."""
    sigma, counts = mp.mpf(1.2), law(coins, 0.1)
    p = [(weight, j / sigma) for weight, j in counts]
    q = [(weight, -j / sigma) for weight, j in counts] if mirrored else [(mp.mpf(1), mp.mpf(0))]
    return integrated(*((p, q) if side == "remove" else (q, p)), epsilon)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_one_round_is_the_mixture_over_all_draws(adjacency: str, group: int) -> None:
    raw = document(privacy={"adjacency": adjacency, "group_size": group, "epsilon": 1.0, "delta": "solve"})
    data = pyaccount.certify(raw).data
    for side in ("remove", "add"):
        profile = getattr(data.directions, side).profile
        assert [point.epsilon for point in profile] == EPSILONS
        for point in profile:
            truth = of_one_round(3 * group, side, point.epsilon, mirrored=adjacency == "replace-one")
            assert point.delta_lower <= truth * (1 + 1e-12)
            assert truth * (1 - 1e-12) <= point.delta
            assert point.delta == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_two_rounds_are_the_product(adjacency: str) -> None:
    raw = document(
        privacy={"adjacency": adjacency, "epsilon": 1.0, "delta": "solve"},
        training={"iterations": 2, "sampling_probability": 0.2},
        sampler={"draws_per_iteration": 2},
    )
    counts = {j: math.comb(2, j) * 0.2**j * 0.8 ** (2 - j) for j in range(3)}
    both = {(i, j): counts[i] * counts[j] for i in counts for j in counts}
    p = exact_mixtures.Mixture.of(both, np.eye(2), 1 / 1.2)
    mirrored = {(-i, -j): weight for (i, j), weight in both.items()} if adjacency == "replace-one" else {(0, 0): 1.0}
    q = exact_mixtures.Mixture.of(mirrored, np.eye(2), 1 / 1.2)
    data = pyaccount.certify(raw).data
    for side, pair in {"remove": (p, q), "add": (q, p)}.items():
        for point in getattr(data.directions, side).profile:
            truth = exact_mixtures.hockey_stick(*pair, point.epsilon)
            assert point.delta_lower <= truth * (1 + 1e-6)
            assert truth * (1 - 1e-6) <= point.delta
            # Points of a profile are as narrow as 1 %.
            assert point.delta == pytest.approx(truth, rel=1e-2)


def test_a_record_of_m_draws_is_a_group_of_m_records() -> None:
    draws = pyaccount.certify(document(training={"iterations": 50}))
    group = pyaccount.certify(
        document({"sampler": {"kind": "poisson"}}, training={"iterations": 50}, privacy={"group_size": 3})
    )
    assert draws.epsilon == group.epsilon
    assert draws.data.profile == group.data.profile
    assert draws.data.unamplified.epsilon == group.data.unamplified.epsilon


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_certain_draws_are_a_gaussian_mechanism(adjacency: str) -> None:
    raw = document(privacy={"adjacency": adjacency}, training={"sampling_probability": 1, "iterations": 4})
    certificate = pyaccount.certify(raw)
    moved = 6 if adjacency == "replace-one" else 3
    truth = float(oracle.gaussian_epsilon(moved * 2 / 1.2, 1e-5))
    assert certificate.epsilon == pytest.approx(truth, rel=1e-9)
    assert certificate.data.unamplified.epsilon == pytest.approx(truth, rel=1e-9)


def test_one_draw_says_nothing_new() -> None:
    """Written out, the default changes the document and its hash, as every default does, and nothing else."""
    plain, written = (pyaccount.certify(document({"sampler": sampler})).data for sampler in (
        {"kind": "poisson"}, {"kind": "poisson", "draws_per_iteration": 1}
    ))  # fmt: skip
    changing = {"document", "document_sha256", "content_sha256", "created"}
    one, two = plain.model_dump(exclude=changing), written.model_dump(exclude=changing)
    for data in (one, two):
        for composition in data["evidence"]["compositions"]:
            composition.pop("seconds", None)
        data["evidence"].pop("seconds", None)
    assert one == two
    assert one["phases"][0]["draws_per_iteration"] is None


RATES = [
    # What training states; then p of one draw, the participation rate, the batch, and the distinct records.
    ({"sampling_probability": 0.01}, 0.01, 0.04, None, None),
    ({"participation_rate": 0.04}, 0.01, 0.04, None, None),
    ({"dataset_size": 1000, "expected_batch_size": 40}, 0.01, 0.04, 40, 1000 * (1 - 0.99**4)),
    ({"dataset_size": 1000, "sampling_probability": 0.01}, 0.01, 0.04, 40, 1000 * (1 - 0.99**4)),
    ({"dataset_size": 1000, "expected_batch_size": 4000}, 1.0, 4.0, 4000, 1000),
    ({"dataset_size": 1000, "expected_batch_size": 3000}, 0.75, 3.0, 3000, 1000 * (1 - 0.25**4)),
    (
        {"dataset_size": 1000, "expected_batch_size": 40, "sampling_probability": 0.01, "participation_rate": 0.04},
        0.01,
        0.04,
        40,
        1000 * (1 - 0.99**4),
    ),
]


@pytest.mark.parametrize(("stated", "p", "rate", "batch", "distinct"), RATES)
def test_what_the_rates_are_of(
    stated: dict[str, float], p: float, rate: float, batch: float | None, distinct: float | None
) -> None:
    raw = document({"training": {**stated, "iterations": 3}}, sampler={"draws_per_iteration": 4})
    certificate = pyaccount.certify(raw)
    (phase,) = certificate.data.phases
    assert phase.draws_per_iteration == 4
    assert phase.sampling_probability == pytest.approx(p, rel=1e-14)
    assert phase.participation_rate == pytest.approx(rate, rel=1e-14)
    assert phase.expected_batch_size == (None if batch is None else pytest.approx(batch, rel=1e-14))
    assert phase.distinct_records == (None if distinct is None else pytest.approx(distinct, rel=1e-12))
    # What the certificate says of itself is what its document says, to the last bit.
    assert not inconsistencies(certificate.data)


@pytest.mark.parametrize("p", [0.1, 1 / 3, 1e-9, 0.0123456789])
@pytest.mark.parametrize("draws", [3, 7, 10, 1000])
def test_a_stated_probability_counts_to_the_last_bit(p: float, draws: int) -> None:
    raw = document(training={"sampling_probability": p}, sampler={"draws_per_iteration": draws})
    (rounds,) = compile_document(load(raw)).at().bounds()["remove"].upper
    assert rounds.profile == PoissonProfile(draws, p, 1.2, two_sided=False, reverse=False)


@pytest.mark.parametrize(
    ("stated", "rounds"),
    [
        ({"dataset_size": 1000, "expected_batch_size": 40}, 25),
        ({"sampling_probability": 0.01}, 25),
        ({"participation_rate": 0.04}, 25),
        ({"dataset_size": 1000, "expected_batch_size": 2000}, 1),
    ],
)
def test_an_epoch_is_one_participation_in_the_mean(stated: dict[str, float], rounds: int) -> None:
    raw = document({"training": {**stated, "epochs": 2}}, sampler={"draws_per_iteration": 4})
    certificate = pyaccount.certify(raw)
    (phase,) = certificate.data.phases
    assert (phase.iterations, phase.epochs) == (2 * rounds if rounds > 1 else 1, 2.0)
    assert not inconsistencies(certificate.data)


BLANKS = [
    ("privacy", "group_size"),
    ("training", "iterations"),
    ("training", "expected_batch_size"),
    ("noise", "multiplier"),
]


@pytest.mark.parametrize("path", BLANKS)
def test_every_blank_is_solved(path: tuple[str, str]) -> None:
    training = {"dataset_size": 500, "expected_batch_size": 15, "iterations": 20}
    raw = document({"training": training, "accounting": {}}, privacy={"epsilon": 4.0})
    section, field = path
    raw[section][field] = "solve"
    found = pyaccount.certify(raw).data
    assert found.holds
    assert found.guarantee.epsilon <= 4.0
    assert not inconsistencies(found)
    assert found.solved is not None
    for value, holds in ((found.solved.value, True), (found.solved.fails_at, False)):
        claim = copy.deepcopy(raw)
        claim[section][field] = value
        assert pyaccount.certify(claim).holds is holds


def test_the_largest_batch_is_every_record_in_every_draw(snapshot: Snapshot) -> None:
    raw = document(
        {"training": {"dataset_size": 5, "expected_batch_size": "solve", "iterations": 1}}, privacy={"epsilon": 100.0}
    )
    snapshot.raised(pyaccount.certify, raw)


@pytest.mark.parametrize("group", [1, 2])
def test_the_contrast_counts_every_draw(group: int) -> None:
    raw = document(training={"iterations": 7}, privacy={"group_size": group})
    contrast = pyaccount.certify(raw).data.unamplified
    assert contrast.description == "every record in every round, drawn 3 times"
    truth = oracle.gaussian_epsilon(3 * group * math.sqrt(7) / 1.2, 1e-5)
    assert contrast.epsilon == pytest.approx(float(truth), rel=2e-6)


def test_what_is_said(snapshot: Snapshot) -> None:
    certificate = pyaccount.certify(document(training={"dataset_size": 1000}))
    snapshot(certificate.data.assumptions, certificate.data.reductions[0].pair)
    for page in (certificate.to_text(), certificate.to_html(), certificate.to_markdown()):
        assert "for each record in each draw" in page
        assert "noise is added once, to their sum" in page


def test_truncation_is_refused(snapshot: Snapshot) -> None:
    changes = sectioned(
        sampler="poisson", draws_per_iteration=2, truncate_to=30, adjacency="zero-out", dataset_size=100
    )
    snapshot.raised(lambda: compile_document(load(document(**changes))))


def test_beside_a_sampled_phase_and_in_phases() -> None:
    """Rounds with several draws compose like others: two phases of one round are one of two."""
    once = {key: BASE[key] for key in ("training", "sampler", "noise")}
    head = {key: BASE[key] for key in ("pyaccount", "name", "privacy", "accounting")}
    twice = pyaccount.certify({**head, "phases": [once, once]})
    assert twice.epsilon == pyaccount.certify(document(training={"iterations": 2})).epsilon
    sampled = sectioned(sampling_probability=0.2, iterations=4, sampler="b-min-sep", min_separation=2, multiplier=2.0)
    plan = compile_document(load({**head, "phases": [once, sampled]}))
    assert plan.mixed


def test_an_accountant_counts_such_rounds() -> None:
    ledger = Accountant(adjacency="add-remove", delta=1e-5)
    ledger.step(
        20, noise_multiplier=1.2, sampling_probability=0.1, sampler={"kind": "poisson", "draws_per_iteration": 3}
    )
    spent = ledger.epsilon_spent()
    assert spent == pytest.approx(
        pyaccount.certify(document(training={"iterations": 20}, accounting={"tolerance": 1e-4})).epsilon, rel=1e-3
    )
    planned = Accountant(document({"accounting": {}}, training={"iterations": 20}))
    planned.step(10)
    assert planned.epsilon_spent() == pytest.approx(
        pyaccount.certify(document({"accounting": {}}, training={"iterations": 10})).epsilon, rel=1e-3
    )


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("draws_per_iteration", 4, "phases[0].draws_per_iteration"),
        ("draws_per_iteration", None, "phases[0].draws_per_iteration"),
        ("sampling_probability", 0.05, "phases[0].sampling_probability"),
        ("participation_rate", 0.1, "phases[0].participation_rate"),
    ],
)
def test_a_certificate_that_says_otherwise_contradicts_itself(field: str, value: float | None, path: str) -> None:
    raw = json.loads(pyaccount.certify(document()).to_json())
    raw["phases"][0][field] = value
    assert path in [one.path for one in inconsistencies(pyaccount.Certificate.from_json(json.dumps(raw)).data)]
