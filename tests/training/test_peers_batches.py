"""Compares batches with those of other libraries that draw from the same laws, if these are installed.

The same numbers are counted in many runs of a few records of both: for every record how often it takes part, its first round and
the rounds to its next one, and for every run the sizes of some batches. Runs are independent, and records of a run are nearly so.
If the laws are equal, both counts are therefore samples of one distribution, which a χ² test checks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from phases import phase
from plain_documents import doc
from scipy import stats

from pyaccount import load
from pyaccount.training.batches import batches_of
from pyaccount.training.key import RunKey

#: The numbers of records, rounds and runs.
RECORDS, ROUNDS, RUNS = 120, 12, 400
#: The significance level. Seeds are fixed, so a test always passes or always fails; for equal laws this share of seeds fails.
RARE = 1e-5
#: Cells with fewer expected counts are merged.
FEW = 10

Batches = Iterator[Any]
Peer = Callable[[dict[str, Any], int], Batches]


def ours(changes: dict[str, Any], seed: int) -> Batches:
    """Return pyaccount's batches for a document with these fields of `sampler` and `training`."""
    training = {name: changes[name] for name in ("sampling_probability", "expected_batch_size") if name in changes}
    document = load(
        doc(
            "name=peers epsilon=8 multiplier=1",
            dataset_size=RECORDS,
            iterations=ROUNDS,
            training=training,
            sampler={name: value for name, value in changes.items() if name not in training},
        )
    )
    key = RunKey(hashlib.blake2b(b"peers", salt=seed.to_bytes(16, "little"), digest_size=32).digest())
    batches = batches_of(phase(document), key)
    return (batches.batch(t).indices for t in range(ROUNDS))


def jax_privacy(asked: dict[str, Any], seed: int) -> Batches:
    """Return jax_privacy's batches. It truncates to `truncated_batch_size` at random after sampling."""
    selection = pytest.importorskip(
        "jax_privacy.batch_selection", reason="jax_privacy is not installed: its samplers are NOT compared"
    )
    p, cut = asked.get("sampling_probability"), asked.get("truncate_to")
    strategies: dict[str, Callable[[], Any]] = {
        "poisson": lambda: selection.CyclicPoissonSampling(p, ROUNDS, truncated_batch_size=cut),
        "cyclic-poisson": lambda: selection.CyclicPoissonSampling(
            p,
            ROUNDS,
            cycle_length=asked["partitions"],
            partition_type=(
                selection.PartitionType.INDEPENDENT
                if asked["phase"] == "random"
                else selection.PartitionType.EQUAL_SPLIT
            ),
        ),
        "b-min-sep": lambda: selection.BMinSepSampling(
            p,
            ROUNDS,
            asked["min_separation"],
            warm_start=asked.get("start", "warm") == "warm",
            truncated_batch_size=cut,
        ),
        "balls-in-bins": lambda: selection.BallsInBinsSampling(ROUNDS, asked["bins"]),
        "fixed-size": lambda: selection.FixedBatchSampling(asked["expected_batch_size"], ROUNDS),
        "with-replacement": lambda: selection.FixedBatchSampling(asked["expected_batch_size"], ROUNDS, replace=True),
    }
    found: Batches = strategies[asked["kind"]]().batch_iterator(RECORDS, rng=np.random.default_rng([2026, seed]))
    return found


def opake(asked: dict[str, Any], seed: int) -> Batches:
    """Return opake's batches, from its wheels opake-dpsgd and opake-dpftrl, which need torch."""
    reason = "opake-dpsgd and opake-dpftrl are not installed: their samplers are NOT compared"
    gradients = pytest.importorskip("opake.dpsgd.sampling", reason=reason)
    leaders = pytest.importorskip("opake.dpftrl.sampling", reason=reason)
    key = pytest.importorskip("opake.random").key(seed)
    p, data = asked.get("sampling_probability"), range(RECORDS)
    samplers: dict[str, Callable[[], Any]] = {
        "poisson": lambda: gradients.PoissonSampler(data, p, ROUNDS, asked.get("truncate_to"), key=key),
        "cyclic-poisson": lambda: leaders.CyclicPoissonSampler(data, p, asked["partitions"], ROUNDS, key=key),
        "b-min-sep": lambda: leaders.BMinSepSampler(data, asked["min_separation"], p, ROUNDS, key=key),
        "balls-in-bins": lambda: leaders.BallsInBinsSampler(data, asked["bins"], ROUNDS, key=key),
        # The run is one allocation with several participations, or several allocations with one participation each.
        "random-allocation": lambda: gradients.KOutOfTSampler(
            data,
            k=asked.get("participations", 1) * ROUNDS // asked["iterations_per_allocation"],
            t=ROUNDS,
            allocation="total" if asked.get("participations", 1) > 1 else "block",
            key=key,
        ),
    }
    return iter(samplers[asked["kind"]]())


def patterns(draw: Peer, asked: dict[str, Any]) -> NDArray[np.int64]:
    """Return how often each record is in each round, an array of runs × records × rounds."""
    found = np.zeros((RUNS, RECORDS, ROUNDS), dtype=np.int64)
    for run in range(RUNS):
        for t, batch in enumerate(draw(asked, run)):
            np.add.at(found[run, :, t], np.asarray(batch, dtype=np.int64), 1)
    return found


