"""What can go wrong, as data.

A document's errors are `Problem`s: a stable slug, a place in the text, the path and value, what is allowed. They are
collected and raised together in one `DocumentError`. The other exceptions say why the machine or the arithmetic
stopped. `exit_code` is the command's exit code for each. This module imports nothing of the package, so that every
room, and the compiled core, can use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

Path = tuple[str | int, ...]

#: The longest text of a value, a key or a file that a message repeats.
LONGEST_SHOWN = 80

#: Every slug a problem can carry, and what it means. Slugs are promises: they are never renamed or reused.
SLUGS: dict[str, str] = {
    "bad-override": "An override is not of the form path=value, or its path leads nowhere.",
    "contradiction": "Two statements of the document cannot both be true.",
    "document-too-large": "The document has too many values or is nested too deeply once its aliases are expanded.",
    "duplicate-key": "A mapping gives the same key twice.",
    "empty-document": "The file has no content.",
    "file-not-found": "No file exists under this name.",
    "file-too-large": "The file is larger than any mechanism document.",
    "fractional-batch": "Fixed-size sampling needs a whole number of records in a batch.",
    "infeasible-rate": "A record cannot take part as often as the document says.",
    "matrix-file": "The matrix's file cannot be read, or holds no valid matrix.",
    "merge-key": "The YAML merge key `<<` is not part of the document language.",
    "missing-key": "A required key is absent.",
    "no-equivalent": "What another library describes has no document that means exactly the same, or a document nothing there.",
    "no-optimum": "A matrix cannot be optimised for this sampler, or with what else the document says.",
    "no-valid-bound": "No bound is implemented for this combination of sampler, adjacency and sizes.",
    "non-string-key": "A key of a mapping is not text.",
    "not-a-file": "The path leads to a folder, a pipe or a device, not to a regular file.",
    "not-a-mapping": "The document is a list or a single value, not a mapping.",
    "not-drawn": "A training run does not draw what the document describes.",
    "not-text": "The file is not UTF-8 text or contains control characters.",
    "out-of-range": "A value has the right type but lies outside the allowed range.",
    "outside-folder": "A document names a file outside of its own folder.",
    "permission-denied": "The file may not be read.",
    "recursive-alias": "A YAML alias refers to a value that contains it.",
    "several-blanks": "More than one value of the document is `solve`.",
    "several-documents": "The file holds more than one YAML document.",
    "syntax-error": "The text is not valid YAML.",
    "target-infeasible": "No value of the blank meets the target, or every value does.",
    "uncertified": "A training run takes the certificate of a document that samples certify.",
    "unfilled-blank": "A value that must be known here is still to be solved or chosen.",
    "unknown-key": "The key is not part of the document language at this place.",
    "unknown-kind": "No sampler, matrix or noise of this kind exists.",
    "unknown-value": "The word is not among the allowed ones.",
    "unknown-version": "The document is written in a version of the language that is not known here.",
    "unreadable-file": "The operating system failed to read the file.",
    "unsupported-tag": "YAML tags are not part of the document language.",
    "wrong-type": "A value has the wrong type.",
}


#: What else can stop a command, by the slug that its error has as data. These are promises too, and none is also one above.
FAILURES: dict[str, str] = {
    "accountant-state": "The saved state of an accountant cannot be read, or belongs to another one.",
    "argument": "A value given to a command or a function lies outside the domain on which it is defined.",
    "attestation": "No trusted key signed an attestation, or it is not about the files given; or what was to be attested is not.",
    "bug": "A bug of pyaccount; the traceback is on stderr.",
    "certificate": "What was given as a certificate is none, or cannot be used as one.",
    "cluster": "A cluster cannot be reached or lost its work, or a worker has no core that gives the same numbers.",
    "input-output": "The operating system refused to read or to write.",
    "interrupted": "Interrupted; there is no result. What was kept until then is in the run store, if there is one.",
    "limit": "A limit of time or of the machine stopped the work.",
    "missing-extra": "A package that only some of what pyaccount does needs is not installed.",
    "numerics": "A number could not be bounded.",
    "plan-exceeded": "A round beyond the end of the planned run.",
    "store": "A run store cannot be opened, read or written, or is none.",
    "table": "A table, of records and users or of scores, cannot be read, or is not what was asked for.",
    "training-run": "A training run cannot go on as accounted: its key, its record, its data or its state do not fit.",
    "usage": "The command line is wrong.",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One error, located.

    `path` leads to the value, or to the key that is missing or unknown; `line` and `column` count from 1. `value` is
    what was found there, `None` where nothing was. `file` is `overrides: path=value` for an error in an override,
    from the command line `--set path=value`, and `None` for a document that is a mapping.
    """

    slug: str
    message: str
    path: Path = ()
    file: str | None = None
    line: int | None = None
    column: int | None = None
    value: object = None
    allowed: str | None = None
    suggestion: str | None = None

    @property
    def path_text(self) -> str:
        """The path as people write it: `phases[0].noise.multiplier`."""
        return path_text(self.path)

    def render(self) -> str:
        """The problem for people: the place and value on one line, then what is wrong, indented."""
        file = None if self.file is None else printable(self.file)
        place = ":".join(str(part) for part in (file, self.line, self.column) if part is not None)
        subject = self.path_text
        if self.value is not None:
            subject = f"{subject} = {shown(self.value)}" if subject else shown(self.value)
        head = f"{subject} [{self.slug}]".lstrip()
        lines = [f"{place}: {head}" if place else head, f"    {self.message}"]
        if self.allowed is not None and self.allowed not in self.message:
            lines.append(f"    allowed: {self.allowed}")
        if self.suggestion is not None:
            lines.append(f"    did you mean {self.suggestion}?")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """The problem for programs; a value that JSON cannot hold becomes its shortened text."""
        value = self.value
        # NaN compares false too; longer integers than 64 bits trouble most readers of JSON.
        short = isinstance(value, int | float) and abs(value) < 2**64
        plain = short or value is None or isinstance(value, str)
        return {
            "slug": self.slug,
            "message": self.message,
            "path": self.path_text,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "value": value if plain else shown(value),
            "allowed": self.allowed,
            "suggestion": self.suggestion,
        }


