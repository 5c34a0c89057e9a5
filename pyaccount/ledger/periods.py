"""How many periods lie between a block of time and now."""

from __future__ import annotations

from datetime import UTC, date, datetime


def periods_between(name: str, now: datetime, every: str) -> int:
    """Return how many periods ago a period was: 0 for the current one, less for later ones. Periods are those of UTC."""
    current, then = now.astimezone(UTC).date(), _first_day(name)
    if every == "day":
        return (current - then).days
    months = 12 * (current.year - then.year) + current.month - then.month
    return months if every == "month" else current.year - then.year


def _first_day(name: str) -> date:
    """Return the first day of a period: `2026`, `2026-03` or `2026-03-31`."""
    year, month, day = (*map(int, name.split("-")), 1, 1)[:3]
    return date(year, month, day)
