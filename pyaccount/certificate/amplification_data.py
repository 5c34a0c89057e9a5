"""The fields of an amplification's certificate: what one draw does to one mechanism."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from pyaccount.certificate.model import LaterRecord, NonNegative, Probability, Record

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


class AmplificationData(LaterRecord):
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
