"""Costs, sums and refusals of filters, and what their phases promise."""

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import oracle
import pytest
from filter_samples import entry, gaussian, mechanism, poisson
from plain_documents import doc, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount import DocumentError
from pyaccount.errors import Problem
from pyaccount.execute.engine import Engine, Question
from pyaccount.filters import BasicFilter, ConcentratedFilter, Filter, GaussianFilter, RenyiFilter, filter_of
from pyaccount.filters.base import fits, left_down, sum_up
from pyaccount.filters.cut import cut_costs
from pyaccount.filters.renyi import divergences_of
from pyaccount.plan.compiling import compile_document
from pyaccount.profiles import GuaranteesProfile

GAUSSIAN, RENYI = GaussianFilter(1.0), RenyiFilter((2.0, 8.0), (1.0, 3.0))
CONCENTRATED, BASIC = ConcentratedFilter(0.5), BasicFilter(1.0, 1e-6)
ALL: tuple[Filter, ...] = (GAUSSIAN, RENYI, CONCENTRATED, BASIC)


def refused(rule: Filter, *entries: Any) -> list[Problem]:
    """The problems of entries that are all refused."""
    problems = []
    for one in entries:
        with pytest.raises(DocumentError) as caught:
            rule.cost(one)
        (problem,) = caught.value.problems
        problems.append(problem)
    return problems


def mu_of_pure(epsilon: float) -> float:
    """μ of the profile of pure ε, whose square is the square of a double; infinite if none is known."""
    square = GuaranteesProfile(((epsilon, 0.0),)).build().gaussian_square()
    return math.inf if square is None else math.isqrt(square.numerator) / math.isqrt(square.denominator)


def test_sums_are_exact_and_rounded_once() -> None:
    assert sum_up(0.25, 0.5) == 0.75
    assert Fraction(sum_up(0.1, 0.2)) >= Fraction(0.1) + Fraction(0.2)
    assert Fraction(math.nextafter(sum_up(0.1, 1e-30), 0.0)) < Fraction(0.1) + Fraction(1e-30)
    assert fits(1.0, 0.5, 0.5)
    assert not fits(1.0, 0.5, math.nextafter(0.5, 1.0))
    assert not fits(1.0, math.inf)
    assert left_down(1.0, 2.0) == 0.0
    assert left_down(1.0, math.inf) == 0.0
    assert Fraction(left_down(1.0, 0.1)) <= 1 - Fraction(0.1)
    assert sum_up(1.0, math.inf) == math.inf


def test_a_gaussian_filter_is_used_up_exactly() -> None:
    """Four releases with μ = 1/2, nine with 1/3 as one phase, and mixed ones: Σ μ² = 1 is admitted, and nothing beyond it."""
    spent = GAUSSIAN.nothing
    for _ in range(4):
        assert GAUSSIAN.admits(spent, GAUSSIAN.cost(gaussian(2.0)))
        spent = GAUSSIAN.after(spent, GAUSSIAN.cost(gaussian(2.0)))
    assert spent == (1.0,)
    assert GAUSSIAN.remaining(spent) == (0.0,)
    assert not GAUSSIAN.admits(spent, GAUSSIAN.cost(gaussian(1e4)))
    assert GAUSSIAN.cost(gaussian(3.0, 9)) == (1.0,)
    assert GAUSSIAN.admits(GAUSSIAN.nothing, GAUSSIAN.cost(gaussian(3.0, 9)))
    assert not GAUSSIAN.admits(GAUSSIAN.nothing, GAUSSIAN.cost(gaussian(2.99999, 9)))
    # 0.6 is no double: the least double above it is used, and its square is rounded up.
    (cost,) = GAUSSIAN.cost(mechanism(kind="stated", mu=0.6))
    assert Fraction(9, 25) <= Fraction(cost) <= Fraction(9, 25) * (1 + Fraction(1, 10**15))


def test_the_gaussian_filter_promises_the_exact_composition() -> None:
    """Adaptive choices of unsampled Gaussians lose nothing: what the phase certifies is the closed form at Σ μ_i² = μ²."""
    rule = GaussianFilter(1.3)
    document = doc(rule.phase(), name="whole", adjacency="add-remove")  # fmt: skip
    assert pyaccount.certify(document).epsilon == pytest.approx(float(oracle.gaussian_epsilon(1.3, 1e-5)), rel=1e-8)


def test_a_pure_mechanism_is_below_a_gaussian_pair() -> None:
    """δ of randomized response is at most δ of N(μ, 1) at every ε, with equality at 0."""
    with mp.workdps(60):
        for epsilon in (1e-3, 0.5, 0.99, 1.0, 2.0, 10.0, 50.0):
            mu = mp.mpf(mu_of_pure(epsilon))
            for share in (0.0, 0.2, 0.5, 0.9, 0.99):
                at = mp.mpf(share) * epsilon
                response = (mp.exp(epsilon) - mp.exp(at)) / (1 + mp.exp(epsilon))
                assert response <= oracle.gaussian_delta(mu, at)
            least = mu * (1 - mp.mpf(10) ** -9)
            assert mp.tanh(mp.mpf(epsilon) / 2) > oracle.gaussian_delta(least, mp.mpf(0))
    assert mu_of_pure(0.0) == 0.0
    assert mu_of_pure(800.0) == math.inf
    (cost,) = GAUSSIAN.cost(
        mechanism(kind="randomized-response", values=2, truth_probability=0.9, adjacency="replace-one")
    )
    assert cost == pytest.approx(mu_of_pure(math.log(9.0)) ** 2, rel=1e-9)
    # Laplace noise has the corner (c, c) of its trade-off function at c = e^(−θ/2)/2, further from ½ than pure ε = θ.
    (cost,) = GAUSSIAN.cost(mechanism(kind="laplace", sensitivity=1, scale=1))
    exact = 2 * mp.sqrt(2) * mp.erfinv(1 - mp.exp(mp.mpf(-1) / 2))
    assert exact <= math.sqrt(cost) * (1 + 1e-15) <= exact * (1 + mp.mpf(2) ** -36)


def test_a_random_contribution_costs_what_its_largest_one_costs() -> None:
    """Σ p_j N(s_j, σ²) against N(0, σ²) is below N(max s, σ²) at every ε in both directions, and above anything less far out."""
    shifts, weights, sigma = (0.0, 0.3, 3.0), (0.5, 0.4, 0.1), 2.0
    entry_of_mixture = mechanism(
        kind="mixture-of-gaussians", sensitivities=list(shifts), probabilities=list(weights), sigma=sigma
    )
    assert GaussianFilter(2.0).cost(entry_of_mixture) == (2.25,)
    assert ConcentratedFilter(2.0).cost(entry_of_mixture) == (1.125,)

    def delta(mu: float, epsilon: float, *, remove: bool) -> float:
        points = np.arange(-12.0, 24.0, 1e-3)

        def density(shift: float) -> Any:
            return np.exp(-((points - shift) ** 2) / 2) / math.sqrt(2 * math.pi)

        one = sum(w * density(s / sigma) for w, s in zip(weights, shifts, strict=True)) if mu == 0.0 else density(mu)
        above, below = (one, density(0.0)) if remove else (density(0.0), one)
        return float(np.maximum(above - math.exp(epsilon) * below, 0.0).sum() * 1e-3)

    for epsilon in (-2.0, -0.5, 0.0, 0.7, 2.0, 4.0):
        for remove in (True, False):
            assert delta(0.0, epsilon, remove=remove) <= delta(1.5, epsilon, remove=remove) + 1e-9
    assert delta(0.0, 20.0, remove=True) > delta(1.2, 20.0, remove=True) > 0.0


def test_zcdp_of_mechanisms() -> None:
    for one, rho in (
        (gaussian(2.0, 4), 0.5),
        (mechanism(kind="discrete-gaussian", sensitivity=1, sigma=2), 0.125),
        (mechanism(kind="distributed-discrete-gaussian", sensitivity=4, sigma=2, parties=4), 0.5),
        (mechanism(kind="exponential", epsilon=1), math.log(math.e - 1.0) - 1.0 + 1.0 / (math.e - 1.0)),
        (mechanism(kind="laplace", sensitivity=1, scale=2), math.exp(-0.5) - 0.5),
        (mechanism(kind="stated", epsilon=1), math.tanh(0.5)),
        (mechanism(kind="stated", rho=0.2), 0.2),
    ):
        assert CONCENTRATED.cost(one) == (pytest.approx(rho, rel=1e-13),)


@pytest.mark.parametrize("values", [2, 3, 7, 10, 100])
def test_rho_of_randomized_response_is_above_every_order_in_both_directions(values: int) -> None:
    """With many values, the supremum of D_a/a is at an order above 1; with and without the record the laws differ."""
    truth = math.e / (math.e + values - 1)
    with_record = [truth] + [(1.0 - truth) / (values - 1)] * (values - 1)
    for adjacency, empty in (("replace-one", None), ("zero-out", "uniform")):
        more = {} if empty is None else {"empty_record": empty}
        document = mechanism(
            kind="randomized-response", values=values, truth_probability=truth, adjacency=adjacency, **more
        )
        (rho,) = ConcentratedFilter(10.0).cost(document)
        other = [1.0 / values] * values if empty else [with_record[1], truth, *with_record[2:]]
        for p, q in ((with_record, other), (other, with_record)):
            for a in (1.0 + 10.0 ** (k / 8.0 - 4.0) for k in range(45)):
                moment = math.fsum(x**a * y ** (1.0 - a) for x, y in zip(p, q, strict=True))
                assert math.log(moment) / (a - 1.0) / a <= rho * (1.0 + 1e-11)


def test_both_directions_are_bounded_where_they_differ() -> None:
    """A pure ε that is larger in one direction: sampled randomized response, by the definition of both losses."""
    document = mechanism(kind="stated", epsilon=2.0).to_mapping()
    document |= {"sampler": {"kind": "poisson", "sampling_probability": 0.3}}
    add = -math.log1p(0.3 * math.expm1(-2.0))
    remove = math.log1p(0.3 * math.expm1(2.0))
    for rule, expected in ((GAUSSIAN, mu_of_pure(remove) ** 2), (CONCENTRATED, remove * math.tanh(remove / 2.0))):
        assert remove > add
        assert rule.cost(pyaccount.load(document)) == (pytest.approx(expected, rel=1e-9),)


def test_what_has_no_bound_is_refused_with_what_to_do(snapshot: Snapshot) -> None:
    approximate = mechanism(kind="stated", epsilon=1.0, delta=1e-6)
    for problem in (
        *refused(GAUSSIAN, poisson(1.0, 0.01), approximate, mechanism(kind="stated", rho=0.1)),
        *refused(GAUSSIAN, mechanism(kind="discrete-gaussian", sensitivity=1, sigma=2)),
        *refused(RENYI, approximate, mechanism(kind="stated", renyi=[{"order": 3, "epsilon": 0.1}])),
        *refused(CONCENTRATED, poisson(1.0, 0.01), approximate, mechanism(kind="skellam", variance=4)),
    ):
        assert problem.slug == "no-valid-bound"
        assert problem.message.startswith("no bound is implemented for ")
        assert "the whole budgets of two filters compose" in problem.message
        assert problem.path in (("sampler", "kind"), ("mechanism",))
    spaced = entry(
        training={"iterations": 50, "sampling_probability": 0.1},
        sampler={"kind": "b-min-sep", "min_separation": 4},
        noise={"multiplier": 2.0},
    )
    snapshot(refused(RENYI, spaced))
    snapshot(refused(BASIC, spaced))
    blank = pyaccount.load({**gaussian(2.0).to_mapping(), "noise": {"multiplier": "solve"}, "privacy": {
        "adjacency": "add-remove", "epsilon": 1, "delta": 1e-5}})  # fmt: skip
    for rule in ALL:
        (problem,) = refused(rule, blank)
        assert (problem.slug, problem.path_text) == ("unfilled-blank", "noise.multiplier")


def test_a_guarantee_that_may_be_false_enters_no_filter(snapshot: Snapshot) -> None:
    uncertain = mechanism(kind="stated", epsilon=0.5, failure_probability=1e-6)
    for rule in ALL:
        snapshot(refused(rule, uncertain))


def test_entries_may_be_certificates(snapshot: Snapshot) -> None:
    document = doc("name=solved adjacency=add-remove epsilon=0.5 delta=1e-7 iterations=3 sampler=none multiplier=solve")
    certificate = pyaccount.certify(document)
    sigma = certificate.noise_multiplier
    assert sigma is not None
    assert GAUSSIAN.cost(certificate) == (pytest.approx(3.0 / sigma**2, rel=1e-14),)
    assert BASIC.cost(certificate) == (certificate.epsilon, 1e-7)
    false = pyaccount.certify({**document, "noise": {"multiplier": 1.0}})
    assert not false.holds
    for rule in ALL:
        snapshot.raised(rule.cost, false)


def test_the_basic_filter_takes_what_a_document_states() -> None:
    document = gaussian(4.0).to_mapping()
    document["privacy"]["delta"] = 1e-7
    epsilon, delta = BASIC.cost(pyaccount.load(document))
    assert delta == 1e-7
    assert epsilon == pytest.approx(float(oracle.gaussian_epsilon(0.25, 1e-7)), rel=1e-4)
    document["privacy"] |= {"epsilon": 1.0, "delta": "solve"}
    epsilon, delta = BASIC.cost(pyaccount.load(document))
    assert epsilon == 1.0
    assert delta == pytest.approx(float(oracle.gaussian_delta(mp.mpf(0.25), mp.mpf(1.0))), rel=1e-3)


def test_disjoint_parts_cost_what_the_worst_part_costs() -> None:
    parts = [
        {"name": "a", "training": {"iterations": 1}, "sampler": {"kind": "none"}, "noise": {"multiplier": 2}},
        {"name": "b", "training": {"iterations": 1}, "sampler": {"kind": "none"}, "noise": {"multiplier": 4}},
    ]
    document = entry(phases=[{"parallel": parts}])
    assert GAUSSIAN.cost(document) == (0.25,)
    assert RENYI.cost(document) == (0.25, 1.0)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"mu": 1.0}, GAUSSIAN),
        ({"rho": "0.5"}, CONCENTRATED),
        ({"renyi": [{"order": 8, "epsilon": 3}, {"order": 2, "epsilon": 1}]}, RENYI),
        ({"epsilon": 1, "delta": "1e-6"}, BASIC),
        ({"epsilon": 1}, BasicFilter(1.0, 0.0)),
    ],
)
def test_filters_are_read_and_written(stated: dict[str, Any], expected: Filter) -> None:
    rule = filter_of(stated)
    assert rule == expected
    assert filter_of(rule.mapping()) == rule
    assert len(rule.terms) == len(rule.nothing)
    document = doc(rule.phase(), name="whole")  # fmt: skip
    assert pyaccount.certify(document).holds


@pytest.mark.parametrize(
    "stated",
    [
        3,
        {},
        {"delta": 1e-6},
        {"mu": 1, "rho": 2},
        {"rho": 1, "delta": 1e-6},
        {"mu": 1, "nu": 2},
        {"mu": "one"},
        {"mu": True},
        {"mu": -1},
        {"rho": math.nan},
        {"epsilon": 1, "delta": 2},
        {"renyi": []},
        {"renyi": [{"order": 2}]},
        {"renyi": [{"order": 1, "epsilon": 1}]},
        {"renyi": [{"order": 2, "epsilon": 1}] * 2},
    ],
)
def test_a_wrong_budget_is_located(stated: Any, snapshot: Snapshot) -> None:
    snapshot.raised(filter_of, stated, ("budget",))


def test_a_renyi_filter_has_a_budget_for_each_order(snapshot: Snapshot) -> None:
    snapshot.raised(RenyiFilter, (2.0, 3.0), (1.0,))


def test_an_infinite_expense_admits_nothing_more() -> None:
    for rule in ALL:
        spent = rule.after(rule.nothing, (math.inf,) * len(rule.nothing))
        assert not rule.admits(spent, rule.nothing)
        assert rule.remaining(spent) == (0.0,) * len(rule.nothing)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-15, 1e-9, 1e-4, 1.9e-3, 2.1e-3, 0.5])
def test_mu_of_a_small_epsilon_is_found_and_near(epsilon: float) -> None:
    found = mu_of_pure(epsilon)
    exact = 2 * mp.sqrt(2) * mp.erfinv(mp.tanh(mp.mpf(epsilon) / 2))
    assert exact <= found <= exact * (1 + mp.mpf(2) ** -36)


# ---- Whatever composes has a price: ε from its divergences is never below what data sets attain, by composition


DELTA, ORDERS = 1e-5, (1.5, 2.0, 3.0, 8.0, 16.0)
POISSON = {"kind": "poisson", "sampling_probability": 0.1}


def training(kind: str, noise: float, rates: dict[str, Any], **sampler: Any) -> dict[str, Any]:
    return sectioned(iterations=12, training=rates, sampler={"kind": kind, **sampler}, multiplier=noise)


FIXED = {"dataset_size": 100, "expected_batch_size": 5}
BODIES: dict[str, dict[str, Any]] = {
    "poisson": training("poisson", 2.0, {"sampling_probability": 0.05}),
    "several draws": training("poisson", 4.0, {"sampling_probability": 0.05}, draws_per_iteration=3),
    "fixed size": training("fixed-size", 4.0, FIXED),
    "with replacement": training("with-replacement", 10.0, FIXED),
    "two stages": training("must-ow", 10.0, FIXED, subset_size=20),
    "truncated": training("poisson", 4.0, {"dataset_size": 1000, "sampling_probability": 0.05}, truncate_to=60),
    "cyclic": training("cyclic-poisson", 2.0, {"sampling_probability": 0.05}, partitions=4),
    "allocation": training("random-allocation", 2.0, {}, iterations_per_allocation=12, participations=1),
    "all records": training("none", 10.0, {}),
    "sampled Laplace noise": {"sampler": POISSON, "mechanism": {"kind": "laplace", "sensitivity": 1, "scale": 1}},
    "permute and flip": {"mechanism": {"kind": "permute-and-flip", "epsilon": 1.0}},
    "discrete Gaussian noise": {"mechanism": {"kind": "discrete-gaussian", "sensitivity": 1, "sigma": 2}},
    "Skellam noise": {"mechanism": {"kind": "skellam", "sensitivity": 1, "variance": 4}},
    "noise of parties": {"mechanism": {"kind": "distributed-discrete-gaussian", "sigma": 1, "parties": 4}},
    "randomized response": {"mechanism": {"kind": "randomized-response", "values": 5, "truth_probability": 0.7}},
}


def converted(divergences: tuple[float, ...], delta: float) -> float:
    """ε at δ by the best order (Canonne, Kamath & Steinke 2020)."""
    return min(
        rho + max(0.0, (a - 1.0) * math.log(a - 1.0) - a * math.log(a) - math.log(delta)) / (a - 1.0)
        for rho, a in zip(divergences, ORDERS, strict=True)
    )


#: What is refused for truncated batches takes six seconds to be.
SOON = [f"{way}-{name}" for way in ("zero-out", "replace-one") for name in BODIES]
SOON.remove("replace-one-truncated")


@pytest.mark.nightly(but=SOON)
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_a_price_is_above_what_is_attained(name: str, adjacency: str, snapshot: Snapshot) -> None:
    refused = {("truncated", "replace-one"), ("allocation", "replace-one")}
    mapping = doc(BODIES[name], name=name, adjacency=adjacency, delta=DELTA)  # fmt: skip
    document = pyaccount.load(mapping)
    if (name, adjacency) in refused:
        snapshot.raised(divergences_of, document, ORDERS)
        return
    attained = Engine().ask(compile_document(document).at().bounds(), Question(None, DELTA, 1e-3)).lower
    divergences = divergences_of(document, ORDERS)
    assert attained <= converted(divergences, DELTA) < math.inf
    # Divergences do not decrease with the order.
    assert list(divergences) == sorted(divergences)
    *left, large = cut_costs(document, ORDERS, 1.0)
    assert all(one <= whole * (1.0 + 1e-2) for one, whole in zip(left, divergences, strict=True))
    if large < DELTA:
        assert attained <= converted(tuple(left), DELTA - large)
