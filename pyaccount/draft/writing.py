"""From answers to a document: as a mapping, and as text with a comment above every key."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

from pyaccount.document.fields import SOLVE
from pyaccount.document.models import SingleDocument
from pyaccount.document.numerals import parse_scalar
from pyaccount.document.sections import Accounting
from pyaccount.document.shape import field_at, member_at
from pyaccount.draft.questions import BLANKS, NOTHING, QUESTIONS, Answers, blank_of, has_budget, meanings
from pyaccount.errors import Path

#: The sections of a document, in the order of writing.
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

#: Shown as comments, at values that change little.
OPTIONAL = {"tolerance": "1e-3", "profile": "[0.5, 1, 2, 4, 8]", "time_limit": "10 min"}


def mapping_of(answers: Answers) -> dict[str, Any]:
    """The document as a mapping, with values as they were spelled; the blank says `solve`."""
    mapping: dict[str, Any] = {"pyaccount": "1", "name": answers["name"], **{section: {} for section in SECTIONS}}
    mapping["privacy"]["group_size"] = "1"
    said = dict(answers)
    blank = blank_of(answers)
    if blank != NOTHING:
        said[blank] = SOLVE
    for name, question in QUESTIONS.items():
        if name in said and len(question.path) > 1:
            *sections, key = map(str, question.path)
            place = mapping
            for section in sections:
                place = place.setdefault(section, {})
            place[key] = said[name]
    if mapping["matrix"].get("kind", "identity") == "identity":
        del mapping["matrix"]
    return mapping


def _order(section: str, mapping: dict[str, Any]) -> list[str]:
    shape = member_at(SingleDocument, (section,), mapping)
    return [key for key in (shape.model_fields if shape else ()) if key in mapping[section]]


def text_of(answers: Answers) -> str:
    """The document as YAML text, with the models' descriptions as comments."""
    mapping = mapping_of(answers)
    lines = [HEAD.rstrip(), ""]
    for key in ("pyaccount", "name"):
        lines += [*_comment((key,), mapping), f"{key}: {_spelled(key, mapping[key])}"]
    for section in SECTIONS:
        if section not in mapping:
            continue
        lines += ["", *_comment((section,), mapping), f"{section}:"]
        for key in _order(section, mapping):
            lines += _comment((section, key), mapping, "  ")
            said = mapping[section][key]
            if isinstance(said, dict):
                lines.append(f"  {key}:")
                for name, value in said.items():
                    lines += [*_comment((section, key, name), mapping, "    "), f"    {name}: {_spelled(name, value)}"]
                continue
            value = _spelled(key, said)
            lines.append(f"  {key}: {value}" + (f"  # to be computed: {_blank(answers)}" if value == SOLVE else ""))
    lines += [
        "",
        *_wrapped("Optional. " + str(SingleDocument.model_fields["accounting"].description), "# "),
        "# accounting:",
    ]
    for key, value in OPTIONAL.items():
        lines += _wrapped(str(Accounting.model_fields[key].description), "#   # ")
        lines.append(f"#   {key}: {value}")
    return "\n".join(lines) + "\n"


def _blank(answers: Answers) -> str:
    """What is to be computed; with a budget of risk, the noise that keeps that."""
    words = BLANKS[blank_of(answers)]
    return words.replace("meets ε and δ", "stays within the budget of risk") if has_budget(answers) else words


def _comment(path: Path, mapping: dict[str, Any], indent: str = "") -> list[str]:
    """What the models say about a key, and what else might stand there."""
    field = field_at(SingleDocument, path, mapping)
    assert field is not None
    lines = _wrapped(str(field.description), f"{indent}# ")
    if path == ("sampler", "kind"):
        rest = [word for word in meanings(QUESTIONS["sampler"]) if word != mapping["sampler"]["kind"]]
        lines += _wrapped(f"Other kinds: {', '.join(rest)}.", f"{indent}# ")
    return lines


def _wrapped(text: str, start: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=start, break_on_hyphens=False)


def _spelled(key: str, value: str) -> str:
    """A value as YAML spells it; names that could be read as something else are quoted."""
    plain = re.fullmatch(r"\w(?:[\w .-]*[\w.])?", value) and parse_scalar(value) == value
    return json.dumps(value, ensure_ascii=False) if key == "name" and not plain else value
