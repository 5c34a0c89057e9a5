"""Document in, plan out: which theorem turns each part of a document into rounds the core can compose.

One file for each sampler; `reduction` holds what they produce, `plan` puts them together. All policy lives here: which
theorem applies, what is refused and why. Nothing is computed here: `execute` runs a plan, `certificate` states the result.
"""

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.plan.plan import Estimate, Plan, compile_document
from pyaccount.plan.reduction import Bounds, DirectedBounds, Part, Reduction, Rounds

__all__ = [
    "DIRECTIONS",
    "Bounds",
    "DirectedBounds",
    "Direction",
    "Estimate",
    "Part",
    "Plan",
    "Reduction",
    "Rounds",
    "compile_document",
]
