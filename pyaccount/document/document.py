"""The validated mechanism document that the later rooms use."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, cast

from pydantic import BaseModel

from pyaccount.document.blanks import blanks, choice_at, choices
from pyaccount.document.models import (
    SHAPES,
    AnyDocument,
    ComposedDocument,
    MechanismDocument,
    PhasedDocument,
    SingleDocument,
)
from pyaccount.document.naming import outside
from pyaccount.document.risk import target
from pyaccount.document.rules import broken_rules
from pyaccount.document.sections import Risk
from pyaccount.document.validation import validate
from pyaccount.document.views import Mechanism, phases_of, shared_noise_of
from pyaccount.errors import DocumentError, Path, Problem, path_text
from pyaccount.reading.fields import WHOLE_BLANKS
from pyaccount.reading.nodes import Scalar, Table, find, from_value, located, place_of, replaced
from pyaccount.reading.overrides import set_at


class Document(Mechanism):
    """A mechanism document without problems. It is immutable; `with_value` returns a changed copy.

    Two documents are equal if their content is equal, even if they were read from different places. The order of keys
    and the spelling of numbers do not matter; a default that is written out does. `root` is the tree that the document
    was read from.
    """

    def __init__(
        self, root: Table, file: str | None = None, problems: Iterable[Problem] = (), folders: Sequence[str] = ()
    ) -> None:
        """Validate a tree. Raises `DocumentError` with all problems, those found in reading (`problems`) included.

        Files that the document names lie in the folder of `file` (without one, in the working folder), or in one of `folders`.
        """
        model, invalid = validate(root, cast("type[AnyDocument]", SHAPES.member(root.entries)))
        super().__init__(root, file, model)
        self.name = model.name
        self.accounting = model.accounting
        self.shared_noise = shared_noise_of(model)
        self.phases = phases_of(model)
        self.folders = tuple(folders)
        self.stated_privacy = model.privacy
        self.privacy = target(model.privacy, self.runs_among_phases())
        found = [*problems, *invalid, *outside(self)]
        # If keys were lost while reading, the rules would only report consequences of the loss.
        if not any(problem.slug in ("merge-key", "non-string-key") for problem in found):
            found.extend(located(root, problem) for problem in broken_rules(self))
        if found:
            raise DocumentError(found)
        self.blank: Path | None = next(iter(blanks(self)), None)
        self.choices: tuple[Path, ...] = tuple(choices(self))
        #: The content of the files that the document names, once it is `pinned`.
        self.read: dict[object, Any] | None = None

    @property
    def composed_from(self) -> tuple[ComposedDocument, ...]:
        """The documents that a joint document was made from; empty for other documents."""
        return self._model.composed_from if isinstance(self._model, PhasedDocument) else ()

    def pinned(self) -> Document:
        """Return the document for one analysis, in which each file that it names is read only once.

        Documents made from this one share what was read. So a file that changes during the analysis has no effect, and
        if the document is sent to another process, the content of its files is sent with it.
        """
        if self.read is not None:
            return self
        document = copy.copy(self)
        document.read = {}
        return document

    def made(self, root: Table, problems: Iterable[Problem] = ()) -> Document:
        """Return a document with another tree, in the same folder, that shares the files that were read for this one."""
        document = Document(root, self.file, problems, self.folders)
        document.read = self.read
        return document

    def candidates(self) -> list[Document]:
        """Return one document for each combination of values from the `choose:` lists, in the order of the lists.

        A document without `choose:` lists is its own only candidate. Combinations that contradict themselves are left
        out; if all do, the `DocumentError` of the first is raised.
        """
        if not self.choices:
            return [self]
        path, documents, errors = self.choices[0], [], []
        for value in choice_at(self, path):
            try:
                documents += self.with_value(path, value).candidates()
            except DocumentError as error:
                errors.append(error)
        if not documents:
            raise errors[0]
        return documents

    def with_value(self, path: Path, value: object) -> Document:
        """Return the document with a value at a path, such as the blank, validated again. Raises `DocumentError`."""
        place = place_of(self.root, path)
        node, problems = from_value(value, place)
        root = set_at(self.root, path, node)
        if not isinstance(root, Table):
            raise KeyError(f"{path_text(path)} leads nowhere in this document")
        return self.made(root, problems)

    @property
    def searched(self) -> bool:
        """Whether the document has a matrix whose coefficients are still to be searched for."""
        return any(run.matrix.searched for run in self.runs())

    def with_coefficients(self, coefficients: Iterable[float]) -> Document:
        """Return the document with this first column, not normalised, as the matrix of its only run."""
        matrix = {"kind": "toeplitz", "coefficients": [float(c) for c in coefficients], "normalize": False}
        return self.with_value(self.run.at("matrix"), matrix)

    def with_buffers(self, scales: Iterable[float], decays: Iterable[float]) -> Document:
        """Return the document with the normalised BLT of these scales and decays as the matrix of its only run."""
        matrix = {"kind": "blt", "scales": [float(s) for s in scales], "decays": [float(d) for d in decays]}
        return self.with_value(self.run.at("matrix"), matrix)

    def filled(self, value: float) -> Document:
        """Return the document with a value in its blank, without validating it again. A search calls this for each
        candidate.

        The value must be in the range of the blank, and whole if the blank is. Contradictions between the value and the
        rest of the document are not detected here, but by `with_value`.
        """
        path = self.blank
        assert path is not None
        kept = int(value) if path[-1] in WHOLE_BLANKS else float(value)
        assert kept == value, "a whole number is asked for"
        document = copy.copy(self)
        document.__dict__.pop("sha256", None)
        root = set_at(self.root, path, Scalar(kept, place_of(self.root, path)))
        assert isinstance(root, Table)
        model = _changed(self._model, path, kept)
        assert isinstance(model, SingleDocument | MechanismDocument | PhasedDocument)
        document.root, document._model, document.blank = root, model, None
        document.shared_noise = shared_noise_of(model)
        document.phases = phases_of(model)
        document.stated_privacy = model.privacy
        document.privacy = target(model.privacy, document.runs_among_phases())
        return document

    @property
    def risk(self) -> Risk | None:
        """The budget of risk that replaces ε and δ, if any. `privacy` then asks for ε at the δ of the report."""
        return self.stated_privacy.risk

    def claiming(self, epsilon: float, delta: float) -> Document:
        """Return the document with the claim (ε, δ) in place of its budget of risk."""
        place = place_of(self.root, ("privacy", "risk"))
        section = find(self.root, ("privacy",))
        assert isinstance(section, Table)
        entries = {name: entry for name, entry in section.entries.items() if name != "risk"}
        claimed = {"epsilon": epsilon, "delta": delta}
        entries |= {name: (place, Scalar(value, place)) for name, value in claimed.items()}
        root = replaced(self.root, ("privacy",), Table(entries, section.place))
        assert isinstance(root, Table)
        return self.made(root)


def _changed(section: BaseModel, path: Path, value: object) -> BaseModel:
    """Return a copy of a section with a value at a path; the copy shares everything else with the original."""
    name, *rest = path
    field = str(name)
    if rest:
        below = getattr(section, field)
        if isinstance(below, tuple):
            index = int(rest[0])
            value = (*below[:index], _changed(below[index], tuple(rest[1:]), value), *below[index + 1 :])
        else:
            value = _changed(below, tuple(rest), value)
    return section.model_copy(update={field: value})
