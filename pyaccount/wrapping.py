"""Wrap plain text to the width of a terminal, or leave it unchanged if there is no terminal."""

from __future__ import annotations

import os
import textwrap
from typing import TextIO

#: The minimum width of wrapped text, in columns; a narrower terminal breaks the lines.
LEAST = 24
#: The indentation of the message of an error, in columns.
MESSAGE = 4


def room(stream: TextIO) -> int | None:
    """Return the number of columns of a stream: the value of COLUMNS, or the terminal's; None for files and pipes."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return max(int(columns), LEAST)
    try:
        return max(os.get_terminal_size(stream.fileno()).columns or 80, LEAST) if stream.isatty() else None
    except (OSError, ValueError):
        return None


def fitted(text: str, width: int | None, *, indent: int | None = None) -> str:
    """Return text with its lines wrapped between words, never inside one; continuation lines are indented.

    If `width` is None, the text is returned unchanged.
    """
    if width is None:
        return text
    lines = []
    for line in text.split("\n"):
        before = len(line) - len(line.lstrip())
        # A continuation is indented like its line, or like the message below an error's position.
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
