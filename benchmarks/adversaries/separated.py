"""Records and users that wait after they took part, runs of a few rounds with every pattern enumerated, and matrices."""

from __future__ import annotations

import atexit
import itertools
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Process:
    """How a record takes part in a few rounds: probabilities of its patterns, for each kind of record."""

    sampler: Body
    training: Body
    weights: tuple[Patterns, ...]


def b_min_sep(at: Setting, rounds: int) -> Process:
    p, apart, start = at.probability(0.05), at.rng.randint(2, 3), at.rng.choice(["warm", "cold"])
    sampler = {"kind": "b-min-sep", "min_separation": apart, "start": start}
    weights = _waiting(binomial(1, fraction(p)), apart, rounds, start)
    return Process(sampler, {"sampling_probability": p}, (weights,))


def user_b_min_sep(at: Setting, rounds: int) -> Process:
    p, apart, start, records = (
        at.probability(0.05),
        at.rng.randint(2, 3),
        at.rng.choice(["warm", "cold"]),
        at.rng.randint(1, 3),
    )
    shared = at.adjacency == "zero-out" and at.rng.random() < 0.5
    sampler: Body = {"kind": "user-b-min-sep", "records_per_user": records, "min_separation": apart, "start": start}
    sampler["attribution"] = "shared" if shared else "single"
    after = at.rng.choice(["draw", "participation"]) if shared else "draw"
    if after == "participation":
        sampler["waits_after"] = after
    counts = binomial(records, fraction(p))
    if not shared or after == "participation":
        # Records that no other user has take part whenever they are drawn while their user does not wait.
        return Process(sampler, {"sampling_probability": p}, (_waiting(counts, apart, rounds, start),))
    # Every record is drawn in every round, and takes part if no record of its user was drawn in the apart − 1 rounds before.
    before = apart - 1 if start == "warm" else 0
    weights: Patterns = {}
    for drawn in itertools.product(counts, repeat=before + rounds):
        taken = tuple(
            float(drawn[t]) if not any(drawn[max(0, t - apart + 1) : t]) else 0.0
            for t in range(before, before + rounds)
        )
        weights[taken] = weights.get(taken, 0.0) + float(math.prod(counts[one] for one in drawn))
    return Process(sampler, {"sampling_probability": p}, (weights,))


def balls_in_bins(at: Setting, rounds: int) -> Process:
    bins = at.rng.randint(1, rounds)
    weights = {
        tuple(1.0 if one % bins == k else 0.0 for one in range(rounds)): float(Fraction(1, bins)) for k in range(bins)
    }
    return Process({"kind": "balls-in-bins", "bins": bins}, {}, (weights,))


def cyclic(at: Setting, rounds: int, phase: str = "random") -> Process:
    """Return cyclic Poisson sampling: a record is drawn in the rounds of its part, which is secret if the phase is random."""
    p, parts = at.probability(0.05), at.rng.randint(1, rounds)
    sampler = {"kind": "cyclic-poisson", "partitions": parts, "phase": phase}
    counts = binomial(1, fraction(p))
    kinds = []
    for part in range(parts):
        choices = [counts if one % parts == part else {0: Fraction(1)} for one in range(rounds)]
        kinds.append({
            tuple(map(float, taken)): float(math.prod(choice[one] for choice, one in zip(choices, taken, strict=True)))
            for taken in itertools.product(*choices)
        })  # fmt: skip
    if phase == "random":
        mixed: Patterns = {}
        for kind in kinds:
            for taken, weight in kind.items():
                mixed[taken] = mixed.get(taken, 0.0) + weight / parts
        kinds = [mixed]
    return Process(sampler, {"sampling_probability": p}, tuple(kinds))


def cyclic_fixed(at: Setting, rounds: int) -> Process:
    return cyclic(at, rounds, "fixed")


def sampled_run(process: Callable[[Setting, int], Process], *, matrix: bool = False) -> Builder:
    """Return the builder of a run of a few rounds, every one of which is enumerated, with correlated noise or without."""

    def build(at: Setting) -> Component:
        if at.group > 1:
            raise Impossible
        rounds, noise = at.rng.randint(2, 3), at.number(0.7, 4.0)
        made = process(at, rounds)
        given, entries = (
            scaled(at, at.rng.choice(["toeplitz", "banded-square-root", "dense", "banded-inverse"]), rounds)
            if matrix
            else ({}, None)
        )
        more = {"matrix": given} if matrix else {}
        body = run(made.sampler, {"iterations": rounds} | made.training, {"multiplier": noise}, **more)
        return Component(body, tuple(patterns(at, weights, noise, entries) for weights in made.weights))

    return build


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
