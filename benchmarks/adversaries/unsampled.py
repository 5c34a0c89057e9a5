"""Runs without sampling: Gaussian and Laplace noise, and every matrix, of which the worst pattern is searched for."""

from __future__ import annotations

import atexit
import itertools
import math
import tempfile
from pathlib import Path

import numpy as np

import pyaccount
from adversaries.cells import Sums, gaussian, laplace
from adversaries.component import Body, Builder, Component, Setting, attained
from adversaries.laws import Law, power, products
from adversaries.training import run


def ordered(at: Setting) -> Component:
    """Return a run without sampling: Gaussian noise."""
    rounds, noise = at.rng.randint(1, 12), at.number(0.5, 8.0)
    most, apart = at.rng.randint(1, rounds), at.rng.randint(1, 3)
    sampler: Body = {"kind": "none"}
    if at.rng.random() < 0.6:
        sampler |= {"max_participations": most, "min_separation": apart}
    taken = min(most, -(-rounds // apart)) if len(sampler) > 1 else rounds
    body = run(sampler, {"iterations": rounds}, {"multiplier": noise})
    nothing: Sums = {(0.0,): 1.0}

    def moved(size: float) -> Law:
        if at.replaced:
            return gaussian({(size,): 1.0}, {(-size,): 1.0}, noise, nothing)
        return gaussian({(size,): 1.0}, nothing, noise)

    return attained(body, moved(at.group * math.sqrt(taken)), power(moved(float(at.group)), taken))


def ordered_laplace(at: Setting) -> Component:
    """Return numbers with Laplace noise, the record in every one or in some."""
    rounds, noise = at.rng.randint(1, 6), at.number(0.5, 8.0)
    taken = at.rng.randint(1, rounds)
    sampler = {"kind": "none", "max_participations": taken}
    move = at.group * (2.0 if at.replaced else 1.0)
    scales = [at.number(0.5, 8.0) for _ in range(rounds)] if at.rng.random() < 0.3 else [noise] * rounds
    given: Body = {"kind": "laplace", "multiplier": scales[0] if len(set(scales)) == 1 else {"schedule": scales}}
    laws = [laplace({(move,): 1.0}, {(0.0,): 1.0}, scale) for scale in sorted(scales)[:taken]]
    return attained(run(sampler, {"iterations": rounds}, given), products(laws))


def matrix_of(at: Setting, kind: str, rounds: int) -> tuple[Body, np.ndarray]:
    """Return a matrix of a document, and its entries before they are scaled."""
    first = np.zeros(rounds)
    given: Body = {"kind": kind}
    if kind == "identity":
        return given, np.eye(rounds)
    if kind == "tree":
        every = at.rng.choice([None, at.rng.randint(1, rounds)])
        if every is not None:
            given["restart_every"] = every
        rows = []
        for begun in range(0, rounds, every or rounds):
            size = min(every or rounds, rounds - begun)
            for height in range(size.bit_length()):
                for node in range(size >> height):
                    row = np.zeros(rounds)
                    row[begun + (node << height) : begun + ((node + 1) << height)] = 1.0
                    rows.append(row)
        return given, np.array(rows)
    root = np.cumprod([1.0, *((2.0 * k - 1.0) / (2.0 * k) for k in range(1, rounds))])
    bands = at.rng.randint(1, rounds)
    if kind == "banded-square-root":
        given["bands"] = bands
        first[:bands] = root[:bands]
    elif kind == "toeplitz":
        given["coefficients"] = [1.0, *(round(at.rng.uniform(0.0, 1.2), 3) for _ in range(bands - 1))]
        first[:bands] = given["coefficients"]
    elif kind == "blt":
        count = at.rng.randint(1, 2)
        given["scales"] = [round(at.rng.uniform(0.05, 0.5), 3) for _ in range(count)]
        given["decays"] = sorted(round(at.rng.uniform(0.2, 0.95), 3) for _ in range(count))
        powers = [
            sum(w * theta ** (i - 1) for w, theta in zip(given["scales"], given["decays"], strict=True))
            for i in range(1, rounds)
        ]
        first[:] = [1.0, *powers]
    elif kind == "banded-inverse":
        given["bands"] = bands
        inverse = np.cumprod([1.0, *((2.0 * k - 3.0) / (2.0 * k) for k in range(1, rounds))])
        inverse[bands:] = 0.0
        return given, np.linalg.inv([[inverse[i - j] if i >= j else 0.0 for j in range(rounds)] for i in range(rounds)])
    elif kind == "dense":
        entries = np.tril([[round(at.rng.uniform(0.0, 1.0), 3) for _ in range(rounds)] for _ in range(rounds)])
        entries += np.diag([0.3] * rounds)
        file = Path(tempfile.gettempdir()) / f"adversary-{at.rng.getrandbits(48):x}.npy"
        np.save(file, entries)
        atexit.register(file.unlink, missing_ok=True)
        given["file"] = str(file)
        return given, entries
    else:
        # What an optimal matrix is can only be had from where it was searched for. Its privacy is asked of nobody.
        given["bands"] = bands
        document = {
            "pyaccount": 1, "name": "a matrix", "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 0.1},
            **run({"kind": "none", "max_participations": 1}, {"iterations": rounds}, {"multiplier": 1.0}, matrix=given),
            "accounting": {"profile": []},
        }  # fmt: skip
        return given, np.asarray(pyaccount.certify(document).matrix.dense())
    return given, np.array([[first[i - j] if i >= j else 0.0 for j in range(rounds)] for i in range(rounds)])


def scaled(at: Setting, kind: str, rounds: int) -> tuple[Body, np.ndarray]:
    """Return a matrix of a document, and its entries as they are used: with columns of norm 1 at most, if they are scaled."""
    given, entries = matrix_of(at, kind, rounds)
    if at.rng.random() < 0.3 and kind != "identity":
        given["normalize"] = False
        return given, entries
    return given, entries / math.sqrt(float(np.max(np.sum(entries**2, axis=0))))


def with_matrix(kind: str) -> Builder:
    """Return the builder of a run without sampling whose noise is correlated; the worst of all patterns is searched for."""

    def build(at: Setting) -> Component:
        rounds, noise = at.rng.randint(1, 8), at.number(0.7, 6.0)
        most, apart = at.rng.randint(1, rounds), at.rng.randint(1, 4)
        given, entries = scaled(at, kind, rounds)
        sampler: Body = {"kind": "none", "max_participations": most, "min_separation": apart}
        body = run(sampler, {"iterations": rounds}, {"multiplier": noise}, matrix=given)
        norm = max(
            float(np.linalg.norm(np.sum(entries[:, list(chosen)], axis=1)))
            for count in range(1, most + 1)
            for chosen in itertools.combinations(range(rounds), count)
            if all(b - a >= apart for a, b in itertools.pairwise(chosen))
        )
        move = at.group * (2.0 if at.replaced else 1.0)
        return attained(body, gaussian({(move * norm,): 1.0}, {(0.0,): 1.0}, noise))

    return build
