"""Certificates of amplifications: how one draw changes the privacy of one mechanism, as data and as text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyaccount.certificate.consistency import CONTENT, content_sha256
from pyaccount.certificate.provenance import now, versions
from pyaccount.certificate.saving import certificate_text, contradictions, save
from pyaccount.pages.readable import Readable
from pyaccount.plan.amplification import compile_amplification
from pyaccount.plan.protection import Protection
from pyaccount.plan.samplers import sampler_plan
from pyaccount.records.amplification import AmplificationData, EffectRecord
from pyaccount.rounding import shortest, up

if TYPE_CHECKING:
    from pyaccount.document.amplification import Amplification
    from pyaccount.pages.page import Page


class AmplificationCertificate(AmplificationData, Readable):
    """The certificate of a document of kind amplification."""

    def page(self) -> Page:
        """Return the certificate as a page, with a list of what in it contradicts the rest."""
        from pyaccount.certificate.report import page_of

        return page_of(self, contradictions(self))

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return certificate_text(self, "json")

    def save(self, path: str | os.PathLike[str], *, form: str | None = None) -> None:
        """Write the certificate as `form`, or as the ending of the file's name says; see `Certificate.save`."""
        save(self, path, form)


def amplify(document: Amplification) -> AmplificationCertificate:
    """Return the certificate of an amplification document. Raises `DocumentError`."""
    plan = compile_amplification(document)
    eta, effects = plan.run()
    first = effects[0]
    made = AmplificationCertificate(
        pyaccount=1,
        kind="amplification-certificate",
        name=document.name,
        statement=(
            f"Run once on a batch drawn as described, the mechanism “{document.name}”, which is ({shortest(first.epsilon)}, "
            f"{up(first.delta)})-differentially private without sampling, is ({up(first.amplified_epsilon)}, "
            f"{up(first.amplified_delta)})-differentially private, provided that the assumptions listed hold."
        ),
        eta=eta,
        distinct_records=sampler_plan(Protection.of_draw(document)).distinct_records(),
        effects=[
            EffectRecord(
                epsilon=effect.epsilon,
                delta=effect.delta,
                amplified_epsilon=effect.amplified_epsilon,
                amplified_delta=effect.amplified_delta,
                effect=effect.name,  # type: ignore[arg-type]
            )
            for effect in effects
        ],
        subject=plan.subject,
        law=plan.law,
        theorem=plan.theorem,
        source=plan.source,
        assumptions=[one.text for one in plan.assumed],
        assumptions_in_short=[one.short for one in plan.assumed],
        document=document.to_mapping(),
        document_sha256=document.sha256,
        versions=versions(),
        created=now(),
        content_sha256="",
    )
    return made.model_copy(update={CONTENT: content_sha256(made)})
