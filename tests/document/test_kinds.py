"""Kinds answer for themselves: nobody tells them apart outside of their modules, and no word means two of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import certificate_oracle
import pytest
from places import ROOT

from pyaccount.document.matrices import MATRICES
from pyaccount.document.noise import Gaussian, Laplace
from pyaccount.document.samplers import FIXED_DRAWS, SAMPLERS
from pyaccount.reading.kinds import AlsoCalled, Kinds, word_of
from pyaccount.reading.spelling import FIELD_ALIASES, VALUE_ALIASES

ROOMS = sorted(path.name for path in (ROOT / "pyaccount").iterdir() if (path / "__init__.py").exists())
KINDS = {kind.__name__ for kind in (*SAMPLERS, *MATRICES, Gaussian, Laplace)}
#: Tuples of kinds.
GROUPS = {"FIXED_DRAWS", "UNBANDED", "SAMPLERS", "MATRICES"}
#: Where a kind has a module of its own.
OWN = {"samplers", "matrices", "batches"}


def told_apart(tree: ast.Module) -> Iterator[int]:
    """The lines in which something is tested for being of a kind."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            names = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
            if names & (KINDS | GROUPS):
                yield node.lineno


@pytest.mark.parametrize("room", ROOMS)
def test_kinds_are_told_apart_by_themselves_alone(room: str) -> None:
    folder = ROOT / "pyaccount" / room
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(folder.rglob("*.py"))
        if not OWN & set(path.relative_to(folder).parts)
        for line in told_apart(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_telling_kinds_apart_is_seen() -> None:
    program = (
        "isinstance(a, Poisson)\nisinstance(a, int)\nisinstance(a, BMinSep | UserBMinSep)\nissubclass(a, UNBANDED)\n"
    )
    assert list(told_apart(ast.parse(program))) == [1, 3, 4]


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
