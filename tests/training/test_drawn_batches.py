"""Batches of ten thousand records, in any order and on any number of ranks, and the errors for bad input."""

import math
import pickle
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from phases import phase
from plain_documents import doc
from scipy.stats import chi2
from snapshots import Snapshot

from pyaccount import _core, load
from pyaccount.data.prepare import prepare
from pyaccount.training.batches import Batch, Batches, batches_of
from pyaccount.training.key import RunKey

KEY = RunKey(bytes(range(32)))
RECORDS = 10_000


def document(sampler: dict[str, Any], training: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return doc(rest, name="batches", epsilon=8, training=training, sampler=sampler, multiplier=1)


def made(described: dict[str, Any], *, key: RunKey = KEY, attribution: Any = None) -> Batches:
    loaded = load(described)
    return batches_of(phase(loaded), key, attribution=attribution)


def sampled(kind: str, rounds: int, records: int = RECORDS, **stated: Any) -> dict[str, Any]:
    sampler = {"kind": kind, **{name: value for name, value in stated.items() if name not in RATES}}
    rates = {name: value for name, value in stated.items() if name in RATES}
    return document(sampler, {"dataset_size": records, "iterations": rounds, **rates})


RATES = ("sampling_probability", "expected_batch_size")
OWNERS = [record // 3 for record in range(300)]
PAIRS = ([*range(300), *range(300)], [*OWNERS, *((record + 7) % 300 // 3 for record in range(300))])
EVERY: dict[str, tuple[dict[str, Any], Any]] = {
    "poisson": (sampled("poisson", 12, sampling_probability=0.01), None),
    "truncated": (sampled("poisson", 12, sampling_probability=0.01, truncate_to=95), None),
    "fixed-size": (sampled("fixed-size", 12, expected_batch_size=50), None),
    "with-replacement": (sampled("with-replacement", 12, 100, expected_batch_size=50), None),
    "must-ow": (sampled("must-ow", 12, 100, expected_batch_size=50, subset_size=30), None),
    "must-wo": (sampled("must-wo", 12, 100, expected_batch_size=50, subset_size=60), None),
    "must-ww": (sampled("must-ww", 12, 100, expected_batch_size=50, subset_size=30), None),
    "b-min-sep": (sampled("b-min-sep", 12, 300, sampling_probability=0.2, min_separation=3), None),
    "random-allocation": (sampled("random-allocation", 12, 300, iterations_per_allocation=4), None),
    "balls-in-bins": (sampled("balls-in-bins", 12, 300, bins=5, truncate_to=60), None),
    "cyclic-poisson": (sampled("cyclic-poisson", 12, 300, sampling_probability=0.3, partitions=5), None),
    "random parts": (
        sampled("cyclic-poisson", 12, 300, sampling_probability=0.3, partitions=5, phase="random"),
        None,
    ),
    "single users": (
        sampled(
            "user-b-min-sep",
            12,
            300,
            sampling_probability=0.2,
            min_separation=3,
            records_per_user=3,
            attribution="single",
        ),
        OWNERS,
    ),
    "shared users": (
        sampled(
            "user-b-min-sep",
            12,
            300,
            sampling_probability=0.05,
            min_separation=3,
            records_per_user=6,
            attribution="shared",
        ),
        PAIRS,
    ),
    "none": (sampled("none", 12, 300, expected_batch_size=70), None),
    "repeated": (sampled("balls-in-bins", 4, 300, bins=4) | {"count": 3}, None),
}


@pytest.mark.parametrize("case", EVERY)
def test_any_order_and_any_beginning_give_the_same(case: str) -> None:
    described, attribution = EVERY[case]
    forward = made(described, attribution=attribution)
    assert forward.rounds == 12
    batches = [forward.batch(t).indices for t in range(12)]
    assert all((np.diff(batch) >= 0).all() and batch.dtype == np.int64 for batch in batches)
    assert all(batch.min() >= 0 and batch.max() < forward.dataset_size for batch in batches if len(batch))
    shuffled = made(described, attribution=attribution)
    for t in (11, 3, 3, 4, 0, 10, 7):
        assert np.array_equal(shuffled.batch(t).indices, batches[t]), t
        resumed = made(described, attribution=attribution)
        assert np.array_equal(resumed.batch(t).indices, batches[t]), t
    if case != "none":
        other = made(described, attribution=attribution, key=KEY.derive("another"))
        assert any(not np.array_equal(other.batch(t).indices, batches[t]) for t in range(12))


@pytest.mark.parametrize("case", EVERY)
@pytest.mark.parametrize("world", [1, 2, 3])
def test_the_parts_of_all_ranks_are_the_batch(case: str, world: int) -> None:
    described, attribution = EVERY[case]
    batches = made(described, attribution=attribution)
    for t in range(batches.rounds):
        batch = batches.batch(t)
        parts = [batch.shard(rank, world) for rank in range(world)]
        together = np.sort(np.concatenate([part.indices for part in parts]))
        assert np.array_equal(together, batch.indices)
        # Every rank needs the same number of micro-batches, or some would wait for ever.
        assert len({sum(1 for _ in part.micro_batches(16)) for part in parts}) == 1
        seen = np.concatenate([places[mask] for part in parts for places, mask in part.micro_batches(16)])
        assert np.array_equal(np.sort(seen), batch.indices)


def test_micro_batches_have_one_size(snapshot: Snapshot) -> None:
    batch = Batch(np.array([2, 2, 5], dtype=np.int64))
    parts = list(batch.micro_batches(2))
    assert [(places.tolist(), mask.tolist()) for places, mask in parts] == [
        ([2, 2], [True, True]),
        ([5, 0], [True, False]),
    ]
    (empty,) = Batch(np.array([], dtype=np.int64)).micro_batches(2)
    assert (empty[0].tolist(), empty[1].tolist()) == ([0, 0], [False, False])
    padded = list(Batch(np.array([4], dtype=np.int64), padded_to=5).micro_batches(2))
    assert [mask.tolist() for _, mask in padded] == [[True, False], [False, False], [False, False]]
    assert len(batch) == 3
    for rank, world in ((2, 2), (-1, 2), (0, 0)):
        snapshot.raised(batch.shard, rank, world)
    snapshot.raised(lambda: list(batch.micro_batches(0)))


def test_truncated_batches_have_a_size_to_be_padded_to() -> None:
    described, _ = EVERY["truncated"]
    batches, whole = made(described), made(sampled("poisson", 12, sampling_probability=0.01))
    cut = 0
    for t in range(12):
        kept, drawn = batches.batch(t), whole.batch(t)
        assert kept.padded_to == 95
        assert drawn.padded_to is None
        assert len(kept) == min(len(drawn), 95)
        assert set(kept.indices) <= set(drawn.indices)
        cut += len(drawn) > 95
    assert 0 < cut < 12


# ---- ten thousand records


def z_scores(counts: list[int], records: int, rate: float) -> list[float]:
    return [(count - records * rate) / math.sqrt(records * rate * (1.0 - rate)) for count in counts]


@pytest.mark.parametrize(
    ("described", "rate"),
    [
        (sampled("poisson", 200, sampling_probability=0.0137), 0.0137),
        (sampled("b-min-sep", 200, sampling_probability=0.1, min_separation=8), 1 / 17),
        (sampled("random-allocation", 200, iterations_per_allocation=50, participations=3), 0.06),
        (sampled("cyclic-poisson", 200, sampling_probability=0.1, partitions=4, phase="random"), 0.025),
    ],
    ids=lambda given: given["sampler"]["kind"] if isinstance(given, dict) else "",
)
def test_batches_of_many_records_are_binomial_in_every_round(described: dict[str, Any], rate: float) -> None:
    """This holds from the first round on, since a warm start is stationary. Pairs meet as often as independent records."""
    batches = made(described)
    found = [batches.batch(t).indices for t in range(batches.rounds)]
    scores = z_scores([len(batch) for batch in found], RECORDS, rate)
    assert max(map(abs, scores)) < 4.5
    # The sizes of batches of independent records vary as expected; if records were allocated jointly, they would vary less.
    assert 0.7 < sum(score * score for score in scores) / len(scores) < 1.3
    first = scores[:8]
    assert sum(score * score for score in first) < chi2.isf(1e-4, 8)
    both = sum(len(np.intersect1d(batch[batch % 2 == 0] + 1, batch)) for batch in found)
    mean = batches.rounds * RECORDS / 2 * rate * rate
    assert abs(both - mean) < 4.5 * math.sqrt(mean)


def test_records_wait_and_then_have_one_chance_in_each_round() -> None:
    """The number of rounds between two participations is b − 1 plus a geometric number."""
    described, b, p, longest = sampled("b-min-sep", 90, sampling_probability=0.1, min_separation=8), 8, 0.1, 30
    batches = made(described)
    rounds: dict[int, list[int]] = {}
    for t in range(90):
        for record in batches.batch(t).indices.tolist():
            rounds.setdefault(record, []).append(t)
    waits: Counter[int] = Counter()
    for taken in rounds.values():
        # The wait after such a late participation may extend beyond the end of the run.
        waits.update(min(later - t - b, longest) for t, later in pairwise([*taken, 10_000]) if t + b + longest < 90)
    assert min(waits) == 0
    total, chances = waits.total(), [p * (1 - p) ** k for k in range(longest)]
    chances.append((1 - p) ** longest)
    statistic = sum((waits[k] - total * q) ** 2 / (total * q) for k, q in enumerate(chances))
    assert statistic < chi2.isf(1e-4, longest)
    assert total > 10_000


def test_the_first_draws_of_users_are_stationary_by_how_many_records_each_has() -> None:
    owners = np.repeat(np.arange(6000), np.tile([1, 3, 2], 2000))
    sampler = {"records_per_user": 3, "attribution": "single", "min_separation": 5}
    described = sampled("user-b-min-sep", 40, len(owners), sampling_probability=0.05, **sampler)
    batches = made(described, attribution=owners)
    for kind, k in enumerate((1, 3, 2)):
        q = 1 - 0.95**k
        rate = q / (1 + 4 * q)
        users = [np.unique(owners[batches.batch(t).indices]) for t in range(40)]
        scores = z_scores([int((seen % 3 == kind).sum()) for seen in users], 2000, rate)
        assert max(map(abs, scores)) < 4.5
        assert abs(sum(scores[:5])) < 4.5 * math.sqrt(5)


def test_probabilities_are_those_of_the_analysis() -> None:
    """Probabilities agree to the last bit, because an expected batch size is converted once, in the document room."""
    stated = sampled("poisson", 3, 3_000_000, expected_batch_size=7)
    loaded = load(stated)
    p = loaded.run.sampling_probability()
    again = made(sampled("poisson", 3, 3_000_000, sampling_probability=p))
    assert all(np.array_equal(made(stated).batch(t).indices, again.batch(t).indices) for t in range(3))


# ---- bad input


@pytest.mark.parametrize(
    "described",
    [
        sampled("poisson", 5, sampling_probability=0.1) | {"noise": {"multiplier": "solve"}},
        document({"kind": "poisson"}, {"iterations": 5, "sampling_probability": 0.1}),
        sampled("none", 5),
        sampled("none", 5, expected_batch_size=2.5),
        sampled("none", 9, 10, expected_batch_size=5, max_participations=4),
        sampled("none", 9, 10, expected_batch_size=5, min_separation=3),
        sampled("must-ow", 5, expected_batch_size=5, subset_size=10, rounds_per_subset=2),
        sampled("cyclic-poisson", 8, sampling_probability=0.5, partitions=2, truncate_to=5),
        sampled("poisson", 5, sampling_probability=0.1, draws_per_iteration=2, truncate_to=5),
    ],
)
def test_what_cannot_be_drawn_is_refused_at_its_place(described: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(made, described)


USER = {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "single", "min_separation": 2}


@pytest.mark.parametrize(
    ("sampler", "size", "attribution"),
    [
        (USER, 3, None),
        ({"kind": "poisson"}, 3, [0, 0, 1]),
        (USER, 4, [0, 0, 1]),
        (USER, 3, [5, 5, 5]),
        (USER, 3, ([0, 1, 2, 2], [0, 0, 1, 2])),
        (USER, 3, ([0, 2, 2], [0, 0, 1])),
        (USER, 3, []),
        (USER, 3, ([-1, 0], [0, 0])),
        (USER, 3, ([0.5, 1.0], [0, 0])),
        (USER, 3, [[0, 1, 2]]),
        (USER, 3, [[0, 1, 2], [0, 1]]),
        (USER, 3, 7),
    ],
)
def test_data_that_does_not_fit_is_refused(
    sampler: dict[str, Any], size: int, attribution: Any, snapshot: Snapshot
) -> None:
    training = {"dataset_size": size, "iterations": 4, "sampling_probability": 0.1}
    snapshot.raised(lambda: made(document(sampler, training), attribution=attribution))


def test_shared_records_that_wait_after_participations_are_refused(snapshot: Snapshot) -> None:
    sampler = USER | {"attribution": "shared", "waits_after": "participation"}
    training = {"iterations": 4, "sampling_probability": 0.1}
    snapshot.raised(lambda: made(document(sampler, training), attribution=[0, 1]))


def test_users_say_how_many_records_there_are() -> None:
    training = {"iterations": 4, "sampling_probability": 0.1}
    assert made(document(USER, training), attribution=["anna", "anna", "ben"]).dataset_size == 3


def test_more_records_than_a_list_holds_are_refused(snapshot: Snapshot) -> None:
    for described in (
        sampled("b-min-sep", 4, 2**32, sampling_probability=1e-6, min_separation=2),
        sampled("balls-in-bins", 4, 2**32, bins=4),
        sampled("random-allocation", 4, 2**31, iterations_per_allocation=4, participations=3),
    ):
        snapshot.raised(made, described)


@pytest.mark.parametrize("count", [1, 3])
def test_rounds_are_those_of_the_run(count: int, snapshot: Snapshot) -> None:
    described = sampled("poisson", 5, sampling_probability=0.1) | {"count": count}
    batches = made(described)
    assert batches.rounds == 5 * count
    for t in (-1, 5 * count):
        snapshot.raised(batches.batch, t)


@pytest.mark.parametrize("case", EVERY)
def test_nothing_large_is_made_before_the_first_batch(case: str) -> None:
    """A run makes the batches of all its phases at the start, to raise errors early."""
    described, attribution = EVERY[case]
    batches = made(described, attribution=attribution)
    large = (_core.BatchCalendar, _core.DealtRecords)
    assert not any(isinstance(value, large) for value in vars(batches).values())


def test_what_was_prepared_says_whose_the_records_are() -> None:
    pairs = [("r1", "zoe"), ("r2", "ann"), ("r2", "zoe"), ("r3", "ben"), ("r4", "ben"), ("r5", "ben")]
    prepared = prepare(pairs, records_per_user=2)
    described = document({**USER, "attribution": "shared"}, {"iterations": 30, "sampling_probability": 0.3})
    given = [made(described, attribution=one) for one in (prepared.attribution, prepared.pairs())]
    assert given[0].dataset_size == len(prepared.records) == 4
    assert all(np.array_equal(given[0].batch(t).indices, given[1].batch(t).indices) for t in range(30))
    assert sum(len(given[0].batch(t).indices) for t in range(30)) > 5


def test_records_are_those_of_the_document(snapshot: Snapshot) -> None:
    described, _ = EVERY["poisson"]
    loaded = load(described)
    snapshot.raised(lambda: batches_of(phase(loaded), KEY, records=7))
    described = document({"kind": "poisson"}, {"sampling_probability": 0.1, "iterations": 4})
    snapshot.raised(made, described)


def test_nothing_shows_a_key_or_a_batch(snapshot: Snapshot) -> None:
    described, _ = EVERY["poisson"]
    batches = made(described)
    assert KEY.reveal().hex()[:8] not in repr(batches)
    assert repr(KEY.reveal())[2:20] not in repr(batches) + repr(vars(batches))
    assert repr(batches.batch(0)) == "Batch(…)"
    snapshot.raised(pickle.dumps, batches)
    repeated = made(described | {"count": 2})
    assert repr(KEY.reveal())[2:20] not in repr(vars(repeated))
    snapshot.raised(pickle.dumps, repeated)
