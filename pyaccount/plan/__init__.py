"""Document in, plan out: which theorem turns each part of a document into rounds the core can compose.

`samplers`, `matrices` and `noises` have a class for each kind, `reduction` what they produce, `compiling` chooses among them and
`compiled` is what comes out: theorems in words, and, at a value of the blank, in numbers. `common` has words and refusals that
they share.
All policy lives here: which theorem applies, what is refused and why. Matrices, sensitivities and the parameters of a round are
computed here; of ε and δ only those of one draw, closed forms (`amplification`). `execute` computes what a plan asks,
`certificate` states the result, `running` does both.
"""

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.plan.compiled import CompiledDocument, Instance
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.reduction import Analysis, Reduction
from pyaccount.plan.rounds import Bounds, DirectedBounds, Part, Rounds

__all__ = [
    "DIRECTIONS",
    "Analysis",
    "Bounds",
    "CompiledDocument",
    "DirectedBounds",
    "Direction",
    "Instance",
    "Part",
    "Reduction",
    "Rounds",
    "compile_document",
]
