"""The hooks of this repository, run by pre-commit itself from a clone of them; nothing is installed for them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from gate_tools import RUNS
from places import EXAMPLES, ROOT
from pre_commit.clientlib import load_manifest

from pyaccount.integrations.model_card import write_card

MANIFEST = ROOT / ".pre-commit-hooks.yaml"
HOOKS: list[dict[str, Any]] = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: the hooks are NOT run")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with the manifest alone, which is all that hooks of the system need."""
    folder = tmp_path_factory.mktemp("hooks")
    shutil.copy(MANIFEST, folder)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "hooks")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("privacy", "certificates"):
        (tmp_path / name).mkdir()
    shutil.copy(EXAMPLES / "cifar10-dp-sgd.yaml", tmp_path / "privacy" / "training.yaml")
    policy = (EXAMPLES / "policy.yaml").read_text(encoding="utf-8")
    # The golden certificates grow old.
    policy = re.sub("^  max_age: .*\n", "", policy, flags=re.MULTILINE)
    (tmp_path / "privacy" / "policy.yaml").write_text(policy, encoding="utf-8")
    shutil.copy(RUNS["deterministic"], tmp_path / "certificates" / "training.json")
    (tmp_path / "README.md").write_text("# Tiny\n", encoding="utf-8")
    write_card(tmp_path / "certificates" / "training.json", tmp_path / "README.md")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    return tmp_path


def tried(hooks: Path, project: Path) -> dict[str, str]:
    """Run all hooks as pre-commit does, with its files in a folder of their own. Return the result of each by its name."""
    git(project, "add", ".")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "try-repo", str(hooks), "--all-files", "--color", "never"],
        cwd=project,
        env={
            **os.environ,
            "PATH": path,
            "PRE_COMMIT_HOME": str(project.parent / "cache"),
            "GIT_CONFIG_GLOBAL": os.devnull,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    results = dict(re.findall(r"^(.+?)\.{3,}(?:\(.*\))?(Passed|Failed|Skipped)$", done.stdout, flags=re.MULTILINE))
    assert len(results) == len(HOOKS), done.stdout + done.stderr
    assert (done.returncode == 0) == ("Failed" not in results.values())
    return {hook["id"]: results[hook["name"]] for hook in HOOKS}


def test_pre_commit_reads_the_manifest() -> None:
    assert [hook["id"] for hook in load_manifest(MANIFEST)] == [
        "pyaccount-validate",
        "pyaccount-check",
        "pyaccount-card",
    ]
    for hook in HOOKS:
        assert hook["language"] == "system"
        assert hook["description"].endswith(".")


def test_the_hooks_pass(hooks: Path, project: Path) -> None:
    assert set(tried(hooks, project).values()) == {"Passed"}


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        (("privacy/training.yaml", "kind: poisson", "kind: posson"), {"pyaccount-validate"}),
        (("privacy/policy.yaml", "max_epsilon: 8", "max_epsilon: 1"), {"pyaccount-check"}),
        (("README.md", "adjacency: add-remove", "adjacency: zero-out"), {"pyaccount-card"}),
        (("certificates/training.json", '"holds": true', '"holds": false'), {"pyaccount-check", "pyaccount-card"}),
    ],
)
def test_each_hook_stops_a_commit(change: tuple[str, str, str], failing: set[str], hooks: Path, project: Path) -> None:
    file, old, new = change
    text = (project / file).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (project / file).write_text(text.replace(old, new), encoding="utf-8")
    results = tried(hooks, project)
    assert {name for name, result in results.items() if result == "Failed"} == failing
