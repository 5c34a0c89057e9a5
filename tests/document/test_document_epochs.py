"""Epochs where iterations may stand: how many rounds they are, what contradicts them, and what is refused."""

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from document_samples import BASE, edited, load_text, problems_of, written
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_documents import doc
from snapshots import Snapshot

from pyaccount.adapters import opacus
from pyaccount.document.loading import load
from pyaccount.document.notes import notes
from pyaccount.document.rates import epochs_of, iterations_of

POISSON = {"kind": "poisson"}
BSR4 = {"kind": "banded-square-root", "bands": 4}


def mapping(sampler: dict[str, Any], training: dict[str, Any], **sections: Any) -> dict[str, Any]:
    return doc(sections, name="epochs", epsilon=4, delta=1e-6, training=training, sampler=sampler, multiplier="solve")


LENGTHS = [
    # the sampler, the training section, then the iterations, by hand
    (POISSON, {"dataset_size": 50_000, "expected_batch_size": 500, "epochs": 20}, 2000),
    (POISSON, {"dataset_size": 50_000, "expected_batch_size": 256, "epochs": 10}, 1954),
    (POISSON, {"dataset_size": 50_000, "expected_batch_size": 256, "epochs": 0.5}, 98),
    (POISSON, {"sampling_probability": 0.07, "epochs": 7}, 100),  # 7/0.07 is a little more than 100 in doubles
    (POISSON, {"sampling_probability": 1 / 235, "epochs": 10}, 2350),
    (POISSON, {"sampling_probability": 1 / 93, "epochs": 1}, 93),  # where 1/rate in doubles is a little less
    (POISSON, {"participation_rate": 0.3, "epochs": 1}, 4),
    (POISSON, {"sampling_probability": 1, "epochs": 3}, 3),
    (POISSON, {"sampling_probability": 0.5, "epochs": 1e-9}, 1),
    ({"kind": "fixed-size"}, {"dataset_size": 1000, "expected_batch_size": 300, "epochs": 3}, 10),
    ({"kind": "with-replacement"}, {"dataset_size": 10, "expected_batch_size": 30, "epochs": 7}, 3),
    ({"kind": "must-ow", "subset_size": 9}, {"dataset_size": 10, "expected_batch_size": 4, "epochs": 1}, 3),
    ({"kind": "balls-in-bins", "bins": 24}, {"epochs": 10}, 240),
    ({"kind": "balls-in-bins", "bins": 24}, {"epochs": 1.01}, 25),
    ({"kind": "balls-in-bins"}, {"participation_rate": 1 / 3, "epochs": 7}, 21),
    ({"kind": "balls-in-bins"}, {"dataset_size": 12_000, "expected_batch_size": 500, "epochs": 10}, 240),
    ({"kind": "b-min-sep", "min_separation": 4}, {"sampling_probability": 0.25, "epochs": 3}, 21),
    ({"kind": "b-min-sep", "min_separation": 4}, {"participation_rate": 0.125, "epochs": 3}, 24),
    ({"kind": "cyclic-poisson", "partitions": 4}, {"sampling_probability": 0.5, "epochs": 3}, 24),
    ({"kind": "cyclic-poisson", "partitions": 4}, {"sampling_probability": 1, "epochs": 3}, 12),
    ({"kind": "none"}, {"dataset_size": 50_000, "expected_batch_size": 256, "epochs": 10}, 1960),
    ({"kind": "none"}, {"dataset_size": 50_000, "expected_batch_size": 256, "epochs": 0.1}, 20),
    ({"kind": "none"}, {"dataset_size": 7, "expected_batch_size": 7, "epochs": 5}, 5),
]


@pytest.mark.parametrize(("sampler", "training", "rounds"), LENGTHS)
def test_epochs_are_iterations(
    sampler: dict[str, Any], training: dict[str, Any], rounds: int, snapshot: Snapshot
) -> None:
    document = load(mapping(sampler, training))
    body = document.run
    assert body.training.iterations == rounds
    assert isinstance(body.training.iterations, int)
    assert body.epochs == training["epochs"]
    # What was written is what is kept, hashed and recorded.
    assert document.to_mapping()["training"] == training
    assert load(document.to_mapping()) == document
    # Beside the same number of iterations they are no contradiction; another document all the same.
    both = load(mapping(sampler, {**training, "iterations": rounds}))
    assert both.phases == document.phases
    assert both != document
    for other in (rounds - 1, rounds + 1):
        if other > 0 and sampler["kind"] != "balls-in-bins":
            snapshot(problems_of(mapping(sampler, {**training, "iterations": other})))


