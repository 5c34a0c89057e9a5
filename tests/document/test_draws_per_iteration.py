"""`sampler.draws_per_iteration`: what may stand there, and what of it contradicts the rates."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from document_samples import BASE, edited, found, load_text, problems_of, written
from snapshots import Snapshot

import pyaccount
from pyaccount.document.notes import notes

DRAWS = BASE.replace("kind: poisson\n", "kind: poisson\n  draws_per_iteration: 4\n")


def test_it_is_one_unless_it_is_said(tmp_path: Path) -> None:
    body = load_text(tmp_path, BASE).run
    assert body.draws_per_iteration() == 1
    body = load_text(tmp_path, DRAWS).run
    assert body.draws_per_iteration() == 4
    # As those of every document that was written before there was such a key.
    assert load_text(tmp_path, BASE).to_mapping()["sampler"] == {"kind": "poisson"}


@pytest.mark.parametrize("value", ["0", "1001", "2.5", "solve", "yes"])
def test_what_it_may_not_be(value: str, tmp_path: Path, snapshot: Snapshot) -> None:
    # The rates are not judged by a number that is wrong already.
    text = edited({13: f"  draws_per_iteration: {value}", 9: "  expected_batch_size: 100_000"}, DRAWS)
    snapshot(problems_of(written(tmp_path, text)))


@pytest.mark.parametrize("sampler", ["fixed-size", "with-replacement", "none", "b-min-sep"])
def test_other_samplers_have_no_such_key(sampler: str, tmp_path: Path) -> None:
    text = DRAWS.replace("kind: poisson", f"kind: {sampler}")
    assert ("unknown-key", "sampler.draws_per_iteration", 13, 3) in found(tmp_path, text)


def test_a_batch_is_at_most_all_records_in_all_draws(tmp_path: Path, snapshot: Snapshot) -> None:
    load_text(tmp_path, DRAWS.replace("_size: 500", "_size: 200_000"))
    text = DRAWS.replace("_size: 500", "_size: 200_001")
    assert found(tmp_path, text) == [("contradiction", "training.expected_batch_size", 9, 24)]
    snapshot(problems_of(load_from(text)))


def load_from(text: str) -> dict[str, Any]:
    raw = yaml.safe_load(text)
    raw["privacy"]["delta"] = 1e-5
    return dict(raw)


def test_rates_that_agree_only_with_one_draw(tmp_path: Path) -> None:
    """0.01 in each of 4 draws is a batch of 2000; 0.0025 is one of 500."""
    text = DRAWS.replace("  iterations", "  sampling_probability: 0.01\n  iterations")
    assert found(tmp_path, text) == [("contradiction", "training.sampling_probability", 10, 25)]
    load_text(tmp_path, text.replace("0.01", "0.0025"))
    load_text(tmp_path, text.replace("sampling_probability", "participation_rate"))


def test_the_batch_is_told_to_be_that_of_all_draws(tmp_path: Path) -> None:
    (told,) = notes(load_text(tmp_path, DRAWS))
    assert "all 4 draws of an iteration together, 125 in each" in told
    assert not list(notes(load_text(tmp_path, BASE)))


def test_one_draw_of_a_mechanism_that_is_run_once(snapshot: Snapshot) -> None:
    document = {
        "pyaccount": 1,
        "kind": "amplification",
        "name": "once",
        "base": {"kind": "laplace", "multiplier": 1.0, "epsilon": [1.0]},
        "sampling": {"sampling_probability": 0.1},
        "sampler": {"kind": "poisson", "draws_per_iteration": 2},
    }
    snapshot.raised(pyaccount.amplify, document)


def test_a_key_of_other_libraries_leads_here(snapshot: Snapshot) -> None:
    raw = load_from(BASE)
    raw["training"]["gradient_accumulation_steps"] = 4
    snapshot(problems_of(raw))


def test_the_slip_of_a_letter(snapshot: Snapshot) -> None:
    raw = load_from(BASE)
    raw["sampler"]["draws_per_iterations"] = 4
    snapshot(problems_of(raw))
