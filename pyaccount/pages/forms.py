"""A page in the form that somebody asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.pages.terminal import WIDTH, terminal

if TYPE_CHECKING:
    from pyaccount.pages.page import Page


def printed(page: Page, form: str, *, width: int | None = WIDTH, color: bool = False) -> str:
    """Return a page as `html`, `markdown` or `text`; `width` and `color` are of the text."""
    if form == "html":
        # The template engine loads when it is wanted.
        from pyaccount.pages.html import html

        return html(page)
    if form == "markdown":
        from pyaccount.pages.markdown import markdown

        return markdown(page)
    return terminal(page, width, color=color)
