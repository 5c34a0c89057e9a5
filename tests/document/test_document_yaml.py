"""YAML as people write it: spellings, structure, bombs, and files that are no documents."""

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from document_samples import BASE, Found, edited, found, load_text, problems_of, written
from snapshots import Snapshot

from pyaccount.document.loading import load
from pyaccount.reading import nodes, reader
from pyaccount.reading.numerals import parse_duration, parse_scalar

LOADERS = [loader for loader in (getattr(yaml, "CSafeLoader", None), yaml.SafeLoader) if loader is not None]


@pytest.fixture(params=LOADERS, ids=lambda loader: loader.__name__)
def _each_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LOADER", request.param)


SCALARS = [
    ("2000", 2000),
    ("2_000", 2000),
    ("50_000", 50000),
    ("+7", 7),
    ("-7", -7),
    ("0", 0),
    ("010", 10),
    ("0_1", 1),
    ("0x1F", 31),
    ("0o17", 15),
    ("2e3", 2000.0),
    ("2E+3", 2000.0),
    ("1e-5", 1e-5),
    ("1.0e-5", 1e-5),
    ("1E-5", 1e-5),
    ("1E5", 1e5),
    (".5", 0.5),
    ("-.5", -0.5),
    ("5.", 5.0),
    ("1_000.5", 1000.5),
    ("1_000.5e-1_0", "1_000.5e-1_0"),
    ("1e400", "1e400"),
    ("1__0", "1__0"),
    ("_10", "_10"),
    ("10_", "10_"),
    ("0x", "0x"),
    ("0b11", "0b11"),
    ("1:30", "1:30"),
    ("190:20:30", "190:20:30"),
    ("1e", "1e"),
    ("e5", "e5"),
    (".", "."),
    ("-", "-"),
    ("..5", "..5"),
    ("1.2.3", "1.2.3"),
    ("1 000", "1 000"),
    ("2026-02-11", "2026-02-11"),
    ("true", True),
    ("True", True),
    ("FALSE", False),
    ("yes", "yes"),
    ("no", "no"),
    ("on", "on"),
    ("off", "off"),
    ("y", "y"),
    ("tRUE", "tRUE"),
    ("", None),
    ("~", None),
    ("null", None),
    ("NULL", None),
    ("nan", "nan"),
    ("inf", "inf"),
    (".inf", float("inf")),
    ("-.INF", float("-inf")),
    ("١٢", "١٢"),
]


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_plain_scalars(text: str, value: object) -> None:
    assert parse_scalar(text) == value
    assert type(parse_scalar(text)) is type(value)


def test_nan() -> None:
    for text in (".nan", ".NaN", ".NAN"):
        assert str(parse_scalar(text)) == "nan"


