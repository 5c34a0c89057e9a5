"""What the page about publishing shows is run and is true: its commands, its Python, its card, its workflow and its names."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import EXAMPLES, ROOT
from warm_commands import COMMAND, COMMANDS_READ, warm

import pyaccount
from pyaccount.integrations.registry import SECTIONS, TO_FILL_IN

#: The second half of the page; tests/attestation runs the first one, about signatures.
PAGE = "".join((ROOT / "docs" / "publishing.md").read_text(encoding="utf-8").partition("\n## Model cards\n")[1:])
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with the certificate, the card and the model that the page names."""
    pyaccount.certify(EXAMPLES / "cifar10-dp-sgd.yaml").save(tmp_path / "training.cert.json")
    (tmp_path / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Tiny\n", encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    return tmp_path


def test_the_commands_run_and_the_card_is_the_one_shown(project: Path) -> None:
    with warm(COMMAND, *COMMANDS_READ) as client:
        path = os.pathsep.join([str(client.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
        for text in blocks("sh"):
            for line in text.replace("\\\n", "").splitlines():
                done = subprocess.run(
                    ["bash", "-e", "-c", line],
                    cwd=project,
                    env={**os.environ, "PATH": path},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert done.returncode == 0, (line, done.stderr)
    assert {"model.cdx.json", "model.spdx.json", "deployment.yaml"} <= {path.name for path in project.iterdir()}
    # Everything that the AI profile requires was given.
    assert '"ai"' in (project / "model.spdx.json").read_text(encoding="utf-8")
    shown = blocks("text")[0].splitlines()
    written = (project / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(shown) == len(written[: written.index("# Tiny")])
    for line, real in zip(shown, written, strict=False):
        assert real.startswith(line.removesuffix("…")), line
        assert line.endswith("…") or line == real


# The second snippet starts MLflow, as test_integrations.py does.
@pytest.mark.nightly(but=["0"])
@pytest.mark.parametrize("number", range(2))
def test_the_python_runs(number: int, project: Path) -> None:
    store = {"MLFLOW_TRACKING_URI": (project / "runs").as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}
    assert len(blocks("python")) == 2
    done = subprocess.run(
        [sys.executable, "-c", blocks("python")[number]],
        cwd=project,
        env={**os.environ, **store},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if number == 0:
        assert float(done.stdout) == pyaccount.Certificate.load(project / "training.cert.json").epsilon


def test_the_inputs_and_outputs_of_the_action_are_named() -> None:
    section = PAGE.partition("## A GitHub action")[2].partition("\n## ")[0]
    for name in (*ACTION["inputs"], *ACTION["outputs"]):
        assert f"`{name}`" in section


def test_the_workflow_gives_the_action_inputs_that_it_has() -> None:
    workflow: dict[str, Any] = yaml.safe_load((EXAMPLES / "ci" / "github-action.yaml").read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    (step,) = [one for one in job["steps"] if one.get("id") == "privacy"]
    assert step["with"].keys() <= ACTION["inputs"].keys()
    used = set(re.findall(r"steps\.privacy\.outputs\.([\w-]+)", json.dumps(workflow)))
    assert used <= ACTION["outputs"].keys()
    assert all("run" not in one for one in job["steps"])


def test_the_hooks_of_the_page_exist() -> None:
    hooks = {one["id"] for one in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    (shown,) = [yaml.safe_load(text) for text in blocks("text") if text.startswith("repos:")]
    assert {one["id"] for one in shown["repos"][0]["hooks"]} == hooks


def test_the_table_of_the_registry_names_its_sections() -> None:
    section = PAGE.partition("## The registry of deployments")[2].partition("\n## ")[0]
    for name in SECTIONS:
        assert f"`{name}" in section
    assert {name for name in SECTIONS if name in TO_FILL_IN} == set(SECTIONS) - {"privacy_loss"}


def test_the_image_of_the_page_is_the_one_of_the_job() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    named = set(
        re.findall(
            r"pyaccount:\d+\.\d+\.\d+", PAGE + (EXAMPLES / "integrations" / "kubernetes.yaml").read_text("utf-8")
        )
    )
    assert named == set(re.findall(r"pyaccount:\d+\.\d+\.\d+", text))
    (base,) = set(re.findall(r"`(python:[\w.-]+)`", PAGE))
    assert f"FROM {base}\n" in text
