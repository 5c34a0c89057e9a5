"""Several releases of one batch as one: the effective multiplier.

Each release i is a sum over the records of the batch to which a record contributes at most its own clip norm c_i, with
independent Gaussian noise of standard deviation σ_i·c_i. Divided by that standard deviation, a record's contribution to release
i has norm 1/σ_i at most, and the noise is standard. All releases stacked are one sum of vectors, with standard noise, to which a
record contributes at most (Σ σ_i⁻²)^(1/2) in norm: the Gaussian release of multiplier **(Σ σ_i⁻²)^(−1/2)**, of the same batch
and therefore under every sampler. Stacking loses nothing: records that contribute their clip norm to every release attain what
is attained by one (Andrew et al. 2021, arXiv:1905.03871, Theorem 1, for two releases).

Arithmetic alone: a gate reads certificates with it, so that nothing here knows the models.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

#: A square, a reciprocal, the sum, a root, a reciprocal and the product here: below 5 units of rounding of u = ε/2; 8 are taken.
_MARGIN = 4.0 * sys.float_info.epsilon


def effective(multipliers: Sequence[float]) -> tuple[float, float]:
    """(Σ σ_i⁻²)^(−1/2) from below and from above; of one release its own, exactly. Takes positive finite numbers."""
    if len(multipliers) == 1:
        return multipliers[0], multipliers[0]
    together = 1.0 / math.sqrt(math.fsum(1.0 / (sigma * sigma) for sigma in multipliers))
    return together * (1.0 - _MARGIN), together * (1.0 + _MARGIN)
