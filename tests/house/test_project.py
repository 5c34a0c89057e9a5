"""Tests of the project's own files: their versions are right, and the commands of workflows can be run."""

import base64
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from gate_tools import golden
from places import ROOT

from pyaccount import _core
from pyaccount.errors import DISTRIBUTION, EXTRAS

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", ())]


def test_the_version_stands_in_one_place() -> None:
    number = release().version()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" in project["dynamic"]
    assert _core.__version__ == number
    assert str(loaded(ROOT / "CITATION.cff")["version"]) == number
    for manifest in (ROOT / "rust").glob("*/Cargo.toml"):
        assert tomllib.loads(manifest.read_text(encoding="utf-8"))["package"]["version"] == {"workspace": True}


def test_the_citation_names_nobody_who_is_not() -> None:
    found = loaded(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors", "license"} <= set(found)
    assert found["authors"] == [{"name": "The pyaccount contributors"}]


def test_what_is_missing_is_an_extra_of_the_distribution() -> None:
    """The project pyaccount on the public index is unrelated: nothing tells users to install that, or an extra of it."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert project["name"] == DISTRIBUTION
    named = set()
    for file in filter(None, files.split("\0")):
        if Path(file).suffix not in (".py", ".md", ".yaml", ".yml", ".toml") or file in (
            "CHANGELOG.md",
            "tests/house/test_project.py",
        ):
            continue
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not re.search(r"pip install \S*pyaccount\b(?!-dp)|pyaccount\[[a-z]", text), file
        for listed in re.findall(r"pyaccount-dp\[([a-z,-]+)\]", text):
            assert set(listed.split(",")) <= set(extras), (file, listed)
        named |= set(re.findall(r'MissingExtraError\.of\(\s*"([^"]+)"', text))
        assert file == "pyaccount/errors.py" or "MissingExtraError(" not in text, (
            f"{file}: say it by MissingExtraError.of"
        )
    assert named <= set(EXTRAS)
    for package, extra in EXTRAS.items():
        assert package in [re.split(r"[\[<>=~]", one)[0] for one in extras[extra]]


def test_the_oldest_dependencies_are_those_that_are_tested() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    locked = dict(
        re.findall(r"^([\w-]+)==([\w.]+)", (ROOT / "tests" / "lowest.lock").read_text(encoding="utf-8"), re.MULTILINE)
    )
    for line in needed:
        name, _, oldest = line.partition(",")[0].partition(">=")
        # 3.0 is 3.0.0.
        assert re.fullmatch(rf"{re.escape(oldest)}(\.0)*", locked[name]), line
    assert set(needed) <= set((ROOT / "tests" / "requirements.in").read_text(encoding="utf-8").splitlines())


def test_a_release_needs_its_tag_and_its_section() -> None:
    tool = release()
    tool.check_tag(f"v{tool.version()}")
    for tag in ("v9.9.9", tool.version(), ""):
        with pytest.raises(SystemExit, match=r"Cargo\.toml says"):
            tool.check_tag(tag)
    text = "# Changelog\n\n## Unreleased\n\n- a\n\n## 0.2.0 (2027-01-31)\n\n- b\n\n### Fixed\n\n- c\n\n## 0.1.0\n\n"
    assert tool.notes(text, "0.2.0") == "- b\n\n### Fixed\n\n- c\n"
    for number in ("0.1.0", "0.2", "0.3.0"):
        with pytest.raises(SystemExit, match="no section"):
            tool.notes(text, number)


def test_what_users_see_is_in_the_changelog() -> None:
    tool = release()
    tool.check_changed([])
    tool.check_changed(["tests/a.py", "docs/b.md"])
    tool.check_changed(["pyaccount/a.py", "CHANGELOG.md"])
    for name in ("pyaccount/a.py", "rust/core/src/lib.rs", "schemas/a.json"):
        with pytest.raises(SystemExit, match=r"CHANGELOG\.md was not"):
            tool.check_changed([name])


def test_the_release_tool_runs() -> None:
    tool = [sys.executable, str(ROOT / ".ci" / "release.py")]
    done = subprocess.run([*tool, "version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == release().version()
    assert subprocess.run([*tool, "tag", "v9"], capture_output=True, check=False).returncode == 1
    assert subprocess.run(tool, capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_careful(path: Path) -> None:
    """Permissions are read-only by default, checkouts keep no credentials, and no foreign text is inserted in a command."""
    workflow = loaded(path)
    assert workflow["permissions"] == {"contents": "read"}
    for step in steps(workflow):
        if str(step.get("uses", "")).startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        if "run" in step:
            named = re.findall(r"\$\{\{(.*?)\}\}", step["run"])
            assert named == [], step


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_commands_of_workflows_are_valid_and_their_files_exist(path: Path) -> None:
    for step in steps(loaded(path)):
        if "run" not in step:
            continue
        assert subprocess.run(["bash", "-n", "-c", step["run"]], check=False).returncode == 0, step
        for file in re.findall(r"(?:^|\s)((?:\.ci|tests|benchmarks|examples)/[\w./-]+)", step["run"]):
            assert (ROOT / file).exists(), file
        for target in re.findall(r"^make (\w+)$", step["run"], flags=re.MULTILINE):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_templates_and_updates_are_complete() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        if path.name != "config.yml":
            assert {"name", "description", "body"} <= set(loaded(path))
    ecosystems = {one["package-ecosystem"] for one in loaded(ROOT / ".github" / "dependabot.yml")["updates"]}
    assert ecosystems == {"cargo", "pip", "docker", "github-actions"}
    licences = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["licenses"]["allow"]
    assert not any(word in licence for licence in licences for word in ("GPL", "AGPL"))


def test_the_advisorys_script_finds_what_a_version_made(tmp_path: Path) -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    certificate = golden("deterministic")
    assert certificate["versions"]["pyaccount"] == "0.1.0"
    newer = {**certificate, "versions": {**certificate["versions"], "pyaccount": "0.2.0"}}
    (tmp_path / "below").mkdir()
    payload = base64.b64encode(json.dumps({"predicate": certificate}).encode()).decode()
    for name, content in {
        "a.json": certificate,
        "below/b.json": certificate,
        "c.json": newer,
        "d.json": {"payload": payload},
        "e.json": [1],
        "f.json": {"payload": 3},
    }.items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "g.json").write_text("no JSON", encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["a.json", "below/b.json", "d.json"]
