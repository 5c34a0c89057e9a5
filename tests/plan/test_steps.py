"""Groups and replaced records whose bound follows from one record's: against enumeration, closed forms, and what is refused."""

import math
from itertools import combinations, product
from typing import Any

import mpmath as mp
import numpy as np
import oracle
import pytest
from certificate_oracle import inconsistencies
from plain_documents import changed, doc
from snapshots import Snapshot

import pyaccount
from pyaccount.plan.steps import StepsProfile
from pyaccount.profiles import GaussianProfile, Rounds

ALLOCATED = doc(
    "name=allocated adjacency=add-remove iterations=3 sampler=random-allocation iterations_per_allocation=3 multiplier=1.2",
    "group_size=2",
)


@pytest.mark.parametrize(("mu", "steps"), [(0.3, 2), (1.0, 3), (0.5, 8)])
def test_steps_of_gaussian_mechanisms_are_a_gaussian_mechanism(mu: float, steps: int) -> None:
    """The trade-off functions of μ-GDP compose to that of kμ: nothing is lost but between the points."""
    rounds = (Rounds(GaussianProfile(1.0, 2.0 / mu), 4),)
    profile = StepsProfile(rounds, rounds, steps).build()
    for delta in (0.1, 1e-5, 1e-9):
        exact = float(oracle.gaussian_epsilon(mu * steps, delta))
        assert profile.delta(exact)[0] >= delta * (1 - 1e-9)
        assert profile.delta(exact * 1.005)[0] <= delta
    assert profile.symmetric


def of_groups(rounds: int, taken: int, records: int, sigma: float, replaced: bool) -> Any:
    """Return δ(ε) of one allocation for a group by quadrature: each record takes part by itself."""
    z = np.linspace(-9.0, 9.0, 121)
    weight = np.exp(-z * z / 2)
    weight /= weight.sum()
    grids = np.meshgrid(*[z] * rounds, indexing="ij")
    weights = np.prod(np.meshgrid(*[weight] * rounds, indexing="ij"), axis=0)
    choices = [np.isin(np.arange(rounds), chosen).astype(float) for chosen in combinations(range(rounds), taken)]
    patterns = [sum(each) for each in product(choices, repeat=records)]
    densities = []
    for sign in (1.0, -1.0 if replaced else 0.0):
        means = [sign * pattern / sigma for pattern in patterns]
        ratios = (np.exp(sum(m * g for m, g in zip(mean, grids, strict=True)) - 0.5 * (mean @ mean)) for mean in means)
        densities.append(sum(ratios) / len(patterns))
    p, q = densities
    return lambda epsilon: max(
        float((weights * np.maximum(one - math.exp(epsilon) * other, 0)).sum()) for one, other in ((p, q), (q, p))
    )


@pytest.mark.parametrize(
    ("taken", "group", "adjacency"),
    [(1, 2, "add-remove"), (1, 3, "zero-out"), (2, 2, "zero-out"), (1, 2, "replace-one"), (2, 2, "replace-one")],
)
def test_the_records_of_a_group_are_allocated_by_themselves(taken: int, group: int, adjacency: str) -> None:
    raw = changed(ALLOCATED, {}, {"privacy": {"adjacency": adjacency, "group_size": group, "delta": 1e-3}})
    raw["sampler"]["participations"] = taken
    raw["accounting"] = {"profile": [0.0, 1.0, 3.0]}
    data = pyaccount.certify(raw).data
    exact = of_groups(3, taken, group, 1.2, adjacency == "replace-one")
    assert data.guarantee.kind == "deterministic"
    assert not data.reductions[0].tight
    assert exact(data.guarantee.epsilon) <= 1.002e-3
    assert data.guarantee.epsilon_lower is not None
    assert exact(data.guarantee.epsilon_lower) >= 0.998e-3
    for side in (data.directions.remove, data.directions.add):
        for row in side.profile:
            assert row.delta_lower * 0.998 <= exact(row.epsilon) <= row.delta * 1.002
    # It is no looser than if everybody knew the rounds.
    moved = group * (2 if adjacency == "replace-one" else 1) * math.sqrt(taken) / 1.2
    assert data.guarantee.epsilon <= 1.01 * float(oracle.gaussian_epsilon(moved, 1e-3))
    assert not inconsistencies(data)


def test_a_group_is_bounded_by_the_lemma_at_most() -> None:
    """The group operation on one record's whole profile is no looser than the lemma for single pairs of ε and δ."""
    raw = changed(ALLOCATED, {}, {"training": {"iterations": 60}, "noise": {"multiplier": 3.0}})
    for group in (2, 4):
        raw["privacy"]["group_size"] = group
        data = pyaccount.certify(raw).data
        assert data.group_lemma is not None
        assert data.group_lemma.epsilon is not None
        assert data.guarantee.epsilon < data.group_lemma.epsilon


def test_noise_is_solved_for_a_group() -> None:
    raw = changed(ALLOCATED, {}, {"privacy": {"epsilon": 5.0}, "noise": {"multiplier": "solve"}})
    found = pyaccount.certify(raw)
    again = changed(raw, {}, {"privacy": {"epsilon": "solve"}, "noise": {"multiplier": found.noise_multiplier}})
    assert 4.95 <= pyaccount.certify(again).epsilon <= 5.0
    assert pyaccount.verify(found)


def test_truncated_batches_of_replaced_records() -> None:
    """Two steps under zero-out: with a batch that is hardly ever truncated, near two steps of what Poisson sampling shows."""
    raw = doc(
        "name=truncated adjacency=replace-one iterations=20 sampler=poisson dataset_size=100 sampling_probability=0.1",
        "multiplier=2 delta=1e-5 truncate_to=90",
    )
    data = pyaccount.certify(raw).data
    whole = pyaccount.certify({**raw, "sampler": {"kind": "poisson"}}).data
    assert whole.guarantee.epsilon <= data.guarantee.epsilon <= 1.4 * whole.guarantee.epsilon
    assert data.reductions[0].lower_end is not None


def test_a_mixture_for_two_records() -> None:
    """Two random contributions: 0, 1 or 2, against none; in closed form."""
    mixture = {"kind": "mixture-of-gaussians", "sigma": 1.0, "sensitivities": [0, 1], "probabilities": [0.75, 0.25]}
    raw = doc("name=mixture adjacency=add-remove group_size=2 epsilon=1.0 delta=solve", mechanism=mixture)
    both = [(mp.mpf(9) / 16, mp.mpf(0)), (mp.mpf(6) / 16, mp.mpf(1)), (mp.mpf(1) / 16, mp.mpf(2))]
    exact = float(oracle.mixture_delta(both, [(mp.mpf(1), mp.mpf(0))], mp.mpf(1)))
    data = pyaccount.certify(raw).data
    assert data.guarantee.delta_lower <= exact <= data.guarantee.delta <= 2.0 * exact


@pytest.mark.parametrize(
    ("sampler", "privacy"),
    [
        ("sampler=must-ow subset_size=20 dataset_size=100 expected_batch_size=10", {"adjacency": "add-remove"}),
        (
            "sampler=user-b-min-sep records_per_user=2 attribution=shared min_separation=2 sampling_probability=0.1",
            {"adjacency": "zero-out"},
        ),
        ("sampler=cyclic-poisson partitions=2 phase=random sampling_probability=0.1", {"adjacency": "zero-out"}),
    ],
    ids=["sizes that change", "users", "sampled"],
)
def test_what_has_no_steps_is_refused(sampler: str, privacy: dict[str, Any], snapshot: Snapshot) -> None:
    raw = changed(doc(f"name=refused iterations=8 multiplier=2 delta=1e-5 {sampler}"), {}, {"privacy": privacy})
    raw["privacy"]["group_size"] = 2
    snapshot.raised(pyaccount.compile, raw)


def test_a_replaced_record_is_two_steps_of_training_only(snapshot: Snapshot) -> None:
    """What a mechanism states under replace-one says nothing about a record that is set to zero."""
    mixture = {"kind": "mixture-of-gaussians", "sigma": 1.0, "sensitivities": [1], "probabilities": [1]}
    raw = doc("name=mixture adjacency=replace-one", mechanism=mixture)
    snapshot.raised(pyaccount.compile, raw)


def test_a_group_of_draws_with_replacement_from_subsets() -> None:
    """MUST.OW under zero-out has sizes that do not change, and the group is at least as exposed as one record."""
    raw = doc(
        "name=group adjacency=zero-out iterations=2 sampler=must-ow subset_size=10 dataset_size=50 expected_batch_size=4",
        "multiplier=1 delta=1e-5",
    )
    one, two = (pyaccount.certify(changed(raw, {}, {"privacy": {"group_size": k}})).data for k in (1, 2))
    assert one.guarantee.epsilon < two.guarantee.epsilon
    # The group's lower end is that of one record; the attack over all rounds is for single records alone.
    without = pyaccount.certify(raw | {"accounting": {"method": "pld"}}).data
    assert two.guarantee.epsilon_lower == pytest.approx(without.guarantee.epsilon_lower, rel=1e-3)
    assert without.guarantee.epsilon_lower < one.guarantee.epsilon_lower


@pytest.mark.usefixtures("without_profiles")
@pytest.mark.parametrize("group", [2, 3])
def test_the_largest_loss_of_a_group_is_so_many_times_that_of_one_record(group: int) -> None:
    """A sampled Laplace number has the largest loss ln(1 + q(e^{1/b} − 1)), and δ is 0 from so many of them on."""
    alone = math.log1p(0.719 * math.expm1(1 / 3.31))
    sampler = {"kind": "poisson", "sampling_probability": 0.719}
    phase = {"mechanism": {"kind": "laplace", "scale": 3.31}, "sampler": sampler}
    raw = doc(name="group", group_size=group, delta=0, phases=[phase])
    pure = pyaccount.certify(raw)
    assert pure.epsilon == pytest.approx(group * alone, rel=1e-12)
    assert pure.epsilon_lower == pytest.approx(alone, rel=1e-12)
    assert pyaccount.certify(changed(raw, {}, {"privacy": {"delta": 1e-9}})).epsilon <= pure.epsilon
