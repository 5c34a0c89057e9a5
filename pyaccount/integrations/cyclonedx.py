"""Bills of materials in CycloneDX 1.6: a machine-learning model with its certificate.

The model is the component that the bill is about. What is certified is in the properties of its model card, since CycloneDX has
no fields for differential privacy; the certificate is a reference with its digest. Source of the format: ECMA-424, CycloneDX 1.6.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pyaccount import __version__
from pyaccount.integrations.facts import DescribedModel, bill, bounds, circumstances, json_text, stated

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate

#: The prefix of the names of properties: names of CycloneDX are separated by colons.
PREFIX = "pyaccount:privacy:"
#: What a certificate is about, as a risk of the model: the statement of the certificate says how far it is mitigated.
RISK = "Whether a record, or a user, was in the training data may be inferred from the model."


def cyclonedx(
    certificate: str | os.PathLike[str] | Certificate,
    *,
    subjects: Iterable[str | os.PathLike[str]] = (),
    model: DescribedModel | None = None,
    created: datetime | None = None,
) -> str:
    """Return a bill of materials of a model in CycloneDX 1.6, as JSON text.

    Args:
        certificate: A certificate's JSON file, or a certificate in memory.
        subjects: The files of the model. Their digests are written, each as a component inside of the model.
        model: What its publisher says about the model.
        created: The time that is written [SOURCE_DATE_EPOCH, or now]. With the same time the text is the same.

    Every bound is a property whose name says which bound it is; its value has all digits of the certificate. Raises
    `CertificateError` if this is not a certificate, its claim does not hold, or it contradicts itself, and `DomainError`.
    """
    known = stated(certificate)
    model = model or DescribedModel()
    identity = bill(known.sha256, subjects, created)
    # A time of release that is wrong is an error here too, although CycloneDX has no field for it.
    released = model.released()
    stated_values = {**bounds(known.data), **circumstances(known.data)}
    component: dict[str, Any] = {
        "type": "machine-learning-model",
        "bom-ref": f"model-{identity.identifier}",
        "name": model.name or known.data.name,
        **({} if model.version is None else {"version": model.version}),
        **({} if model.supplier is None else {"supplier": {"name": model.supplier}}),
        **({} if model.license is None else {"licenses": [{"expression": model.license}]}),
        "modelCard": {
            "considerations": {
                "ethicalConsiderations": [{"name": RISK, "mitigationStrategy": known.data.statement}],
            },
            # An assumption each, since several properties may have one name.
            "properties": [
                *({"name": PREFIX + name, "value": str(value)} for name, value in stated_values.items()),
                *({"name": f"{PREFIX}assumption", "value": one} for one in known.data.assumptions),
            ],
        },
        "externalReferences": [
            {
                "type": "attestation",
                "url": quote(known.file),
                "comment": "The certificate of differential privacy; pyaccount verify recomputes it.",
                "hashes": [_digest(known.sha256)],
            },
            *([] if model.download_location is None else [{"type": "distribution", "url": model.download_location}]),
        ],
        **({} if released is None else {"properties": [{"name": "pyaccount:release_time", "value": released}]}),
    }
    if identity.subjects:
        component["components"] = [
            {
                "type": "file",
                "bom-ref": f"file-{number}-{one.sha256}",
                "name": one.name,
                "hashes": [_digest(one.sha256)],
            }
            for number, one in enumerate(identity.subjects)
        ]
    whole = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{identity.identifier}",
        "version": 1,
        "metadata": {
            "timestamp": identity.created,
            "tools": {"components": [{"type": "application", "name": "pyaccount", "version": __version__}]},
            "component": component,
        },
    }
    return json_text(whole)


def _digest(sha256: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": sha256}
