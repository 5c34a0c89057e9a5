"""Set documents and finished certificates side by side; each document is run, and no failure stops the others."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.certificate import Certificate
from pyaccount.certificate.compared import FailedRecord, Why, is_certificate, row_of
from pyaccount.certificate.comparison import Comparison
from pyaccount.errors import DocumentError, DomainError, PyaccountError
from pyaccount.reading.sources import Folders, Handed
from pyaccount.running.plan import Plan, compile_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyaccount.document.document import Document
    from pyaccount.execute.progress import Report
    from pyaccount.reading.overrides import Overrides


def comparable(
    source: str | os.PathLike[str] | Handed | Mapping[str, Any] | Document | Certificate,
    overrides: Overrides = (),
    folders: Folders = (),
) -> Plan | Certificate:
    """Return the item to compare: the plan of a document, or a finished certificate, to which overrides do not apply.

    Raises `DocumentError`, and `CertificateError` for the certificate of an amplification or one that cannot be read.
    """
    if isinstance(source, Certificate):
        return source
    if isinstance(source, str | os.PathLike) and is_certificate(source):
        return Certificate.load(source)
    if isinstance(source, Handed) and is_certificate(source):
        from pyaccount.certificate.reading import parse_certificate  # this is seldom needed

        return Certificate(parse_certificate(source.data, source.name).certificate())
    from pyaccount.document.loading import load

    return compile_document(load(source, overrides=overrides, folders=folders))


def compare(plans: Sequence[Plan | Certificate], *, threads: int = 0, report: Report | None = None) -> Comparison:
    """Run each plan, and return its certificate beside those that are finished.

    A plan that cannot be certified, or a certificate that contradicts itself, is recorded among the failures; the other
    plans are still certified. Ctrl-C raises `KeyboardInterrupt`.
    """
    rows, failures = [], []
    for place, plan in enumerate(plans):
        if isinstance(plan, Certificate):
            failed = _contradiction(place, plan)
            if failed is None:
                rows.append(row_of(plan.data, 0.0, finished=True))
            else:
                failures.append(failed)
            continue
        began = time.monotonic()
        try:
            certificate = plan.run(threads=threads, report=report)
        except PyaccountError as error:
            document = plan.asked or plan.document
            failures.append(
                FailedRecord(
                    place=place,
                    name=document.name,
                    file=document.file,
                    why=why(error),
                    message=str(error),
                    seconds=time.monotonic() - began,
                )
            )
        else:
            rows.append(row_of(certificate.data, time.monotonic() - began))
    return Comparison(pyaccount=1, kind="comparison", rows=rows, failures=failures)


def why(error: BaseException) -> Why:
    """Return the kind of failure of an error: of the document, or of the machine."""
    return "wrong" if isinstance(error, DocumentError | DomainError) else "stopped"


def _contradiction(place: int, certificate: Certificate) -> FailedRecord | None:
    """Return the record of a certificate that contradicts itself, or `None` if it does not."""
    from pyaccount.certificate.saving import contradictions

    found = contradictions(certificate.data)
    if not found:
        return None
    return FailedRecord(
        place=place,
        name=certificate.data.name,
        file=None,
        why="contradictory",
        message="\n".join(("the certificate contradicts itself:", *found)),
        seconds=0.0,
    )