class PyaccountError(Exception):
    """The base of everything pyaccount raises on purpose. The command ends with `exit_code`; `slug` is a key of `FAILURES`."""

    exit_code: ClassVar[int] = 3
    slug: ClassVar[str]


class DocumentError(PyaccountError, ValueError):
    """The document is wrong; `problems` holds everything that is wrong with it, in the order of the text.

    Each problem has a slug of its own, of `SLUGS`.
    """

    exit_code = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(sorted(problems, key=_reading_order))
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(problem.render() for problem in self.problems)

    def to_json(self) -> list[dict[str, object]]:
        """The problems as a JSON-able list."""
        return [problem.to_json() for problem in self.problems]


#: What the core says at a deadline, and nowhere else.
TIME_IS_UP = "the time limit was reached"


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """How long work may take, in seconds, and what says so: `accounting.time_limit`, `time_limit=`, `--time-limit` …"""

    seconds: float
    set_by: str


class LimitError(PyaccountError):
    """The limits of the machine, or those the user set, stopped the work. `progress` says how far it came, in words of `stage`,
    `compositions`, `samples` and `known`; `limit` which time limit it was, and what set it.
    """

    exit_code = 3
    slug = "limit"

    def __init__(self, message: str, *, stage: str = "", samples: int | None = None, seed: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        #: What was being done.
        self.stage = stage
        #: How many compositions and samples were done by then; None where none belong to the work.
        self.compositions: int | None = None
        self.samples = samples
        self.seed = seed
        #: What was found by then, each with its own kind of certainty. Nothing of it is certified.
        self.known: tuple[str, ...] = ()
        #: The time limit; None where another limit stopped it.
        self.limit: TimeLimit | None = None

    @property
    def progress(self) -> str:
        """How far the work came, in words."""
        counts = []
        if self.samples is not None:
            counts.append(f"{_counted(self.samples)} samples")
        if self.compositions is not None and (self.compositions or self.samples is None):
            counts.append(f"{self.compositions} composition{'' if self.compositions == 1 else 's'}")
        done = f"after {' and '.join(counts)}" if counts else ""
        where = ", ".join(part for part in (self.stage, done) if part)
        parts = [where, *(self.known or ["nothing was found by then"])] if where else [*self.known]
        if self.seed is not None:
            parts.append(f"seed {self.seed}")
        return "; ".join(parts)

    def __str__(self) -> str:
        limit = "" if self.limit is None else f": {self.limit.seconds:g} s, set by {self.limit.set_by}"
        progress = f" ({self.progress})" if self.progress else ""
        return f"{self.message}{limit}{progress}"

    def to_json(self) -> dict[str, object]:
        """The error for programs."""
        limit = None if self.limit is None else {"seconds": self.limit.seconds, "set_by": self.limit.set_by}
        return {
            "stage": self.stage or None,
            "compositions": self.compositions,
            "samples": self.samples,
            "seed": self.seed,
            "known": list(self.known),
            "limit": limit,
        }


class NumericsError(PyaccountError):
    """The core could not bound a number; the message says which and why."""

    exit_code = 3
    slug = "numerics"


class DomainError(PyaccountError, ValueError):
    """An argument of a function lies outside the domain on which its formula is defined."""

    exit_code = 2
    slug = "argument"


class CertificateError(PyaccountError, ValueError):
    """A certificate cannot be read, or does not say what it should. `problems` are located as far as they have a place."""

    exit_code = 2
    slug = "certificate"

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems: tuple[Problem, ...] = tuple(problems)


class AttestationError(PyaccountError):
    """No trusted key signed an attestation, it is not about the files given, or a certificate that fails was to be attested."""

    exit_code = 1
    slug = "attestation"


class PlanExceededError(PyaccountError):
    """A round beyond the end of the planned run, for which nothing was certified."""

    exit_code = 1
    slug = "plan-exceeded"


class StateError(PyaccountError, ValueError):
    """The saved state of an accountant cannot be read, or belongs to another one."""

    exit_code = 2
    slug = "accountant-state"


class RunError(PyaccountError, ValueError):
    """A training run cannot go on as accounted: its key, its record, its data or its state do not fit. Nothing was counted."""

    exit_code = 2
    slug = "training-run"


class ClusterError(PyaccountError):
    """A cluster cannot be reached or lost its work, or a worker has no core that gives the same numbers."""

    exit_code = 3
    slug = "cluster"


class StoreError(PyaccountError):
    """A run store cannot be opened, read or written. What it reported as kept is there still."""

    exit_code = 3
    slug = "store"


class TableError(PyaccountError, ValueError):
    """A table cannot be read, or a row of it is wrong; `problems` are located by file and line, the path is the column."""

    exit_code = 2
    slug = "table"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(problem.render() for problem in self.problems))


