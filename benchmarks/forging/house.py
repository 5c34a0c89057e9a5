"""What is true of a forged certificate, by the house's own core: whether its document is one, and bounds of its δ."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import pyaccount
from forging.certificates import DOCUMENT, Json, meant
from pyaccount.errors import DocumentError, LimitError

#: What the engine may be asked: how far apart the bounds of δ may be.
_TOLERANCE = 0.01


class Refused(Exception):  # noqa: N818 - a document that is none is no error here
    """The house does not accept the document; `slug` and `place` say why and where."""

    def __init__(self, slug: str, message: str) -> None:
        super().__init__(f"{slug}: {message}")
        self.slug = slug


class Bounds(NamedTuple):
    """What the core proves of δ at an ε."""

    lower: float
    upper: float


class House:
    """Reads and certifies the documents of forged certificates."""

    def __init__(self, limit: float) -> None:
        """Take the seconds for one certificate."""
        self.limit = limit
        self._folder = tempfile.TemporaryDirectory(prefix="forge")

    def __enter__(self) -> House:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._folder.cleanup()

    def document(self, certificate: Json) -> Json:
        """Return what a certificate is about. Raises `Refused` if that is no document."""
        try:
            if not isinstance(certificate[DOCUMENT], dict):
                raise TypeError("the document is no mapping")
            stated = meant(certificate, Path(self._folder.name))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise Refused("parts that do not fit", f"{type(error).__name__}: {error}"[:200]) from error
        self._read(stated)
        return stated

    def _read(self, document: Json) -> pyaccount.Document:
        try:
            return pyaccount.load(document, folders=[tempfile.gettempdir()])
        except DocumentError as error:
            problem = error.problems[0]
            raise Refused(problem.slug, f"{problem.path}: {problem.message}"[:300]) from error
        except Exception as error:
            # Whatever else the house does, it does not accept the document; who forges sees that it failed.
            raise Refused("the house fails", f"{type(error).__name__}: {error}"[:300]) from error

    def delta(self, document: Json, epsilon: float) -> Bounds | None:
        """Return bounds of δ at an ε; None if there are none in time."""
        privacy = {key: value for key, value in document["privacy"].items() if key in ("adjacency", "group_size")}
        accounting = {"profile": [], "tolerance": _TOLERANCE, "seed": 1}
        asked = self._read(
            {**document, "privacy": privacy | {"epsilon": epsilon, "delta": "solve"}, "accounting": accounting}
        )
        try:
            found = pyaccount.certify(asked, threads=1, time_limit=self.limit).data.guarantee
        except DocumentError as error:
            problem = error.problems[0]
            raise Refused(problem.slug, f"{problem.path}: {problem.message}"[:300]) from error
        except LimitError:
            return None
        return Bounds(found.delta_lower, found.delta)
