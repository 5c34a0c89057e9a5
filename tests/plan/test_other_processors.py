"""A matrix is the same on every processor: what samples are drawn of follows from the document, to the last bit."""

import functools
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processors import PROCESSORS, environment

PROGRAM = """\
import hashlib, json, sys
from pathlib import Path
import numpy as np
from pyaccount.plan.protection import Protection
from pyaccount.document.loading import load
from pyaccount.plan.matrices import strategy

BASE = {"pyaccount": 1, "privacy": {"adjacency": "zero-out", "epsilon": 2, "delta": 1e-5}, "noise": {"multiplier": "solve"}}
SAMPLER = {"kind": "none", "max_participations": 3, "min_separation": 30}
MATRICES = {
    "square root": {"kind": "banded-square-root", "bands": 200},
    "given": {"kind": "toeplitz", "coefficients": [1.0, 0.3, 0.7, 0.1]},
    "inverse": {"kind": "banded-inverse", "bands": 7},
    "buffers": {"kind": "blt", "scales": [0.3, 0.2, 0.05], "decays": [0.3, 0.9, 0.999]},
    "file": {"kind": "dense", "file": sys.argv[1]},
}

def bits(*values):
    return [hashlib.sha256(np.array(value).tobytes()).hexdigest() for value in values]

found = {}
for name, matrix in MATRICES.items():
    raw = BASE | {"matrix": matrix, "sampler": SAMPLER, "training": {"iterations": 301}}
    document = load(raw | {"name": name}, folders=[Path(sys.argv[1]).parent])
    built = strategy(Protection.of(document).runs()[0])
    gram, longest = built.bin_gram(24)
    error = () if name == "file" else (built.error.mean_square, built.error.max_square)
    found[name] = bits(
        list(built.coefficients) if built.coefficients else built.dense,
        built.column_norm, built.normalization, longest, gram, *error, *built.sensitivity(7, 20), *built.sensitivity(30, 3),
    )
rows = np.random.default_rng(1).random((40, 301))
found["library"] = bits(rows @ rows.T)
print(json.dumps(found))
"""


@functools.cache
def built_on(processor: str | None, matrix: Path) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(matrix)]
    done = subprocess.run(command, env=environment(processor), capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("matrix") / "matrix.npy"
    np.save(path, np.tril(np.random.default_rng(3).random((301, 301))) + np.eye(301))
    return path


@pytest.fixture(scope="module")
def here(dense: Path) -> dict[str, Any]:
    return built_on(None, dense)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_matrices_are_the_same_to_the_last_bit(processor: str, dense: Path, here: dict[str, Any]) -> None:
    there = built_on(processor, dense)
    assert {name: bits for name, bits in there.items() if name != "library"} == {
        name: bits for name, bits in here.items() if name != "library"
    }


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other kernels are named for x86-64 only")
def test_a_library_is_not(dense: Path, here: dict[str, Any]) -> None:
    assert built_on("other kernels", dense)["library"] != here["library"]
