"""pyaccount with one more sampler: a copy of the package to which a sampler was added, by two changes in each room.

The tests themselves do not import the copy, so the sampler never exists in their process.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyaccount

PACKAGE = Path(pyaccount.__file__).parent
#: The modules of a sampler.
MODULE, PLAN, BATCHES = (
    Path(__file__).parent / name for name in ("coin_flips.py", "coin_flips_plan.py", "coin_flips_batches.py")
)
#: For each room, the texts to insert in its list of samplers, and the texts before which they are inserted.
LISTED = {
    "document": (
        ("from pyaccount.document.samplers.coin_flips import CoinFlips\n", "from pyaccount.document.samplers.poisson"),
        ("    CoinFlips,\n", "    Deterministic,\n)"),
    ),
    "plan": (
        ("    coin_flips,\n", "    cyclic_poisson,\n"),
        ('    "coin-flips": coin_flips.CoinFlipsPlan,\n', '    "none": '),
    ),
    "training": (
        ("from pyaccount.training.batches import coin_flips\n", "from pyaccount.training.batches.base import Batch,"),
        ('    "coin-flips": coin_flips.CoinFlipsBatches,\n', '    "none": '),
    ),
}
#: The folder of each room that has a module for each sampler, and the module that is copied there.
FOLDERS = {"document": ("samplers", MODULE), "plan": ("samplers", PLAN), "training": ("batches", BATCHES)}


def linked(source: Path, target: Path) -> None:
    """Make a folder with links to everything in another, so that single files can be replaced."""
    target.mkdir()
    for path in source.iterdir():
        if path.name != "__pycache__":
            (target / path.name).symlink_to(path)


def own(source: Path, target: Path, *names: str) -> Path:
    """Replace the link to a folder in `target` by a folder of links, and return it."""
    for name in names:
        source, target = source / name, target / name
        target.unlink()
        linked(source, target)
    return target


def extended(folder: Path) -> Path:
    """Return a folder from which `import pyaccount` imports a package with the sampler `coin-flips`."""
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
    """Return what a program prints that imports the package from a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout
