"""Suggestions for messages about rates that do not fit: numbers of bins, and the largest feasible rate."""

from __future__ import annotations

import math

from pyaccount.document.ranges import BINS, RATE_AGREEMENT
from pyaccount.rounding import down, rounded_nearest


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
