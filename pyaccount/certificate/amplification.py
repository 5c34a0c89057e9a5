"""What one draw does to one mechanism, as data and for people."""

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
    """What sampling makes of one guarantee."""

    epsilon: NonNegative = Field(description="ε of the mechanism without sampling: given.")
    delta: Probability = Field(description="δ at most, of the mechanism without sampling, for one record.")
    amplified_epsilon: NonNegative = Field(description="ε′ at most, with sampling.")
    amplified_delta: Probability = Field(description="δ′ at most, with sampling.")
    effect: Effects = Field(
        description="strong: ε falls and δ does not rise; weak type I: ε falls and δ rises; weak type II: δ falls and ε does "
        "not; dilution: neither falls."
    )


class AmplificationCertificate(LaterRecord, Readable):
    """The certificate of a document of kind amplification."""

    later: ClassVar[tuple[str, ...]] = ("content_sha256",)

    pyaccount: Literal[1] = Field(description="Format version.")
    kind: Literal["amplification-certificate"] = Field(description="What this is.")
    name: str = Field(description="What the document calls the mechanism.")
    statement: str = Field(description="The first guarantee in one sentence.")
    eta: Probability = Field(description="η at most: the probability that a record is drawn at all.")
    distinct_records: float | None = Field(description="Expected number of distinct records in the batch.")
    effects: list[EffectRecord] = Field(description="One for each ε of the document.")
    subject: str = Field(description="The sampler in words.")
    law: str = Field(description="The law of j, the number of times that a record is drawn.")
    theorem: str = Field(description="What was used.")
    source: str = Field(description="Where it is proven.")
    assumptions: list[str] = Field(description="What must be true of the draw.")
    document: dict[str, Any] = Field(description="The document that was certified, without defaults.")
    document_sha256: str = Field(description="The hash of its canonical JSON.")
    versions: dict[str, str] = Field(description="What computed it: pyaccount, its core, Python.")
    created: str = Field(description="UTC, ISO 8601.")
    content_sha256: str | None = Field(
        default=None,
        description="SHA-256 of the canonical JSON of all fields that are neither null nor empty; absent in older certificates.",
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
