"""What is asked of a kind of noise beyond its fields.

A noise is a class of its own module. The objects hold nothing: everything is asked with the body whose noise it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.plan.reduction import Analysis
    from pyaccount.plan.rounds import DirectedBounds


class NoisePlan(ABC):
    """What is known of a kind of noise beyond its fields."""

    #: Whether the error of prefix sums is its variance times that of the matrix, and told.
    sums_have_error: ClassVar[bool]

    @abstractmethod
    def analysis(self, document: Document, body: Body) -> Analysis:
        """The theorem for a body with this noise. Raises `DocumentError` for a sampler that is not covered."""

    @abstractmethod
    def public(self, document: Document, body: Body) -> DirectedBounds:
        """A body with a record's participations public and as bad as can be (`plan.contrast`)."""

    @abstractmethod
    def convention(self, document: Document) -> str:
        """In which units the multiplier is."""
