"""Check the arguments of Python functions at the entry: each message names the argument and the allowed values.

This module takes values that callers pass, and returns plain numbers or raises `DomainError`. It knows how the document
spells times, and nothing else about documents.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsFloat

from pyaccount.errors import DomainError, quoted

if TYPE_CHECKING:
    from pyaccount.reading.numerals import Range

MOST_THREADS = 1024


def number_of(name: str, value: SupportsFloat, allowed: str, least: float, below: float) -> float:
    """Return a number that is at least `least` and less than `below`. Raises `DomainError`."""
    number = None
    # A text is not a number, although float() would read it; neither is True.
    if not isinstance(value, str | bytes | bool | None):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = None
    if number is None or not least <= number < below:
        raise DomainError(f"{name} = {quoted(value)} is outside its domain: {allowed}")
    return number


def whole_of(name: str, value: object, allowed: Range) -> int:
    """Return a whole number that lies in a range of documents. Raises `DomainError`."""
    number = _index(value)
    if number is None or number not in allowed:
        raise DomainError(f"{name} = {quoted(value)} is outside its domain: a whole number, {allowed.describe()}")
    return number


def _index(value: object) -> int | None:
    """Return a whole number, or None for anything else: True is not a number."""
    try:
        return None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def threads_of(threads: int) -> int:
    """Return a number of worker threads. Raises `DomainError`."""
    number = _index(threads)
    if number is None or not 0 <= number <= MOST_THREADS:
        allowed = f"a whole number from 0, which is one for each core, to {MOST_THREADS}"
        raise DomainError(f"threads = {quoted(threads)} is outside its domain: {allowed}")
    return number


def seconds_of(time_limit: float | str | None, name: str = "time_limit") -> float | None:
    """Return a time limit in seconds, given as a number of seconds or as a document spells it: `10 min`."""
    if time_limit is None:
        return None
    from pyaccount.document.ranges import TIME_LIMIT
    from pyaccount.reading.numerals import parse_duration, parse_number  # most calls set no limit

    seconds: float | None = None
    if isinstance(time_limit, str):
        text = time_limit.strip()
        spelled = parse_duration(text)
        seconds = parse_number(text) if spelled is None else spelled
    elif isinstance(time_limit, SupportsFloat) and not isinstance(time_limit, bool):
        seconds = time_limit
    if seconds is None or seconds not in TIME_LIMIT:
        allowed = f"seconds, or a time such as 30 s, 10 min or 2 h, {TIME_LIMIT.describe()}"
        raise DomainError(f"{name} = {quoted(time_limit)} is outside its domain: {allowed}")
    return float(seconds)
