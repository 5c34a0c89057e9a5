"""Runs the commands of the workflow, the hooks and the page about gates, in a project with the layout that they expect."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import EXAMPLES, ROOT
from warm_commands import COMMAND, COMMANDS_READ, warm

import pyaccount
from pyaccount.document.policy import Limits

WORKFLOW = EXAMPLES / "ci" / "github-workflow.yaml"
HOOKS = EXAMPLES / "ci" / "pre-commit-config.yaml"
POLICY = EXAMPLES / "policy.yaml"
Shell = Callable[[str, Path], subprocess.CompletedProcess[str]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with a document, a policy and a certificate."""
    for folder in ("privacy", "certificates"):
        (tmp_path / folder).mkdir()
    document = tmp_path / "privacy" / "training.yaml"
    shutil.copy(EXAMPLES / "cifar10-dp-sgd.yaml", document)
    shutil.copy(POLICY, tmp_path / "privacy" / "policy.yaml")
    pyaccount.certify(document).save(tmp_path / "certificates" / "training.json")
    return tmp_path


def shell(command: str, folder: Path, installed: Path = Path(sys.executable)) -> subprocess.CompletedProcess[str]:
    """Run a command as a workflow's runner does: with bash, until the first failure, with the installed command on the path."""
    path = os.pathsep.join([str(installed.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def started() -> Iterator[Shell]:
    """Return the same shell with a faster, forked command on the path. Commands that pass are run with the installed one."""
    with warm(COMMAND, *COMMANDS_READ) as client:
        yield lambda command, folder: shell(command, folder, client)


def steps() -> list[str]:
    """Return the commands of the workflow, except for the one that installs pyaccount, which is installed here."""
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    runs = {step["name"]: step["run"] for step in job["steps"] if "run" in step}
    # The command installs a pinned version, not a name from the public index.
    assert runs.pop("install") == "pip install --require-hashes -r privacy/requirements.txt"
    return list(runs.values())


def hooks() -> list[dict[str, Any]]:
    (repository,) = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))["repos"]
    found: list[dict[str, Any]] = repository["hooks"]
    return found


def hook_command(hook: dict[str, Any], project: Path) -> str:
    """Return the command that pre-commit runs: the entry with the names of the files that match."""
    files = sorted(str(path.relative_to(project)) for path in project.rglob("*") if path.is_file())
    matching = [name for name in files if re.search(hook["files"], name)]
    assert matching, hook["id"]
    return f"{hook['entry']} {shlex.join(matching)}"


def test_the_workflow_and_the_hooks_pass(project: Path) -> None:
    commands = [*steps(), *(hook_command(hook, project) for hook in hooks())]
    assert len(commands) == 6
    for command in commands:
        done = shell(command, project)
        assert done.returncode == 0, (command, done.stdout, done.stderr)


def test_a_changed_certificate_stops_both(project: Path, started: Shell) -> None:
    certificate = project / "certificates" / "training.json"
    text = certificate.read_text(encoding="utf-8")
    changed = text.replace('"iterations": 2000', '"iterations": 200', 1)
    assert changed != text
    certificate.write_text(changed, encoding="utf-8")
    assert [started(command, project).returncode for command in steps()] == [0, 1, 1, 1]
    assert [started(hook_command(hook, project), project).returncode for hook in hooks()] == [0, 1]


def test_a_missing_certificate_stops_the_workflow(project: Path, started: Shell) -> None:
    (project / "certificates" / "training.json").unlink()
    assert [started(command, project).returncode for command in steps()] == [0, 2, 2, 2]


def test_each_document_needs_its_own_certificate(project: Path, started: Shell) -> None:
    validate, each, policy, _ = steps()
    changed = project / "privacy" / "training.yaml"
    text = changed.read_text(encoding="utf-8")
    changed.write_text(text.replace("iterations: 2000", "iterations: 4000"), encoding="utf-8")
    found = [started(command, project) for command in (validate, each, policy)]
    assert [done.returncode for done in found] == [0, 1, 0]
    assert "privacy/training.yaml" in found[1].stdout
    # Comments and formatting do not change the meaning.
    changed.write_text("# a comment\n" + text.replace("iterations: 2000", "iterations: 2_000"), encoding="utf-8")
    assert started(each, project).returncode == 0
    # In alphabetical order, the last one has none.
    shutil.copy(changed, project / "privacy" / "zebra.yaml")
    assert started(each, project).returncode == 2
    shutil.copy(project / "certificates" / "training.json", project / "certificates" / "zebra.json")
    assert started(each, project).returncode == 0


def test_the_commands_of_the_page_run(project: Path, started: Shell) -> None:
    page = (ROOT / "docs" / "gates.md").read_text(encoding="utf-8")
    commands = [line for block in re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL) for line in block.splitlines()]
    assert len(commands) == 5
    certificates = project / "certificates"
    shutil.copy(certificates / "training.json", certificates / "from-elsewhere.json")
    for command in commands:
        done = started(command, project)
        assert done.returncode == 0, (command, done.stdout, done.stderr)


def test_the_python_of_the_page_runs(project: Path) -> None:
    page = (ROOT / "docs" / "gates.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    for expected, text in ((0, script), (1, script.replace("max_epsilon=8", "max_epsilon=1"))):
        done = subprocess.run([sys.executable, "-c", text], cwd=project, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (expected, "")


def test_the_page_names_every_limit() -> None:
    page = (ROOT / "docs" / "gates.md").read_text(encoding="utf-8")
    for limit in Limits.model_fields:
        assert f"`{limit}`" in page
