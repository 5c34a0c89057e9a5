"""What is asked about a mechanism, and about one node of it: what theorems get in place of a document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from pyaccount.document.document import Document
from pyaccount.document.naming import named_file
from pyaccount.document.sections import Accounting, Privacy
from pyaccount.document.tree import Node, TrainingNode
from pyaccount.document.words import Adjacency
from pyaccount.errors import Path, Problem, path_text
from pyaccount.files import InsideFile

if TYPE_CHECKING:
    from pyaccount.document.amplification import Amplification


@dataclass(frozen=True, slots=True)
class Protection:
    """What is protected, by which account, what is to be solved for, and where a problem lies in the document."""

    privacy: Privacy
    accounting: Accounting
    #: The path of the blank; None once it is filled.
    blank: Path | None
    #: The phases of the whole mechanism; the only one is the mechanism itself.
    phases: tuple[Node, ...]
    _document: Document | Amplification

    @classmethod
    def of(cls, document: Document) -> Protection:
        """Return what a document asks."""
        return cls(document.privacy, document.accounting, document.blank, document.phases, document)

    @classmethod
    def of_draw(cls, document: Amplification) -> RunCase:
        """Return what a document about a single draw asks: what the draw does to one record."""
        privacy = Privacy.model_construct(adjacency="replace-one", group_size=1)
        return RunCase(cls(privacy, Accounting(), None, (document.draw,), document), document.draw)

    def protecting(self, adjacency: Adjacency, group_size: int) -> Protection:
        """Return the same question for another change of the data, for the analysis of a part of the mechanism."""
        return replace(self, privacy=self.privacy.model_copy(update={"adjacency": adjacency, "group_size": group_size}))

    def every_node(self) -> Iterator[Node]:
        """Yield the phases, each followed by what is inside it."""
        for phase in self.phases:
            yield from phase.every()

    def cases(self) -> list[Case]:
        """Return the question about each phase."""
        return [Case(self, phase) for phase in self.phases]

    def runs(self) -> list[RunCase]:
        """Return the question about each training run, at any depth."""
        return [RunCase(self, run) for phase in self.phases for run in phase.runs()]

    def problem(self, slug: str, path: Path, message: str, *, allowed: str | None = None) -> Problem:
        """Return a problem at a path of the document, with its place there."""
        return self._document.problem(slug, path, message, allowed=allowed)

    def refusal(self, path: Path, message: str, *, allowed: str | None = None) -> Problem:
        """Return the problem that no bound is implemented for what a path of the document says."""
        return self.problem("no-valid-bound", path, message, allowed=allowed)

    def file(self, path: Path, name: str) -> InsideFile:
        """Return the file that the document names at a path. Raises `DocumentError` for a file elsewhere."""
        assert isinstance(self._document, Document)
        return named_file(self._document, path, name)

    @property
    def choices(self) -> tuple[Path, ...]:
        """The paths of values that are left to a choice."""
        assert isinstance(self._document, Document)
        return self._document.choices

    def pinned(self) -> Protection:
        """Return the same for one analysis, in which each file that the document names is read only once."""
        assert isinstance(self._document, Document)
        return replace(self, _document=self._document.pinned())

    @property
    def read(self) -> dict[object, Any] | None:
        """The content of the files that the document names, once it is pinned for one analysis."""
        assert isinstance(self._document, Document)
        return self._document.read


@dataclass(frozen=True)
class Case:
    """A node of the mechanism, and what is asked about it."""

    asked: Protection
    node: Node

    def on(self, node: Node, asked: Protection | None = None) -> Self:
        """Return the same for another node, such as this one with its blank filled, and another question if one is given."""
        return replace(self, asked=asked or self.asked, node=node)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {path_text(self.node.path) or 'the document'}>"


class RunCase(Case):
    """A training run, and what is asked about it."""

    node: TrainingNode


def of_run(case: Case) -> RunCase:
    """Return the question about a node that is known to be a training run."""
    assert isinstance(case.node, TrainingNode)
    return RunCase(case.asked, case.node)
