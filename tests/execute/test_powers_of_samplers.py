"""Powers of the likelihood ratio for users, random phases, bins and allocations: against enumeration and quadrature."""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from exact_mixtures import Mixture, hockey_stick, nothing
from made import sampled
from oracle import gaussian_delta
from plain_documents import doc, sectioned
from sampled_tools import allocation_law, bin_law, lower_toeplitz, phase_law, renewal_law, users_law
from snapshots import Snapshot

import pyaccount
from pyaccount import _core
from pyaccount.document.loading import load
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.betting_choice import Claim, choose_betting
from pyaccount.execute.sampling.estimates import Estimator
from pyaccount.execute.sampling.jobs import SHARD, Bet, BetTable, Replicas
from pyaccount.execute.sampling.moments import chernoff
from pyaccount.execute.sampling.proposals import powered
from pyaccount.execute.sampling.shards import Sampler, Stream
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.sampled import SampledMechanism, composed_bound, composed_bounds
from pyaccount.profiles import GaussianProfile, Rounds
from pyaccount.profiles.base import Recipe


@dataclass(frozen=True)
class Small:
    """A mechanism of the core, and the pair that it stands for."""

    name: str
    recipe: Recipe[Any]
    law: dict[tuple[int, ...], float]
    columns: tuple[float, ...]

    @property
    def rounds(self) -> int:
        return len(next(iter(self.law)))

    @property
    def mechanism(self) -> SampledMechanism:
        return SampledMechanism(self.recipe, ("remove", "add"), self.rounds, 1000.0, self.recipe.core.plain_parameter)

    @property
    def mixture(self) -> Mixture:
        return Mixture.of(self.law, lower_toeplitz(np.array(self.columns), self.rounds))


def users(n: int, b: int, p: float, k: int, *, warm: bool, columns: tuple[float, ...]) -> Small:
    recipe = sampled("users", columns, n, b, p, k, warm)
    return Small(f"users {n} {b} {k} {warm}", recipe, users_law(n, b, p, k, warm=warm), columns)


def phases(n: int, parts: int, p: float, columns: tuple[float, ...]) -> Small:
    return Small(f"phases {n} {parts}", sampled("phases", columns, n, parts, p), phase_law(n, parts, p), columns)


def bins(n: int, count: int, columns: tuple[float, ...]) -> Small:
    modes = lower_toeplitz(np.array(columns), n) @ np.array(list(bin_law(n, count)), dtype=float).T
    gram = modes.T @ modes
    return Small(f"bins {n} {count}", sampled("bins", gram.ravel(), n), bin_law(n, count), columns)


def allocation(t: int, k: int, unit: float) -> Small:
    return Small(f"allocation {t} {k}", sampled("allocation", t, k, unit), allocation_law(t, k), (unit,))


def spaced(n: int, b: int, p: float, *, warm: bool, columns: tuple[float, ...]) -> Small:
    law = renewal_law(n, b, p, warm=warm)
    return Small(f"spaced {n} {b} {warm}", sampled("renewal", columns, n, b, p, warm), law, columns)


def windows(n: int, p: float, columns: tuple[float, ...]) -> Small:
    return Small(f"windows {n}", sampled("windows", columns, n, p, 1), renewal_law(n, 1, p, warm=False), columns)


SMALL = (
    users(4, 2, 0.1, 2, warm=True, columns=(1.0, 0.6)),
    users(3, 1, 0.05, 3, warm=False, columns=(0.9,)),
    users(4, 3, 0.2, 2, warm=False, columns=(1.0, 0.0, 0.6)),
    phases(4, 2, 0.4, (1.0, 0.6)),
    phases(4, 3, 0.3, (1.1, 0.5, 0.4)),
    bins(4, 2, (0.8, 0.5)),
    bins(4, 3, (1.2, 0.7, 0.4)),
    allocation(4, 2, 1.0),
    allocation(4, 3, 1.5),
)


def sampler(seed: int = 3) -> Sampler:
    return Sampler(RunOptions(seed=seed, threads=1))


@cache
def removed(place: int, epsilon: float) -> float:
    """Return δ(ε) of a removed record, by quadrature."""
    small = SMALL[place]
    return hockey_stick(small.mixture, nothing(small.rounds), epsilon)


