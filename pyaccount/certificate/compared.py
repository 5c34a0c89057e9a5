"""The rows of a comparison: certificates, documents without one, and which sources are finished certificates."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from pyaccount.certificate.certificate import Certificate
from pyaccount.certificate.reading import LARGEST_FILE
from pyaccount.reading.sources import Handed
from pyaccount.records.certificate import CertificateModel
from pyaccount.records.fields import PROBABILITY, SQUARED_NORMS, EpsilonLower, EpsilonUpper, Probability, Record

#: Every certificate contains this, and no document does: the `kind` of a document is another one.
_CERTIFICATE = re.compile(rb'"kind"\s*:\s*"(?:amplification-)?certificate"')

Why = Literal["wrong", "stopped", "contradictory"]

#: What a table shows for a failure, where the other rows show their guarantee.
WORDS: dict[Why, str] = {
    "wrong": "none: the document is wrong",
    "stopped": "none: stopped",
    "contradictory": "none: contradicts itself",
}


class FailedRecord(Record):
    """A document without a certificate, or a certificate that cannot be relied upon."""

    place: int = Field(
        ge=0,
        description="Its place among everything that was compared, counted from 0. The rows have the other "
        "places, in order.",
    )
    name: str = Field(description="The name of the mechanism, from the document.")
    file: str | None = Field(
        description="The file of the document; null if it was not a file, or if this is a certificate."
    )
    why: Why = Field(
        description="wrong: for example, no value of the blank meets the target. stopped: by a limit of time or "
        "memory, or because a number could not be bounded. contradictory: a certificate that contradicts itself."
    )
    message: str = Field(description="What happened, in words.")
    seconds: float = Field(description="The time that it took here, in seconds.")


class ComparedRecord(Record):
    """The certificate of one document, in a row."""

    name: str
    holds: bool = Field(description="Whether the claim of the document is certified.")
    kind: Literal["deterministic", "verified", "confidence"] = Field(description="The kind of guarantee.")
    adjacency: str
    group_size: int
    unit: Literal["record", "user"] = Field(description="What is protected: a record or a user.")
    sampler: str = Field(description="The sampler of each phase.")
    epsilon: EpsilonUpper = Field(description="Upper bound on ε, in nats.")
    epsilon_lower: EpsilonLower = Field(description="Lower bound: no smaller ε holds.")
    delta: Annotated[Probability, PROBABILITY] = Field(description="Upper bound on δ.")
    noise_multiplier: float | None = Field(description="σ, if all phases have the same Gaussian noise; otherwise null.")
    unamplified_epsilon: EpsilonUpper | None = Field(
        description="Upper bound on ε at this δ, if no participations were secret (each certificate states what "
        "exactly that means). Null if it is infinite, or not known at such a small δ."
    )
    expected_batch_size: float | None = Field(
        description="The expected number of records (or draws) in a batch, if there is one phase."
    )
    distinct_records: float | None = Field(
        description="The expected number of distinct records in a batch, if there is one phase."
    )
    prefix_sum_mse: Annotated[float | None, SQUARED_NORMS] = Field(
        description="The mean variance of the noise of prefix sums, if there is one phase."
    )
    workload: str | None = Field(
        default=None, description="The workload of the document in words; null if it has none."
    )
    workload_mse: Annotated[float | None, SQUARED_NORMS] = Field(
        default=None, description="The mean variance of the noise under this workload."
    )
    seconds: float = Field(description="The time that certifying took here, in seconds; 0 for a finished certificate.")
    document_sha256: str
    finished: bool = Field(
        default=False,
        description="Whether it was a finished certificate, whose numbers are shown unchanged and were not recomputed.",
    )
    matrix: str | None = Field(
        default=None,
        description="The kind of matrix, if there is one phase, and whether it was optimised for its sampling.",
    )

    @property
    def shown_name(self) -> str:
        """The name, with a note if the claim of the document does not hold."""
        return self.name if self.holds else f"{self.name} (does not hold)"

    @property
    def protected(self) -> str:
        """Who is protected, and against which change."""
        return protects(self)

    def series(self, *, alike: bool) -> str:
        """Return the name of the row's series in a picture: sampler, matrix and, unless `alike`, who is protected."""
        words = [self.sampler, *([] if self.matrix in (None, "identity") else [self.matrix])]
        return ", ".join([*words, *([] if alike else [protects(self)])])


