"""What the accountants of other libraries answer: ε at a δ, and δ at an ε, each the upper end of a certificate's interval.

They are asked at values that no document has, and answer what is true there: ε = 0 at δ = 1, which bounds nothing; ε = ∞ at a δ
at which no ε holds; and at an ε above the largest of a document its δ, since δ falls in ε.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyaccount.document.loading import load
from pyaccount.document.ranges import EPSILON, SMALLEST_DELTA
from pyaccount.errors import DocumentError
from pyaccount.running import compile_document

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate

_DELTA = ("privacy", "delta")


def epsilon_at(document: Mapping[str, Any], delta: float) -> float:
    """Return an upper bound on ε of a document's mechanism at `delta`; infinity if no ε holds there.

    Raises `ValueError` for a δ that is no probability, and the errors of `pyaccount.certify`.
    """
    if not 0.0 <= delta <= 1.0:
        raise ValueError(f"delta = {delta!r}: must be between 0 and 1")
    if delta == 1.0:
        return 0.0
    try:
        # No smaller δ is resolved, and what holds at δ = 0 holds at all.
        return _certified(document, epsilon="solve", delta=delta if delta >= SMALLEST_DELTA else 0.0).epsilon
    except DocumentError as error:
        if all(problem.slug == "out-of-range" and problem.path == _DELTA for problem in error.problems):
            return math.inf
        raise


def delta_at(document: Mapping[str, Any], epsilon: float) -> float:
    """Return an upper bound on δ of a document's mechanism at `epsilon`, which may be infinite.

    Raises `ValueError` for an ε that is no number of at least 0, and the errors of `pyaccount.certify`.
    """
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon = {epsilon!r}: must be at least 0")
    return _certified(document, epsilon=min(epsilon, EPSILON.maximum), delta="solve").delta


def _certified(document: Mapping[str, Any], **asked: float | str) -> Certificate:
    """Return the certificate of a document with these values under `privacy`, without a profile, which nobody reads here."""
    changed = {**document, "privacy": {**document["privacy"], **asked}, "accounting": {"profile": []}}
    return compile_document(load(changed)).run()
