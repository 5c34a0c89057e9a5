"""Annotations of a kind's fields that read nothing: the question that asks for a value, and its names in other
libraries.

With them, and those of `fields`, the module of a kind states everything about its fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asked:
    """The question of `pyaccount init` that asks for the value of a field; its name is the name of the field."""

    #: The text of the question.
    text: str
    #: An answer that fits a small training run; `init` uses it to find out which choices can be analysed.
    trial: str
    #: The words that are accepted as answers, each with a description; empty if the answer is a number.
    words: Mapping[str, str] = field(default_factory=dict)
    #: Whether the question is asked right after the kind, because other choices depend on the answer.
    first: bool = False
    #: The default, in words.
    usual: str = ""
    #: The placeholder for the answer in the help.
    metavar: str = "N"


@dataclass(frozen=True)
class AlsoCalled:
    """The names of a field in other libraries, separated by spaces, in lower case and with underscores."""

    names: str
