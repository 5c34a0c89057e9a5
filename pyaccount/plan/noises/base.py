"""The base class of the kinds of noise in the plan room.

Each kind is a class of its own module. The objects have no state: every method gets the body whose noise it is about.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.plan.reduction import Analysis
    from pyaccount.plan.rounds import DirectedBounds


class NoisePlan(ABC):
    """What the plan room needs to know about a kind of noise beyond its fields."""

    #: Whether the error of prefix sums is reported; it is the variance of the noise times the error of the matrix.
    sums_have_error: ClassVar[bool]

    @abstractmethod
    def analysis(self, document: Document, body: Body) -> Analysis:
        """Return the theorem for a body with this noise. Raises `DocumentError` for a sampler that is not covered."""

    @abstractmethod
    def public(self, document: Document, body: Body) -> DirectedBounds:
        """Return the rounds of a body if participations are public and as bad as they can be (`plan.contrast`)."""

    @abstractmethod
    def convention(self, document: Document) -> str:
        """Return the sentence that states the unit of the multiplier."""