DURATIONS = [
    ("30 s", 30),
    ("30s", 30),
    ("90 seconds", 90),
    ("1 sec", 1),
    ("10 min", 600),
    ("10min", 600),
    ("1 minute", 60),
    ("5 m", 300),
    ("2 h", 7200),
    ("1.5 hours", 5400),
    ("1 h 30 min", 5400),
    ("1h30m", 5400),
    ("2 d", 172_800),
    ("1_000 s", 1000),
    ("1e2 s", 100),
    ("10", None),
    ("min", None),
    ("-1 s", None),
    ("10 ms", None),
    ("10  min", None),
    ("10 min ", None),
    ("10 min later", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_durations(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


TWO_THOUSAND = ["2000", "2_000", "2e3", "2.0e3", "2000.0", "2E3", "0x7d0", "02000", "'2000'", '"2_000"', "'2e3'"]


@pytest.mark.parametrize("text", TWO_THOUSAND)
def test_spellings_of_a_field(text: str, tmp_path: Path) -> None:
    document = load_text(tmp_path, edited({10: f"  iterations: {text}"}))
    assert document.run.training.iterations == 2000
    assert document.sha256 == load_text(tmp_path, BASE).sha256


@pytest.mark.parametrize("text", ["1e-5", "1.0e-5", "1E-5", ".00001", "0.00001", "'1e-5'", "10e-6"])
def test_spellings_of_delta(text: str, tmp_path: Path) -> None:
    document = load_text(tmp_path, edited({6: f"  delta: {text}"}))
    assert document.privacy.delta == 1e-5
    assert document.sha256 == load_text(tmp_path, BASE).sha256


def test_a_name_that_looks_like_a_word_of_yaml_1_1(tmp_path: Path) -> None:
    for name in ("on", "no", "2026-02-11", "1:30"):
        assert load_text(tmp_path, edited({2: f"name: {name}"})).name == name


STRUCTURE: list[tuple[str, list[Found]]] = [
    (edited({6: "  delta: 1e-5\n  delta: 1e-6"}), [("duplicate-key", "privacy.delta", 7, 3)]),
    (
        edited({2: "name: a\nname: b\nname: c", 14: "  multiplier: 1\n  'multiplier': 2"}),
        [("duplicate-key", *it) for it in (("name", 3, 1), ("name", 4, 1), ("noise.multiplier", 17, 3))],
    ),
    (edited({14: "  multiplier: 1\n  1: 2"}), [("non-string-key", "noise", 15, 3)]),
    (edited({14: "  multiplier: 1\n  true: 2\n  ~: 3"}), [("non-string-key", "noise", n, 3) for n in (15, 16)]),
    (edited({14: "  multiplier: 1\n  ? [a, b]\n  : 2"}), [("non-string-key", "noise", 15, 5)]),
    (edited({14: "  multiplier: 1\n  yes: 2"}), [("unknown-key", "noise.yes", 15, 3)]),
    (edited({6: "  delta: !!float 1e-5"}), [("unsupported-tag", "privacy.delta", 6, 10)]),
    (edited({6: "  delta: ! 1e-5"}), [("unsupported-tag", "privacy.delta", 6, 10)]),
    (edited({14: "  multiplier: !!python/name:os.system"}), [("unsupported-tag", "noise.multiplier", 14, 15)]),
    (edited({13: "noise: !!python/object/new:os.system", 14: "  [id]"}), [("unsupported-tag", "noise", 13, 8)]),
    (edited({7: "training: !mine"}), [("unsupported-tag", "training", 7, 11)]),
    (edited({14: "  multiplier: 1\n  !!str kind: gaussian"}), [("unsupported-tag", "noise", 15, 3)]),
    (edited({14: "  <<: {multiplier: 1}"}), [("merge-key", "noise", 14, 3)]),
    (edited({14: "  '<<': {multiplier: 1}\n  multiplier: 1"}), [("unknown-key", "noise['<<']", 14, 3)]),
    (edited({14: "  multiplier: 1\n---\npyaccount: 1"}), [("several-documents", "", 15, 1)]),
    (edited({14: "  multiplier: &a [*a]"}), [("recursive-alias", "noise.multiplier[0]", 14, 19)]),
    (edited({13: "noise: &a", 14: "  multiplier: 1\n  x: *a"}), [("recursive-alias", "noise.x", 15, 6)]),
    (edited({14: "  multiplier: *nothing"}), [("syntax-error", "noise.multiplier", 14, 15)]),
    (edited({6: "\tdelta: 1e-5"}), [("syntax-error", "", 6, 1)]),
    (edited({6: "  \tdelta: 1e-5"}), [("syntax-error", "", 6, 3)]),
    (edited({0: "\t"}), [("syntax-error", "", 1, 1)]),
    (edited({5: "  epsilon: 8: 9"}), [("syntax-error", "", 5, 13)]),
    (edited({5: "  epsilon: @8"}), [("syntax-error", "", 5, 12)]),
    (edited({5: "  epsilon: [8"}), [("syntax-error", "", 5, 12)]),
    (edited({14: "  multiplier: 'x"}), [("syntax-error", "", 14, 15)]),
    (edited({14: "  multiplier: 1\n }"}), [("syntax-error", "", 15, 2)]),
    ("%YAML 3.0\n---\na: 1\n", [("syntax-error", "", 1, 1)]),
    ("- pyaccount: 1\n", [("not-a-mapping", "", 1, 1)]),
    ("# a comment\n\n  just text\n", [("not-a-mapping", "", 3, 3)]),
    ("42\n", [("not-a-mapping", "", 1, 1)]),
    ("", [("empty-document", "", None, None)]),
    ("# nothing here\n", [("empty-document", "", None, None)]),
    ("---\n", [("empty-document", "", None, None)]),
    ("\ufeff", [("empty-document", "", None, None)]),
    (f"{'[' * 100_000}", [("document-too-large", f"{'[0]' * 51}", 1, 52)]),
    (f"a: {'{b: ' * 100_000}", [("document-too-large", f"a{'.b' * 50}", 1, 4 + 50 * 4)]),
    (f"[{'x,' * 200_000}]", [("document-too-large", "[99999]", 1, 200_000)]),
]


@pytest.mark.usefixtures("_each_parser")
@pytest.mark.parametrize(("text", "expected"), STRUCTURE, ids=range(len(STRUCTURE)))
def test_structure(text: str, expected: list[Found], tmp_path: Path) -> None:
    assert found(tmp_path, text) == expected


def test_duplicates_name_the_first(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(problems_of(written(tmp_path, edited({6: "  delta: 1e-5\n  delta: 1e-6"}))))


def test_a_tab_is_called_a_tab(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(problems_of(written(tmp_path, edited({6: "\tdelta: 1e-5"}))))


@pytest.mark.usefixtures("_each_parser")
def test_aliases_are_values_with_the_place_of_the_anchor(tmp_path: Path) -> None:
    text = """\
pyaccount: 1
name: aliases
privacy: {adjacency: add-remove, epsilon: solve, delta: 1e-6}
phases:
  - &first
    training: {sampling_probability: 0.01, iterations: 100}
    sampler: {kind: poisson}
    noise: {multiplier: 1.5}
  - *first
"""
    document = load_text(tmp_path, text)
    assert next(iter(document.runs())).training == list(document.runs())[1].training
    assert next(iter(document.with_value(("phases", 1, "noise", "multiplier"), 3).runs())).noise.multiplier == 1.5
    wrong = text.replace("0.01", "1.01")
    expected = [("out-of-range", f"phases[{index}].training.sampling_probability", 6, 38) for index in (0, 1)]
    assert found(tmp_path, wrong) == expected


@pytest.mark.usefixtures("_each_parser")
def test_billion_laughs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grown: list[int] = []
    grow = reader._Composer.grow

    def counted(self: reader._Composer, size: int, *place: Any) -> None:
        grown.append(size)
        grow(self, size, *place)

    monkeypatch.setattr(reader._Composer, "grow", counted)
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 40)]
    assert [it[0] for it in found(tmp_path, "\n".join(lines))] == ["document-too-large"]
    # Reading stops where the count passes its limit: no later alias is looked at.
    assert len(grown) < 100
    assert max(grown) <= nodes.MOST_NODES < sum(grown)
    deep = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 60)]
    assert [it[0] for it in found(tmp_path, "\n".join(deep))] == ["document-too-large"]


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"key{n}: {n}\n" for n in range(49_000)),
        BASE.replace("noise:", "noise:\n  x: [" + "{a: 1}," * 30_000 + "]"),
        "phases: [" + "{}," * 99_000 + "]",
        "phases: [" + "{}," * 10_000 + "]",
        "a: " + "9" * 1_000_000,
        "'" + "k" * 1_000_000 + "': 1",
        "a: " + "1e" * 500_000,
        "accounting: {time_limit: " + "1s" * 400_000 + "x}",
    ],
    ids=range(8),
)
def test_large_nonsense_is_refused(text: str, tmp_path: Path) -> None:
    """What grows faster than the text takes longer than the watchdog allows."""
    assert problems_of(written(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        lambda size: "".join(f"key{n}: {n}\n" for n in range(size)),
        lambda size: BASE.replace("noise:", "noise:\n  x: [" + "{a: 1}," * size + "]"),
        lambda size: "phases: [" + "{}," * size + "]",
        lambda size: "phases: []\nnoise:\n" + "".join(f"  key{n}: {n}\n" for n in range(size)),
    ],
    ids=["keys", "values", "phases", "noise beside phases"],
)
def test_nonsense_takes_as_much_work_as_it_is_long(text: Callable[[int], str], tmp_path: Path) -> None:
    def calls(size: int) -> int:
        path, count = written(tmp_path, text(size)), 0

        def counted(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event == "call"

        before = sys.getprofile()
        sys.setprofile(counted)
        try:
            problems_of(path)
        finally:
            sys.setprofile(before)
        return count

    calls(10)
    # Misspellings are guessed for 1,000 keys at most, so the work for each key does not rise.
    assert calls(3000) < 2.2 * calls(1500)


FILES: list[tuple[bytes, list[Found]]] = [
    (b"\x7fELF\x02\x01\x01\x00\x00", [("not-text", "", 1, 1)]),
    (b"pyaccount: 1\nname: a\x00b\n", [("not-text", "", 2, 8)]),
    (b"pyaccount: 1\nname: caf\xe9\n", [("not-text", "", 2, 10)]),
    (b"\xef\xbb\xbfname: caf\xe9\n", [("not-text", "", 1, 10)]),
    (BASE.encode("utf-16"), [("not-text", "", None, None)]),
    (b"\x89PNG\r\n\x1a\n", [("not-text", "", 1, 1)]),
    (b"# " + b"x" * (1 << 20), [("file-too-large", "", None, None)]),
]


@pytest.mark.parametrize(("data", "expected"), FILES, ids=range(len(FILES)))
def test_files_that_are_no_text(data: bytes, expected: list[Found], tmp_path: Path) -> None:
    assert found(tmp_path, data) == expected


HARMLESS = [
    "\ufeff" + BASE,
    BASE.replace("\n", "\r\n"),
    BASE + "\n\n# fin\n...\n",
    "---\n" + BASE,
    "%YAML 1.2\n---\n" + BASE,
]


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text(text: str, tmp_path: Path) -> None:
    assert load_text(tmp_path, text).name == "cifar10"


def test_missing_files(tmp_path: Path, snapshot: Snapshot) -> None:
    written(tmp_path, BASE, "cifar10.yaml")
    snapshot(problems_of(tmp_path / "cifr10.yaml"))
    for name in ("nowhere/at/all.yaml", "zzz", "", "a\0b", "cifar10.yaml/below"):
        (problem,) = problems_of(os.path.join(tmp_path, name) if name else name)  # noqa: PTH118
        assert problem.slug in ("file-not-found", "not-a-file")
    (problem,) = problems_of("pyaccount: 1\nname: text instead of a path" * 50)
    assert problem.slug in ("file-not-found", "unreadable-file")


def test_what_is_no_regular_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)  # the name of a socket is short
        listener.bind("socket")
        for path in (tmp_path, tmp_path / "pipe", tmp_path / "socket", Path("/dev/zero")):
            assert [problem.slug for problem in problems_of(path)] == ["not-a-file"]


def test_permission_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a patched `open`: the tests may run as root, who may read everything."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = written(tmp_path, BASE)
    monkeypatch.setattr(Path, "open", refuse)
    assert [problem.slug for problem in problems_of(path)] == ["permission-denied"]


def test_a_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert [problem.slug for problem in problems_of(tmp_path / "loop")] == ["unreadable-file"]


def test_paths_of_every_kind(tmp_path: Path, snapshot: Snapshot) -> None:
    path = written(tmp_path, BASE)
    assert load(str(path)) == load(path)
    assert load(path).file == str(path)
    for source in (7, None, [path], b"x"):
        snapshot.raised(load, source)  # type: ignore[arg-type]


@pytest.mark.parametrize("digits", [309, 400, 401, 5000])
def test_integers_that_no_float_holds_are_out_of_range(digits: int, tmp_path: Path) -> None:
    text = edited({6: f"  delta: {'9' * digits}"})
    assert ("out-of-range", "privacy.delta", 6, 10) in found(tmp_path, text)
