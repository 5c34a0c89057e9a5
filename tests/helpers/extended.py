"""pyaccount with a sampler more: a copy of the package to which are done the two things that add one to the document room.

Nothing of it is imported by the tests themselves, in whose process the sampler never exists.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyaccount

PACKAGE = Path(pyaccount.__file__).parent
#: What a sampler's own module is, and how the list of samplers names it.
MODULE = Path(__file__).parent / "coin_flips.py"
IMPORTED = "from pyaccount.document.samplers.coin_flips import CoinFlips\n"
LISTED = "    CoinFlips,\n"


def linked(source: Path, target: Path) -> None:
    """A folder with links to all that is in another, so that single files can be replaced."""
    target.mkdir()
    for path in source.iterdir():
        if path.name != "__pycache__":
            (target / path.name).symlink_to(path)


def own(source: Path, target: Path, *names: str) -> Path:
    """A folder in `target`, with links in it, instead of the link to the one in `source`."""
    for name in names:
        source, target = source / name, target / name
        target.unlink()
        linked(source, target)
    return target


def extended(folder: Path) -> Path:
    """Where `import pyaccount` finds a package with the sampler `coin-flips`."""
    copy = folder / "pyaccount"
    linked(PACKAGE, copy)
    samplers = own(PACKAGE, copy, "document", "samplers")
    shutil.copy(MODULE, samplers / MODULE.name)
    text = (PACKAGE / "document" / "samplers" / "__init__.py").read_text(encoding="utf-8")
    before, listed = "from pyaccount.document.samplers.cyclic_poisson", "    Deterministic,\n)"
    assert text.count(before) == 1
    assert text.count(listed) == 1
    init = samplers / "__init__.py"
    init.unlink()
    init.write_text(text.replace(before, IMPORTED + before).replace(listed, LISTED + listed), encoding="utf-8")
    return folder


def run_in(folder: Path, program: str, *arguments: str) -> str:
    """What a program prints that imports the package in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout
