"""Random small documents of every kind that is certified by sampling, with targets near their exact (ε, δ)."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from exact_documents import Truth

Random = np.random.Generator
Mapping = dict[str, Any]

BANDED = ("identity", "banded-square-root", "toeplitz", "optimal-toeplitz")
#: How often the values of a grid are far apart, so that a claim that is true at one of them may be false at another.
WIDE = 0.4
#: How often a profile is listed that would otherwise be the usual one, and its values as shares of ε.
LISTED, SHARES = 0.6, (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.375, 1.5)
#: Matrices whose columns may be longer than the separation.
LONG = ("dense", "banded-inverse", "blt")


def rate(rng: Random, least: float = 1e-5) -> float:
    """Return a small, medium or large probability."""
    return float(
        rng.choice([10 ** rng.uniform(math.log10(least), -1.0), rng.uniform(0.05, 0.6), rng.uniform(0.5, 1.0)])
    )


def noise(rng: Random, largest: float = 4.0) -> float:
    return float(math.exp(rng.uniform(math.log(0.35), math.log(largest))))


def matrix(rng: Random, kind: str, n: int, bands: int, folder: Path) -> Mapping:
    """Return a matrix of this kind; a banded matrix has at most `bands` bands."""
    given: Mapping = {"kind": kind}
    if kind == "identity":
        return given
    bands = int(rng.integers(1, min(bands, n) + 1))
    if kind in ("banded-square-root", "optimal-toeplitz"):
        given["bands"] = bands
    elif kind == "toeplitz":
        given["coefficients"] = [1.0, *rng.uniform(0.05, 1.2, bands - 1).round(4).tolist()]
    elif kind == "banded-inverse":
        given["bands"] = int(rng.integers(1, n + 1))
    elif kind == "blt":
        count = int(rng.integers(1, 3))
        listed = {
            "scales": rng.uniform(0.05, 0.5, count).round(4).tolist(),
            "decays": rng.uniform(0.2, 0.95, count).round(4).tolist(),
        }
        given |= listed if rng.random() < 0.7 else {"buffers": 1}
    else:
        entries = np.tril(rng.uniform(0.0, 1.0, (n, n))) + np.diag(rng.uniform(0.3, 1.0, n))
        path = folder / f"matrix-{int(rng.integers(1 << 62)):x}.npy"
        np.save(path, entries)
        given["file"] = str(path)
    if rng.random() < 0.25:
        given["normalize"] = False
    return given


def body(rng: Random, n: int, sampler: Mapping, given: Mapping, p: float | None) -> Mapping:
    training: Mapping = {"iterations": n}
    if p is not None:
        training["sampling_probability"] = p
    return {"training": training, "sampler": sampler, "matrix": given, "noise": {"multiplier": noise(rng)}}


def separated(rng: Random, folder: Path, kinds: tuple[str, ...], n: int, *, users: bool = False) -> Mapping:
    """Return a body with b-min-sep sampling of records or of users."""
    b = int(rng.integers(1, n + 1))
    sampler: Mapping = {"kind": "b-min-sep", "min_separation": b, "start": str(rng.choice(["cold", "warm"]))}
    if users:
        sampler |= {"kind": "user-b-min-sep", "records_per_user": int(rng.integers(1, 3)), "attribution": "single"}
    return body(rng, n, sampler, matrix(rng, str(rng.choice(kinds)), n, b, folder), rate(rng))


def in_bins(rng: Random, folder: Path, n: int) -> Mapping:
    sampler = {"kind": "balls-in-bins", "bins": int(rng.integers(1, min(n, 3) + 1))}
    return body(rng, n, sampler, matrix(rng, str(rng.choice([*BANDED, *LONG])), n, n, folder), None)


def phases(rng: Random, folder: Path, n: int) -> Mapping:
    parts = int(rng.integers(1, n + 1))
    sampler = {"kind": "cyclic-poisson", "partitions": parts, "phase": "random"}
    return body(rng, n, sampler, matrix(rng, str(rng.choice(BANDED)), n, parts, folder), rate(rng))


def allocation(rng: Random, folder: Path, n: int) -> Mapping:
    """Return a random allocation with more than one participation; with only one no samples are drawn, unless it is replaced."""
    rounds = max(n, 3)
    sampler = {
        "kind": "random-allocation",
        "iterations_per_allocation": rounds,
        "participations": int(rng.integers(2, rounds)),
    }
    return body(rng, rounds, sampler, {"kind": "identity"}, None)


def poisson(rng: Random, folder: Path, n: int) -> Mapping:
    return body(rng, n, {"kind": "poisson"}, {"kind": "identity"}, rate(rng))


def poisson_under_matrix(rng: Random, folder: Path, n: int) -> Mapping:
    """Return Poisson sampling with a banded matrix, of any number of bands."""
    kind = str(rng.choice(["banded-square-root", "toeplitz"]))
    return body(rng, n, {"kind": "poisson"}, matrix(rng, kind, n, n, folder), rate(rng))


def grouped(rng: Random, folder: Path, n: int) -> Mapping:
    """Return a body with b-min-sep sampling, to be asked about a group."""
    made = separated(rng, folder, BANDED, min(n, 3))
    if made["sampler"]["min_separation"] == 1:
        made["sampler"]["min_separation"] = 2
    return made


def allocation_under_matrix(rng: Random, folder: Path, n: int) -> Mapping:
    """Return one random allocation, or two of them, with a banded matrix."""
    rounds, blocks = (int(rng.integers(2, 5)), 1) if rng.random() < 0.5 else (2, 2)
    taken = int(rng.integers(1, rounds))
    sampler = {"kind": "random-allocation", "iterations_per_allocation": rounds, "participations": taken}
    kind = str(rng.choice(["banded-square-root", "toeplitz"]))
    return body(rng, blocks * rounds, sampler, matrix(rng, kind, rounds, rounds, folder), None)


def truncated(rng: Random, folder: Path, n: int, *, bins: bool) -> Mapping:
    """Return a body with truncated batches and few records, so that all their counts can be enumerated."""
    made = in_bins(rng, folder, n) if bins else separated(rng, folder, BANDED, n)
    size = int(rng.integers(2, 7))
    made["training"]["dataset_size"] = size
    made["sampler"]["truncate_to"] = int(rng.integers(1, size))
    return made


def powered(rng: Random, folder: Path, n: int, *, blocks: bool) -> Mapping:
    """Return a body with b-min-sep sampling for which powers of the likelihood ratio can be sampled; with `blocks` also by blocks
    of rounds, whose bounds are useful if participations are rare.
    """
    b = 4 if blocks else int(rng.integers(2, 5))
    sampler = {"kind": "b-min-sep", "min_separation": b, "start": str(rng.choice(["cold", "warm"]))}
    p = 10 ** rng.uniform(-2.5, -0.7) if blocks else rate(rng, 1e-3)
    made = body(rng, n, sampler, matrix(rng, str(rng.choice(BANDED)), n, b, folder), float(p))
    made["noise"]["multiplier"] = float(math.exp(rng.uniform(math.log(0.5), math.log(3.0 if blocks else 6.0))))
    return made


def several(rng: Random, folder: Path, second: Callable[[], Mapping]) -> Mapping:
    """Return phases: a sampled one and `second`."""
    first = separated(rng, folder, BANDED, 2)
    if first["sampler"]["min_separation"] == 1 and first["matrix"]["kind"] == "identity":
        first["sampler"]["min_separation"] = 2
    return {"phases": [first, second()]}


#: The kinds of documents: for each name a function that draws a body, or several, for a number of rounds.
KINDS: dict[str, Callable[[Random, Path, int], Mapping]] = {
    "b-min-sep": lambda rng, folder, n: separated(rng, folder, BANDED, n),
    "b-min-sep, blt": lambda rng, folder, n: separated(rng, folder, ("blt",), n),
    "b-min-sep, banded-inverse": lambda rng, folder, n: separated(rng, folder, ("banded-inverse",), n),
    "b-min-sep, dense": lambda rng, folder, n: separated(rng, folder, ("dense",), n),
    "user-b-min-sep": lambda rng, folder, n: separated(rng, folder, BANDED, n, users=True),
    "user-b-min-sep, long columns": lambda rng, folder, n: separated(rng, folder, LONG, min(n, 3), users=True),
    "balls-in-bins": in_bins,
    "cyclic-poisson": phases,
    "random-allocation": allocation,
    "poisson": poisson,
    "poisson, matrix": poisson_under_matrix,
    "poisson, group": poisson_under_matrix,
    "b-min-sep, group": grouped,
    "random-allocation, matrix": allocation_under_matrix,
    "truncated b-min-sep": lambda rng, folder, n: truncated(rng, folder, 2, bins=False),
    "truncated bins": lambda rng, folder, n: truncated(rng, folder, min(n, 3), bins=True),
    "beside composed": lambda rng, folder, n: several(
        rng, folder, lambda: poisson(rng, folder, int(rng.integers(1, 3)))
    ),
    "two sampled": lambda rng, folder, n: several(rng, folder, lambda: in_bins(rng, folder, 2)),
    "b-min-sep, powers": lambda rng, folder, n: powered(rng, folder, min(n, 3), blocks=False),
    "b-min-sep, blocks": lambda rng, folder, n: powered(rng, folder, max(n, 3), blocks=True),
}


def draw(kind: str, seed: int, folder: Path) -> Truth | None:
    """Return the document of this kind and seed; None if no interesting target is possible for it."""
    rng = np.random.default_rng([seed, *kind.encode()])
    n = int(rng.choice([2, 3, 4], p=[0.35, 0.5, 0.15]))
    adjacency = "zero-out" if "truncated" in kind else str(rng.choice(["add-remove", "zero-out", "replace-one"]))
    made = KINDS[kind](rng, folder, n)
    accounting: Mapping = {"seed": int(rng.integers(1 << 32))}
    if kind in ("poisson", "random-allocation", "balls-in-bins", "truncated bins", "two sampled"):
        accounting["method"] = "monte-carlo"
    if rng.random() < 0.3:
        accounting["profile"] = [0.0, 0.25, 1.0, 2.0, 4.0, 8.0, 12.0]
    document: Mapping = {"pyaccount": 1, "name": f"{kind}, {seed}", "privacy": {"adjacency": adjacency}, **made}
    if kind.endswith("group"):
        document["privacy"]["group_size"] = 2
    # These choices have a generator of their own, so that everything else is drawn as without them.
    wide = np.random.default_rng([seed, 23, *kind.encode()])
    if wide.random() < WIDE:
        accounting["tolerance"] = float(wide.choice([0.1, 0.3, 0.5]))
    if kind == "random-allocation" and adjacency == "replace-one" and wide.random() < 0.5:
        made["sampler"]["participations"] = 1
    document["accounting"] = accounting
    truth = Truth(document, folder)
    found = target(rng, truth)
    if found is None:
        return None
    epsilon, delta = found
    if "profile" not in accounting and wide.random() < LISTED:
        # Points that are listed are estimated.
        accounting["profile"] = [round(share * epsilon, 4) for share in SHARES]
    blank = str(rng.choice(["multiplier", "epsilon", "delta", "none"], p=[0.3, 0.2, 0.15, 0.35]))
    if blank == "none":
        # Two thirds of the claims are true, and one third is false.
        delta = min(
            0.9, delta * float(rng.choice([rng.uniform(1.1, 1.5), rng.uniform(1.5, 6.0), rng.uniform(0.4, 0.95)]))
        )
    document["privacy"] |= {"epsilon": epsilon, "delta": delta}
    if blank == "multiplier":
        made.get("phases", [made])[0]["noise"]["multiplier"] = "solve"
    elif blank != "none":
        document["privacy"][blank] = "solve"
    return truth


def target(rng: Random, truth: Truth) -> tuple[float, float] | None:
    """Return an (ε, δ) on the exact curve, for a random small or large ε or δ."""

    def coarse(epsilon: float) -> float:
        return truth.largest(epsilon, agreement=0.01)

    most = coarse(0.0)
    if rng.random() < 0.5:
        epsilon = float(
            rng.choice(
                [0.0, rng.uniform(0.0, 1.0), rng.uniform(1.0, 5.0), rng.uniform(5.0, 12.0)], p=[0.1, 0.3, 0.4, 0.2]
            )
        )
        epsilon = round(epsilon, 3)
        delta = coarse(epsilon)
        if 1e-10 < delta < 0.5:
            return epsilon, float(f"{delta:.6g}")
    delta = 10 ** rng.uniform(-9.0, -2.0)
    if delta > 0.9 * most:
        delta = most * rng.uniform(0.001, 0.8)
    if delta < 1e-11:
        return None
    low, high = 0.0, 1.0
    while coarse(high) > delta:
        low, high = high, 2.0 * high
        if high > 16.0:
            return None
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if coarse(middle) > delta else (low, middle)
    epsilon = float(f"{high:.4g}")
    return epsilon, float(f"{coarse(epsilon):.6g}")
