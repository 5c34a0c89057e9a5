"""Prints a page as one HTML file that needs nothing else: no script, font, picture or network.

Jinja escapes everything on a page except the pictures, which escape their own contents.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pyaccount.pages.page import SENSES, Block, Inline, Page, legible, origins_of
from pyaccount.pages.svg import svg


def html(page: Page) -> str:
    """Return the page as an HTML file."""
    style = files("pyaccount.pages").joinpath("templates", "style.css").read_text(encoding="utf-8")
    page = legible(page)
    used = page.used_origins()
    return (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            # The style sheet is part of this package and needs no escaping.
            style=Markup(style),
            notes=[(name, page.origins[name]) for name in used],
            number_of={name: place for place, name in enumerate(used, 1)},
            directions={number.direction: SENSES[number.direction] for number in page.numbers()},
        )
    )


def notebook(page: Page) -> str:
    """Return the page as an HTML fragment without a style, for a notebook; sections are folded below the headline.

    Pictures, code and the notes on origins are left out.
    """
    return _environment().get_template("fragment.html").render(page=legible(page))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pyaccount.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["kind"] = _kind
    environment.filters["origins_of"] = origins_of
    environment.filters["picture"] = lambda figure: Markup(svg(figure.plot, figure.name))
    environment.filters["unbroken"] = _unbroken
    return environment


def _kind(part: Block | Inline) -> str:
    """Return the name of the kind of a block or a text, for the templates."""
    if isinstance(part, str):
        return "text"
    return type(part).__name__.lower()


def _unbroken(heading: str) -> Markup:
    """Return a heading whose words are not broken at their hyphens, as browsers do in narrow columns."""
    words = (
        Markup('<span class="unbroken">{}</span>').format(word) if "-" in word else escape(word)
        for word in heading.split(" ")
    )
    return Markup(" ").join(words)
