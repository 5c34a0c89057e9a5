"""Random allocation and balls in bins without a matrix: documents, and certificates against independent values."""

import math
from functools import cache, lru_cache
from itertools import combinations
from typing import Any

import mpmath as mp
import numpy as np
import oracle
import pytest
from certificate_oracle import inconsistencies
from plain_documents import changed, doc, sectioned
from sampled_tools import Array
from snapshots import Snapshot

import pyaccount
from pyaccount.document.loading import load
from pyaccount.errors import DocumentError
from pyaccount.plan.compiling import compile_document

BASE: dict[str, Any] = doc(
    "name=allocation adjacency=add-remove iterations=12 sampler=random-allocation",
    "iterations_per_allocation=6 multiplier=1.2 tolerance=1e-3",
)


def document(changes: dict[str, Any] | None = None, **sections: dict[str, Any]) -> dict[str, Any]:
    return changed(BASE, changes, sections)


def problem(raw: dict[str, Any]) -> Any:
    with pytest.raises(DocumentError) as caught:
        compile_document(load(raw))
    (found,) = caught.value.problems
    return found


@cache
def of_subsets(rounds: int, taken: int, sigma: float, epsilon: float) -> tuple[float, float]:
    """δ (remove, add) of one allocation by quadrature over all rounds: S is the mean over subsets of their densities' ratios."""
    ratio, weights = ratios(rounds, taken, sigma)
    alpha = math.exp(epsilon)
    remove = float((weights * np.maximum(ratio - alpha, 0)).sum())
    return remove, float((weights * np.maximum(1 - alpha * ratio, 0)).sum())


@lru_cache(maxsize=1)
def ratios(rounds: int, taken: int, sigma: float) -> tuple[Array, Array]:
    """S at the nodes of all rounds, and their weights; as large as they are, only the last ones are kept."""
    points = {3: 181, 4: 61}[rounds]
    z = np.linspace(-8.0, 8.0, points)
    weight = np.exp(-z * z / 2)
    weight /= weight.sum()
    factors = np.exp(z / sigma - 0.5 / sigma**2)
    total, weights = np.zeros((points,) * rounds), np.ones((points,) * rounds)
    shaped = [factors.reshape([-1 if i == t else 1 for i in range(rounds)]) for t in range(rounds)]
    for t in range(rounds):
        weights = weights * weight.reshape([-1 if i == t else 1 for i in range(rounds)])
    for chosen in combinations(range(rounds), taken):
        total = total + math.prod(shaped[t] for t in chosen)
    return total / math.comb(rounds, taken), weights


def test_every_round_is_one_gaussian_mechanism() -> None:
    raw = document(training={"iterations": 3}, sampler={"iterations_per_allocation": 3, "participations": 3})
    truth = float(oracle.gaussian_epsilon(math.sqrt(3) / 1.2, 1e-5))
    data = pyaccount.certify(raw).data
    assert data.guarantee.epsilon_lower is not None
    assert data.guarantee.epsilon_lower <= truth <= data.guarantee.epsilon <= truth * 1.001


@pytest.mark.nightly(but=["3-1", "3-2"])
@pytest.mark.parametrize(("rounds", "taken"), [(3, 1), (3, 2), (4, 2)])
def test_subsets_of_few_rounds(rounds: int, taken: int) -> None:
    """k = 1 is enclosed narrowly, k > 1 between the sum of the rounds and the blocks."""
    epsilons = [0.0, 0.4, 1.5]
    raw = document(training={"iterations": rounds}, accounting={"profile": epsilons})
    raw["sampler"] = {"kind": "random-allocation", "iterations_per_allocation": rounds, "participations": taken}
    data = pyaccount.certify(raw).data
    assert [reduction.tight for reduction in data.reductions] == [taken == 1]
    for place, direction in enumerate((data.directions.remove, data.directions.add)):
        for row in direction.profile:
            # The corner of the integrand costs the quadrature a few units in the fourth digit.
            exact = of_subsets(rounds, taken, 1.2, row.epsilon)[place]
            assert row.delta_lower * 0.998 <= exact <= row.delta * 1.002
            if taken == 1:
                assert row.delta - row.delta_lower <= 0.01 * row.delta


