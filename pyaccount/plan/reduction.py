"""What a reduction is: a theorem, in words, and how it turns a body of the document into rounds or into a sampled mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.errors import Path, Problem
    from pyaccount.plan.rounds import DirectedBounds
    from pyaccount.plan.sampled import SampledMechanism


@dataclass(frozen=True, slots=True)
class Reduction:
    """One theorem applied to one body of the document."""

    path: Path
    subject: str
    theorem: str
    source: str
    pair: str
    rounds: str
    tight: bool
    remark: str | None
    assumptions: tuple[str, ...]
    components: int
    #: Of which two data sets, and of what is seen of which rounds, the lower end is; None where the pair is attained.
    lower_end: str | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """A theorem, by what it says of a body: in words, and in numbers once the blank is filled.

    All are functions of a module, or methods of objects that hold nothing: they know nothing of a document before they are given
    one, so that a plan can be pickled. One of `bounds` and `mechanism` is there. A repr shows none of them, since the address of
    a function tells nobody anything.
    """

    words: Callable[[Document, Body], Reduction] = field(repr=False)
    #: The rounds to compose.
    bounds: Callable[[Document, Body], DirectedBounds] | None = field(default=None, repr=False)
    #: What is judged by sampling; it has no rounds to compose.
    mechanism: Callable[[Document, Body], SampledMechanism] | None = field(default=None, repr=False)
    #: What the theorem does not cover, asked before anything else.
    refusals: Callable[[Document, Body], list[Problem]] | None = field(default=None, repr=False)
    #: Whether the rounds are Gaussian mechanisms, which compose to one.
    gaussian: bool = False
    #: Whether a round is bounded by one with less noise and a larger rate: see `pyaccount.plan.alike`.
    alike: bool = False
