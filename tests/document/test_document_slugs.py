"""The catalogue of slugs is complete, and nothing in it is idle."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from document_samples import BASE, edited, problems_of, written
from snapshots import Snapshot

import pyaccount.document
from pyaccount import errors
from pyaccount.errors import SLUGS

ROOM = Path(pyaccount.document.__file__).parent
PACKAGE = ROOM.parent

TRIGGERS: dict[str, str | bytes] = {
    "contradiction": edited({9: "  expected_batch_size: 50_001"}),
    "document-too-large": "[" * 60 + "]" * 60,
    "duplicate-key": edited({2: "name: a\nname: b"}),
    "empty-document": "",
    "file-too-large": b"#" * (1 << 21),
    "fractional-batch": edited({9: "  expected_batch_size: 1.5", 12: "  kind: fixed-size"}),
    "infeasible-rate": edited({12: "  kind: b-min-sep\n  min_separation: 101"}),
    "merge-key": edited({14: "  <<: {multiplier: 1}"}),
    "missing-key": edited({2: None}),
    "non-string-key": edited({15: "1: 2"}),
    "not-a-mapping": "[]",
    "not-text": b"\xff\x00",
    "out-of-range": edited({6: "  delta: 1"}),
    "recursive-alias": edited({14: "  multiplier: &a [*a]"}),
    "several-blanks": edited({5: "  epsilon: solve"}),
    "several-documents": BASE + "---\n" + BASE,
    "syntax-error": "a: b: c",
    "unknown-key": edited({15: "x: 1"}),
    "unknown-kind": edited({12: "  kind: x"}),
    "unknown-value": edited({4: "  adjacency: x"}),
    "unknown-version": edited({1: "pyaccount: 2"}),
    "unsupported-tag": edited({2: "name: !x y"}),
    "wrong-type": edited({2: "name: 3"}),
}
# These need more than a text, or a document of another kind; test_document_yaml.py, test_document_sources.py, test_confinement.py
# and test_data_set.py provoke them.
ELSEWHERE = {
    *("bad-override", "file-not-found", "no-valid-bound", "not-a-file", "outside-folder", "permission-denied"),
    "unreadable-file",
}


def slugs_in(folder: Path) -> set[str]:
    """The slugs that source code gives to problems: literals that come first in the calls that make them."""
    makers = {"Problem", "problem", "refuse", "_refuse", "add_problem", "stop_with"}
    slugs = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if name in makers and isinstance(first, ast.Constant) and isinstance(first.value, str):
                slugs.add(first.value)
    return slugs


def test_every_slug_is_in_the_catalogue_and_every_entry_is_used() -> None:
    assert slugs_in(PACKAGE) == set(SLUGS)


def test_every_slug_of_documents_and_of_their_reading_has_a_test() -> None:
    assert slugs_in(ROOM) | slugs_in(PACKAGE / "reading") == set(TRIGGERS) | ELSEWHERE
    files = [*Path(__file__).parent.glob("*.py"), *Path(__file__).parent.glob("snapshots/*.txt")]
    tests = "".join(path.read_text(encoding="utf-8") for path in files)
    for slug in ELSEWHERE:
        assert tests.count(f'"{slug}"') + tests.count(f"[{slug}]") > 1


@pytest.mark.parametrize("slug", sorted(TRIGGERS))
def test_triggers(slug: str, tmp_path: Path) -> None:
    assert slug in {problem.slug for problem in problems_of(written(tmp_path, TRIGGERS[slug]))}


@pytest.mark.parametrize("start", [0, 1], ids=["from-text", "from-mapping"])
def test_a_matrix_file_is_read_beside_the_document(start: int, tmp_path: Path, snapshot: Snapshot) -> None:
    """`matrix-file` is the plan's to say: the language knows of no files but its own."""
    path = written(tmp_path, edited({12: "  kind: none", 15: "matrix: {kind: dense, file: absent.npy}"}))
    document = pyaccount.load(path)
    snapshot.raised(lambda: pyaccount.compile(document if start == 0 else document.to_mapping()))


def test_the_catalogue_reads_well() -> None:
    assert list(SLUGS) == sorted(SLUGS)
    for slug, meaning in SLUGS.items():
        assert re.fullmatch("[a-z]+(-[a-z]+)*", slug)
        assert re.fullmatch(r"[A-Z].*\.", meaning)


EXCEPTIONS: list[tuple[Any, int, str]] = [
    (errors.LimitError("out of time", stage="pilot"), 3, "out of time (pilot; nothing was found by then)"),
    (errors.LimitError("out of memory"), 3, "out of memory"),
    (errors.NumericsError("no bound for δ"), 3, "no bound for δ"),
    (errors.CertificateError("not JSON"), 2, "not JSON"),
    (errors.DocumentError([errors.Problem("missing-key", "is missing")]), 2, "[missing-key]\n    is missing"),
]


@pytest.mark.parametrize(("error", "exit_code", "text"), EXCEPTIONS)
def test_exceptions(error: errors.PyaccountError, exit_code: int, text: str) -> None:
    assert isinstance(error, errors.PyaccountError)
    assert error.exit_code == exit_code
    assert str(error) == text
