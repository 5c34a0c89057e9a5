"""Reports: a certificate as one HTML page or as Markdown, for people who were not there.

`sections` turns a certificate into a `Page` of blocks, with every number's unit, direction and origin; `html` and `markdown`
render pages and know no certificates. This room computes nothing but what follows from the certificate's own points, reads no
files, and is told by others what in a certificate contradicts the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.model import CertificateModel
    from pyaccount.certificate.report.page import Page, RunPart


def to_html(
    data: CertificateModel | AmplificationCertificate, inconsistencies: Sequence[str] = (), run: RunPart | None = None
) -> str:
    """The report as one self-contained HTML page.

    `inconsistencies` are what in the certificate contradicts the rest of it; `run` is what was recorded of its run.
    """
    from pyaccount.certificate.report.html import html  # noqa: PLC0415 - Jinja loads when a page is wanted

    return html(_with(page_of(data), inconsistencies, run))


def to_markdown(
    data: CertificateModel | AmplificationCertificate, inconsistencies: Sequence[str] = (), run: RunPart | None = None
) -> str:
    """The report as Markdown; the rest as for `to_html`."""
    from pyaccount.certificate.report.markdown import markdown  # noqa: PLC0415

    return markdown(_with(page_of(data), inconsistencies, run))


def _with(page: Page, inconsistencies: Sequence[str], run: RunPart | None) -> Page:
    page = replace(page, inconsistencies=tuple(inconsistencies))
    return page if run is None else page.about(run)


def page_of(data: CertificateModel | AmplificationCertificate) -> Page:
    """The report as data."""
    from pyaccount.certificate.legible import legible  # noqa: PLC0415 - pydantic loads when a page is wanted

    if data.kind == "certificate":
        from pyaccount.certificate.report.sections import certificate_page  # noqa: PLC0415

        return certificate_page(legible(data))
    from pyaccount.certificate.report.amplified import amplification_page  # noqa: PLC0415

    return amplification_page(legible(data))
