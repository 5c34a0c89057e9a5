"""Snapshots: what a test shows is compared with a section of a text file, which `pytest --snapshot-update` writes anew.

`tests/<room>/snapshots/<module>.txt` has a section for each test of a module, with one part for each call of `snapshot`. A part
that is missing, other or left over fails; so does a section whose test is gone.
"""

import difflib
import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from places import ROOT

from pyaccount.errors import Problem

_SECTION, _PART = "=== ", "---"
COLLECTED = pytest.StashKey[dict[Path, list[str]]]()


class Done(NamedTuple):
    """What a command did: its exit code and its two streams."""

    code: int
    out: str
    err: str


def collected(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note the tests of each module that was collected as a whole, before any is left out."""
    named = {Path(arg.partition("::")[0]).resolve() for arg in config.args if "::" in arg}
    found: dict[Path, list[str]] = {}
    for item in items:
        if "snapshot" in getattr(item, "fixturenames", ()) and item.path not in named:
            found.setdefault(item.path, []).append(section_of(item.name))
    config.stash[COLLECTED] = found


def section_of(test: str) -> str:
    """Return the name of a test's section, on one line."""
    return test.removeprefix("test_").replace(str(ROOT), "<root>").replace("\n", " ")


def file_of(module: Path) -> Path:
    """Return the file with the snapshots of a module."""
    return module.parent / "snapshots" / f"{module.stem}.txt"


def read(file: Path) -> dict[str, list[str]]:
    """Return the parts of each section of a file."""
    sections: dict[str, list[str]] = {}
    if file.exists():
        for section in ("\n" + file.read_text(encoding="utf-8")).split(f"\n{_SECTION}")[1:]:
            name, _, body = section.partition("\n")
            sections[name] = [part.strip("\n") for part in f"\n{body}".split(f"\n{_PART}\n")]
    return sections


def write(file: Path, sections: Mapping[str, list[str]]) -> None:
    """Write the sections of a file."""
    parts = (f"{_SECTION}{name}\n" + f"\n{_PART}\n".join(body) + "\n" for name, body in sections.items())
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(parts), encoding="utf-8")


def shown(value: Any, named: Callable[[str], str] = str) -> str:
    """Return a value as people read it: a problem with its place, an error with its problems, a command with its streams."""
    match value:
        case str():
            said = value
        case Done(code, out, err):
            lines = [f"{sign} {line}" for sign, text in ((" ", out), ("!", err)) for line in text.splitlines()]
            said = "\n".join([f"exit {code}", *lines])
        case Problem():
            # Before a long value is shortened, which depends on the length of its folder.
            said = replace(value, value=named(value.value) if isinstance(value.value, str) else value.value).render()
        case BaseException():
            problems = getattr(value, "problems", ())
            words = [] if str(value) == "\n".join(problem.render() for problem in problems) else [str(value)]
            said = "\n".join([": ".join([type(value).__name__, *words]), *(shown(one, named) for one in problems)])
        case Mapping():
            said = "\n".join(f"{key}: {shown(one, named)}" for key, one in value.items())
        case list() | tuple() if any(isinstance(one, str | Problem | list | tuple) for one in value):
            said = "\n".join(shown(one, named) for one in value)
        case _:
            said = repr(value)
    return said


def _rounded(text: str) -> str:
    """Return a text with twelve digits of each number: linear algebra rounds the last ones by the kind of processor."""
    return re.sub(r"\b\d+\.\d{12,}\b", lambda number: f"{float(number[0]):.12g}", text)


Run = Callable[..., Done]


