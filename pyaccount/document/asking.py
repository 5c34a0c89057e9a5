"""What a field of a kind says of itself beside what it accepts: the question that asks for it, and what others call it.

Annotations like those of `fields`, which read nothing: a kind's own module is where all is said about its fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asked:
    """The question of `pyaccount init` whose answer is a field's value; its name is the field's."""

    #: What is asked for.
    text: str
    #: An answer that suits a small training run: with it, `init` tries which choices can be analysed.
    trial: str
    #: The words that answer it, each with a line about it; none where a number does.
    words: Mapping[str, str] = field(default_factory=dict)
    #: Whether it is asked right after the kind, since other choices depend on the answer.
    first: bool = False
    #: What is taken without an answer, in words.
    usual: str = ""
    #: What stands for the answer in the help.
    metavar: str = "N"


@dataclass(frozen=True)
class AlsoCalled:
    """What other libraries call a field, with spaces between the names, and in lower case with underscores."""

    names: str
