"""The rooms are layers: no room imports a later one, neither at the top of a file, nor in a function, nor only for types.

Tests are in the folder of the room that they test. They import helpers, but not other tests.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from places import ROOT

PACKAGE = ROOT / "pyaccount"
TESTS = ROOT / "tests"

#: The rooms from the bottom up: a room may import only those before it. `__init__` is the façade on top.
ROOMS = (
    *("forks", "errors", "rounding", "directions", "files", "tables", "forms", "pages", "independent"),
    *("reading", "document", "arguments", "records", "risk", "strategies", "profiles", "plan", "execute"),
    *("certificate", "filters", "composing", "store", "running", "sweeping", "attestation", "ledger", "gate"),
    *("data", "auditing", "accountant", "training", "adapters", "integrations", "draft", "messages", "schemas"),
    *("cli", "__init__", "__main__"),
)
#: The room that imports nothing of the others, by relative names.
ALONE = "independent"
#: The names that the rooms may import from the package itself.
OWN = {"_core", "__version__"}

#: The order of the core's rooms, and of the parts of its room `montecarlo`.
CORE = (
    *("error", "exact", "process", "run", "secret", "special", "gram", "series", "laws", "participation"),
    *("replicas", "pair", "pld", "adaptive", "vector", "noise", "montecarlo", "batches", "lib", "tests"),
)
SAMPLING = (
    *("stream", "value", "weight_bounds", "source", "tilt", "family", "mechanism", "kernels", "truncation"),
    *("proposals", "claims", "gradients", "simulate", "mod"),
)

#: Folders of tests that are not named after a room: for the core through its binding, and for the repository.
TESTED = {"core", "house"}
#: Folders with shared helpers and with expected results.
SHARED = {"helpers", "golden"}


class Source(NamedTuple):
    """What the tests ask about a file, without the rest of its syntax tree."""

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    #: The names of the functions at the top of the file.
    functions: tuple[str, ...]


def source_of(program: str) -> Source:
    """Return the imports of a program at the top, in functions and for types, and its functions."""
    tree = ast.parse(program)
    return Source(
        tuple(node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)),
        tuple(node.name for node in tree.body if isinstance(node, ast.FunctionDef)),
    )


@cache
def read(path: Path) -> Source:
    """Return the same of a file, which is parsed once for all tests."""
    return source_of(path.read_text(encoding="utf-8"))


def imported(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the line and the room of each import of this package."""
    for node in source.imports:
        if isinstance(node, ast.ImportFrom):
            if node.level in (1, 2):
                # Only the independent checker has these, so that its folder runs alone; its own test holds it to that.
                yield node.lineno, ALONE
                continue
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            if module == "pyaccount":
                for name in node.names:
                    if name.name not in OWN:
                        yield node.lineno, name.name if name.name in ROOMS else "__init__"
            elif module.startswith("pyaccount."):
                yield node.lineno, module.split(".")[1]
        else:
            for name in node.names:
                if name.name.split(".")[0] == "pyaccount":
                    yield node.lineno, [*name.name.split("."), "__init__"][1]


#: Modules that need a deep-learning framework; no other module of the package imports them. And the frameworks.
FRAMED = {
    f"pyaccount.{room}.{name}"
    for room, names in {
        "training": "torch clipping precision unchanged device jax dropout sharded",
        "integrations": "records ghost transformers lightning trl opacus choosing flower flower_clients ghost_norms "
        "opacus_ghost jax_privacy opacus_accountant flower_accountant",
    }.items()
    for name in names.split()
}
FRAMEWORKS = {
    *("torch", "jax", "jaxlib", "opacus", "optax", "jax_privacy", "transformers", "peft", "trl", "accelerate"),
    *("lightning", "flwr"),
}