@pytest.mark.parametrize("place", range(len(SMALL)), ids=[small.name for small in SMALL])
def test_means_are_delta_and_no_sample_is_above_its_bound(place: int) -> None:
    mechanism, checked = SMALL[place].mechanism, 0
    for order in (2, 3, 5):
        drawing, proposal = sampler(), powered(mechanism, Replicas(order))
        for epsilon in (0.5, 2.0, 4.0):
            limits = drawing.limits(mechanism, "remove", proposal, epsilon)
            table = BetTable(epsilon, math.inf)
            sums = drawing.run(mechanism, "remove", proposal, [table], Stream("verification", 32, order))
            values = np.array([shard[0].value for shard in sums]) / SHARD
            error = values.std(ddof=1) / math.sqrt(len(values))
            right = removed(place, epsilon)
            if limits.weight_bound < 30.0 * right:
                # For a larger bound the losses that matter are seldom seen.
                assert abs(values.mean() - right) < 4.5 * error + limits.generator
                checked += 1
            # Σ V² ≤ W Σ V for samples in [0, W].
            assert all(shard[0].square <= limits.weight_bound * shard[0].value * (1.0 + 1e-9) for shard in sums)
            assert right <= limits.weight_bound
            assert limits.rounding < 1e-9
            assert limits.generator < 1e-8 * max(1.0, limits.weight_bound)
    assert checked > 1


#: The mechanisms above and others, where a record is replaced.
REPLACED = (
    *SMALL,
    spaced(4, 2, 0.3, warm=True, columns=(1.2, 0.6)),
    spaced(4, 3, 0.8, warm=False, columns=(0.9, 0.0, 0.7)),
    windows(4, 0.2, (1.0, 0.6)),
)


@pytest.mark.parametrize("small", REPLACED, ids=[small.name for small in REPLACED])
def test_means_with_a_floor_fall_short_of_delta_by_what_is_below_it_at_most(small: Small) -> None:
    """Of a replaced record: E min(V, W) is between δ(ε) − e^a δ_add(ε − a) and δ(ε), for the exact δ_add."""
    mechanism, checked, short = replace(small.mechanism, directions=("replace",)), 0, 0
    own, reference = small.mixture, nothing(small.rounds)
    busy = 2 if mechanism.chain(3, None, 2) is not None else 0
    for epsilon in (1.0, 2.5):
        right = hockey_stick(own, own.mirrored, epsilon)
        for share in (0.3, 0.6, 0.8):
            floor = share * epsilon
            lost = math.exp(floor) * hockey_stick(reference, own, epsilon - floor)
            for replicas in {Replicas(2), Replicas(3), Replicas(3, most_busy=busy), Replicas(5)}:
                drawing, proposal = sampler(), replace(powered(mechanism, replicas), floor=floor)
                limits = drawing.limits(mechanism, "replace", proposal, epsilon)
                # ln of the wealth of a very small bet against 0 is minus the fraction times the sum of min(V, W).
                fraction = 1e-7 / limits.weight_bound
                table = BetTable(epsilon, limits.weight_bound, (Bet(0.0, fraction),))
                sums = drawing.run(mechanism, "replace", proposal, [table], Stream("verification", 12, 1))
                values = -np.array([shard[0].log_wealth[0] for shard in sums]) / fraction / SHARD
                error = values.std(ddof=1) / math.sqrt(len(values)) + 1e-6 * right + limits.generator
                assert lost <= limits.clipped
                assert limits.rounding < 1e-8
                assert right <= limits.weight_bound + limits.left_out + limits.clipped
                if limits.weight_bound < 30.0 * right:
                    # For a larger bound the losses that matter are seldom seen.
                    assert right - lost - limits.left_out - 4.5 * error < values.mean() < right + 4.5 * error
                    checked += 1
                    # What is below the floor is missing: without it, the test of a false claim would accept it.
                    short += values.mean() < right - limits.left_out - 4.5 * error
    assert checked > 1
    assert short > 0


def test_samples_with_a_floor_are_of_a_replaced_record(snapshot: Snapshot) -> None:
    mechanism = SMALL[0].mechanism
    drawing, table = sampler(), BetTable(1.0, 1.0)
    for direction, proposal in (
        ("remove", replace(powered(mechanism, Replicas(2)), floor=0.5)),
        ("replace", powered(mechanism, Replicas(2))),
    ):
        snapshot.raised(drawing.run, mechanism, direction, proposal, [table], Stream("pilot", 1, 1))


@pytest.mark.parametrize("place", range(len(SMALL)), ids=[small.name for small in SMALL])
def test_moments_are_bounds_without_samples(place: int) -> None:
    core = SMALL[place].recipe.core
    for order in (2, 3, 5, 8):
        _, log, left_out = core.log_moment(order, threads=1, time_limit=None)
        assert left_out == 0.0
        for epsilon in (0.5, 2.0, 4.0):
            assert removed(place, epsilon) <= chernoff(order, log, epsilon)


@pytest.mark.parametrize("place", [1, 4, 6, 7], ids=[SMALL[place].name for place in (1, 4, 6, 7)])
def test_a_claim_that_is_just_true_is_seldom_refuted(place: int) -> None:
    """The wealth against the true claim "δ(ε) ≥ δ(ε)" reaches 1/q in at most a share q of the runs."""
    mechanism, epsilon = SMALL[place].mechanism, 2.0
    truth, drawing, proposal = removed(place, epsilon), sampler(5), powered(mechanism, Replicas(2))
    bound = drawing.limits(mechanism, "remove", proposal, epsilon).weight_bound
    table = BetTable(epsilon, math.inf)
    first = drawing.run(mechanism, "remove", proposal, [table], Stream("pilot", 16, 1))
    square = sum(shard[0].square for shard in first) / (16 * SHARD)
    # ln of the wealth has a standard deviation of about 2 after eight shards: bets then win about as often as they may.
    fraction = min(2.0 / math.sqrt(8 * SHARD * (square - truth * truth)), 0.5 / (bound - truth))
    bets = (Bet(truth, fraction),)
    runs, q, reached = 100, 0.1, 0
    for candidate in range(runs):
        table = BetTable(epsilon, bound, bets)
        sums = drawing.run(mechanism, "remove", proposal, [table], Stream("verification", 8, candidate + 1))
        wealth = np.exp(np.cumsum([shard[0].log_wealth for shard in sums], axis=0)).mean(axis=1)
        reached += bool(wealth.max() >= 1.0 / q)
    # 100 draws of probability 0.1 exceed 20 with probability 1e-3. Bets do win sometimes.
    assert 0 < reached <= 20


def test_there_is_no_chain_by_blocks_with_few_busy_replicas(snapshot: Snapshot) -> None:
    for small in SMALL:
        mechanism = small.mechanism
        assert Replicas(3).price(mechanism) is not None
        assert Replicas(3, block=2).price(mechanism) is None
        assert Replicas(4, most_busy=2).price(mechanism) is None
        snapshot.raised(small.recipe.core.log_moment, 3, block=2, threads=1, time_limit=None)


def test_chains_that_fit_nowhere_have_no_price_and_are_refused(snapshot: Snapshot) -> None:
    many: _core.Sampled = sampled("users", (1e-3,), 10, 1, 1e-3, 1000, False).core
    assert many.replicas(2) is None
    snapshot.raised(many.log_moment, 2, threads=1, time_limit=None)
    wide: _core.Sampled = sampled("bins", np.eye(400).ravel(), 400).core
    assert wide.replicas(2) is not None
    assert wide.replicas(6) is None
    snapshot.raised(wide.log_moment, 6, threads=1, time_limit=None)


ALLOCATION: dict[str, Any] = doc(
    "name=allocation adjacency=add-remove iterations=16 multiplier=1.5 method=monte-carlo seed=7 profile=[4,1,2,1]",
    sampler={"kind": "random-allocation", "iterations_per_allocation": 8, "participations": 3},
)


def test_an_allocation_is_certified_tighter_by_samples_than_by_blocks() -> None:
    sampled_one = pyaccount.certify(ALLOCATION, threads=1)
    composed = pyaccount.certify(ALLOCATION | {"accounting": {}}, threads=1)
    assert composed.epsilon_lower < sampled_one.epsilon_lower < sampled_one.epsilon < 0.99 * composed.epsilon
    tests = sampled_one.data.evidence.sampling.tests
    removals = [test for test in tests if test.direction == "remove"]
    assert all(test.proposal.order for test in removals)
    # Composition proves the bound for an added record, without samples.
    assert all(test.samples == 0 and test.accepted for test in tests if test.direction == "add")
    assert pyaccount.verify(sampled_one, threads=1).agrees


