"""Snapshots: what is missing, other or left over fails, and every section belongs to a test."""

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from places import ROOT
from snapshots import COLLECTED, Done, Snapshot, file_of, read, shown

import pyaccount
from pyaccount.errors import Problem

FILES = sorted((ROOT / "tests").glob("*/snapshots/*.txt"))


def section(folder: Path, name: str, *, update: bool = False, tests: tuple[str, ...] = ("one", "two")) -> Snapshot:
    """Return the section of a test of a module with these tests."""
    module = folder / "test_module.py"
    config = SimpleNamespace(getoption=lambda _: update, stash={COLLECTED: {module: list(tests)}})
    request: Any = SimpleNamespace(config=config, node=SimpleNamespace(path=module, name=f"test_{name}"))
    return Snapshot(request, folder)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with the snapshots of two tests, the second of which was written first."""
    for name, values in (("two", ["c"]), ("one", [f"{tmp_path}/x/a ", "=== b\n---\nmore"])):
        made = section(tmp_path, name, update=True)
        for value in values:
            made(value)
        made.close()
    return tmp_path


def test_files_are_written_in_the_order_of_the_tests(written: Path) -> None:
    sections = read(file_of(written / "test_module.py"))
    assert list(sections) == ["one", "two"]
    assert sections["one"] == ["<tmp>/a", " === b\n ---\nmore"]
    same = section(written, "one")
    same(f"{written}/y/a")
    same("=== b\n---\nmore")
    same.close()


def test_what_is_missing_other_or_left_over_fails(written: Path) -> None:
    two = section(written, "two")
    with pytest.raises(pytest.fail.Exception, match=r"\n-c\n\+d"):
        two("d")
    with pytest.raises(pytest.fail.Exception, match="no snapshot"):
        two("e")
    with pytest.raises(pytest.fail.Exception, match="more parts of one than its test shows"):
        section(written, "one").close()
    with pytest.raises(pytest.fail.Exception, match="whose tests are gone: two"):
        section(written, "one", tests=("one",))
    made = section(written, "one", update=True, tests=("one",))
    made("a")
    made.close()
    assert read(file_of(written / "test_module.py")) == {"one": ["a"]}
    with pytest.raises(pytest.fail.Exception, match="nothing was raised"):
        made.raised(str)


def test_a_problem_is_shown_with_all_that_it_says() -> None:
    problem = Problem("out-of-range", "too large", ("a", 0), "f.yaml", 3, 4, 7, "at most 6", "6")
    said = "f.yaml:3:4: a[0] = 7 [out-of-range]\n    too large\n    allowed: at most 6\n    did you mean 6?"
    assert shown([problem]) == said
    assert shown(pyaccount.DocumentError([problem])) == f"DocumentError\n{said}"
    assert shown(ValueError("no")) == "ValueError: no"
    assert shown(Done(2, "a\nb\n", "c\n")) == "exit 2\n  a\n  b\n! c"


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.parent.name}/{file.stem}")
def test_every_section_belongs_to_a_test(file: Path) -> None:
    tree = ast.parse((file.parent.parent / f"{file.stem}.py").read_text(encoding="utf-8"))
    tests = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and "snapshot" in {argument.arg for argument in node.args.args}
    }
    assert {f"test_{name.partition('[')[0]}" for name in read(file)} <= tests
