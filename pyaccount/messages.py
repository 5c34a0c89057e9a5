"""What commands print as JSON if there is no certificate: errors, and the results of validating documents.

This module takes errors of any kind, and returns data with the same words and places as the text. It knows nothing of
terminals and exit codes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from pyaccount.errors import LimitError, PyaccountError
from pyaccount.records.fields import Record


class Message(Record):
    """A message that is printed as a whole."""

    def to_json(self) -> str:
        """The message as JSON text. Half a character, as in names of files that are no text, is written as JSON spells it."""
        text = json.dumps(self.model_dump(), indent=2, ensure_ascii=False, allow_nan=False)
        return text.encode(errors="backslashreplace").decode() + "\n"


class LimitRecord(Record):
    """A time limit."""

    seconds: float = Field(description="The maximum time of the work, in seconds.")
    set_by: str = Field(
        description="What set the limit: `accounting.time_limit` with its place, `--set accounting.time_limit=…` or "
        "`--time-limit`."
    )


class StoppedRecord(Record):
    """How far the work got before a limit stopped it. None of it is certified."""

    stage: str | None = Field(description="The stage of the work at that time.")
    compositions: int | None = Field(
        description="The number of compositions that were finished; null if the work has none."
    )
    samples: int | None = Field(description="The number of samples that were drawn; null if the work has none.")
    seed: int | None = Field(description="The seed of the samples.")
    known: list[str] = Field(description="What was known at that time, each with how certain it is.")
    limit: LimitRecord | None = Field(description="The time limit; null if another limit stopped the work.")


class ErrorRecord(Record):
    """One error."""

    slug: str = Field(description="The kind of error, as a word that never changes; the reference lists all of them.")
    message: str = Field(description="What is wrong, in words.")
    path: str = Field(
        description="The path of the value in the document or the certificate; empty if the error is "
        "about all of it, or about neither."
    )
    file: str | None = Field(description="The file, `<stdin>`, or the option (`--set …`) in which the error is.")
    line: int | None = Field(description="The line, counted from 1; null if the value has none.")
    column: int | None = Field(description="The column, counted from 1.")
    value: str | float | int | bool | None = Field(
        description="The value that was found; as text if JSON cannot represent it."
    )
    allowed: str | None = Field(description="What is allowed there.")
    suggestion: str | None = Field(description="What was probably meant: the nearest spelling, or how to write it.")
    stopped: StoppedRecord | None = Field(description="How far the work got, if a limit stopped it.")


class Errors(Message):
    """Why a command has no result."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["errors"] = Field(description="The kind of this JSON: errors.")
    command: str | None = Field(description="The name of the command; null if none was recognised.")
    exit_code: int = Field(description="The exit code of the command.")
    errors: list[ErrorRecord] = Field(description="Every error, in the order of the text output.")


class ValidatedRecord(Record):
    """One document."""

    file: str = Field(description="The file of the document, or `<stdin>`.")
    valid: bool = Field(description="Whether the document has no errors.")
    kind: Literal["mechanism", "amplification", "policy", "sweep", "data-set"] | None = Field(
        description="The kind of document; null if it has errors."
    )
    name: str | None = Field(description="The name of the document; null if it has errors or no name.")
    document_sha256: str | None = Field(
        description="The hash of the content of the document; null if it has errors, and for sweeps."
    )
    notes: list[str] = Field(description="Statements of the document that its author may not have meant.")
    errors: list[ErrorRecord] = Field(description="Every error of the document, in the order of the text output.")


class Validation(Message):
    """The result of `pyaccount validate`."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["validation"] = Field(description="The kind of this JSON: a validation.")
    valid: bool = Field(description="Whether no document has errors.")
    documents: list[ValidatedRecord] = Field(description="Each document, in the order in which they were given.")


def errors_of(error: PyaccountError) -> list[ErrorRecord]:
    """Return an error as data: one record for each problem of a document, a certificate, a table, a model card, or a ledger."""
    if problems := getattr(error, "problems", ()):
        return [ErrorRecord.model_validate({**problem.to_json(), "stopped": None}) for problem in problems]
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
    """Return an error without a position in a document."""
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
    """Return all errors that explain why a command has no result."""
    return Errors(pyaccount=1, kind="errors", command=command, exit_code=exit_code, errors=list(found))
