"""Opens a run with its certificate; the claim of a document without a certificate is certified when the run begins.

Only certified runs are opened. A given certificate is not recomputed. A document without a blank makes a claim. If certifying it
needs no samples, that is done when the run begins; the certificate is then stored in the run's folder, where it is read when the
run is continued. If it needs samples, the document must be certified first. `uncertified=True` runs a document without a
certificate; then the first line of the record says so, and every report of it does too.
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
from pyaccount.training.record import begun

if TYPE_CHECKING:
    from pyaccount.document.document import Document

#: The time limit for certifying a document when a run is opened; a document that needs longer must be certified first.
MOST_SECONDS = 60.0


def opened(run: Certified, folder: Path, *, uncertified: bool, rank: int) -> Certified:
    """Return the run with its certificate: the one given, the one in the folder, or a new one for the document.

    Raises `CertificateError` if the claim does not hold, `DocumentError` if certifying the document needs samples, `LimitError`
    if it takes too long, and `RunError` if the folder has a certificate of another document.
    """
    document = run.document
    if run.certificate_sha256 is not None:
        if uncertified:
            raise DomainError("uncertified=True is for documents, and a certificate is given: leave it out")
        return run
    if uncertified:
        return run
    kept = _kept(folder, wait=rank > 0)
    if kept is None:
        kept = _certificate(document)
    if kept.data.document != document.to_mapping():
        raise RunError(
            f"{folder / CERTIFICATE}: the run in this folder is that of another document: use a folder of its own for this one"
        )
    return replace(certified(kept, document), certificate=kept.to_json())


def _kept(folder: Path, *, wait: bool) -> Certificate | None:
    """Return the certificate in the folder, or None if there is none.

    With `wait`, wait until the first rank has made it or has begun the record. Raises `RunError` if that takes too long.
    """
    path, deadline = folder / CERTIFICATE, time.monotonic() + PATIENCE
    # A run that began with a certificate has none in its folder.
    while wait and not path.exists() and not begun(folder / RECORD):
        if time.monotonic() > deadline:
            raise RunError(f"{path}: the first rank did not certify the document within {PATIENCE:g} s")
        time.sleep(LOOKING)
    return Certificate.load(path) if path.exists() else None


def _certificate(document: Document) -> Certificate:
    """Certify a document. Raises `DocumentError` if that needs samples, and `LimitError` if it takes too long."""
    if planned(document).sampled:
        message = (
            "certifying this document needs samples, which takes too long for opening a run: give its certificate, made by "
            "`pyaccount certify`, or uncertified=True"
        )
        raise DocumentError([document.problem("uncertified", ("sampler",), message, allowed="a certificate")])
    from pyaccount.execute.progress import silent  # not needed for most runs, which have a certificate
    from pyaccount.running import compile_document

    limit = "TrainingRun's own limit: certify the document first, and give its certificate"
    return compile_document(document).run(report=silent, time_limit=MOST_SECONDS, limited_by=limit)
