"""Epochs as iterations, and iterations as epochs.

An epoch is as many rounds as a record needs to take part once, in the long run: 1/p₀, with p₀ the participation rate. That is
N/B for an expected batch of B out of N records, T for balls in bins, t/k where a record takes part in k of t rounds, 1/p for
Poisson sampling (1/(m·p) where every round has m draws), b − 1 + 1/p for b-min-sep and b/p for cyclic Poisson sampling. Without
sampling the records are dealt into batches, of which the last may be smaller, so an epoch has ⌈N/B⌉ rounds.

How many rounds one has is for the sampler to say (`SamplerKind.epoch`). Here is the arithmetic, on the digits as they were
written: 7 epochs at a probability of 0.07 are 100 rounds, not 101.
"""

from __future__ import annotations

import math
from fractions import Fraction

from pyaccount.document.ranges import RATE_AGREEMENT

#: The most by which a product may miss a whole number and still be it, whatever its size.
_WHOLE = Fraction(1, 1000)


def iterations_of(epochs: float, epoch: Fraction) -> int:
    """The iterations that so many epochs of so many rounds are: rounded up, but for what rounding a rate may have added."""
    rounds = exactly(epochs) * epoch
    nearest = max(1, round(rounds))
    if abs(rounds - nearest) <= min(_WHOLE, rounds * exactly(RATE_AGREEMENT)):
        return nearest
    return math.ceil(rounds)


def epochs_of(iterations: int, epoch: Fraction) -> float:
    """How many epochs of so many rounds the iterations are."""
    return float(iterations / epoch)


def counted(epochs: float) -> str:
    """Epochs for people, to as many digits as anybody counts: `1 epoch`, `10.00448 epochs`."""
    return f"{epochs:.10g} epoch{'' if epochs == 1.0 else 's'}"


def exactly(number: float) -> Fraction:
    """Return the number that its shortest decimal digits say."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
