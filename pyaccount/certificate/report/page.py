"""The report as data: sections of blocks, and numbers that know their unit, their direction and where they come from.

HTML and Markdown render these; neither looks at a certificate, and neither formats a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pyaccount.certificate.report.bars import Bars
from pyaccount.certificate.report.plot import Plot
from pyaccount.rounding import down, nearest, plain, up

Sense = Literal["at most", "at least", "estimate", "exact", "chosen"]

#: What a direction claims, for the legend.
SENSES: dict[Sense, str] = {
    "at most": "an upper bound, rounded up",
    "at least": "a lower bound, rounded down",
    "estimate": "not a bound, rounded to the nearest",
    "exact": "counted, recorded, or computed in double precision; where digits are left out, rounded to the nearest, or to the "
    "side on which what is said of it stays true",
    "chosen": "stated in the document or fixed before anything was computed",
}


#: What a report is worth by itself.
AS_STATED = "The figures are as stated in the certificate and were not recomputed here: pyaccount verify does that."


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as people read it. `text` is rounded in its direction; `origin` is a key of `origins.ORIGINS`."""

    text: str
    unit: str
    direction: Sense
    origin: str


@dataclass(frozen=True, slots=True)
class Literally:
    """Text as a machine wrote it: a path, a hash, a version."""

    text: str


Inline = str | Quantity | Literally
Content = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A labelled statement, and a note on it."""

    label: str
    content: Content
    note: Content = ()


@dataclass(frozen=True, slots=True)
class FactList:
    """Labelled statements, one below the other."""

    rows: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of text."""

    content: Content


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table. `words` says how many columns, from the left, hold words."""

    caption: Content
    headings: tuple[str, ...]
    rows: tuple[tuple[Content, ...], ...]
    words: int = 0


@dataclass(frozen=True, slots=True)
class Checklist:
    """What somebody has to check."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """Something with a title of its own: a theorem, a phase."""

    title: str
    tag: str
    rows: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, with words for those who do not see it. `origin` says where its numbers come from."""

    name: str
    plot: Plot | Bars
    caption: Content
    origin: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text in a language of its own."""

    text: str
    language: str


Block = FactList | Paragraph | PageTable | Checklist | Entry | Figure | Code


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section. `name` is what links to it say."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class RunPart:
    """What a report says of the certificate's run, as that was recorded."""

    headline: Fact
    section: PageSection
    #: Who sees to each assumption, in place of the section with the list; None if the record is not of this run.
    assumptions: PageSection | None
    #: What must not be overlooked, beside the verdict; None if there is nothing.
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The whole report."""

    title: str
    name: str
    #: None where nothing was claimed.
    holds: bool | None
    statement: str
    headline: tuple[Fact, ...]
    sections: tuple[PageSection, ...]
    #: What in the certificate contradicts the rest of it.
    inconsistencies: tuple[str, ...] = ()
    #: What must not be overlooked, beside the verdict.
    warning: str | None = None
    stated: str = AS_STATED
    made_from: str = "a certificate in JSON, which is what counts; this page is a view of it"

    def about(self, run: RunPart) -> Page:
        """The page with what was recorded of the run, before the assumptions."""
        found: list[PageSection] = []
        for section in self.sections:
            found += [run.section, run.assumptions or section] if section.name == "assumptions" else [section]
        return replace(self, headline=(*self.headline, run.headline), sections=tuple(found), warning=run.warning)

    def numbers(self) -> Iterator[Quantity]:
        """Every number of the page, in the order of reading."""
        for fact in self.headline:
            yield from _of(fact)
        for section in self.sections:
            for block in section.blocks:
                yield from _of(block)

    def origins(self) -> tuple[str, ...]:
        """The origins that the page refers to, in the order of reading."""
        found: dict[str, None] = {}
        for fact in self.headline:
            found.update(dict.fromkeys(origins_of(fact)))
        for section in self.sections:
            for block in section.blocks:
                found.update(dict.fromkeys(origins_of(block)))
        return tuple(found)


def origins_of(part: Fact | Block) -> tuple[str, ...]:
    """Where the numbers of a part come from, in the order of reading."""
    first = (part.origin,) if isinstance(part, Figure) else ()
    return tuple(dict.fromkeys((*first, *(number.origin for number in _of(part)))))


def _of(part: Fact | Block) -> Iterator[Quantity]:
    contents: list[Content] = []
    match part:
        case Fact():
            contents += [part.content, part.note]
        case FactList() | Entry():
            contents += [content for row in part.rows for content in (row.content, row.note)]
        case PageTable():
            contents += [part.caption, *(cell for row in part.rows for cell in row)]
        case Paragraph():
            contents.append(part.content)
        case Figure():
            contents.append(part.caption)
        case Checklist() | Code():
            pass
    yield from (inline for content in contents for inline in content if isinstance(inline, Quantity))


def at_most(value: float, unit: str, origin: str, digits: int = 6) -> Quantity:
    """An upper bound."""
    return Quantity(up(value, digits), unit, "at most", origin)


def at_least(value: float, unit: str, origin: str, digits: int = 6) -> Quantity:
    """A lower bound."""
    return Quantity(down(value, digits), unit, "at least", origin)


def estimate(value: float, unit: str, origin: str, digits: int = 4) -> Quantity:
    """No bound."""
    return Quantity(nearest(value, digits), unit, "estimate", origin)


def exact(value: float, unit: str, origin: str, digits: int = 6) -> Quantity:
    """A number that is what it says."""
    return Quantity(nearest(value, digits), unit, "exact", origin)


def every_digit(value: float, unit: str, origin: str) -> Quantity:
    """A number at which others hold, and might not at one that is rounded."""
    return Quantity(plain(value), unit, "exact", origin)


def safe(text: str, unit: str, origin: str) -> Quantity:
    """A number already written, rounded if at all to the side on which what is said of it stays true."""
    return Quantity(text, unit, "exact", origin)


def chosen(value: float, unit: str, origin: str = "document") -> Quantity:
    """A number that somebody chose, as short as it can be said."""
    return Quantity(plain(value) if isinstance(value, float) else str(value), unit, "chosen", origin)


def said(number: Quantity) -> Content:
    """A number with its direction in words before it."""
    words = {"at most": "at most ", "at least": "at least ", "estimate": "about "}
    return (words.get(number.direction, ""), number)
