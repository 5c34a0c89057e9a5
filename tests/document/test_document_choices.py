"""`choose:` lists: what they may stand beside, the candidates they leave, and how documents with them are written."""

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from document_samples import edited, load_text, outcome, problems_of
from plain_documents import doc
from snapshots import Snapshot

from pyaccount.document.document import Document
from pyaccount.document.loading import load

HEAD: dict[str, Any] = doc(
    "name=choices adjacency=add-remove epsilon=4 delta=1e-6 dataset_size=1000 participation_rate=0.1",
    "iterations=100 sampler=b-min-sep multiplier=solve",
)
BSR, BLT = "banded-square-root", "optimal-toeplitz"


def choosing(kind: Any, bands: Any, **changes: Any) -> dict[str, Any]:
    return {**HEAD, **changes, "matrix": {"kind": kind, "bands": bands}}


def chosen(document: Document) -> list[tuple[str, int]]:
    for candidate in document.candidates():
        assert candidate.choices == ()
        assert candidate.candidates() == [candidate]
    return [(it.run.matrix.kind, it.run.matrix.bands) for it in document.candidates()]


def test_a_document_without_choices_is_its_only_candidate() -> None:
    document = load(choosing(BSR, 4))
    assert document.choices == ()
    (candidate,) = document.candidates()
    assert candidate is document


def test_candidates_come_in_the_order_of_the_lists() -> None:
    bands = load(choosing(BSR, {"choose": [8, 2, 4]}))
    assert bands.choices == (("matrix", "bands"),)
    assert chosen(bands) == [(BSR, 8), (BSR, 2), (BSR, 4)]
    kinds = load(choosing({"choose": [BLT, BSR]}, 4))
    assert kinds.choices == (("matrix", "kind"),)
    assert chosen(kinds) == [(BLT, 4), (BSR, 4)]
    both = load(choosing({"choose": [BLT, BSR]}, {"choose": [4, 2]}))
    assert both.choices == (("matrix", "kind"), ("matrix", "bands"))
    assert chosen(both) == list(itertools.product([BLT, BSR], [4, 2]))
    assert chosen(load(choosing({"choose": [BSR]}, {"choose": [1]}))) == [(BSR, 1)]


def test_candidates_are_the_documents_with_the_choice_written_out() -> None:
    document = load(choosing({"choose": [BLT, BSR]}, {"choose": [4, 2]}))
    assert document.candidates() == [load(choosing(*pair)) for pair in itertools.product([BLT, BSR], [4, 2])]
    assert document.candidates()[0].blank == document.blank == ("noise", "multiplier")
    # What stands beside the choice stays.
    mapping = choosing({"choose": [BLT]}, {"choose": [4]})
    mapping["matrix"]["normalize"] = False
    (candidate,) = load(mapping).candidates()
    assert candidate.run.matrix.normalize is False


LEFT_OUT = [
    # the sampler, the training section, the bands to choose from, those that are left
    ({"kind": "b-min-sep"}, {"participation_rate": 0.2, "iterations": 100}, [2, 4, 5, 6, 8], [2, 4, 5]),
    ({"kind": "b-min-sep", "min_separation": 4}, {"participation_rate": 0.2, "iterations": 100}, [2, 4, 5], [2, 4]),
    ({"kind": "cyclic-poisson", "partitions": 4}, {"participation_rate": 0.2, "iterations": 100}, [2, 4, 5], [2, 4]),
    ({"kind": "cyclic-poisson"}, {"participation_rate": 0.2, "iterations": 100}, [6, 5], [5]),
    ({"kind": "b-min-sep"}, {"sampling_probability": 1, "iterations": 5}, [2, 5, 6], [2, 5]),
    ({"kind": "balls-in-bins", "bins": 3}, {"iterations": 5}, [2, 5, 6], [2, 5]),
    ({"kind": "none"}, {"iterations": 5}, [6, 5], [5]),
    (
        {"kind": "b-min-sep"},
        {"participation_rate": 0.25, "sampling_probability": 0.5, "iterations": 100},
        [2, 3, 4],
        [3],
    ),
]


