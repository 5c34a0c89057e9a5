"""Sweeps as they are written: what varies, in which order, and what is refused with its place."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from plain_documents import document
from snapshots import Snapshot

import pyaccount
from pyaccount.document.sweeps import load_grid
from pyaccount.errors import DocumentError, Problem


def grid(vary: Any, **changes: Any) -> dict[str, Any]:
    return {**document(**changes), "vary": vary}


def settings(vary: Any) -> list[list[Any]]:
    return [list(cell.settings.values()) for cell in load_grid(grid(vary)).cells()]


def refused(source: Any, **options: Any) -> Problem:
    with pytest.raises(DocumentError) as caught:
        load_grid(source, **options)
    return caught.value.problems[0]


def test_mappings_are_crossed_and_what_stands_in_one_goes_together() -> None:
    crossed = settings({"noise.multiplier": [1, 2], "privacy.delta": [1e-6, 1e-5, 1e-4]})
    assert crossed == [[1, 1e-6], [1, 1e-5], [1, 1e-4], [2, 1e-6], [2, 1e-5], [2, 1e-4]]
    together = [{"noise.multiplier": [1, 2], "training.iterations": [10, 20]}, {"privacy.delta": [1e-6, 1e-5]}]
    assert settings(together) == [[1, 10, 1e-6], [1, 10, 1e-5], [2, 20, 1e-6], [2, 20, 1e-5]]


@pytest.mark.parametrize(
    ("span", "numbers"),
    [
        ({"start": 1, "stop": 4, "count": 4}, [1, 2, 3, 4]),
        ({"start": 1, "stop": 2, "count": 3}, [1, 1.5, 2]),
        ({"start": 4, "stop": 1, "count": 2}, [4, 1]),
        ({"start": 2, "stop": 2, "count": 1}, [2]),
        ({"start": 1, "stop": 8, "count": 4, "spacing": "log"}, [1, 2, 4, 8]),
        ({"start": 1e-3, "stop": 1e3, "count": 3, "spacing": "log"}, [0.001, 1, 1000]),
        ({"start": 0.1, "stop": 0.5, "step": 0.1}, [0.1, 0.2, 0.3, 0.4, 0.5]),
        ({"start": 0, "stop": 5, "step": 2}, [0, 2, 4]),
        ({"start": 5, "stop": 0, "step": -2}, [5, 3, 1]),
        ({"start": "1_000", "stop": "2e3", "step": 500}, [1000, 1500, 2000]),
    ],
)
def test_spans_are_the_numbers_that_they_say(span: dict[str, Any], numbers: list[float]) -> None:
    found = [values[0] for values in settings({"noise.multiplier": span})]
    assert found == numbers
    # Whole ones are whole: fields that count rounds take them.
    assert [type(one) for one in found] == [type(one) for one in numbers]


def test_cells_are_the_documents_that_overrides_make() -> None:
    source = grid({"noise.multiplier": [1, 2], "training.iterations": [100, 300]})
    cells = list(load_grid(source, overrides=["privacy.delta=1e-5"]).cells())
    for cell in cells:
        said = [f"{path}={value}" for path, value in cell.settings.items()]
        assert cell.document() == pyaccount.load(document(), overrides=["privacy.delta=1e-5", *said])
    assert [cell.place for cell in cells] == [0, 1, 2, 3]
    # Epochs take the place of iterations, as an override's do.
    assert load_grid(grid({"training.epochs": [1, 2]})).cell(1).document().run.training.iterations == 200


def test_lists_of_documents(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(document(name="one")), encoding="utf-8")
    listing = {"pyaccount": 1, "kind": "sweep", "name": "both", "documents": ["one.yaml", document(name="other")]}
    (tmp_path / "sweep.yaml").write_text(
        yaml.safe_dump({**listing, "vary": {"noise.multiplier": [1, 2]}}), encoding="utf-8"
    )
    found = load_grid(str(tmp_path / "sweep.yaml"))
    assert (found.name, len(found)) == ("both", 4)
    assert [(cell.document().name, cell.settings["noise.multiplier"]) for cell in found.cells()] == [
        ("one", 1),
        ("one", 2),
        ("other", 1),
        ("other", 2),
    ]
    assert found.files == (str(tmp_path / "sweep.yaml"), str(tmp_path / "one.yaml"))
    assert [cell.name for cell in load_grid([document(name="a"), str(tmp_path / "one.yaml")]).cells()] == ["a", "one"]


@pytest.mark.parametrize(
    "vary",
    [
        {"noise.multiplier": []},
        {"noise.multiplier": [1, 1.0]},
        {"noise.multiplier": 3},
        {"noise": {"multiplier": [1]}},
        {"noise..multiplier": [1]},
        {"noise.multiplier": {"start": 1, "stop": 0, "step": 1}},
        {"noise.multiplier": {"start": 1, "stop": 3, "step": 0}},
        {"noise.multiplier": {"start": 1, "stop": 3, "count": 1}},
        {"noise.multiplier": {"start": 1, "stop": 1, "count": 3}},
        {"noise.multiplier": {"start": 1, "stop": 3}},
        {"noise.multiplier": {"start": 1, "stop": 3, "count": 2, "step": 1}},
        {"noise.multiplier": {"start": 0, "stop": 3, "count": 2, "spacing": "log"}},
        {"noise.multiplier": {"start": 1, "stop": 9, "step": 1, "spacing": "log"}},
        {"noise.multiplier": {"start": 0, "stop": 1, "step": 1e-9}},
        {"noise.multiplier": {"start": 1, "stp": 3, "count": 2}},
        [{"noise.multiplier": [1, 2], "privacy.delta": [1e-6]}],
        {"noise.multiplier": [1, 2], "noise": [{"multiplier": 3}]},
        [{"privacy.delta": [1e-6]}, {"privacy.delta": [1e-5]}],
        [["noise.multiplier"]],
        {},
        None,
    ],
)
def test_what_cannot_vary_is_refused_where_it_stands(vary: Any, snapshot: Snapshot) -> None:
    snapshot(refused(grid(vary)))


def test_problems_have_lines(tmp_path: Path, snapshot: Snapshot) -> None:
    text = (
        yaml.safe_dump(document())
        + "vary:\n  noise.multiplier: [1, 2]\n  privacy.delta: {start: 1, stop: 0, step: 1}\n"
    )
    (tmp_path / "sweep.yaml").write_text(text, encoding="utf-8")
    snapshot(refused(str(tmp_path / "sweep.yaml")))
    # A value that no cell can have is found where it stands too.
    text = text.replace("{start: 1, stop: 0, step: 1}", "[half, third]")
    (tmp_path / "sweep.yaml").write_text(text, encoding="utf-8")
    snapshot(refused(str(tmp_path / "sweep.yaml")))


@pytest.mark.parametrize(
    "source",
    [
        document(),
        {"pyaccount": 1, "kind": "sweep"},
        {"pyaccount": 1, "kind": "sweep", "documents": []},
        {"pyaccount": 1, "kind": "sweep", "documents": [3]},
        {"pyaccount": 1, "kind": "sweep", "documents": ["nowhere.yaml"]},
        {"pyaccount": 1, "kind": "sweep", "documents": [grid({"noise.multiplier": [1]})]},
        {"pyaccount": 1, "kind": "sweep", "documents": [{"kind": "sweep"}]},
        {"pyaccount": 1, "kind": "sweep", "documnts": [document()]},
        [],
        [3, document()],
    ],
)
def test_what_is_no_sweep_is_refused(source: Any, snapshot: Snapshot) -> None:
    if source == [3, document()]:
        snapshot.raised(load_grid, source)
        return
    snapshot(refused(source))


def test_a_document_wrong_in_every_cell_is_wrong_and_in_some_it_is_not(snapshot: Snapshot) -> None:
    assert refused(grid({"noise.multiplir": [1, 2]})).slug == "unknown-key"
    found = load_grid(grid({"training.iterations": [0, 10]}))
    snapshot.raised(lambda: found.cell(0).document())
    assert found.cell(1).document().run.training.iterations == 10


@pytest.mark.parametrize(
    ("path", "values", "override"),
    [
        ("noise.multiplier", [1, 2], "noise.multiplier=3"),
        ("noise", [{"multiplier": 1}, {"multiplier": 2}], "noise.multiplier=3"),
        ("noise.multiplier", [1, 2], "noise={multiplier: 3}"),
        ("training.epochs", [1, 2], "training.iterations=7"),
    ],
)
def test_what_varies_is_not_set(path: str, values: list[Any], override: str, snapshot: Snapshot) -> None:
    snapshot(refused(grid({path: values}), overrides=[override]))


def test_certify_names_the_command_that_reads_sweeps(snapshot: Snapshot) -> None:
    for source in (grid({"noise.multiplier": [1, 2]}), {"pyaccount": 1, "kind": "sweep", "documents": [document()]}):
        snapshot.raised(pyaccount.load, source)


def test_a_grid_of_a_million_cells_takes_no_room() -> None:
    span = {"start": 1, "stop": 1000, "count": 1000}
    found = load_grid(grid({"noise.multiplier": span, "training.iterations": span}))
    assert len(found) == 10**6
    assert found.cell(999_999).settings == {"noise.multiplier": 1000, "training.iterations": 1000}
