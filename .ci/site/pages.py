"""Writes what the site is built from: a folder of pages, and its configuration with the navigation.

python .ci/site/pages.py FOLDER

The pages of docs/ are written for any reader of Markdown, and say nothing for the site's sake. Links out of docs/ lead to
pages made of the files they name, and what the forges' Markdown allows is spelled as the site's Markdown reads it. The
navigation is the index of the documentation. Nothing here knows the site's generator but for the names of its configuration.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DOCS = ROOT / "docs"
PYTHON_NAMES = "reference/python.md"
#: Where on the site the files lie that are not in docs/.
SOURCE = "source/"
STYLE = "assets/site.css"
#: Files that are shown as pages, and the languages they are coloured in. Any other file is on the site as it is.
SHOWN = {".py": "python", ".rs": "rust", ".yaml": "yaml"}
#: What is made when the package is used, and is none of its sources.
LEFT_OUT = {"__pycache__", ".venv"}
#: Pages of code are found by links, and would be found by every search too.
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n"

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^(```+|~~~+).*?^\1$", flags=re.DOTALL | re.MULTILINE)


def navigation(index: str) -> list[dict[str, list[Any]]]:
    """The sections of the index and the pages they list, in its order and by its titles; the first begins with the index."""
    found: list[dict[str, list[Any]]] = []
    for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", index, flags=re.DOTALL | re.MULTILINE):
        pages = [{name: page} for name, page in re.findall(r"^\| \[([^]]+)\]\(([^)]+\.md)\)", text, flags=re.MULTILINE)]
        found.append({title: pages})
    next(iter(found[0].values())).insert(0, "README.md")
    next(iter(found[-1].values())).append({"Python": PYTHON_NAMES})
    return found


def public_names(source: str) -> list[str]:
    """What a module says that it offers, by its text alone: nothing has to be built for the site."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            found: list[str] = ast.literal_eval(node.value)
            return found
    raise ValueError("the module has no __all__")


def python_page(names: list[str]) -> str:
    """A page with the docstring of every public name."""
    sections = {
        "Functions": [name for name in names if name[0].islower()],
        "What they give and take": [name for name in names if name[0].isupper() and not name.endswith("Error")],
        "Exceptions": [name for name in names if name.endswith("Error")],
    }
    lines = ["# Python", "", "Everything that `import pyaccount` offers. Names load on first use."]
    for title, members in sections.items():
        lines += ["", f"## {title}", *(f"\n::: pyaccount.{name}" for name in members)]
    return "\n".join(lines) + "\n"


def prose(text: str) -> Iterator[tuple[bool, str]]:
    """The parts of a page: whether each is prose, or else a block of code."""
    end = 0
    for fence in FENCE.finditer(text):
        yield True, text[end : fence.start()]
        yield False, fence[0]
        end = fence.end()
    yield True, text[end:]


def linked(text: str, origin: Path) -> Iterator[Path]:
    """The files and folders that a page leads to."""
    for is_prose, part in prose(text):
        for found in LINK.finditer(part) if is_prose else ():
            yield (origin.parent / found[1]).resolve()


