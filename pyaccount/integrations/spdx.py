"""Bills of materials in SPDX 3.0.1: an AI package of the AI profile with its certificate, as JSON-LD.

What is certified are metrics of the package, and the assumptions are its limitation; the certificate is a file of which the
package says `hasEvidence`. The AI profile requires what no certificate knows: a version, a supplier, a download location and a
release time. The document says that it conforms to that profile only if all of them are given. Source: the model of SPDX 3.0.1.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyaccount import __version__
from pyaccount.attestation.statement import Subject
from pyaccount.integrations.facts import DescribedModel, bill, bounds, circumstances, json_text, stated

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate
    from pyaccount.integrations.facts import StatedCertificate

CONTEXT = "https://spdx.org/rdf/3.0.1/spdx-context.jsonld"
#: What the AI profile requires of a package and no certificate knows, as fields of `DescribedModel`.
REQUIRED = ("version", "supplier", "download_location", "release_time")
#: The licence that SPDX defines for: nothing is said about it.
_NO_LICENCE = "expandedlicensing_NoAssertionLicense"
_CREATION = "_:creation"

_Element = dict[str, Any]


def spdx(
    certificate: str | os.PathLike[str] | Certificate,
    *,
    subjects: Iterable[str | os.PathLike[str]] = (),
    model: DescribedModel | None = None,
    created: datetime | None = None,
) -> str:
    """Return a bill of materials of a model in SPDX 3.0.1, as JSON-LD text.

    Args:
        certificate: A certificate's JSON file, or a certificate in memory.
        subjects: The files of the model. Their digests are written, and that the package contains them.
        model: What its publisher says about the model.
        created: The time that is written [SOURCE_DATE_EPOCH, or now]. With the same time the text is the same.

    Every bound is a metric whose key says which bound it is; its value has all digits of the certificate. Raises
    `CertificateError` if this is not a certificate, its claim does not hold, or it contradicts itself, and `DomainError`.
    """
    known = stated(certificate)
    model = model or DescribedModel()
    identity = bill(known.sha256, subjects, created)
    base = f"urn:uuid:{identity.identifier}#"
    creation = {
        "type": "CreationInfo",
        "@id": _CREATION,
        "specVersion": "3.0.1",
        "created": identity.created,
        "createdBy": [f"{base}pyaccount"],
    }
    files = [_file(f"{base}file-{number}", one, "model") for number, one in enumerate(identity.subjects)]
    elements = [
        _element("SoftwareAgent", f"{base}pyaccount", name=f"pyaccount {__version__}"),
        _package(known, model, base),
        _file(f"{base}certificate", Subject(known.file, known.sha256), "evidence"),
        _relation(base, "hasEvidence", f"{base}certificate"),
        *files,
        *([_relation(base, "contains", *(one["spdxId"] for one in files))] if files else []),
        *_licences(model, base),
        *([] if model.supplier is None else [_element("Organization", f"{base}supplier", name=model.supplier)]),
    ]
    document = _element(
        "SpdxDocument",
        f"{base}document",
        name=f"{model.name or known.data.name}: bill of materials",
        profileConformance=["core", "software", "simpleLicensing", *(["ai"] if not missing(model) else [])],
        rootElement=[f"{base}model"],
        element=[one["spdxId"] for one in elements],
    )
    whole = {"@context": CONTEXT, "@graph": [creation, document, *elements]}
    return json_text(whole)


def missing(model: DescribedModel) -> list[str]:
    """Return what the AI profile requires and is not given. Without it, a bill does not conform to that profile."""
    return [name for name in REQUIRED if getattr(model, name) is None]


def _package(known: StatedCertificate, model: DescribedModel, base: str) -> _Element:
    words = circumstances(known.data)
    training = {name: words.pop(name) for name in ("mechanisms", "samplers", "noise_multipliers")}
    optional = {
        "software_packageVersion": model.version,
        "suppliedBy": None if model.supplier is None else f"{base}supplier",
        "software_downloadLocation": model.download_location,
        "releaseTime": model.released(),
    }
    return _element(
        "ai_AIPackage",
        f"{base}model",
        name=model.name or known.data.name,
        software_primaryPurpose="model",
        ai_informationAboutTraining=known.data.statement,
        ai_limitation="What must be true of the training run: " + " ".join(known.data.assumptions),
        ai_metric=_entries({**bounds(known.data), **words}),
        ai_hyperparameter=_entries(training),
        externalRef=[
            {
                "type": "ExternalRef",
                "externalRefType": "privacyAssessment",
                "locator": [known.file],
                "comment": "The certificate of differential privacy; pyaccount verify recomputes it.",
            }
        ],
        **{name: value for name, value in optional.items() if value is not None},
    )


def _licences(model: DescribedModel, base: str) -> list[_Element]:
    """Return the licence that is declared, and that none is concluded: nobody here read the model."""
    if model.license is None:
        return [_relation(base, kind, _NO_LICENCE) for kind in ("hasDeclaredLicense", "hasConcludedLicense")]
    licence = _element(
        "simplelicensing_LicenseExpression",
        f"{base}licence",
        simplelicensing_licenseExpression=model.license,
    )
    return [
        licence,
        _relation(base, "hasDeclaredLicense", f"{base}licence"),
        _relation(base, "hasConcludedLicense", _NO_LICENCE),
    ]


def _file(identifier: str, subject: Subject, purpose: str) -> _Element:
    digest = {"type": "Hash", "algorithm": "sha256", "hashValue": subject.sha256}
    return _element(
        "software_File", identifier, name=subject.name, software_primaryPurpose=purpose, verifiedUsing=[digest]
    )


def _relation(base: str, kind: str, *related: str) -> _Element:
    """Return a relationship of the model to other elements."""
    return _element(
        "Relationship", f"{base}{kind}", relationshipType=kind, to=list(related), **{"from": f"{base}model"}
    )


def _entries(values: dict[str, Any]) -> list[dict[str, str]]:
    prefix = "differential privacy: "
    return [{"type": "DictionaryEntry", "key": prefix + name, "value": str(value)} for name, value in values.items()]


def _element(kind: str, identifier: str, **properties: Any) -> _Element:
    return {"type": kind, "spdxId": identifier, "creationInfo": _CREATION, **properties}