def protects(row: ComparedRecord) -> str:
    """Return in words who is protected, and against which change."""
    return f"{row.adjacency}, {row.group_size} {row.unit}{'s' if row.group_size > 1 else ''}"


def alike(rows: Sequence[ComparedRecord]) -> bool:
    """Return whether all rows have the same adjacency, group size and unit."""
    return len({protects(row) for row in rows}) <= 1


def remarks(rows: Sequence[ComparedRecord]) -> list[str]:
    """Return the reasons why the numbers of different rows cannot be compared."""
    reasons = []
    if not alike(rows):
        reasons.append("The documents protect against different changes: their ε cannot be compared.")
    if len({row.workload for row in rows if row.workload}) > 1:
        reasons.append("The workloads differ: their errors cannot be compared.")
    if len({row.delta for row in rows}) > 1 and len({row.epsilon for row in rows}) > 1:
        reasons.append(
            "The δ differ: the same mechanism has a smaller ε at a larger δ, so neither can be compared alone."
        )
    return reasons


def row_of(data: CertificateModel, seconds: float, *, finished: bool = False) -> ComparedRecord:
    """Return a certificate as a row; `seconds` is how long certifying took."""
    workload = None if data.utility is None else data.utility.workload
    only = data.phases[0] if len(data.phases) == 1 else None
    # At a larger δ (if this one is too small to resolve) the ε would not be a bound at this δ.
    unamplified = data.unamplified.epsilon if data.unamplified.delta <= data.guarantee.delta else None
    return ComparedRecord(
        name=data.name,
        holds=data.holds,
        kind=data.guarantee.kind,
        adjacency=data.privacy.adjacency,
        group_size=data.privacy.group_size,
        unit=data.privacy.unit,
        sampler=" + ".join(dict.fromkeys(phase.sampler for phase in data.phases)),
        epsilon=data.guarantee.epsilon,
        epsilon_lower=data.guarantee.epsilon_lower,
        delta=data.guarantee.delta,
        noise_multiplier=data.noise_multiplier if all(phase.noise == "gaussian" for phase in data.phases) else None,
        unamplified_epsilon=unamplified,
        expected_batch_size=None if only is None else only.expected_batch_size,
        distinct_records=None if only is None else only.distinct_records,
        prefix_sum_mse=None if data.utility is None else data.utility.prefix_sum_mse,
        workload=None if workload is None else workload.what,
        workload_mse=None if workload is None else workload.mse,
        seconds=seconds,
        document_sha256=data.document_sha256,
        finished=finished,
        matrix=None if only is None else f"{only.matrix.kind}{' for its sampling' if data.evidence.searched else ''}",
    )


def is_certificate(source: object) -> bool:
    """Return whether a source is a finished certificate: one in memory, or the JSON of one."""
    if isinstance(source, Certificate):
        return True
    if isinstance(source, Handed):
        return _holds_certificate(source.data)
    if not isinstance(source, str | os.PathLike):
        return False
    try:
        path = Path(os.fsdecode(source))
        if not stat.S_ISREG(path.stat().st_mode) or path.stat().st_size > LARGEST_FILE:
            return False
        data = path.read_bytes()
    except (OSError, ValueError):
        # Reading it as a document reports what is wrong with it.
        return False
    return _holds_certificate(data)


def _holds_certificate(data: bytes) -> bool:
    return data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and _CERTIFICATE.search(data) is not None
