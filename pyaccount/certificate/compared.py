"""What is compared: documents that are certified, and finished certificates, which are not changed."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Literal

from pydantic import Field

from pyaccount.certificate.certificate import Certificate
from pyaccount.certificate.model import Record
from pyaccount.certificate.reading import LARGEST_FILE
from pyaccount.document.sources import Handed

#: What every certificate says of itself, and no document: there `kind` is the document's own.
_CERTIFICATE = re.compile(rb'"kind"\s*:\s*"(?:amplification-)?certificate"')

Why = Literal["wrong", "stopped", "contradictory"]

#: What a table says of a failure, where others have their guarantee.
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


def is_certificate(source: object) -> bool:
    """Whether a source is a finished certificate: one in memory, or the JSON of one."""
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
        # Who reads documents says what is wrong with it.
        return False
    return _holds_certificate(data)


def _holds_certificate(data: bytes) -> bool:
    return data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and _CERTIFICATE.search(data) is not None
