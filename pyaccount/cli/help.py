"""Help in the width of the terminal: click wraps paragraphs, and this module wraps examples, which click does not."""

from __future__ import annotations

import re
import textwrap

import click

#: The mark that keeps click from wrapping a paragraph.
_AS_IT_IS = "\b\n"


class Formatter(click.HelpFormatter):
    """click's formatter, which also wraps examples."""

    def write_text(self, text: str) -> None:
        """Write paragraphs; those that click does not wrap are laid out here."""
        width = max(self.width - self.current_indent, 11)
        parts = re.split(r"\n{2,}", text)
        super().write_text(
            "\n\n".join(_laid_out(part, width) if part.startswith(_AS_IT_IS) else part for part in parts)
        )


class Context(click.Context):
    """A context whose help is written by `Formatter`."""

    formatter_class = Formatter


def _laid_out(paragraph: str, width: int) -> str:
    """Return a paragraph with its own line breaks, with no line longer than `width`."""
    # Existing continuations are joined, because the width decides where lines break.
    lines = re.sub(r" *\\\n\s*", " ", paragraph.removeprefix(_AS_IT_IS)).split("\n")
    if all(len(line) <= width for line in lines):
        return _AS_IT_IS + "\n".join(lines)
    if not any(line.lstrip().startswith("pyaccount ") for line in lines):
        return " ".join(line.strip() for line in lines)
    return _AS_IT_IS + "\n".join(part for line in lines for part in _example(line, width))


def _example(line: str, width: int) -> list[str]:
    """Return an example as lines that a shell reads as one, followed by its comment in further lines."""
    if len(line) <= width:
        return [line]
    command, _, about = re.sub(r"(?<=\S) {2,}", "\0", line).partition("\0")
    before = " " * (len(line) - len(line.lstrip()))
    parts, now = [], before
    # A quoted value is one word, and an option stays on the same line as its value.
    for word in re.findall(r'(?:--?[\w-]+ (?=[^-\\>]))?(?:"[^"]*"|\S)+', command):
        if now.strip() and len(now) + len(word) + 2 > width:
            parts.append(f"{now.rstrip()} \\")
            now = f"{before}    "
        now += f"{word} "
    return [
        *parts,
        now.rstrip(),
        *textwrap.wrap(about, width, initial_indent=f"{before}    ", subsequent_indent=f"{before}    "),
    ]