class MissingExtraError(PyaccountError):
    """A package that only some of what pyaccount does needs is not installed; the message says how to install it."""

    exit_code = 2
    slug = "missing-extra"

    @classmethod
    def of(cls, package: str, why: str, instead: str = "") -> MissingExtraError:
        """The error of a package that is not installed, under the name by which pip knows it.

        The package itself is named, not an extra of pyaccount: an index may hold another project of that name. `why` says what
        needs it ("pictures need it"), `instead` what to do without it.
        """
        quoted = f'"{package}"' if "[" in package else package
        way_out = f", or {instead}" if instead else ""
        return cls(f"{package.partition('[')[0]} is not installed, and {why}: pip install {quoted}{way_out}")


def path_text(path: Path) -> str:
    """A path as people write it. Keys that are not plain words are quoted, so that nothing odd reaches a terminal."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z0-9_-]{1,80}", part):
            text += f".{part}" if text else part
        else:
            text += f"[{shown(part)}]"
    return text


def shown(value: object) -> str:
    """`repr(value)`, shortened to a length that fits into a message."""
    # A long text or list is cut before its repr is made: the repr of a megabyte is not free.
    if isinstance(value, str | list):
        value = value[: LONGEST_SHOWN + 1]
    try:
        text = repr(value)
    except Exception:  # A foreign object's repr may raise anything, and must not hide the problem it stands in.
        text = f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def printable(text: str) -> str:
    """Return a text that somebody else wrote so that it can be shown.

    What would move the cursor, begin a line or turn the direction of reading is spelled out, as in `\\x1b` and `\\u202e`.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def shortened(text: str) -> str:
    """A text of the document, cut to a length that fits into a message."""
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def _counted(number: int) -> str:
    """A count for people: 1.2M."""
    size, letter = next((one for one in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if number >= one[0]), (1.0, ""))
    return f"{number / size:.3g}{letter}"


def _reading_order(problem: Problem) -> tuple[bool, int, int]:
    """Overrides, which have no line, come after the file; a mapping's problems keep the order they were found in."""
    return (problem.line is None, problem.line or 0, problem.column or 0)
