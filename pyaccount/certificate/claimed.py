"""The document that a certificate is about, with what was certified in place of every blank: the claim."""

from __future__ import annotations

from pyaccount.certificate.certificate import Certificate, resolved
from pyaccount.certificate.phases import called
from pyaccount.certificate.saving import contradictions
from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.document.schedules import ScheduleFile
from pyaccount.errors import CertificateError, path_text
from pyaccount.plan.matrices import matrix_plan, strategy
from pyaccount.plan.protection import Protection, RunCase
from pyaccount.plan.schedule_values import values_of
from pyaccount.records.certificate import PhaseRecord


def claimed_document(certificate: Certificate, wanted: str, asked: Document | None = None) -> Document:
    """Return the document of a certificate with every blank filled: what was certified is the claim.

    `wanted` says what it is needed for, in messages. `asked` is the document that was certified, if the caller has it; the
    one in the certificate lacks the folder of its matrix files. The samples that found the value of a blank do not test
    that value, so both the recorded seed and the one that the document states are left out. Raises `CertificateError`
    if the claim does not hold, if the certificate contradicts itself or does not state the value of the blank, or if a
    file holds another matrix than the certified one.
    """
    wrong = contradictions(certificate.data)
    if not certificate.holds:
        wrong = [certificate.statement.partition(":")[0]]
    if wrong:
        raise CertificateError(f"there is no {wanted} of this certificate: {'; '.join(wrong)}")
    asked = load(certificate.data.document) if asked is None else asked
    document = resolved(certificate.data, asked)
    if document.risk is not None:
        document = document.claiming(certificate.epsilon, certificate.delta)
    if document.blank is not None:
        stated = f"it does not state the value of {path_text(document.blank)}"
        raise CertificateError(f"there is no {wanted} of this certificate: {stated}")
    records = {one.path: phase for one, phase in zip(document.phases, certificate.data.phases, strict=True)}
    for case in Protection.of(document).runs():
        if (phase := records.get(case.node.path)) is None:
            continue
        _same_schedules(case, phase, wanted)
        if matrix_plan(case).from_file and strategy(case).fingerprint != phase.matrix.sha256:
            file = getattr(case.node.matrix, "file", None)
            raise CertificateError(
                f"there is no {wanted} of this certificate: the file {file} holds another matrix than the "
                f"certified one, whose entries have the sha256 {phase.matrix.sha256}"
            )
    return unseeded(document) if asked.blank is not None or asked.choices else document


def _same_schedules(case: RunCase, phase: PhaseRecord, wanted: str) -> None:
    """Raise `CertificateError` if the file of a schedule holds other values than the certified ones."""
    certified = {one.of: one.sha256 for one in phase.schedules or ()}
    for path, scheduled in case.node.schedules().items():
        stated = certified.get(called(path))
        if isinstance(scheduled.schedule, ScheduleFile) and values_of(case, path).sha256 != stated:
            raise CertificateError(
                f"there is no {wanted} of this certificate: the file {scheduled.schedule.file} holds another schedule than the "
                f"certified one, whose values have the sha256 {stated}"
            )


def unseeded(document: Document) -> Document:
    """Return the document without a seed."""
    section = document.to_mapping().get("accounting", {})
    if "seed" not in section:
        return document
    return document.with_value(("accounting",), {key: value for key, value in section.items() if key != "seed"})
