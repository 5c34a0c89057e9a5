"""What notebooks show: the heart of a certificate, a profile, a comparison or a plan, as a piece of HTML.

It brings no style, script or picture of its own, and everything in it is escaped: names in documents are their authors'.
Upper bounds are rounded up and lower bounds down, and each says which it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.brief import noise, solved
from pyaccount.certificate.legible import legible
from pyaccount.certificate.saving import contradictions
from pyaccount.certificate.words import CONTRADICTED
from pyaccount.errors import MissingExtraError
from pyaccount.rounding import down, plain, up

if TYPE_CHECKING:
    from pyaccount.certificate.model import CertificateModel

#: Points of a profile that are shown; all of them are in its data.
MOST_POINTS = 30


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table of texts."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def paragraph(text: str, *, strong: bool = False) -> str:
    """A line of text."""
    return f"<p><strong>{escape(text)}</strong></p>" if strong else f"<p>{escape(text)}</p>"


def certificate_html(data: CertificateModel) -> str:
    """A certificate: whether it holds, its sentence, its bounds and what was solved; first of all what contradicts the rest."""
    wrong, data = contradictions(data), legible(data)
    guarantee = data.guarantee
    word = CONTRADICTED if wrong else "HOLDS" if data.holds else "DOES NOT HOLD"
    parts = [paragraph(f"Privacy certificate {data.name}: {word}", strong=True)]
    parts += [paragraph(one) for one in wrong]
    parts.append(paragraph(data.statement))
    rows = [
        ("ε", up(guarantee.epsilon), down(guarantee.epsilon_lower), f"at δ = {plain(guarantee.delta)}"),
        ("δ", up(guarantee.delta), down(guarantee.delta_lower), f"at ε = {plain(guarantee.epsilon)}"),
    ]
    parts.append(table(("", "at most", "at least", ""), rows))
    parts += [paragraph(f"solved: {solved(data)}"), paragraph(f"σ: {noise(data)}")]
    return "".join(parts)


def profile_html(data: CertificateModel) -> str:
    """The points of a privacy profile."""
    data = legible(data)
    rows = [(plain(one.epsilon), up(one.delta), down(one.delta_lower)) for one in data.profile[:MOST_POINTS]]
    left = len(data.profile) - len(rows)
    caption = f"Privacy profile of {data.name}" + (
        f" (the first {len(rows)} of {len(data.profile)} points)" if left else ""
    )
    return table(("ε", "δ at most", "δ at least"), rows, caption)


def data_frame(columns: dict[str, list[Any]]) -> Any:
    """Columns as a data frame of pandas. Raises `MissingExtraError`."""
    try:
        from pandas import DataFrame  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError.of("pandas", "data frames need it", "take to_dict") from error
    return DataFrame(columns)