def test_bands_say_how_far_apart_an_epoch_takes_them(snapshot: Snapshot) -> None:
    document = load(mapping({"kind": "cyclic-poisson"}, {"sampling_probability": 0.5, "epochs": 3}, matrix=BSR4))
    assert document.run.training.iterations == 24
    chosen = {"kind": "banded-square-root", "bands": {"choose": [2, 4]}}
    snapshot(problems_of(mapping({"kind": "b-min-sep"}, {"sampling_probability": 0.5, "epochs": 3}, matrix=chosen)))
    # A rate says what an epoch is whatever is chosen.
    document = load(mapping({"kind": "b-min-sep"}, {"participation_rate": 0.1, "epochs": 3}, matrix=chosen))
    assert {body.training.iterations for one in document.candidates() for body in one.runs()} == {30}


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.decimals(Decimal("0.001"), Decimal(1000), places=3))
@settings(max_examples=300, deadline=None)
def test_rounded_up_in_decimal_arithmetic(records: int, batch: int, epochs: Decimal) -> None:
    """The oracle knows neither fractions nor doubles: decimals of sixty digits."""
    batch = min(batch, records)
    with localcontext() as context:
        context.prec = 60
        exact = epochs * records / batch
        expected = int(exact.to_integral_value(ROUND_CEILING))
        nearest = int(exact.to_integral_value())
        if abs(exact - nearest) <= exact * Decimal("1e-9"):
            expected = max(1, nearest)
    length = Fraction(records, batch)
    found = iterations_of(float(epochs), length)
    assert found == expected
    # At least what was asked for, and less than a round more, but for the rounding of rates.
    assert epochs_of(found, length) >= float(epochs) * (1 - 1e-9)
    assert epochs_of(found - 1, length) < float(epochs) * (1 + 1e-9)


REFUSED = [
    # the sampler, the training section; the slug, the path and a word of the message
    (POISSON, {"sampling_probability": 0.1, "epochs": "solve"}),
    (POISSON, {"sampling_probability": 0.1, "epochs": 0}),
    (POISSON, {"sampling_probability": 0.1, "epochs": None}),
    (POISSON, {"sampling_probability": 0.1, "epochs": "ten"}),
    (POISSON, {"sampling_probability": 1e-6, "epochs": 1e6}),
    (POISSON, {"sampling_probability": 0.1}),
    (POISSON, {"epochs": 3}),
    (POISSON, {"epochs": 3, "expected_batch_size": 5}),
    ({"kind": "none"}, {"epochs": 3, "dataset_size": 5}),
    ({"kind": "none"}, {"epochs": 3, "expected_batch_size": 5}),
    (
        {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "single", "min_separation": 2},
        {"sampling_probability": 0.1, "epochs": 3},
    ),
]


@pytest.mark.parametrize(("sampler", "training"), REFUSED)
def test_epochs_that_say_no_number_of_rounds(
    sampler: dict[str, Any], training: dict[str, Any], snapshot: Snapshot
) -> None:
    snapshot(problems_of(mapping(sampler, training)))


@pytest.mark.parametrize("field", ["iterations", "expected_batch_size"])
def test_a_blank_that_epochs_would_fix(field: str, snapshot: Snapshot) -> None:
    training = {"dataset_size": 100, "expected_batch_size": 10, "epochs": 3, field: "solve"}
    snapshot(problems_of(mapping(POISSON, training, noise={"multiplier": 1})))


