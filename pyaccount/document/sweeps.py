"""Sweeps: a document with `vary:`, which lists the values to try, a list of documents, or both.

A grid is read as a whole, and its cells one by one: each cell is an ordinary document, with a value at every path that
varies. Errors in `vary` itself are reported before any cell is created.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path as File
from typing import Annotated, Any, Literal, cast

from pydantic import Field, JsonValue

from pyaccount.document import ranges
from pyaccount.document.document import Document
from pyaccount.document.validation import validate
from pyaccount.document.words import VERSION
from pyaccount.errors import DocumentError, Path, Problem
from pyaccount.files import file_inside
from pyaccount.reading.fields import Choice, FieldReader, Items, JsonSchema, Number, Text, Version
from pyaccount.reading.kinds import Section
from pyaccount.reading.nodes import Listing, Scalar, Table, TreeNode, find, located, plain_value, value_under
from pyaccount.reading.overrides import (
    PATH,
    Override,
    Overrides,
    laid,
    listed_overrides,
    override,
    path_words,
    same_place,
)
from pyaccount.reading.sources import LARGEST_FILE, Folders, Handed, not_a_mapping, tree_of
from pyaccount.reading.written import integral

_VALUES = "a list of values, or numbers as {start: 1, stop: 8, count: 4}"
_MAPPING = "a mapping of paths, as privacy.epsilon, to their values"

GridSource = str | os.PathLike[str] | Handed | Mapping[str, Any] | Document

#: The maximum number of cells that are tried before a grid without a valid cell is refused.
PROBES = 100

#: The key of the values to try, and the kind of a document that lists documents.
VARY, KIND = "vary", "sweep"
#: Words that people write instead of `vary`.
_SLIPS = ("varies", "varied", "varying", "vary_over", "grid", "sweep")


_TOO_LONG = f"a path has {ranges.GRID_LENGTH.describe()}"


class Span(Section):
    """The numbers from `start` to `stop`: `count` of them, or one every `step`."""

    start: Annotated[float, Number(ranges.SWEPT)] = Field(description="The first value.")
    stop: Annotated[float, Number(ranges.SWEPT)] = Field(
        description="The last value. With a step, values beyond it are not used."
    )
    count: Annotated[int | None, Number(ranges.GRID_LENGTH, whole=True)] = Field(
        default=None, description="The number of values, including start and stop. Instead of step."
    )
    step: Annotated[float | None, Number(ranges.SWEPT)] = Field(
        default=None, description="The difference between two consecutive values. Instead of count."
    )
    spacing: Annotated[Literal["linear", "log"], Choice(("linear", "log"))] = Field(
        default="linear",
        description="With count: whether consecutive values have equal differences (linear) or equal ratios (log).",
    )

    def numbers(self) -> list[int | float]:
        """Return the numbers of the span, rounded to twelve digits. Raises `ValueError` with a message for the user."""
        if (self.count is None) == (self.step is None):
            raise ValueError(
                "give one of count and step, and not both: it determines the numbers between start and stop"
            )
        if self.step is not None:
            return self._stepped(self.step)
        assert self.count is not None
        if (self.count == 1) != (self.start == self.stop):
            raise ValueError("an empty range: with count: 1, start and stop must be equal; otherwise they must differ")
        shares = [index / max(self.count - 1, 1) for index in range(self.count)]
        if self.spacing == "linear":
            return [_tidy(self.start + share * (self.stop - self.start)) for share in shares]
        if self.start <= 0.0 or self.stop <= 0.0:
            raise ValueError("spacing: log needs a start and a stop greater than 0")
        return [_tidy(self.start * (self.stop / self.start) ** share) for share in shares]

    def _stepped(self, step: float) -> list[int | float]:
        if self.spacing == "log":
            raise ValueError("spacing: log needs count, because a step is a difference")
        if step == 0.0 or (self.stop - self.start) / step < 0.0:
            raise ValueError("an empty range: this step never leads from start to stop")
        # If rounding leaves the last step slightly short of `stop`, it still counts.
        steps = math.floor((self.stop - self.start) / step * (1.0 + 1e-12))
        if steps + 1 not in ranges.GRID_LENGTH:
            raise ValueError(_TOO_LONG)
        return [_tidy(self.start + index * step) for index in range(steps + 1)]


def _tidy(number: float) -> int | float:
    """Return the number rounded to twelve digits, as an `int` if it is whole."""
    rounded = float(f"{number:.12g}")
    return int(rounded) if rounded.is_integer() else rounded


@dataclass(frozen=True)
class Varied(FieldReader):
    """Accepts any value of `vary`; `_axes` reads the paths and values, since it knows their places in the document."""

    def _read(self, value: object) -> object:
        return value

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        return f"{_MAPPING}; or a list of such mappings, whose paths go together"

    def _json_schema(self) -> JsonSchema:
        span = Span.model_json_schema()
        span = {key: value for key, value in span.items() if key not in ("title", "description")}
        values = {"anyOf": [{"type": "array", "minItems": 1}, span]}
        paths = {"type": "object", "minProperties": 1, "additionalProperties": values}
        return {"anyOf": [paths, {"type": "array", "minItems": 1, "items": paths}]}


#: The description of `vary`, which sweeps have in addition to the keys of documents.
VARIES = (
    "The values to try: paths, each with a list of values or a span of numbers. Every combination is tried; the last "
    "path varies fastest."
)


class SweepModel(Section):
    """A document of kind sweep: a list of documents, and optionally what varies in each of them."""

    pyaccount: Annotated[int, Version(VERSION)] = Field(description="The version of the document language.")
    kind: Literal["sweep"] = Field(description="The kind of this document: a list of documents to be certified.")
    name: Annotated[str | None, Text(ranges.NAME_LENGTH)] = Field(default=None, description="The name of the sweep.")
    documents: Annotated[tuple[Any, ...], Items(ranges.SWEEP_LENGTH)] = Field(
        description="The documents: files, relative to the folder of this document, or mappings."
    )
    vary: Annotated[Any, Varied()] = Field(default=None, description=f"{VARIES} This applies to each of the documents.")


@dataclass(frozen=True, slots=True)
class VariedPaths:
    """Paths that vary together, and the values that they take in turn."""

    paths: tuple[tuple[str, ...], ...]
    values: tuple[tuple[TreeNode, ...], ...]

    def __len__(self) -> int:
        return len(self.values[0])


@dataclass(frozen=True, slots=True)
class Cell:
    """One document of a sweep: its index (`place`), the values that vary, and the tree from which it is built."""

    place: int
    settings: dict[str, JsonValue]
    #: The file and the tree of the document, and the values that vary, as nodes.
    file: str | None
    root: Table
    values: tuple[tuple[tuple[str, ...], TreeNode], ...]
    problems: tuple[Problem, ...]
    #: Where files that the document names may lie, besides its own folder.
    folders: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the mechanism in the document, or an empty text if the tree has none."""
        name = find(self.root, ("name",))
        return str(name.value) if isinstance(name, Scalar) else ""

    def document(self) -> Document:
        """Return the validated document. Raises `DocumentError`."""
        root: TreeNode = self.root
        problems = list(self.problems)
        for words, value in self.values:
            root, more = laid(root, words, value)
            problems += more
        assert isinstance(root, Table), "a path has a word at least"
        return Document(root, self.file, problems, self.folders)


