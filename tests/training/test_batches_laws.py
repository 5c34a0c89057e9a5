"""Compares the joint law of all batches of small runs with an enumeration, for every sampler; errors would be detected."""

import hashlib
import math
from collections.abc import Callable
from typing import Any

import batch_laws as laws
import pytest
from phases import phase
from plain_documents import doc

from pyaccount import load
from pyaccount.plan.samplers import PLANS
from pyaccount.training.batches import SAMPLERS, Batches, batches_of
from pyaccount.training.batches.base import attributed
from pyaccount.training.key import RunKey

#: The number of runs that are drawn for each sampler, each with a key of its own.
KEYS = 3000
#: The significance level. With fixed keys a test always passes or always fails; for a true law, this share of keys would fail.
RARE = 1e-4


def key(number: int) -> RunKey:
    return RunKey(hashlib.blake2b(number.to_bytes(8, "little"), digest_size=32).digest())


def document(sampler: dict[str, Any], training: dict[str, Any], adjacency: str = "zero-out") -> dict[str, Any]:
    return doc(name="small", adjacency=adjacency, epsilon=8, training=training, sampler=sampler, multiplier=1)


def runs(described: dict[str, Any], count: int = KEYS, attribution: Any = None) -> list[laws.Run]:
    loaded = load(described)
    attribution = None if attribution is None else attributed(attribution)
    return [run_of(batches_of(phase(loaded), key(number), attribution=attribution)) for number in range(count)]


def run_of(batches: Batches) -> laws.Run:
    return tuple(tuple(batches.batch(t).indices.tolist()) for t in range(batches.rounds))


def sized(records: int, rounds: int, **stated: Any) -> dict[str, Any]:
    return {"dataset_size": records, "iterations": rounds, **stated}


def rated(records: int, rounds: int, p: float) -> dict[str, Any]:
    return sized(records, rounds, sampling_probability=p)


def separated(b: int, start: str, **stated: Any) -> dict[str, Any]:
    return {"kind": "b-min-sep", "min_separation": b, "start": start, **stated}


def of_users(k: int, b: int, start: str, attribution: str) -> dict[str, Any]:
    return {
        "kind": "user-b-min-sep",
        "records_per_user": k,
        "attribution": attribution,
        "min_separation": b,
        "start": start,
    }


