"""How one draw changes the privacy of one mechanism, as data and as text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from pyaccount.certificate.consistency import CONTENT, content_sha256
from pyaccount.certificate.model import LaterRecord, NonNegative, Probability, Record
from pyaccount.certificate.provenance import now, versions
from pyaccount.certificate.saving import contradictions, save, written
from pyaccount.pages.readable import Readable
from pyaccount.plan.amplification import compile_amplification
from pyaccount.plan.samplers import sampler_plan
from pyaccount.rounding import plain, up

if TYPE_CHECKING:
    from pyaccount.document import Amplification
    from pyaccount.pages.page import Page


Effects = Literal["strong amplification", "weak amplification, type I", "weak amplification, type II", "dilution"]


class EffectRecord(Record):
    """How sampling changes one guarantee."""

    epsilon: NonNegative = Field(description="The ε of the mechanism without sampling, which is given.")
    delta: Probability = Field(description="Upper bound on δ of the mechanism without sampling, for one record.")
    amplified_epsilon: NonNegative = Field(description="Upper bound on ε′, with sampling.")
    amplified_delta: Probability = Field(description="Upper bound on δ′, with sampling.")
    effect: Effects = Field(
        description="The effect. strong amplification: ε decreases and δ does not increase; weak amplification, type "
        "I: ε decreases and δ increases; weak amplification, type II: δ decreases and ε does not; dilution: "
        "neither decreases."
    )


class AmplificationCertificate(LaterRecord, Readable):
    """The certificate of a document of kind amplification."""

    later: ClassVar[tuple[str, ...]] = ("content_sha256",)

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["amplification-certificate"] = Field(
        description="The kind of this file: a certificate of an amplification."
    )
    name: str = Field(description="The name of the mechanism, from the document.")
    statement: str = Field(description="The first guarantee in one sentence.")
    eta: Probability = Field(description="Upper bound on η, the probability that a record is drawn at all.")
    distinct_records: float | None = Field(description="The expected number of distinct records in the batch.")
    effects: list[EffectRecord] = Field(description="One effect for each ε of the document.")
    subject: str = Field(description="The sampler in words.")
    law: str = Field(description="The distribution of j, the number of times that a record is drawn.")
    theorem: str = Field(description="The theorem that was used.")
    source: str = Field(description="Where the theorem is proven.")
    assumptions: list[str] = Field(description="What must be true of the draw.")
    document: dict[str, Any] = Field(description="The document that was certified, without defaults.")
    document_sha256: str = Field(description="The SHA-256 of the canonical JSON of the document.")
    versions: dict[str, str] = Field(description="The versions that computed it: of pyaccount, of its core, of Python.")
    created: str = Field(description="When the certificate was made: UTC, ISO 8601.")
    content_sha256: str | None = Field(
        default=None,
        description="The SHA-256 of the canonical JSON of all other fields that are neither null nor empty; absent "
        "in older certificates.",
    )

    def page(self) -> Page:
        """The certificate as a page, with what in it contradicts the rest."""
        from pyaccount.certificate.report import page_of

        return page_of(self, contradictions(self))

    def to_json(self) -> str:
        """The certificate as JSON text."""
        return written(self, "json")

    def save(self, path: str | os.PathLike[str], *, form: str | None = None) -> None:
        """Write the form that the ending of the file's name says, or `form`; as `Certificate.save`."""
        save(self, path, form)


def amplify(document: Amplification) -> AmplificationCertificate:
    """Plan, compute and word. Raises `DocumentError`."""
    plan = compile_amplification(document)
    eta, effects = plan.run()
    first = effects[0]
    made = AmplificationCertificate(
        pyaccount=1,
        kind="amplification-certificate",
        name=document.name,
        statement=(
            f"Run once on a batch drawn as described, the mechanism “{document.name}”, which is ({plain(first.epsilon)}, "
            f"{up(first.delta)})-differentially private without sampling, is ({up(first.amplified_epsilon)}, "
            f"{up(first.amplified_delta)})-differentially private, provided that the assumptions listed hold."
        ),
        eta=eta,
        distinct_records=sampler_plan(document.body).distinct_records(document.body),
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
        assumptions=list(plan.assumptions),
        document=document.to_mapping(),
        document_sha256=document.sha256,
        versions=versions(),
        created=now(),
    )
    return made.model_copy(update={CONTENT: content_sha256(made)})
