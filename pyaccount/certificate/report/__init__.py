"""Builds pages: a certificate, an amplification, a comparison, a plan or a matrix as a `Page`.

What follows from a certificate's points is computed here or in `meaning`. Nothing else is computed and no file is read:
what in a certificate contradicts the rest of it is an argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.pages.page import Page
    from pyaccount.records.amplification import AmplificationData
    from pyaccount.records.certificate import CertificateModel


def page_of(data: CertificateModel | AmplificationData, contradictions: Sequence[str] = ()) -> Page:
    """Return the page of a certificate of either kind. `contradictions` are those found in it, with paths."""
    if data.kind == "certificate":
        from pyaccount.certificate.report.sections import certificate_page

        return certificate_page(data, contradictions)
    from pyaccount.certificate.report.amplified import amplification_page

    return amplification_page(data, contradictions)
