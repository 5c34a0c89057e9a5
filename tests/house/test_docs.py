"""Tests of the documentation: links have targets, snippets are valid and run, pictures are right, and terms are explained."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import yaml
from places import ROOT
from warm_commands import COMMAND, COMMANDS_READ, warm

import pyaccount
from pyaccount import cli
from pyaccount.document.loading import load_written
from pyaccount.document.samplers import AnySampler
from pyaccount.document.sweeps import is_sweep, load_grid
from pyaccount.plan.compiling import compile_document

DOCS = ROOT / "docs"
PAGES = [
    *(
        ROOT / name
        for name in (
            "README.md",
            "CONTRIBUTING.md",
            "CHANGELOG.md",
            "SECURITY.md",
            "CODE_OF_CONDUCT.md",
            "benchmarks/README.md",
        )
    ),
    *sorted(DOCS.rglob("*.md")),
]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the fenced blocks of a page, each with its language."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as sites make them that render Markdown."""
    found: dict[str, int] = {}
    names = set()
    for heading in re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if name in found else name)
        found[name] = found.get(name, 0) + 1
    return names


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(page)):
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        assert path.is_relative_to(ROOT), target
        if anchor:
            assert path.suffix == ".md", target
            assert anchor in anchors(path), target


def test_every_page_is_in_the_index_and_the_index_in_the_readme() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    listed = {(DOCS / target).resolve() for target in re.findall(r"\]\(([^)#]+)\)", index)}
    assert {page for page in listed if page.is_relative_to(DOCS)} == set(DOCS.rglob("*.md")) - {DOCS / "README.md"}
    assert "](docs/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_documents_shown_are_valid_and_planned(page: Path, tmp_path: Path) -> None:
    """A snippet without a head replaces sections of the page's first document."""
    base: dict[str, Any] = {}
    for language, text in blocks(page):
        assert language in ("yaml", "python", "sh", "text"), f"{named(page)}: a block without a language"
        if language != "yaml":
            continue
        said = yaml.safe_load(text)
        base = base or said
        file = tmp_path / "snippet.yaml"
        if "pyaccount" in said:
            file.write_text(text, encoding="utf-8")
        else:
            rest = {section: content for section, content in base.items() if section not in said}
            file.write_text(f"{yaml.safe_dump(rest)}\n{text}", encoding="utf-8")
        if is_sweep(file):
            base = {section: content for section, content in base.items() if section != "vary"}
            for cell in load_grid(str(file)).cells():
                assert compile_document(cell.document()).reductions
            continue
        document = load_written(file)
        if isinstance(document, pyaccount.Document):
            assert compile_document(document).reductions


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_shown_exist_with_these_options(page: Path) -> None:
    for language, text in blocks(page):
        for line in text.replace("\\\n", "").splitlines() if language == "sh" else ():
            words = shlex.split(line, comments=True)
            if words[:1] != ["pyaccount"]:
                continue
            end = next((place for place, word in enumerate(words) if word in ("|", "<", ">", ">>", "&&")), len(words))
            inner = " ".join(words[1:3])
            name = inner if inner in cli.all_commands() else words[1]
            command = cli.all_commands()[name]
            with command.make_context(f"pyaccount {name}", words[1 + len(name.split()) : end]) as context:
                assert isinstance(context, click.Context)


def test_samplers_have_a_section_a_picture_and_a_document_each() -> None:
    page = DOCS / "samplers.md"
    shown = {yaml.safe_load(text)["sampler"]["kind"] for language, text in blocks(page) if language == "yaml"}
    schema = AnySampler.__metadata__[0]  # type: ignore[attr-defined]
    assert shown == set(schema.by_kind)
    pictures = set(re.findall(r"\(pictures/([\w-]+)\.svg\)", page.read_text(encoding="utf-8")))
    assert pictures == shown | {"truncated", "shuffled"}
    assert {path.stem for path in (DOCS / "pictures").glob("*.svg")} == pictures | {"bins", "budgets", "digits"}


# ---- pictures


def test_the_picture_of_the_budgets_is_what_its_script_draws() -> None:
    """The picture also shows the budgets at their places: the point is on no line, and the curve goes through N(1, 1)'s at ½."""
    script = runpy.run_path(str(DOCS / "pictures" / "budgets.py"))
    text = (DOCS / "pictures" / "budgets.svg").read_text(encoding="utf-8")
    assert text == script["svg"](), "run `make reference`"
    assert script["place"](0.5, 0.8413447) in text
    assert "(pictures/budgets.svg)" in (DOCS / "report.md").read_text(encoding="utf-8")


