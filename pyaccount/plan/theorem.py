"""A theorem about a node of the mechanism: its words, its rounds or sampled mechanism, and what it does not cover."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pyaccount.document.tree import Draw, Node
from pyaccount.document.words import Assumed
from pyaccount.errors import Path, Problem, path_text
from pyaccount.plan.protection import Case, Protection

if TYPE_CHECKING:
    from pyaccount.plan.rounds import Alternative, DirectedBounds
    from pyaccount.plan.sampled import SampledMechanism


#: The worst participations of a record, in words that several theorems share.
EVERY_ROUND = "every record in every round"


@dataclass(frozen=True, slots=True)
class Reduction:
    """One theorem applied to one node of the mechanism, in words."""

    path: Path
    subject: str
    theorem: str
    source: str
    pair: str
    rounds: str
    tight: bool
    remark: str | None
    assumed: tuple[Assumed, ...]
    #: The two data sets that give the lower bound, and what is observed of which rounds; None if the pair is attained.
    lower_end: str | None = None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true of the run, in full."""
        return tuple(one.text for one in self.assumed)

    def stated(self) -> dict[str, Any]:
        """Return what plans and certificates state of the reduction, by the names of their fields."""
        names = ("subject", "theorem", "source", "pair", "rounds", "tight", "remark", "lower_end")
        return {"path": path_text(self.path) or "document", **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True, repr=False)
class Theorem(Case, ABC):
    """A theorem about one node: in words, and in numbers once its blank is filled.

    A theorem gives rounds that compose (`bounds`), or a mechanism that is analysed by sampling (`mechanism`) if it is
    `sampled`. `refusals` is called before both.
    """

    #: Whether the mechanism is analysed by sampling, so that there are no rounds to compose.
    sampled: ClassVar[bool] = False
    #: Whether a round with less noise and a larger rate is an upper bound of a round: see `pyaccount.plan.alike`.
    alike: ClassVar[bool] = False
    #: Whether records are of several kinds; `alternatives` then has the rounds of each, and `bounds` those of the worst.
    of_kinds: ClassVar[bool] = False

    @property
    def gaussian(self) -> bool:
        """Whether the rounds are Gaussian mechanisms, which compose to one Gaussian mechanism."""
        return False

    @abstractmethod
    def words(self) -> Reduction:
        """Return the theorem in words."""

    def fixed_draws(self) -> Any:
        """Return the `FixedDrawsPlan` of the sampler if this is about rounds with a fixed number of draws, else None."""
        return None

    def bounds(self) -> DirectedBounds:
        """Return the rounds to compose."""
        raise AssertionError("a sampled mechanism has no rounds to compose")

    def mechanism(self) -> SampledMechanism:
        """Return the mechanism of one run that is analysed by sampling."""
        raise AssertionError("rounds that compose are not sampled")

    def refusals(self) -> list[Problem]:
        """Explain what the theorem does not cover; empty if it covers the node."""
        return []

    def without(self, path: Path) -> Self | None:
        """Return the theorem without what contains a path inside of the node; None if nothing is left."""
        return None

    def sample_refusals(self, draw: Draw) -> list[Problem]:
        """Refuse to run the node on a sample that its output may show, beyond `refusals`."""
        return []

    def alternatives(self) -> tuple[Alternative, ...]:
        """Return the rounds for each kind of record, if records are of several kinds."""
        raise AssertionError("all records are of one kind")

    @abstractmethod
    def public(self) -> DirectedBounds:
        """Return the rounds if participations are public and as bad as they can be."""

    def worst_words(self) -> str:
        """Describe these participations."""
        return EVERY_ROUND if self.node.draw is not None else f"{EVERY_ROUND}, without sampling"

    def on_whole_parts(self) -> Iterator[Theorem]:
        """Yield what is run on disjoint parts, and on a part one after the other; another theorem as it is."""
        yield self


@dataclass(frozen=True, repr=False)
class Derived(Theorem):
    """A theorem beside another one about the same node, whose public participations are the same."""

    inner: Theorem

    def on(self, node: Node, asked: Protection | None = None) -> Self:
        """Return both theorems for another node."""
        return replace(self, asked=asked or self.asked, node=node, inner=self.inner.on(node, asked))

    def public(self) -> DirectedBounds:
        """Return the public rounds of the inner theorem."""
        return self.inner.public()

    def worst_words(self) -> str:
        """Return those of the inner theorem."""
        return self.inner.worst_words()


class Around(Derived):
    """A theorem that follows from another one about the same node, or about nodes that are made from it."""

    @property
    def sampled(self) -> bool:  # type: ignore[override]
        """Whether the inner theorem samples."""
        return self.inner.sampled

    @property
    def alike(self) -> bool:  # type: ignore[override]
        """Whether rounds of the inner theorem may be grouped."""
        return self.inner.alike

    @property
    def of_kinds(self) -> bool:  # type: ignore[override]
        """Whether the inner theorem is about several kinds of records."""
        return self.inner.of_kinds

    @property
    def gaussian(self) -> bool:
        """Whether the inner rounds are Gaussian mechanisms."""
        return self.inner.gaussian

    def bounds(self) -> DirectedBounds:
        """Return the rounds of the inner theorem."""
        return self.inner.bounds()

    def mechanism(self) -> SampledMechanism:
        """Return the mechanism of the inner theorem."""
        return self.inner.mechanism()

    def refusals(self) -> list[Problem]:
        """Return the refusals of the inner theorem."""
        return self.inner.refusals()

    def sample_refusals(self, draw: Draw) -> list[Problem]:
        """Return those of the inner theorem."""
        return self.inner.sample_refusals(draw)

    def alternatives(self) -> tuple[Alternative, ...]:
        """Return the kinds of records of the inner theorem."""
        return self.inner.alternatives()


@dataclass(frozen=True, repr=False)
class CombinedTheorem(Theorem):
    """A theorem about a node with others inside, which follows from one theorem for each of them."""

    inner: tuple[Theorem, ...]

    def on(self, node: Node, asked: Protection | None = None) -> Self:
        """Return the theorem for another node of the same shape, which may lack some of the nodes inside."""
        return replace(self, asked=asked or self.asked, node=node, inner=matched(self.inner, node, asked))


def matched(theorems: tuple[Theorem, ...], node: Node, asked: Protection | None) -> tuple[Theorem, ...]:
    """Return the theorems for the nodes inside of a node, each of which is known by its place in the document."""
    placed = {one.node.path: one for one in theorems}
    return tuple(placed[inside.path].on(inside, asked) for inside in node.inner if inside.path in placed)
