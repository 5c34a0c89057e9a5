"""A direction that is tested once on a grid: which results its test supports, and how often it errs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from certificate_oracle import inconsistencies
from gate_tools import changed, golden, refused, save
from plain_documents import doc
from scipy.stats import binom, norm

import pyaccount
from pyaccount import cli
from pyaccount.directions import Direction
from pyaccount.document.loading import load
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.betting_choice import Claim
from pyaccount.execute.sampling.calibrate import noise_search
from pyaccount.execute.sampling.fixed_sequence import (
    CHEAP,
    Grid,
    GridSearch,
    Once,
    SequenceResult,
    fixed_sequence_test,
    grids,
    growth,
    once_on,
)
from pyaccount.execute.sampling.session import Session, open_session
from pyaccount.execute.sampling.tests_of_claims import Acceptance, run_betting_tests
from pyaccount.plan.compiling import compile_document

if TYPE_CHECKING:
    from pyaccount.execute.sampling.tests_of_claims import Test

#: One direction is far from the claim, so it is tested once.
SOLVED: dict[str, Any] = doc(
    "name='tested once' epsilon=0.5 delta=3e-2 participation_rate=0.05 iterations=32 sampler=b-min-sep",
    "min_separation=4 start=warm matrix=banded-square-root bands=4 multiplier=solve profile=[1,2,3]",
    "tolerance=0.04 seed=5",
)
REMOVE, ADD = ("remove",), ("add",)
GRID = Grid((0.2, 0.1), (0.05,))


def in_sequence(
    outcomes: dict[tuple[str, float], bool], once: Once | None, starts: int = 1
) -> tuple[SequenceResult, list[tuple[float, tuple[Direction, ...] | None]]]:
    """A search whose tests have given outcomes, and a record of what it tested."""
    asked: list[tuple[float, tuple[Direction, ...] | None]] = []

    def claim(value: float) -> tuple[Any, float, Acceptance]:
        raise AssertionError("asked by no test here")

    def test(value: float, budget: float | None, directions: tuple[Direction, ...] | None = None) -> tuple[Test, ...]:
        asked.append((round(value - 1.0, 6), directions))
        found = []
        for side in directions or ("remove", "add"):
            found.append(SimpleNamespace(samples=1, accepted=outcomes.get((side, asked[-1][0]), True)))
            if not found[-1].accepted:
                break
        return cast("tuple[Test, ...]", tuple(found))

    grids = [GRID, Grid((1.0,))][:starts]
    return fixed_sequence_test(GridSearch(1.0, math.inf, grids, claim, 1.0), test, lambda _: once), asked


def test_one_test_serves_all_values_from_there_up() -> None:
    found, asked = in_sequence({}, Once(0.05, ADD, REMOVE))
    assert found.value == pytest.approx(1.05)
    assert asked == [(0.2, REMOVE), (0.05, ADD), (0.1, REMOVE), (0.05, REMOVE)]
    # If the other direction is rejected, the result is the value before it.
    found, asked = in_sequence({("remove", 0.05): False}, Once(0.05, ADD, REMOVE))
    assert found.value == pytest.approx(1.1)


def test_values_below_it_are_tested_in_every_direction() -> None:
    found, asked = in_sequence({("add", 0.05): False}, Once(0.1, ADD, REMOVE))
    assert found.value == pytest.approx(1.1)
    assert asked == [(0.2, REMOVE), (0.1, ADD), (0.1, REMOVE), (0.05, None)]


def test_a_rejection_of_the_one_test_ends_the_grid_and_the_next_one_tests_everything() -> None:
    found, asked = in_sequence({("add", 0.05): False}, Once(0.05, ADD, REMOVE))
    assert found.value is None
    assert asked == [(0.2, REMOVE), (0.05, ADD)]
    found, asked = in_sequence({("add", 0.05): False}, Once(0.05, ADD, REMOVE), starts=2)
    assert found.value == pytest.approx(2.0)
    assert asked[-1] == (1.0, None)


def test_nothing_is_tested_once_after_a_first_rejection() -> None:
    found, asked = in_sequence({("remove", 0.2): False}, Once(0.05, ADD, REMOVE))
    assert found.value is None
    assert asked == [(0.2, REMOVE)]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_growth_is_that_of_the_best_bet_on_rare_samples(share: float) -> None:
    """The growth is that of a search among all fractions, for samples that are 0 or W."""
    bound, claim = 1e6, 1.0
    best = max(
        (1.0 - share * claim / bound) * math.log1p(fraction * claim)
        + share * claim / bound * math.log1p(fraction * (claim - bound))
        for fraction in (k / 1000.0 / (bound - claim) for k in range(1, 1000))
    )
    assert growth(share) == pytest.approx(best * bound / claim, rel=2e-3)
    assert growth(0.0) == 1.0


def removed(sigma: float, epsilon: float, rate: float) -> float:
    """Return δ(ε) of one round that a record joins with this rate, if it is removed: from both laws' tail masses."""
    threshold = 0.5 + sigma**2 * math.log((math.exp(epsilon) - 1.0 + rate) / rate)
    beyond, without = norm.sf(threshold / sigma), norm.sf((threshold - 1.0) / sigma)
    return (1.0 - rate) * beyond + rate * without - math.exp(epsilon) * beyond


