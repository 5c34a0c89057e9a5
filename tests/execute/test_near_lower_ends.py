"""The proposals and the number of samples for lower ends, and powers that other proposals are better than."""

import math
from typing import Any

import pytest
from plain_documents import doc

from pyaccount.document.loading import load
from pyaccount.execute.certified import CertifiedNumbers
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.execute import execute_sampled
from pyaccount.execute.sampling.lower_ends import AWAY, _enough
from pyaccount.plan.compiling import compile_document

ALLOCATION: dict[str, Any] = doc(
    "name=allocation adjacency=add-remove iterations=40 multiplier=1.0 method=monte-carlo seed=7 profile=[] tolerance=0.005",
    sampler={"kind": "random-allocation", "iterations_per_allocation": 40, "participations": 3},
)
#: If ε and δ are both tiny, a sample of the second power is often 0.
TINY: dict[str, Any] = doc(
    "name=tiny adjacency=add-remove epsilon=0.05469 delta=solve iterations=3 sampling_probability=0.05",
    "sampler=cyclic-poisson partitions=2 phase=random matrix=identity multiplier=2.9 seed=3 profile=[]",
)


def executed(document: dict[str, Any]) -> CertifiedNumbers:
    return execute_sampled(compile_document(load(document)), RunOptions(threads=1, seed=7))


def test_a_lower_end_is_as_near_as_the_tolerance_says() -> None:
    found = executed(ALLOCATION)
    # The tolerance is 0.5 %, and the least value that a test accepts is as far above the true one.
    assert 0.987 * found.guarantee.epsilon < found.guarantee.epsilon_lower < found.guarantee.epsilon


def test_a_power_that_takes_long_is_compared_with_scaled_means() -> None:
    found = executed(TINY)
    assert found.evidence.sampling is not None
    removals = [test for test in found.evidence.sampling.tests if test.direction == "remove"]
    assert all(test.accepted and test.proposal.order is None for test in removals)
    # By the second power the last test alone would take 15 million samples.
    assert sum(test.samples for test in removals) < 3_000_000
    assert found.guarantee.delta_lower > 0.5 * found.guarantee.delta


@pytest.mark.parametrize(
    ("needed", "shards"),
    [
        ((1e5, 2e5, 1e6), 254),
        ((1e5, math.inf, 1e6), 127),
        # Lower ends that are possible only far away, or nearer than asked for, are not sought.
        ((math.inf, math.inf, 1e6), 0),
    ],
)
def test_so_many_samples_are_drawn_that_a_lower_end_is_near(needed: tuple[float, ...], shards: int) -> None:
    assert _enough((0.02, 0.01, 0.005), needed, 0.01) == shards
    assert _enough((0.2, 0.1, 0.05), needed, 0.04 / AWAY) == 0
