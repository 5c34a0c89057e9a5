"""What the formats of this room say about a certificate: its numbers, each named as the bound that it is, and its words.

A certificate is stated elsewhere only if it does not contradict itself and its claim holds. Other certificates are errors,
because a reader of a card or of a bill of materials would not see the reason. Only trackers of experiments, which say whether the
claim holds, also take certificates of claims that fail.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from pyaccount.certificate.consistency import inconsistencies
from pyaccount.certificate.reading import given_certificate
from pyaccount.certificate.strict import refused
from pyaccount.errors import printable

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate
    from pyaccount.certificate.model import CertificateModel


class StatedCertificate(NamedTuple):
    """A certificate that may be stated elsewhere, and what identifies its file."""

    data: CertificateModel
    #: The name of its file, without the folder, in a form that is safe to show; `certificate.json` for one in memory.
    file: str
    #: The SHA-256 of the bytes of its file. For a certificate in memory: of the file that `save` writes.
    sha256: str


def stated(certificate: str | os.PathLike[str] | Certificate, *, failing: bool = False) -> StatedCertificate:
    """Read a certificate that is to be stated elsewhere.

    Args:
        certificate: The path of a JSON file, or a certificate in memory.
        failing: Also accept a certificate whose claim does not hold. Its bounds are true all the same.

    Raises `CertificateError` if this is not a certificate of a training run, if its claim does not hold, or if it contradicts
    itself.
    """
    read = given_certificate(certificate)
    data = read.certificate()
    if contradictory := inconsistencies(data):
        first = contradictory[0]
        raise refused(
            read.file,
            f"the certificate contradicts itself at {first.path}: {first.message}. Nothing is written about it; make it "
            "again with `pyaccount certify`",
        )
    if not (data.holds or failing):
        raise refused(
            read.file,
            "the claim of the document is not certified, so it cannot be stated elsewhere; certify a document whose claim holds",
            ("holds",),
        )
    name = PurePath(read.file).name if isinstance(certificate, str | os.PathLike) else "certificate.json"
    return StatedCertificate(data, printable(name), read.sha256)


def bounds(data: CertificateModel) -> dict[str, float]:
    """Return the numbers of the guarantee, by names that say which bound each of them is.

    ε is in nats; δ and the failure probability are probabilities. The values are the doubles of the certificate, not rounded.
    """
    guarantee = data.guarantee
    return {
        "epsilon_upper": guarantee.epsilon,
        "epsilon_lower": guarantee.epsilon_lower,
        "delta_upper": guarantee.delta,
        "delta_lower": guarantee.delta_lower,
        "failure_probability_upper": guarantee.failure_probability,
    }


def circumstances(data: CertificateModel) -> dict[str, str | int]:
    """Return what the numbers are about: the kind of guarantee, the unit, the adjacency, and the mechanisms in words."""
    return {
        "guarantee": data.guarantee.kind,
        "unit": data.privacy.unit,
        "group_size": data.privacy.group_size,
        "adjacency": data.privacy.adjacency,
        "mechanisms": ", ".join(mechanisms(data)),
        "samplers": ", ".join(samplers(data)),
        "noise_multipliers": ", ".join(noise_multipliers(data)),
        "document_sha256": data.document_sha256,
    }


def mechanisms(data: CertificateModel) -> list[str]:
    """Return what each phase releases, in words: sums with noise in training, or the kind of its mechanism."""
    return [
        f"training with {phase.noise} noise" if phase.mechanism is None else phase.mechanism.kind
        for phase in data.phases
    ]


def samplers(data: CertificateModel) -> list[str]:
    """Return the sampler of each phase, as in the document."""
    return [phase.sampler for phase in data.phases]


def noise_multipliers(data: CertificateModel) -> list[str]:
    """Return the noise multiplier of each phase as text, in units of the clip norm; `none` for a phase with a mechanism."""
    return [
        str(phase.noise_multiplier)
        if phase.noise_multiplier is not None
        else "differs from round to round"
        if phase.mechanism is None
        else "none"
        for phase in data.phases
    ]
