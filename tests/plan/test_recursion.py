"""Fixed-size batches, one record replaced or zeroed: certificates by the recursion, between two data sets and the composed bound.

The core's own tests have the theorem's oracles (quadrature over triangles, a simulated attack, every strategy of small games).
Here it is about when certificates use it, and that both ends stay bounds whatever stands beside such rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.plain_documents import doc, sectioned

import pyaccount
from pyaccount.directions import DIRECTIONS
from pyaccount.execute.engine import Engine, Question
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.recursion import RecursionTheorem
from pyaccount.plan.rounds import Bounds
from pyaccount.profiles import FixedSizeRunProfile, Rounds

FIXED = "adjacency=replace-one sampler=fixed-size dataset_size=50 expected_batch_size=1"
DECAYING = {"start": 2.0, "decay": 0.5, "every": 10}
ONE = doc(FIXED, iterations=30, multiplier=1.0)


ZEROED = doc(FIXED, iterations=30, multiplier=1.0, adjacency="zero-out")


@pytest.fixture(scope="module")
def certificate() -> pyaccount.Certificate:
    """Return the certificate of one run, which takes seconds."""
    return pyaccount.certify(ONE)


@pytest.fixture(scope="module")
def zeroed() -> pyaccount.Certificate:
    """Return that of the same run if a record is set to zero."""
    return pyaccount.certify(ZEROED)


def _recursive(document: dict[str, Any]) -> list[bool]:
    theorems = compile_document(pyaccount.load(document)).theorems
    return [isinstance(one, RecursionTheorem) for one in theorems]


@pytest.mark.parametrize("document", [ONE, ZEROED], ids=["replace-one", "zero-out"])
def test_the_interval_is_between_two_data_sets_and_the_composed_bound(
    document: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    """It is narrow, attained, and states the composed bound beside it."""
    certificate = request.getfixturevalue("certificate" if document is ONE else "zeroed")
    composed = Engine().ask(compile_document(pyaccount.load(document)).at().composed(), Question(None, 1e-5, 1e-4))
    guarantee, bound = certificate.data.guarantee, certificate.data.composed_bound
    assert composed.lower <= guarantee.epsilon_lower <= guarantee.epsilon <= composed.upper
    assert guarantee.epsilon <= 1.003 * guarantee.epsilon_lower
    assert bound is not None
    assert (bound.epsilon, bound.delta) == (composed.upper, 1e-5)
    (reduction,) = certificate.data.reductions
    assert reduction.lower_end is not None
    assert "adapt" in reduction.lower_end
    assert any("recursion" in line.source for line in certificate.data.evidence.error_budget)
    for point in certificate.data.profile:
        assert 0.0 <= point.delta_lower <= point.delta <= 1.0


@pytest.mark.parametrize("direction", ["replaced", "remove", "add"])
def test_a_simulated_attack_reaches_no_more_than_the_upper_end(
    direction: str, certificate: pyaccount.Certificate, zeroed: pyaccount.Certificate
) -> None:
    """An adversary who plays one of two pairs by the loss so far, as real batches and noise, has δ inside of the interval.

    The run is simulated with its data set: all other records contribute the same, so a batch of one is the record or another one.
    δ(ε) = E_P[(1 − e^{ε − L})_+] is a mean of numbers in [0, 1], so Hoeffding's inequality bounds its error: 1e-9 for 5 widths.
    """
    rng, count, q = np.random.default_rng(5), 400_000, 1 / 50
    profile = (
        certificate.data.profile if direction == "replaced" else getattr(zeroed.data.directions, direction).profile
    )
    point = next(point for point in profile if 1e-3 < point.delta < 0.1)
    epsilon, lower, upper = point.epsilon, point.delta_lower, point.delta
    # What the record, its replacement and all others contribute while the loss is below ε, and after that.
    played = {
        "replaced": ((1.0, -1.0, -1.0), (-1.0, 1.0, -1.0)),
        "remove": ((1.0, 0.0, -1.0), (1.0, 0.0, 1.0)),
        "add": ((0.0, 1.0, 1.0), (0.0, 1.0, -1.0)),
    }[direction]
    loss = np.zeros(count)
    for _ in range(30):
        below = loss < epsilon
        record, replacement, other = (np.where(below, *pair) for pair in zip(*played, strict=True))
        drawn = rng.random(count) < q
        y = np.where(drawn, record, other) + rng.standard_normal(count)

        def density(mean: np.ndarray, y: np.ndarray = y, other: np.ndarray = other) -> np.ndarray:
            return (1 - q) * np.exp(-0.5 * (y - other) ** 2) + q * np.exp(-0.5 * (y - mean) ** 2)

        loss += np.log(density(record)) - np.log(density(replacement))
    estimate = float(np.mean(np.maximum(0.0, -np.expm1(epsilon - loss))))
    width = math.sqrt(math.log(2e9) / (2 * count))
    assert estimate - width <= upper
    assert estimate + width >= 0.5 * lower


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (doc(FIXED, iterations=30, multiplier=1.0), [True]),
        (doc(FIXED, iterations=30, multiplier="solve", epsilon=3), [True]),
        (
            doc(
                FIXED,
                {"training": {"dataset_size": 50, "expected_batch_size": "solve", "iterations": 9}},
                multiplier=1,
                epsilon=3,
            ),
            [True],
        ),
        (doc(FIXED, iterations="solve", multiplier=1.0, epsilon=3), [True]),
        (doc(FIXED, iterations=1, multiplier=1.0), [False]),
        (doc(FIXED, iterations=20_001, multiplier=1.0), [False]),
        (doc(FIXED, iterations=30, multiplier=1.0, group_size=2), [True]),
        (doc(FIXED, iterations=30, multiplier=1.0, method="pld"), [False]),
        (ZEROED, [True]),
        (doc(FIXED, iterations=30, multiplier=1.0, adjacency="zero-out", group_size=2), [True]),
        (doc(FIXED, iterations=30, multiplier=1.0, adjacency="add-remove"), [False]),
        (doc(FIXED, iterations=4, multiplier={"schedule": [1.0, 1.0, 2.0, 1.0]}), [True]),
        (doc(FIXED, iterations=4, expected_batch_size={"schedule": [2, 2, 1, 1]}, multiplier=1.0), [True]),
        (doc(FIXED, iterations=20, multiplier={"schedule": [1.0 + 0.1 * (k % 7) for k in range(20)]}), [False]),
        (doc(FIXED, iterations="solve", multiplier={"schedule": DECAYING}, epsilon=3), [False]),
        (doc(FIXED, iterations=30, multiplier=1.0, also=[{"what": "count", "multiplier": 9}]), [False]),
        (doc(FIXED, iterations=30, multiplier=1.0, expected_batch_size=50), [False]),
        (doc(FIXED, iterations=30, multiplier=1.0, risk={"advantage": 0.1}), [False]),
    ],
)
def test_the_recursion_is_used_where_its_hypotheses_hold(document: dict[str, Any], expected: list[bool]) -> None:
    """Records replaced or set to zero, not too many rounds, and few segments; groups have the attack alone."""
    assert _recursive(document) == expected


def test_what_is_around_such_rounds_keeps_the_composed_bound() -> None:
    """The best of several runs would need an attack of its own for each ε: only phases of the document are a recursion."""
    run = {key: value for key, value in ONE.items() if key in ("training", "sampler", "noise")}
    release = {"mechanism": {"kind": "gaussian", "sigma": 5}}
    assert _recursive(doc(adjacency="replace-one", phases=[run, release])) == [True, False]
    best = {"name": "best", "phases": [run, release], "select": {"kind": "geometric", "stopping_probability": 0.5}}
    assert _recursive(doc(adjacency="replace-one", phases=[best])) == [False]


def test_beside_other_phases_only_the_upper_end_is_the_recursion_s() -> None:
    """The lower end is that of two concrete data sets, and is below the upper one, which is below the composed one."""
    run = {key: value for key, value in ONE.items() if key in ("training", "sampler", "noise")}
    document = pyaccount.load(
        doc(adjacency="replace-one", phases=[run, {"mechanism": {"kind": "gaussian", "sigma": 5}}])
    )
    instance, engine, question = compile_document(document).at(), Engine(), Question(None, 1e-5, 1e-4)
    with_it, without = engine.ask(instance.bounds(), question), engine.ask(instance.composed(), question)
    assert without.lower == with_it.lower < with_it.upper < without.upper


def _epsilon(*noises: float) -> tuple[float, float]:
    """Return the interval for ε of phases of 8 rounds with these noise multipliers."""
    one = "sampler=fixed-size dataset_size=50 expected_batch_size=1"
    phases = [sectioned(one, iterations=8, multiplier=noise) for noise in noises]
    document = pyaccount.load(doc(adjacency="replace-one", phases=phases))
    answer = Engine().ask(compile_document(document).at().bounds(), Question(None, 1e-5, 1e-3))
    return answer.lower, answer.upper


def test_equal_phases_are_one_recursion() -> None:
    """Two halves of a run are the run."""
    run = pyaccount.load(doc(FIXED, iterations=16, multiplier=1.0))
    whole = Engine().ask(compile_document(run).at().bounds(), Question(None, 1e-5, 1e-3))
    assert _epsilon(1.0, 1.0) == pytest.approx((whole.lower, whole.upper), rel=2e-3)


def test_a_schedule_is_the_phases_that_it_stands_for() -> None:
    """From both sides: the attack plays its rounds in their order."""
    schedule = {"schedule": [*[1.0] * 8, *[2.0] * 8]}
    document = pyaccount.load(doc(FIXED, iterations=16, multiplier=schedule))
    answer = Engine().ask(compile_document(document).at().bounds(), Question(None, 1e-5, 1e-3))
    assert (answer.lower, answer.upper) == _epsilon(1.0, 2.0)


def test_a_narrow_interval_of_composed_bounds_needs_no_recursion() -> None:
    """With a small rate a record that is set to zero has nearly the same bounds both ways; the recursion would take seconds."""
    document = doc(
        FIXED, adjacency="zero-out", dataset_size=10_000, expected_batch_size=10, iterations=100, multiplier=0.8
    )
    found = pyaccount.certify(document)
    assert _recursive(document) == [True]
    assert found.data.composed_bound is None
    assert found.epsilon - found.data.guarantee.epsilon_lower <= 1e-3 * found.epsilon


@pytest.mark.nightly
def test_the_order_of_phases_that_differ_changes_no_upper_end() -> None:
    """With more noise in one half a run costs less. The attack plays the phases in their order, and is below for both."""
    most, least = _epsilon(1.0, 1.0), _epsilon(2.0, 2.0)
    falling, rising = _epsilon(1.0, 2.0), _epsilon(2.0, 1.0)
    assert falling[1] == rising[1]
    for lower, upper in (falling, rising):
        assert least[1] < lower <= upper < most[0]


@pytest.mark.nightly(but=["multiplier-min"])
@pytest.mark.parametrize(("blank", "better"), [("multiplier", min), ("expected_batch_size", max), ("iterations", max)])
def test_a_solved_blank_is_better_than_by_the_composed_bound(blank: str, better: Callable[..., float]) -> None:
    """The noise is smaller, and the batch or the run larger; the value holds, and the next one misses the target."""
    fields = {"multiplier": 2.0, "expected_batch_size": 5, "iterations": 200, blank: "solve"}
    document = doc("adjacency=replace-one sampler=fixed-size dataset_size=100 tolerance=0.03", epsilon=4, **fields)
    found = pyaccount.certify(document)
    assert found.holds
    assert found.epsilon <= 4
    assert found.data.solved is not None
    value = found.data.solved.value
    plan = compile_document(pyaccount.load(document)).without_recursion()
    assert Engine().ask(plan.at(value).bounds(), Question(None, 1e-5, 1e-3)).upper > 4.2
    assert found.data.solved.fails_at == better(value, found.data.solved.fails_at)


@pytest.mark.nightly
def test_a_recursion_in_the_order_of_the_document_bounds_no_other_order() -> None:
    """It is why phases that differ are composed: an attack on one order exceeds the upper end of a recursion in the other one."""
    phases = tuple(("fixed-size", 1, 100, 1, 0, noise, 100) for noise in (1.0, 2.0))
    above, below = (
        FixedSizeRunProfile(phases, 1e-5, None, below=False),
        FixedSizeRunProfile(phases[::-1], 1e-5, None, below=True),
    )
    ends = [
        Engine().ask({side: Bounds(*[(Rounds(one, 1),)] * 2) for side in DIRECTIONS}, Question(None, 1e-5, 1e-4))
        for one in (above, below)
    ]
    assert ends[1].lower > ends[0].upper


@pytest.mark.parametrize("sampler", ["with-replacement", "must-ow"])
def test_an_attack_with_several_draws_is_played_on_real_batches(sampler: str) -> None:
    """The lower end of a sampler that draws records again is met by an attack on its own batches, whose policy is a guess.

    One of 20 records is set to zero. The likelihoods of a round follow from the frequencies of its draws, counted in the samples
    themselves; δ(ε) = E_P[(1 − e^{ε − L})_+] of any policy is below the upper end, and this one is near the lower end.
    """
    fields = {"sampler": sampler, "dataset_size": 20, "expected_batch_size": 2, "iterations": 20, "multiplier": 1.5}
    if sampler == "must-ow":
        fields["sampler"] = {"kind": sampler, "subset_size": 5}
    found = pyaccount.certify(doc(**fields))
    side = found.data.directions.remove
    point = next(point for point in side.profile if 1e-3 < point.delta < 0.1)
    rng, count = np.random.default_rng(8), 200_000

    def draws() -> np.ndarray:
        """Return how often the record is drawn, in many rounds."""
        if sampler == "with-replacement":
            return (rng.integers(0, 20, size=(2, count)) == 0).sum(axis=0)
        inside = rng.random(count) < 5 / 20
        return inside * (rng.integers(0, 5, size=(2, count)) == 0).sum(axis=0)

    chances = np.bincount(draws(), minlength=3) / count

    def log_density(y: np.ndarray, unit: np.ndarray, stay: np.ndarray) -> np.ndarray:
        each = [chance * np.exp(-0.5 * ((y - stay - j * unit) / 1.5) ** 2) for j, chance in enumerate(chances)]
        return np.log(np.sum(each, axis=0))

    loss = np.zeros(count)
    for _ in range(20):
        below = loss < point.epsilon
        # All others contribute −1, or 1, up to a shift; so the record moves the sum by 2 or 0 for each draw, and 0 by 1 or −1.
        record, zero, stay = np.where(below, 2.0, 0.0), np.where(below, 1.0, -1.0), np.zeros(count)
        y = draws() * record + 1.5 * rng.standard_normal(count)
        loss += log_density(y, record, stay) - log_density(y, zero, stay)
    estimate = float(np.mean(np.maximum(0.0, -np.expm1(point.epsilon - loss))))
    width = math.sqrt(math.log(2e9) / (2 * count))
    assert estimate - width <= point.delta
    assert point.delta_lower <= 1.1 * estimate + width
    assert point.delta_lower >= 0.8 * estimate - width


def test_a_phase_without_the_recursion_leaves_all_with_the_composed_bound_and_its_words() -> None:
    """With hardly any noise in one phase no certificate speaks of a recursion, or states its own bound as a contrast."""
    one = "sampler=fixed-size dataset_size=50 expected_batch_size=5"
    phases = [sectioned(one, iterations=5, multiplier=1.0), sectioned(one, iterations=2, multiplier=0.2)]
    found = pyaccount.certify(doc(adjacency="replace-one", phases=phases)).data
    assert found.composed_bound is None
    for reduction in found.reductions:
        assert "adaptive" not in reduction.theorem
        assert "adapt" not in (reduction.lower_end or "")


@pytest.mark.parametrize(
    ("sampler", "dataset", "batch"), [("with-replacement", 60_000, 256), ("must-ow", 60_000, 256)], ids=str
)
def test_the_attack_is_found_for_many_draws(sampler: str, dataset: int, batch: int) -> None:
    """Tails of a law of many draws, where the likelihood ratio falls again, do not mislead it."""
    fields: dict[str, Any] = {"sampler": sampler}
    if sampler == "must-ow":
        fields["sampler"] = {"kind": sampler, "subset_size": 5000}
    found = pyaccount.certify(
        doc(**fields, dataset_size=dataset, expected_batch_size=batch, iterations=100, multiplier=1.0)
    ).data
    assert "adapt" in (found.reductions[0].lower_end or "")
    assert found.guarantee.epsilon_lower >= 0.7 * found.guarantee.epsilon
