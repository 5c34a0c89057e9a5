"""The effective multiplier: several releases of one batch are analysed as one release.

Each release i is a sum over the records of the batch to which a record contributes at most its own clip norm c_i, with
independent Gaussian noise of standard deviation σ_i·c_i. Divided by that standard deviation, a record's contribution to
release i has norm at most 1/σ_i, and the noise is standard. All releases stacked are one sum of vectors, with standard
noise, to which a record contributes at most (Σ σ_i⁻²)^(1/2) in norm. This is the Gaussian release of multiplier **(Σ
σ_i⁻²)^(−1/2)**, of the same batch, and therefore the equivalence holds under every sampler. Stacking loses nothing:
records that contribute their clip norm to every release attain the privacy loss of that single release (Andrew et al.
2021, arXiv:1905.03871, Theorem 1, for two releases).

This module is arithmetic only and does not import the models, because a gate uses it to read certificates.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

#: A relative margin of 8 units of rounding u = ε/2. The square, reciprocal, sum, root, reciprocal and final product
#: lose less than 5.
_MARGIN = 4.0 * sys.float_info.epsilon


def beside(multiplier: float, further: Sequence[float]) -> float:
    """Return Σ (σ/σ_i)², what other releases of multipliers σ_i add for each round to the square of what moves.

    It is in squared units of the main release's noise σ = `multiplier`. If a matrix C correlates that noise, a record with
    the participations x moves C x there and x in every other release, whose rounds are independent. Divided by their
    standard deviations and stacked, that is the encoder [C/σ; I/σ_1; …] with standard noise, of Gram matrix
    CᵀC/σ² + Σ σ_i⁻²·I. So σ² times the square of what moves is ‖Cx‖² + Σ (σ/σ_i)²·(number of rounds of x): the same
    pattern x moves all releases. Rounded to nearest: the relative error is at most 4 + (number of releases) units of
    rounding.
    """
    return math.fsum((multiplier / sigma) ** 2 for sigma in further)


def effective(multipliers: Sequence[float]) -> tuple[float, float]:
    """Return a lower and an upper bound on (Σ σ_i⁻²)^(−1/2) for positive finite σ_i; exact for a single release."""
    if len(multipliers) == 1:
        return multipliers[0], multipliers[0]
    together = 1.0 / math.sqrt(math.fsum(1.0 / (sigma * sigma) for sigma in multipliers))
    return together * (1.0 - _MARGIN), together * (1.0 + _MARGIN)
