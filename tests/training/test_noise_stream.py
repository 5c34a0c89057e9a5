"""Streams of noise: parts, states, seeking, and errors."""

import pickle
import signal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noise_samples import KEY, NONCES, ROUNDS, SECTIONS, described, noise, rows
from phases import phase
from plain_documents import one_step
from snapshots import Snapshot

import pyaccount
from pyaccount.errors import DomainError
from pyaccount.training.noise import NoiseState, noise_of

SHAPES: dict[str, tuple[int, ...]] = {"first": (5, 9), "second": (130,), "third": (), "none": (0, 3)}
#: A matrix for each way to keep earlier rows.
KINDS = ["identity", "toeplitz", "banded-inverse", "blt", "dense"]
#: The three numbers of row 2 of "w".
PINNED = {
    "identity": [-1.6478933778943752, 0.24829152062665794, -0.0647573930607725],
    "toeplitz": [-1.2272895514213626, 0.21172615889263507, -0.17437582051104025],
    "banded-inverse": [-3.117612052970497, 0.3921686086290016, -0.4057990798340455],
    "blt": [-3.6752316317870717, 0.4830232507392196, -0.5069469318319806],
    "dense": [-3.2171917524870963, 0.23658647878895214, -0.1211827738056795],
}


def drawn(stream: Any) -> list[dict[str, Any]]:
    return [stream.next(NONCES[number]) for number in range(stream.round, ROUNDS)]