MUST = {"subset_size": 2}
CASES: dict[str, tuple[dict[str, Any], Callable[[], laws.Law]]] = {
    "poisson": (document({"kind": "poisson"}, rated(3, 3, 0.3)), lambda: laws.poisson(3, 3, 0.3)),
    "poisson, often": (document({"kind": "poisson"}, rated(2, 4, 0.75)), lambda: laws.poisson(2, 4, 0.75)),
    "poisson, several draws": (
        document({"kind": "poisson", "draws_per_iteration": 2}, rated(2, 2, 0.4)),
        lambda: laws.poisson(2, 2, 0.4, draws=2),
    ),
    "poisson, truncated": (
        document({"kind": "poisson", "truncate_to": 1}, rated(3, 2, 0.5)),
        lambda: laws.truncated(laws.poisson(3, 2, 0.5), 1),
    ),
    "fixed-size": (
        document({"kind": "fixed-size"}, sized(3, 3, expected_batch_size=2)),
        lambda: laws.fixed_size(3, 3, 2),
    ),
    "with-replacement": (
        document({"kind": "with-replacement"}, sized(3, 2, expected_batch_size=2)),
        lambda: laws.with_replacement(3, 2, 2),
    ),
    "must-ow": (
        document({"kind": "must-ow", **MUST}, sized(3, 2, expected_batch_size=3)),
        lambda: laws.must("must-ow", 3, 2, 2, 3),
    ),
    "must-wo": (
        document({"kind": "must-wo", "subset_size": 3}, sized(3, 2, expected_batch_size=2)),
        lambda: laws.must("must-wo", 3, 2, 3, 2),
    ),
    "must-ww": (
        document({"kind": "must-ww", **MUST}, sized(3, 2, expected_batch_size=3)),
        lambda: laws.must("must-ww", 3, 2, 2, 3),
    ),
    "b-min-sep, warm": (
        document(separated(3, "warm"), rated(2, 5, 0.4)),
        lambda: laws.b_min_sep(2, 5, 0.4, 3, "warm"),
    ),
    "b-min-sep, cold": (
        document(separated(2, "cold"), rated(3, 3, 0.5)),
        lambda: laws.b_min_sep(3, 3, 0.5, 2, "cold"),
    ),
    "b-min-sep, truncated": (
        document(separated(2, "warm", truncate_to=1), rated(3, 3, 0.5)),
        lambda: laws.truncated(laws.b_min_sep(3, 3, 0.5, 2, "warm"), 1),
    ),
    "random-allocation": (
        document({"kind": "random-allocation", "iterations_per_allocation": 2}, sized(2, 4)),
        lambda: laws.allocation(2, 4, 2, 1),
    ),
    "random-allocation, 2 of 3": (
        document({"kind": "random-allocation", "iterations_per_allocation": 3, "participations": 2}, sized(3, 3)),
        lambda: laws.allocation(3, 3, 3, 2),
    ),
    "balls-in-bins": (
        document({"kind": "balls-in-bins", "bins": 3}, sized(3, 5)),
        lambda: laws.bins(3, 5, 3),
    ),
    "balls-in-bins, truncated": (
        document({"kind": "balls-in-bins", "bins": 2, "truncate_to": 1}, sized(3, 4)),
        lambda: laws.truncated(laws.bins(3, 4, 2), 1, turns=2),
    ),
    "cyclic-poisson, fixed": (
        document({"kind": "cyclic-poisson", "partitions": 2}, rated(3, 4, 0.6)),
        lambda: laws.cyclic(3, 4, 2, 0.6, fixed=True),
    ),
    "cyclic-poisson, fixed, add-remove": (
        document({"kind": "cyclic-poisson", "partitions": 2}, rated(2, 4, 0.6), adjacency="add-remove"),
        lambda: laws.cyclic(2, 4, 2, 0.6, fixed=False),
    ),
    "cyclic-poisson, random": (
        document({"kind": "cyclic-poisson", "partitions": 2, "phase": "random"}, rated(3, 3, 0.6)),
        lambda: laws.cyclic(3, 3, 2, 0.6, fixed=False),
    ),
    "none": (
        document({"kind": "none", "max_participations": 2}, sized(3, 4, expected_batch_size=2)),
        lambda: {((0, 1), (2,), (0, 1), (2,)): 1.0},
    ),
}
#: For each case: the document, the attribution (the user of each record, or pairs), and the law.
USERS: dict[str, tuple[dict[str, Any], Any, Callable[[], laws.Law]]] = {
    f"{attribution}, {start}": (
        document(of_users(2, 3 if start == "warm" else 2, start, attribution), rated(3, 3, 0.4)),
        [7, 5, 7] if attribution == "single" else ([0, 1, 1, 2], ["a", "a", "b", "b"]),
        law,
    )
    for attribution, start, law in (
        ("single", "warm", lambda: laws.users([[0, 2], [1]], 3, 0.4, 3, "warm")),
        ("single", "cold", lambda: laws.users([[0, 2], [1]], 3, 0.4, 2, "cold")),
        ("shared", "warm", lambda: laws.shared_users([{0}, {0, 1}, {1}], 3, 0.4, 3, "warm")),
        ("shared", "cold", lambda: laws.shared_users([{0}, {0, 1}, {1}], 3, 0.4, 2, "cold")),
    )
}


@pytest.mark.parametrize("case", CASES)
def test_batches_have_the_samplers_law(case: str) -> None:
    described, law = CASES[case]
    assert laws.p_value(law(), runs(described)) > RARE


