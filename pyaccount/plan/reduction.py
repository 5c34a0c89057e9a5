"""The types of a reduction: a theorem in words, and how it turns a body into rounds or into a sampled mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyaccount.errors import path_text

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Path, Problem
    from pyaccount.plan.rounds import Alternative, DirectedBounds
    from pyaccount.plan.sampled import SampledMechanism


@dataclass(frozen=True, slots=True)
class Reduction:
    """One theorem applied to one body of the document, in words."""

    path: Path
    subject: str
    theorem: str
    source: str
    pair: str
    rounds: str
    tight: bool
    remark: str | None
    assumptions: tuple[str, ...]
    #: The two data sets that give the lower bound, and what is observed of which rounds; None if the pair is attained.
    lower_end: str | None = None

    def stated(self) -> dict[str, Any]:
        """Return what plans and certificates state of the reduction, by the names of their fields."""
        names = ("subject", "theorem", "source", "pair", "rounds", "tight", "remark", "lower_end")
        return {"path": path_text(self.path) or "document", **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True, slots=True)
class Analysis:
    """A theorem, as functions of a body: its words, and its numbers once the blank is filled.

    All fields are functions of modules, or methods of objects without state, so that a plan can be pickled. Exactly one
    of `bounds` and `mechanism` is given. The repr shows no function, because its address would mean nothing to a
    reader.
    """

    words: Callable[[Document, Body], Reduction] = field(repr=False)
    #: The rounds to compose.
    bounds: Callable[[Document, Body], DirectedBounds] | None = field(default=None, repr=False)
    #: The mechanism that is analysed by sampling; it has no rounds to compose.
    mechanism: Callable[[Document, Body], SampledMechanism] | None = field(default=None, repr=False)
    #: The problems of what the theorem does not cover; it is called before the other functions.
    refusals: Callable[[Document, Body], list[Problem]] | None = field(default=None, repr=False)
    #: Whether the rounds are Gaussian mechanisms, which compose to one Gaussian mechanism.
    gaussian: bool = False
    #: Whether a round with less noise and a larger rate is an upper bound of a round: see `pyaccount.plan.alike`.
    alike: bool = False
    #: The rounds for each kind of record, if records are of several kinds; `bounds` are those of the worst kind.
    alternatives: Callable[[Document, Body], tuple[Alternative, ...]] | None = field(default=None, repr=False)
