"""What the guarantee of a document rests on besides proofs: guarantees of other runs that come from samples.

A mechanism of kind `stated` may say that its guarantee fails with some probability, or that it was verified by a test. The
certificate of a document with such mechanisms fails at most with the sum (union bound). A gate asks this of the document inside
a certificate, so this module reads plain data and imports no models.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple


class Rests(NamedTuple):
    """What a guarantee rests on: a failure probability, rounded up, and whether some part of it is a verified guarantee."""

    failure_probability: float
    verified: bool

    @property
    def kind(self) -> Literal["deterministic", "verified", "confidence"]:
        """The kind of the guarantee: the weakest of what it rests on."""
        return "confidence" if self.failure_probability > 0.0 else "verified" if self.verified else "deterministic"


def rests_on(document: Mapping[str, Any]) -> Rests:
    """Return what the guarantee of a document rests on. `document` is its mapping as a certificate has it, with plain numbers."""
    stated = list(_stated(document))
    failures = [failure for one in stated if (failure := _number(one.get("failure_probability"))) > 0.0]
    total = math.fsum(failures)
    # A sum of several numbers is rounded to the nearest double.
    total = math.nextafter(total, math.inf) if len(failures) > 1 else total
    return Rests(min(1.0, total), any(one.get("verified") is True for one in stated))


def _stated(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the mechanisms of kind `stated` in a body of a document, or anywhere inside of it."""
    if not isinstance(value, Mapping):
        return
    mechanism = value.get("mechanism")
    if isinstance(mechanism, Mapping) and mechanism.get("kind") == "stated":
        yield mechanism
    for key in ("phases", "parallel"):
        inside = value.get(key)
        for one in inside if isinstance(inside, list | tuple) else ():
            yield from _stated(one)


def _number(value: object) -> float:
    """Return a probability of a document; 0 for what is none, which the document's own check refuses."""
    number = not isinstance(value, bool) and isinstance(value, int | float) and 0.0 <= value <= 1.0
    return float(value) if number else 0.0  # type: ignore[arg-type]
