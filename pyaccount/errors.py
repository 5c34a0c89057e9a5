"""The errors of pyaccount, as data.

The errors of a document are `Problem`s: a stable slug, the position in the text, the path and value, and the allowed
values. They are collected and raised together in one `DocumentError`. The other exceptions state why the machine or the
arithmetic stopped. For each exception, `exit_code` is the exit code of the command. This module imports nothing of the
package, so that every other module, and the compiled core, can use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

Path = tuple[str | int, ...]

#: The name of the distribution, by which pip installs this package; an unrelated project is called pyaccount.
DISTRIBUTION = "pyaccount-dp"

#: The extra of the distribution that installs each package that only some functions need.
EXTRAS: dict[str, str] = {
    "distributed": "cluster",
    "dp-accounting": "dp-accounting",
    "flwr": "flower",
    "jax": "jax",
    "jax-privacy": "jax",
    "lightning": "lightning",
    "matplotlib": "plot",
    "mlflow-skinny": "mlflow",
    "opacus": "opacus",
    "pandas": "pandas",
    "polars": "polars",
    "psycopg": "ledger-postgres",
    "pyarrow": "parquet",
    "securesystemslib": "attest",
    "sqlalchemy": "ledger-postgres",
    "torch": "torch",
    "transformers": "transformers",
    "trl": "trl",
    "wandb": "wandb",
}

#: The maximum length of a value, a key or a file name that a message repeats, in characters.
LONGEST_SHOWN = 80

#: Every slug that a problem can carry, and its meaning. Slugs are promises: they are never renamed or reused.
SLUGS: dict[str, str] = {
    "bad-override": "An override does not have the form path=value, or its path does not exist.",
    "budget-exceeded": "The budget of a filter does not allow another release.",
    "certificate-reused": "The certificate was committed to the ledger before.",
    "clock-behind": "The clock of this machine is behind the last entry of the ledger.",
    "composed-twice": "A document is composed with itself, or with a joint document that contains it.",
    "contradiction": "Two statements of the document cannot both be true.",
    "document-too-large": "The document has too many values or is nested too deeply once its aliases are expanded.",
    "duplicate-key": "A mapping gives the same key twice.",
    "empty-document": "The file has no content.",
    "file-not-found": "No file exists under this name.",
    "file-too-large": "The file is larger than any mechanism document.",
    "fractional-batch": "The sampler draws a fixed number of records, but the batch size is not a whole number.",
    "infeasible-rate": "The document states that a record takes part more often than is possible.",
    "ledger-damaged": "The chain of hashes of a ledger is broken, or its tables do not follow from its events.",
    "matrix-file": "The file of the matrix cannot be read, or does not contain a valid matrix.",
    "merge-key": "The YAML merge key `<<` is not part of the document language.",
    "missing-key": "A required key is absent.",
    "no-equivalent": "No document means exactly what another library describes, or the other library cannot describe "
    "what the document means.",
    "no-optimum": "A matrix cannot be optimised for this sampler, or together with other values of the document.",
    "no-valid-bound": "No bound is implemented for this combination of sampler, adjacency and sizes.",
    "non-string-key": "A key of a mapping is not text.",
    "not-a-file": "The path is a folder, a pipe or a device, not a regular file.",
    "not-a-mapping": "The document is a list or a single value, not a mapping.",
    "not-allowed-now": "The state of an entry, a block or a data set of a ledger does not allow this.",
    "not-drawn": "The document describes batches or noise that a training run does not draw.",
    "not-text": "The file is not UTF-8 text or contains control characters.",
    "other-data": "The document protects other data than the data set of the ledger: another adjacency, unit or group size.",
    "other-document": "The certificate, or the record, is about another document than the entry of the ledger.",
    "out-of-range": "A value has the right type but lies outside the allowed range.",
    "outside-folder": "A document names a file outside of its own folder and of those that are allowed.",
    "over-budget": "The budget of a data set, or of one of its filters, does not admit an entry.",
    "permission-denied": "The file may not be read.",
    "ran-over": "The record of a run has more rounds than were planned.",
    "recursive-alias": "A YAML alias refers to a value that contains the alias.",
    "schedule-file": "The file of a schedule cannot be read, or does not contain a valid schedule.",
    "several-blanks": "More than one value of the document is `solve`.",
    "several-documents": "The file contains more than one YAML document.",
    "syntax-error": "The text is not valid YAML.",
    "target-infeasible": "No value of the blank meets the target, or every value meets it.",
    "uncertified": "A training run needs the certificate of a document that is certified by samples, not the "
    "document alone.",
    "unfilled-blank": "A value must be known here, but it is still to be solved or chosen.",
    "unknown-key": "The key is not part of the document language in this place.",
    "unknown-kind": "There is no sampler, matrix or noise of this kind.",
    "unknown-name": "The ledger has no data set, block, filter or entry of this name.",
    "unknown-value": "The word is not one of the allowed words.",
    "unknown-version": "The document is written in a version of the language that is not supported here.",
    "unreadable-file": "The operating system failed to read the file.",
    "unsupported-tag": "YAML tags are not part of the document language.",
    "wrong-type": "A value has the wrong type.",
}


#: Other reasons why a command stops, by the slug of the error as data. They are promises too, and none is also a slug
#: above.
FAILURES: dict[str, str] = {
    "accountant-state": "The saved state of an accountant cannot be read, or belongs to another accountant.",
    "argument": "A value that was given to a command or a function is outside of its domain.",
    "attestation": "No trusted key signed an attestation, or it is about other files; or a certificate that fails "
    "was to be signed.",
    "budget": "The budget of a data set does not admit an entry of the ledger.",
    "bug": "A bug of pyaccount; the traceback is on stderr.",
    "card-mismatch": "A model card states something else than its certificate.",
    "certificate": "The file is not a certificate, or it is a certificate that cannot be used as one.",
    "cluster": "An executor or its cluster failed, or the core of a worker does not give the same numbers.",
    "input-output": "The operating system refused to read or to write a file.",
    "interrupted": "Interrupted: there is no result. What was stored until then is in the run store, if there is one.",
    "ledger": "A ledger does not allow what was asked for: its data sets, entries or clock do not match.",
    "ledger-storage": "A ledger cannot be opened, read or written, or the file is not a ledger.",
    "limit": "A limit of time or of the machine was reached.",
    "missing-extra": "A package that this function of pyaccount needs is not installed.",
    "model-card": "A model card cannot be read, or cannot be edited without changing other parts of it.",
    "numerics": "A number could not be bounded.",
    "plan-exceeded": "The round is after the end of the planned run.",
    "store": "A run store cannot be opened, read or written, or the file is not a run store.",
    "table": "A table (of records and users, or of scores) cannot be read, or does not contain what was asked for.",
    "training-run": "A training run cannot continue as accounted: its key, its record, its data or its state do not "
    "match.",
    "usage": "The command line is wrong.",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One error, with its place.

    `path` is the path of the value, or of the key that is missing or unknown. `line` and `column` are counted from 1. `value`
    is what was found there, or `None` if nothing was found. `file` is `overrides: path=value` for an error in an override,
    which is `--set path=value` on the command line, and `None` for a document that is a mapping.
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
        """Return the path as people write it: `phases[0].noise.multiplier`."""
        return path_text(self.path)

    def render(self) -> str:
        """Return the problem as text for people: the position and value on one line, then the message, indented."""
        file = None if self.file is None else printable(self.file)
        place = ":".join(str(part) for part in (file, self.line, self.column) if part is not None)
        subject = self.path_text
        if self.value is not None:
            subject = f"{subject} = {quoted(self.value)}" if subject else quoted(self.value)
        head = f"{subject} [{self.slug}]".lstrip()
        lines = [f"{place}: {head}" if place else head, f"    {self.message}"]
        if self.allowed is not None and self.allowed not in self.message:
            lines.append(f"    allowed: {self.allowed}")
        if self.suggestion is not None:
            lines.append(f"    did you mean {self.suggestion}?")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the problem as data for programs; a value that JSON cannot represent becomes its shortened text."""
        value = self.value
        # NaN compares false too; most readers of JSON have trouble with integers longer than 64 bits.
        short = isinstance(value, int | float) and abs(value) < 2**64
        plain = short or value is None or isinstance(value, str)
        return {
            "slug": self.slug,
            "message": self.message,
            "path": self.path_text,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "value": value if plain else quoted(value),
            "allowed": self.allowed,
            "suggestion": self.suggestion,
        }


class PyaccountError(Exception):
    """The base class of everything that pyaccount raises on purpose. The command ends with `exit_code`; `slug` is a key of
    `FAILURES`.
    """

    exit_code: ClassVar[int] = 3
    slug: ClassVar[str]


def problem(
    slug: str, path: Path, message: str, *, allowed: str | None = None, suggestion: str | None = None
) -> Problem:
    """Return a problem at a path of a document, whose place there is filled in later."""
    return Problem(slug, message, path, allowed=allowed, suggestion=suggestion)


class DocumentError(PyaccountError, ValueError):
    """The document is wrong. `problems` contains everything that is wrong with it, in the order of the text.

    Each problem has its own slug, which is a key of `SLUGS`.
    """

    exit_code = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(sorted(problems, key=_reading_order))
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(problem.render() for problem in self.problems)

    def to_json(self) -> list[dict[str, object]]:
        """Return the problems as a list that JSON can represent."""
        return [problem.to_json() for problem in self.problems]


#: The core's message at a deadline; the core uses it for nothing else.
TIME_IS_UP = "the time limit was reached"


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """The maximum time of the work, in seconds, and what set it: `accounting.time_limit`, `time_limit=`, `--time-limit` …"""

    seconds: float
    set_by: str


class LimitError(PyaccountError):
    """A limit of the machine, or a limit that the user set, stopped the work. `progress` states how far the work got: its
    `stage`, `compositions`, `samples`, and what was `known`. `limit` is the time limit that was reached, and what set it.
    """

    exit_code = 3
    slug = "limit"

    def __init__(self, message: str, *, stage: str = "", samples: int | None = None, seed: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        #: The work that was under way.
        self.stage = stage
        #: The number of compositions and samples done by then, or None if the work has none.
        self.compositions: int | None = None
        self.samples = samples
        self.seed = seed
        #: The results known by then, each with its own kind of certainty. None of them is certified.
        self.known: tuple[str, ...] = ()
        #: The time limit, or None if another limit stopped the work.
        self.limit: TimeLimit | None = None

    @property
    def progress(self) -> str:
        """Return in words how far the work got."""
        counts = []
        if self.samples is not None:
            counts.append(f"{abbreviated(self.samples)} samples")
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
        """Return the error as data for programs."""
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
    """The core could not bound a number. The message states which one, and why."""

    exit_code = 3
    slug = "numerics"


class DomainError(PyaccountError, ValueError):
    """An argument of a function is outside of its domain."""

    exit_code = 2
    slug = "argument"


class CertificateError(PyaccountError, ValueError):
    """A certificate cannot be read, or does not state what it should. `problems` have a place, if it is known."""

    exit_code = 2
    slug = "certificate"

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems: tuple[Problem, ...] = tuple(problems)


class AttestationError(PyaccountError):
    """No trusted key signed an attestation, it is not about the files that were given, or a certificate that fails was to be
    signed.
    """

    exit_code = 1
    slug = "attestation"


class PlanExceededError(PyaccountError):
    """The round is after the end of the planned run, so nothing was certified for it."""

    exit_code = 1
    slug = "plan-exceeded"


class StateError(PyaccountError, ValueError):
    """The saved state of an accountant cannot be read, or belongs to another accountant."""

    exit_code = 2
    slug = "accountant-state"


class RunError(PyaccountError, ValueError):
    """A training run cannot continue as accounted: its key, its record, its data or its state do not match. Nothing was
    counted.
    """

    exit_code = 2
    slug = "training-run"


class ClusterError(PyaccountError):
    """An executor or its cluster failed, or the core of a worker does not give the same numbers."""

    exit_code = 3
    slug = "cluster"


class StoreError(PyaccountError):
    """A run store cannot be opened, read or written. What was reported as stored before is still there."""

    exit_code = 3
    slug = "store"


class _LocatedError(Exception):
    """What errors have in common that consist of located problems."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(problem.render() for problem in self.problems))


class LedgerError(PyaccountError, _LocatedError, ValueError):
    """A ledger does not allow what was asked for, and nothing was written. `problems` have the ledger as their file, and the
    data set, block or entry as their path.
    """

    exit_code = 2
    slug = "ledger"


class BudgetError(PyaccountError, _LocatedError):
    """The budget of a data set does not admit an entry, and nothing was written. `problems` state what is left for each block,
    and what would fit.
    """

    exit_code = 1
    slug = "budget"


class LedgerStorageError(PyaccountError):
    """A ledger cannot be opened, read or written. What was committed before is still there, and nothing is half-written."""

    exit_code = 3
    slug = "ledger-storage"


class TableError(PyaccountError, _LocatedError, ValueError):
    """A table cannot be read, or one of its rows is wrong. `problems` have the file and line; their path is the column."""

    exit_code = 2
    slug = "table"


class CardError(PyaccountError, _LocatedError, ValueError):
    """A model card cannot be read, or cannot be edited without changing other parts of it. `problems` have the file and line."""

    exit_code = 2
    slug = "model-card"


class CardMismatchError(PyaccountError, _LocatedError, ValueError):
    """A model card states something else than its certificate. `problems` contains every difference, with its line."""

    exit_code = 1
    slug = "card-mismatch"


class MissingExtraError(PyaccountError):
    """A package that only some functions of pyaccount need is not installed. The message states how to install it."""

    exit_code = 2
    slug = "missing-extra"

    @classmethod
    def of(cls, package: str, why: str, instead: str = "") -> MissingExtraError:
        """Return the error of a package of `EXTRAS` that is not installed, with the extra that installs it.

        pip installs an extra of an installed distribution without fetching the distribution again. `why` states what needs the
        package ("pictures need it"), `instead` what to do without it.
        """
        way_out = f", or {instead}" if instead else ""
        return cls(f'{package} is not installed, and {why}: pip install "{DISTRIBUTION}[{EXTRAS[package]}]"{way_out}')


@contextmanager
def importing(*modules: str, by: str, package: str = "") -> Iterator[None]:
    """Raise `MissingExtraError` if one of these modules cannot be imported in the context because it is not installed.

    `by` names what needs it, and `package` the package of `EXTRAS` that has it, if it has another name than the module.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in modules:
            raise
        raise MissingExtraError.of(package or error.name, f"{by} needs it") from error


def path_text(path: Path) -> str:
    """Return a path as people write it.

    Keys that are not plain words are quoted, so no control character reaches a terminal.
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z0-9_-]{1,80}", part):
            text += f".{part}" if text else part
        else:
            text += f"[{quoted(part)}]"
    return text


def quoted(value: object) -> str:
    """Return `repr(value)`, shortened to a length that fits into a message."""
    # A long text or list is cut before its repr is computed, because the repr of a megabyte takes time.
    if isinstance(value, str | list):
        value = value[: LONGEST_SHOWN + 1]
    try:
        text = repr(value)
    except Exception:  # The repr of a foreign object may raise anything, and must not hide the problem.
        text = f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def printable(text: str) -> str:
    """Return a text from another author in a form that is safe to show.

    Characters that would move the cursor, begin a line or change the reading direction are spelled out, as in `\\x1b`
    and `\\u202e`.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def shortened(text: str) -> str:
    """Return a text of the document, cut to a length that fits into a message."""
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def abbreviated(number: float) -> str:
    """Return a count or a rate with three digits and a letter for thousands, millions or billions: 1.2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.0f}"


def _reading_order(problem: Problem) -> tuple[bool, int, int]:
    """Return a sort key: overrides, which have no line, follow the file; a mapping's problems keep their order."""
    return (problem.line is None, problem.line or 0, problem.column or 0)