@pytest.mark.nightly(but=["3-1", "3-2"])
@pytest.mark.parametrize(("rounds", "taken"), [(3, 1), (3, 2), (4, 2)])
def test_a_replaced_record_in_few_rounds(rounds: int, taken: int) -> None:
    """The pair of both mixtures: what one record shows at y the other one shows at −y."""
    ratio, weights = ratios(rounds, taken, 1.2)
    opposite = np.flip(ratio)
    epsilons = [0.0, 0.4, 1.5]
    raw = document(
        privacy={"adjacency": "replace-one"},
        training={"iterations": rounds},
        accounting={"profile": epsilons, "tolerance": 0.05, "seed": 20261130},
    )
    raw["sampler"] = {"kind": "random-allocation", "iterations_per_allocation": rounds, "participations": taken}
    data = pyaccount.certify(raw).data
    assert data.guarantee.kind != "deterministic"
    assert data.reductions[0].tight
    (rows,) = {tuple(side.profile) for side in (data.directions.remove, data.directions.add)}
    for row in rows:
        exact = float((weights * np.maximum(ratio - math.exp(row.epsilon) * opposite, 0)).sum())
        assert row.delta_lower * 0.998 <= exact <= row.delta * 1.002
        assert row.delta <= 1.2 * exact
    assert not inconsistencies(data)


def test_a_replaced_record_without_samples() -> None:
    """Two steps of a record that is set to zero: a bound, for what samples cannot answer."""
    raw = document(privacy={"adjacency": "replace-one"}, accounting={"method": "pld"}, training={"iterations": 3})
    raw["sampler"]["iterations_per_allocation"] = 3
    ratio, weights = ratios(3, 1, 1.2)
    data = pyaccount.certify(raw).data
    epsilon, below = data.guarantee.epsilon, data.guarantee.epsilon_lower
    assert data.guarantee.kind == "deterministic"
    assert not data.reductions[0].tight
    assert below is not None
    assert below < epsilon
    exact = float((weights * np.maximum(ratio - math.exp(epsilon) * np.flip(ratio), 0)).sum())
    assert exact <= 1.002e-5
    assert float((weights * np.maximum(ratio - math.exp(below) * np.flip(ratio), 0)).sum()) >= 0.998e-5
    raw["privacy"]["epsilon"], raw["training"]["iterations"] = 9.0, "solve"
    found = pyaccount.certify(raw | {"accounting": {}}).iterations
    assert found is not None
    assert found >= 3


def test_a_replaced_record_in_every_round() -> None:
    raw = document(privacy={"adjacency": "replace-one"}, training={"iterations": 3})
    raw["sampler"] = {"kind": "random-allocation", "iterations_per_allocation": 3, "participations": 3}
    truth = float(oracle.gaussian_epsilon(2 * math.sqrt(3) / 1.2, 1e-5))
    data = pyaccount.certify(raw).data
    assert data.guarantee.kind == "deterministic"
    assert data.guarantee.epsilon_lower is not None
    assert data.guarantee.epsilon_lower <= truth <= data.guarantee.epsilon <= truth * 1.001


@pytest.mark.parametrize(
    ("changes", "sampled"),
    [
        ({}, False),
        ({"accounting": {"tolerance": 0.01}}, True),
        ({"accounting": {"tolerance": 0.01, "method": "pld"}}, False),
        ({"accounting": {"tolerance": 0.01}, "sampler": {"participations": 1}}, False),
        ({"accounting": {"tolerance": 0.01}, "privacy": {"epsilon": 9}, "training": {"iterations": "solve"}}, False),
    ],
    ids=["narrow", "wide", "asked for", "exact", "a blank that samples cannot fill"],
)  # fmt: skip
def test_several_participations_are_sampled_where_blocks_are_too_wide(
    changes: dict[str, Any], *, sampled: bool
) -> None:
    raw = document(sampler={"participations": 2})
    assert pyaccount.compile(changed(raw, {}, changes)).sampled is sampled


