"""The saved state of an accountant: what is written is read again, and nothing else is."""

import copy
import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accountant_samples import POISSON, ROUND, changed
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from snapshots import Snapshot

import pyaccount
from pyaccount import Accountant, schemas
from pyaccount.errors import StateError


@pytest.fixture
def ledger() -> Accountant:
    return Accountant(adjacency="add-remove", delta=1e-5, epsilon=3)


def test_states_survive_and_satisfy_their_schema(ledger: Accountant, tmp_path: Path) -> None:
    ledger.step(5, **ROUND)
    ledger.step(noise_multiplier=3)
    plan = Accountant(POISSON)
    plan.step(5)
    empty = Accountant(adjacency="add-remove", delta=1e-5, name="empty")
    validator = Draft202012Validator(schemas.schema("accountant-state"))
    for one in (ledger, plan, empty):
        path = tmp_path / "state.json"
        one.save(path)
        raw = json.loads(path.read_text(encoding="utf-8"))
        assert raw == one.state_dict()
        assert list(validator.iter_errors(raw)) == []
        again = Accountant.load(path)
        assert again.state_dict() == one.state_dict()
        assert (again.steps, repr(again)) == (one.steps, repr(one))
        if again.steps:
            assert again.epsilon_spent() == one.epsilon_spent()
    again = Accountant.load(tmp_path / "state.json")
    again.step(**ROUND)
    again.load_state_dict({**again.state_dict()})
    # More like the last rounds, which are known from the record.
    assert not again.would_exceed(10, epsilon=3)
    assert again.would_exceed(2000, epsilon=3)
    ledger.load_state_dict(ledger.state_dict())
    ledger.step(noise_multiplier=3)
    assert len(ledger.document()["phases"]) == 2
    assert ledger.would_exceed(epsilon=0.1)


def test_a_failed_write_leaves_the_last_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    path = tmp_path / "state.json"
    plan = Accountant(POISSON)
    plan.step(5)
    plan.save(path)
    plan.step(5)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    snapshot.raised(plan.save, path)
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]
    assert Accountant.load(path).steps == 5


def resealed(state: dict[str, Any]) -> dict[str, Any]:
    """A state that was edited, and its hash made to fit."""
    content = {key: value for key, value in state.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return content | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def plan_state(**changes: Any) -> dict[str, Any]:
    plan = Accountant(POISSON)
    plan.step(5)
    return {**plan.state_dict(), **changes}


@pytest.mark.parametrize(
    "state",
    [
        None,
        [],
        {},
        plan_state(kind="certificate"),
        plan_state(version=2),
        plan_state(version="1"),
        plan_state(version=True),
        plan_state(steps=-1),
        plan_state(steps=1.0),
        plan_state(steps="5"),
        plan_state(steps=4),
        plan_state(matrix_sha256=["0" * 64]),
        resealed(plan_state(matrix_sha256=["0" * 64])),
        resealed(plan_state(steps=1001)),
        plan_state(more=1),
        resealed(plan_state(mode="ledger")),
        plan_state(mode="ledger"),
        plan_state(document={}),
        plan_state(document={"x": math.nan}),
        plan_state(sha256="0" * 64),
        Accountant(changed(name="other")).state_dict(),
        Accountant(adjacency="add-remove", delta=1e-5).state_dict(),
    ],
    ids=lambda value: str(value)[:30],
)
def test_wrong_states_are_refused_and_change_nothing(state: Any, snapshot: Snapshot) -> None:
    plan = Accountant(POISSON)
    plan.step(7)
    snapshot.raised(plan.load_state_dict, state)
    assert plan.steps == 7


def ledger_state(edit: Any) -> dict[str, Any]:
    """The state of a ledger with its document edited, and the hash made to fit."""
    one = Accountant(adjacency="add-remove", delta=1e-5, epsilon=3)
    one.step(5, **ROUND)
    state = copy.deepcopy(one.state_dict())
    edit(state["document"])
    return resealed(state)


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d["privacy"].update(epsilon=4),
        lambda d: d.update(name="x"),
        lambda d: d.pop("phases"),
        lambda d: d.update(phases=[1]),
        lambda d: d["phases"].append({}),
        lambda d: d["phases"][0]["noise"].update(multiplier=-1),
        lambda d: d["phases"][0].update(name="x"),
        lambda d: d["phases"][0].update(count=7),
        lambda d: d["phases"][0].update(matrix={"kind": "identity"}),
        lambda d: d["phases"][0]["training"].update(iterations=6),
        lambda d: d["phases"][0]["training"].update(iterations="solve"),
        lambda d: d["phases"][0].update(sampler={"kind": "b-min-sep", "min_separation": 2}),
    ],
)
def test_wrong_ledgers_are_refused_and_change_nothing(ledger: Accountant, edit: Any, snapshot: Snapshot) -> None:
    state = ledger_state(edit)
    ledger.step(2, **ROUND)
    snapshot.raised(ledger.load_state_dict, state)
    assert ledger.steps == 2


