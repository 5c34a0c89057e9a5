"""The report as Markdown, for pull requests and model cards: GitHub's tables, task lists and footnotes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyaccount.pages.page import (
    SENSES,
    Block,
    Checklist,
    Code,
    Content,
    Entry,
    Fact,
    FactList,
    Figure,
    Literally,
    Page,
    PageTable,
    Paragraph,
    Quantity,
    legible,
    origins_of,
)

#: Characters with a meaning in Markdown: emphasis, code, links, tables, mathematics, mentions, issues, addresses.
_SPECIAL = re.compile(r"[\\`*_\[\]|~$@#]|:(?=//)|(?<=www)\.")


def markdown(page: Page) -> str:
    """Return the page as Markdown. Pictures are left out, since their tables say the same."""
    page = legible(page)
    badges = "".join(f" — {text(badge.text)}" if badge.good else f" — **{text(badge.text)}**" for badge in page.badges)
    parts = [f"# {text(page.title)}: {text(page.name)}{badges}"]
    if page.alert is not None:
        items = "\n".join(f"> - {text(item)}" for item in page.alert.items)
        parts.append(f"> **{text(page.alert.title)}**\n>\n{items}")
    parts += [f"> {text(page.statement)}"] if page.statement else []
    parts += [text(page.stated)] if page.stated else []
    parts += [_facts(page.headline)] if page.headline else []
    for section in page.sections:
        blocks = [written for block in section.blocks if (written := _block(block))]
        parts += [f"## {text(section.title)}", *blocks]
    parts += _notes(page)
    return "\n\n".join(parts) + "\n"


def _notes(page: Page) -> list[str]:
    """Return notes on the directions and origins of the numbers; empty if the page has no numbers."""
    directions = dict.fromkeys(number.direction for number in page.numbers())
    if not directions:
        return []
    meanings = "; ".join(f"*{name}*: {SENSES[name]}" for name in directions)
    origins = "\n".join(f"[^{name}]: {text(page.origins[name])}" for name in page.used_origins())
    return ["## Notes", f"How numbers are meant: {meanings}.", origins]


def text(written: str) -> str:
    """Return a text escaped so that Markdown shows it unchanged, on one line."""
    line = " ".join(written.split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A digit cannot be escaped, so the full stop or bracket after it is.
    line = re.sub(r"^(\d+)([.)])", r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", line))
    return f"\\{line}" if line[:1] in ("-", "+", "=") else line


def _block(block: Block) -> str:  # noqa: PLR0911 - one return for each kind of block
    match block:
        case FactList():
            return _facts(block.rows)
        case Paragraph():
            return _content(block.content) + _marks(block)
        case PageTable():
            cells = [[_content(cell) for cell in row] for row in block.rows]
            aligned = ["---" if heading in block.words else "---:" for heading in block.headings]
            rows = [[text(heading) for heading in block.headings], aligned, *cells]
            caption = f"{_content(block.caption)}{_marks(block)}"
            return f"{caption}\n\n{_rows(rows)}" if caption else _rows(rows)
        case Checklist():
            return "\n".join(f"- [ ] {text(item)}" for item in block.items)
        case Entry():
            tag = f" ({text(block.tag)})" if block.tag else ""
            return f"### {text(block.title)}{tag}\n\n{_facts(block.rows)}"
        case Code():
            # The fence must be longer than any run of backquotes in the code.
            longest = max((len(run) for run in re.findall(r"`+", block.text)), default=0)
            fence = "`" * max(3, longest + 1)
            return f"{fence}{block.language}\n{block.text.rstrip()}\n{fence}"
        case Figure():
            return ""


def _facts(rows: Iterable[Fact]) -> str:
    lines = [["", "", ""], ["---", "---", "---"]]
    lines += [[text(row.label), _content(row.content) + _marks(row), _content(row.note)] for row in rows]
    return _rows(lines)


def _rows(rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _content(content: Content) -> str:
    return "".join(_inline(part) for part in content)


def _inline(part: str | Quantity | Literally) -> str:
    match part:
        case Quantity():
            return part.text
        case Literally():
            return f"`{part.text}`" if re.fullmatch(r"[\w .,:+()=-]+", part.text) else text(part.text)
        case _:
            # Keep the spaces at the ends, which separate text and numbers.
            inner = part.strip(" ")
            return part.replace(inner, text(inner)) if inner else part


def _marks(part: Fact | Block) -> str:
    return "".join(f"[^{name}]" for name in origins_of(part))
