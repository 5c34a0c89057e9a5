"""How many rounds an epoch is, and suggestions for rates that do not fit.

An epoch is the number of rounds in which a record takes part once on average in the long run: 1/p₀, where p₀ is the
participation rate. That is N/B for an expected batch of B out of N records, T for balls in bins, t/k if a record takes
part in k of t rounds, 1/p for Poisson sampling (1/(m·p) if every round has m draws), b − 1 + 1/p for b-min-sep and b/p
for cyclic Poisson sampling. Without sampling the records are divided into batches, the last of which may be smaller, so
an epoch has ⌈N/B⌉ rounds.

The sampler defines how many rounds an epoch has (`SamplerKind.epoch`). This module does the arithmetic, on the decimal
digits as they were written: 7 epochs at a probability of 0.07 are 100 rounds, not 101. Messages get from it the numbers of
bins near a rate, and the largest feasible rate.
"""

from __future__ import annotations

import math
from fractions import Fraction

from pyaccount.document.ranges import BINS, RATE_AGREEMENT
from pyaccount.rounding import down, rounded_nearest

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


def _bins_near(rate: float, rounds: float | None) -> list[int]:
    """Return the whole numbers of bins next to 1/rate, limited by the range of bins and by the number of rounds."""
    bins = 1.0 / rate
    near = {math.floor(bins), math.ceil(bins)}
    if math.isclose(rate * round(bins), 1.0, rel_tol=RATE_AGREEMENT):
        near = {round(bins)}
    most = int(BINS.maximum if rounds is None else min(rounds, BINS.maximum))
    return sorted({min(count, most) for count in near})


def bins_that_fit(field: str, rate: float, given: int | None, records: float | None, rounds: float | None) -> str:
    """Return what to write instead of a rate that is not 1 over the number of bins, in words."""

    def each(count: int) -> str:
        if field != "expected_batch_size" or records is None:
            return f"1/{count} of the records"
        return f"an expected batch of {rounded_nearest(records / count)}"

    near = _bins_near(rate, rounds)
    whole = len(near) == 1 and math.isclose(rate * near[0], 1.0, rel_tol=RATE_AGREEMENT)
    if whole:
        beside = "" if given is None else f", or bins: {given} ({each(given)}) without {field}"
        return f"sampler.bins: {near[0]} ({each(near[0])}){beside}"
    # The number of bins that was given is named first, because it only requires leaving out the rate.
    counts = [] if given is None else [given]
    counts += [count for count in near if count not in counts]
    listed = " or ".join(f"sampler.bins: {count} ({each(count)})" for count in counts)
    return f"{listed}, without {field}"


def largest_rate(field: str, separation: int, records: float | None) -> str:
    """Return, in words, the largest value of a field if a record takes part at most once in `separation` rounds."""
    if field != "expected_batch_size" or records is None:
        return f"at most {down(1.0 / separation)}"
    batch = records / separation
    return f"at most {math.floor(batch) if batch >= 1.0 else down(batch)}"
