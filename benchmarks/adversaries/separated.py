"""Records and users that wait after they took part, runs of a few rounds with every pattern enumerated, and matrices."""

from __future__ import annotations

import atexit
import itertools
import math
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

import pyaccount
from adversaries.cells import gaussian
from adversaries.component import Body, Builder, Component, Impossible, Setting, attained
from adversaries.training import binomial, fraction, patterns, run

Patterns = dict[tuple[float, ...], float]


def _waiting(counts: dict[int, Fraction], apart: int, rounds: int, start: str) -> Patterns:
    """Return the probability of every sequence of counts, if a record waits apart − 1 rounds after a round with a count."""
    drawn = 1 - counts[0]
    stationary = 1 / (apart - 1 + 1 / drawn) if drawn else Fraction(0)
    states = {0: Fraction(1)}
    if start == "warm":
        states = dict.fromkeys(range(1, apart), stationary)
        states[0] = 1 - (apart - 1) * stationary
    found: dict[tuple[int, ...], Fraction] = {}

    def follow(taken: tuple[int, ...], wait: int, weight: Fraction) -> None:
        if not weight:
            return
        if len(taken) == rounds:
            found[taken] = found.get(taken, Fraction(0)) + weight
        elif wait:
            follow((*taken, 0), wait - 1, weight)
        else:
            for count, share in counts.items():
                follow((*taken, count), apart - 1 if count else 0, weight * share)

    for wait, weight in states.items():
        follow((), wait, weight)
    return {tuple(float(x) for x in taken): float(weight) for taken, weight in found.items()}


def b_min_sep(at: Setting) -> Component:
    if at.group > 1:
        raise Impossible
    rounds, p, noise = at.rng.randint(2, 3), at.probability(0.05), at.number(0.7, 3.0)
    apart, start = at.rng.randint(2, 3), at.rng.choice(["warm", "cold"])
    sampler = {"kind": "b-min-sep", "min_separation": apart, "start": start}
    body = run(sampler, {"iterations": rounds, "sampling_probability": p}, {"multiplier": noise})
    weights = _waiting(binomial(1, fraction(p)), apart, rounds, start)
    return Component(body, (patterns(at, weights, noise),))


def user_b_min_sep(at: Setting) -> Component:
    if at.group > 1:
        raise Impossible
    rounds, p, noise = at.rng.randint(2, 3), at.probability(0.05), at.number(1.0, 4.0)
    apart, start, records = at.rng.randint(2, 3), at.rng.choice(["warm", "cold"]), at.rng.randint(1, 3)
    shared = at.adjacency == "zero-out" and at.rng.random() < 0.5
    sampler: Body = {"kind": "user-b-min-sep", "records_per_user": records, "min_separation": apart, "start": start}
    sampler["attribution"] = "shared" if shared else "single"
    body = run(sampler, {"iterations": rounds, "sampling_probability": p}, {"multiplier": noise})
    counts = binomial(records, fraction(p))
    if not shared:
        return Component(body, (patterns(at, _waiting(counts, apart, rounds, start), noise),))
    # Every record is drawn in every round, and takes part if no record of its user was drawn in the apart − 1 rounds before.
    before = apart - 1 if start == "warm" else 0
    weights: Patterns = {}
    for drawn in itertools.product(counts, repeat=before + rounds):
        taken = tuple(
            float(drawn[t]) if not any(drawn[max(0, t - apart + 1) : t]) else 0.0
            for t in range(before, before + rounds)
        )
        weights[taken] = weights.get(taken, 0.0) + float(math.prod(counts[one] for one in drawn))
    return Component(body, (patterns(at, weights, noise),))


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


def with_matrix(kind: str) -> Builder:
    """Return the builder of a run without sampling whose noise is correlated; the worst of all patterns is searched for."""

    def build(at: Setting) -> Component:
        rounds, noise = at.rng.randint(1, 8), at.number(0.7, 6.0)
        most, apart = at.rng.randint(1, rounds), at.rng.randint(1, 4)
        given, entries = matrix_of(at, kind, rounds)
        if at.rng.random() < 0.3 and kind != "identity":
            given["normalize"] = False
        else:
            entries = entries / math.sqrt(float(np.max(np.sum(entries**2, axis=0))))
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