class Snapshot:
    """The section of one test."""

    def __init__(self, request: pytest.FixtureRequest, temporary: Path) -> None:
        self._config = request.config
        self._update = bool(self._config.getoption("--snapshot-update"))
        self._module, self._name = request.node.path, section_of(request.node.name)
        self._others = (
            (re.compile(re.escape(str(temporary)) + r"/[^/\s'\"`:;,)…]+"), "<tmp>"),
            (re.compile(re.escape(str(ROOT))), "<root>"),
            (re.compile(r"<(tmp|root)>[^\s'\"]*…"), r"<\1>…"),  # a long value is shortened
            (re.compile(r"\b0x[0-9a-f]{6,}"), "<address>"),
            (re.compile(r"\b(?=\d*[a-f])(?=[a-f]*\d)([0-9a-f]{12}|[0-9a-f]{64})\b"), "<hash>"),
            (re.compile(r"(?<=the run )\d{12}\b"), "<hash>"),  # one without letters
            (re.compile(r"\b[0-9a-f]{8,63}…"), "<hash>"),
            (re.compile(r"postgresql://\S+host=[\w%/.-]+"), "<server>"),
        )
        self._file = file_of(self._module)
        self._parts: list[str] = []
        sections = read(self._file)
        stale = sections.keys() - self._config.stash[COLLECTED].get(self._module, sections)
        if stale and not self._update:
            pytest.fail(f"{self._file} has sections whose tests are gone: {', '.join(sorted(stale))}")
        self._expected = sections.get(self._name, [])

    def __call__(self, *values: Any) -> None:
        """Compare values, which form one part of the section, with the snapshot."""
        __tracebackhide__ = True
        written = "\n".join(shown(value, self._named) for value in values)
        text = self._named(written)
        if text != written:  # the columns of a table are as wide as what stands in them
            text = re.sub(r"(?<=\S) {3,}(?=\S)", "  ", text)
        # No line looks like the head of a section or of a part, and none ends in blanks, which editors remove.
        lines = (f" {line}" if line.startswith((_SECTION, _PART)) else line for line in text.split("\n"))
        found = "\n".join(line.rstrip() for line in lines).strip("\n")
        self._parts.append(found)
        if self._update:
            return
        if len(self._parts) > len(self._expected):
            pytest.fail(f"no snapshot (pytest --snapshot-update writes it) of:\n{found}")
        expected = self._expected[len(self._parts) - 1]
        if _rounded(found) != _rounded(expected):
            changes = difflib.unified_diff(expected.split("\n"), found.split("\n"), "snapshot", "shown", lineterm="")
            pytest.fail("\n".join(["pytest --snapshot-update writes this anew:", *changes]))

    def _named(self, text: str) -> str:
        """Name what differs between runs: folders of a test, addresses of objects, hashes, and servers."""
        for pattern, name in self._others:
            text = pattern.sub(name, text)
        return text

    @contextmanager
    def raises(
        self, error: type[BaseException] | tuple[type[BaseException], ...]
    ) -> Iterator[pytest.ExceptionInfo[Any]]:
        """Expect an error, and compare what it says with the snapshot."""
        with pytest.raises(error) as caught:
            yield caught
        self(caught.value)

    def raised(self, function: Any, *args: Any, **keywords: Any) -> Any:
        """Expect an error of a call, compare what it says with the snapshot, and return it."""
        try:
            function(*args, **keywords)
        except Exception as error:  # the snapshot has its class
            self(error)
            return error
        pytest.fail("nothing was raised")

    def close(self) -> None:
        """Write the section, or check that the test has shown all of it."""
        if not self._update:
            left = self._expected[len(self._parts) :]
            if left:
                pytest.fail(f"{self._file} has more parts of {self._name} than its test shows:\n{left[0]}")
            return
        with _locked(self._file):
            sections = read(self._file) | {self._name: self._parts}
            order = self._config.stash[COLLECTED].get(self._module, list(sections))
            write(self._file, {name: sections[name] for name in dict.fromkeys(order) if sections.get(name)})


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Keep the other workers of the tests from a file that this one writes, by a lock of its folder."""
    file.parent.mkdir(exist_ok=True)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def of(request: pytest.FixtureRequest, temporary: Path) -> Iterator[Snapshot]:
    """Give a test its section; what it showed counts only if it passed."""
    snapshot = Snapshot(request, temporary)
    failed = request.session.testsfailed
    yield snapshot
    if request.session.testsfailed == failed:
        snapshot.close()
