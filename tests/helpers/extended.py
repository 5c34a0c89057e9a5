"""pyaccount with a sampler more: a copy of the package to which are done the things that add one, two for each room.

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
#: A sampler's modules.
MODULE, PLAN, BATCHES = (
    Path(__file__).parent / name for name in ("coin_flips.py", "coin_flips_plan.py", "coin_flips_batches.py")
)
#: What is written before what of each room's list, to name the module and to give it its place.
LISTED = {
    "document": (
        (
            "from pyaccount.document.samplers.coin_flips import CoinFlips\n",
            "from pyaccount.document.samplers.cyclic_poisson",
        ),
        ("    CoinFlips,\n", "    Deterministic,\n)"),
    ),
    "plan": (("    coin_flips,\n", "    cyclic_poisson,\n"), ('    "coin-flips": coin_flips.PLAN,\n', '    "none": ')),
    "training": (
        ("    coin_flips,\n", "    cyclic_poisson,\n"),
        ('    "coin-flips": coin_flips.CoinFlipsBatches,\n', '    "none": '),
    ),
}
#: The folder of each room that has a module for each sampler, and the module that is copied there.
FOLDERS = {"document": ("samplers", MODULE), "plan": ("samplers", PLAN), "training": ("batches", BATCHES)}


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
    for room, (name, module) in FOLDERS.items():
        samplers = own(PACKAGE, copy, room, name)
        shutil.copy(module, samplers / MODULE.name)
        init = samplers / "__init__.py"
        text = init.read_text(encoding="utf-8")
        init.unlink()
        for written, before in LISTED[room]:
            assert text.count(before) == 1
            text = text.replace(before, written + before)
        init.write_text(text, encoding="utf-8")
    return folder


def run_in(folder: Path, program: str, *arguments: str) -> str:
    """What a program prints that imports the package in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout
