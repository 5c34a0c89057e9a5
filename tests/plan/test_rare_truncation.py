"""Batches that are seldom truncated: the bounds against enumerated runs, how seldom that is, and when the theorem is chosen."""

import json
import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from exact_mixtures import Mixture, hockey_stick, nothing
from phases import phase
from places import ROOT
from plain_documents import doc
from sampled_tools import Array, Law, counts_law, lower_toeplitz, pair_given, renewal_law
from snapshots import Snapshot

import pyaccount
from pyaccount import _core
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.betting_choice import Claim, choose_betting
from pyaccount.execute.sampling.profile import draw
from pyaccount.execute.sampling.proposals import plain_proposal
from pyaccount.execute.sampling.session import open_session
from pyaccount.plan.rare_truncation import RareTruncation
from pyaccount.plan.samplers import rarely, sampler_plan

#: Rounds, separation, probability, start, other records, limit.
Run = tuple[int, int, float, str, int, int]
RUNS: tuple[Run, ...] = (
    (2, 1, 0.3, "cold", 2, 1),
    (2, 2, 0.4, "warm", 3, 2),
    (3, 2, 0.25, "cold", 3, 2),
    (3, 2, 0.5, "warm", 2, 1),
    (3, 3, 0.2, "warm", 2, 2),
    (3, 1, 0.2, "cold", 3, 2),
)


def law_of(run: Run) -> Law:
    """The law of a record's participations."""
    n, b, p, start, _, _ = run
    return renewal_law(n, b, p, warm=start == "warm")


def body_of(run: Run) -> Any:
    """The only phase of a document with such a run."""
    n, b, p, start, others, limit = run
    raw = document(
        training={"dataset_size": others + 1, "sampling_probability": p, "iterations": n},
        sampler={"kind": "b-min-sep", "min_separation": b, "start": start, "truncate_to": limit},
        matrix={"kind": "identity"},
    )
    return phase(pyaccount.load(raw))


def found_for(run: Run) -> RareTruncation:
    """What the plan says of it."""
    found = sampler_plan(body_of(run)).rare_truncation(run[-1])
    assert isinstance(found, RareTruncation)
    return found


def document(**changes: Any) -> dict[str, Any]:
    """A small document whose batches are seldom truncated; nested keys are replaced whole."""
    return (
        doc(
            "name=seldom epsilon=1.0 delta=0.02 dataset_size=2000 expected_batch_size=40 iterations=24",
            "sampler=b-min-sep min_separation=4 truncate_to=80 matrix=banded-square-root bands=4 multiplier=0.7",
            "seed=5 profile=[1.0]",
        )
        | changes
    )


def without(raw: dict[str, Any]) -> dict[str, Any]:
    """The same without truncation."""
    return raw | {"sampler": {key: value for key, value in raw["sampler"].items() if key != "truncate_to"}}


# ---- the theorem


@pytest.mark.parametrize("run", RUNS)
def test_how_often_a_record_is_in_a_truncated_batch(run: Run) -> None:
    """Against the joint law of the counts and of the record: a union bound, equal where a run has one round that counts."""
    *_, others, limit = run
    law = law_of(run)
    hit = sum(
        chance * weight
        for r, chance in counts_law(tuple(law.items()), others).items()
        for x, weight in law.items()
        if any(taken and count >= limit for taken, count in zip(x, r, strict=True))
    )
    summed = sum(
        chance * weight * sum(taken and count >= limit for taken, count in zip(x, r, strict=True))
        for r, chance in counts_law(tuple(law.items()), others).items()
        for x, weight in law.items()
    )
    found = found_for(run)
    assert hit <= summed * (1.0 + 1e-12)
    # Rates are rounded up by 1e-5 at most, and a tail grows by as much for every record.
    assert summed <= found.hit <= summed * (1.0 + 1e-4)


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize(
    ("n", "b", "p"), [(5, 1, 0.3), (6, 2, 0.5), (7, 3, 0.2), (7, 4, 0.8), (4, 6, 0.4), (6, 3, 0.02)]
)
def test_a_round_less_loses_little(n: int, b: int, p: float, *, warm: bool) -> None:
    """Steps 1 and 2 for every S: patterns that avoid S keep all but z of what has the same rest."""
    law = renewal_law(n, b, p, warm=warm)
    share = rarely.of_renewal(0.0, 1.0, p, b).missed
    ratio = p * (1.0 - p) ** -b
    assert share == pytest.approx(ratio / (1.0 + ratio), rel=1e-9)
    largest = 0.0
    for size in range(1, n + 1):
        for full in combinations(range(n), size):
            rests: Law = {}
            for x, weight in law.items():
                rest = tuple(0 if i in full else taken for i, taken in enumerate(x))
                rests[rest] = rests.get(rest, 0.0) + weight
            for rest, weight in rests.items():
                kept = law.get(rest, 0.0)
                assert kept >= (1.0 - size * share) * weight * (1.0 - 1e-12)
                largest = max(largest, (1.0 - kept / weight) / (size * share))
    # With b rounds to sit out nothing smaller would do, where the run is that long.
    assert largest <= 1.0 + 1e-12
    if n > 2 * b:
        assert largest == pytest.approx(1.0, rel=1e-9)


def sticks(run: Run, matrix: Array, direction: str, epsilon: float) -> tuple[float, list[tuple[float, float, float]]]:
    """δ without truncation; and for each r its chance, e(r), and δ of the pair that the package samples otherwise."""
    *_, others, limit = run
    law = law_of(run)

    def stick(present: Mixture, absent: Mixture) -> float:
        pair = (absent, present) if direction == "add" else (present, absent)
        return hockey_stick(*pair, epsilon)

    cases: dict[tuple[int, ...], float] = {}
    for r, chance in counts_law(tuple(law.items()), others).items():
        key = tuple(count if count >= limit else 0 for count in r)
        cases[key] = cases.get(key, 0.0) + chance
    listed = []
    for r, chance in cases.items():
        present, absent = (Mixture.of(side, matrix) for side in pair_given(law, r, limit))
        hit = sum(weight for x, weight in law.items() if any(t and c >= limit for t, c in zip(x, r, strict=True)))
        listed.append((chance, hit, stick(present, absent)))
    return stick(Mixture.of(law, matrix), nothing(len(matrix))), listed


@pytest.mark.nightly(
    but=[f"run{k}-{at}" for k in (0, 1, 2, 4) for at in ("0.5-remove", "0.5-add", "1.5-remove", "1.5-add")]
    + ["run3-0.5-remove", "run3-1.5-add", "run5-1.5-add"]
)
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("sigma", [0.5, 1.5])
@pytest.mark.parametrize("run", RUNS)
def test_delta_is_below_the_bound(run: Run, sigma: float, direction: Any) -> None:
    """The truncated law's own δ by quadrature, at several ε; the bound uses no more than δ without truncation."""
    matrix = lower_toeplitz(np.array([1.0, 0.5])[: min(2, run[1])], run[0]) / sigma
    found = found_for(run)
    removed = Mixture.of(law_of(run), matrix)
    for epsilon in (0.0, 0.5, 2.0):
        bare, listed = sticks(run, matrix, direction, epsilon)
        truncated = sum(chance * delta for chance, _, delta in listed)

        def bound(place: float) -> float:
            return hockey_stick(removed, nothing(run[0]), place)

        beyond, below = found.beyond(direction, epsilon, bound), found.below(direction, epsilon)
        assert truncated <= bare + beyond + 1e-6
        assert beyond <= found.most * (1.0 + 1e-9)
        assert below <= found.hit * math.exp(epsilon) * (1.0 + 1e-9)
        if direction == "remove":
            # In units of E e: nothing is added for free, nor more than twice.
            assert found.hit <= beyond <= 2.0 * found.hit * (1.0 + 1e-9)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("run", RUNS[1:4])
def test_whatever_truncated_batches_do(run: Run, direction: str) -> None:
    """For every S by itself: (1 − e)H(P⁰‖R) + e, which supposes nothing of batches that are truncated."""
    n, b, p, *_ = run
    law, sigma = law_of(run), 0.7
    matrix = lower_toeplitz(np.array([1.0, 0.5])[: min(2, b)], n) / sigma
    share = rarely.of_renewal(0.0, 1.0, p, b).missed
    usual, zero = Mixture.of(law, matrix), nothing(n)
    for size in range(1, n + 1):
        for full in combinations(range(n), size):
            avoiding = {x: weight for x, weight in law.items() if not any(x[i] for i in full)}
            rest = sum(avoiding.values())
            without_hit = Mixture.of({x: weight / rest for x, weight in avoiding.items()}, matrix)
            for epsilon in (0.1, 1.0):
                if direction == "remove":
                    most = rest * hockey_stick(without_hit, zero, epsilon) + 1.0 - rest
                    found = RareTruncation(1.0 - rest, 1.0).beyond(
                        "remove", epsilon, lambda place: hockey_stick(usual, zero, place)
                    )
                    assert most <= hockey_stick(usual, zero, epsilon) + found + 1e-6
                else:
                    most = rest * hockey_stick(zero, without_hit, epsilon) + 1.0 - rest
                    assert most <= hockey_stick(zero, usual, epsilon) + size * share + 1e-6


def test_a_bound_on_delta_helps_where_losses_are_rare() -> None:
    found = RareTruncation(hit=1e-9, missed=2e-9)
    assert found.beyond("remove", 8.0, lambda _: 1.0) == pytest.approx(2e-9, rel=1e-9)
    # The least of max(e^−place, t)/(1 − t) is where the two are equal: t = e^(−ε/2).
    fast = found.beyond("remove", 8.0, lambda place: math.exp(-place))
    assert 1e-9 * (1.0 + math.exp(-4.0)) <= fast <= 1e-9 * 1.04
    assert found.beyond("remove", 0.0, lambda _: 0.0) == pytest.approx(2e-9, rel=1e-9)
    assert found.beyond("add", 8.0, lambda _: 0.0) == 2e-9
    assert found.below("add", 2.0) == pytest.approx(1e-9 * math.exp(2.0), rel=1e-9)
    both = found.times(3).plus(found)
    assert (both.hit, both.missed) == pytest.approx((4e-9, 8e-9), rel=1e-9)
    assert both.hit >= 4e-9


# ---- how seldom


@pytest.mark.parametrize(
    ("records", "rate", "count"),
    [
        (14_745_599, 1793 / 14_745_600, 2048),
        (14_745_599, 1793 / 14_745_600, 3500),
        (49_999, 0.01, 576),
        (1999, 0.02, 80),
        (10_000_000, 1e-5, 700),
        (100, 0.5, 40),
        (60, 0.9, 60),
        (1 << 40, 1e-9, 2000),
    ],
)
def test_tails_are_rounded_up_and_no_more(records: int, rate: float, count: int) -> None:
    with mp.workdps(60):
        exact = mp.betainc(count, records - count + 1, 0, mp.mpf(rate), regularized=True)
        found = mp.mpf(_core.binomial_upper_tail(records, rate, count))
        assert exact <= found <= exact * (1 + mp.mpf("1e-9")) + mp.mpf("2e-280")


def test_tails_at_the_ends(snapshot: Snapshot) -> None:
    assert _core.binomial_upper_tail(9, 0.3, 0) == 1.0
    assert _core.binomial_upper_tail(9, 0.3, 10) == 0.0
    assert _core.binomial_upper_tail(9, 1.0, 9) == 1.0
    assert _core.binomial_upper_tail(9, 0.0, 1) == 0.0
    assert 0.0 < _core.binomial_upper_tail(2000, 1e-4, 1900) < 1e-279
    for trials, rate in ((9, 1.5), (9, -0.1), (9, math.nan), (1 << 60, 0.1)):
        snapshot.raised(_core.binomial_upper_tail, trials, rate, 3)
    # Beyond what is tabulated Chernoff's bound serves.
    assert 0.0 < rarely.upper_tail(1 << 45, 1e-3, round(1.0001e-3 * 2**45)) < 1e-40


@pytest.mark.parametrize(("n", "b", "p"), [(6, 1, 0.3), (9, 2, 0.6), (10, 4, 0.25), (10, 3, 1.0), (3, 7, 0.5)])
def test_rates_of_a_cold_start(n: int, b: int, p: float) -> None:
    law = renewal_law(n, b, p, warm=False)
    expected = [sum(weight for x, weight in law.items() if x[i]) for i in range(n)]
    found = list(rarely.cold_rates(p, b, n))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    exact = renewal_rates(n, b, p)
    assert all(mp.mpf(one) >= true for one, true in zip(found, exact, strict=True))
    counted = rarely.counted_rates(found)
    assert sum(count for _, count in counted) == n
    assert all(rate * (1.0 - 2e-5) <= max(one for one in found if one <= rate) for rate, _ in counted)


def test_many_rates_are_taken_for_few_larger_ones() -> None:
    rates = list(rarely.cold_rates(0.3, 64, 20_000))
    found = rarely.counted_rates(rates)
    assert len(found) <= rarely.MOST_RATES < len(set(rates))
    expanded = [rate for rate, count in found for _ in range(count)]
    assert all(above >= one for above, one in zip(expanded, sorted(rates), strict=True))


def renewal_rates(n: int, b: int, p: float) -> list[Any]:
    """Pr[x_i = 1] from those before it: whoever was not drawn in the last b − 1 rounds is available."""
    with mp.workdps(40):
        rates: list[Any] = []
        for i in range(n):
            rates.append(mp.mpf(p) * (1 - mp.fsum(rates[max(0, i - b + 1) : i])))
        return rates


# ---- the plan


def subject(raw: Any) -> str:
    """What the plan says of the only phase."""
    (reduction,) = pyaccount.compile(pyaccount.load(raw)).reductions
    return reduction.subject


def test_the_rule_for_the_route() -> None:
    raw = document()
    most = sampler_plan(phase(pyaccount.load(raw))).rare_truncation(80).most
    assert 1e-9 < most < 1e-6

    def seldom(delta: float | str, **changes: Any) -> bool:
        return "seldom" in subject(document(privacy=raw["privacy"] | {"delta": delta}, **changes))

    # Where plain samples are cheap a sixteenth of δ may be given up, and half of it where they are not.
    assert seldom(0.02)
    assert seldom(2.1 * most)
    assert not seldom(1.9 * most)
    cheap = document(sampler=raw["sampler"] | {"truncate_to": 60})
    most = sampler_plan(phase(pyaccount.load(cheap))).rare_truncation(60).most
    assert seldom(17.0 * most, sampler=cheap["sampler"])
    assert not seldom(15.0 * most, sampler=cheap["sampler"])
    # δ is the blank: by what would be done where this is little.
    assert seldom("solve")
    assert not seldom("solve", sampler=cheap["sampler"])
    # Two runs have twice as much.
    assert not seldom(17.0 * most, sampler=cheap["sampler"], count=2)


@pytest.mark.parametrize("start", ["warm", "cold"])
def test_the_plan_says_what_is_added(start: str) -> None:
    raw = document()
    raw["sampler"] |= {"start": start}
    plan = pyaccount.compile(pyaccount.load(raw))
    (reduction,) = plan.reductions
    mechanism = plan.at().mechanism()
    assert mechanism.rare_truncation is not None
    assert not mechanism.plain_only
    assert not reduction.tight
    assert "what rare truncation adds to δ" in reduction.theorem
    assert "before truncation" in str(reduction.remark)
    assert any("80 are kept" in text for text in reduction.assumptions)
    assert any("other records drawn were known" in text for text in reduction.assumptions)


