"""No printer lets foreign text of a certificate, run, record or file move a cursor, begin a line or change the text direction."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from gate_tools import golden, rehashed, save

import pyaccount
from pyaccount import cli
from pyaccount.certificate.report import page_of
from pyaccount.errors import CertificateError, DocumentError, Problem, printable
from pyaccount.gate.check import verdict_on
from pyaccount.pages.page import Code, PageSection, legible
from pyaccount.store.running import RunList, RunRecord

#: A text that clears a terminal, writes in red, overwrites the line, forges another one, and reverses the text direction.
HOSTILE = "\x1b[2J\x1b[31m\rok\nok\u2028ok\x85\u202eevil\u2066\u200b\x9b1A\x07\x00\ufeff$x^$[/b]|"
#: The characters that are allowed in printed text: all printable ones, and the ends of lines.
ALLOWED = "\n"


def assert_printable(text: str) -> None:
    found = {character for character in text if not character.isprintable() and character not in ALLOWED}
    assert not found, found
    # The text does not begin a line of its own either.
    assert not re.search(r"^ok", text, flags=re.MULTILINE)


def poisoned(value: Any) -> Any:
    """Return the data with every text in it replaced by a hostile one, except for keywords that it needs to be readable."""
    if isinstance(value, dict):
        return {key: poisoned(item) if key not in _WORDS else item for key, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item) for item in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) else value


_WORDS = {
    "kind", "adjacency", "unit", "direction", "bound", "verification", "seed_source", "measure", "optimized_for", "noise",
    "effect",
}  # fmt: skip


def renamed(name: str) -> dict[str, Any]:
    """Return an intact certificate of a document with this name."""
    data = golden("deterministic")
    data["statement"] = data["statement"].replace(data["name"], name)
    data["name"] = data["document"]["name"] = name
    return rehashed(data)


def certificate(name: str) -> dict[str, Any]:
    """Return a golden certificate in which every text is hostile."""
    data = golden(name)
    found: dict[str, Any] = poisoned(data)
    for phase, was in zip(found.get("phases", []), data.get("phases", []), strict=True):
        phase["matrix"]["kind"] = was["matrix"]["kind"] + HOSTILE
    found["document"]["name" + HOSTILE] = HOSTILE
    return found


NAMES = ["deterministic", "confidence", "verified-choice", "group-of-phases", "amplification"]


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
@pytest.mark.parametrize("name", NAMES)
def test_reports_show_nothing_that_moves_a_cursor(
    name: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path, certificate(name))
    assert cli.run(["report", str(path), "--format", form]) == 0
    captured = capsys.readouterr()
    assert_printable(captured.out)
    assert_printable(captured.err)
    # The name is shown, not left out.
    assert r"\u202eevil" in captured.out.replace("\\\\", "\\") or name == "amplification"


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_comparisons_show_nothing_that_moves_a_cursor(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The comparison has a certificate that is consistent except for its hostile name, and one that contradicts itself."""
    whole = save(tmp_path, renamed(f"mine{HOSTILE}"), "whole.json")
    broken = save(tmp_path, certificate("group-of-phases"), "broken.json")
    cli.run(["compare", str(whole), str(broken), "--format", form])
    captured = capsys.readouterr()
    assert_printable(captured.out)
    assert_printable(captured.err)
    assert "mine" in captured.out


def test_a_heading_of_markdown_is_one_line() -> None:
    data = golden("deterministic")
    data["name"] = "a\n# Approved\n"
    text = pyaccount.Certificate.from_json(json.dumps(data)).to_markdown()
    assert "\n# Approved" not in text


def test_notebooks_and_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    made = pyaccount.Certificate.load(save(tmp_path, renamed(f"$x^{{${HOSTILE}")))
    comparison = pyaccount.compare([made])
    for text in (made._repr_html_(), made.profile._repr_html_(), comparison._repr_html_(), repr(made)):
        assert_printable(text)
    figure = comparison.plot()
    figure.savefig(tmp_path / "picture.svg")
    assert_printable((tmp_path / "picture.svg").read_text(encoding="utf-8"))


def test_an_amplification_is_drawn_whatever_it_is_called(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    document = {**golden("amplification")["document"], "name": "costs $5 and $x^{$"}
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    target = tmp_path / "picture.svg"
    assert cli.run(["certify", str(path), "--quiet", "--plot", str(target)]) == 0


def test_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(save(tmp_path, certificate("deterministic")))
    for command in (["check", path, "--no-limits"], ["verify", path, "--time-limit", "1 min"]):
        assert cli.run(command) in (1, 2)
        captured = capsys.readouterr()
        assert_printable(captured.out)
        assert_printable(captured.err)
    (judged,) = verdict_on([path], no_limits=True).certificates
    assert judged.name is not None


def test_names_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File names may be hostile too, because a pattern in a workflow matches any file of a branch."""
    name = "c\x1b[2J\nok\u202e.json"
    good, broken = save(tmp_path, golden("deterministic"), name), save(tmp_path, "{", f"x{name}")
    for command in (
        ["check", str(good), "--no-limits"],
        ["check", str(broken), "--no-limits"],
        ["report", str(broken)],
        ["validate", str(broken)],
        ["compare", str(good), str(broken)],
        ["verify", str(broken)],
        ["check", str(good), "--policy", str(broken)],
        ["attest", str(good), "--subject", str(broken), "--key", str(broken)],
        ["card", str(good), str(broken)],
        ["card", str(good), str(broken), "--check"],
        ["card", str(broken), str(good)],
        ["export", str(good), "--to", "cyclonedx", "--subject", str(broken)],
        ["export", str(good), "--to", "spdx", "--subject", str(broken)],
        ["export", str(good), "--to", "registry"],
        ["export", str(broken), "--to", "registry"],
    ):
        cli.run(command)
        captured = capsys.readouterr()
        assert_printable(captured.out)
        assert_printable(captured.err)


def test_runs_of_a_store() -> None:
    numbers: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "noise_multiplier": 1.0}
    for text in (HOSTILE, "a[/b]"):
        words: dict[str, Any] = {"id": text, "name": text, "finished": text, "versions": {}}
        run = RunRecord(**words, **numbers, damaged=False, holds=True)
        printed = RunList(pyaccount=1, kind="runs", runs=[run]).to_text()
        assert_printable(printed)
    # Text that looks like markup is part of the name.
    assert "a[/b]" in printed


def test_errors_as_text() -> None:
    problem = Problem("unknown-key", "unknown", ("a\x1b",), file="f\x1b\n.yaml", value="v\x1b\u202e")
    assert_printable(str(DocumentError([problem])))
    with pytest.raises(CertificateError) as caught:
        pyaccount.Certificate.from_json(json.dumps({**golden("deterministic"), "x\x1b\u202e": 1}))
    assert_printable(str(caught.value))


def test_pages_show_what_is_not_printable_and_data_keep_it() -> None:
    data = pyaccount.Certificate.from_json(json.dumps(golden("group-of-phases"))).data
    assert printable("ünï “x” 💥") == "ünï “x” 💥"
    changed = data.model_copy(update={"name": "a\u202e"})
    page = page_of(changed)
    assert page.name == "a\u202e"
    assert legible(page).name == "a\\u202e"
    assert legible(legible(page)) == legible(page)
    code = PageSection("code", "", (Code("a: 1\nb: \x1b\n", "yaml"),))
    assert legible(code).blocks == (Code("a: 1\nb: \\x1b\n", "yaml"),)
    # JSON contains the name unchanged, because it is data.
    assert json.loads(pyaccount.Certificate(changed).to_json())["name"] == "a\u202e"