@dataclass(frozen=True, slots=True)
class SweepGrid:
    """The documents of a sweep, and the axes along which each of them varies. The last axis varies fastest."""

    name: str | None
    file: str | None
    documents: tuple[tuple[str | None, Table, tuple[Problem, ...]], ...]
    axes: tuple[VariedPaths, ...]
    #: Where files that its documents name may lie, besides the folders of the documents.
    folders: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.documents) * math.prod(len(axis) for axis in self.axes)

    @property
    def varied(self) -> tuple[str, ...]:
        """The paths that vary, as they were written."""
        return tuple(".".join(words) for axis in self.axes for words in axis.paths)

    @property
    def files(self) -> tuple[str, ...]:
        """The files from which the grid was read."""
        return tuple(dict.fromkeys(file for file in (self.file, *(one[0] for one in self.documents)) if file))

    def cell(self, place: int) -> Cell:
        """Return the cell with this index, counted from 0; the last axis varies fastest."""
        index, values = place, []
        for axis in reversed(self.axes):
            index, row = divmod(index, len(axis))
            values.append([(words, nodes[row]) for words, nodes in zip(axis.paths, axis.values, strict=True)])
        file, root, problems = self.documents[index]
        laid_out = tuple(setting for row in reversed(values) for setting in row)
        settings = {".".join(words): cast(JsonValue, plain_value(value)) for words, value in laid_out}
        return Cell(place, settings, file, root, laid_out, problems, self.folders)

    def cells(self) -> Iterator[Cell]:
        """Yield all cells, in order."""
        return (self.cell(place) for place in range(len(self)))

    def probes(self) -> Iterator[Cell]:
        """Yield a few cells that together contain every value of every axis, and every document."""
        stride = 1
        yield self.cell(0)
        for axis in reversed(self.axes):
            yield from (self.cell(row * stride) for row in range(1, len(axis)))
            stride *= len(axis)
        yield from (self.cell(index * stride) for index in range(1, len(self.documents)))


