"""The pages of the documentation's site are made from the committed files, and their links have targets."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import ROOT
from snapshots import Snapshot

import pyaccount

SITE = runpy.run_path(str(ROOT / ".ci" / "site" / "pages.py"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    (folder / "pages").mkdir(parents=True)
    (folder / "pages" / "old.md").write_text("# Of an earlier build\n", encoding="utf-8")
    SITE["write"](folder)
    return folder


def navigation(built: Path) -> dict[str, list[Any]]:
    text = (built / "mkdocs.yml").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("nav: "))
    return {title: pages for section in json.loads(line[5:]) for title, pages in section.items()}


def test_every_page_is_in_the_navigation_once(built: Path) -> None:
    sections = navigation(built)
    assert [*sections] == ["Tutorial", "How to", "Explanation", "Reference"]
    pages = [
        page if isinstance(page, str) else next(iter(page.values())) for part in sections.values() for page in part
    ]
    assert len(pages) == len(set(pages))
    folder = ROOT / "docs"
    assert {*pages} == {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")} | {"reference/python.md"}
    assert pages[0] == "README.md"
    assert all((built / "pages" / page).is_file() for page in pages)


def test_links_lead_to_files_that_are_there(built: Path) -> None:
    """The test reads the pages in its own way: every target after a bracket, except in code."""
    seen = 0
    for page in (built / "pages").rglob("*.md"):
        text = re.sub(r"^(```|~~~~~).*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", text):
            if not target.startswith("https:"):
                seen += 1
                assert (page.parent / target).is_file(), f"{page.name}: {target}"
    assert seen > 300


def test_files_out_of_the_documentation_are_shown_as_they_are(built: Path) -> None:
    pages = built / "pages"
    assert not (pages / "old.md").exists()
    shown = (pages / "source" / "examples" / "policy.yaml.md").read_text(encoding="utf-8")
    assert (ROOT / "examples" / "policy.yaml").read_text(encoding="utf-8") in shown
    assert "exclude: true" in shown
    raw = Path("examples") / "canaries.csv"
    assert (pages / "source" / raw).read_bytes() == (ROOT / raw).read_bytes()
    assert "- [cifar10-dp-sgd.yaml](examples/cifar10-dp-sgd.yaml.md)" in (pages / "source" / "examples.md").read_text()
    assert "](../tutorial.md)" in (pages / "source" / "README.md.md").read_text(encoding="utf-8")


def test_the_python_page_has_every_public_name(built: Path) -> None:
    text = (built / "pages" / "reference" / "python.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^::: pyaccount\.(\w+)$", text, flags=re.MULTILINE)) == sorted(pyaccount.__all__)


def test_a_module_without_public_names_is_refused(snapshot: Snapshot) -> None:
    snapshot.raised(lambda: SITE["public_names"]("x = 1\n"))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("text\n- a\n- b\n", "text\n\n- a\n- b\n"),
        ("- a\n  more\n- b\n", "- a\n    more\n- b\n"),
        ("- a\n\n  ```yaml\n  - b\n  ```\n", "- a\n\n    ```yaml\n    - b\n    ```\n"),
        ("```yaml\nkey:\n  - a\n- b\n```\n", "```yaml\nkey:\n  - a\n- b\n```\n"),
        (r"| `[a\|b]` | c \| d |", r"| `[a|b]` | c \| d |"),
        ("| 1e-05 | `1e-5` |", '| <span class="number">1e-05</span> | `1e-5` |'),
        ("a **word**\n# Title\n- a\n", "a **word**\n# Title\n- a\n"),
    ],
)
def test_pages_are_spelled_as_the_site_reads_them(written: str, read: str) -> None:
    assert SITE["respelled"](written) == read


def test_the_site_loads_nothing_from_anywhere_and_takes_no_warning() -> None:
    text = (ROOT / ".ci" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    found = yaml.safe_load(re.sub(r"!!python/\S+", "", text))
    assert found["theme"]["font"] is False
    assert not re.search("https?:", text)
    assert {*found["validation"]["links"].values()} == {"warn"}
    assert "mkdocs build --strict" in (ROOT / "Makefile").read_text(encoding="utf-8")
