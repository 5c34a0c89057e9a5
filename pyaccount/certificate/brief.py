"""The short answer: what is certified, what was solved for it, and at which noise, each on a line of its own.

Upper bounds are rounded up and lower bounds down, as everywhere; the certificate itself has every digit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.errors import printable
from pyaccount.pages.page import text_of

if TYPE_CHECKING:
    from pyaccount.certificate.amplification_data import AmplificationData
    from pyaccount.certificate.model import CertificateModel

_Lines = list[tuple[str, str]]


def brief(data: CertificateModel | AmplificationData) -> _Lines:
    """Return the lines of the short answer, each with what it is called.

    Of a certificate: statement, solved, σ, ε and δ. Of an amplification: the statement, and a line for each ε of the document.
    """
    if data.kind == "certificate":
        from pyaccount.certificate.report.sections import brief_facts

        facts = brief_facts(data)
    else:
        from pyaccount.certificate.report.amplified import brief_effects

        facts = brief_effects(data)
    return [(fact.label, text_of(fact.content)) for fact in facts]


def text(lines: _Lines) -> str:
    """Return the lines as text, with what they are called in a column. No line is broken: programs take them apart."""
    width = max(len(name) for name, _ in lines)
    return "".join(f"{name:<{width}}  {printable(value)}\n" for name, value in lines)
