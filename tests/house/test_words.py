"""Tests of the vocabulary: a name has one meaning in the whole package, and words that the glossary avoids are not used."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT

PYTHON = sorted([*(ROOT / "pyaccount").rglob("*.py"), ROOT / "pyaccount" / "_core.pyi"])
RUST = sorted(path for crate in ("core", "python") for path in (ROOT / "rust" / crate).rglob("*.rs"))

#: Words that names must not contain, and the words to use instead. Underscores and capitals separate the words of a name.
SAID = {
    **dict.fromkeys(("wager", "wagers"), "bet"),
    **dict.fromkeys(("stake", "stakes"), "betting fraction"),
    **dict.fromkeys(("capital", "capitals"), "wealth"),
    **dict.fromkeys(
        ("walk", "walked", "rung", "rungs", "foot", "descent", "descents"), "fixed-sequence test, value of a grid"
    ),
    **dict.fromkeys(("ladder", "ladders"), "grid"),
    **dict.fromkeys(("cap", "caps"), "weight bound"),
    **dict.fromkeys(("stretch", "stretched", "stretches"), "mean scale, scaled"),
    "others": "composed profile, other records, further parameters, rest",
    "revealed": "public participation",
    **dict.fromkeys(("crossings", "charge", "charges", "charged"), "Gram off-diagonals, norm bound"),
    **dict.fromkeys(("again", "anew"), "retest, recompute"),
    **dict.fromkeys(("figures", "flaw", "flaws"), "cross-check, inconsistency"),
    "door": "interruptible call",
    "comparison": "direction",
}

#: Words that also have another, allowed meaning in the Python code; in the core they have no other meaning.
MEANT_OTHERWISE = {
    "walk": "`ast.walk` and `os.walk` go through trees",
    "comparison": "`pyaccount.Comparison` is several certificates side by side",
    "figures": "`Figures` is a terminal's table of numbers",
}


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every identifier with its line."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name):
            yield line, node.id
        elif isinstance(node, ast.Attribute):
            yield line, node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield line, node.name
        elif isinstance(node, ast.arg | ast.keyword) and node.arg is not None:
            yield line, node.arg
        elif isinstance(node, ast.alias):
            yield line, node.asname or node.name.rpartition(".")[2]


def rust_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield every identifier outside of comments and texts, with its line."""
    code = re.sub(r"//[^\n]*", "", re.sub(r'"(?:[^"\\]|\\.)*"', '""', text))
    for line, row in enumerate(code.split("\n"), 1):
        for name in re.findall(r"[A-Za-z_]\w*", row):
            yield line, name


def words(name: str) -> set[str]:
    """Return the words that a name consists of."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def meant(place: str) -> set[str]:
    """Return the words that have another, allowed meaning in this file."""
    return set() if place.startswith("rust/") else set(MEANT_OTHERWISE)


def unsaid(name: str, place: str) -> str | None:
    """Return the word to use instead, or None if the name is right."""
    return next((SAID[word] for word in sorted(words(name)) if word in SAID and word not in meant(place)), None)


def wrong(paths: list[Path]) -> Iterator[str]:
    """Yield names with words to avoid, and where they are."""
    for path in paths:
        place, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        if path.stem in SAID and path.stem not in MEANT_OTHERWISE:
            yield f"{place}: say {SAID[path.stem]}"
        for line, name in rust_names(text) if path.suffix == ".rs" else names(ast.parse(text)):
            instead = unsaid(name, place)
            if instead is not None:
                yield f"{place}:{line}: {name}: say {instead}"


@pytest.mark.parametrize("paths", [PYTHON, RUST], ids=["python", "rust"])
def test_names_use_the_words_of_the_glossary(paths: list[Path]) -> None:
    assert list(wrong(paths)) == []


def test_names_with_other_words_are_seen() -> None:
    assert unsaid("LowerWagers", "pyaccount/execute/x.py") == "bet"
    assert unsaid("log_capital", "pyaccount/execute/x.py") == "wealth"
    assert unsaid("capacity", "pyaccount/execute/x.py") is None
    assert [name for _, name in rust_names('let door = "capital"; // a wager\nfn stretch() {}')] == [
        "let",
        "door",
        "fn",
        "stretch",
    ]


def aliases(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield type aliases at the top of a module, except for private ones with an underscore."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp):
            for target in node.targets:
                if isinstance(target, ast.Name) and re.fullmatch("[A-Z][A-Za-z]*[a-z][A-Za-z]*", target.id):
                    yield node.lineno, target.id


def types() -> dict[str, list[str]]:
    """Return where classes and aliases of each name are defined, in the package and in the binding's stub."""
    found = defaultdict(list)
    for path in PYTHON:
        tree, place = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(ROOT).as_posix()
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{place}:{node.lineno}")
        for line, name in aliases(tree):
            found[name].append(f"{place}:{line}")
    return found


def test_no_two_types_share_a_name() -> None:
    assert {name: places for name, places in types().items() if len(places) > 1} == {}


def test_aliases_are_seen() -> None:
    program = (
        "Source = str | Path\nKind = Literal['a']\n_Own = str | int\nLIMIT = 3 | 4\nx = a[0]\nNumber = int | float\n"
    )
    assert list(aliases(ast.parse(program))) == [(1, "Source"), (2, "Kind"), (6, "Number")]


def test_no_two_rooms_of_the_core_share_a_type() -> None:
    """Only types that other modules can name are checked; private types may share a name."""
    found = defaultdict(set)
    for path in RUST:
        room = path.relative_to(ROOT / "rust").parts
        if room[:2] == ("core", "src"):
            for name in re.findall(
                r"^\s*pub(?:\([^)]*\))? (?:struct|enum|trait|type) (\w+)", path.read_text(encoding="utf-8"), re.M
            ):
                found[name].add(room[2])
    assert {name: rooms for name, rooms in found.items() if len(rooms) > 1} == {}


def test_there_is_one_direction() -> None:
    """Only `directions` lists the directions, except for models, whose fields list their values."""
    sets = re.compile(r'Literal\["remove", "add"(?:, "replace")?\]\s*$', re.M)
    aliases = [
        path.name
        for path in PYTHON
        if re.search(r"^\s*\w+\s*=\s*" + sets.pattern, path.read_text(encoding="utf-8"), re.M)
    ]
    assert aliases == ["directions.py"]


def test_a_refusal_says_what_is_implemented_and_not_what_is_known() -> None:
    """A message can only say what this package computes; we have no overview of what others have proven."""
    claims = re.compile(r"\bno (?:bound|analysis|theorem|search|derivatives)\b[^:;.\"]{0,60}\b(?:is|are) known\b")
    found = [
        (path.name, claim[0])
        for path in PYTHON
        for claim in claims.finditer(re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8")))
    ]
    assert found == []
