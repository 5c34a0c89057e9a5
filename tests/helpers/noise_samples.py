"""Documents, keys and matrices for the tests of a run's noise."""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from plain_documents import document
from scipy import linalg  # type: ignore[import-untyped]

import pyaccount
from pyaccount.plan.protection import Protection
from pyaccount.strategies.toeplitz import optimal_toeplitz
from pyaccount.training.key import RunKey
from pyaccount.training.noise import Noise, noise_of

KEY = RunKey(bytes(range(32)))
ROUNDS = 24


def nonces(name: str, count: int = 2000) -> list[bytes]:
    """Return nonces that are the same in every run of the tests."""
    return [hashlib.blake2b(f"{name} {number}".encode(), digest_size=32).digest() for number in range(count)]


NONCES = nonces("usual")

Matrix = NDArray[np.float64]

#: Documents by name, one for each kind of matrix.
SECTIONS: dict[str, dict[str, Any]] = {
    "identity": {"kind": "identity"},
    "banded-square-root": {"kind": "banded-square-root", "bands": 6},
    "optimal-toeplitz": {"kind": "optimal-toeplitz", "bands": 5},
    "toeplitz": {"kind": "toeplitz", "coefficients": [2.0, 1.0, 0.5, 0.0, 0.25], "normalize": False},
    "toeplitz-normalized": {"kind": "toeplitz", "coefficients": [2.0, 1.0, 0.5, 0.0, 0.25]},
    "banded-inverse": {"kind": "banded-inverse", "bands": 4},
    "inverse-listed": {"kind": "banded-inverse", "inverse_coefficients": [0.5, -0.2, 0.0, -0.1], "normalize": False},
    "blt": {"kind": "blt", "scales": [0.3, 0.2, 0.05], "decays": [0.9, 0.5, 1.0]},
    "blt-plain": {"kind": "blt", "scales": [0.3], "decays": [0.7], "normalize": False},
    "tree": {"kind": "tree"},
    "tree-efficient": {"kind": "tree", "estimation": "efficient", "restart_every": 11},
    "tree-plain": {"kind": "tree", "estimation": "efficient", "normalize": False},
    "dense": {"kind": "dense", "file": "matrix.npy"},
}


def described(name: str, folder: Path, **changes: Any) -> Any:
    """Return a document with a matrix; it is read from a file, so that a dense matrix is found beside it."""
    np.save(folder / "matrix.npy", dense())
    changes = {"matrix": {**SECTIONS[name], **changes.pop("matrix", {})}, **changes}
    if changes["matrix"]["kind"] == "dense":
        changes["matrix"]["file"] = str(folder / "matrix.npy")
    return pyaccount.load(document(**{"training__iterations": ROUNDS, **changes}), folders=[folder])


def noise(name: str, folder: Path, *, phase: int = 0, clip_norm: float = 1.0, **changes: Any) -> Noise:
    """Return the noise of such a document."""
    read = described(name, folder, **changes)
    return noise_of(Protection.of(read).runs()[0], KEY, phase=phase, clip_norm=clip_norm)


def dense() -> Matrix:
    """Return a lower-triangular matrix without further structure."""
    return np.tril(np.random.default_rng(3).uniform(0.0, 0.2, (ROUNDS, ROUNDS))) + np.diag(
        np.linspace(1.0, 2.0, ROUNDS)
    )


def expected(name: str) -> Matrix:
    """Return C, computed from its definition."""
    section = SECTIONS[name]
    unit = np.eye(ROUNDS)
    if section["kind"] == "identity":
        return unit
    if section["kind"] == "tree":
        return tree(section)
    if section["kind"] == "dense":
        found = dense()
    elif section["kind"] == "banded-inverse":
        # (1 − x)^½ has the coefficients −C(2j, j)/(4^j (2j − 1)).
        root = [-math.comb(2 * j, j) / (4**j * (2 * j - 1)) for j in range(section.get("bands", 0))]
        inverse = toeplitz(section.get("inverse_coefficients", root))
        found = linalg.solve_triangular(inverse, unit, lower=True)
    elif section["kind"] == "blt":
        pairs = list(zip(section["scales"], section["decays"], strict=True))
        found = toeplitz([1.0, *(sum(w * d ** (i - 1) for w, d in pairs) for i in range(1, ROUNDS))])
    elif section["kind"] == "banded-square-root":
        found = toeplitz([math.comb(2 * j, j) / 4**j for j in range(section["bands"])])
    elif section["kind"] == "optimal-toeplitz":
        found = toeplitz(optimal_toeplitz(ROUNDS, section["bands"]))
    else:
        found = toeplitz(section["coefficients"])
    return found / np.linalg.norm(found, axis=0).max() if section.get("normalize", True) else found


def tree(section: dict[str, Any]) -> Matrix:
    """Return the C of a tree: of L the lower-triangular root of the covariance of the estimates, L⁻¹ times prefix sums.

    The estimates are least squares on the blocks of 2^h rounds that are complete, or on the largest ones that make up the
    rounds so far. A record of the first round is in the most nodes.
    """
    restart = section.get("restart_every", ROUNDS)
    nodes = [
        (first, first + size)
        for start in range(0, ROUNDS, restart)
        for size in (1 << h for h in range(restart.bit_length()))
        for first in range(start, start + restart - size + 1, size)
        if first + size <= ROUNDS
    ]
    encoder = np.array([[float(first <= t < end) for t in range(ROUNDS)] for first, end in nodes])
    weights = np.zeros((ROUNDS, len(nodes)))
    for t in range(ROUNDS):
        known = [index for index, (_, end) in enumerate(nodes) if end <= t + 1]
        if section.get("estimation") != "efficient":
            left = t + 1
            while left:
                used = max((index for index in known if nodes[index][1] == left), key=lambda i: left - nodes[i][0])
                weights[t, used], left = 1.0, nodes[used][0]
        else:
            rows = encoder[known][:, : t + 1]
            weights[t, known] = np.linalg.solve(rows.T @ rows, np.ones(t + 1)) @ rows.T
    root = np.linalg.cholesky(weights @ weights.T)
    c = np.linalg.solve(root, np.tril(np.ones((ROUNDS, ROUNDS))))
    return np.tril(c) / (np.sqrt(encoder.sum(axis=0).max()) if section.get("normalize", True) else 1.0)


def toeplitz(column: Any) -> Matrix:
    """Return the lower-triangular Toeplitz matrix with this first column, which is filled up with zeros."""
    return np.asarray(linalg.toeplitz([*column, *[0.0] * (ROUNDS - len(column))], np.zeros(ROUNDS)))


def rows(
    drawn: Noise,
    size: int,
    *,
    name: str = "w",
    dtype: Any = np.float64,
    rounds: int | None = None,
    by: list[bytes] = NONCES,
) -> Matrix:
    """Return the rows of one parameter with this size, drawn with these nonces."""
    stream = drawn.stream({name: (size,)}, dtype=dtype)
    return np.array([stream.next(by[t])[name] for t in range(drawn.rounds if rounds is None else rounds)])