@pytest.mark.parametrize(("sampler", "training", "bands", "left"), LEFT_OUT)
def test_candidates_that_contradict_themselves_are_left_out(
    sampler: dict[str, Any], training: dict[str, Any], bands: list[int], left: list[int]
) -> None:
    document = load(choosing(BLT, {"choose": bands}, sampler=sampler, training=training))
    assert chosen(document) == [(BLT, b) for b in left]
    either = load(choosing({"choose": [BLT, BSR]}, {"choose": bands}, sampler=sampler, training=training))
    assert chosen(either) == [(kind, b) for kind in (BLT, BSR) for b in left]


def test_no_candidate_at_all(tmp_path: Path, snapshot: Snapshot) -> None:
    """The problem is that of the first alternative, where the choice stands."""
    text = edited(
        {12: "  kind: b-min-sep\n  min_separation: 3", 15: f"matrix: {{kind: {BSR}, bands: {{choose: [8, 4]}}}}"}
    )
    document = load_text(tmp_path, text)
    snapshot.raised(document.candidates)
    document = load_text(
        tmp_path,
        edited({10: "  iterations: 3", 12: "  kind: none"}),
        [f"matrix={{kind: {BSR}, bands: {{choose: [8]}}}}"],
    )
    snapshot.raised(document.candidates)


NOT_SOLVED = [
    # what is changed beside the choice
    {14: "  multiplier: 1"},
    {5: "  epsilon: solve", 14: "  multiplier: 1"},
    {5: "  epsilon: solve"},
    # A multiplier that was reported is not one that is given.
    {14: "  multiplier: -1"},
    {14: "  multiplier: x"},
    {14: "  kind: gaussian"},
    {14: "  kind: cauchy\n  multiplier: 1"},
    {13: "noise: 3", 14: None},
]