@pytest.mark.parametrize("case", USERS)
def test_batches_of_users_have_the_samplers_law(case: str) -> None:
    described, attribution, law = USERS[case]
    assert laws.p_value(law(), runs(described, attribution=attribution)) > RARE


def test_every_sampler_is_tested() -> None:
    kinds = {described["sampler"]["kind"] for described, *_ in (*CASES.values(), *USERS.values())}
    assert kinds == set(SAMPLERS) == set(PLANS)


def test_runs_of_a_repeated_body_are_independent() -> None:
    """In two runs of two rounds with random parts, the parts of a record are independent."""
    sampler = {"kind": "balls-in-bins", "bins": 2}
    described = document(sampler, sized(2, 2)) | {"count": 2}
    once = laws.bins(2, 2, 2)
    law = {first + second: p * q for first, p in once.items() for second, q in once.items()}
    assert laws.p_value(law, runs(described)) > RARE


# ---- common errors, each of which the same test detects


def test_another_rate_is_seen() -> None:
    described, _ = CASES["poisson"]
    assert laws.p_value(laws.poisson(3, 3, 0.27), runs(described)) < RARE**2


def test_skipped_empty_batches_are_seen() -> None:
    """A loader that skips empty batches is detected."""
    longer, _ = CASES["poisson"]
    found = runs(longer | {"training": rated(3, 20, 0.3)})
    skipped = [tuple(batch for batch in run if batch)[:3] for run in found]
    assert all(len(run) == 3 for run in skipped)
    assert laws.p_value(laws.poisson(3, 3, 0.3), skipped) < RARE**2


def test_a_stream_shared_by_rounds_is_seen() -> None:
    described, law = CASES["poisson"]
    assert laws.p_value(law(), [(run[0], run[1], run[0]) for run in runs(described)]) < RARE**2


def test_a_stream_shared_by_records_is_seen() -> None:
    """Two halves of a data set that are drawn with one stream, as by ranks that each draw their own part, are detected."""
    half = document({"kind": "poisson"}, rated(1, 3, 0.3))
    found = [tuple((0, 1) if batch else () for batch in run) for run in runs(half)]
    assert laws.p_value(laws.poisson(2, 3, 0.3), found) < RARE**2


def test_parts_that_are_drawn_again_are_seen() -> None:
    """Balls in bins that are thrown anew in every epoch are random allocation, not balls-in-bins sampling."""
    allocated, law = CASES["random-allocation"]
    found = runs(allocated)
    assert laws.p_value(law(), found) > RARE
    assert laws.p_value(laws.bins(2, 4, 2), found) == 0.0


def test_a_cold_start_for_a_warm_one_is_seen() -> None:
    described, law = CASES["b-min-sep, warm"]
    cold = described | {"sampler": separated(3, "cold")}
    assert laws.p_value(law(), runs(cold)) < RARE**2


def test_draws_that_wait_are_not_the_process_that_is_analysed() -> None:
    """For users who share no records, Algorithm 3 makes waits longer; the certificate is about the renewal process."""
    described, attribution, law = USERS["single, cold"]
    longer = laws.shared_users([{0}, {1}, {0}], 3, 0.4, 2, "cold")
    found = runs(described, attribution=attribution)
    assert laws.p_value(law(), found) > RARE > laws.p_value(longer, found)


def test_a_rate_of_24_bits_is_seen() -> None:
    """At p = 1e-7, a float32 uniform number is below p for two values of 2⁻²⁴, which gives a rate that is 19 % larger."""
    records, p, rounds = 10**10, 1e-7, 20

    def drawn(probability: float) -> int:
        loaded = load(document({"kind": "poisson"}, rated(records, rounds, probability)))
        batches = batches_of(phase(loaded), key(1))
        return sum(len(batches.batch(t)) for t in range(rounds))

    mean = records * p * rounds
    assert abs(drawn(p) - mean) < 4.0 * math.sqrt(mean)
    rounded = math.ceil(p * 2**24) / 2**24
    assert abs(drawn(rounded) - mean) > 20.0 * math.sqrt(mean)
