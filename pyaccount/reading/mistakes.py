"""Explains what is wrong with a text that is not valid YAML, in terms that its author knows.

A parser reports where it stopped, in its own terms, and the mistake is often in the line above. This module searches
the text around that position for common mistakes, such as an additional space, a quote that is not closed, or a tab. It
returns a line, a column and a message that says what is written there and what to write instead, and never repeats the
message of the parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import yaml

from pyaccount.errors import shortened
from pyaccount.reading.typography import UNSEEN, character_name, instead

_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_KEY = r"[\w-]+"
#: The words by which both implementations of the parser report an error inside brackets.
_IN_BRACKETS = re.compile("flow (mapping|sequence)")
_SOMEWHERE = "a document consists of lines `key: value`, and the keys of one mapping start in the same column"


class Mistake(NamedTuple):
    """A mistake in a text; lines and columns count from 0."""

    line: int
    column: int
    message: str


class _Stumble(NamedTuple):
    """The position at which the parser stopped, and its message."""

    lines: list[str]
    line: int
    column: int
    #: The beginning of the construct that the parser was reading.
    since: tuple[int, int] | None
    words: str

    def text(self, line: int) -> str:
        """Return a line of the text; empty outside of the text."""
        return self.lines[line] if 0 <= line < len(self.lines) else ""

    def near(self) -> list[int]:
        """Return the lines that may contain the mistake, the most probable first."""
        marks = [*([] if self.since is None else [self.since[0]]), self.line]
        return list(dict.fromkeys((*marks, *(mark - 1 for mark in marks))))


def explained(error: yaml.YAMLError, text: str) -> Mistake:
    """Return the mistake that caused an error of the parser."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        char = getattr(error, "character", None)
        odd = f"the character U+{char:04X} does not belong in a text" if isinstance(char, int) else "this is no text"
        return Mistake(0, 0, odd)
    context = getattr(error, "context_mark", None)
    words = f"{getattr(error, 'context', None) or ''}: {getattr(error, 'problem', None) or ''}"
    since = None if context is None else (context.line, context.column)
    stumble = _Stumble(_LINE_BREAK.split(text), mark.line, mark.column, since, words)
    for rule in _RULES:
        if (mistake := rule(stumble)) is not None:
            return mistake
    return Mistake(mark.line, mark.column, f"this cannot be read: {_SOMEWHERE}")


def _tab(stumble: _Stumble) -> Mistake | None:
    indentation = re.match("[ \t]*", stumble.text(stumble.line))
    assert indentation is not None
    if "\t" in indentation[0] and stumble.column <= indentation.end():
        message = "a tab in the indentation; YAML indents with spaces only"
        return Mistake(stumble.line, indentation[0].index("\t"), message)
    return None


def _unseen(stumble: _Stumble) -> Mistake | None:
    """Detect an unusual space or colon before the first `: ` of a line, where YAML needs an ordinary one."""
    for line in stumble.near():
        start = re.split("(?<=:) | #", stumble.text(line), maxsplit=1)[0]
        if found := re.search(f"[{''.join(UNSEEN)}：]", start):
            message = f"{character_name(found[0])} is here, which YAML treats as a letter: {instead(found[0])}"
            return Mistake(line, found.start(), message)
    return None


def _directive(stumble: _Stumble) -> Mistake | None:
    if stumble.text(stumble.line).startswith("%"):
        return Mistake(stumble.line, 0, "a document has no lines that start with %: leave this one out")
    return None


def _quote(stumble: _Stumble) -> Mistake | None:
    """Detect a quote that is opened and not closed, so that the text continues on the following lines."""
    if (opened := _open_quote(stumble)) is None:
        return None
    line, column = opened
    quote = stumble.text(line)[column]
    message = f"this quote is not closed: write another {quote} at the end of the text, or leave both out"
    return Mistake(line, column, message)


def _open_quote(stumble: _Stumble) -> tuple[int, int] | None:
    line = 0
    while line <= stumble.line:
        text = stumble.text(line)
        found = re.match(rf"""\s*(?:- +)*(?:(?:"[^"]*"|{_KEY}) ?: +)?(["'])""", text)
        opens = found is not None and _closing(text[found.end() :], found[1]) is None
        if found is None or not opens:
            line += 1
            continue
        start, end = line, None
        while end is None and line < len(stumble.lines):
            line += 1
            end = _closing(stumble.text(line), found[1])
        if end is None or not re.fullmatch(r"\s*(#.*)?", stumble.text(line)[end + 1 :]):
            return start, found.end() - 1
        line += 1
    return None


def _closing(text: str, quote: str) -> int | None:
    """Return the index of the closing quote, or `None`. A backslash escapes a double quote; single ones are doubled."""
    found = re.match(r'(?:[^"\\]|\\.)*"' if quote == '"' else r"(?:[^']|'')*'(?!')", text)
    return found.end() - 1 if found else None


def _start(stumble: _Stumble) -> Mistake | None:
    """Detect a value that starts with a character that YAML reserves."""
    if "cannot start any token" not in stumble.words:
        return None
    value = stumble.text(stumble.line)[stumble.column :].split(" #")[0].strip()
    quoted = shortened('"{}"'.format(value.strip("`").replace('"', "'")))
    return Mistake(stumble.line, stumble.column, f"a value cannot start with {value[:1]}: write it in quotes, {quoted}")


def _escape(stumble: _Stumble) -> Mistake | None:
    if not re.search("escape|hexdecimal|hexadecimal", stumble.words) or stumble.since is None:
        return None
    message = "in double quotes a backslash starts an escape, but this is not one: write single quotes, or the backslash twice"
    return Mistake(stumble.line, stumble.column, message)


def _sign(stumble: _Stumble) -> Mistake | None:
    """Detect the sign of a text of several lines, an anchor or alias without a name, or an invalid tag."""
    line, column = stumble.since or (stumble.line, stumble.column)
    sign = stumble.text(line)[column : column + 1]
    if "block scalar" in stumble.words:
        means = f"is a text of several lines, which begins on the next line: leave {sign} out"
    elif re.search("anchor|alias|(?:a|undefined) tag", stumble.words):
        means = "means something else in YAML: write it in quotes"
    else:
        return None
    return Mistake(line, column, f"a value that starts with {sign} {means}")


def _separator(stumble: _Stumble) -> Mistake | None:
    """Detect a key and a value that are not separated by a colon and a space."""
    for line in stumble.near():
        text = stumble.text(line)
        if found := re.fullmatch(rf"""\s*["']?({_KEY})["']?(:| ?=) ?([^\s:=].*)""", text):
            key, sign, value = found.groups()
            if sign != ":" or not text.strip().startswith(f"{key}: "):
                written = shortened(f"{key}: {value}")
                message = f"a key and its value are separated by a colon and a space: `{written}`"
                return _at_text(stumble, line, message)
        if re.fullmatch(rf"\s*{_KEY}: *\?", text):
            message = "a question mark means something else in YAML; the value to be computed is written `solve`"
            return _at_text(stumble, line, message)
    return None


def _colon_inside(stumble: _Stumble) -> Mistake | None:
    for line in stumble.near():
        if found := re.fullmatch(rf"""\s*({_KEY}): ([^\s\[{{"'].*: .*)""", stumble.text(line)):
            quoted = shortened('{}: "{}"'.format(found[1], found[2].replace('"', "'")))
            return _at_text(stumble, line, f"a text with a colon in it must be quoted: `{quoted}`")
    return None