@pytest.mark.parametrize("changes", NOT_SOLVED)
def test_a_choice_is_made_for_the_noise(changes: dict[int, str | None], tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(outcome(tmp_path, edited({16: f"matrix: {{kind: {BSR}, bands: {{choose: [8, 4]}}}}", **changes})))


def test_every_choice_needs_the_noise_to_be_solved(tmp_path: Path, snapshot: Snapshot) -> None:
    matrix = f"matrix: {{kind: {{choose: [{BSR}]}}, bands: {{choose: [8, 4]}}}}"
    snapshot(outcome(tmp_path, edited({14: "  multiplier: 1", 15: matrix})))


def test_choices_are_for_one_body(tmp_path: Path, snapshot: Snapshot) -> None:
    phase = {key: HEAD[key] for key in ("training", "sampler", "noise")}
    choosing_phase = phase | {"matrix": {"kind": BSR, "bands": {"choose": [4, 2]}}}
    head = {key: HEAD[key] for key in ("pyaccount", "name", "privacy")}
    alone = load(head | {"phases": [choosing_phase]})
    assert alone.choices == (("phases", 0, "matrix", "bands"),)
    assert chosen(alone) == [(BSR, 4), (BSR, 2)]
    snapshot(problems_of(head | {"phases": [phase | {"noise": {"multiplier": 1}}, choosing_phase]}))


MESSAGES = [
    {"choose": []},
    {"choose": [4, 4]},
    {"choose": [4, "4"]},
    {"choose": [4, 4.0]},
    {"choose": [4, float("nan")]},
    {"choose": [4, True]},
    {"choose": [4, None]},
    {"choose": [4, "solve"]},
    {"choose": [4, [8]]},
    {"choose": "48"},
    {},
    {"choose": [4], "chose": [4]},
    None,
]


@pytest.mark.parametrize("bands", MESSAGES)
def test_messages_about_numbers(bands: Any, snapshot: Snapshot) -> None:
    snapshot(problems_of(choosing(BSR, bands)))


KINDS = [
    {"choose": []},
    {"choose": None},
    {},
    {"choose": [BSR, BSR]},
    {"choose": [BSR, "identity"]},
    {"choose": [BSR, "dense"]},
    {"choose": [BSR, "optimal_toeplitz"]},
    {"choose": [BSR, 3]},
    {"choose": [BSR, None]},
    {"choose": [BSR, {"choose": [BLT]}]},
]


@pytest.mark.parametrize("kind", KINDS)
def test_messages_about_kinds(kind: Any, snapshot: Snapshot) -> None:
    snapshot(problems_of(choosing(kind, 4)))


ROUND_TRIPS: list[dict[str, Any]] = [
    HEAD | {"sampler": {"kind": "b-min-sep", "min_separation": 7, "start": "cold"}},
    HEAD | {"sampler": {"kind": "b-min-sep", "start": "warm"}},
    HEAD | {"sampler": {"kind": "balls-in-bins"}},
    HEAD | {"sampler": {"kind": "balls-in-bins", "bins": 10}},
    HEAD | {"sampler": {"kind": "cyclic-poisson", "partitions": 10}},
    choosing(BSR, 4),
    HEAD | {"matrix": {"kind": BLT, "bands": 4, "normalize": False}},
    HEAD | {"matrix": {"kind": "toeplitz", "coefficients": [1, 0.5, 0, 0.25], "normalize": True}},
    HEAD | {"sampler": {"kind": "balls-in-bins"}, "matrix": {"kind": "dense", "file": "folder/matrix.npy"}},
    choosing(BSR, {"choose": [8, 4]}),
    choosing({"choose": [BLT, BSR]}, 4),
    choosing({"choose": [BLT, BSR]}, {"choose": [8, 4]}),
    HEAD
    | {"accounting": {"method": "monte-carlo", "verification": "fixed-sample", "tolerance": 0.01, "seed": 2**64 - 1}},
]


@pytest.mark.parametrize("mapping", ROUND_TRIPS, ids=range(len(ROUND_TRIPS)))
def test_round_trip(mapping: dict[str, Any], tmp_path: Path) -> None:
    document = load(mapping)
    assert document.to_mapping() == mapping
    text = json.dumps(document.to_mapping())
    again = load_text(tmp_path, text)
    assert again == document == load(json.loads(text)) == load(document)
    assert again.to_mapping() == mapping
    canonical = json.dumps(mapping, sort_keys=True, separators=(",", ":"))
    assert again.sha256 == document.sha256 == hashlib.sha256(canonical.encode()).hexdigest()


def test_documents_that_say_different_things_have_different_hashes() -> None:
    assert len({load(mapping).sha256 for mapping in ROUND_TRIPS}) == len(ROUND_TRIPS)
    # The order of alternatives is the order in which ties are decided, so it says something.
    assert load(choosing(BSR, {"choose": [8, 4]})) != load(choosing(BSR, {"choose": [4, 8]}))
    assert load(choosing(BSR, {"choose": [4]})) != load(choosing(BSR, 4))


EQUIVALENT: list[tuple[Any, Any]] = [
    ({"choose": [8, 4]}, {"choose": ["8", 4.0]}),
    ({"choose": [8, 4]}, {"choose": (8, "4e0")}),
    ({"choose": [1000]}, {"choose": ["1_000"]}),
    (4, "0x4"),
]


@pytest.mark.parametrize(("first", "second"), EQUIVALENT)
def test_the_spelling_of_alternatives_says_nothing(first: Any, second: Any) -> None:
    training = HEAD["training"] | {"iterations": 2000, "participation_rate": 1e-4}
    one, other = load(choosing(BSR, first, training=training)), load(choosing(BSR, second, training=training))
    assert one == other
    assert one.sha256 == other.sha256


def test_the_hash_of_a_choice_is_pinned() -> None:
    text = (
        '{"matrix":{"bands":{"choose":[8,4]},"kind":{"choose":["optimal-toeplitz","banded-square-root"]}},'
        '"name":"choices","noise":{"multiplier":"solve"},'
        '"privacy":{"adjacency":"add-remove","delta":1e-06,"epsilon":4},"pyaccount":1,"sampler":{"kind":"b-min-sep"},'
        '"training":{"dataset_size":1000,"iterations":100,"participation_rate":0.1}}'
    )
    document = load(choosing({"choose": [BLT, BSR]}, {"choose": [8, 4]}))
    assert document.sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_overrides_make_and_unmake_choices(tmp_path: Path) -> None:
    single, several = load(choosing(BSR, 4)), load(choosing(BSR, {"choose": [8, 4]}))
    assert load(single, overrides=["matrix.bands={choose: [8, 4]}"]) == several
    assert load(several, overrides=["matrix.bands=4"]) == single
    assert load(several, overrides=["matrix.bands.choose[0]=2"]).candidates()[0] == load(choosing(BSR, 2))
    assert load(single, overrides=[f"matrix.kind={{choose: [{BLT}]}}"]) == load(choosing({"choose": [BLT]}, 4))
    assert several.with_value(("matrix", "bands"), 4) == single
