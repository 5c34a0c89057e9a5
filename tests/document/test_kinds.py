"""Words of kinds: no word means two of them, and those who know kinds by their words know all of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import certificate_oracle
import pytest
from places import ROOT

from pyaccount.document.matrices import MATRICES
from pyaccount.document.samplers import FIXED_DRAWS, SAMPLERS
from pyaccount.reading.kinds import AlsoCalled, Kinds, word_of
from pyaccount.reading.spelling import FIELD_ALIASES, VALUE_ALIASES


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
