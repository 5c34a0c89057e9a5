"""The public functions `pyaccount.verify` and `pyaccount.check`: they check arguments and hand them on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pyaccount.attestation.statement import Attestation
    from pyaccount.certificate import Certificate
    from pyaccount.document.document import Document
    from pyaccount.gate.verdict import Verdict
    from pyaccount.gate.verification import Verification
    from pyaccount.ledger import Ledger
    from pyaccount.reading.sources import Source


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
    from pyaccount.arguments import seconds_of, threads_of
    from pyaccount.errors import DomainError
    from pyaccount.execute.options import RunOptions
    from pyaccount.execute.progress import reported, silent
    from pyaccount.gate.verify import How, verify_attestation
    from pyaccount.gate.verify import verify as recompute

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


def check(  # noqa: PLR0913 - what is judged, and by what
    *certificates: str | os.PathLike[str] | Certificate,
    policy: Source | None = None,
    document: Source | Document | Sequence[Source | Document] | None = None,
    attestation: str | os.PathLike[str] | Attestation | Sequence[str | os.PathLike[str] | Attestation] = (),
    trusted_keys: str | os.PathLike[str] | None = None,
    subjects: Sequence[str | os.PathLike[str]] = (),
    no_limits: bool = False,
    any_subject: bool = False,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    data_set: str | None = None,
    **limits: object,
) -> Verdict:
    """Compare certificates with a policy, or with limits such as `max_epsilon=8, max_delta=1e-5`. Nothing is recomputed.

    Args:
        certificates: JSON files, or certificates in memory.
        policy: The file or the mapping of a policy.
        document: A document, or a list of them: each certificate must be about one of them.
        attestation: A signed certificate, or a list of them. A certificate that is not signed does not pass in addition.
        trusted_keys: A folder of public keys, for attestations: one of them must have signed each.
        subjects: Files, for attestations: each must be about all of them.
        no_limits: Allow that ε and δ are not limited; the verdict shows them. Limits that are given still apply.
        any_subject: Accept attestations about any files, instead of `subjects`.
        ledger: A ledger, its file or its address: each certificate must be entered there, or fit into the budget.
        data_set: The data set of the ledger; by default the only one.
        limits: Limits by the names of a policy's fields. They apply in addition to the policy.

    The policy and the limits together must limit both ε and δ, or an attack (`max_advantage`, or `max_true_positive_rate` with
    `at_false_positive_rate`), unless `no_limits` is set or a ledger is asked.

    Returns the verdict, which is true if every certificate passes, as in `if not check(…): raise SystemExit(1)`. A file that
    is not a certificate fails. Raises `DocumentError` if the policy, a document or a limit is wrong, `DomainError` if keys or
    subjects cannot be read, or if a limit or the subjects are missing, and `CertificateError` if no certificate is given.

    ```python
    import pyaccount

    verdict = pyaccount.check("training.cert.json", max_epsilon=8, max_delta=1e-5)
    if not verdict:
        print(verdict.to_text())
    ```
    """
    from pyaccount.gate.check import check as judge

    documents: Any = [document] if not isinstance(document, list | tuple) else document
    attestations: Any = [attestation] if not isinstance(attestation, list | tuple) else attestation
    return judge(
        certificates,
        policy=policy,
        documents=None if document is None else documents,
        limits=limits,
        attestations=attestations,
        trusted_keys=trusted_keys,
        subjects=subjects,
        no_limits=no_limits,
        any_subject=any_subject,
        ledger=ledger,
        data_set=data_set,
    )
