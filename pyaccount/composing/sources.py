"""Reads what is composed: certificates and documents, each with the document of its phases."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyaccount.certificate.certificate import Certificate
from pyaccount.certificate.claimed import claimed_document
from pyaccount.certificate.compared import is_certificate
from pyaccount.certificate.saving import contradictions
from pyaccount.certificate.statement import unit_of
from pyaccount.document.document import Document
from pyaccount.document.loading import load, placed
from pyaccount.document.tree import TrainingNode
from pyaccount.errors import CertificateError, DocumentError, Problem, printable, quoted
from pyaccount.errors import Path as DocumentPath
from pyaccount.reading.sources import Folders, Handed
from pyaccount.records.certificate import CertificateModel, PrivacyUnit

#: What may be composed: a certificate or its JSON file, or a document in any form.
CompositionSource = str | os.PathLike[str] | Handed | Mapping[str, Any] | Document | Certificate
#: The blanks that a joint document replaces by its own.
_REPLACED = ("epsilon", "delta")


@dataclass(frozen=True, slots=True)
class Protected:
    """What a source protects."""

    adjacency: str
    group_size: int
    unit: str


@dataclass(frozen=True, slots=True)
class Composable:
    """A certificate or a document that can be composed with others."""

    #: Its file, or its name if it was handed over in memory: what messages call it.
    label: str
    name: str
    protected: Protected
    #: The δ of its guarantee; None for a document whose blank it is.
    delta: float | None
    #: The certificate; None for a document without one.
    data: CertificateModel | None
    #: The document, without a blank except for ε and δ; None for a certificate whose guarantee comes from samples.
    document: Document | None
    #: The documents that it stands for: itself, or those of a joint document; each as `composed_from` has it.
    entries: tuple[dict[str, Any], ...]

    def problem(self, slug: str, path: DocumentPath, message: str, value: object = None) -> Problem:
        """Return a problem of this source."""
        return Problem(slug, message, path, self.label, value=value)


def read(source: CompositionSource, folders: Folders = ()) -> Composable:
    """Return a source that can be composed. Files that it names lie beside it, or in one of `folders`.

    Raises `CertificateError` for a certificate that contradicts itself, whose claim does not hold, or that is about one draw;
    `DocumentError` for a wrong document, and for one with a blank other than ε and δ.
    """
    if not is_certificate(source):
        assert not isinstance(source, Certificate)
        return _of_document(load(source, folders=folders))
    label, file = None, None
    if isinstance(source, Certificate):
        certificate = source
    elif isinstance(source, Handed):
        from pyaccount.certificate.reading import parse_certificate  # most certificates are in files

        certificate, label = Certificate(parse_certificate(source.data, source.name).certificate()), source.name
    else:
        assert isinstance(source, str | os.PathLike)
        label = os.fsdecode(source)
        certificate, file = Certificate.load(source), label
    return _of_certificate(certificate, label or quoted(certificate.data.name), file, folders)


def _of_certificate(certificate: Certificate, label: str, file: str | None, folders: Folders) -> Composable:
    data = certificate.data
    _check(data, label)
    document = None
    if data.evidence.sampling is None:
        # Files that the document names are looked for beside the certificate, and nowhere else.
        asked = load(data.document, folders=folders) if file is None else placed(data.document, file, folders)
        document = _with_stated_matrices(claimed_document(certificate, "joint guarantee", asked), data)
    own = {
        "name": data.name,
        "document_sha256": data.document_sha256,
        "sha256": data.content_sha256,
        "statement": data.statement,
    }
    nested = [one.model_dump(exclude_none=True) for one in data.composed_from or ()]
    return Composable(
        label, data.name, _of_record(data.privacy), data.guarantee.delta, data, document, tuple(nested or [own])
    )


def _with_stated_matrices(document: Document, data: CertificateModel) -> Document:
    """Return a document in which each matrix that was optimised is the one that its certificate states.

    What was run had that matrix. Optimising again takes time, and may end in other last digits on another machine. A matrix
    whose coefficients are not stated stays as the document has it.
    """
    for run, phase in zip(document.phases, data.phases, strict=True):
        stated = phase.matrix
        if not isinstance(run, TrainingNode) or not run.matrix.optimized:
            continue
        if stated.buffers is not None:
            matrix: dict[str, Any] = {"kind": "blt", "scales": stated.buffers.scales, "decays": stated.buffers.decays}
            if not getattr(run.matrix, "normalize", True):
                matrix["normalize"] = False
        elif stated.coefficients is not None:
            matrix = {"kind": "toeplitz", "coefficients": stated.coefficients, "normalize": False}
        else:
            continue
        document = document.with_value(run.at("matrix"), matrix)
    return document


def _of_record(privacy: PrivacyUnit) -> Protected:
    return Protected(privacy.adjacency, privacy.group_size, privacy.unit)


def _check(data: CertificateModel, label: str) -> None:
    """Raise `CertificateError` for a certificate that contradicts itself, or whose claim does not hold."""
    name = printable(label)
    if wrong := contradictions(data):
        raise CertificateError(
            f"{name}: it contradicts itself, so nothing is known of the run: {'; '.join(wrong)}. Certify the document again"
        )
    if not data.holds:
        raise CertificateError(
            f"{name}: its claim does not hold, so there is no guarantee that could be composed: {data.statement} Change the "
            "document until its claim holds"
        )


def _of_document(document: Document) -> Composable:
    label = document.file or quoted(document.name)
    open_paths = [*document.choices, *([] if document.blank is None else [document.blank])]
    unknown = [path for path in open_paths if path[0] != "privacy" or path[-1] not in _REPLACED]
    if unknown or document.searched:
        message = "a document is composed as it is run, so every number of it must be known: certify it first, and compose its "
        "certificate"
        paths = unknown or [run.at("matrix") for run in document.runs() if run.matrix.searched]
        raise DocumentError([document.problem("unfilled-blank", path, message, allowed="a value") for path in paths])
    privacy = document.privacy
    assert privacy.group_size != "solve"
    nested = [one.model_dump(exclude_none=True) for one in document.composed_from]
    own = {"name": document.name, "document_sha256": document.sha256}
    delta = None if document.risk is not None or privacy.delta == "solve" else privacy.delta
    return Composable(
        label,
        document.name,
        Protected(privacy.adjacency, privacy.group_size, unit_of(document)),
        delta,
        None,
        document,
        tuple(nested or [own]),
    )
