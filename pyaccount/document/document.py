"""A validated document: what the later rooms work with."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, cast

from pydantic import BaseModel

from pyaccount.document.blanks import blanks, choice_at, choices
from pyaccount.document.fields import WHOLE_BLANKS
from pyaccount.document.foreign import from_value
from pyaccount.document.models import PhasedDocument, SingleDocument
from pyaccount.document.nodes import Scalar, Table, find, place_of, plain, replaced
from pyaccount.document.overrides import set_at
from pyaccount.document.risk import target
from pyaccount.document.rules import broken_rules
from pyaccount.document.sections import Risk
from pyaccount.document.validation import validate
from pyaccount.document.views import Mechanism, bodies_of
from pyaccount.errors import DocumentError, Path, Problem, path_text


class Document(Mechanism):
    """A mechanism document without problems. It never changes; `with_value` makes another one.

    Two documents are equal if they say the same, wherever they were read from. The order of keys and the spelling of
    numbers say nothing; a default that is written out does. `root` is the tree it was read from.
    """

    def __init__(self, root: Table, file: str | None = None, problems: Iterable[Problem] = ()) -> None:
        """Validate a tree. `problems` are those found while it was read; with its own they become a `DocumentError`."""
        raw = cast(dict[str, Any], plain(root))
        shape: type[SingleDocument | PhasedDocument] = PhasedDocument if "phases" in raw else SingleDocument
        model, invalid = validate(root, raw, shape)
        super().__init__(root, file, model)
        self.name = model.name
        self.accounting = model.accounting
        self.bodies = tuple(body.in_iterations() for body in bodies_of(model))
        self.stated_privacy = model.privacy
        self.privacy = target(model.privacy, self.bodies)
        found = [*problems, *invalid]
        # A mapping that lost keys in reading would only be told what follows from the loss.
        if not any(problem.slug in ("merge-key", "non-string-key") for problem in found):
            found.extend(broken_rules(self))
        if found:
            raise DocumentError(found)
        self.blank: Path | None = next(iter(blanks(self)), None)
        self.choices: tuple[Path, ...] = tuple(choices(self))
        #: What was read from the files that it names, once it is `pinned`.
        self.read: dict[object, Any] | None = None

    def pinned(self) -> Document:
        """The document for one analysis: each file that it names is read once, for it and for all that are made of it.

        A file that changes meanwhile changes nothing then, and whoever gets the document, another process too, gets what was
        read along with it.
        """
        if self.read is not None:
            return self
        document = copy.copy(self)
        document.read = {}
        return document

    def _made(self, root: Table, problems: Iterable[Problem] = ()) -> Document:
        """Another document from this one's files."""
        document = Document(root, self.file, problems)
        document.read = self.read
        return document

    def candidates(self) -> list[Document]:
        """The documents that a choice in each `choose:` list makes of this one, in the order of the lists; itself without any.

        A combination that contradicts itself is left out; if all do, a `DocumentError` says what is wrong with the first.
        """
        if not self.choices:
            return [self]
        path, found, errors = self.choices[0], [], []
        for value in choice_at(self, path):
            try:
                found += self.with_value(path, value).candidates()
            except DocumentError as error:
                errors.append(error)
        if not found:
            raise errors[0]
        return found

    def with_value(self, path: Path, value: object) -> Document:
        """The document with a value at a path, validated once more: how a blank is filled. Raises `DocumentError`."""
        place = place_of(self.root, path)
        node, problems = from_value(value, place)
        root = set_at(self.root, path, node)
        if not isinstance(root, Table):
            raise KeyError(f"{path_text(path)} leads nowhere in this document")
        return self._made(root, problems)

    @property
    def searched(self) -> bool:
        """Whether a matrix is still to be found."""
        return any(body.matrix.searched for body in self.bodies)

    def with_coefficients(self, coefficients: Iterable[float]) -> Document:
        """The document with a matrix found for its one body: a first column as it is, in place of what describes it."""
        found = {"kind": "toeplitz", "coefficients": [float(c) for c in coefficients], "normalize": False}
        return self.with_value(self.bodies[0].at("matrix"), found)

    def with_buffers(self, scales: Iterable[float], decays: Iterable[float]) -> Document:
        """The same of a matrix that is found by its buffers; it is normalised."""
        found = {"kind": "blt", "scales": [float(one) for one in scales], "decays": [float(one) for one in decays]}
        return self.with_value(self.bodies[0].at("matrix"), found)

    def filled(self, value: float) -> Document:
        """The document with a value in its blank, not validated once more: for the candidates of a search, one after another.

        The value is in the blank's range, and read as the document's own would be. What the document says together with the
        value is for `with_value` to refuse.
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
        assert isinstance(model, SingleDocument | PhasedDocument)
        document.root, document._model, document.blank = root, model, None
        document.bodies = tuple(body.in_iterations() for body in bodies_of(model))
        document.stated_privacy = model.privacy
        document.privacy = target(model.privacy, document.bodies)
        return document

    @property
    def risk(self) -> Risk | None:
        """The budget of risk that stands instead of ε and δ. `privacy` then asks for ε at the δ at which it is to be told."""
        return self.stated_privacy.risk

    def claiming(self, epsilon: float, delta: float) -> Document:
        """The document with this claim instead of its budget of risk."""
        place = place_of(self.root, ("privacy", "risk"))
        section = find(self.root, ("privacy",))
        assert isinstance(section, Table)
        entries = {name: entry for name, entry in section.entries.items() if name != "risk"}
        claimed = {"epsilon": epsilon, "delta": delta}
        entries |= {name: (place, Scalar(value, place)) for name, value in claimed.items()}
        root = replaced(self.root, ("privacy",), Table(entries, section.place))
        assert isinstance(root, Table)
        return self._made(root)

    def __repr__(self) -> str:
        return f"<Document {self.name!r}{f' from {self.file}' if self.file else ''}>"


def _changed(section: BaseModel, path: Path, value: object) -> BaseModel:
    """A section with a value at a path; the rest is shared with the one that it was."""
    name, *rest = path
    field = str(name)
    if rest:
        below = getattr(section, field)
        if isinstance(below, tuple):
            place = int(rest[0])
            value = (*below[:place], _changed(below[place], tuple(rest[1:]), value), *below[place + 1 :])
        else:
            value = _changed(below, tuple(rest), value)
    return section.model_copy(update={field: value})
