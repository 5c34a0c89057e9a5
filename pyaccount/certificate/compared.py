"""What is compared: documents to be certified, and finished certificates beside them, which stay as they are."""

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
    """A document that gave no certificate, or a certificate that cannot be relied upon."""

    place: int = Field(
        ge=0, description="Its place among all that was compared, from 0; the rows fill the others in order."
    )
    name: str = Field(description="What the document calls the mechanism.")
    file: str | None = Field(description="The document's file; null: it was none, or is a certificate.")
    why: Why = Field(
        description="wrong: no value of the blank meets the target, or the like; stopped: by a limit of time or memory, or "
        "because a number could not be bounded; contradictory: a certificate that contradicts itself."
    )
    message: str = Field(description="What happened, for people.")
    seconds: float = Field(description="How long it took here.")


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
