"""Turns answers into a document, as a mapping or as text with a comment above every key."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

from pyaccount.document.models import SHAPES, SingleDocument
from pyaccount.document.sections import Accounting
from pyaccount.document.shape import field_at, member_at, value_at
from pyaccount.draft.questions import BLANKS, NOTHING, QUESTIONS, Answers, blank_of, has_budget, meanings
from pyaccount.draft.releases import fixed_parts, with_phases
from pyaccount.errors import Path
from pyaccount.reading.fields import SOLVE
from pyaccount.reading.numerals import parse_scalar

#: The sections of a document, in the order in which they are written.
SECTIONS = ("privacy", "training", "sampler", "matrix", "noise")
WIDTH = 100

HEAD = """\
# yaml-language-server: $schema=mechanism.v1.schema.json
# A mechanism document: pyaccount computes a privacy certificate from it. The comments explain each key.
#   pyaccount validate FILE    reports mistakes
#   pyaccount plan FILE        shows how the document will be analysed
#   pyaccount certify FILE     computes the value that is `solve`; without `solve`, checks the claim
#   pyaccount schema > mechanism.v1.schema.json    writes the schema with which editors complete and check this file
"""

#: Optional keys of `accounting`, which are written as comments, with typical values.
OPTIONAL = {"tolerance": "1e-3", "profile": "[0.5, 1, 2, 4, 8]", "time_limit": "10 min"}


def mapping_of(answers: Answers) -> dict[str, Any]:
    """Return the document as a mapping, with values as they were written, and `solve` in the blank."""
    mapping: dict[str, Any] = {"pyaccount": "1", "name": answers["name"], **{section: {} for section in SECTIONS}}
    mapping["privacy"]["group_size"] = "1"
    values = dict(answers)
    blank = blank_of(answers)
    if blank != NOTHING:
        values[blank] = SOLVE
    parts: dict[Path, str] = {**fixed_parts(answers)}
    parts |= {question.path: values[name] for name, question in QUESTIONS.items() if name in values}
    for path, value in parts.items():
        if len(path) > 1:
            *sections, key = map(str, path)
            parent = mapping
            for section in sections:
                parent = parent.setdefault(section, {})
            parent[key] = value
    if mapping["matrix"].get("kind", "identity") == "identity":
        del mapping["matrix"]
    return with_phases(mapping, answers)


def draft_text(answers: Answers) -> str:
    """Return the document as YAML text, with the descriptions of the models as comments."""
    mapping = mapping_of(answers)
    lines = [HEAD.rstrip(), ""]
    for key in _order((), mapping):
        # Sections are set apart by an empty line.
        lines += [""] if isinstance(mapping[key], dict | list) else []
        lines += _keyed((key,), mapping[key], mapping, answers)
    lines += [
        "",
        *_wrapped("Optional. " + str(SingleDocument.model_fields["accounting"].description), "# "),
        "# accounting:",
    ]
    for key, value in OPTIONAL.items():
        lines += _wrapped(str(Accounting.model_fields[key].description), "#   # ")
        lines.append(f"#   {key}: {value}")
    return "\n".join(lines) + "\n"


def _keyed(path: Path, value: Any, mapping: dict[str, Any], answers: Answers, indent: str = "") -> list[str]:
    """Return the lines of a key with its value, and of everything that is in the value."""
    key = str(path[-1])
    lines = _comment(path, mapping, indent)
    if isinstance(value, dict):
        lines.append(f"{indent}{key}:")
        for name in _order(path, mapping):
            lines += _keyed((*path, name), value[name], mapping, answers, f"{indent}  ")
    elif isinstance(value, list):
        lines.append(f"{indent}{key}:")
        for position, entry in enumerate(value):
            inner = (*path, position)
            lines.append(f"{indent}  - name: {entry['name']}")
            for name in _order(inner, mapping):
                if name != "name":
                    lines += _keyed((*inner, name), entry[name], mapping, answers, f"{indent}    ")
    else:
        text = _spelled(key, value)
        lines.append(f"{indent}{key}: {text}" + (f"  # to be computed: {_blank(answers)}" if text == SOLVE else ""))
    return lines


def _order(path: Path, mapping: dict[str, Any]) -> list[str]:
    """Return the keys of the section at a path, its kind first, then in the order of the models."""
    shape, inside = member_at(SHAPES.member(mapping), path, mapping), value_at(mapping, path)
    assert shape is not None
    return sorted((key for key in shape.model_fields if key in inside), key=lambda key: key != "kind")


def _blank(answers: Answers) -> str:
    """Return the description of the value to be computed."""
    words = BLANKS[blank_of(answers)]
    return words.replace("meets ε and δ", "stays within the budget of risk") if has_budget(answers) else words


def _comment(path: Path, mapping: dict[str, Any], indent: str = "") -> list[str]:
    """Return the comment about a key: its description in the models and, for the sampler, the other kinds."""
    field = field_at(SHAPES.member(mapping), path, mapping)
    assert field is not None
    lines = _wrapped(str(field.description), f"{indent}# ")
    if path[-2:] == ("sampler", "kind"):
        kind = value_at(mapping, path)
        rest = [word for word in meanings(QUESTIONS["sampler"]) if word != kind]
        lines += _wrapped(f"Other kinds: {', '.join(rest)}.", f"{indent}# ")
    return lines


def _wrapped(text: str, start: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=start, break_on_hyphens=False)


def _spelled(key: str, value: str) -> str:
    """Return a value as YAML text; a name that YAML could read as something else is quoted."""
    plain = re.fullmatch(r"\w(?:[\w .-]*[\w.])?", value) and parse_scalar(value) == value
    return json.dumps(value, ensure_ascii=False) if key == "name" and not plain else value