def single_round(seed: int) -> Session:
    """Return a single round, to be sampled."""
    document = doc(
        "name='one round' adjacency=add-remove epsilon=0.5 delta=solve sampling_probability=0.2 iterations=1",
        "sampler=poisson multiplier=1.0 method=monte-carlo",
    )
    return open_session(compile_document(load(document)), RunOptions(threads=1, seed=seed))


def test_a_direction_that_is_false_is_accepted_as_seldom_as_it_may_be() -> None:
    """δ of a removed record has a closed form. The claim is slightly below it, and the pilot is made to think it far.

    The false direction is the one that is tested once. Added records satisfy the claim and never end the sequence.
    """
    epsilon, q, runs = 0.5, 0.1, 150
    claim = removed(1.0, epsilon, 0.2) * 0.999
    accepted = 0
    for seed in range(runs):
        session = single_round(seed)
        mechanism = session.mechanism(session.plan.at())
        honest = session.estimate(mechanism, epsilon, shards=1)
        assert honest["remove"].value == pytest.approx(claim, rel=0.2)

        def test(
            value: float,
            budget: float | None,
            directions: tuple[Direction, ...] | None = None,
            session: Session = session,
            honest: Any = honest,
        ) -> tuple[Test, ...]:
            if directions == ADD:
                # The values do not matter here: added records are taken to satisfy the claim.
                return cast("tuple[Test, ...]", (SimpleNamespace(samples=0, accepted=True),))
            poor = {"remove": replace(honest["remove"], value=0.7 * claim)}
            mechanism = session.mechanism(session.plan.at())
            return run_betting_tests(session.sampler, Claim(mechanism, 1.0, epsilon, claim, math.log(1.0 / q)), poor)

        search = GridSearch(1.0, math.inf, [Grid((0.2, 0.1))], lambda _: pytest.fail("not asked"), 1.0)
        found = fixed_sequence_test(search, test, lambda _: Once(0.1, REMOVE, ADD))
        accepted += found.value is not None
    assert accepted <= binom.ppf(1.0 - 1e-4, runs, q)


@pytest.fixture(scope="module")
def certificate() -> dict[str, Any]:
    """Return a certificate with a test of added records at a smaller σ than its own."""
    found: dict[str, Any] = json.loads(pyaccount.certify(SOLVED).to_json())
    return found


def added(certificate: dict[str, Any]) -> int:
    """Return the index of the only test of added records."""
    (place,) = [k for k, test in enumerate(certificate["evidence"]["sampling"]["tests"]) if test["direction"] == "add"]
    return place


def contradictions(certificate: dict[str, Any]) -> list[str]:
    data = pyaccount.Certificate.from_json(json.dumps(certificate)).data
    return [one.path for one in inconsistencies(data)]


