"""The distribution is called pyaccount-dp, and its extras are found in what is installed: in an empty environment, with pip.

The index is a folder. It has a wheel with the metadata of the installed distribution, and empty wheels of what that requires, so
that nothing is fetched.
"""

import base64
import hashlib
import re
import subprocess
import sys
import venv
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

from pyaccount.errors import DISTRIBUTION, EXTRAS


def wheel(folder: Path, name: str, version: str, metadata: str, files: dict[str, str]) -> Path:
    """Write a wheel of pure Python files."""
    stem = f"{re.sub(r'[-_.]+', '_', name)}-{version}"
    info = f"{stem}.dist-info"
    tagged = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = files | {f"{info}/METADATA": metadata, f"{info}/WHEEL": tagged}
    rows = []
    for place, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{place},sha256={digest},{len(text.encode())}")
    path = folder / f"{stem}-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for place, text in {**files, f"{info}/RECORD": "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"}.items():
            archive.writestr(place, text)
    return path


def required(metadata: str) -> dict[str, tuple[str, str | None]]:
    """Return what the metadata require, extras included: the name, a version that is allowed, and an extra of it."""
    found = {}
    for line in Parser().parsestr(metadata).get_all("Requires-Dist") or []:
        read = re.match(r"([\w.-]+)(?:\[([\w-]+)\])?\s*(?:\(?>=([\d.]+))?", line)
        assert read is not None
        name, extra, least = read.groups()
        found[name] = (least or "1.0", extra)
    return found


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    metadata = distribution(DISTRIBUTION).read_text("METADATA")
    assert metadata is not None
    for name, (version, extra) in required(metadata).items():
        provides = "" if extra is None else f"Provides-Extra: {extra}\n"
        wheel(folder, name, version, f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{provides}", {})
    said = "'installed'"
    wheel(
        folder,
        DISTRIBUTION,
        distribution(DISTRIBUTION).version,
        metadata,
        {"pyaccount/__init__.py": f"said = {said}\n"},
    )
    return folder


def test_extras_are_installed_by_the_name_that_messages_say(index: Path, tmp_path: Path) -> None:
    # The pip of the tests installs there: an environment with a pip of its own takes seconds to make.
    venv.create(tmp_path / "empty", with_pip=False)
    python = tmp_path / "empty" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    pip = [sys.executable, "-I", "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    pip += ["install", "--quiet", "--no-index"]
    subprocess.run([*pip, "--find-links", str(index), DISTRIBUTION], check=True)
    ask = "import importlib.metadata as m, pyaccount; print(pyaccount.said, *sorted(d.name for d in m.distributions()))"
    listed = subprocess.run(
        [str(python), "-I", "-c", ask], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout.split()
    assert listed[0] == "installed"
    assert {DISTRIBUTION, "numpy", "click"} <= set(listed)
    assert not set(EXTRAS) & set(listed)
    # Once the distribution is installed, no index needs to have it.
    own = next(index.glob("pyaccount_dp-*.whl"))
    own.rename(tmp_path / own.name)
    try:
        extras = ",".join(sorted(EXTRAS.values()))
        subprocess.run([*pip, "--find-links", str(index), f"{DISTRIBUTION}[{extras}]"], check=True)
    finally:
        (tmp_path / own.name).rename(own)
    listed = subprocess.run(
        [str(python), "-I", "-c", ask], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout.split()
    assert set(EXTRAS) <= set(listed)