def listing(folder: Path) -> str:
    """A page with the files of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not LEFT_OUT & set(path.parts))
    names = [path.relative_to(folder).as_posix() for path in files]
    return "\n".join(
        [f"# {folder.relative_to(ROOT)}", "", *(f"- [{name}]({folder.name}/{name})" for name in names), ""]
    )


def shown(path: Path) -> str | None:
    """A file or folder as a page; nothing for what is on the site as it is."""
    if path.is_dir():
        return listing(path)
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    if path.suffix not in SHOWN:
        return None
    code = path.read_text(encoding="utf-8").rstrip("\n")
    return f"{UNSEARCHED}# {path.relative_to(ROOT)}\n\n~~~~~ {SHOWN[path.suffix]}\n{code}\n~~~~~\n"


def is_page_of_docs(path: Path) -> bool:
    """What is copied with the folder."""
    return path.is_relative_to(DOCS) and path.suffix != ".py"


def address(path: Path) -> str:
    """Where a file of the repository is on the site, before the generator makes a folder of a page."""
    if is_page_of_docs(path):
        return path.relative_to(DOCS).as_posix()
    is_page = path.is_dir() or path.suffix == ".md" or path.suffix in SHOWN
    return f"{SOURCE}{path.relative_to(ROOT).as_posix()}{'.md' if is_page else ''}"


def origin(place: str) -> Path:
    """The file or folder that a page of the site shows."""
    return ROOT / place[len(SOURCE) :].removesuffix(".md") if place.startswith(SOURCE) else DOCS / place


def collected() -> dict[str, Path]:
    """Every file and folder beyond the pages that they lead to, directly or by other such pages, by its place on the site."""
    found: dict[str, Path] = {}
    waiting = [(path.read_text(encoding="utf-8"), path) for path in sorted(DOCS.rglob("*.md"))]
    while waiting:
        for target in linked(*waiting.pop()):
            if not is_page_of_docs(target) and address(target) not in found:
                found[address(target)] = target
                text = shown(target)
                if text is not None:
                    waiting.append((text, target))
    return found


def relinked(text: str, origin: Path, place: str) -> str:
    """A page whose links lead to the places that the files have on the site."""

    def moved(link: re.Match[str]) -> str:
        target = os.path.relpath(address((origin.parent / link[1]).resolve()), os.path.dirname(place) or ".")  # noqa: PTH120
        return f"]({Path(target).as_posix()}{link[2] or ''})"

    return "".join(LINK.sub(moved, part) if is_prose else part for is_prose, part in prose(text))


def row(text: str) -> str:
    """A row of a table: no backslash in code, and no line that ends within 1e-5."""
    parts = re.split(r"(`[^`\n]*`)", text)
    parts[1::2] = [code.replace(r"\|", "|") for code in parts[1::2]]
    parts[::2] = [re.sub(r"\d[\d.]*e-\d+", r'<span class="number">\g<0></span>', rest) for rest in parts[::2]]
    return "".join(parts)


def respelled(text: str) -> str:
    """As the site's Markdown reads it: lists after a blank line, their content indented by four, and rows of tables."""

    def spelled(part: str) -> str:
        part = re.sub(r"^( {2,}\S)", r"  \1", part, flags=re.MULTILINE)
        part = re.sub(r"^\|.*\|$", lambda found: row(found[0]), part, flags=re.MULTILINE)
        return re.sub(r"^((?![-#|\s])[^\n]+\n)(?=- )", r"\1\n", part, flags=re.MULTILINE)

    return "".join(spelled(part) if is_prose else part for is_prose, part in prose(text))


def put(folder: Path, place: str, text: str) -> None:
    """Write a page, its links and lists as they are on the site."""
    file = folder / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(respelled(relinked(text, origin(place), place)), encoding="utf-8")


def write(folder: Path) -> None:
    """Write the configuration, and the pages beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("*.md", "*.py", *LEFT_OUT))
    for page in DOCS.rglob("*.md"):
        put(pages, page.relative_to(DOCS).as_posix(), page.read_text(encoding="utf-8"))
    for place, path in collected().items():
        text = shown(path)
        if text is not None:
            put(pages, place, text)
        else:
            (pages / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, pages / place)
    names = public_names((ROOT / "pyaccount" / "__init__.py").read_text(encoding="utf-8"))
    (pages / PYTHON_NAMES).write_text(python_page(names), encoding="utf-8")
    (pages / STYLE).parent.mkdir()
    shutil.copyfile(HERE / "site.css", pages / STYLE)
    sections = navigation((DOCS / "README.md").read_text(encoding="utf-8"))
    configuration = (HERE / "mkdocs.yml").read_text(encoding="utf-8")
    (folder / "mkdocs.yml").write_text(f"{configuration}nav: {json.dumps(sections)}\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
