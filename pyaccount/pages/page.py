"""The page as data: sections of blocks, and numbers with a unit, a direction and an origin.

The printers show pages. They read no certificates and round no numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, cast

from pyaccount.errors import printable
from pyaccount.pages.plot import Bars, Plot
from pyaccount.rounding import down, rounded_nearest, shortest, up

Sense = Literal["at most", "at least", "estimate", "exact", "chosen"]

#: What each direction means, for the notes at the end of a page.
SENSES: dict[Sense, str] = {
    "at most": "an upper bound, rounded up",
    "at least": "a lower bound, rounded down",
    "estimate": "not a bound, rounded to the nearest",
    "exact": "counted, recorded, or computed in double precision; where digits are left out, rounded to the nearest, or to the "
    "side on which what is said of it stays true",
    "chosen": "stated in the document or fixed before anything was computed",
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as people read it. `text` is rounded in its direction; `origin` is a key of the page's `origins`."""

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
    """Several labelled statements, shown as a list."""

    rows: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of text."""

    content: Content


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table. `words` are the headings of columns that contain words; `failing` are the rows about a failure."""

    caption: Content
    headings: tuple[str, ...]
    rows: tuple[tuple[Content, ...], ...]
    words: tuple[str, ...] = ()
    failing: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Checklist:
    """A list of assumptions that the reader has to check."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """Rows about something with its own title, such as a theorem or a phase."""

    title: str
    tag: str
    rows: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, with a text for readers who do not see it. `origin` says where its numbers come from."""

    name: str
    plot: Plot | Bars
    caption: Content
    origin: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text in a formal language, such as YAML."""

    text: str
    language: str


Block = FactList | Paragraph | PageTable | Checklist | Entry | Figure | Code


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section. `name` is the target of links to it."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Badge:
    """A word on the whole page, shown beside its heading, and whether it is good news."""

    text: str
    good: bool


@dataclass(frozen=True, slots=True)
class Alert:
    """A warning that is shown before everything else."""

    title: str
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page."""

    #: The kind of page, such as “Privacy certificate”, and the name of its subject.
    title: str
    name: str
    sections: tuple[PageSection, ...]
    badges: tuple[Badge, ...] = ()
    alert: Alert | None = None
    statement: str = ""
    #: The most important numbers; each of them is also in a section.
    headline: tuple[Fact, ...] = ()
    #: What each origin of a quantity means.
    origins: Mapping[str, str] = field(default_factory=dict)
    #: What the page is worth alone, since the file may be passed on without its certificate.
    stated: str = ""
    #: What the page was made from.
    made_from: str = ""

    def parts(self) -> list[Fact | Block]:
        """Return everything with numbers, in the order of reading."""
        return [*self.headline, *(block for section in self.sections for block in section.blocks)]

    def numbers(self) -> Iterator[Quantity]:
        """Yield every number of the page, in the order of reading."""
        return (number for part in self.parts() for number in quantities_of(part))

    def used_origins(self) -> tuple[str, ...]:
        """Return the origins that the page refers to, in the order of reading."""
        return tuple(dict.fromkeys(origin for part in self.parts() for origin in origins_of(part)))

    def with_section(self, section: PageSection, *, before: str) -> Page:
        """Return the page with one more section, before the section named `before`."""
        sections: list[PageSection] = []
        for own in self.sections:
            sections += [section, own] if own.name == before else [own]
        return replace(self, sections=tuple(sections))

    def with_replaced(self, section: PageSection) -> Page:
        """Return the page with its section of the same name replaced."""
        return replace(self, sections=tuple(section if own.name == section.name else own for own in self.sections))


def contents_of(part: Fact | Block) -> list[Content]:
    """Return the texts of a part that may contain numbers, in the order of reading."""
    match part:
        case Fact():
            return [part.content, part.note]
        case FactList() | Entry():
            return [content for row in part.rows for content in (row.content, row.note)]
        case PageTable():
            return [part.caption, *(cell for row in part.rows for cell in row)]
        case Paragraph():
            return [part.content]
        case Figure():
            return [part.caption]
    return []


def quantities_of(part: Fact | Block) -> Iterator[Quantity]:
    """Yield the numbers of a part, in the order of reading."""
    yield from (inline for content in contents_of(part) for inline in content if isinstance(inline, Quantity))


def origins_of(part: Fact | Block) -> tuple[str, ...]:
    """Return the origins of the numbers of a part, in the order of reading."""
    first = (part.origin,) if isinstance(part, Figure) else ()
    return tuple(dict.fromkeys((*first, *(number.origin for number in quantities_of(part)))))


def content_text(content: Content) -> str:
    """Return a content as plain text."""
    return "".join(part if isinstance(part, str) else part.text for part in content)


def at_most(value: float, unit: str, origin: str, digits: int = 6) -> Quantity:
    """Return an upper bound as a quantity, rounded up to `digits` significant digits."""
    return Quantity(up(value, digits), unit, "at most", origin)


def at_least(value: float, unit: str, origin: str, digits: int = 6) -> Quantity:
    """Return a lower bound as a quantity, rounded down to `digits` significant digits."""
    return Quantity(down(value, digits), unit, "at least", origin)


def estimate(value: float, unit: str, origin: str, digits: int = 4) -> Quantity:
    """Return an estimate as a quantity, rounded to the nearest value. It is not a bound."""
    return Quantity(rounded_nearest(value, digits), unit, "estimate", origin)


def exact(value: float, unit: str, origin: str, digits: int = 6) -> Quantity:
    """Return a number that was counted or computed as a quantity, rounded to the nearest value."""
    return Quantity(rounded_nearest(value, digits), unit, "exact", origin)


def every_digit(value: float, unit: str, origin: str) -> Quantity:
    """Return a quantity with every digit, because a bound holds at this number and may not hold at a rounded one."""
    return Quantity(shortest(value), unit, "exact", origin)


def already_rounded(text: str, unit: str, origin: str) -> Quantity:
    """Return a quantity from a text that was already rounded in the direction that keeps its statement true."""
    return Quantity(text, unit, "exact", origin)


def chosen_value(value: float, unit: str, origin: str = "document") -> Quantity:
    """Return a number that somebody chose as a quantity, in its shortest exact form."""
    return Quantity(shortest(value) if isinstance(value, float) else str(value), unit, "chosen", origin)


def directed(number: Quantity) -> Content:
    """Return a quantity preceded by its direction in words."""
    words = {"at most": "at most ", "at least": "at least ", "estimate": "about "}
    return (words.get(number.direction, ""), number)


def filled(text: str, *parts: Inline | Content) -> Content:
    """Return a text with a part in place of each `{}`."""
    content: list[Inline] = []
    for words, part in zip(text.split("{}"), (*parts, ()), strict=True):
        content += [*((words,) if words else ()), *(part if isinstance(part, tuple) else (part,))]
    return tuple(content)


Part = TypeVar("Part")


def legible(part: Part) -> Part:
    """Return a page, or a part of one, with every text printable; code keeps its line breaks."""
    return cast(Part, _legible(part))


def _legible(part: Any) -> Any:
    if isinstance(part, str):
        return printable(part)
    if isinstance(part, Code):
        return Code("\n".join(map(printable, part.text.split("\n"))), part.language)
    if isinstance(part, tuple):
        return tuple(map(_legible, part))
    if isinstance(part, Mapping):
        return {key: _legible(value) for key, value in part.items()}
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: _legible(getattr(part, field.name)) for field in fields(part)})
    return part
