"""The hypotheses of samples of powers: each is checked in the code, or a test here fails if it is dropped.

The core's own refusals are tested in `rust/core/src/replicas/rounds.rs` and `blocks.rs`.
"""

import math
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from exact_mixtures import hockey_stick, nothing
from false_claims import SETTINGS, SMALL_BETS, Q, accepted, betting, by_rounds, few_busy, most, small, with_a_floor
from plain_documents import doc
from recorded_jobs import Recording
from snapshots import Snapshot

from pyaccount import _core
from pyaccount.document.loading import load
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import tests_of_claims
from pyaccount.execute.sampling.betting_choice import Claim
from pyaccount.execute.sampling.execute import execute_sampled
from pyaccount.execute.sampling.jobs import SHARD, BetTable, Job, Replicas
from pyaccount.execute.sampling.proposals import powered
from pyaccount.execute.sampling.shards import PURPOSES, SampleLimits, Sampler, Stream
from pyaccount.plan.compiling import compile_document
from pyaccount.profiles.base import Recipe


def document(**changes: Any) -> dict[str, Any]:
    return (
        doc(
            "name=hypotheses epsilon=0.5 delta=3e-2 participation_rate=0.05 iterations=32 sampler=b-min-sep",
            "min_separation=4 start=warm matrix=banded-square-root bands=4 multiplier=solve profile=[1]",
            "tolerance=0.04 seed=5",
        )
        | changes
    )


@pytest.mark.parametrize("solved", ["multiplier", "epsilon", "delta"])
def test_no_test_looks_at_samples_that_anything_else_has_seen(solved: str) -> None:
    """No test uses the samples of the pilot, of a choice of bets, or of another test, whatever their powers."""
    raw = document()
    if solved != "multiplier":
        raw["noise"] = {"multiplier": 1.5}
        raw["privacy"][solved] = "solve"
    runner = Recording()
    plan = compile_document(load(raw))
    found = execute_sampled(plan, RunOptions(threads=1, seed=5, runner=runner))
    tests = [job for job in runner.jobs if job.key[1] == PURPOSES["verification"]]
    assert found.evidence.sampling is not None
    assert len(tests) == sum(test.samples > 0 for test in found.evidence.sampling.tests) > 1
    assert any(isinstance(job, Job) and job.proposal.replicas is not None for job in tests)
    # Each test has its own candidate number, and so its own stream.
    candidates = [job.key[2] for job in runner.jobs]
    assert all(candidates.count(job.key[2]) == 1 for job in tests)


def test_bands_beyond_the_separation_and_negative_entries_are_refused(snapshot: Snapshot) -> None:
    snapshot.raised(_core.Sampled.renewal, [1.0, 0.5, 0.3], 6, 2, 0.1, True)
    snapshot.raised(_core.Sampled.renewal, [1.0, -0.5], 6, 2, 0.1, True)
    negative = {"kind": "toeplitz", "coefficients": [1.0, -0.5]}
    snapshot.raised(lambda: load(document(matrix=negative)))
    # Columns that overlap are sampled in another way, for which there is no chain.
    overlapping = _core.Sampled.overlapping(_core.Columns.toeplitz([1.0, 0.5, 0.3, 0.1], 2), 1.0, 0.1, 1, True, False)
    assert overlapping.replicas(2) is None
    assert overlapping.added_bounds(-1.0, [1.0]) is None
    snapshot.raised(overlapping.bounds, "remove", 0.1, 2.0, 1.0, order=2)


@pytest.mark.parametrize(
    ("n", "b", "p", "warm", "block"),
    [
        (9, 4, 1.0, False, 2),
        (9, 4, 0.3, False, 3),
        (9, 5, 0.3, False, 2),
        (9, 4, 0.3, False, 4),
        (9, 6, 0.3, True, 6),
        (2, 4, 0.3, True, 2),
    ],
    ids=["p = 1", "3 does not divide 4", "2 does not divide 5", "h = b", "h = b, warm", "warm, n < b − 1"],
)
def test_blocks_that_the_law_does_not_have_are_refused(
    n: int, b: int, p: float, warm: bool, block: int, snapshot: Snapshot
) -> None:
    core = _core.Sampled.renewal([1.0], n, b, p, warm)
    assert core.replicas(2, block) is None
    assert core.replicas(2) is not None
    snapshot.raised(core.bounds, "remove", p, 2.0, 1.0, order=2, block=block)


def test_a_false_claim_is_accepted_where_what_few_busy_replicas_leave_out_is_forgotten() -> None:
    setting, limits = few_busy(), Sampler.limits
    assert accepted(setting, 0.9, 40, 3) == 0

    def forgotten(*arguments: Any) -> SampleLimits:
        return replace(limits(*arguments), left_out=0.0)

    with patch.object(Sampler, "limits", forgotten):
        assert accepted(setting, 0.9, 40, 3) > most(40)


