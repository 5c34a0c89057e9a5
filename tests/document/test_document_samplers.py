"""The samplers that keep a record's participations apart: their rates, and what fits to which matrix."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
from document_samples import edited, found, load_text, outcome, problems_of, written
from plain_documents import doc
from snapshots import Snapshot

import pyaccount
from pyaccount.document.document import Document
from pyaccount.document.ranges import RATE_AGREEMENT
from pyaccount.document.samplers import BallsInBins
from pyaccount.document.tree import TrainingNode

HEAD = """\
pyaccount: 1
name: samplers
privacy: {adjacency: add-remove, epsilon: 4, delta: 1e-6}
noise: {multiplier: solve}
"""


def spelled(sampler: str, training: str, matrix: str = "kind: identity") -> str:
    return f"{HEAD}sampler: {{kind: {sampler}}}\ntraining: {{{training}}}\nmatrix: {{{matrix}}}\n"


def body_of(folder: Path, sampler: str, training: str, matrix: str = "kind: identity") -> TrainingNode:
    return load_text(folder, spelled(sampler, f"iterations: 100, {training}", matrix)).run


BSR3 = "kind: banded-square-root, bands: 3"

RATES = [
    # the sampler, the training section, the matrix, then b, p₀, p and the expected batch size
    ("b-min-sep, min_separation: 1", "sampling_probability: 0.125", "kind: identity", 1, 0.125, 0.125, None),
    ("b-min-sep", "sampling_probability: 0.125", "kind: identity", 1, 0.125, 0.125, None),
    ("b-min-sep", "participation_rate: 0.125", "kind: identity", 1, 0.125, 0.125, None),
    ("b-min-sep", "sampling_probability: 0.5", BSR3, 3, 0.25, 0.5, None),
    ("b-min-sep", "participation_rate: 0.25", BSR3, 3, 0.25, 0.5, None),
    ("b-min-sep", "dataset_size: 1000, expected_batch_size: 250", BSR3, 3, 0.25, 0.5, 250),
    ("b-min-sep, start: cold", "dataset_size: 1000, sampling_probability: 0.5", BSR3, 3, 0.25, 0.5, 250),
    ("b-min-sep, min_separation: 9", "participation_rate: 0.1", BSR3, 9, 0.1, 0.5, None),
    ("b-min-sep, min_separation: 9", "sampling_probability: 1", BSR3, 9, 1 / 9, 1, None),
    ("b-min-sep", "participation_rate: 0.25, sampling_probability: 0.5", BSR3, 3, 0.25, 0.5, None),
    (
        "b-min-sep",
        "participation_rate: 0.25, sampling_probability: 0.5, expected_batch_size: 2, dataset_size: 8",
        BSR3,
        3,
        0.25,
        0.5,
        2,
    ),
    ("b-min-sep", "sampling_probability: 0.5, expected_batch_size: 7", BSR3, 3, 0.25, 0.5, 7),
    ("b-min-sep", "sampling_probability: 0.5", "kind: toeplitz, coefficients: [1, 0, 0.5, 0]", 3, 0.25, 0.5, None),
    ("cyclic-poisson, partitions: 1", "sampling_probability: 0.125", "kind: identity", 1, 0.125, 0.125, None),
    ("cyclic-poisson", "sampling_probability: 0.75", BSR3, 3, 0.25, 0.75, None),
    ("cyclic-poisson", "participation_rate: 0.25", BSR3, 3, 0.25, 0.75, None),
    ("cyclic-poisson", "dataset_size: 1000, expected_batch_size: 250", BSR3, 3, 0.25, 0.75, 250),
    ("cyclic-poisson, partitions: 4", "dataset_size: 1000, participation_rate: 0.25", BSR3, 4, 0.25, 1, 250),
    ("cyclic-poisson", "participation_rate: 0.25, sampling_probability: 0.75", BSR3, 3, 0.25, 0.75, None),
]


@pytest.mark.parametrize("case", RATES)
def test_rates(case: tuple[str, str, str, int, float, float, float | None], tmp_path: Path, snapshot: Snapshot) -> None:
    sampler, training, matrix, b, rate, probability, batch = case
    body = body_of(tmp_path, sampler, training, matrix)
    assert body.separation() == b
    assert body.participation_rate() == pytest.approx(rate, rel=1e-14)
    assert body.sampling_probability() == pytest.approx(probability, rel=1e-14)
    assert body.expected_batch_size() == (None if batch is None else pytest.approx(batch, rel=1e-14))
    snapshot.raised(body.batch_size)


BINS = [
    # the sampler, the training section, T and the expected batch size
    ("balls-in-bins, bins: 8", "dataset_size: 80", 8, 10),
    ("balls-in-bins, bins: 8", "participation_rate: 0.125", 8, None),
    ("balls-in-bins, bins: 8", "expected_batch_size: 10", 8, 10),
    ("balls-in-bins, bins: 8", "dataset_size: 80, expected_batch_size: 10, participation_rate: 0.125", 8, 10),
    ("balls-in-bins, bins: 1", "dataset_size: 80", 1, 80),
    ("balls-in-bins, bins: 100", "dataset_size: 80", 100, 0.8),
    ("balls-in-bins", "participation_rate: 0.125", 8, None),
    ("balls-in-bins", "participation_rate: 1", 1, None),
    ("balls-in-bins", "participation_rate: 0.33333333333", 3, None),
    ("balls-in-bins", "dataset_size: 80, expected_batch_size: 10", 8, 10),
    ("balls-in-bins", "dataset_size: 10, expected_batch_size: 2.5", 4, 2.5),
]


@pytest.mark.parametrize(("sampler", "training", "count", "batch"), BINS)
def test_bins(sampler: str, training: str, count: int, batch: float | None, tmp_path: Path) -> None:
    body = body_of(tmp_path, sampler, training, BSR3)
    assert isinstance(body.sampler, BallsInBins)
    assert body.bins() == count
    assert isinstance(body.bins(), int)
    assert body.participation_rate() == body.sampling_probability() == 1 / count
    assert body.expected_batch_size() == (None if batch is None else pytest.approx(batch, rel=1e-14))
    assert body.separation() is None


def test_a_deterministic_order_has_neither_rate_nor_separation(tmp_path: Path, snapshot: Snapshot) -> None:
    body = body_of(tmp_path, "none, min_separation: 5", "dataset_size: 9")
    assert (body.separation(), body.expected_batch_size()) == (None, None)
    snapshot.raised(body.participation_rate)
    assert body_of(tmp_path, "none", "dataset_size: 9, expected_batch_size: 3").expected_batch_size() == 3


B = [1, 2, 3, 7, 10, 100, 1000, 16_384]


@pytest.mark.parametrize("b", B)
def test_the_two_ends_of_the_rate(b: int, tmp_path: Path) -> None:
    """The rate 1/b is that of probability 1, which nothing exceeds; b = 1 is Poisson sampling."""
    for kind in (f"b-min-sep, min_separation: {b}", f"cyclic-poisson, partitions: {b}"):
        full = body_of(tmp_path, kind, f"participation_rate: {1 / b!r}")
        assert full.sampling_probability() <= 1
        # Near the end, the conversion multiplies the rounding of the rate by b.
        assert full.sampling_probability() == pytest.approx(1, abs=1e-15 * b)
        above = body_of(tmp_path, kind, f"participation_rate: {min(1.0, (1 + 0.9 * RATE_AGREEMENT) / b)!r}")
        assert above.sampling_probability() == 1
        certain = body_of(tmp_path, kind, "sampling_probability: 1")
        assert certain.sampling_probability() == 1
        assert certain.participation_rate() == pytest.approx(1 / b, rel=1e-15)
    small = body_of(tmp_path, f"b-min-sep, min_separation: {b}", "sampling_probability: 1e-9")
    assert small.participation_rate() == pytest.approx(1e-9 / (1 + (b - 1) * 1e-9), rel=1e-14)


@pytest.mark.parametrize("p", [1e-9, 0.001, 0.3, 1.0])
def test_a_separation_of_one_is_poisson_sampling(p: float, tmp_path: Path) -> None:
    for kind in (
        "poisson",
        "b-min-sep",
        "b-min-sep, min_separation: 1",
        "cyclic-poisson",
        "cyclic-poisson, partitions: 1",
    ):
        for field in ("sampling_probability", "participation_rate"):
            body = body_of(tmp_path, kind, f"dataset_size: 1000, {field}: {p!r}")
            assert body.participation_rate() == pytest.approx(p, rel=1e-15)
            assert body.sampling_probability() == pytest.approx(p, rel=1e-15)
            assert body.expected_batch_size() == pytest.approx(1000 * p, rel=1e-15)


@pytest.mark.parametrize("b", B)
@pytest.mark.parametrize("p", [1e-7, 0.01, 0.37, 0.999, 1.0])
def test_conversion_there_and_back(b: int, p: float, tmp_path: Path) -> None:
    """A probability that is stated is used as it stands; its rate, stated instead, gives it back."""
    for kind, rate in (
        (f"b-min-sep, min_separation: {b}", 1 / (b - 1 + 1 / p)),
        (f"cyclic-poisson, partitions: {b}", p / b),
    ):
        body = body_of(tmp_path, kind, f"sampling_probability: {p!r}")
        assert body.sampling_probability() == p
        assert body.participation_rate() == pytest.approx(rate, rel=1e-14)
        back = body_of(tmp_path, kind, f"participation_rate: {body.participation_rate()!r}")
        assert back.sampling_probability() == pytest.approx(p, rel=1e-14 * (1 + b * p))
        # Both at once agree.
        both = body_of(
            tmp_path, kind, f"sampling_probability: {p!r}, participation_rate: {body.participation_rate()!r}"
        )
        assert both.sampling_probability() >= p


BANDS = [
    ("kind: identity", 1),
    (BSR3, 3),
    ("kind: optimal-toeplitz, bands: 7", 7),
    ("kind: toeplitz, coefficients: [1]", 1),
    ("kind: toeplitz, coefficients: [1, 0, 2, 0, 0]", 3),
    ("kind: dense, file: a.npy", None),
    ("kind: banded-square-root, bands: {choose: [3, 4]}", None),
    ("kind: {choose: [banded-square-root]}, bands: 4", 4),
    ("kind: {choose: [banded-square-root]}, bands: {choose: [4]}", None),
]


@pytest.mark.parametrize(("matrix", "width"), BANDS)
def test_bands(matrix: str, width: int | None, tmp_path: Path) -> None:
    # b-min-sep is refused where nothing says how far apart participations are.
    for kind in ("cyclic-poisson",) if "dense" in matrix else ("b-min-sep", "cyclic-poisson"):
        body = body_of(tmp_path, kind, "participation_rate: 0.1", matrix)
        assert body.matrix.diagonals() == body.separation() == width
    assert body_of(tmp_path, "none", "dataset_size: 7", matrix).matrix.diagonals() == width


REFUSED = [
    # the sampler, the training section, the matrix
    ("b-min-sep", "iterations: 9", BSR3),
    ("cyclic-poisson", "iterations: 9", BSR3),
    ("balls-in-bins", "iterations: 9", BSR3),
    ("balls-in-bins", "iterations: 9, dataset_size: 9", BSR3),
    ("b-min-sep", "iterations: 9, expected_batch_size: 1", BSR3),
    ("cyclic-poisson", "iterations: 9, expected_batch_size: 1", BSR3),
    ("balls-in-bins", "iterations: 9, expected_batch_size: 1", BSR3),
    ("b-min-sep", "iterations: 9, participation_rate: 0.34", BSR3),
    ("cyclic-poisson", "iterations: 9, participation_rate: 0.34", BSR3),
    ("b-min-sep, min_separation: 5", "iterations: 9, dataset_size: 100, expected_batch_size: 20.001", BSR3),
    (
        "b-min-sep, min_separation: 5",
        "iterations: 9, dataset_size: 100, expected_batch_size: 25, participation_rate: 0.25",
        BSR3,
    ),
    ("b-min-sep", f"iterations: 9, participation_rate: {(1 + 2 * RATE_AGREEMENT) / 3!r}", BSR3),
    ("b-min-sep", "iterations: 9, dataset_size: 100, expected_batch_size: 101", BSR3),
    ("b-min-sep", "iterations: 9, sampling_probability: 0.5, participation_rate: 0.26", BSR3),
    ("b-min-sep", "iterations: 9, participation_rate: 0.25, sampling_probability: 0.25", BSR3),
    ("b-min-sep", "iterations: 9, sampling_probability: 0.5, expected_batch_size: 26, dataset_size: 100", BSR3),
    ("cyclic-poisson", "iterations: 9, sampling_probability: 0.75, participation_rate: 0.3", BSR3),
    ("cyclic-poisson", "iterations: 9, participation_rate: 0.25, sampling_probability: 0.25", BSR3),
    ("cyclic-poisson", "iterations: 9, expected_batch_size: 25, dataset_size: 100, sampling_probability: 0.7", BSR3),
    ("b-min-sep, min_separation: 2", "iterations: 9, participation_rate: 0.1", BSR3),
    ("cyclic-poisson, partitions: 2", "iterations: 9, participation_rate: 0.1", BSR3),
    (
        "b-min-sep, min_separation: 2",
        "iterations: 9, participation_rate: 0.1",
        "kind: toeplitz, coefficients: [1, 0, 0.5, 0]",
    ),
    ("b-min-sep, min_separation: 3", "iterations: 9, participation_rate: 0.1", BSR3),
    (
        "b-min-sep, min_separation: 2",
        "iterations: 9, participation_rate: 0.1",
        "kind: toeplitz, coefficients: [1, 0.5, 0]",
    ),
    ("balls-in-bins, bins: 2", "iterations: 9", BSR3),
    ("none, min_separation: 2", "iterations: 9", BSR3),
    ("b-min-sep", "iterations: 2, participation_rate: 0.1", BSR3),
    ("none", "iterations: 2", "kind: optimal-toeplitz, bands: 3"),
    ("none", "iterations: 2", "kind: {choose: [optimal-toeplitz]}, bands: 3"),
    ("none", "iterations: 2", "kind: toeplitz, coefficients: [1, 1, 1]"),
    ("none", "iterations: 2", "kind: toeplitz, coefficients: [1, 1, 0]"),
    ("none", "iterations: 3", BSR3),
    ("none", "iterations: 3", "kind: toeplitz, coefficients: [0, 1]"),
    ("none", "iterations: 3", "kind: toeplitz, coefficients: [0.0]"),
    ("none", "iterations: 3", "kind: toeplitz, coefficients: [-0.0, 0]"),
    ("none", "iterations: 2", "kind: toeplitz, coefficients: [0, 1, 1]"),
    ("none", "iterations: 3", "kind: toeplitz, coefficients: [-1, .nan, 1e10]"),
    ("balls-in-bins", "iterations: 9, participation_rate: 0.3", BSR3),
    ("balls-in-bins", "iterations: 9, participation_rate: 0.7", BSR3),
    ("balls-in-bins", "iterations: 9, participation_rate: 0.33333333", BSR3),
    ("balls-in-bins", "iterations: 9, dataset_size: 100, expected_batch_size: 30", BSR3),
    ("balls-in-bins, bins: 5", "iterations: 9, participation_rate: 0.25", BSR3),
    ("balls-in-bins, bins: 5", "iterations: 9, dataset_size: 100, expected_batch_size: 25", BSR3),
    ("balls-in-bins", "iterations: 9, participation_rate: 0.25, dataset_size: 100, expected_batch_size: 20", BSR3),
    ("balls-in-bins", "iterations: 9, sampling_probability: 0.25", BSR3),
    ("balls-in-bins, bins: 4", "iterations: 9, sampling_probability: 0.25", BSR3),
    ("balls-in-bins, bins: 10", "iterations: 9", BSR3),
    ("balls-in-bins, bins: 9", "iterations: 9", BSR3),
    ("balls-in-bins, bins: 7", "iterations: 9", BSR3),
    # What is feasible, and what does not fit, is told with its numbers.
    ("b-min-sep, min_separation: 8", "iterations: 9, participation_rate: 0.2", BSR3),
    ("b-min-sep, min_separation: 8", "iterations: 9, dataset_size: 1000, expected_batch_size: 200", BSR3),
    ("none", "iterations: 9", "kind: optimal-toeplitz, bands: 10"),
    # Nothing is judged by what was reported.
    ("b-min-sep, min_separation: x", "iterations: 9, participation_rate: 0.9", BSR3),
    ("b-min-sep, min_separation: 2", "iterations: 9, participation_rate: 0.1", "kind: optimal-toeplitz, bands: x"),
    ("b-min-sep", "iterations: 9, participation_rate: 0.9", "kind: optimal-toeplitz, bands: -3"),
    ("b-min-sep", "iterations: x, participation_rate: 0.05", "kind: optimal-toeplitz, bands: 12"),
    ("b-min-sep", "iterations: 9, participation_rate: 2", BSR3),
    ("b-min-sep", "iterations: 9, participation_rate: 0.9", "kind: toeplitz, coefficients: 3"),
    ("b-min-sep", "iterations: 9, participation_rate: 0.9", "kind: toeplits, bands: 3"),
    ("balls-in-bins, bins: x", "iterations: 9, participation_rate: 0.3", BSR3),
    ("balls-in-bins, bins: 10", "iterations: x", BSR3),
    ("balls-in-bins", "iterations: 9, participation_rate: x", BSR3),
    ("cyclic-poisson, partitions: x", "iterations: 9, participation_rate: 0.9", BSR3),
    *(
        (kind, "iterations: 9, dataset_size: 9, expected_batch_size: 1, participation_rate: 0.2", BSR3)
        for kind in ("b-min-sep", "cyclic-poisson")
    ),
]


@pytest.mark.parametrize(("sampler", "training", "matrix"), REFUSED)
def test_rules(sampler: str, training: str, matrix: str, tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(outcome(tmp_path, spelled(sampler, training, matrix)))


@pytest.mark.parametrize(
    ("sampler", "training", "fixes"),
    [
        ("balls-in-bins", "dataset_size: 60_000, expected_batch_size: 256", {234: "256.41", 235: "255.319"}),
        (
            "balls-in-bins, bins: 240",
            "dataset_size: 60_000, expected_batch_size: 256",
            {240: "250", 234: "256.41", 235: "255.319"},
        ),
        ("balls-in-bins, bins: 240", "dataset_size: 60_000, expected_batch_size: 300", {200: "300", 240: "250"}),
        ("balls-in-bins", "dataset_size: 60_000, participation_rate: 0.3", {3: "1/3", 4: "1/4"}),
        # No more bins than rounds have a turn.
        ("balls-in-bins", "dataset_size: 60_000, expected_batch_size: 19", {2000: "30"}),
    ],
)
def test_bins_that_fit_can_be_typed_in(sampler: str, training: str, fixes: dict[int, str], tmp_path: Path) -> None:
    problems = problems_of(written(tmp_path, spelled(sampler, f"iterations: 2000, {training}")))
    allowed = problems[0].allowed
    assert problems[0].slug == "infeasible-rate"
    assert allowed is not None
    assert re.findall(r"bins: (\d+)", allowed) == [str(count) for count in fixes]
    for count, batch in fixes.items():
        assert f"bins: {count} (" in allowed
        assert f"{batch})" in allowed or f"{batch} of the records)" in allowed
        document = load_text(
            tmp_path, spelled(f"balls-in-bins, bins: {count}", "iterations: 2000, dataset_size: 60_000")
        )
        assert f"{document.run.expected_batch_size():.6g}" == batch or "/" in batch
    if "expected_batch_size: 300" in training:
        load_text(tmp_path, spelled("balls-in-bins, bins: 200", f"iterations: 2000, {training}"))
    else:
        assert allowed.endswith(f"without {training.split(', ')[1].split(':', 1)[0]}")


@pytest.mark.parametrize("sampler", ["b-min-sep, min_separation: 350", "cyclic-poisson, partitions: 350"])
@pytest.mark.parametrize(("field", "given"), [("expected_batch_size", "256"), ("participation_rate", "0.004")])
def test_the_largest_feasible_rate_can_be_typed_in(sampler: str, field: str, given: str, tmp_path: Path) -> None:
    training = "iterations: 2000, dataset_size: 60_000, {}: {}"
    (problem,) = problems_of(written(tmp_path, spelled(sampler, training.format(field, given))))
    assert problem.slug == "infeasible-rate"
    assert problem.allowed is not None
    assert problem.allowed == {"expected_batch_size": "at most 171", "participation_rate": "at most 0.00285714"}[field]
    load_text(tmp_path, spelled(sampler, training.format(field, problem.allowed.removeprefix("at most "))))


def test_blanks(tmp_path: Path, snapshot: Snapshot) -> None:
    """With a blank batch there is no rate yet; with blank iterations no number of rounds to fit into."""
    for kind in ("b-min-sep", "cyclic-poisson", "balls-in-bins"):
        text = edited({9: "  expected_batch_size: solve", 12: f"  kind: {kind}", 14: "  multiplier: 1"})
        document = load_text(tmp_path, text)
        for question in (TrainingNode.participation_rate, TrainingNode.sampling_probability):
            snapshot.raised(question, document.run)
        assert filled(document, 500).expected_batch_size() == 500
        assert filled(document, 500).participation_rate() == pytest.approx(0.01, rel=1e-15)
        text = edited(
            {10: "  iterations: solve", 12: f"  kind: {kind}", 14: "  multiplier: 1", 15: f"matrix: {{{BSR3}}}"}
        )
        assert load_text(tmp_path, text).blank == ("training", "iterations")
    for field in ("sampling_probability", "participation_rate"):
        training = f"iterations: 9, dataset_size: 9, expected_batch_size: solve, {field}: 0.1"
        text = spelled("b-min-sep", training).replace("multiplier: solve", "multiplier: 1")
        assert [it[:2] for it in found(tmp_path, text)] == [("contradiction", f"training.{field}")]


def filled(document: Document, batch: float) -> TrainingNode:
    return document.with_value(("training", "expected_batch_size"), batch).run


def test_every_body_of_a_phased_document_is_judged(tmp_path: Path, snapshot: Snapshot) -> None:
    text = """\