def test_what_composition_says_is_an_upper_bound() -> None:
    raw = ALLOCATION | sectioned(
        "iterations=4 multiplier=1.0 adjacency=add-remove epsilon=1.0 delta=1e-3",
        sampler={"kind": "random-allocation", "iterations_per_allocation": 4, "participations": 2},
    )
    mechanism = compile_document(load(raw)).at().mechanism()
    pair = Mixture.of(allocation_law(4, 2), np.eye(4))
    for epsilon in (0.25, 1.0, 3.0):
        removing, adding = hockey_stick(pair, nothing(4), epsilon), hockey_stick(nothing(4), pair, epsilon)
        for direction, right in (("remove", removing), ("add", adding)):
            known = mechanism.known(direction, epsilon)
            assert known is not None
            assert right <= known <= 3.0 * right
            assert right <= mechanism.bounded_profile(direction, [epsilon])[0] <= 1.02 * known


@pytest.mark.parametrize(
    ("sampler", "columns", "law"),
    [
        (
            {"kind": "random-allocation", "iterations_per_allocation": 4, "participations": 2},
            (1.0,),
            allocation_law(4, 2),
        ),
        ({"kind": "cyclic-poisson", "partitions": 2, "phase": "random"}, (1.0, 0.6), phase_law(4, 2, 0.2)),
        ({"kind": "balls-in-bins", "bins": 4}, (1.0, 0.5), bin_law(4, 4)),
        ({"kind": "balls-in-bins", "bins": 4}, (1.0, 0.5), bin_law(5, 4)),
    ],
    ids=["allocation", "random parts", "bins", "bins that meet again"],
)
def test_an_added_record_is_bounded_beside_a_replaced_one(
    sampler: dict[str, Any], columns: tuple[float, ...], law: dict[tuple[int, ...], float]
) -> None:
    """The bound of what lies below a floor, for a record that is added to nothing."""
    n = len(next(iter(law)))
    raw = doc(
        f"name=replaced iterations={n} multiplier=1.0 adjacency=replace-one epsilon=1.0 delta=1e-4 method=monte-carlo",
        sampler=sampler,
    )
    if len(columns) > 1:
        raw["matrix"] = {"kind": "toeplitz", "coefficients": list(columns), "normalize": False}
    if sampler["kind"] == "cyclic-poisson":
        raw["training"]["sampling_probability"] = 0.2
    mechanism = compile_document(load(raw)).at().mechanism()
    assert mechanism.directions == ("replace",)
    pair = Mixture.of(law, lower_toeplitz(np.array(columns), n))
    for epsilon in (0.1, 0.5, 1.0):
        known, right = mechanism.known("add", epsilon), hockey_stick(nothing(n), pair, epsilon)
        assert known is not None
        assert right <= known < min(1.0, 30.0 * right + 1e-3)
        assert right <= mechanism.bounded("add", epsilon) <= known


def test_what_composes_ends_at_the_deadline_that_was_entered(snapshot: Snapshot) -> None:
    rounds = (Rounds(GaussianProfile(1.0, 1.0), 3),)
    with _core.Deadline(0.0):
        for late in (lambda: composed_bound(rounds, 0.75), lambda: composed_bounds(rounds, [2.0, 0.5])):
            snapshot.raised(late)
    # In any order and number of questions, each bound is above the closed form by at most the relative width asked for.
    found = composed_bounds(rounds, [2.0, 0.5, 2.0])
    assert found[0] == found[2]
    assert found[0] < found[1]
    for bound, epsilon in zip(found, (2.0, 0.5, 2.0), strict=True):
        right = gaussian_delta(3.0**0.5, epsilon)
        assert right <= bound <= 1.01 * right


@pytest.mark.parametrize(
    "changed",
    [
        {"sampler": ALLOCATION["sampler"] | {"participations": 1}},
        {"sampler": ALLOCATION["sampler"] | {"participations": 8}},
        {"training": {"iterations": "solve"}, "privacy": ALLOCATION["privacy"] | {"epsilon": 2.0}},
    ],
    ids=["one round", "every round", "iterations"],
)
def test_what_samples_do_not_cover_is_refused(changed: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.certify(ALLOCATION | changed, threads=1))


def test_the_price_of_a_tuple_is_part_of_the_choice() -> None:
    """If plain samples are cheap, it hardly matters that fewer samples of a power are needed."""
    small = SMALL[6]
    epsilon = 2.0
    claim = Claim(replace(small.mechanism, cost=1e6), 1.0, epsilon, 1.2 * removed(6, epsilon), 9.0)
    cheap = replace(claim, mechanism=replace(small.mechanism, cost=1e-3))
    estimate = Estimator(sampler()).at(small.mechanism, "remove", epsilon)
    for one, powers in ((claim, True), (cheap, False)):
        betting = choose_betting(sampler(), one, "remove", estimate)
        assert betting is not None
        assert (betting.proposal.replicas is not None) is powers
