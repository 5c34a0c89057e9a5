"""The result of a sweep, with a row for each cell, as a table and as data."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from pyaccount.certificate.compared import WORDS
from pyaccount.certificate.report.parts import ORIGINS
from pyaccount.errors import MissingExtraError
from pyaccount.pages.page import (
    Content,
    Page,
    PageSection,
    PageTable,
    already_rounded,
    at_least,
    at_most,
    chosen_value,
    every_digit,
    exact,
)
from pyaccount.pages.readable import Readable, printed
from pyaccount.rounding import up
from pyaccount.sweeping.records import FailedCell, SweptCells, SweptRecord
from pyaccount.tables import data_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

#: The width of the table as text in a file.
WIDTH = 180


class Sweep(SweptCells, Readable):
    """The cells of a sweep: those that were certified, and those that were not."""

    @property
    def holds(self) -> bool:
        """Whether every cell is certified and its claim holds."""
        return not self.failures and all(row.holds for row in self.rows)

    def entries(self) -> Iterator[SweptRecord | FailedCell]:
        """Return rows and failures in the order of the cells."""
        both: list[SweptRecord | FailedCell] = [*self.rows, *self.failures]
        return iter(sorted(both, key=lambda entry: entry.place))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns: each path that varies, the values of the certificates, and `failure` (None without one)."""
        entries = list(self.entries())
        columns: dict[str, list[Any]] = {"place": [entry.place for entry in entries]}
        for path in self.varied:
            columns[path] = [_cell(entry.settings[path]) for entry in entries]
        for name in SweptRecord.model_fields:
            if name not in ("place", "settings"):
                columns.setdefault(name, [getattr(entry, name, None) for entry in entries])
        columns["failure"] = [entry.message if isinstance(entry, FailedCell) else None for entry in entries]
        return columns

    def to_csv(self) -> str:
        """Return CSV text: a line of headings and one for each cell. Missing values are empty."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        columns = self.to_dict()
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return stream.getvalue()

    def to_pandas(self) -> DataFrame:
        """Return the columns as a pandas data frame. Raises `MissingExtraError` without pandas."""
        frame: DataFrame = data_frame(self.to_dict())
        return frame

    def to_polars(self) -> Any:
        """Return the columns as a polars data frame. Raises `MissingExtraError` without polars."""
        try:
            from polars import DataFrame as PolarsFrame  # type: ignore[import-not-found, unused-ignore]
        except ImportError as error:
            raise MissingExtraError.of("polars", "data frames of it are asked for", "take to_dict or to_csv") from error
        return PolarsFrame(self.to_dict(), strict=False)

    def to_parquet(self) -> bytes:
        """Return the content of a Parquet file. Raises `MissingExtraError` without pyarrow."""
        pyarrow, parquet = import_parquet()
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(pyarrow.table(_alike(self.to_dict())), sink)
        written: bytes = sink.getvalue().to_pybytes()
        return written

    @property
    def summary(self) -> str:
        """The numbers of cells that were certified, were certified before, or whose claims do not hold, in words."""
        failing = sum(not row.holds for row in self.rows)
        finished = sum(row.finished for row in self.rows)
        parts = [f"{len(self.rows)} of {len(self.rows) + len(self.failures)} cells certified"]
        parts += [f"{finished} of them before"] if finished else []
        parts += [f"{failing} of which do not hold"] if failing else []
        return ", ".join(parts)

    def page(self) -> Page:
        """Return the table as a page."""
        headings, rows = self._cells()
        failing = frozenset(
            index for index, entry in enumerate(self.entries()) if isinstance(entry, FailedCell) or not entry.holds
        )
        table = PageTable(
            ("Each ε is in nats; σ and errors are in clip norms.",),
            headings,
            rows,
            words=("name", "guarantee", "why not"),
            failing=failing,
        )
        return Page(
            "Sweep",
            self.name or "",
            (PageSection("cells", "Cells", (table,)),),
            statement=f"{self.summary}.",
            origins=ORIGINS,
        )

    def plot(self, path: str | Path | None = None, *, x: str | None = None, y: str | None = None) -> Figure:
        """Draw the sweep with matplotlib, as `y` over `x` or as a heat map, and write the picture to a file if one is
        given.

        `x` and `y` are each a path that varies, or epsilon, delta, noise, value (of the blank), error (RMSE of prefix sums)
        or workload-error. Raises `MissingExtraError` without matplotlib, and `DomainError` if this cannot be drawn.
        """
        from pyaccount.sweeping.picture import picture  # it needs an extra

        return picture(self, path, x, y)

    def _cells(self) -> tuple[tuple[str, ...], tuple[tuple[Content, ...], ...]]:
        """Return headings and table cells: what differs between the cells of the sweep, and their results."""
        entries = list(self.entries())
        named = len({entry.name for entry in entries}) > 1 or not self.varied
        solved = list(dict.fromkeys(row.solved for row in self.rows if row.solved is not None))
        further = [path for path in solved if path not in _SHOWN]
        workload = any(row.workload_mse is not None for row in self.rows)
        headings = [*(["name"] if named else []), *self.varied, *further, "σ", "ε at most", "ε at least", "δ at most"]
        headings += ["prefix-sum RMSE", *(["workload RMSE"] if workload else []), "guarantee"]
        headings += ["why not"] if self.failures else []
        rows = []
        for entry in entries:
            cells: list[Content] = [(entry.name,)] if named else []
            cells += [(str(_cell(entry.settings[path])),) for path in self.varied]
            if isinstance(entry, FailedCell):
                missing: list[Content] = [()] * (len(headings) - len(cells) - 1)
                rows.append((*cells, *missing, (f"{WORDS[entry.why].removeprefix('none: ')}: {entry.message}",)))
                continue
            cells += [
                () if value is None else (chosen_value(value, "as the blank's", "compared"),)
                for value in _solved(entry, further)
            ]
            # What is certified with σ also holds with σ rounded up, because more noise is at least as private.
            sigma = entry.noise_multiplier
            cells += [() if sigma is None else (already_rounded(up(sigma), "clip norms", "compared"),)]
            cells += [
                (at_most(entry.epsilon, "nats", "compared"),),
                (at_least(entry.epsilon_lower, "nats", "compared"),),
            ]
            cells += [(every_digit(entry.delta, "probability", "compared"),), _root(entry.prefix_sum_mse)]
            cells += [_root(entry.workload_mse)] if workload else []
            cells += [(entry.kind if entry.holds else f"{entry.kind}, does not hold",)]
            rows.append((*cells, *([()] if self.failures else [])))
        return tuple(headings), tuple(rows)


#: Blanks that have a column of their own.
_SHOWN = ("privacy.epsilon", "privacy.delta", "noise.multiplier")


def import_parquet() -> tuple[Any, Any]:
    """Return the modules that write Parquet files. Raises `MissingExtraError` without pyarrow."""
    try:
        import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extra
        from pyarrow import parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise MissingExtraError.of("pyarrow", "Parquet files need it", "write CSV") from error
    return pyarrow, parquet


def _solved(row: SweptRecord, paths: list[str]) -> list[float | None]:
    return [row.value if row.solved == path else None for path in paths]


def _root(mse: float | None) -> Content:
    return () if mse is None else (exact(mse**0.5, "clip norms", "compared", 5),)


def _cell(value: JsonValue) -> JsonValue:
    """Return a value that fits into a table cell; mappings and lists become JSON text."""
    return json.dumps(value) if isinstance(value, dict | list) else value


def _alike(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return columns whose values have one type each, as Parquet requires; mixed values become text."""
    return {name: _of_one_type(values) for name, values in columns.items()}


def _of_one_type(values: list[Any]) -> list[Any]:
    types = {type(value) for value in values if value is not None}
    if len(types) <= 1:
        return values
    common = float if types == {int, float} else str
    return [None if value is None else common(value) for value in values]


def sweep_text(sweep: Sweep, form: str) -> str | bytes:
    """Return the sweep as text, markdown, csv, json or parquet. Parquet raises `MissingExtraError` without pyarrow."""
    match form:
        case "json":
            return sweep.to_json()
        case "csv":
            return sweep.to_csv()
        case "parquet":
            return sweep.to_parquet()
    return printed(sweep.page(), form, width=WIDTH)
