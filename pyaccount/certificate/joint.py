"""What the certificate of a joint document states of the documents that it was made from: which they are, and what is assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.document.tree import Parts
from pyaccount.records.certificate import ComposedRecord

if TYPE_CHECKING:
    from pyaccount.document.document import Document

#: The assumptions of every joint guarantee. The composition theorem is for mechanisms that are given beforehand; what one of them
#: released may be an input of another (adaptive composition), but may not choose its privacy parameters.
FIXED = (
    "All documents that are composed were fixed before the first release of any of them: no noise, rate, length or other number "
    "in them, and no decision which of them are run, follows from what was released. A run may use what others released."
)
SAME_DATA = (
    "All of them are about the same data set{part}, whose records are counted in the same way: what is one record for one of "
    "them is one record for all."
)
PART = ", or about the part of it under whose name the document has them"
AS_CERTIFIED = (
    "Each of them describes one run, which satisfies the assumptions of its own certificate too; every run on this data set that "
    "the guarantee is to cover is among them."
)


def joint_assumptions(document: Document) -> list[str]:
    """Return what is assumed of the documents that a joint document was made from; empty for other documents."""
    if not document.composed_from:
        return []
    part = PART if any(isinstance(phase, Parts) for phase in document.phases) else ""
    return [FIXED, SAME_DATA.format(part=part), AS_CERTIFIED]


def composed_records(document: Document) -> list[ComposedRecord] | None:
    """Return the documents that a joint document was made from, as it states them; None for other documents."""
    records = [ComposedRecord.model_validate(one.model_dump()) for one in document.composed_from]
    return records or None