pyaccount: 1
name: phases
privacy: {adjacency: add-remove, epsilon: solve, delta: 1e-6}
phases:
  - training: {participation_rate: 0.5, iterations: 10}
    sampler: {kind: b-min-sep}
    matrix: {kind: banded-square-root, bands: 4}
    noise: {multiplier: 1}
  - training: {iterations: 10}
    sampler: {kind: balls-in-bins, bins: 11}
    matrix: {kind: toeplitz, coefficients: [0]}
    noise: {multiplier: 1}
"""
    snapshot(outcome(tmp_path, text))


def test_the_formula_of_b_min_sep(tmp_path: Path) -> None:
    """The long-run rate against the mean of the gaps: b − 1 rounds of rest and 1/p of waiting."""
    b, p = 5, 0.3
    gap = b - 1 + math.fsum(k * p * (1 - p) ** (k - 1) for k in range(1, 400))
    body = body_of(tmp_path, f"b-min-sep, min_separation: {b}", f"sampling_probability: {p}")
    assert body.participation_rate() == pytest.approx(1 / gap, rel=1e-13)


@pytest.mark.parametrize("matrix", [{"kind": "blt", "buffers": 2}, {"kind": "banded-inverse", "bands": 4}])
@pytest.mark.parametrize(
    "rate",
    [{"participation_rate": 0.02}, {"sampling_probability": 0.02}, {"dataset_size": 1000, "expected_batch_size": 20}],
    ids=["rate", "probability", "batch"],
)
def test_a_matrix_without_bands_does_not_say_how_far_apart_participations_are(
    matrix: dict[str, Any], rate: dict[str, Any], snapshot: Snapshot
) -> None:
    document = doc(
        "name='no separation' epsilon=2.0 delta=1e-2 sampler=b-min-sep multiplier=2.0",
        training=rate | {"iterations": 64},
        matrix=matrix,
    )
    snapshot.raised(pyaccount.load, document)
    assert pyaccount.load(document | {"sampler": {"kind": "b-min-sep", "min_separation": 8}})