def is_sweep(source: GridSource) -> bool:
    """Return whether a source has `vary`, or is of kind sweep. Raises `DocumentError` if it cannot be read."""
    root = tree_of(source)[1]
    return isinstance(root, Table) and (VARY in root.entries or value_under(root, "kind") == KIND)


def load_grid(
    source: GridSource | Sequence[GridSource], *, overrides: Overrides = (), folders: Folders = ()
) -> SweepGrid:
    """Load the grid of a YAML file or a mapping, or of a list of documents. `overrides` apply to every document.

    The documents that a sweep lists, and the files that they name, lie in its folder or below, or in one of `folders`.

    Raises `DocumentError` with every problem of the grid, or that of its first cell if all cells that are tried are
    invalid.
    """
    overrides = listed_overrides(overrides)
    if isinstance(source, Sequence) and not isinstance(source, str):
        folders = [
            *folders,
            *(one for document in source if isinstance(document, Document) for one in document.folders),
        ]
        grid = SweepGrid(None, None, tuple(_document(one, overrides) for one in source), ())
        if not grid.documents:
            raise DocumentError([Problem("wrong-type", "a sweep has at least one document: this list is empty")])
    else:
        grid = _grid(*tree_of(source), overrides, folders)
    grid = replace(grid, folders=tuple(map(os.fsdecode, folders)))
    _check(grid)
    return grid


def _check(grid: SweepGrid) -> None:
    """Raise the error of the first cell if every cell that is tried is invalid: then the document itself is."""
    first: DocumentError | None = None
    for cell in islice(grid.probes(), PROBES):
        try:
            cell.document()
        except DocumentError as error:
            first = first or error
        else:
            return
    assert first is not None, "a grid has a cell"
    raise first


def _grid(
    file: str | None, root: TreeNode, problems: list[Problem], overrides: Sequence[Override], folders: Folders
) -> SweepGrid:
    if not isinstance(root, Table):
        raise DocumentError([*problems, not_a_mapping(root, file)])
    varies = root.entries.get(VARY)
    axes: tuple[VariedPaths, ...] = ()
    if varies is not None:
        axes, more = _axes(root, varies[1])
        problems = [*problems, *more]
    if value_under(root, "kind") == KIND:
        model, invalid = validate(root, SweepModel)
        if problems or invalid:
            raise DocumentError([*problems, *invalid])
        listed = find(root, ("documents",))
        assert isinstance(listed, Listing)
        documents = tuple(
            _listed(root, index, item, file, overrides, folders) for index, item in enumerate(listed.items)
        )
        return SweepGrid(model.name, file, documents, _apart(root, axes, overrides))
    if varies is None:
        message = (
            "nothing varies here: a sweep is a document with `vary:`, or one of `kind: sweep` that lists `documents`; "
            "`pyaccount certify` certifies a single document"
        )
        slip = next((key for key in root.entries if key in _SLIPS), None)
        if slip is None:
            raise DocumentError([*problems, located(root, Problem("missing-key", message, (VARY,)))])
        problem = Problem("unknown-key", "the values to try in a sweep are under another key", (slip,), suggestion=VARY)
        raise DocumentError([*problems, located(root, problem, key=True)])
    if problems:
        raise DocumentError(problems)
    base = replace(root, entries={key: entry for key, entry in root.entries.items() if key != VARY})
    name = value_under(root, "name")
    title = name if isinstance(name, str) else None
    return SweepGrid(title, file, (_overridden(file, base, [], overrides),), _apart(root, axes, overrides))