def test_a_false_claim_is_accepted_where_what_lies_below_a_floor_is_forgotten() -> None:
    # The bound is a dozen times what is missing here, so that the false claim is one of δ itself.
    setting, limits, factor = with_a_floor(12.0), Sampler.limits, 1.0 - 1e-6
    assert accepted(setting, factor, 40, 3) == 0

    def forgotten(*arguments: Any) -> SampleLimits:
        return replace(limits(*arguments), clipped=0.0)

    with patch.object(Sampler, "limits", forgotten):
        assert accepted(setting, factor, 40, 3) > most(40)


@pytest.mark.parametrize("block", [0, 1])
def test_runs_that_compose_have_the_mean_of_all_together(block: int) -> None:
    """The ratio of two runs of one mechanism is a product of two ratios, not the square of one."""
    one, truth = small(2, 2, 0.15, [1.1, 0.5], warm=True)
    both = replace(one, recipe=Recipe("Sampled.together", (((one.recipe, 2),),)))
    exact = hockey_stick(truth.beside(truth), nothing(4), 1.5)
    assert exact > 1.5 * hockey_stick(truth, nothing(2), 1.5)
    drawing, proposal = Sampler(RunOptions(seed=7, threads=1)), powered(both, Replicas(3, block))
    limits = drawing.limits(both, "remove", proposal, 1.5)
    tables = [BetTable(1.5, math.inf)]
    sums = drawing.run(both, "remove", proposal, tables, Stream("verification", 64, 1))
    values = np.array([shard.value for (shard,) in sums]) / SHARD
    assert abs(values.mean() - exact) < 4.5 * values.std(ddof=1) / 8.0
    assert exact < limits.weight_bound < 30.0 * exact
    assert all(shard.square <= limits.weight_bound * shard.value * (1.0 + 1e-9) for (shard,) in sums)


def test_groups_are_not_composed(snapshot: Snapshot) -> None:
    """Several records of one group interleave; runs that compose are independent. Large groups are refused."""
    raw = document()
    raw["privacy"]["group_size"] = 2
    assert compile_document(load(raw)).at(2.0).mechanism().recipe.constructor == "Sampled.group"
    raw["privacy"]["group_size"] = 60
    snapshot.raised(lambda: compile_document(load(raw)))


#: The probability with which the composed phase discloses a record.
ATOM = 0.02


def test_infinite_losses_beside_the_samples_are_added_to_their_mean() -> None:
    """With a phase of infinite loss with probability τ, and none otherwise, δ is τ + (1 − τ)δ. No sample has that loss.

    False claims would be accepted if τ were left out.
    """
    single = by_rounds()
    nodes = np.arange(-400, 401) * 0.05
    values = (ATOM + (1.0 - ATOM) * np.maximum(-np.expm1(nodes), 0.0)).tolist()
    pairs = tuple((value, value) for value in values)
    curve: Recipe[_core.ComposedCurve] = Recipe("ComposedCurve", (float(nodes[0]), 0.05, tuple(values), pairs))
    mechanism = replace(single.mechanism, curves={"remove": curve})
    setting = replace(single, mechanism=mechanism, delta=ATOM + (1.0 - ATOM) * single.delta)
    drawing = Sampler(RunOptions(seed=8, threads=1))
    limits = drawing.limits(mechanism, "remove", setting.proposal, setting.epsilon)
    assert limits.tail_mass == pytest.approx(ATOM, rel=1e-9)
    setting = replace(setting, weight_bound=limits.weight_bound)
    tables = [BetTable(setting.epsilon, math.inf)]
    sums = drawing.run(mechanism, "remove", setting.proposal, tables, drawing.stream("verification", 64))
    means = np.array([shard.value for (shard,) in sums]) / SHARD
    assert abs(means.mean() + ATOM - setting.delta) < 4.5 * means.std(ddof=1) / 8.0
    bet = betting(setting, drawing, *SMALL_BETS)
    # ATOM is two fifths of δ; the rest of these claims is far below the mean, or above it.
    for factor, holds in ((0.8, False), (1.2, True)):
        claim = Claim(mechanism, 1.0, setting.epsilon, factor * setting.delta, math.log(1.0 / Q))
        assert tests_of_claims._bet(drawing, claim, "remove", bet).accepted == holds


def test_a_power_says_nothing_of_added_and_replaced_records() -> None:
    core = small(4, 2, 0.3, [1.2, 0.6], warm=True)[0].core
    for direction in ("add", "replace"):
        assert core.bounds(direction, 0.3, 2.0, 1.0, order=2)[0] == math.inf


# ---- A small share of `benchmarks/false_claims.py`: false claims are accepted no more often than q, and true ones are
# accepted


RUNS, SOME = 100, 10


@pytest.mark.parametrize("name", SETTINGS)
def test_false_claims_are_seldom_accepted(name: str) -> None:
    assert accepted(SETTINGS[name](), 1.0 - 1e-6, RUNS, 3) <= most(RUNS)


@pytest.mark.parametrize("name", SETTINGS)
def test_true_claims_are_accepted_by_the_same_bets(name: str) -> None:
    """Without this the test above would prove nothing."""
    assert accepted(SETTINGS[name](), 1.5, SOME, 4) == SOME