def _bracket(stumble: _Stumble) -> Mistake | None:
    """Detect a bracket that is not closed or not opened, and entries without a comma."""
    found = _IN_BRACKETS.search(stumble.words)
    if found is not None and stumble.since is not None:
        line, column = stumble.since
        opening = stumble.text(line)[column : column + 1]
        closing = {"{": "}", "[": "]"}.get(opening)
        if closing is not None and closing not in stumble.text(line)[column:]:
            message = f"{opening} opens here and is not closed: write {closing} at its end, or put a text in quotes"
            return Mistake(line, column, message)
        message = "between brackets the entries are separated by commas, and a key and its value by a colon and a space"
        return Mistake(stumble.line, stumble.column, message)
    char = stumble.text(stumble.line)[stumble.column : stumble.column + 1]
    if char and char in "}],":
        message = f"{char} has no opening bracket before it: leave it out"
        return Mistake(stumble.line, stumble.column, message)
    return None


def _dash(stumble: _Stumble) -> Mistake | None:
    for line in dict.fromkeys((stumble.line, *stumble.near())):
        text = stumble.text(line)
        if found := re.fullmatch(rf"(\s*{_KEY}: +)(- +)(.*)", text):
            alone = shortened(found[3])
            message = (
                f"a dash starts an entry of a list, on a line of its own; for a single value leave it out: `{alone}`"
            )
            return Mistake(line, found.end(1), message)
    found = re.match(r"(\s*)- ", stumble.text(stumble.line))
    if found and re.search("block (mapping|end|sequence)", stumble.words):
        message = (
            "this line starts with a dash, as an entry of a list does, among lines `key: value`: leave the dash out"
        )
        return Mistake(stumble.line, found.end(1), message)
    return None


def _bare_key(stumble: _Stumble) -> Mistake | None:
    """Detect a line without a colon above or among lines of a mapping."""
    if "':'" not in stumble.words or stumble.since is None:
        return None
    line = stumble.since[0]
    text = stumble.text(line).split(" #")[0].strip()
    if re.fullmatch(_KEY, text):
        return _at_text(stumble, line, f"a key ends with a colon: `{text}:`")
    if found := re.fullmatch(rf"({_KEY})\s+(\S+)", text):
        message = f"a key and its value are separated by a colon and a space: `{found[1]}: {found[2]}`"
        return _at_text(stumble, line, message)
    return _at_text(stumble, line, f"this line has no colon between a key and a value: {_SOMEWHERE}")


def _indentation(stumble: _Stumble) -> Mistake | None:
    """Detect a line whose indentation differs from that of the lines to which it belongs."""
    if not re.search("block (mapping|end|sequence)|mapping values|document start", stumble.words):
        return None
    line = min(stumble.line, len(stumble.lines) - 1)
    while line > 0 and not stumble.text(line).strip():
        line -= 1
    above = line - 1
    while above >= 0 and not re.match(r"\s*[^\s#]", stumble.text(above)):
        above -= 1
    own, other = _indented(stumble.text(line)), _indented(stumble.text(above))
    same = "the keys of one mapping start in the same column"
    if above < 0 or own == other:
        return Mistake(line, own, f"this line does not fit those above it: {_SOMEWHERE}")
    spaces = "no space" if own == 0 else "1 space" if own == 1 else f"{own} spaces"
    message = f"this line is indented differently, by {spaces}, and line {above + 1} above it by {other}: {same}"
    return Mistake(line, own, message)


def _indented(text: str) -> int:
    return len(text) - len(text.lstrip())


def _at_text(stumble: _Stumble, line: int, message: str) -> Mistake:
    """Return a mistake in a line, at the position of the parser if it is there, or else at the first character."""
    column = stumble.column if line == stumble.line else _indented(stumble.text(line))
    return Mistake(line, column, message)


#: All rules, the most certain first.
_RULES: tuple[Callable[[_Stumble], Mistake | None], ...] = (
    *(_tab, _unseen, _directive, _quote, _escape, _start, _sign),
    *(_separator, _colon_inside, _bracket, _dash, _bare_key, _indentation),
)
