"""What a run is opened with: a certificate, or a document, whose claim is certified at once.

Only what is certified is run. A certificate is taken at its word. A document without a blank makes a claim, which is certified
when the run begins if that needs no samples; the certificate then lies in the run's folder, and whoever takes the run up finds it
there. A document that needs samples takes its certificate first. `uncertified=True` runs a document all the same: then the record
says so in its first line, and every report of it too.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyaccount.accountant.planned import planned
from pyaccount.certificate import Certificate
from pyaccount.errors import DocumentError, DomainError, RunError
from pyaccount.training.certified import Certified, certified
from pyaccount.training.folder import CERTIFICATE, LOOKING, PATIENCE, RECORD
from pyaccount.training.record import begun, version_of

if TYPE_CHECKING:
    from pyaccount.document import Document

#: A document that is not certified in as many seconds takes its certificate.
MOST_SECONDS = 60.0


def opened(run: Certified, folder: Path, *, uncertified: bool, rank: int) -> Certified:
    """Return the run that is opened in this folder, with its certificate if it has one.

    Raises `CertificateError` for a claim that does not hold, `DocumentError` for a document that takes samples, `LimitError` for
    one that takes too long, and `RunError` if the folder has another document's certificate.
    """
    document, record = run.document, folder / RECORD
    if run.certificate_sha256 is not None:
        if uncertified:
            raise DomainError("uncertified=True is for a document, and this is a certificate: leave it out")
        return run
    if uncertified or (begun(record) and version_of(record) == 1):
        # Before version 2 no document was certified when it was opened.
        return run
    kept = _kept(folder, wait=rank > 0)
    if kept is None:
        kept = _certificate(document)
    if kept.data.document != document.to_mapping():
        raise RunError(
            f"{folder / CERTIFICATE}: the run in this folder is that of another document; another run takes a folder of its own"
        )
    return replace(certified(kept, document), certificate=kept.to_json())


def _kept(folder: Path, *, wait: bool) -> Certificate | None:
    """Return the certificate in the folder, None if there is none. With `wait`, wait until the first rank has made it.

    Raises `RunError` if that takes too long.
    """
    path, deadline = folder / CERTIFICATE, time.monotonic() + PATIENCE
    # A run that began with a certificate has none in its folder.
    while wait and not path.exists() and not begun(folder / RECORD):
        if time.monotonic() > deadline:
            raise RunError(f"{path}: the first rank did not certify the document within {PATIENCE:g} s")
        time.sleep(LOOKING)
    return Certificate.load(path) if path.exists() else None


def _certificate(document: Document) -> Certificate:
    """Certify a document. Raises `DocumentError` if that takes samples, and `LimitError` if it takes too long."""
    if planned(document).sampled:
        message = (
            "this document is certified by samples, which takes longer than opening a run should: give its certificate, made by "
            "`pyaccount certify`, or uncertified=True"
        )
        raise DocumentError([document.problem("uncertified", ("sampler",), message, allowed="a certificate")])
    from pyaccount.execute.progress import silent  # most runs are of certificates
    from pyaccount.running import compile_document

    limit = "TrainingRun's own limit: certify the document first, and give its certificate"
    return compile_document(document).run(report=silent, time_limit=MOST_SECONDS, limited_by=limit)
