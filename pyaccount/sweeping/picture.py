"""Pictures of sweeps, with matplotlib. Lines over what varies, or a heat map where two numbers do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.picture import ENDINGS, SMALL, new_figure, read_by_ticks, save
from pyaccount.certificate.ticks import round_ticks
from pyaccount.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

    from pyaccount.sweeping.table import Sweep, SweptRecord

#: What can be drawn beside what varies, and how an axis calls it.
QUANTITIES: dict[str, tuple[str, Callable[[SweptRecord], float | None]]] = {
    "epsilon": ("ε at most", lambda row: row.epsilon),
    "delta": ("δ at most", lambda row: row.delta),
    "noise": ("σ", lambda row: row.noise_multiplier),
    "value": ("the blank's value", lambda row: row.value),
    "error": ("RMSE of prefix sums", lambda row: _root(row.prefix_sum_mse)),
    "workload-error": ("RMSE under the workload", lambda row: _root(row.workload_mse)),
}
#: Axes that go over more than this ratio have a logarithmic scale.
_WIDE = 30.0
#: The most places of a heat map's side that are labelled.
MOST_PLACES = 6
#: Lines with names; a picture with more has no legend.
_MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class _Axis:
    name: str
    label: str
    of: Callable[[SweptRecord], float | None]


def picture(sweep: Sweep, path: str | Path | None, x: str | None = None, y: str | None = None) -> Figure:
    """Draw a sweep: `y` over `x`, a line for everything else that varies; or `y` as colours over the two numbers that vary.

    `x` and `y` are paths that vary with numbers, or among `QUANTITIES`. Without them `y` is the value of the blank (for claims ε)
    and `x` the first number that varies. Raises `DomainError` for what cannot be drawn, `MissingExtraError` without matplotlib.
    """
    if path is not None:
        check_ending(path)
    numeric = [name for name in sweep.varied if all(_number(row.settings[name]) is not None for row in sweep.rows)]
    if not sweep.rows:
        raise DomainError("nothing can be drawn: no cell was certified")
    solved = {row.solved for row in sweep.rows}
    across = _axis(sweep, "y", y or ("value" if None not in solved else "epsilon"), numeric, next(iter(solved)))
    free = [name for name in numeric if name != y]
    if x is None and not free:
        x = "epsilon"
    over = _axis(sweep, "x", x or free[0], numeric, next(iter(solved)))
    figure = new_figure()
    if x is None and len(free) == len(sweep.varied) == 2 and _full(sweep.rows, free):
        _heat_map(figure, sweep.rows, over, _axis(sweep, "x", free[1], numeric, None), across)
    else:
        _lines(figure, sweep, over, across)
    if path is not None:
        save(figure, Path(path))
    return figure


def check_ending(path: str | Path) -> None:
    """Raise `DomainError` for a file whose name says no format of pictures."""
    if Path(path).suffix not in ENDINGS:
        raise DomainError(f"{path}: the name of a picture must end in {', '.join(ENDINGS)}")


def _axis(sweep: Sweep, which: str, name: str, numeric: Sequence[str], solved: str | None) -> _Axis:
    """What an axis shows."""
    if name in sweep.varied:
        if name not in numeric:
            raise DomainError(f"{which} = {name}: what varies there are no numbers")
        return _Axis(name, name, lambda row: _number(row.settings[name]))
    if name not in QUANTITIES:
        raise DomainError(f"{which} = {name}: must be a path that varies, or one of {', '.join(QUANTITIES)}")
    label, of = QUANTITIES[name]
    if name == "value" and solved is not None:
        label = {"privacy.epsilon": "ε at most", "noise.multiplier": "σ"}.get(solved, solved)
    if all(of(row) is None for row in sweep.rows):
        raise DomainError(f"{which} = {name}: no cell has this")
    return _Axis(name, label, of)


def _lines(figure: Figure, sweep: Sweep, over: _Axis, across: _Axis) -> None:
    axes = figure.subplots()
    names = [name for name in sweep.varied if name not in (over.name, across.name)]
    several = len({row.name for row in sweep.rows}) > 1
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in sweep.rows:
        point = (over.of(row), across.of(row))
        words = [row.name] if several else []
        words += [f"{name.rsplit('.', 1)[-1]} {row.settings[name]}" for name in names]
        if point[0] is not None and point[1] is not None:
            lines.setdefault(", ".join(words), []).append((point[0], point[1]))
    for label, points in lines.items():
        ordered = sorted(points)
        axes.plot([p[0] for p in ordered], [p[1] for p in ordered], marker="o", markersize=3, label=label)
    _scale(axes.set_xscale, [p[0] for points in lines.values() for p in points])
    _scale(axes.set_yscale, [p[1] for points in lines.values() for p in points])
    axes.set_xlabel(over.label)
    axes.set_ylabel(across.label)
    if 1 < len(lines) <= _MOST_NAMED:
        axes.legend(fontsize=SMALL)
    if sweep.name:
        axes.set_title(sweep.name, fontsize=10)
    read_by_ticks(axes)


def _heat_map(figure: Figure, rows: Sequence[SweptRecord], over: _Axis, up: _Axis, across: _Axis) -> None:
    axes = figure.subplots()
    places = [sorted({axis.of(row) or 0.0 for row in rows}) for axis in (over, up)]
    found = {(over.of(row), up.of(row)): across.of(row) for row in rows}
    grid = [[_or_nan(found.get((right, above))) for right in places[0]] for above in places[1]]
    image = axes.imshow(grid, origin="lower", aspect="auto")
    for axis, ticks, setter in (
        (over, places[0], (axes.set_xticks, axes.set_xlabel)),
        (up, places[1], (axes.set_yticks, axes.set_ylabel)),
    ):
        step = math.ceil(len(ticks) / MOST_PLACES)
        setter[0](range(0, len(ticks), step), [f"{tick:g}" for tick in ticks[::step]], fontsize=SMALL)
        setter[1](axis.label)
    scale = figure.colorbar(image, label=across.label).ax
    if scale.get_ylim()[0] < scale.get_ylim()[1]:
        marks = round_ticks(*scale.get_ylim())
        scale.set_yticks([value for value, _ in marks], [label for _, label in marks], fontsize=SMALL)


def _full(rows: Sequence[SweptRecord], names: Sequence[str]) -> bool:
    """Whether two numbers are crossed, each with three values at least."""
    counts = [len({_number(row.settings[name]) for row in rows}) for name in names]
    return min(counts) > 2 and 2 * len(rows) > counts[0] * counts[1]


def _scale(setter: Callable[[str], Any], values: Sequence[float]) -> None:
    if values and min(values) > 0.0 and max(values) / min(values) > _WIDE:
        setter("log")


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _root(mse: float | None) -> float | None:
    return None if mse is None else math.sqrt(mse)