def test_allocations_compose_with_phases() -> None:
    """An allocation of one round is a Gaussian mechanism, and so is the other phase."""
    raw = {key: value for key, value in document().items() if key not in ("training", "sampler", "noise")}
    raw["phases"] = [
        sectioned(iterations=4, sampler="random-allocation", iterations_per_allocation=1, multiplier=3.0),
        {"training": {"iterations": 5}, "sampler": {"kind": "none"}, "noise": {"multiplier": 4.0}},
    ]
    truth = float(oracle.gaussian_epsilon(math.sqrt(4 / 9 + 5 / 16), 1e-5))
    data = pyaccount.certify(raw).data
    assert data.guarantee.epsilon_lower is not None
    assert data.guarantee.epsilon_lower <= truth <= data.guarantee.epsilon <= truth * 1.002
    assert not inconsistencies(data)


@pytest.mark.nightly(but=["8-4-1.5", "7-3-2.0"])
@pytest.mark.parametrize(("iterations", "bins", "sigma"), [(8, 4, 1.5), (7, 3, 2.0), (40, 40, 0.8)])
def test_bins_are_certified_without_samples_and_samples_agree(iterations: int, bins: int, sigma: float) -> None:
    raw = document(
        {"sampler": {"kind": "balls-in-bins", "bins": bins}},
        privacy={"epsilon": 1.0, "delta": "solve"},
        training={"iterations": iterations},
        noise={"multiplier": sigma},
    )
    exact = pyaccount.certify(raw).data
    assert exact.guarantee.kind == "deterministic"
    assert exact.reductions[0].tight
    sampled = pyaccount.certify(
        raw | {"accounting": {"method": "monte-carlo", "tolerance": 0.05, "seed": 20261122}}
    ).data
    assert sampled.guarantee.kind != "deterministic"
    assert sampled.guarantee.delta_lower is not None
    assert exact.guarantee.delta_lower is not None
    assert sampled.guarantee.delta_lower <= exact.guarantee.delta
    assert exact.guarantee.delta_lower <= sampled.guarantee.delta
    assert sampled.guarantee.delta <= 1.2 * exact.guarantee.delta


def test_bins_in_one_epoch_are_an_allocation() -> None:
    allocated = pyaccount.certify(document(training={"iterations": 6})).data
    in_bins = pyaccount.certify(document({"sampler": {"kind": "balls-in-bins", "bins": 6}}, training={"iterations": 6}))
    assert in_bins.data.guarantee == allocated.guarantee


def test_noise_that_hides_nothing_and_noise_that_hides_all() -> None:
    """Outside of what the law is made for: the rounds known from above, their sum from below."""
    for sigma in (0.01, 1e-4, 2e6):
        data = pyaccount.certify(document(noise={"multiplier": sigma})).data
        assert data.guarantee.epsilon_lower is not None
        assert data.guarantee.epsilon_lower <= data.guarantee.epsilon
        assert data.guarantee.epsilon <= 1.01 * float(oracle.gaussian_epsilon(math.sqrt(2) / sigma, 1e-5)) + 1e-6


def test_a_tiny_delta() -> None:
    """One of two rounds at δ = 1e-100, in many digits."""
    raw = document(privacy={"delta": 1e-100}, training={"iterations": 2}, noise={"multiplier": 1.0})
    raw["sampler"] = {"kind": "random-allocation", "iterations_per_allocation": 2}
    data = pyaccount.certify(raw).data
    epsilon, below = data.guarantee.epsilon, data.guarantee.epsilon_lower
    assert below is not None
    assert below <= epsilon <= below * 1.002

    def delta(epsilon: float) -> Any:
        edge = 2 * mp.exp(mp.mpf(epsilon))

        def inner(z: Any) -> Any:
            left = edge - mp.exp(z - mp.mpf(1) / 2)
            density = mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi)
            if left <= 0:
                return density * (1 - left)
            d = mp.mpf(1) / 2 - mp.log(left)
            return density * (oracle.tail(-d) - left * oracle.tail(1 - d))

        whole = mp.log(edge) + mp.mpf(1) / 2
        return mp.quad(inner, [*mp.linspace(-12, whole, 41), *mp.linspace(whole, whole + 12, 13)[1:]]) / 2

    with mp.workdps(40):
        assert delta(epsilon) <= mp.mpf("1e-100") <= delta(below)