def test_phases_count_for_themselves(snapshot: Snapshot) -> None:
    phases = [
        {"training": {"sampling_probability": 0.1, "epochs": 2}, "sampler": POISSON, "noise": {"multiplier": 1}},
        {"training": {"sampling_probability": 0.1, "iterations": 7}, "sampler": POISSON, "noise": {"multiplier": 1}},
    ]
    head = {"pyaccount": 1, "name": "p", "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-6}}
    document = load({**head, "phases": phases})
    assert [(body.training.iterations, body.epochs) for body in document.runs()] == [(20, 2.0), (7, None)]
    del phases[1]["training"]["iterations"]  # type: ignore[attr-defined]
    snapshot(problems_of({**head, "phases": phases}))


OVERRIDES = [
    # what the document says, the overrides, what then counts
    ("iterations: 2000", ["training.epochs=3"], (300, 3.0)),
    ("epochs: 3", ["training.iterations=7"], (7, None)),
    ("epochs: 3", ["training.epochs=4"], (400, 4.0)),
    ("epochs: 3", ["training.expected_batch_size=250"], (600, 3.0)),
    ("iterations: 2000", ["training.epochs=3", "training.iterations=300"], (300, 3.0)),
    ("iterations: 2000", ["training.iterations=300", "training.epochs=3"], (300, 3.0)),
    ("iterations: solve", ["training.epochs=3"], (300, 3.0)),
]


@pytest.mark.parametrize(("said", "overrides", "counted"), OVERRIDES)
def test_an_override_replaces_the_other_way_to_say_it(
    said: str, overrides: list[str], counted: tuple[int, float | None], tmp_path: Path
) -> None:
    text = edited({10: f"  {said}", 14: "  multiplier: 1" if "solve" in said else "  multiplier: solve"})
    body = load_text(tmp_path, text, overrides).run
    assert (body.training.iterations, body.epochs) == counted


def test_overrides_that_contradict_one_another(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(problems_of(written(tmp_path, BASE), ["training.epochs=3", "training.iterations=7"]))
    # In a file both stay, and are held against one another.
    snapshot(problems_of(written(tmp_path, edited({10: "  iterations: 2000\n  epochs: 3"}))))


def test_documents_in_iterations_stay_what_they_were(tmp_path: Path) -> None:
    """The hash is pinned: it is in certificates."""
    document = load_text(tmp_path, BASE)
    assert document.to_mapping()["training"] == {"dataset_size": 50_000, "expected_batch_size": 500, "iterations": 2000}
    assert document.sha256 == "a7f1b81da62cfdaa0f4091bb9b9ab9c0771af9af08ad8913738305e2c24a53e5"
    assert document.run.epochs is None


def test_an_epoch_of_a_body() -> None:
    body = load(mapping(POISSON, {"dataset_size": 50_000, "expected_batch_size": 256, "iterations": 5})).run
    assert body.epoch() == Fraction(50_000, 256)
    body = load(mapping({"kind": "none"}, {"iterations": 5})).run
    assert body.epoch() is None


NOTED = [
    (POISSON, {"dataset_size": 50_000, "expected_batch_size": 256, "epochs": 10}, ["195.3125", "1_954", "10.00448", "1_960"]),
    (POISSON, {"dataset_size": 50_000, "expected_batch_size": 500, "epochs": 10}, []),
    (POISSON, {"sampling_probability": 1 / 235, "epochs": 10}, []),
    ({"kind": "none"}, {"dataset_size": 50_000, "expected_batch_size": 256, "epochs": 10}, ["max_participations: 10"]),
    (
        {"kind": "none", "max_participations": 10},
        {"dataset_size": 50_000, "expected_batch_size": 256, "epochs": 10},
        [],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("sampler", "training", "words"), NOTED)
def test_notes_on_epochs(sampler: dict[str, Any], training: dict[str, Any], words: list[str]) -> None:
    told = list(notes(load(mapping(sampler, training))))
    assert len(told) == (1 if words else 0)
    for word in words:
        assert word in told[0]


def test_the_rate_and_the_steps_of_opacus() -> None:
    """1/len(DataLoader) is 1/⌈N/B⌉; the expected batch of the same name is another run."""
    records, batch, epochs = 60_000, 256, 10
    steps = -(-records // batch)
    theirs = load(mapping(POISSON, {"sampling_probability": 1 / steps, "epochs": epochs}))
    assert theirs.run.training.iterations == steps * epochs == 2350
    ours = load(mapping(POISSON, {"dataset_size": records, "expected_batch_size": batch, "epochs": epochs}))
    assert ours.run.training.iterations == 2344
    read = opacus.from_history([(1.1, 1 / steps, steps * epochs)], delta=1e-5)
    assert read["training"] == {"sampling_probability": 1 / steps, "iterations": 2350}
