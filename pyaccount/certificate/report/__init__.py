"""Builds pages: a certificate, an amplification, a comparison, a plan or a matrix as a `Page`.

What follows from a certificate's points is computed here or in `meaning`. Nothing else is computed and no file is read:
what in a certificate contradicts the rest of it is an argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.errors import printable
from pyaccount.pages.page import Page, content_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.records.amplification import AmplificationData
    from pyaccount.records.certificate import CertificateModel


def page_of(data: CertificateModel | AmplificationData, contradictions: Sequence[str] = ()) -> Page:
    """Return the page of a certificate of either kind. `contradictions` are those found in it, with paths."""
    if data.kind == "certificate":
        from pyaccount.certificate.report.sections import certificate_page

        return certificate_page(data, contradictions)
    from pyaccount.certificate.report.amplified import amplification_page

    return amplification_page(data, contradictions)


def brief(data: CertificateModel | AmplificationData) -> list[tuple[str, str]]:
    """Return the short answer (`--brief`): what is certified, the value that was solved for, and the noise, each with its label.

    A certificate has: statement, solved, σ, ε and δ. An amplification has: the statement, and a line for each ε of the document.
    Upper bounds are rounded up and lower bounds down, as everywhere; the certificate itself has every digit.
    """
    if data.kind == "certificate":
        from pyaccount.certificate.report.sections import brief_facts

        facts = brief_facts(data)
    else:
        from pyaccount.certificate.report.amplified import brief_effects

        facts = brief_effects(data)
    return [(fact.label, content_text(fact.content)) for fact in facts]


def brief_text(data: CertificateModel | AmplificationData) -> str:
    """Return the short answer as text, with the labels in a column. Lines are not wrapped, so that programs can parse them."""
    lines = brief(data)
    width = max(len(name) for name, _ in lines)
    return "".join(f"{name:<{width}}  {printable(value)}\n" for name, value in lines)
