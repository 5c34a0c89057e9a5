"""What the field of a kind states in addition to what it accepts: the question that asks for it, and its names elsewhere.

These are annotations like those of `fields`, but they read nothing. So the module of a kind states everything about its
fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asked:
    """The question of `pyaccount init` whose answer is the value of a field. Its name is that of the field."""

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
    """The names of a field in other libraries: separated by spaces, in lower case and with underscores."""

    names: str