@pytest.mark.parametrize(
    "changes",
    [
        {"training": {"iterations": 20}},
        {"training": {"iterations": 5}},
        {"sampler": {"participations": 7}},
        {"training": {"sampling_probability": 0.1}},
        {"training": {"participation_rate": 0.1}},
        {"training": {"dataset_size": 60, "expected_batch_size": 12}},
        {"matrix": {"kind": "blt", "buffers": 1}},
        {"accounting": {"method": "monte-carlo"}},
        {"privacy": {"epsilon": 1.0, "group_size": "solve"}},
        {"privacy": {"epsilon": 1.0}, "training": {"dataset_size": 60, "expected_batch_size": "solve"}},
    ],
)
def test_what_is_refused_says_what_to_write(changes: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot(problem(document(**changes)))


@pytest.mark.parametrize(("taken", "count"), [(1, 1), (2, 1), (1, 3)])
def test_the_most_iterations_are_whole_allocations(taken: int, count: int) -> None:
    """One allocation more fails: by claims without a blank."""
    raw = document({"count": count}, privacy={"epsilon": 3.0}, training={"iterations": "solve"})
    raw["sampler"]["participations"] = taken
    raw["noise"]["multiplier"] = 2.5
    data = pyaccount.certify(raw).data
    assert data.solved is not None
    value, fails_at = data.solved.value, data.solved.fails_at
    assert value > 6
    assert value % 6 == 0
    assert fails_at == value + 6
    assert data.phases[0].iterations == value
    assert data.reductions[0].rounds == str(count * taken * int(value) // 6)
    assert not inconsistencies(data)
    for iterations, holds in ((value, True), (fails_at, False)):
        raw["training"]["iterations"] = iterations
        assert pyaccount.certify(raw).holds is holds
    # In words there is a symbol for what is open.
    raw["training"]["iterations"] = "solve"
    (found,) = pyaccount.compile(raw).reductions
    assert found.rounds == ("n/6" if count * taken == 1 else f"{count * taken} × n/6")


def test_iterations_of_rounds_in_all_of_which_a_record_is_are_in_closed_form() -> None:
    raw = document(privacy={"epsilon": 4.0}, training={"iterations": "solve"}, noise={"multiplier": 5.0})
    raw["sampler"] = {"kind": "random-allocation", "iterations_per_allocation": 4, "participations": 4}
    data = pyaccount.certify(raw).data
    assert data.solved is not None
    value, fails_at = int(data.solved.value), int(data.solved.fails_at or 0)
    assert fails_at == value + 4
    at, beyond = (float(oracle.gaussian_epsilon(math.sqrt(n) / 5.0, 1e-5)) for n in (value, fails_at))
    assert at <= 4.0 < beyond


def test_not_one_allocation(snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.certify(document(privacy={"epsilon": 0.01}, training={"iterations": "solve"})))


def test_iterations_of_a_phase_beside_another() -> None:
    """Allocations of one round are Gaussian mechanisms, and so is the other phase."""
    raw = {key: value for key, value in document(privacy={"epsilon": 2.0}).items() if key in ("pyaccount", "name")}
    raw["privacy"] = {"adjacency": "add-remove", "epsilon": 2.0, "delta": 1e-5}
    raw["phases"] = [
        {"training": {"iterations": 5}, "sampler": {"kind": "none"}, "noise": {"multiplier": 9.0}},
        sectioned(
            "iterations=solve multiplier=9.0",
            sampler={"kind": "random-allocation", "iterations_per_allocation": 2, "participations": 2},
        ),
    ]
    data = pyaccount.certify(raw).data
    assert data.solved is not None
    value = int(data.solved.value)
    at, beyond = (float(oracle.gaussian_epsilon(math.sqrt(5 + n) / 9.0, 1e-5)) for n in (value, value + 2))
    assert value % 2 == 0
    assert at <= 2.0 < beyond


def test_epochs_of_an_allocation() -> None:
    raw = document(sampler={"participations": 2})
    raw["training"] = {"epochs": 4, "dataset_size": 60}
    body = load(raw).run
    assert body.training.iterations == 12
    data = pyaccount.certify(raw).data
    assert data.phases[0].expected_batch_size == 20
    raw["training"] = {"epochs": 3, "dataset_size": 60}
    assert "3 epochs are 9 rounds" in problem(raw).message


@pytest.mark.parametrize("field", ["iterations", "epochs", "participation_rate", "expected_batch_size"])
def test_what_a_certificate_says_of_an_allocation_is_checked(field: str) -> None:
    raw = document(sampler={"participations": 2})
    raw["training"] = {"epochs": 4, "dataset_size": 60}
    data = pyaccount.certify(raw).data
    assert not inconsistencies(data)
    (phase,) = data.phases
    changed = phase.model_copy(update={field: 2 * getattr(phase, field)})
    assert inconsistencies(data.model_copy(update={"phases": [changed]}))


def enclosure(data: Any, direction: str) -> float:
    """What the error budget says of the laws, in one direction."""
    (line,) = (
        line
        for line in data.evidence.error_budget
        if line.source.startswith("law of a likelihood ratio") and line.direction in (direction, "both")
    )
    return float(line.contribution)


def test_the_error_budget_has_the_distance_of_the_laws() -> None:
    """It is no less than what the upper end really is too much: by quadrature, and by a law that is far nearer."""
    raw = document(
        privacy={"epsilon": 0.8, "delta": "solve"}, training={"iterations": 4}, accounting={"tolerance": 0.1}
    )
    raw["sampler"]["iterations_per_allocation"] = 4
    coarse = pyaccount.certify(raw).data
    raw["accounting"]["tolerance"] = 1e-4
    fine = pyaccount.certify(raw).data
    for place, direction in enumerate(("remove", "add")):
        upper = getattr(coarse.directions, direction).delta
        truth = of_subsets(4, 1, 1.2, 0.8)[place]
        nearest = getattr(fine.directions, direction)
        assert nearest.delta_lower * 0.998 <= truth <= nearest.delta * 1.002
        assert upper > nearest.delta
        assert upper - nearest.delta <= enclosure(coarse, direction) <= 0.2 * upper
        assert enclosure(fine, direction) <= 0.1 * enclosure(coarse, direction)


def test_of_several_rounds_the_laws_are_those_of_the_blocks() -> None:
    """Not the distance to the concrete data sets, which is that of the theorem."""
    raw = document(privacy={"epsilon": 2.0, "delta": "solve"}, sampler={"participations": 2})
    data = pyaccount.certify(raw).data
    assert enclosure(data, "remove") < 0.1 * (data.guarantee.delta - data.guarantee.delta_lower)
    assert 0.0 < enclosure(data, "remove") <= 0.02 * data.guarantee.delta
    assert {one.bound for one in data.evidence.compositions} == {"upper", "concrete-pair"}
    assert not inconsistencies(data)


def test_every_end_of_a_composition_is_labelled() -> None:
    """The composition of a law above ends above the mechanism, from below as well: it is called an upper one."""
    raw = document(
        privacy={"epsilon": 0.8, "delta": "solve"}, training={"iterations": 4}, accounting={"tolerance": 0.1}
    )
    raw["sampler"]["iterations_per_allocation"] = 4
    data = pyaccount.certify(raw).data
    truth = of_subsets(4, 1, 1.2, 0.8)[0]
    upper, lower = (one for one in data.evidence.compositions if one.direction == "remove")
    assert (upper.bound, lower.bound) == ("upper", "lower")
    assert truth < upper.lower <= upper.upper == data.directions.remove.delta
    assert data.directions.remove.delta_lower == lower.lower <= lower.upper < truth
    assert not inconsistencies(data)
    wrong = [upper.model_copy(update={"bound": "lower"}), *data.evidence.compositions[1:]]
    evidence = data.evidence.model_copy(update={"compositions": wrong})
    assert inconsistencies(data.model_copy(update={"evidence": evidence}))
    # What is known exactly stays the mechanism's.
    raw["sampler"]["participations"] = 4
    exact = pyaccount.certify(raw).data
    assert {one.bound for one in exact.evidence.compositions} == {"mechanism"}
    assert not any(line.source.startswith("law of") for line in exact.evidence.error_budget)