def same(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    """Return whether two lists of rows agree bit for bit."""
    return [{n: (v.dtype, v.shape, v.tobytes()) for n, v in row.items()} for row in one] == [
        {n: (v.dtype, v.shape, v.tobytes()) for n, v in row.items()} for row in other
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", KINDS)
def test_parts_and_worlds_give_the_same_numbers(name: str, dtype: Any, tmp_path: Path) -> None:
    source = noise(name, tmp_path)
    whole = drawn(source.stream(SHAPES, dtype=dtype))
    assert {key: value.shape for key, value in whole[0].items()} == SHAPES
    assert all(value.dtype == dtype for value in whole[0].values())
    # Each parameter is drawn separately, in another order.
    for parameter in reversed(SHAPES):
        alone = drawn(source.stream({parameter: SHAPES[parameter]}, dtype=dtype))
        assert same(alone, [{parameter: row[parameter]} for row in whole])
    for world in (1, 2, 3):
        ranks = []
        for rank in range(world):
            parts = {
                key: slice(rank * size // world, (rank + 1) * size // world)
                for key, size in ((key, int(np.prod(shape))) for key, shape in SHAPES.items())
            }
            ranks.append(drawn(source.stream(SHAPES, dtype=dtype, parts=parts)))
        joined = [
            {key: np.concatenate([rank[t][key] for rank in ranks]).reshape(SHAPES[key]) for key in SHAPES}
            for t in range(ROUNDS)
        ]
        assert same(joined, whole)
    # A rank may have a part of only one parameter.
    (part,) = drawn(source.stream(SHAPES, dtype=dtype, parts={"second": slice(100, None)}))[3].values()
    assert np.array_equal(part, whole[3]["second"][100:])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", KINDS)
def test_every_round_is_restored_and_sought(name: str, dtype: Any, tmp_path: Path, snapshot: Snapshot) -> None:
    source, shapes = noise(name, tmp_path), {"first": (3, 4), "second": (7,)}
    whole = drawn(source.stream(shapes, dtype=dtype))
    first, wandering = source.stream(shapes, dtype=dtype), source.stream(shapes, dtype=dtype)
    for t in range(ROUNDS + 1):
        assert first.round == t
        state = first.state()
        restored = source.stream(shapes, dtype=dtype)
        restored.restore(state)
        sought = source.stream(shapes, dtype=dtype)
        sought.seek(t, NONCES)
        assert same(drawn(restored), whole[t:])
        assert same(drawn(sought), whole[t:])
        # The stream goes forward, and then back.
        back = (7 * t) % ROUNDS
        wandering.seek(back, NONCES)
        assert same([wandering.next(NONCES[back])], [whole[back]])
        if t < ROUNDS:
            first.next(NONCES[t])
    snapshot.raised(first.next)


def test_a_state_is_as_small_as_the_matrix_allows_and_not_shown(tmp_path: Path) -> None:
    found = {}
    for name in KINDS:
        stream = noise(name, tmp_path).stream({"w": (10,)})
        stream.next()
        state = stream.state()
        found[name] = {key: (kept.shape, kept.dtype.name) for key, kept in state.kept.items()}
        assert repr(state) == "NoiseState(round=1, …)"
    assert found == {
        "identity": {},
        "toeplitz": {"w": ((4, 10), "float32")},
        "banded-inverse": {},
        "blt": {"w": ((3, 10), "float64")},
        "dense": {},
    }
    words = {name: noise(name, tmp_path).memory for name in KINDS}
    assert words == {
        "identity": "nothing is kept; a round is drawn once",
        "toeplitz": "the last 4 rows are kept; a round is drawn once",
        "banded-inverse": "nothing is kept; a round is drawn as often as the inverse has bands (4)",
        "blt": "3 running sums of doubles are kept; a round is drawn once",
        "dense": "nothing is kept; round t is drawn together with the t rounds before it",
    }


def test_a_state_of_another_stream_is_refused_and_nothing_changes(tmp_path: Path, snapshot: Snapshot) -> None:
    source = noise("toeplitz", tmp_path)
    whole = drawn(source.stream({"w": (10,)}))
    stream = source.stream({"w": (10,)})
    stream.next(NONCES[0])
    state = stream.state()
    for other in (
        source.stream({"v": (10,)}),
        source.stream({"w": (11,)}),
        source.stream({"w": (10,)}, dtype=np.float64),
        noise("blt", tmp_path).stream({"w": (10,)}),
        noise("identity", tmp_path).stream({"w": (10,)}),
    ):
        snapshot.raised(other.restore, state)
        assert other.round == 0
    snapshot.raised(lambda: stream.restore(NoiseState(state.kept, tuple(NONCES[:25]))))
    assert same(drawn(stream), whole[1:])


def test_an_interrupted_round_is_sought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    """After an interruption some parameters may be a round ahead, so nothing is drawn until `seek` was called."""
    for name in KINDS:
        source = noise(name, tmp_path)
        whole = drawn(source.stream({"a": (4,), "b": (4,)}))
        stream = source.stream({"a": (4,), "b": (4,)})
        stream.seek(3, NONCES)

        class Interrupted:
            def next(self, *_: Any) -> None:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setitem(stream._rows, "b", Interrupted())
            with pytest.raises(KeyboardInterrupt):
                stream.next()
        for refused in (stream.next, stream.state):
            snapshot.raised(refused)
        stream.seek(3, stream.nonces)
        assert same(drawn(stream), whole[3:])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_a_signal_interrupts_the_work_itself(tmp_path: Path) -> None:
    """After a signal at any time the stream reports the interruption or is intact, and after `seek` it gives the same numbers."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    def endless(stream: Any) -> None:
        while True:
            stream.seek(2, NONCES)
            stream.next(NONCES[2])

    source, shapes = noise("blt", tmp_path), {"a": (300_000,), "b": (300_000,)}
    before = source.stream(shapes)
    before.seek(3, NONCES)
    expected, stream = before.next(NONCES[3]), source.stream(shapes)
    usual = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(3):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                endless(stream)
            stream.seek(3, NONCES)
            assert same([stream.next(NONCES[3])], [expected])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, usual)


def test_nothing_shows_the_key(tmp_path: Path, snapshot: Snapshot) -> None:
    source = noise("blt", tmp_path)
    stream = source.stream({"w": (3,)})
    for shown in (repr(source), repr(stream), str(stream.state()), repr(stream._rows["w"])):
        assert bytes(range(8)).hex() not in shown
        assert source.key("w", 0, NONCES[0]).reveal().hex()[:8] not in shown
    snapshot.raised(pickle.dumps, stream)


def test_the_scale_is_rounded_up(tmp_path: Path) -> None:
    for multiplier, clip in ((1.1, 0.3), (0.7, 1e-3), (3.3, 7.7)):
        found = noise("identity", tmp_path, clip_norm=clip, noise={"multiplier": multiplier}).standard_deviation
        exact = Fraction(multiplier) * Fraction(clip)
        assert exact * (1 + Fraction(1, 2**49)) < Fraction(found) < exact * (1 + Fraction(1, 2**47))


def test_other_releases_have_noise_of_their_own(tmp_path: Path, snapshot: Snapshot) -> None:
    also = [{"multiplier": 5.0, "what": "a count"}, {"multiplier": 5.0, "what": "another"}]
    read = pyaccount.load({**described("identity", tmp_path).to_mapping(), "noise": {"multiplier": 1.0, "also": also}})
    drawn_of = [
        noise_of(phase(read), KEY, phase=0, clip_norm=clip, release=release)
        for release, clip in enumerate((1.0, 0.5, 0.5))
    ]
    assert [round(one.standard_deviation, 12) for one in drawn_of] == [1.0, 2.5, 2.5]
    vectors = [rows(one, 10_000, rounds=1)[0] / one.standard_deviation for one in drawn_of]
    assert np.abs(np.corrcoef(vectors)[np.triu_indices(3, 1)]).max() < 0.05
    assert np.array_equal(
        vectors[0], rows(noise("identity", tmp_path), 10_000, rounds=1)[0] / drawn_of[0].standard_deviation
    )
    snapshot.raised(noise_of, phase(read), KEY, phase=0, clip_norm=1.0, release=3)


def test_inverses_that_grow_are_refused(tmp_path: Path, snapshot: Snapshot) -> None:
    # 1/(1 + 1.9x) has the coefficients (−1.9)^j: 1.9²³·√(1 + 1/1.9² + …) is 3.03e6.
    grown = noise("toeplitz", tmp_path, matrix={"coefficients": [1.0, 1.9]})
    assert grown.growth == pytest.approx(np.sqrt(sum(1.9 ** (2 * j) for j in range(ROUNDS))), rel=1e-12)
    assert grown.most_growth(np.float32) == 2.0**13
    assert grown.most_growth(np.float64) == 2.0**42
    snapshot.raised(grown.stream, {"w": (3,)})
    grown.stream({"w": (3,)}, dtype=np.float64).next()
    beyond = noise("toeplitz", tmp_path, matrix={"coefficients": [1.0, 4.0]})
    for dtype in (np.float32, np.float64):
        snapshot.raised(beyond.stream, {"w": (3,)}, dtype=dtype)
    # If the growth exceeds the largest double, there is no certificate.
    snapshot.raised(noise, "toeplitz", tmp_path, matrix={"coefficients": [1e-9, 1e9]})


def test_laplace_noise_is_refused_at_its_place(snapshot: Snapshot) -> None:
    read = pyaccount.load(one_step(1.0, noise={"kind": "laplace", "multiplier": 1.0}, privacy__delta=1e-6))
    snapshot.raised(lambda: noise_of(phase(read), KEY, phase=0, clip_norm=1.0))


def test_bad_arguments_are_told(tmp_path: Path, snapshot: Snapshot) -> None:
    read = described("identity", tmp_path)
    blank = described("identity", tmp_path, noise={"multiplier": "solve"})
    snapshot.raised(lambda: noise_of(phase(blank), KEY, phase=0, clip_norm=1.0))
    for clip in (0.0, -1.0, np.inf, np.nan):
        with snapshot.raises(DomainError):
            noise_of(phase(read), KEY, phase=0, clip_norm=clip)
    snapshot.raised(noise, "identity", tmp_path, phase=-1)
    source = noise("identity", tmp_path)
    for dtype in (np.float16, np.int32, complex):
        snapshot.raised(source.stream, {"w": (3,)}, dtype=dtype)
    snapshot.raised(source.stream, {"w": (3, -1)})
    for part in (slice(0, 4), slice(-1, None), slice(2, 1), slice(0, 3, 2)):
        snapshot.raised(source.stream, {"w": (3,)}, parts={"w": part})
    snapshot.raised(lambda: source.stream({"w": (3,)}, parts={"v": slice(0, 1)}))
    stream = source.stream({"w": (3,)})
    for target in (-1, ROUNDS + 1):
        snapshot.raised(stream.seek, target, NONCES)
    for clip in (1e-40, 1e38):
        with snapshot.raises(DomainError):
            noise("identity", tmp_path, clip_norm=clip).stream({"w": (3,)})


@pytest.mark.parametrize("name", KINDS)
def test_a_row_has_a_nonce_of_its_own_unless_it_is_drawn_once_more(name: str, tmp_path: Path) -> None:
    source = noise(name, tmp_path)
    one, two = source.stream({"w": (50,)}), source.stream({"w": (50,)})
    first, second = [one.next() for _ in range(3)], [two.next() for _ in range(3)]
    assert len({*one.nonces, *two.nonces}) == 6
    assert all(not np.isin(a["w"], b["w"]).any() for a, b in zip(first, second, strict=True))
    two.seek(0, ())
    assert same([two.next(nonce) for nonce in one.nonces], first)
    # From here on there is another branch, whose new noise in each round is independent of that of the first branch.
    two.seek(2, one.nonces)
    assert two.nonces == one.nonces[:2]
    assert not np.isin(two.next()["w"], first[2]["w"]).any()


def test_nonces_that_are_missing_or_none_are_refused(tmp_path: Path, snapshot: Snapshot) -> None:
    stream = noise("toeplitz", tmp_path).stream({"w": (3,)})
    snapshot.raised(lambda: stream.seek(3, NONCES[:2]))
    for call in (
        lambda: stream.next(b""),
        lambda: stream.next(b"short"),
        lambda: stream.seek(2, [NONCES[0], bytes(31)]),
    ):
        snapshot.raised(call)
    assert stream.round == 0


def test_the_noise_of_a_key_and_nonces_stays_the_same(tmp_path: Path) -> None:
    """A run that began with another version continues with the same noise."""
    found = {}
    for name in KINDS:
        stream = noise(name, tmp_path).stream({"w": (3,)}, dtype=np.float64)
        found[name] = [stream.next(NONCES[number])["w"] for number in range(3)][2].tolist()
    assert found == PINNED


def test_every_kind_has_a_document() -> None:
    assert set(KINDS) <= set(SECTIONS)
