"""The report as one HTML page that needs nothing else: no script, no font, no picture, no network.

Everything that comes from a certificate passes through Jinja's escaping; only the pictures, which escape what they hold, do not.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pyaccount.certificate.report.bars import Bars, bars_svg
from pyaccount.certificate.report.origins import ORIGINS
from pyaccount.certificate.report.page import SENSES, origins_of
from pyaccount.certificate.report.plot import svg
from pyaccount.certificate.words import CONTRADICTED, CONTRADICTS

if TYPE_CHECKING:
    from pyaccount.certificate.report.page import Block, Figure, Inline, Page


def html(page: Page) -> str:
    """The page."""
    style = files("pyaccount.certificate.report").joinpath("templates", "style.css").read_text(encoding="utf-8")
    used = page.origins()
    return (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            contradicted=CONTRADICTED,
            contradicts=CONTRADICTS,
            # The style sheet is part of this package; it holds nothing to escape.
            style=Markup(style),
            notes=[(name, ORIGINS[name]) for name in used],
            number_of={name: place for place, name in enumerate(used, 1)},
            origins=ORIGINS,
            directions={number.direction: SENSES[number.direction] for number in page.numbers()},
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pyaccount.certificate.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["kind"] = _kind
    environment.filters["origins_of"] = origins_of
    environment.filters["picture"] = _picture
    return environment


def _kind(part: Block | Inline) -> str:
    """Which kind of block or text a part is."""
    if isinstance(part, str):
        return "text"
    return type(part).__name__.lower()


def _picture(figure: Figure) -> Markup:
    plot = figure.plot
    return Markup(bars_svg(plot, figure.name) if isinstance(plot, Bars) else svg(plot, figure.name))
