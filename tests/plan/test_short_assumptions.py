"""The short forms of assumptions: each has one, which fits a line of a screen."""

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import EXAMPLES

import pyaccount
from pyaccount.document.document import Document
from pyaccount.document.loading import load_any
from pyaccount.document.words import ADJACENCIES, Assumed
from pyaccount.plan.amplification import compile_amplification
from pyaccount.plan.compiling import compile_document

#: A bullet and this many cells are a line of 80.
MOST = 76
PACKAGE = Path(pyaccount.__file__).parent


def written() -> Iterator[tuple[str, ast.expr]]:
    """Every short form in the source of the plans and of certificates."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Assumed":
                yield from ((f"{path.name}:{node.lineno}", form) for form in node.args[1:])


def length(form: ast.expr) -> int:
    """The length of a short form whose placeholders, if it has some, have six characters."""
    if isinstance(form, ast.JoinedStr):
        return sum(length(part) for part in form.values)
    if isinstance(form, ast.Constant):
        return sum(len(text) + 6 * (name is not None) for text, name, *_ in string.Formatter().parse(str(form.value)))
    return 6


def test_every_short_form_in_the_source_fits_a_line() -> None:
    forms = dict(written())
    assert len(forms) > 60
    assert {place: length(form) for place, form in forms.items() if length(form) > MOST} == {}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_assumptions_of_the_examples(path: Path) -> None:
    if path.stem == "policy":
        return
    document = load_any(path)
    if isinstance(document, Document):
        found = [one for reduction in compile_document(document).reductions for one in reduction.assumed]
    else:
        found = list(compile_amplification(document).assumed)
    assert found
    for one in found:
        # Inside of a phase with parts, the names of the parts come first.
        short = one.short.rpartition(": ")[2]
        assert 0 < len(short) <= MOST
        assert len(one.short) <= len(one.text)
        assert short.endswith(".")


def test_neighbours_of_the_largest_groups() -> None:
    words = {"contributions": "contributions are", "up_to": "up to 1000 records", "replacement": "arbitrary others"}
    for one in ADJACENCIES.values():
        assert len(one.records.filled(**words).short) <= MOST
        assert len(one.users.short) <= MOST


def test_names_come_before_both_forms() -> None:
    assert Assumed("All of it.", "It.").of(["a", "b"]) == Assumed("a, b: All of it.", "a, b: It.")