def _apart(root: Table, axes: tuple[VariedPaths, ...], overrides: Sequence[Override]) -> tuple[VariedPaths, ...]:
    """Return the axes. Raises `DocumentError` if an override sets a path that varies."""
    paths = [words for axis in axes for words in axis.paths]
    for item in overrides:
        words = tuple(path_words(item.partition("=")[0] if isinstance(item, str) else item[0]))
        if any(same_place(words, other) for other in paths):
            message = f"{'.'.join(words)} varies in this sweep: take it out of `vary` to set it"
            raise DocumentError([replace(located(root, Problem("contradiction", message, (VARY,))), value=None)])
    return axes


def _document(source: GridSource, overrides: Sequence[Override]) -> tuple[str | None, Table, tuple[Problem, ...]]:
    file, root, problems = tree_of(source)
    if not isinstance(root, Table):
        raise DocumentError([*problems, not_a_mapping(root, file)])
    return _overridden(file, root, problems, overrides)


def _overridden(
    file: str | None, root: Table, problems: list[Problem], overrides: Sequence[Override]
) -> tuple[str | None, Table, tuple[Problem, ...]]:
    if VARY in root.entries or value_under(root, "kind") == KIND:
        path: Path = (VARY,) if VARY in root.entries else ("kind",)
        message = "a sweep cannot be a cell of another sweep: run `pyaccount sweep` for each of them"
        raise DocumentError([located(root, Problem("wrong-type", message, path))])
    changed, more = override(root, overrides)
    assert isinstance(changed, Table), "an override has a path"
    return file, changed, (*problems, *more)


def _listed(  # noqa: PLR0913, PLR0917 - an entry of a list, and where its file may lie
    root: Table, index: int, node: TreeNode, file: str | None, overrides: Sequence[Override], folders: Folders
) -> tuple[str | None, Table, tuple[Problem, ...]]:
    """Return the file, tree and problems of one of the documents that a sweep lists."""
    if isinstance(node, Table):
        return _overridden(file, node, [], overrides)
    path: Path = ("documents", index)
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        problem = Problem("wrong-type", "must be the file of a document, or a document", path)
        raise DocumentError([located(root, problem)])
    own = File(file or "").parent
    try:
        inside = file_inside(own, node.value, further=[File(one) for one in folders])
    except ValueError as error:
        message = f"{error}: put the document there, or allow its folder (`--folder DIR`, `folders=`)"
        raise DocumentError([located(root, Problem("outside-folder", message, path))]) from error
    named = node.value if file is None else str(own / node.value)
    # A name in the folder of the sweep stays as it was written, for messages; the file is the one that was found.
    name = named if os.path.realpath(named) == str(inside.path) else str(inside.path)
    if not inside.path.is_file():
        # What is not there, or is not a file, is reported as for every document.
        return _document(name, overrides)
    try:
        with inside.open() as opened:
            data = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        problem = Problem("unreadable-file", f"the file cannot be read: {error.strerror or error}", path)
        raise DocumentError([located(root, problem)]) from error
    return _document(Handed(name, data), overrides)


