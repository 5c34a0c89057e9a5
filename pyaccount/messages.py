"""What commands say as JSON where there is no certificate: errors, and how documents were found to be.

Takes errors of any kind and gives data with the same words and places as the text. Knows nothing of terminals and exit codes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pyaccount.certificate.model import Record
from pyaccount.errors import CertificateError, DocumentError, LimitError, PyaccountError, TableError

if TYPE_CHECKING:
    from collections.abc import Iterable


class Message(Record):
    """What is printed as a whole."""

    def to_json(self) -> str:
        """The message as JSON text. Half a character, as in names of files that are no text, is written as JSON spells it."""
        text = json.dumps(self.model_dump(), indent=2, ensure_ascii=False, allow_nan=False)
        return text.encode(errors="backslashreplace").decode() + "\n"


class LimitRecord(Record):
    """A time limit."""

    seconds: float = Field(description="How long the work might take.")
    set_by: str = Field(
        description="What set it: `accounting.time_limit` with its place, `--set accounting.time_limit=…`, `--time-limit`."
    )


class StoppedRecord(Record):
    """How far work came that a limit stopped. Nothing of it is certified."""

    stage: str | None = Field(description="What was being done.")
    compositions: int | None = Field(description="Compositions finished by then; null where none belong to the work.")
    samples: int | None = Field(description="Samples drawn by then; null where none belong to the work.")
    seed: int | None = Field(description="The seed of the samples.")
    known: list[str] = Field(description="What was found by then, each with how certain it is.")
    limit: LimitRecord | None = Field(description="The time limit; null where another limit stopped the work.")


class ErrorRecord(Record):
    """One error."""

    slug: str = Field(description="What is wrong, as a word that never changes: the reference lists all.")
    message: str = Field(description="What is wrong, for people.")
    path: str = Field(description="The value in the document or the certificate; empty for all of it, or none.")
    file: str | None = Field(description="The file, `<stdin>`, or the option (`--set …`) where it stands.")
    line: int | None = Field(description="The line, from 1; null where a value has none.")
    column: int | None = Field(description="The column, from 1.")
    value: str | float | int | bool | None = Field(description="What stands there; what JSON cannot hold as text.")
    allowed: str | None = Field(description="What may stand there.")
    suggestion: str | None = Field(description="What was probably meant: the nearest spelling, or how to write it.")
    stopped: StoppedRecord | None = Field(description="How far the work came, where a limit stopped it.")


class Errors(Message):
    """Why a command came to no result."""

    pyaccount: Literal[1] = Field(description="Format version.")
    kind: Literal["errors"] = Field(description="What this is.")
    command: str | None = Field(description="The command; null where none was recognised.")
    exit_code: int = Field(description="What the command ends with.")
    errors: list[ErrorRecord] = Field(description="Every error, in the order of the text.")


class ValidatedRecord(Record):
    """One document."""

    file: str = Field(description="Its file, or `<stdin>`.")
    valid: bool = Field(description="Whether nothing is wrong with it.")
    kind: Literal["mechanism", "amplification", "policy", "sweep"] | None = Field(
        description="What it is; null where it is wrong."
    )
    name: str | None = Field(description="Its name; null where it is wrong or has none.")
    document_sha256: str | None = Field(description="The hash of its content; null where it is wrong, and for sweeps.")
    notes: list[str] = Field(description="What it says that its author may not have meant.")
    errors: list[ErrorRecord] = Field(description="Everything that is wrong with it, in the order of the text.")


class Validation(Message):
    """What `pyaccount validate` found."""

    pyaccount: Literal[1] = Field(description="Format version.")
    kind: Literal["validation"] = Field(description="What this is.")
    valid: bool = Field(description="Whether nothing is wrong with any document.")
    documents: list[ValidatedRecord] = Field(description="Each document, in the order given.")


def errors_of(error: PyaccountError) -> list[ErrorRecord]:
    """An error as data: one record for each problem of a document, of a certificate, or of a table."""
    if isinstance(error, DocumentError | CertificateError | TableError) and error.problems:
        return [ErrorRecord.model_validate({**problem.to_json(), "stopped": None}) for problem in error.problems]
    if isinstance(error, LimitError):
        return [failure(error.slug, error.message, stopped=StoppedRecord.model_validate(error.to_json()))]
    return [failure(error.slug, str(error))]


def failure(
    slug: str,
    message: str,
    *,
    file: str | None = None,
    suggestion: str | None = None,
    stopped: StoppedRecord | None = None,
) -> ErrorRecord:
    """An error without a place in a document."""
    return ErrorRecord(
        slug=slug,
        message=message,
        path="",
        file=file,
        line=None,
        column=None,
        value=None,
        allowed=None,
        suggestion=suggestion,
        stopped=stopped,
    )


def errors(command: str | None, exit_code: int, found: Iterable[ErrorRecord]) -> Errors:
    """All that a command has to say about why it came to no result."""
    return Errors(pyaccount=1, kind="errors", command=command, exit_code=exit_code, errors=list(found))