def test_a_harder_test_carries_the_guarantee(
    certificate: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = certificate["evidence"]["sampling"]["tests"][added(certificate)]
    assert test["noise_multiplier"] < certificate["solved"]["value"]
    assert contradictions(certificate) == []
    path = save(tmp_path, certificate)
    assert pyaccount.check(path, max_epsilon=0.5, max_delta=3e-2)
    same = pyaccount.verify(path, threads=1)
    assert same.compared == "equal"
    assert same.identical, same.to_text()
    assert cli.run(["report", str(path), "--format", "text"]) == 0
    assert "One direction was tested with less noise" in " ".join(capsys.readouterr().out.split())
    assert "A claim at less noise" in pyaccount.Certificate.load(path).to_html()


@pytest.mark.nightly
def test_other_samples_agree(certificate: dict[str, Any], tmp_path: Path) -> None:
    other = pyaccount.verify(save(tmp_path, certificate), threads=1, seed=77)
    assert other.compared == "proven"
    assert other.agrees, other.to_text()


@pytest.mark.parametrize(
    ("field", "factor"), [("noise_multiplier", 1.0001), ("epsilon", 1.0001), ("threshold", 1.02), ("log_target", 0.99)]
)
def test_an_easier_one_does_not(certificate: dict[str, Any], field: str, factor: float, tmp_path: Path) -> None:
    place = added(certificate)
    test = certificate["evidence"]["sampling"]["tests"][place]
    value = certificate["solved"]["value"] if field == "noise_multiplier" else test[field]
    forged = changed(certificate, **{f"evidence__sampling__tests__{place}__{field}": value * factor})
    assert contradictions(forged) == ["evidence.sampling.tests"]
    assert not pyaccount.check(save(tmp_path, forged), max_epsilon=0.5, max_delta=3e-2)
    assert refused(pyaccount.verify(save(tmp_path, forged), threads=1))


@pytest.mark.parametrize("field", ["noise_multiplier", "epsilon", "threshold"])
def test_a_harder_one_would(certificate: dict[str, Any], field: str) -> None:
    place = added(certificate)
    value = certificate["evidence"]["sampling"]["tests"][place][field]
    assert contradictions(changed(certificate, **{f"evidence__sampling__tests__{place}__{field}": 0.9 * value})) == []


def test_no_other_noise_carries_a_guarantee_whose_noise_was_given() -> None:
    confidence = golden("confidence")
    place = next(k for k, test in enumerate(confidence["evidence"]["sampling"]["tests"]) if test["accepted"])
    value = confidence["evidence"]["sampling"]["tests"][place]["noise_multiplier"]
    tests = [test | {"noise_multiplier": 0.99 * value} for test in confidence["evidence"]["sampling"]["tests"]]
    assert "evidence.sampling.tests" in contradictions(changed(confidence, evidence__sampling__tests=tests))


def test_grids_whose_easiest_values_need_no_samples_are_searched_too() -> None:
    """Such a grid contains only optional values."""
    session = open_session(compile_document(load(SOLVED)), RunOptions(threads=1, seed=1))
    search = noise_search(session)
    found = once_on(session, search, Grid((), (0.02, 0.01)))
    assert found == Once(0.01, ADD, REMOVE)
    assert once_on(session, search, Grid((), (0.02,))) is None


# ---- How many samples a search for the lowest certified value takes, with tests whose samples are known beforehand


#: The samples of a test at a distance of 1; nearer values take more, by the square of the inverse distance.
EASIEST = 2000.0


def searched(tolerance: float, cost: float) -> SequenceResult:
    """Return a search whose tests all accept, with that many samples."""

    def claim(value: float) -> tuple[Any, float, Acceptance]:
        raise AssertionError("asked by no test here")

    def test(value: float, budget: float | None) -> tuple[Any, ...]:
        samples = round(EASIEST / (value - 1.0) ** 2)
        if budget is not None and samples > budget:
            return ()
        return (SimpleNamespace(samples=samples, accepted=True),)

    return fixed_sequence_test(GridSearch(1.0, 1e9, grids(tolerance, starts=2), claim, cost), test)


def spent(found: SequenceResult) -> int:
    return sum(cast("Any", one).samples for one in found.tests)


@pytest.mark.parametrize("cost", [10.0, 1e3, 1e5])
def test_a_wider_tolerance_takes_no_longer(cost: float) -> None:
    """Without a limit, each test below the tolerance would take as many samples as all tests before it."""
    cheap = CHEAP * 1e9 / cost
    tolerances = [0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5]
    for tolerance in tolerances:
        found = searched(tolerance, cost)
        assert found.value is not None
        assert found.value <= 1.0 + tolerance * (1 + 1e-12)
        asked = sum(round(EASIEST / distance**2) for distance in grids(tolerance, starts=2)[0].asked)
        assert asked <= spent(found) <= asked + max(asked, cheap)
    totals = [spent(searched(tolerance, cost)) for tolerance in tolerances]
    assert all(wide <= 1.01 * max(narrow, 2 * cheap) for narrow, wide in pairwise(totals))


def test_what_is_cheap_is_tested_down_to_the_least_distance() -> None:
    found = searched(0.1, 1.0)
    assert found.value == pytest.approx(1.00625)
    # A test this near is expensive here, and the ones before it count.
    dear = searched(0.1, 1e9 / (EASIEST / 0.05**2 + EASIEST / 0.025**2))
    assert dear.value == pytest.approx(1.025)
