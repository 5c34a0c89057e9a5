"""The page about attestations: its commands and its Python run, in the order in which they stand."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gate_tools import golden, save
from places import ROOT

#: The first half of the page, about signatures.
PAGE = (ROOT / "docs" / "publishing.md").read_text(encoding="utf-8").partition("\n## Model cards\n")[0]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="OpenSSL's command is not installed")
def test_the_page_runs(tmp_path: Path) -> None:
    save(tmp_path, golden("deterministic"), "training.cert.json")
    (tmp_path / "model.safetensors").write_bytes(b"weights" * 1000)
    (tmp_path / "policy.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    commands, elsewhere = blocks("sh")
    assert all(
        line.startswith(("#", "cosign ", "gh ", "jq ", "pyaccount check ", "    --")) or not line
        for line in elsewhere.split("\n")
    )
    for command in commands.splitlines():
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    for script in blocks("python"):
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (script, done.stderr)
    assert done.stdout == "release.pem\n"
    assert (tmp_path / "made-by-the-library.pem").stat().st_mode & 0o077 == 0