def modules_imported(source: Source) -> Iterator[str]:
    """Yield the full names of imported modules, and of imported names that may be modules."""
    for node in source.imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_base_package_imports_no_framework() -> None:
    """Neither lazily nor for types, nor through one of its own modules."""
    wrong, framed = [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for module in modules_imported(read(path)):
            if module.split(".")[0] in FRAMEWORKS:
                framed.add(name)
            if module in FRAMED and name not in FRAMED:
                wrong.append(f"{name} imports {module}")
    assert not wrong
    assert framed == FRAMED


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_every_room_has_its_place() -> None:
    found = {room_of(path) for path in PACKAGE.rglob("*.py")}
    assert found == set(ROOMS)
    assert len(set(ROOMS)) == len(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_no_import_runs_upwards(room: str) -> None:
    place = {name: k for k, name in enumerate(ROOMS)}
    upwards = [
        f"{path.relative_to(ROOT)}:{line} imports {other}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if room_of(path) == room
        for line, other in imported(read(path))
        if place[other] > place[room]
    ]
    assert upwards == []


def test_an_import_that_runs_upwards_is_seen() -> None:
    """Imports are found at the top, in a function, only for types, and in every spelling."""
    program = (
        "from pyaccount import _core, gate\nimport pyaccount.cli.help\nimport pyaccount\n"
        "if TYPE_CHECKING:\n    from pyaccount.certificate.model import Record\n"
        "def one():\n    from pyaccount import certify\n    from pyaccount.running import Plan\n"
    )
    found = [room for _, room in sorted(imported(source_of(program)))]
    assert found == ["gate", "cli", "__init__", "certificate", "__init__", "running"]


def uses_of(program: str) -> set[str]:
    """Return the paths that a file of the core uses from its own crate, tests apart, by absolute names."""
    program = re.sub(r"//.*", "", program.split("#[cfg(test)]", maxsplit=1)[0])
    found: set[str] = set()
    for stem, names in re.findall(r"\bcrate((?:::\w+)+)(?:::\{([^;]*?)\})?", program):
        found.update(f"{stem[2:]}::{name}" for name in re.findall(r"\w+", names)) if names else found.add(stem[2:])
    return found


@cache
def core_files() -> dict[str, set[str]]:
    """Return the modules of the core, with the modules that each one uses."""
    source = ROOT / "rust" / "core" / "src"
    programs = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        programs["::".join(parts[:-1] if parts[-1] == "mod" else parts)] = path.read_text(encoding="utf-8")
    used: dict[str, set[str]] = {}
    for name, program in programs.items():
        paths = [path.split("::") for path in uses_of(program)]
        stems = {"::".join(path[:length]) for path in paths for length in range(1, len(path) + 1)}
        # A path leads to the longest module in it.
        found = stems & programs.keys()
        used[name] = {one for one in found if not any(other.startswith(f"{one}::") for other in found)} - {name}
    return used


def in_circles(used: dict[str, set[str]]) -> list[str]:
    """Return the names that use themselves by way of others, or lie between two circles."""
    left = dict(used)
    while ends := [
        name for name, below in left.items() if not below & left.keys() or not any(name in b for b in left.values())
    ]:
        for name in ends:
            del left[name]
    return sorted(left)


def test_the_core_has_no_circle_of_files() -> None:
    assert in_circles(core_files()) == []


@pytest.mark.parametrize(("order", "depth"), [(CORE, 0), (SAMPLING, 1)], ids=["rooms", "parts of sampling"])
def test_the_core_has_layers_too(order: tuple[str, ...], depth: int) -> None:
    place = {name: k for k, name in enumerate(order)}
    files = {name: below for name, below in core_files().items() if depth == 0 or name.startswith("montecarlo::")}
    upwards = [
        f"{name} uses {other}"
        for name, below in files.items()
        for other in below & (core_files().keys() if depth == 0 else files.keys())
        if place[other.split("::")[depth]] > place[name.split("::")[depth]]
    ]
    assert upwards == []


def test_a_circle_of_files_is_seen() -> None:
    program = "use crate::a;\npub(super) use crate::d::{E, f};\n// crate::comment\nfn g() { crate::h::i() }\n"
    assert uses_of(program + "#[cfg(test)]\nmod tests { use crate::tested; }") == {"a", "d::E", "d::f", "h::i"}
    assert in_circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]


def test_every_test_has_its_room() -> None:
    folders = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    assert folders <= {*ROOMS, *TESTED}
    found = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("*.py")}
    assert found == {*folders, *SHARED, "conftest.py"}


def names_of_tests_imported(program: str) -> list[str]:
    return re.findall(r"^ *(?:from|import)\b.*\b(test_\w+)", program, re.MULTILINE)


def test_no_test_imports_another() -> None:
    program = (
        "import json, test_one\nfrom test_two import shared\ndef one():\n    import tests.room.test_four as other\n"
    )
    assert names_of_tests_imported(program) == ["test_one", "test_two", "test_four"]
    tests = {path.stem for path in TESTS.rglob("test_*.py")}
    across = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name in names_of_tests_imported(path.read_text(encoding="utf-8"))
        if name in tests
    ]
    assert across == []


def modules() -> dict[str, Path]:
    """Return every module of the package by its name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def test_no_circle_of_modules() -> None:
    """No module imports a module that imports it directly or indirectly, not even lazily or for types."""
    known = modules()
    # All modules may import the version and the core from the package itself.
    imports: dict[str, set[str]] = {name: set() for name in known if name != "pyaccount"}
    for name, below in imports.items():
        for node in read(known[name]).imports:
            if isinstance(node, ast.ImportFrom):
                whole = {f"{node.module}.{one.name}" for one in node.names}
                below.update((whole & imports.keys()) or ({node.module} & imports.keys()))
            else:
                below.update({one.name for one in node.names} & imports.keys())
        below.discard(name)
    assert in_circles(imports) == []


def test_what_only_its_own_module_uses_has_a_private_name() -> None:
    words = re.compile(r"\w+")
    folders = (PACKAGE, TESTS, ROOT / "benchmarks", ROOT / "examples", ROOT / "docs")
    sources = {path: path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py")}
    uses = Counter(word for text in sources.values() for word in set(words.findall(text)))
    public = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources
        if path.is_relative_to(PACKAGE)
        for name in read(path).functions
        if not name.startswith("_") and uses[name] == 1
    ]
    assert public == []
