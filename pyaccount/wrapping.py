"""Plain text for whoever reads it: as wide as a terminal is, and as it stands where there is none."""

from __future__ import annotations

import os
import textwrap
from typing import TextIO

#: Nothing is wrapped to less; the terminal breaks it instead.
LEAST = 24
#: How far the message of an error is indented.
MESSAGE = 4


def room(stream: TextIO) -> int | None:
    """The columns that text on a stream has: what COLUMNS says, or the terminal; None in files and pipes."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return max(int(columns), LEAST)
    try:
        return max(os.get_terminal_size(stream.fileno()).columns or 80, LEAST) if stream.isatty() else None
    except (OSError, ValueError):
        return None


def fitted(text: str, width: int | None, *, indent: int | None = None) -> str:
    """Text with its lines wrapped between words, none of which is cut; what goes on is indented. None: as it stands."""
    if width is None:
        return text
    lines = []
    for line in text.split("\n"):
        before = len(line) - len(line.lstrip())
        # As deep as the line, or as the message below an error's place.
        further = indent if indent is not None else before if before >= MESSAGE else before + MESSAGE
        lines += textwrap.wrap(
            line,
            max(width, LEAST),
            subsequent_indent=" " * further,
            expand_tabs=False,
            replace_whitespace=False,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [line]
    return "\n".join(lines)
