"""The question about one phase of a document, which theorems, batches and noise are asked with."""

from pyaccount.document.document import Document
from pyaccount.plan.protection import Protection, RunCase


def phase(document: Document, index: int = 0) -> RunCase:
    """Return what is asked about a phase."""
    return Protection.of(document).runs()[index]