def test_what_was_released_stays_released(ledger: Accountant, snapshot: Snapshot) -> None:
    plan = Accountant(POISSON)
    plan.step(250)
    early = plan.state_dict()
    plan.step(600)
    snapshot.raised(plan.load_state_dict, early)
    assert plan.steps == 850
    # A later state of the same run is taken up, and the same one too.
    later = Accountant(POISSON)
    for state in (early, early, plan.state_dict()):
        later.load_state_dict(state)
    assert later.steps == 850
    ledger.step(5, **ROUND)
    early = ledger.state_dict()
    other = Accountant(adjacency="add-remove", delta=1e-5, epsilon=3)
    other.load_state_dict(early)
    ledger.step(2, noise_multiplier=4)
    # As many rounds, but others; then more, but not the ones counted here.
    for more in (2, 5):
        other.step(more, **ROUND)
        with snapshot.raises(StateError):
            ledger.load_state_dict(other.state_dict())
    snapshot.raised(ledger.load_state_dict, early)
    assert ledger.steps == 7
    same = Accountant(adjacency="add-remove", delta=1e-5, epsilon=3)
    same.step(4, **ROUND)
    same.load_state_dict(ledger.state_dict())
    assert same.document() == ledger.document()


def test_a_file_with_more_rounds_of_the_run_is_not_replaced(
    ledger: Accountant, tmp_path: Path, snapshot: Snapshot
) -> None:
    path = tmp_path / "state.json"
    plan, late = Accountant(POISSON), Accountant(POISSON)
    late.step(9)
    late.save(path)
    plan.step(8)
    snapshot.raised(plan.save, path)
    assert Accountant.load(path).steps == 9
    plan.step(2)
    plan.save(path)
    assert Accountant.load(path).steps == 10
    # The state of another run is replaced as ever.
    ledger.step(2, **ROUND)
    ledger.save(path)
    other = Accountant(adjacency="add-remove", delta=1e-5, epsilon=3)
    other.step(3, noise_multiplier=9)
    snapshot.raised(other.save, path)
    assert Accountant.load(path).document() == ledger.document()
    path.write_text("", encoding="utf-8")
    other.save(path)
    assert Accountant.load(path).document() == other.document()


@pytest.mark.parametrize("content", [b"{}", b"pyaccount: 1\n", b"\x93NUMPY\xff", b'{"kind": "certificate"}', b"[]"])
def test_a_file_that_is_no_state_is_not_replaced(
    ledger: Accountant, tmp_path: Path, content: bytes, snapshot: Snapshot
) -> None:
    path = tmp_path / "training.yaml"
    path.write_bytes(content)
    snapshot.raised(ledger.save, path)
    assert path.read_bytes() == content


def test_a_damaged_state_is_replaced(ledger: Accountant, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{"kind": "accountant-state", "version": 2}', encoding="utf-8")
    ledger.save(path)
    assert Accountant.load(path).steps == ledger.steps


def in_folder(folder: Path, matrix: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The document of a run with a matrix, whose file is written to the folder that is gone to."""
    folder.mkdir(exist_ok=True)
    np.save(folder / "s.npy", matrix)
    monkeypatch.chdir(folder)
    privacy = {"adjacency": "zero-out", "epsilon": 60, "delta": 1e-6}
    matrix = {"kind": "dense", "file": "s.npy"}
    return changed(privacy=privacy, training={"iterations": 8}, sampler={"kind": "none"}, matrix=matrix)


def test_a_certificate_is_about_the_matrix_and_not_its_file_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    certificate = pyaccount.certify(in_folder(tmp_path / "one", np.tril(np.ones((8, 8))), monkeypatch))
    assert Accountant.from_certificate(certificate).planned_steps == 8
    in_folder(tmp_path / "two", np.eye(8), monkeypatch)
    snapshot.raised(Accountant.from_certificate, certificate)


def test_a_state_is_about_the_matrix_and_not_its_file_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    full = np.tril(np.ones((8, 8)))
    plan = Accountant(in_folder(tmp_path, full, monkeypatch))
    plan.step(3)
    plan.save("state.json")
    assert Accountant.load("state.json").steps == 3
    state = plan.state_dict()
    assert state["matrix_sha256"] == [hashlib.sha256(full.tobytes()).hexdigest()]
    document = in_folder(tmp_path, np.eye(8), monkeypatch)
    snapshot.raised(Accountant.load, "state.json")
    snapshot.raised(lambda: Accountant(document).load_state_dict(state))
    # Nor does an accountant that is at work take the matrix for the one it was planned with.
    for ask in (plan.document, plan.certificate, plan.epsilon_spent, plan.would_exceed):
        snapshot.raised(ask)
    in_folder(tmp_path, full, monkeypatch)
    assert plan.document()["matrix"] == document["matrix"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"kind": NaN}',
        b'{"kind": 1e999}',
        b"null",
        b'{"kind": "accountant-state"}',
    ],
)
def test_files_that_are_no_states(content: bytes, tmp_path: Path, snapshot: Snapshot) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    snapshot.raised(Accountant.load, path)


def test_files_that_are_not_there(tmp_path: Path, snapshot: Snapshot) -> None:
    for path in (tmp_path / "absent.json", tmp_path, "a\0b"):
        snapshot.raised(Accountant.load, path)


@pytest.fixture(scope="module")
def saved_text(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    one = Accountant(adjacency="add-remove", delta=1e-5, epsilon=3)
    one.step(5, **ROUND)
    one.step(2, noise_multiplier=9)
    path = tmp_path_factory.mktemp("states") / "state.json"
    one.save(path)
    return path.read_bytes()


@given(data=st.data())
@settings(max_examples=200)
def test_a_damaged_file_is_a_state_error_or_says_the_same(data: Any, saved_text: bytes, tmp_path_factory: Any) -> None:
    start = data.draw(st.integers(0, len(saved_text) - 1))
    stop = data.draw(st.integers(start, min(len(saved_text), start + 40)))
    text = saved_text[:start] + data.draw(st.binary(max_size=12)) + saved_text[stop:]
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    path.write_bytes(text)
    try:
        found = Accountant.load(path)
    except StateError:
        return
    assert found.state_dict() == json.loads(saved_text)