def counted(pattern: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Return the counts that are compared, each a sample."""
    each = pattern.reshape(-1, ROUNDS)
    present = each > 0
    first = np.where(present.any(axis=1), present.argmax(axis=1), ROUNDS)
    later = present & (np.arange(ROUNDS) > first[:, None])
    second = np.where(later.any(axis=1), later.argmax(axis=1) - first, ROUNDS)
    sizes = pattern.sum(axis=1)
    return {
        "times": each.sum(axis=1),
        "first round": first,
        "rounds to the next": second,
        "times in a round": each[:, ROUNDS // 2],
        **{f"size of batch {t}": sizes[:, t] for t in (0, 1, ROUNDS - 1)},
    }


def same(one: NDArray[np.int64], two: NDArray[np.int64]) -> float:
    """Return the probability that counts differ at least this much if both are from one law."""
    most = int(max(one.max(), two.max())) + 1
    table = np.stack([np.bincount(one, minlength=most), np.bincount(two, minlength=most)])
    cells, kept = [], np.zeros(2, dtype=np.int64)
    for column in table.T:
        kept = kept + column
        if kept.sum() >= 2 * FEW:
            cells.append(kept)
            kept = np.zeros(2, dtype=np.int64)
    if kept.any():
        cells = [*cells[:-1], cells[-1] + kept] if cells else [kept]
    return 1.0 if len(cells) < 2 else float(stats.chi2_contingency(np.array(cells), correction=False).pvalue)


def least(one: NDArray[np.int64], two: NDArray[np.int64]) -> float:
    """Return the smallest of these probabilities times their number (Bonferroni)."""
    first, second = counted(one), counted(two)
    return min(same(first[name], second[name]) for name in first) * len(first)


POISSON = {"kind": "poisson", "sampling_probability": 0.1}
CUT = {**POISSON, "truncate_to": 14}
RANDOM = {"kind": "cyclic-poisson", "sampling_probability": 0.4, "partitions": 4, "phase": "random"}
FIXED = {**RANDOM, "phase": "fixed"}
WARM = {"kind": "b-min-sep", "sampling_probability": 0.2, "min_separation": 4, "start": "warm"}
COLD = {**WARM, "start": "cold"}
SEPARATED_CUT = {**WARM, "truncate_to": 16}
BINS = {"kind": "balls-in-bins", "bins": 4}
SIZE = {"kind": "fixed-size", "expected_batch_size": 12}
DRAWS = {"kind": "with-replacement", "expected_batch_size": 24}
ONE = {"kind": "random-allocation", "iterations_per_allocation": 4}
SEVERAL = {"kind": "random-allocation", "iterations_per_allocation": 12, "participations": 3}

#: The fields for both libraries, and a change for ours alone, which the comparison must detect.
CASES: dict[str, tuple[Peer, dict[str, Any], dict[str, Any]]] = {
    "jax_privacy Poisson": (jax_privacy, POISSON, {"sampling_probability": 0.106}),
    "jax_privacy truncated Poisson": (jax_privacy, CUT, {"truncate_to": 15}),
    "jax_privacy cyclic, random": (jax_privacy, RANDOM, {"partitions": 5, "sampling_probability": 0.5}),
    "jax_privacy b-min-sep, warm": (jax_privacy, WARM, {"start": "cold"}),
    "jax_privacy b-min-sep, cold": (jax_privacy, COLD, {"min_separation": 5}),
    "jax_privacy b-min-sep, truncated": (jax_privacy, SEPARATED_CUT, {"truncate_to": 17}),
    "jax_privacy balls in bins": (jax_privacy, BINS, {"bins": 5}),
    "jax_privacy fixed size": (jax_privacy, SIZE, {"expected_batch_size": 13}),
    "jax_privacy with replacement": (jax_privacy, DRAWS, {"kind": "fixed-size"}),
    "opake Poisson": (opake, POISSON, {"sampling_probability": 0.106}),
    "opake truncated Poisson": (opake, CUT, {"truncate_to": 15}),
    "opake b-min-sep, warm": (opake, WARM, {"start": "cold"}),
    "opake balls in bins": (opake, BINS, {"bins": 5}),
    "opake one of four": (opake, ONE, {"participations": 3, "iterations_per_allocation": 12}),
    "opake three of twelve": (opake, SEVERAL, {"participations": 1, "iterations_per_allocation": 4}),
}


@pytest.mark.parametrize("case", CASES)
def test_marginals_are_those_of_the_peer(case: str) -> None:
    peer, asked, planted = CASES[case]
    theirs = patterns(peer, asked)
    assert least(patterns(ours, asked), theirs) > RARE
    # A slightly different law is detected.
    assert least(patterns(ours, {**asked, **planted}), theirs) < RARE


@pytest.mark.parametrize("peer", [jax_privacy, opake])
def test_parts_of_one_size_take_turns_as_in_the_peer(peer: Peer) -> None:
    """Here the part of a record follows from its number, and there it is drawn; the counts do not depend on that."""
    theirs = patterns(peer, FIXED)
    mine = patterns(ours, FIXED)
    assert least(mine, theirs) > RARE
    assert least(patterns(ours, {**FIXED, "sampling_probability": 0.43}), theirs) < RARE