def test_samplers_without_a_proof_keep_the_truncated_law() -> None:
    bins = document(sampler={"kind": "balls-in-bins", "bins": 50, "truncate_to": 100}, matrix={"kind": "identity"})
    bins["training"] = {"dataset_size": 2000, "iterations": 50}
    assert "seldom" not in subject(bins)
    poisson = document(sampler={"kind": "poisson", "truncate_to": 100}, matrix={"kind": "identity"})
    assert "seldom" not in subject(poisson)
    assert "seldom" in subject(poisson | {"accounting": {"method": "monte-carlo"}})


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_other_adjacencies_are_refused_however_seldom(adjacency: str, snapshot: Snapshot) -> None:
    snapshot.raised(
        pyaccount.compile, pyaccount.load(document(privacy={"adjacency": adjacency, "epsilon": 1.0, "delta": 0.02}))
    )


def test_the_production_example() -> None:
    text = "production-truncated"
    plan = pyaccount.compile(ROOT / "examples" / f"{text}.yaml")
    assert "seldom truncated to 2048" in plan.reductions[0].subject
    mechanism = plan.at().mechanism()
    found = mechanism.rare_truncation
    assert found is not None
    with mp.workdps(40):
        rate = mp.mpf(1793) / 14_745_600
        tail = mp.betainc(2048, 14_745_599 - 2047, 0, rate, regularized=True)
        # Hardly any rate: the probability that goes with it was rounded up.
        assert found.hit == pytest.approx(float(7200 * rate * tail), rel=1e-9)
    assert found.hit < mechanism.beyond("remove", 10.0) < 1.25 * found.hit
    # More than a fifth of δ is never given up.
    assert mechanism.beyond("remove", 10.0) < 0.2 * 1.301e-8
    assert mechanism.beyond("add", 10.0) < 0.2 * 1.301e-8
    assert "seldom" not in subject(ROOT / "examples" / "truncated-batches.yaml")


# ---- certificates


@pytest.mark.parametrize("blank", ["delta", "epsilon", "multiplier", None])
def test_certificates_are_those_without_truncation_but_for_what_is_added(blank: str | None) -> None:
    """With the same seed the same samples are drawn."""
    privacy = {"adjacency": "zero-out", "epsilon": 1.0, "delta": 0.008}
    # Where δ is solved for truncation must be so rare that plain samples would take long at a δ of that size.
    # Where σ is, it must add more than the pilot's error, which is a thousandth of σ.
    limit = {"delta": 90, "multiplier": 63}.get(str(blank), 64)
    raw = document(sampler={"kind": "b-min-sep", "min_separation": 4, "truncate_to": limit}, privacy=privacy)
    raw["accounting"] = {"seed": 5, "profile": [], "tolerance": 0.25 if blank == "delta" else 0.1}
    if blank == "multiplier":
        raw["noise"] = {"multiplier": "solve"}
    elif blank is not None:
        raw["privacy"] = privacy | {blank: "solve"}
    found, bare = pyaccount.certify(raw), pyaccount.certify(without(raw))
    assert "seldom" in found.data.reductions[0].subject
    assert found.data.guarantee.kind == bare.data.guarantee.kind == ("confidence" if blank in NAMES else "verified")
    hit = pyaccount.compile(pyaccount.load(raw)).at(0.7 if blank == "multiplier" else None).mechanism().rare_truncation
    assert hit is not None
    lines = [line for line in found.data.evidence.error_budget if line.source.startswith("batches that are truncated")]
    assert {line.direction for line in lines} == {"remove", "add"}
    assert all(0.0 < line.contribution <= hit.most * (1.0 + 1e-9) for line in lines)
    assert not any("truncated" in line.source for line in bare.data.evidence.error_budget)
    mine, other = (getattr(one, NAMES.get(str(blank), "noise_multiplier")) for one in (found, bare))
    # The root is of δ with what is added: more noise, a larger ε or δ, by as much as a few percent of δ make.
    assert other <= mine <= 1.05 * other
    assert (mine > other) == (blank is not None)
    (test,) = [one for one in found.data.evidence.sampling.tests if one.direction == "remove"][-1:]
    assert test.accepted


