"""The base class of objects that people read: from the object's page it derives all forms."""

from __future__ import annotations

import json
from dataclasses import asdict

from pyaccount.pages.page import Page
from pyaccount.pages.terminal import WIDTH, terminal


def printed(page: Page, form: str, *, width: int | None = WIDTH) -> str:
    """Return a page as `html`, `markdown` or `text`; `width` applies only to text."""
    if form == "html":
        # The template engine is loaded only if it is needed.
        from pyaccount.pages.html import html

        return html(page)
    if form == "markdown":
        from pyaccount.pages.markdown import markdown

        return markdown(page)
    return terminal(page, width)


class Readable:
    """An object with a page. All forms say the same; upper bounds are rounded up, lower bounds down."""

    __slots__ = ()

    def page(self) -> Page:
        """Return the object as a page, from which the forms are printed."""
        raise NotImplementedError

    def to_text(self, width: int | None = None) -> str:
        """Return the page as plain text, in lines of at most `width` cells; None does not limit the width."""
        return printed(self.page(), "text", width=width)

    def to_markdown(self) -> str:
        """Return the page as Markdown, for pull requests and model cards."""
        return printed(self.page(), "markdown")

    def to_html(self) -> str:
        """Return the page as one self-contained HTML file."""
        return printed(self.page(), "html")

    def _repr_html_(self) -> str:
        # The template engine is loaded only if it is needed.
        from pyaccount.pages.html import notebook

        return notebook(self.page())


class ReadableData(Readable):
    """A dataclass with a page, which is written as JSON with all of its fields."""

    __slots__ = ()

    def to_json(self) -> str:
        """Return the data as JSON text. Half a character, as in names of files that are no text, is written as JSON spells it."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False, allow_nan=False)  # type: ignore[call-overload]
        return f"{text.encode(errors='backslashreplace').decode()}\n"
