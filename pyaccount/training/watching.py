"""What a probe sees of a training loop: the lines that run, the variables that they keep, and the data that they read.

The loop is somebody's own code: everything that is neither the standard library nor an installed package nor this package. Its
frames on the stack are read, and nothing in them is changed, except for rows of data in the copy that a replay has.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: The folders of code that is not the user's own.
FOREIGN = tuple(
    os.path.realpath(folder) + os.sep
    for folder in {
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        str(Path(__file__).parents[1]),
    }
)
#: How deep objects are followed, the most entries of a container that are looked at, and the most numbers of an array whose
#: values are kept. Of larger arrays a hash is kept.
DEEP, MOST, KEPT = 8, 10_000, 100_000
#: How the state of a generator is shown.
GENERATOR = "a generator"

SeenArray = NDArray[Any]


class Seen(NamedTuple):
    """The value of a variable, or of a part of it: what distinguishes it, how it is shown, and its numbers if they are few."""

    digest: str
    shown: str
    numbers: SeenArray | None = None


class Variable(NamedTuple):
    """The name of a variable, or of a part of it, and the function in which it is."""

    file: str
    function: str
    name: str


@cache
def _is_own(file: str) -> bool:
    """Return whether code in a file is the user's own."""
    return not file.startswith("<frozen") and not os.path.realpath(file).startswith(FOREIGN)


def _own_frames() -> Iterator[FrameType]:
    """Yield the frames of the user's code on the stack, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_own(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def here() -> str:
    """Return the file and the line of the user's code that runs, or an empty text if there is none."""
    frame = next(_own_frames(), None)
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def raised_at(traceback: TracebackType | None) -> str:
    """Return the file and the line of the user's code through which an error went last."""
    line = ""
    while traceback is not None:
        if _is_own(file := traceback.tb_frame.f_code.co_filename):
            line = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return line


def _variables() -> Iterator[tuple[CodeType, str, Any]]:
    """Yield the variables of the user's functions on the stack, and of their modules, with the code where they are."""
    modules = set[int]()
    for frame in _own_frames():
        known = frame.f_locals.items() if frame.f_locals is not frame.f_globals else ()
        yield from ((frame.f_code, name, value) for name, value in list(known))
        if id(frame.f_globals) not in modules:
            modules.add(id(frame.f_globals))
            module = frame.f_code.replace(co_name="<module>", co_qualname="<module>")
            every = list(frame.f_globals.items())
            yield from ((module, name, value) for name, value in every if not name.startswith("__"))


def state() -> dict[Variable, Seen]:
    """Return the variables of the user's code: numbers, texts, arrays, generators, and the `state_dict` of what has one."""
    found: dict[Variable, Seen] = {}
    followed: dict[int, Any] = {}
    for code, name, value in _variables():
        for path, leaf in _leaves(value, name, followed, whole=False):
            found[Variable(code.co_filename, code.co_qualname, path)] = seen(leaf)
    return found


def seen(value: Any) -> Seen:
    """Return what is kept of a value."""
    if isinstance(value, np.random.Generator):
        return Seen(repr(value.bit_generator.state), GENERATOR)
    array = array_of(value)
    if array is None:
        return Seen(f"{type(value).__name__} {value!r}", f"{value!r:.60}")
    digest = hashlib.blake2b(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, digest_size=16).hexdigest()
    numeric = array.size <= KEPT and array.dtype.kind in "biuf"
    shown = f"{array.item():.6g}" if numeric and array.size == 1 else f"an array of {array.shape}"
    return Seen(f"{array.dtype} {array.shape} {digest}", shown, array.astype(np.float64) if numeric else None)


def array_of(value: Any) -> SeenArray | None:
    """Return the numbers of an array or a tensor, which must not be changed; None for anything else."""
    if isinstance(value, np.ndarray | np.generic):
        return None if value.dtype.hasobject else np.asarray(value)
    if not _is_tensor(value):
        return None
    tensor = value.detach().cpu()
    return np.asarray((tensor if str(tensor.dtype) != "torch.bfloat16" else tensor.float()).numpy())


