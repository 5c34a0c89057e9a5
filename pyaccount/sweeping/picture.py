"""Pictures of sweeps: lines over a path that varies, or a heat map over two numbers with many values each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from pyaccount.errors import DomainError
from pyaccount.pages.figure import check_ending, figure, save
from pyaccount.pages.plot import MANY, Axis, HeatMap, Plot, Series
from pyaccount.rounding import up
from pyaccount.sweeping.records import SweptCells, SweptRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: The quantities that can be drawn in addition to the paths that vary, each with the label of its axis.
QUANTITIES: dict[str, tuple[str, Callable[[SweptRecord], float | None]]] = {
    "epsilon": ("ε at most", lambda row: row.epsilon),
    "delta": ("δ at most", lambda row: row.delta),
    "noise": ("σ", lambda row: row.noise_multiplier),
    "value": ("the blank's value", lambda row: row.value),
    "error": ("RMSE of prefix sums", lambda row: _root(row.prefix_sum_mse)),
    "workload-error": ("RMSE under the workload", lambda row: _root(row.workload_mse)),
}
#: Axes whose values differ by more than this ratio have a logarithmic scale.
_WIDE = 30.0
#: So does an axis along which each of three or more values is at least so many times the one before, as 1, 2, 4, 8.
_GROWING = 1.5


@dataclass(frozen=True, slots=True)
class _Shown:
    """The quantity on an axis: its name, its label, and its value for a row."""

    name: str
    label: str
    of: Callable[[SweptRecord], float | None]


def picture(sweep: SweptCells, path: str | Path | None, x: str | None = None, y: str | None = None) -> Figure:
    """Draw a sweep: `y` over `x`, with a line for each combination of other varying values, or `y` as a heat map.

    `x` and `y` are paths that vary with numbers, or names in `QUANTITIES`. By default `y` is the value of the blank (ε
    for claims) and `x` the number that has the most values. If exactly two numbers vary, and each has more values than
    there are styles of lines, they are the axes of a heat map. Raises `DomainError` if this cannot be drawn, and
    `MissingExtraError` without matplotlib.
    """
    if path is not None:
        check_ending(path)
    numeric = [name for name in sweep.varied if all(_number(row.settings[name]) is not None for row in sweep.rows)]
    if not sweep.rows:
        raise DomainError("nothing can be drawn: no cell was certified")
    solved = {row.solved for row in sweep.rows}
    across = _axis(sweep, "y", y or ("value" if None not in solved else "epsilon"), numeric, next(iter(solved)))
    # The first of those with the most values is the horizontal axis, so that there are as few lines as possible.
    free = sorted((name for name in numeric if name != y), key=lambda name: -_count(sweep.rows, name))
    if x is None and not free:
        x = "epsilon"
    over = _axis(sweep, "x", x or free[0], numeric, next(iter(solved)))
    crossed = x is None and len(free) == len(sweep.varied) == 2 and _full(sweep.rows, free)
    if crossed:
        right, above = (_axis(sweep, "x", name, numeric, None) for name in sweep.varied)
        drawn = figure(_heat_map(sweep, right, above, across))
    else:
        drawn = figure(_lines(sweep, over, across))
    if path is not None:
        save(drawn, Path(path))
    return drawn


def _axis(sweep: SweptCells, which: str, name: str, numeric: Sequence[str], solved: str | None) -> _Shown:
    """Return the quantity of an axis. Raises `DomainError` if `name` is unknown or has no numbers."""
    if name in sweep.varied:
        if name not in numeric:
            raise DomainError(f"{which} = {name}: the values of this path are not numbers")
        return _Shown(name, name, lambda row: _number(row.settings[name]))
    if name not in QUANTITIES:
        raise DomainError(f"{which} = {name}: must be a path that varies, or one of {', '.join(QUANTITIES)}")
    label, of = QUANTITIES[name]
    if name == "value" and solved is not None:
        label = {"privacy.epsilon": "ε at most", "noise.multiplier": "σ"}.get(solved, solved)
    if all(of(row) is None for row in sweep.rows):
        raise DomainError(f"{which} = {name}: no cell has this value")
    return _Shown(name, label, of)


def _lines(sweep: SweptCells, over: _Shown, across: _Shown) -> Plot:
    names = [name for name in sweep.varied if name not in (over.name, across.name)]
    several = len({row.name for row in sweep.rows}) > 1
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in sweep.rows:
        point = (over.of(row), across.of(row))
        words = [row.name] if several else []
        words += [f"{name.rsplit('.', 1)[-1]} {row.settings[name]}" for name in names]
        if point[0] is not None and point[1] is not None:
            lines.setdefault(", ".join(words), []).append((point[0], point[1]))
    points = [point for line in lines.values() for point in line]
    # A single line needs no name.
    named = len(lines) > 1
    return Plot(
        title=sweep.name or "",
        description=f"{across.label} over {over.label}.",
        x=_scaled(over.label, [point[0] for point in points]),
        y=_scaled(across.label, [point[1] for point in points]),
        series=tuple(
            Series(label if named else "", tuple(sorted(line)), style, markers=True)
            for (label, line), style in zip(lines.items(), cycle(MANY))
        ),
    )


def _scaled(label: str, values: Sequence[float]) -> Axis:
    """Return an axis with a margin at both ends; it is logarithmic if the values differ by a large ratio, or grow by ratios."""
    if not values:
        return Axis(label, 0.0, 1.0)
    places = sorted(set(values))
    low, high = places[0], places[-1]
    growing = len(places) > 2 and all(later >= _GROWING * earlier for earlier, later in pairwise(places))
    if low > 0.0 and (growing or high / low > _WIDE):
        room = (high / low) ** 0.05
        return Axis(label, low / room, high * room, log=True)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return Axis(label, low - room, high + room)


def _heat_map(sweep: SweptCells, over: _Shown, above: _Shown, across: _Shown) -> HeatMap:
    columns, lines = (tuple(sorted({axis.of(row) or 0.0 for row in sweep.rows})) for axis in (over, above))
    values = {(over.of(row), above.of(row)): across.of(row) for row in sweep.rows}
    grid = tuple(tuple(_or_nan(values.get((x, y))) for x in columns) for y in lines)
    texts = tuple(tuple(_written(value) for value in line) for line in grid)
    return HeatMap(sweep.name or "", over.label, above.label, columns, lines, grid, texts, across.label)


def _written(value: float) -> str:
    """Return a value as it stands in a cell: whole numbers in full, others rounded up, as upper bounds are."""
    if math.isnan(value):
        return ""
    return f"{value:.0f}" if value.is_integer() else up(value, 3)


def _full(rows: Sequence[SweptRecord], names: Sequence[str]) -> bool:
    """Return whether both numbers have too many values for lines, and more than half of their combinations are rows."""
    counts = [_count(rows, name) for name in names]
    return min(counts) > len(MANY) and 2 * len(rows) > counts[0] * counts[1]


def _count(rows: Sequence[SweptRecord], name: str) -> int:
    """Return how many values a path has."""
    return len({_number(row.settings[name]) for row in rows})


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _root(mse: float | None) -> float | None:
    return None if mse is None else math.sqrt(mse)
