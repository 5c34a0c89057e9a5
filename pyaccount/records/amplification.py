"""The fields of an amplification's certificate: what one draw does to one mechanism."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pyaccount.records.fields import NATS, DeltaUpper, EpsilonUpper, NonNegative, Record, Role

Effects = Literal["strong amplification", "weak amplification, type I", "weak amplification, type II", "dilution"]


class EffectRecord(Record):
    """How sampling changes one guarantee."""

    epsilon: Annotated[NonNegative, Role.GIVEN, NATS] = Field(
        description="The ε of the mechanism without sampling, which is given."
    )
    delta: DeltaUpper = Field(description="Upper bound on δ of the mechanism without sampling, for one record.")
    amplified_epsilon: EpsilonUpper = Field(description="Upper bound on ε′, with sampling.")
    amplified_delta: DeltaUpper = Field(description="Upper bound on δ′, with sampling.")
    effect: Effects = Field(
        description="The effect. strong amplification: ε decreases and δ does not increase; weak amplification, type "
        "I: ε decreases and δ increases; weak amplification, type II: δ decreases and ε does not; dilution: "
        "neither decreases."
    )


class AmplificationData(Record):
    """The certificate of a document of kind amplification."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["amplification-certificate"] = Field(
        description="The kind of this file: a certificate of an amplification."
    )
    name: str = Field(description="The name of the mechanism, from the document.")
    statement: Annotated[str, Role.SENTENCE] = Field(description="The first guarantee in one sentence.")
    eta: DeltaUpper = Field(description="Upper bound on η, the probability that a record is drawn at all.")
    distinct_records: float | None = Field(description="The expected number of distinct records in the batch.")
    effects: list[EffectRecord] = Field(description="One effect for each ε of the document.")
    subject: str = Field(description="The sampler in words.")
    law: str = Field(description="The distribution of j, the number of times that a record is drawn.")
    theorem: str = Field(description="The theorem that was used.")
    source: str = Field(description="Where the theorem is proven.")
    assumptions: list[str] = Field(description="What must be true of the draw.")
    assumptions_in_short: list[str] = Field(description="The same in the same order, each on a line of a screen.")
    document: dict[str, Any] = Field(description="The document that was certified, without defaults.")
    document_sha256: str = Field(description="The SHA-256 of the canonical JSON of the document.")
    versions: Annotated[dict[str, str], Role.STAMP] = Field(
        description="The versions that computed it: of pyaccount, of its core, of Python."
    )
    created: Annotated[str, Role.STAMP] = Field(description="When the certificate was made: UTC, ISO 8601.")
    content_sha256: Annotated[str, Role.STAMP] = Field(
        description="The SHA-256 of the canonical JSON of all other fields that are neither null nor empty."
    )
