"""The catalogue of slugs is complete, and nothing in it is idle."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import certificate_oracle
import pytest
from document_samples import BASE, edited, problems_of, written
from places import ROOT
from snapshots import Snapshot

import pyaccount.document
from pyaccount import errors
from pyaccount.document.matrices import MATRICES
from pyaccount.document.samplers import FIXED_DRAWS, SAMPLERS
from pyaccount.errors import SLUGS
from pyaccount.reading.kinds import AlsoCalled, Kinds, word_of
from pyaccount.reading.spelling import FIELD_ALIASES, VALUE_ALIASES

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


# ---- Words of kinds: no word means two of them, and those who know kinds by their words know all of them


def compared(tree: ast.Module) -> Iterator[str]:
    """The words that a sampler's kind is compared with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and getattr(node.left, "attr", getattr(node.left, "id", None)) == "sampler":
            yield from (
                part.value
                for other in node.comparators
                for part in ast.walk(other)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def test_the_oracle_of_certificates_knows_all_samplers() -> None:
    """It derives what certificates state without the models, by the words of samplers."""
    found = set(compared(ast.parse((ROOT / "tests" / "helpers" / "certificate_oracle.py").read_text(encoding="utf-8"))))
    kinds = {word_of(kind) for kind in SAMPLERS}
    assert found <= kinds
    assert set(certificate_oracle._FIXED_DRAWS) == {word_of(kind) for kind in FIXED_DRAWS}
    assert set(certificate_oracle._NO_PROBABILITY) <= kinds


@pytest.mark.parametrize("kinds", [Kinds("sampler", SAMPLERS), Kinds("matrix", MATRICES)], ids=["sampler", "matrix"])
def test_other_words_mean_one_kind_each(kinds: Kinds) -> None:
    listed = [alias for kind in (*SAMPLERS, *MATRICES) for alias in kind.aliases.split()]
    assert len(set(listed)) == len(listed)
    assert not set(listed) & (set(kinds.by_kind) | set(VALUE_ALIASES))
    assert set(kinds.aliases.values()) <= set(kinds.by_kind)


def test_names_of_other_libraries_mean_one_field_each() -> None:
    meant: dict[str, str] = {}
    for section, kinds in (("sampler", SAMPLERS), ("matrix", MATRICES)):
        for kind in kinds:
            for key, field in kind.model_fields.items():
                for annotation in field.metadata:
                    if isinstance(annotation, AlsoCalled):
                        for name in annotation.names.split():
                            assert meant.setdefault(name, f"{section}.{key}") == f"{section}.{key}"
    assert meant["num_bins"] == "sampler.bins"
    assert not set(meant) & set(FIELD_ALIASES)


def test_every_module_of_a_kind_is_listed() -> None:
    for folder, kinds in (("samplers", SAMPLERS), ("matrices", MATRICES)):
        modules = {Path(kind.__module__.replace(".", "/")).name for kind in kinds}
        files = {path.stem for path in (ROOT / "pyaccount" / "document" / folder).glob("*.py")}
        assert modules <= files
        assert files - modules <= {"__init__", "base", "fixed_draws", "spaced", "chosen"}
