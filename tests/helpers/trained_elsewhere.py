"""The document of the short runs by which trainers of other libraries are tested."""

from typing import Any

from plain_documents import doc, sectioned


def trained(name: str, records: int, rounds: int) -> dict[str, Any]:
    """Return a document of Poisson batches of six records on average, with little noise, so that a test sees the gradients."""
    return doc(
        "adjacency=add-remove epsilon=300.0 expected_batch_size=6 sampler=poisson multiplier=0.5",
        name=name,
        dataset_size=records,
        iterations=rounds,
    )


#: What makes the noise of such a run correlated.
CORRELATED = sectioned(sampler="b-min-sep", min_separation=2, matrix="banded-square-root", bands=2)
