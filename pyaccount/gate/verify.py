"""A certificate recomputed from the document inside it, with the recorded seed where it was sampled."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pyaccount.arguments import seconds_of, threads_of
from pyaccount.certificate.amplification import AmplificationCertificate, amplify
from pyaccount.certificate.certificate import Certificate
from pyaccount.certificate.consistency import created_inconsistencies, hash_inconsistencies, inconsistencies
from pyaccount.certificate.reading import AMPLIFICATION, Read, parse, read
from pyaccount.document import Amplification, Document
from pyaccount.errors import DocumentError, DomainError, path_text
from pyaccount.execute.progress import Stage, limit_of, limited
from pyaccount.gate.agreement import Difference, Terms
from pyaccount.gate.examination import Examination
from pyaccount.gate.recomputation import Recomputation
from pyaccount.gate.verification import Verification

if TYPE_CHECKING:
    from pyaccount.execute.progress import Report


def verify(  # noqa: PLR0913 - what is verified, and with what
    source: str | os.PathLike[str] | Certificate | AmplificationCertificate,
    *,
    threads: int = 0,
    time_limit: float | str | None = None,
    report: Report | None = None,
    folder: str | os.PathLike[str] | None = None,
    same_version: bool = False,
    seed: int | Literal["new"] | None = None,
    limited_by: str = "time_limit=",
) -> Verification:
    """Recompute a certificate and compare every field. `time_limit` is in seconds, or spelled as in a document
    (`10 min`), and overrides the document's.

    Files that the document names lie in `folder`, or beside the certificate. With `same_version` a certificate that names another
    version does not agree, and nothing is recomputed: how it is compared follows from its own word. A sampled certificate is held
    against samples of `seed` instead of those recorded: a number in [0, 2⁶⁴), or `new` for one drawn now.

    Raises `CertificateError` for what is no certificate, `DocumentError` if a file that its document names is missing,
    `LimitError`, which calls the option that set `time_limit` as `limited_by` says; Ctrl-C raises `KeyboardInterrupt`.
    """
    threads, limit = threads_of(threads), seconds_of(time_limit)
    if isinstance(source, Certificate | AmplificationCertificate):
        found = parse(source.to_json().encode(), "certificate")
    elif isinstance(source, str | os.PathLike):
        found = read(source)
    else:
        raise TypeError(f"certificate is the path of a JSON file or a Certificate, not {type(source).__name__}")
    if found.kind == AMPLIFICATION:
        return _amplification(found, same_version=same_version)
    data = found.certificate()
    examination = Examination(found, data.name, inconsistencies(data), dict(data.versions))
    if folder is not None:
        examination.beside = str(Path(folder) / Path(found.file).name)
    if not data.holds:
        examination.notes.append("the certificate says that its document's claim does not hold")
    if same_version and not examination.same_version:
        return examination.another_version()
    document = examination.document()
    if not isinstance(document, Document):
        return examination.verdict(None, Terms("digits", 0.0, examination.same_version), [])
    stage = Stage(report)
    recomputation = Recomputation(examination, data, document, threads, limit, stage, _drawn(seed))
    try:
        with limited(limit_of(document, limit, limited_by), stage):
            return recomputation.verdict()
    except DocumentError as error:
        if any(problem.slug == "matrix-file" for problem in error.problems):
            hint = "; files that a certificate's document names are looked for beside it, or in the folder of --folder"
            raise DocumentError(
                replace(one, message=one.message + hint) if one.slug == "matrix-file" else one for one in error.problems
            ) from error
        return examination.verdict(None, Terms("digits", 0.0, examination.same_version), _problems(error))


def _drawn(seed: int | Literal["new"] | None) -> int | None:
    if seed is None:
        return None
    if seed == "new":
        return secrets.randbits(64)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 64:
        raise DomainError(f"seed = {seed!r} is outside its domain: a whole number of at least 0 and below 2⁶⁴, or new")
    return seed


def _problems(error: DocumentError) -> list[Difference]:
    """What made recomputing impossible, as differences from a certificate that says it was possible."""
    return [
        Difference(path_text(("document", *problem.path)), None, None, False, problem.message)
        for problem in error.problems
    ]


def _amplification(found: Read, *, same_version: bool) -> Verification:
    data = found.amplification()
    noted = [*hash_inconsistencies(data.document, data.document_sha256), *created_inconsistencies(data.created)]
    examination = Examination(found, data.name, noted, dict(data.versions))
    if same_version and not examination.same_version:
        return examination.another_version()
    terms = Terms("digits", 0.0, examination.same_version)
    document = examination.document()
    if not isinstance(document, Amplification):
        return examination.verdict(None, terms, [])
    try:
        fresh = amplify(document)
    except DocumentError as error:
        return examination.verdict(None, terms, _problems(error))
    return examination.verdict(json.loads(fresh.to_json()), terms, [])
