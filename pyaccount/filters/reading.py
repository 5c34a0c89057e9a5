"""Reads a filter from the words of a document: `{mu: 1}`, `{rho: 0.5}`, `{renyi: [...]}` or `{epsilon: 1, delta: 1e-6}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyaccount.document.mechanisms.stated import WAYS
from pyaccount.document.ranges import BASE_DELTA, EPSILON, MECHANISM_MU, RENYI_ORDER, RHO, STATED_POINTS
from pyaccount.errors import DocumentError, Path, Problem
from pyaccount.filters.base import Filter
from pyaccount.filters.basic import BasicFilter
from pyaccount.filters.gaussian import GaussianFilter
from pyaccount.filters.renyi import ConcentratedFilter, RenyiFilter
from pyaccount.reading.fields import listed
from pyaccount.reading.numerals import Range, parse_number
from pyaccount.reading.spelling import nearest_value

#: The keys of each kind of filter, by the key that states it.
FILTERS: dict[str, tuple[str, ...]] = {
    way: WAYS[way] if way == "epsilon" else (way,) for way in ("mu", "rho", "renyi", "epsilon")
}
_KEYS = tuple(key for keys in FILTERS.values() for key in keys)


def filter_of(mapping: Any, path: Path = ()) -> Filter:
    """Return the filter that a mapping describes; `path` is its place in what it was read from.

    Raises `DocumentError` with all problems and their places.
    """
    problems: list[Problem] = []
    if not isinstance(mapping, Mapping):
        message = f"a filter is described by a mapping with {listed(FILTERS)}"
        raise DocumentError([Problem("wrong-type", message, path, value=mapping, allowed="a mapping")])
    for key in mapping:
        if key not in _KEYS:
            message = f"a filter has no such key: its keys are {listed(_KEYS)}"
            suggestion = nearest_value(key, _KEYS) if isinstance(key, str) else None
            problems.append(Problem("unknown-key", message, (*path, str(key)), suggestion=suggestion))
    ways = [way for way in FILTERS if way in mapping]
    if not ways:
        message = f"a filter needs its budget: give one of {listed(FILTERS)} (epsilon with delta, unless it is 0)"
        problems.append(Problem("missing-key", message, path))
    for way in ways[1:]:
        message = f"a filter has one budget, and {ways[0]} states it already: leave {way} out, or {ways[0]}"
        problems.append(Problem("contradiction", message, (*path, way), value=mapping[way]))
    if ways and "delta" in mapping and "epsilon" not in ways:
        message = f"delta belongs to epsilon, which is not given: leave it out, since {ways[0]} states the budget"
        problems.append(Problem("contradiction", message, (*path, "delta"), value=mapping["delta"]))
    made = _made(ways[0], mapping, path, problems) if ways else None
    if problems or made is None:
        raise DocumentError(problems)
    return made


def _made(way: str, mapping: Mapping[str, Any], path: Path, problems: list[Problem]) -> Filter | None:
    """Return the filter, or None if a number is wrong; then the problem is added."""
    if way == "renyi":
        return _renyi(mapping[way], (*path, way), problems)
    if way == "epsilon":
        epsilon = _number(mapping[way], EPSILON, (*path, way), problems)
        delta = _number(mapping.get("delta", 0.0), BASE_DELTA, (*path, "delta"), problems)
        return None if epsilon is None or delta is None else BasicFilter(epsilon, delta)
    value = _number(mapping[way], MECHANISM_MU if way == "mu" else RHO, (*path, way), problems)
    if value is None:
        return None
    return GaussianFilter(value) if way == "mu" else ConcentratedFilter(value)


def _renyi(stated: Any, path: Path, problems: list[Problem]) -> Filter | None:
    """Return the filter of a list of orders with their budgets."""
    if isinstance(stated, str) or not isinstance(stated, Sequence) or len(stated) not in STATED_POINTS:
        message = "the budget of a Rényi filter is a list of entries with an order and an epsilon, at least one"
        problems.append(Problem("wrong-type", message, path, value=stated, allowed="a list of entries"))
        return None
    table: dict[float, float] = {}
    for index, entry in enumerate(stated):
        place = (*path, index)
        if not isinstance(entry, Mapping) or set(entry) != {"order", "epsilon"}:
            message = "an entry of a Rényi filter has an order and an epsilon, and nothing else"
            problems.append(Problem("wrong-type", message, place, value=entry, allowed="order and epsilon"))
            continue
        order = _number(entry["order"], RENYI_ORDER, (*place, "order"), problems)
        epsilon = _number(entry["epsilon"], EPSILON, (*place, "epsilon"), problems)
        if order is None or epsilon is None:
            continue
        if order in table:
            message = f"there is a budget for the order {order:g} already: leave one of the two out"
            problems.append(Problem("contradiction", message, (*place, "order"), value=entry["order"]))
        table[order] = epsilon
    orders = sorted(table)
    return RenyiFilter(tuple(orders), tuple(table[order] for order in orders)) if orders else None


def _number(stated: Any, allowed: Range, path: Path, problems: list[Problem]) -> float | None:
    """Return a number in its range, from a number or its text; None if it is wrong, and then the problem is added."""
    value = parse_number(stated) if isinstance(stated, str) else stated
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"a number is expected here: must be {allowed.describe()}"
        problems.append(Problem("wrong-type", message, path, value=stated, allowed=allowed.describe()))
        return None
    if value not in allowed:
        message = f"must be {allowed.describe()}"
        problems.append(Problem("out-of-range", message, path, value=stated, allowed=allowed.describe()))
        return None
    return float(value)
