"""Prints a document as YAML for people, with the same contents but not the original spelling."""

from __future__ import annotations

from typing import Any

import yaml

from pyaccount.rounding import shortest


class _Dumper(yaml.SafeDumper):
    """Block style, keys in the document's order, and numbers as people write them."""


def _number(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    # YAML 1.1 reads 1e-5 as text; the document language reads it as a number.
    text = shortest(value)
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return dumper.represent_scalar(tag, text)


def _list(dumper: _Dumper, value: list[Any]) -> yaml.SequenceNode:
    # Lists of numbers, such as coefficients, are written on few lines.
    short = not any(isinstance(item, dict | list) for item in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=short)


_Dumper.add_representer(float, _number)
_Dumper.add_representer(list, _list)


def yaml_text(document: dict[str, Any]) -> str:
    """Return the document as YAML text."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False)