def _axes(root: Table, node: TreeNode) -> tuple[tuple[VariedPaths, ...], list[Problem]]:
    """Read `vary`: a mapping of paths that are crossed, or a list of mappings whose paths vary together."""
    problems: list[Problem] = []
    if isinstance(node, Table):
        mappings: list[tuple[Path, Table]] = [
            ((VARY,), Table({key: entry}, node.place)) for key, entry in node.entries.items()
        ]
    elif isinstance(node, Listing):
        mappings = []
        for index, item in enumerate(node.items):
            if isinstance(item, Table) and item.entries:
                mappings.append(((VARY, index), item))
            else:
                problems.append(_located(root, (VARY, index), "wrong-type", f"must be {_MAPPING}"))
    else:
        return (), [_located(root, (VARY,), "wrong-type", f"must be {_MAPPING}, or a list of such mappings")]
    if not mappings and not problems:
        problems.append(_located(root, (VARY,), "wrong-type", f"nothing varies: give {_MAPPING}"))
    axes, seen = [], dict[tuple[str, ...], str]()
    for path, mapping in mappings:
        axis, more = _axis(root, path, mapping, seen)
        problems += more
        if axis is not None:
            axes.append(axis)
    return tuple(axes), problems


def _axis(
    root: Table, above: Path, mapping: Table, seen: dict[tuple[str, ...], str]
) -> tuple[VariedPaths | None, list[Problem]]:
    """Read the paths of one mapping, which vary together. `seen` has the paths of the mappings before it."""
    problems: list[Problem] = []
    paths, values = [], []
    for key, (_, node) in mapping.entries.items():
        path = (*above, key)
        if not PATH.fullmatch(key):
            message = "a path that varies is written with dots, as in privacy.epsilon"
            problems.append(located(root, Problem("bad-override", message, path), key=True))
            continue
        words = tuple(path_words(key))
        for other, known in seen.items():
            if same_place(words, other):
                message = f"varies twice: as {known} and here"
                problems.append(located(root, Problem("contradiction", message, path), key=True))
        seen[words] = key
        nodes = _values(root, path, node)
        if isinstance(nodes, Problem):
            problems.append(nodes)
        else:
            paths.append(words)
            values.append(nodes)
    lengths = {len(nodes) for nodes in values}
    if len(lengths) > 1:
        counts = ", ".join(f"{'.'.join(words)} {len(nodes)}" for words, nodes in zip(paths, values, strict=True))
        message = f"paths that vary together need equally many values: {counts}; paths in separate mappings are crossed"
        problems.append(_located(root, above, "contradiction", message))
    return (None if problems else VariedPaths(tuple(paths), tuple(values))), problems


def _values(root: Table, path: Path, node: TreeNode) -> tuple[TreeNode, ...] | Problem:
    """Return the values of one path, from a list or a span, or the problem with them."""
    try:
        if isinstance(node, Table) and {"start", "stop"} & set(node.entries):
            span, invalid = validate(node, Span)
            if invalid:
                return replace(invalid[0], path=(*path, *invalid[0].path))
            return tuple(Scalar(number, node.place) for number in span.numbers())
        if isinstance(node, Listing):
            return _listed_values(node)
    except ValueError as error:
        return _located(root, path, "out-of-range", str(error))
    deeper = "; write a key inside a section as a whole path, as in privacy.epsilon" if isinstance(node, Table) else ""
    return _located(root, path, "wrong-type", f"must be {_VALUES}{deeper}")


def _listed_values(node: Listing) -> tuple[TreeNode, ...]:
    """Return the values of a list. Raises `ValueError` with a message for the user."""
    if not node.items:
        raise ValueError("an empty list has no value to try")
    if len(node.items) not in ranges.GRID_LENGTH:
        raise ValueError(_TOO_LONG)
    if len({repr(integral(plain_value(one))) for one in node.items}) < len(node.items):
        raise ValueError("a value is listed twice")
    return node.items


def _located(root: Table, path: Path, slug: str, message: str) -> Problem:
    return located(root, Problem(slug, message, path))
