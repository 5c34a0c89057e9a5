"""Converts epochs to iterations and back.

An epoch is the number of rounds in which a record takes part once on average in the long run: 1/p₀, where p₀ is the
participation rate. That is N/B for an expected batch of B out of N records, T for balls in bins, t/k if a record takes
part in k of t rounds, 1/p for Poisson sampling (1/(m·p) if every round has m draws), b − 1 + 1/p for b-min-sep and b/p
for cyclic Poisson sampling. Without sampling the records are divided into batches, the last of which may be smaller, so
an epoch has ⌈N/B⌉ rounds.

The sampler defines how many rounds an epoch has (`SamplerKind.epoch`). This module does the arithmetic, on the decimal
digits as they were written: 7 epochs at a probability of 0.07 are 100 rounds, not 101.
"""

from __future__ import annotations

import math
from fractions import Fraction

from pyaccount.document.ranges import RATE_AGREEMENT

#: The maximum distance between a product and a whole number at which they count as equal, whatever their size.
_WHOLE = Fraction(1, 1000)


def iterations_of(epochs: float, epoch: Fraction) -> int:
    """Return the iterations of `epochs` epochs of `epoch` rounds, rounded up but for the rounding of a rate."""
    rounds = exactly(epochs) * epoch
    nearest = max(1, round(rounds))
    if abs(rounds - nearest) <= min(_WHOLE, rounds * exactly(RATE_AGREEMENT)):
        return nearest
    return math.ceil(rounds)


def epochs_of(iterations: int, epoch: Fraction) -> float:
    """Return how many epochs of `epoch` rounds the iterations are."""
    return float(iterations / epoch)


def epochs_text(epochs: float) -> str:
    """Return a number of epochs for messages, to ten digits: `1 epoch`, `10.00448 epochs`."""
    return f"{epochs:.10g} epoch{'' if epochs == 1.0 else 's'}"


def exactly(number: float) -> Fraction:
    """Return the number that the shortest decimal digits of a float denote, exactly."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