#: What a blank is in a certificate, where its statement is one of confidence.
NAMES = {"delta": "delta", "epsilon": "epsilon"}


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_points_of_a_profile_count_it_on_both_sides(direction: Any) -> None:
    """The same histogram, read with and without."""
    plan = pyaccount.compile(pyaccount.load(document()))
    sampler = open_session(plan, RunOptions(threads=1, seed=3)).sampler
    mechanism = plan.at().mechanism()
    histogram = draw(sampler, mechanism, direction, plain_proposal(mechanism, direction), 0.05, 8)
    bare = replace(histogram, mechanism=replace(mechanism, rare_truncation=None))
    for epsilon in (0.0, 0.05):
        point, other = (one.point(sampler, epsilon, 1e-3) for one in (histogram, bare))
        assert 0.0 < other.delta_lower < other.delta < 1.0
        assert point.delta - other.delta == pytest.approx(mechanism.beyond(direction, epsilon), rel=1e-6)
        assert other.delta_lower - point.delta_lower == pytest.approx(mechanism.below(direction, epsilon), rel=1e-6)


def test_a_claim_is_tested_less_what_is_added() -> None:
    """A claim that is just above a bound on every sample needs none without truncation, and samples with it."""
    plan = pyaccount.compile(pyaccount.load(document()))
    session = open_session(plan, RunOptions(threads=1, seed=3))
    mechanism = plan.at().mechanism()
    bare = replace(mechanism, rare_truncation=RareTruncation(0.0, 0.0))
    heavy = replace(mechanism, rare_truncation=RareTruncation(0.0, 0.01))
    estimate = session.estimate(mechanism, 1.0)["add"]
    for judged, drawn in ((bare, False), (heavy, True)):
        claim = Claim(judged, 0.7, 1.0, 0.012, 10.0)
        betting = choose_betting(session.sampler, claim, "add", estimate)
        assert betting is not None
        assert (betting.expected_samples > 0.0) == drawn
    assert choose_betting(session.sampler, Claim(heavy, 0.7, 1.0, 0.0099, 10.0), "add", estimate) is None


def test_what_is_added_is_never_certified_away() -> None:
    """Far out hardly any loss is left: what truncation adds is, and δ that is solved for is above it."""
    raw = document(privacy={"adjacency": "zero-out", "epsilon": 9.0, "delta": "solve"}, noise={"multiplier": 2.0})
    added = pyaccount.compile(pyaccount.load(raw)).at().mechanism().beyond("remove", 9.0)
    certificate = pyaccount.certify(raw)
    assert certificate.data.guarantee.kind == "confidence"
    assert 0.0 < added < certificate.delta <= 3.0 * added


def test_phases_and_runs_add_up() -> None:
    phase = {key: value for key, value in document().items() if key in ("training", "sampler", "matrix", "noise")}
    head = {key: document()[key] for key in ("pyaccount", "name", "privacy", "accounting")}
    one = pyaccount.compile(pyaccount.load(document())).at().mechanism()
    two = pyaccount.compile(pyaccount.load(head | {"phases": [phase, without(phase)]})).at().mechanism()
    twice = pyaccount.compile(pyaccount.load(document(count=2))).at().mechanism()
    for mechanism, times in ((two, 1.0), (twice, 2.0)):
        assert one.rare_truncation is not None
        assert mechanism.rare_truncation is not None
        assert mechanism.rare_truncation.hit == pytest.approx(times * one.rare_truncation.hit, rel=1e-9)
        assert mechanism.rare_truncation.missed == pytest.approx(times * one.rare_truncation.missed, rel=1e-9)


def test_the_certificate_verifies_with_other_samples() -> None:
    """The route is the document's, so that a recomputation takes it too."""
    raw = document(privacy={"adjacency": "zero-out", "epsilon": 1.0, "delta": 0.02})
    raw["sampler"]["truncate_to"] = 64
    certificate = pyaccount.certify(raw)
    assert json.loads(certificate.to_json())["guarantee"]["delta"] == 0.02
    assert pyaccount.verify(certificate, seed=99).agrees
