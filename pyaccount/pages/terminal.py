"""Prints a page for a terminal: text in lines of limited width, with colours if they are wanted.

Pictures, code and the notes on origins are left out; the numbers of a picture are in tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len

from pyaccount.pages.layout import WIDE, TextTable, row_lines, wrapped
from pyaccount.pages.page import (
    Block,
    Checklist,
    Code,
    Entry,
    Fact,
    FactList,
    Figure,
    Page,
    PageSection,
    PageTable,
    Paragraph,
    content_text,
    legible,
)

#: The default width, which files and pipes get.
WIDTH = 110
#: Below this width, notes are printed below their statements.
ROOMY = 66
#: The most width that the labels of facts take, and the indentation of blocks.
LABELS, INDENT = 24, 2

#: The codes of ANSI terminals.
_CODES = {"bold": "1", "dim": "2", "good": "1;32", "bad": "1;31", "name": "1;36"}


def terminal(page: Page, width: int | None = WIDTH, *, color: bool = False) -> str:
    """Return the page as text in lines of at most `width` cells (None: no limit), with colour codes if `color`."""
    return "".join(f"{line}\n" for line in _Printer(width, color).page(legible(page)))


class _Printer:
    def __init__(self, width: int | None, color: bool) -> None:
        self.width, self.color = width, color

    def page(self, page: Page) -> Iterator[str]:
        yield from self._heading(page)
        if page.alert is not None:
            yield self._styled(page.alert.title, "bad")
            yield from self._items(page.alert.items)
            yield ""
        if page.statement:
            yield from wrapped(page.statement, self.width)
        for section in page.sections:
            lines = list(self._section(section))
            if lines:
                yield ""
                yield from lines

    def _heading(self, page: Page) -> Iterator[str]:
        if not page.title:
            return
        parts = [(page.title, "bold"), (page.name, "name")]
        parts += [(badge.text.upper(), "good" if badge.good else "bad") for badge in page.badges]
        whole = "  ".join(text for text, _ in parts if text)
        if self.width is None or cell_len(whole) <= self.width:
            yield "  ".join(self._styled(text, style) for text, style in parts if text)
        else:
            for text, style in parts:
                yield from (self._styled(line, style) for line in wrapped(text, self.width))

    def _section(self, section: PageSection) -> Iterator[str]:
        blocks = [lines for block in section.blocks if (lines := self._block(block))]
        if not blocks:
            return
        if section.title:
            yield from (self._styled(line, "bold") for line in wrapped(section.title, self.width))
        for before, lines in zip([None, *blocks], blocks, strict=False):
            # An empty line separates a table or a list from what is above it, but not paragraphs.
            if before is not None and (len(before) > 1 or len(lines) > 1):
                yield ""
            yield from (f"{' ' * INDENT}{line}".rstrip() for line in lines)

    @property
    def _room(self) -> int | None:
        """The width inside a section; None if it is not limited."""
        return None if self.width is None else max(1, self.width - INDENT)

    def _block(self, block: Block) -> list[str]:
        match block:
            case FactList():
                return list(self._facts(block.rows, self._room))
            case Paragraph():
                return wrapped(content_text(block.content), self._room)
            case PageTable():
                return list(self._table(block))
            case Checklist():
                return list(self._items(block.items))
            case Entry():
                title = f"{block.title} ({block.tag})" if block.tag else block.title
                room = None if self._room is None else max(1, self._room - INDENT)
                facts = [f"{' ' * INDENT}{line}" for line in self._facts(block.rows, room)]
                return [*wrapped(title, self._room), *facts]
            case Figure() | Code():
                return []

    def _items(self, items: tuple[str, ...]) -> Iterator[str]:
        room = None if self._room is None else max(1, self._room - INDENT)
        for item in items:
            first, *further = wrapped(item, room)
            yield f"• {first}"
            yield from (f"  {line}" for line in further)

    def _table(self, table: PageTable) -> Iterator[str]:
        caption = content_text(table.caption)
        if caption:
            yield from wrapped(caption, self._room)
        words = tuple(heading in table.words for heading in table.headings)
        rows = tuple(tuple(content_text(cell) for cell in row) for row in table.rows)
        for line, row in TextTable(table.headings, rows, words).lines(self._room):
            yield self._styled(line, "bad") if row in table.failing else line

    def _facts(self, rows: tuple[Fact, ...], width: int | None) -> Iterator[str]:
        cells = [(row.label, content_text(row.content), content_text(row.note)) for row in rows]
        label = max((cell_len(row[0]) for row in cells), default=0)
        label = label if width is None else min(label, LABELS)
        if width is not None and width < ROOMY:
            label = min(label, LABELS // 2)
            narrow = max(1, width - label - INDENT)
            for name, statement, aside in cells:
                below = wrapped(aside, narrow) if aside else []
                yield from self._labelled(name, [*wrapped(statement, narrow), *below], label)
            return
        # A statement without a note takes the whole line, so only rows with a note count here.
        content, note = (max((cell_len(row[k]) for row in cells if row[2]), default=0) for k in (1, 2))
        room = None if width is None else width - label - INDENT
        if room is not None and content + note + WIDE > room:
            note = min(note, max(2 * (room - WIDE) // 5, room - WIDE - content))
            content = min(content, room - WIDE - note)
        for name, statement, aside in cells:
            lines = row_lines((statement, aside), (content, note), WIDE) if aside else wrapped(statement, room)
            yield from self._labelled(name, lines, label)

    def _labelled(self, label: str, lines: list[str], width: int) -> Iterator[str]:
        labels = wrapped(label, width)
        for k in range(max(len(labels), len(lines))):
            name = labels[k] if k < len(labels) else ""
            rest = lines[k] if k < len(lines) else ""
            yield f"{name}{' ' * (width - cell_len(name) + INDENT)}{rest}".rstrip()

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.color and text else text