def data_of(records: int, known: dict[int, Any]) -> Iterator[Any]:
    """Yield the last row of each array, tensor and list in the user's variables that has a row for each of so many records.

    Rows are views, so writing to them changes the data. `known` has what earlier calls have yielded. The tensors of modules and
    what has a gradient are no data.
    """
    followed: dict[int, Any] = {}
    for _, name, value in _variables():
        for _, leaf in _leaves(value, name, followed, whole=True):
            if id(leaf) in known:
                continue
            if isinstance(leaf, list) and len(leaf) == records:
                known[id(leaf)] = leaf
                yield from (part for _, part in _leaves(leaf[-1], "", {}, whole=True) if _is_array(part))
            elif (
                _is_array(leaf) and leaf.ndim and leaf.shape[0] == records and not getattr(leaf, "requires_grad", False)
            ):
                known[id(leaf)] = leaf
                yield leaf[-1:]


def _is_tensor(value: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or _is_tensor(value)


def _is_own_class(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or (file is not None and _is_own(file))


def _leaves(
    value: Any, name: str, followed: dict[int, Any], *, whole: bool, depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """Yield what a value consists of, with its name: numbers, texts, arrays, tensors and generators.

    With `whole`, follow objects of every class, and yield lists too. Without it follow those of the user's own classes only, and
    the `state_dict` of what has one. Runs and what else this package makes are left out.
    """
    if value is None or isinstance(value, bool | int | float | complex | str | np.generic):
        if not whole:
            yield name, value
        return
    if id(value) in followed or depth > DEEP or isinstance(value, type | ModuleType):
        return
    followed[id(value)] = value
    if _is_array(value) or isinstance(value, np.random.Generator):
        yield name, value
        return
    if whole and isinstance(value, list) and value:
        yield name, value
    for path, part in _parts(value, name, whole):
        yield from _leaves(part, path, followed, whole=whole, depth=depth + 1)


def _parts(value: Any, name: str, whole: bool) -> Iterator[tuple[str, Any]]:
    """Yield the parts of an object that `_leaves` follows, with their names."""
    kind = type(value)
    if isinstance(value, Mapping):
        yield from ((f"{name}[{key!r}]", part) for key, part in list(value.items())[:MOST])
    elif isinstance(value, list | tuple | deque):
        yield from ((f"{name}[{index}]", part) for index, part in enumerate(list(value)[:MOST]))
    elif isinstance(value, FunctionType):
        if _is_own(value.__code__.co_filename):
            cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
            yield from ((variable, cell.cell_contents) for variable, cell in cells if _is_filled(cell))
    elif kind.__module__.startswith("pyaccount.") and not (whole and "integrations" in kind.__module__):
        return
    elif callable(getattr(value, "state_dict", None)):
        if not whole:
            yield name, _state_of(value)
    elif whole or _is_own_class(kind):
        yield from ((f"{name}.{key}", part) for key, part in list(getattr(value, "__dict__", {}).items()))
        slots = [key for key in getattr(kind, "__slots__", ()) if isinstance(key, str) and hasattr(value, key)]
        yield from ((f"{name}.{key}", getattr(value, key)) for key in slots)


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def _state_of(value: Any) -> Any:
    """Return the `state_dict` of an object, or nothing if it cannot be had now."""
    try:
        return value.state_dict()
    except Exception:  # any object of anybody
        return {}


@cache
def _parsed(file: str) -> ast.Module | None:
    try:
        return ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None


def line_of(variable: Variable) -> str | None:
    """Return the file and the line that changes a variable: the last one in a loop that assigns to it, calls it or its method.

    If no loop does, any line that does so. None if the source has no such line.
    """
    root = variable.name.split("[")[0].split(".")[0]
    tree = _parsed(variable.file)
    if tree is None:
        return None
    stored, called, used = (list[tuple[bool, int]]() for _ in range(3))

    def visit(node: Any, within: bool) -> None:
        if isinstance(getattr(node, "ctx", None), ast.Store) and _root(node) == root:
            stored.append((within, node.lineno))
        elif isinstance(node, ast.Call) and _root(node.func) == root:
            (called if isinstance(node.func, ast.Name) else used).append((within, node.lineno))
        inside = within or isinstance(node, ast.For | ast.While | ast.AsyncFor)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree, within=False)
    for lines in (stored, called, used):
        if looped := [line for within, line in lines if within]:
            return f"{variable.file}:{max(looped)}"
    rest = [line for lines in (called, used, stored) for _, line in lines]
    return f"{variable.file}:{rest[-1]}" if rest else None


def way_out(file: str) -> str | None:
    """Return the file and the line of the only `break` of a file; None if it has none, or several."""
    tree = _parsed(file)
    lines = [] if tree is None else [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Break)]
    return f"{file}:{lines[0]}" if len(lines) == 1 else None


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
