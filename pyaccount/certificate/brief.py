"""The short answer (`--brief`): what is certified, the value that was solved for, and the noise, on one line each.

Upper bounds are rounded up and lower bounds down, as everywhere; the certificate itself has every digit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.errors import printable
from pyaccount.pages.page import content_text

if TYPE_CHECKING:
    from pyaccount.records.amplification import AmplificationData
    from pyaccount.records.certificate import CertificateModel

_Lines = list[tuple[str, str]]


def brief(data: CertificateModel | AmplificationData) -> _Lines:
    """Return the lines of the short answer, each with its label.

    A certificate has: statement, solved, σ, ε and δ. An amplification has: the statement, and a line for each ε of the
    document.
    """
    if data.kind == "certificate":
        from pyaccount.certificate.report.sections import brief_facts

        facts = brief_facts(data)
    else:
        from pyaccount.certificate.report.amplified import brief_effects

        facts = brief_effects(data)
    return [(fact.label, content_text(fact.content)) for fact in facts]


def text(lines: _Lines) -> str:
    """Return the lines as text, with the labels in a column. Lines are not wrapped, so that programs can parse them."""
    width = max(len(name) for name, _ in lines)
    return "".join(f"{name:<{width}}  {printable(value)}\n" for name, value in lines)
