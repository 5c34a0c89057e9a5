"""Recomputes a certificate from the document inside it; if it was sampled, with the recorded seed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pyaccount.arguments import seconds_of, threads_of
from pyaccount.attestation.statement import Attestation, envelope_of
from pyaccount.certificate.amplification import AmplificationCertificate, amplify
from pyaccount.certificate.certificate import Certificate
from pyaccount.certificate.reading import AMPLIFICATION, Read, given_certificate
from pyaccount.document.amplification import Amplification
from pyaccount.document.document import Document
from pyaccount.errors import AttestationError, DocumentError, DomainError, path_text, printable
from pyaccount.execute.options import RunOptions
from pyaccount.execute.progress import reported, silent
from pyaccount.gate.agreement import Difference, Terms
from pyaccount.gate.examination import Examination
from pyaccount.gate.recomputation import Recomputation
from pyaccount.gate.required_signatures import required_signatures_of
from pyaccount.gate.verdict import Attested
from pyaccount.gate.verification import Verification
from pyaccount.reading.sources import Folders


@dataclass(frozen=True, slots=True)
class How:
    """How to recompute a certificate: threads, time and files, and what to compare it with."""

    #: The threads, the time limit and the progress report. The seed is that of the certificate, or follows from `seed`.
    options: RunOptions
    #: Where the files that the document names may lie, besides the folder of the certificate.
    folders: Folders = ()
    #: Accept only certificates that state this version. Otherwise the version that a certificate states decides the
    #: comparison.
    same_version: bool = False
    #: The seed for other samples than those recorded: a number in [0, 2⁶⁴), or `new` for a random one.
    seed: int | Literal["new"] | None = None
    #: The name in messages of the option that set `folders`.
    folder_by: str = "folders="


def verify(  # noqa: PLR0913 - what is verified, and with what
    certificate: str | os.PathLike[str] | Certificate | None = None,
    *,
    attestation: str | os.PathLike[str] | Attestation | None = None,
    trusted_keys: str | os.PathLike[str] | None = None,
    subjects: Sequence[str | os.PathLike[str]] = (),
    any_subject: bool = False,
    threads: int = 0,
    time_limit: float | str | None = None,
    folders: Sequence[str | os.PathLike[str]] = (),
    same_version: bool = False,
    seed: int | Literal["new"] | None = None,
    progress: bool = False,
) -> Verification:
    """Recompute a certificate from the document in it, and compare every field.

    Args:
        certificate: A JSON file, or a certificate in memory.
        attestation: A signed certificate, instead of `certificate`. Before anything is recomputed, the signature is checked.
        trusted_keys: A folder of public keys, for an attestation: one of them must have signed it.
        subjects: Files, for an attestation: it must be about each of them.
        any_subject: Accept an attestation about any files, instead of `subjects`.
        threads: As for `certify`.
        time_limit: As for `certify`.
        folders: Where the files that the document names may lie, besides the folder of the certificate.
        same_version: Accept only a certificate that names this version of pyaccount.
        seed: Compare a sampled certificate with samples of another seed: a number, or `new` for one that is drawn now.
        progress: As for `certify`.

    Returns the result, which is true if the certificate agrees. Raises `AttestationError` if the signature or the subjects do
    not match, `CertificateError` if the source is not a certificate, `DomainError` for arguments that do not belong together,
    and otherwise as `certify`.

    ```python
    import pyaccount

    if not pyaccount.verify("training.cert.json"):
        print("the certificate says something else than this version computes")
    ```
    """
    if certificate is not None and attestation is not None:
        raise DomainError("certificate or attestation is what is verified: not both")
    if attestation is None and (trusted_keys is not None or subjects or any_subject):
        message = "trusted_keys, subjects and any_subject are for an attestation: nobody signed a certificate by itself"
        raise DomainError(message)
    threads, time_limit = threads_of(threads), seconds_of(time_limit)
    with reported(progress) as report:
        options = RunOptions(threads=threads, time_limit=time_limit, report=report or silent)
        how = How(options, folders=folders, same_version=same_version, seed=seed)
        if attestation is not None:
            return verify_attestation(
                attestation, how, trusted_keys=trusted_keys, subjects=subjects, any_subject=any_subject
            )
        return recompute(certificate, how)  # type: ignore[arg-type] # it says what None is not


def recompute(source: str | os.PathLike[str] | Certificate | AmplificationCertificate, how: How) -> Verification:
    """Recompute a certificate and compare every field.

    A time limit overrides that of the document. Raises
    `CertificateError` if the source is not a certificate, `DocumentError` if a file that its document names is missing,
    and `LimitError`; Ctrl-C raises `KeyboardInterrupt`.
    """
    return _recompute(given_certificate(source), how)


def verify_attestation(
    source: str | os.PathLike[str] | Attestation,
    how: How,
    *,
    trusted_keys: str | os.PathLike[str] | None,
    subjects: Sequence[str | os.PathLike[str]] = (),
    any_subject: bool = False,
) -> Verification:
    """Check who signed an attestation and for which files; then recompute the certificate in it, as `recompute` does.

    Either `subjects` or `any_subject` must be given. Raises `AttestationError`, before anything is recomputed, if no
    key in the folder `trusted_keys` signed it, or if it is not about each of the files `subjects`; `CertificateError`
    if the source is not an attestation; `DomainError` if there are no keys, or neither subjects nor `any_subject`.
    """
    required, envelope = required_signatures_of(None, trusted_keys, subjects, "caller"), envelope_of(source)
    required.check_subjects(any_subject=any_subject)
    rules, signers = required.signatures(envelope)
    statement = envelope.statement() if all(rule.passes for rule in rules) else None
    if statement is not None:
        rules += required.subjects(statement.subjects)
    wrong = [rule.remark or rule.rule for rule in rules if not rule.passes]
    if statement is None or wrong:
        raise AttestationError("\n".join(f"{printable(envelope.file)}: {why}" for why in wrong))
    verification = _recompute(statement.certificate, how)
    return replace(verification, attestation=Attested(tuple(signers), statement.subjects))


def _recompute(found: Read, how: How) -> Verification:
    if found.kind == AMPLIFICATION:
        return _amplification(found, same_version=how.same_version)
    data = found.certificate()
    examination = Examination.of(found, data)
    examination.folders = how.folders
    if not data.holds:
        examination.notes.append("the certificate says that its document's claim does not hold")
    if how.same_version and not examination.same_version:
        return examination.another_version()
    document = examination.document()
    if not isinstance(document, Document):
        return examination.verdict(None, Terms(same_version=examination.same_version), [])
    try:
        with how.options.begun(document) as options:
            return Recomputation(examination, data, document, options, _drawn(how.seed)).verdict()
    except DocumentError as error:
        if any(problem.slug == "matrix-file" for problem in error.problems):
            hint = (
                "; files that a certificate's document names are looked for beside it, and in the folders that "
                f"{how.folder_by} names"
            )
            raise DocumentError(
                replace(one, message=one.message + hint) if one.slug == "matrix-file" else one for one in error.problems
            ) from error
        return examination.verdict(None, Terms(same_version=examination.same_version), _problems(error))


def _drawn(seed: int | Literal["new"] | None) -> int | None:
    if seed is None:
        return None
    if seed == "new":
        return secrets.randbits(64)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 64:
        raise DomainError(f"seed = {seed!r} is outside its domain: a whole number of at least 0 and below 2⁶⁴, or new")
    return seed


def _problems(error: DocumentError) -> list[Difference]:
    """Return the errors that make recomputing impossible, as differences that are not allowed."""
    return [
        Difference(path_text(("document", *problem.path)), None, None, False, problem.message)
        for problem in error.problems
    ]


def _amplification(found: Read, *, same_version: bool) -> Verification:
    data = found.amplification()
    examination = Examination.of(found, data)
    if same_version and not examination.same_version:
        return examination.another_version()
    terms = Terms(same_version=examination.same_version)
    document = examination.document()
    if not isinstance(document, Amplification):
        return examination.verdict(None, terms, [])
    try:
        fresh = amplify(document)
    except DocumentError as error:
        return examination.verdict(None, terms, _problems(error))
    return examination.verdict(fresh, terms, [])
