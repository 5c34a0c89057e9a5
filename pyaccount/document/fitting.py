"""What would fit where a rate does not: numbers of bins, and rates within their limit, as they can be typed in."""

from __future__ import annotations

import math

from pyaccount.document.ranges import BINS, RATE_AGREEMENT
from pyaccount.rounding import down, nearest


def bins_near(rate: float, rounds: float | None) -> list[int]:
    """The whole numbers of bins on either side of 1/rate, or the most that there may be in a run of so many rounds."""
    bins = 1.0 / rate
    near = {math.floor(bins), math.ceil(bins)}
    if math.isclose(rate * round(bins), 1.0, rel_tol=RATE_AGREEMENT):
        near = {round(bins)}
    most = int(BINS.maximum if rounds is None else min(rounds, BINS.maximum))
    return sorted({min(count, most) for count in near})


def bins_that_fit(field: str, rate: float, given: int | None, records: float | None, rounds: float | None) -> str:
    """What may stand instead of a rate, or beside it, that is not 1 over the number of bins."""

    def each(count: int) -> str:
        if field != "expected_batch_size" or records is None:
            return f"1/{count} of the records"
        return f"an expected batch of {nearest(records / count)}"

    near = bins_near(rate, rounds)
    whole = len(near) == 1 and math.isclose(rate * near[0], 1.0, rel_tol=RATE_AGREEMENT)
    if whole:
        beside = "" if given is None else f", or no {field} beside bins: {given} ({each(given)})"
        return f"sampler.bins: {near[0]} ({each(near[0])}){beside}"
    # The number that was given is the first that is named: it needs nothing but that the rate is left out.
    counts = [] if given is None else [given]
    counts += [count for count in near if count not in counts]
    listed = " or ".join(f"sampler.bins: {count} ({each(count)})" for count in counts)
    return f"{listed}, without {field}"


def largest_rate(field: str, separation: int, records: float | None) -> str:
    """The most that a field may say where a record takes part at most once in so many rounds."""
    if field != "expected_batch_size" or records is None:
        return f"at most {down(1.0 / separation)}"
    batch = records / separation
    return f"at most {math.floor(batch) if batch >= 1.0 else down(batch)}"