def test_the_picture_of_the_bins_has_the_figures_of_its_table() -> None:
    seen = json.loads((DOCS / "pictures" / "bins.json").read_text(encoding="utf-8"))
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    drawn = (DOCS / "pictures" / "bins.svg").read_text(encoding="utf-8")
    assert len(seen["reductions"]) == 9
    for setting, lines in seen["reductions"].items():
        rows = [f"| {label} | {' | '.join(f'{share:.1f} %' for share in shares)} |" for label, shares in lines.items()]
        assert f"| {setting} " + "\n| ".join(rows) in page
        assert {setting, *lines} <= set(re.findall(r"<text[^>]*>([^<]*)</text>", drawn))
    assert "(pictures/bins.svg)" in page


def test_the_picture_of_the_digits_is_what_its_script_draws(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip(
        "matplotlib", reason="matplotlib is not installed: the picture of the digits is NOT drawn"
    )
    text = (DOCS / "pictures" / "digits.svg").read_text(encoding="utf-8")
    if f"Matplotlib v{matplotlib.__version__}," not in text:
        pytest.skip("another matplotlib draws with other digits: the picture of the digits is NOT compared")
    runpy.run_path(str(DOCS / "pictures" / "digits.py"))["draw"](tmp_path)
    assert (tmp_path / "digits.svg").read_text(encoding="utf-8") == text, "run python docs/pictures/digits.py"


def test_the_tables_of_the_digits_are_what_the_runs_have_seen() -> None:
    """The tables contain every mean with its standard error, and the certified bounds, rounded in their direction."""
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    tables = {row[0]: row[1:] for row in (line.strip("| ").split(" | ") for line in text.splitlines() if "±" in line)}

    def seen(name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((DOCS / "pictures" / f"{name}.json").read_text(encoding="utf-8"))[
            "rows"
        ]
        return found

    def learned(row: dict[str, Any]) -> str:
        scores = 100.0 * np.array(row["accuracies"])
        assert len(scores) == 40
        return f"{scores.mean():.1f} ± {scores.std(ddof=1) / 40**0.5:.1f}"

    for method in {row["method"] for row in seen("digits")}:
        rows = [row for row in seen("digits") if row["method"] == method]
        assert tables[method][1:] == [learned(row) for row in rows]
        assert f"| | prefix-sum RMSE | {' | '.join(format(row['rmse'], '.1f') for row in rows)} |" in text
    for row in seen("digits-samplers"):
        interval, accuracy = tables[row["sampler"]]
        assert accuracy == learned(row)
        low, high = (float(end) for end in interval.split(" to "))
        assert row["least"] * 0.99 < low <= row["least"]
        assert row["most"] <= high < row["most"] * 1.01
    for records, words in (("unshared", "unshared records alone"), ("shared too", "shared ones too")):
        rows = [row for row in seen("digits-users") if row["records"] == records]
        cells = [cell for row in rows for cell in (f"{row['sigma']:.3f}", learned(row))]
        assert tables[words] == [str(rows[0]["kept"]), *cells]


SCRIPT = runpy.run_path(str(DOCS / "pictures" / "samplers.py"))
RECORDS, ROUNDS = SCRIPT["RECORDS"], SCRIPT["ROUNDS"]


def cells(name: str) -> dict[str, set[tuple[int, int]]]:
    """Return the cells (record, round) of each class in a committed picture, read from its paths."""
    text = (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    shown: dict[str, set[tuple[int, int]]] = {"out": set(), "one": set(), "more": set(), "dropped": set()}
    for kind, path in re.findall(r'<path class="(\w+)" d="([^"]*)"', text):
        for x, y in re.findall(r"M(\d+) (\d+)", path):
            shown[kind].add(((int(y) - 19) // 12, (int(x) - 23) // 12))
    for kind in shown.values():
        assert all(0 <= i < RECORDS and 0 <= t < ROUNDS for i, t in kind)
    return shown


@pytest.mark.parametrize("name", sorted(SCRIPT["SAMPLERS"]))
def test_pictures_are_what_the_script_draws(name: str) -> None:
    assert (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8") == SCRIPT["svg"](name), (
        "run `make reference`"
    )


def rounds_of(shown: set[tuple[int, int]], record: int) -> list[int]:
    return sorted(t for i, t in shown if i == record)


def test_pictures_show_the_samplers_definitions() -> None:
    """The pictures satisfy the definitions of the samplers; only the pictures are read."""
    for name, drawn in (("fixed-size", 3), ("must-wo", 4)):
        shown = cells(name)
        for t in range(ROUNDS):
            column = [i for i, when in shown["one"] | shown["more"] if when == t]
            assert (len(column) == drawn) if name == "fixed-size" else (1 <= len(column) <= drawn)
    for name in ("must-ow", "must-wo", "must-ww", "with-replacement"):
        shown = cells(name)
        assert shown["more"], name
        for t in range(ROUNDS):
            once, several, out = (sum(when == t for _, when in shown[kind]) for kind in ("one", "more", "out"))
            assert once + 2 * several <= 4
            if name == "must-ow":
                assert once + several + out == 6  # the subset's distinct records
    for record in range(RECORDS):
        times = rounds_of(cells("b-min-sep")["one"], record)
        assert min(later - earlier for earlier, later in pairwise(times)) >= 6
        bins = rounds_of(cells("balls-in-bins")["one"], record)
        assert bins == list(range(bins[0], ROUNDS, 8))
        assert bins[0] < 8
        order = rounds_of(cells("none")["one"], record)
        assert len(order) == 6
        assert {later - earlier for earlier, later in pairwise(order)} == {8}
        part = rounds_of(cells("cyclic-poisson")["one"], record)
        assert {t % 4 for t in part} <= {record * 4 // RECORDS}
        dealt = rounds_of(cells("shuffled")["one"], record)
        assert [t // 8 for t in dealt] == list(range(6))  # once in each epoch of eight rounds
    shown = cells("shuffled")
    assert {sum(when == t for _, when in shown["one"]) for t in range(ROUNDS)} == {3}
    # The last batch of an epoch and the first batch of the next may share a record.
    dealt_to = [rounds_of(shown["one"], record) for record in range(RECORDS)]
    assert min(later - earlier for times in dealt_to for earlier, later in pairwise(times)) == 1
    shown = cells("user-b-min-sep")
    for user in range(0, RECORDS, 3):
        times = sorted({t for i, t in shown["one"] if user <= i < user + 3})
        assert min(later - earlier for earlier, later in pairwise(times)) >= 6
        for i in range(user, user + 3):
            assert rounds_of(shown["out"], i) == rounds_of(shown["out"], user)
    truncated = cells("truncated")
    assert truncated["dropped"]
    for t in {when for _, when in truncated["dropped"]}:
        assert sum(when == t for _, when in truncated["one"]) == 3
    sizes = {sum(when == t for _, when in cells("poisson")["one"]) for t in range(ROUNDS)}
    assert len(sizes) > 3


# ---- the tutorial


def shell(command: str, folder: Path, installed: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(installed.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def bare(text: str) -> list[str]:
    """Return the lines of an output without trailing blanks."""
    return [line.rstrip() for line in text.splitlines()]


@pytest.fixture(scope="module")
def forked() -> Iterator[Path]:
    """Return the command, run in forks: what a page shows does not depend on how Python starts."""
    with warm(COMMAND, *COMMANDS_READ) as client:
        yield client


def test_a_reader_who_follows_the_tutorial_sees_what_it_shows(tmp_path: Path, forked: Path) -> None:
    steps = blocks(DOCS / "tutorial.md")
    printed: list[str] = []
    for language, text in steps:
        if language == "sh":
            done = None
            output = ""
            for line in text.splitlines():
                done = shell(line, tmp_path, forked)
                expected = re.search(r"# exit code (\d+)$", line)
                assert done.returncode == (int(expected[1]) if expected else 0), (line, done.stdout)
                output += done.stdout
            printed = bare(output)
        else:
            assert language == "text"
            place = 0
            for part in re.split(r"^…$", text, flags=re.MULTILINE):
                wanted = bare(part.strip("\n"))
                if not wanted:
                    continue
                found = next(
                    (at for at in range(place, len(printed)) if printed[at : at + len(wanted)] == wanted), None
                )
                assert found is not None, ("\n".join(wanted), "\n".join(printed))
                place = found + len(wanted)
    assert {path.name for path in tmp_path.iterdir()} >= {
        "training.yaml",
        "training.cert.json",
        "training.html",
        "bandmf.yaml",
    }


# ---- the glossary


def test_the_glossary_has_every_key_and_kind_of_the_language() -> None:
    from pyaccount.document.models import SingleDocument
    from pyaccount.document.shape import accepted_words, leaves

    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    missing = set()
    for path, field in leaves(SingleDocument):
        words = {str(path[-1])} if len(path) > 1 and path[-1] != "kind" else set()
        if path[-1] == "kind" or path == ("privacy", "adjacency"):
            words |= set(accepted_words(field))
        missing |= {word for word in words if f"`{word}`" not in text}
    assert not missing
