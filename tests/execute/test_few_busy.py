"""Moments with few busy replicas: their bounds are above the moments with all replicas, and claims that they prove."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificate_oracle import inconsistencies
from gate_tools import save
from made import sampled
from plain_documents import doc, with_changes
from snapshots import Snapshot

import pyaccount
from pyaccount.execute.engine import Engine
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import moments
from pyaccount.execute.sampling.jobs import Replicas
from pyaccount.execute.sampling.lower_ends import of_a_power
from pyaccount.execute.sampling.moments import Moments, chernoff, enough_busy
from pyaccount.execute.sampling.proposals import powered
from pyaccount.execute.sampling.shards import Sampler
from pyaccount.plan.sampled import SampledMechanism


def document(**changes: Any) -> dict[str, Any]:
    """b-min-sep sampling of 500 rounds with eight bands; `section__key=value` changes it."""
    raw: dict[str, Any] = doc(
        "name=few-busy epsilon=1 delta=1e-9 participation_rate=0.01 iterations=500 sampler=b-min-sep",
        "min_separation=8 matrix=banded-square-root bands=8 multiplier=4.0 seed=5 profile=[]",
    )
    return with_changes(raw, changes)


@pytest.fixture
def small_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let chains of all replicas count as large from about 6,000 states on."""
    monkeypatch.setattr(moments, "FEW_WORK", 2e6)
    monkeypatch.setattr(moments, "WHOLE_WORK", 0.0)


def weak() -> SampledMechanism:
    """A run with six bands and much noise."""
    coefficients = [0.15 / math.sqrt(k + 1.0) for k in range(6)]
    return SampledMechanism(sampled("renewal", coefficients, 300, 6, 0.01, True), ("remove", "add"), 300, 100.0, 0.01)


@pytest.mark.usefixtures("small_chains")
def test_a_moment_of_few_busy_replicas_is_a_little_above_that_of_all() -> None:
    mechanism = weak()
    few, engine = Moments(Engine(), mechanism), Engine()
    checked = 0
    for order in range(12, 17):
        one, other = few.log(order), engine.log_moment(mechanism.core, order)[1]
        if few.few_busy(order):
            checked += 1
            # Both are above the moment by at most the gap of their steps and what is left out.
            assert other - 1e-3 < one < other + 1e-3 + moments.LITTLE
    assert checked > 2


@pytest.mark.usefixtures("small_chains")
def test_a_moment_that_leaves_much_out_is_still_a_bound() -> None:
    mechanism = SampledMechanism(
        sampled("renewal", [0.9, 0.6, 0.4, 0.3], 40, 4, 0.05, False), ("remove", "add"), 40, 100.0, 0.05
    )
    for order in (5, 8):
        _, upper, left = mechanism.core.log_moment(order, most_busy=3, threads=1, time_limit=None)
        _, exact, none = mechanism.core.log_moment(order, threads=1, time_limit=None)
        assert none == 0.0
        assert left > 0.1
        assert upper >= exact - 1e-3


@pytest.mark.usefixtures("small_chains")
def test_a_claim_is_proven_by_few_busy_replicas_and_recomputed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate = pyaccount.certify(document(training__iterations=300), threads=2)
    sampling = certificate.data.evidence.sampling
    assert sampling is not None
    assert sampling.moment is not None
    moment = sampling.moment
    assert certificate.data.guarantee.kind == "deterministic"
    assert moment.most_busy is not None
    assert 2 < moment.most_busy < moment.order
    assert moment.states == math.comb(8 + moment.most_busy - 1, moment.most_busy)
    assert chernoff(moment.order, moment.log_moment, 1.0) <= moment.remove <= 1e-9
    few = f"with at most {moment.most_busy} busy replicas and what that leaves out"
    assert few in certificate.to_text()
    assert few in certificate.to_markdown()
    assert pyaccount.verify(save(tmp_path, certificate.to_json())).identical


def test_few_busy_replicas_are_fewer_than_all_and_not_in_blocks() -> None:
    raw = json.loads(
        pyaccount.certify(
            document(
                noise__multiplier=3.0, privacy__delta=1e-6, training__iterations=150, accounting__method="monte-carlo"
            ),
            threads=2,
        ).to_json()
    )
    tests = raw["evidence"]["sampling"]["tests"]
    place = next(k for k, test in enumerate(tests) if test["direction"] == "remove")
    assert "order" in tests[place]["proposal"]
    for changes in ({"most_busy": 63}, {"most_busy": 2, "block": 2}):
        tests[place]["proposal"] |= changes
        found = inconsistencies(pyaccount.Certificate.from_json(json.dumps(raw)).data)
        assert f"evidence.sampling.tests[{place}].proposal.most_busy" in {one.path for one in found}, changes


@pytest.mark.nightly
def test_a_claim_that_was_refused_is_proven_by_few_busy_replicas() -> None:
    """With 16 bands the largest power whose chain fits proves nothing at δ = 1e-10, even with three times this noise."""
    raw = document(
        privacy__epsilon=2,
        privacy__delta=1e-10,
        sampler__min_separation=16,
        matrix__bands=16,
        noise__multiplier=3.6,
        accounting__method="renyi",
    )
    found = pyaccount.certify(raw, threads=2).data
    assert found.holds
    sampling = found.evidence.sampling
    assert sampling is not None
    assert sampling.moment is not None
    assert sampling.moment.most_busy is not None


def test_lower_ends_beside_a_proof_are_drawn_from_a_power_that_can_be(snapshot: Snapshot) -> None:
    """For 26 replicas in blocks of 16 rounds there are too many placements, however few states the chain has."""
    core = sampled("renewal", [0.2] * 4, 100, 64, 0.01, True)
    mechanism = SampledMechanism(core, ("remove", "add"), 100, 100.0, 0.01)
    drawing = Sampler(RunOptions(seed=1, threads=1))
    snapshot.raised(lambda: drawing.limits(mechanism, "remove", powered(mechanism, Replicas(26, 16)), 2.0))
    found = of_a_power(drawing, mechanism, (26, 2.0))
    assert found.replicas is not None
    assert 2 < found.replicas.order < 26
    assert math.isfinite(drawing.limits(mechanism, "remove", found, 2.0).weight_bound)


def test_the_fewest_busy_replicas_are_found_by_what_they_leave_out() -> None:
    looked: list[int] = []

    def geometric(busy: int) -> float:
        looked.append(busy)
        return 10.0 ** (3 - busy)

    assert enough_busy(geometric, 1e-6, 20) == 9
    assert looked == [3, 4, 8, 9]
    assert enough_busy(geometric, 1e-6, 8) is None
    assert enough_busy(lambda _: math.inf, 1e-6, 20) is None
    assert enough_busy(lambda busy: 1.0 / busy, 1e-6, 20) is None
    assert enough_busy(lambda _: 0.0, 1e-6, 20, busy=5) == 5


def test_chains_of_few_busy_replicas_have_as_many_states_as_multisets() -> None:
    core = weak().core
    for order, busy in ((6, 2), (9, 4), (40, 5)):
        price = core.replicas(order, None, busy)
        assert price is not None
        assert price[0] == math.comb(6 + busy - 1, busy)
    for order, busy in ((6, 6), (6, 7), (6, 1)):
        assert core.replicas(order, None, busy) is None
    assert core.replicas(6, 2, 3) is None
    assert np.isfinite(core.left_out(9, 4, 1.0, threads=1, time_limit=None))
