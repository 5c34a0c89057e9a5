"""The exact δ(ε) of small sampled mechanism documents, from their text and the samplers' definitions.

A document is the mapping that the package is given. Distributions are enumerated, and matrices are built from their definitions;
only matrices that the package optimises (`optimal-toeplitz`, `blt` with `buffers`) are taken from it, as numbers.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
from exact_mixtures import Array, Mixture, hockey_stick, judged_stick, nothing
from oracle import gaussian_delta
from phases import phase
from sampled_tools import (
    Law,
    allocation_law,
    bin_law,
    counts_law,
    lower_toeplitz,
    outcomes_of,
    pair_given,
    phase_law,
    renewal_law,
    users_law,
)

import pyaccount
from pyaccount.plan.matrices import strategy

#: One outcome of what both P and Q are conditioned on: its probability, P and Q.
Case = tuple[float, Mixture, Mixture]


@dataclass(frozen=True, slots=True)
class Truth:
    """The mechanism that a document describes; if the noise multiplier is the blank, it is given to each method."""

    document: dict[str, Any]
    folder: Path

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions that differ."""
        return ("replace",) if self.document["privacy"]["adjacency"] == "replace-one" else ("remove", "add")

    def delta(self, direction: str, epsilon: float, sigma: float | None = None, agreement: float = 1e-5) -> float:
        """Return δ(ε) in one direction."""
        return sum(
            chance * hockey_stick(*((q, p) if direction == "add" else (p, q)), epsilon, agreement=agreement)
            for chance, p, q in _cases(json.dumps(self.document), self.folder, sigma, zeros=False)
        )

    def zeros(self, direction: str, epsilon: float, sigma: float | None = None) -> float:
        """Return δ(ε) if all other records contribute nothing, which is a true lower bound if batches are truncated."""
        return sum(
            chance * hockey_stick(*((q, p) if direction == "add" else (p, q)), epsilon)
            for chance, p, q in _cases(json.dumps(self.document), self.folder, sigma, zeros=True)
        )

    def public(self, epsilon: float, sigma: float | None = None) -> float:
        """Return δ(ε) of one Gaussian mechanism that bounds the run, whether or not batches are truncated.

        It assumes that the worst draws are made and known, and that the record and another one both move the sums, each by the
        longest Cx.
        """
        square = 0.0
        for body in self.bodies:
            stated = body["noise"]["multiplier"]
            noise = sigma if stated == "solve" else stated
            matrix = self._matrix(body)
            square += max(float(np.sum((matrix @ np.array(x)) ** 2)) for x in self._law(body)) / noise**2
        return float(gaussian_delta(mp.mpf(2.0) * mp.sqrt(square), mp.mpf(epsilon)))

    def largest(self, epsilon: float, sigma: float | None = None, agreement: float = 1e-5) -> float:
        """Return δ(ε) of the worse direction."""
        return max(self.delta(direction, epsilon, sigma, agreement) for direction in self.directions)

    def enclosure(self, direction: str, epsilon: float, sigma: float | None = None) -> tuple[float, float] | None:
        """Return δ(ε) with the likelihood ratio that makes losses small, and with the one that makes them large; None if both are
        equal. The package has two if columns are longer than the separation (docs/sampling.md).
        """
        body = self.document
        if "min_separation" not in body.get("sampler", {}) or "truncate_to" in body["sampler"]:
            return None
        law, matrix, b = self._law(body), self._matrix(body), body["sampler"]["min_separation"]
        charges = crossings(matrix, b)
        if not charges.any():
            return None
        stated = body["noise"]["multiplier"]
        matrix = matrix / (sigma if stated == "solve" else stated)
        charges = charges / (sigma if stated == "solve" else stated) ** 2
        exact = Mixture.of(law, matrix)
        high, low = (enclosing(law, matrix, extra) for extra in (np.zeros(len(matrix)), charges))
        found = []
        for above, below in ((high, low), (low, high)):
            if direction == "add":
                found.append(hockey_stick(nothing(len(matrix)), below, epsilon))
            else:
                other = below.mirrored if direction == "replace" else nothing(len(matrix))
                found.append(judged_stick(exact, above, other, epsilon))
        return found[1], found[0]

    @property
    def truncated(self) -> bool:
        """Whether batches are truncated."""
        return any("truncate_to" in body["sampler"] for body in self.bodies)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The phases, each as often as it is run."""
        listed = self.document.get("phases", [self.document])
        return [body for body in listed for _ in range(body.get("count", 1))]

    def cases(self, sigma: float | None, *, zeros: bool) -> list[Case]:
        """Return all outcomes with their P and Q."""
        adjacency = self.document["privacy"]["adjacency"]
        found: list[Case] = []
        for k, body in enumerate(self.bodies):
            stated = body["noise"]["multiplier"]
            noise = sigma if stated == "solve" else stated
            assert noise is not None
            cases = self._of_body(body, noise, adjacency, zeros=zeros)
            found = cases if k == 0 else [(a * b, p.beside(r), q.beside(s)) for a, p, q in found for b, r, s in cases]
        return found

    def _of_body(self, body: dict[str, Any], sigma: float, adjacency: str, *, zeros: bool) -> list[Case]:
        law, matrix = self._law(body), self._matrix(body)
        if "truncate_to" in body["sampler"]:
            return truncated_cases(body, law, matrix / sigma, zeros=zeros)
        p = Mixture.of(law, matrix, 1.0 / sigma)
        return [(1.0, p, p.mirrored if adjacency == "replace-one" else nothing(len(matrix)))]

    def _law(self, body: dict[str, Any]) -> Law:
        """Return the distribution of the participations of all records of the group together, each drawn on its own."""
        single = law_of(body)
        together = single
        for _ in range(1, self.document["privacy"].get("group_size", 1)):
            together = beside(together, single)
        return together

    def _matrix(self, body: dict[str, Any]) -> Array:
        given, n = body.get("matrix", {"kind": "identity"}), body["training"]["iterations"]
        if given["kind"] == "optimal-toeplitz" or "buffers" in given:
            index = self.document.get("phases", [self.document]).index(body)
            return lower_toeplitz(np.array(_optimised(_unasked(self.document), index)), n)
        if given["kind"] == "identity":
            return np.eye(n)
        matrix = (
            np.load(self.folder / given["file"]) if given["kind"] == "dense" else lower_toeplitz(column(given, n), n)
        )
        return np.asarray(matrix / np.linalg.norm(matrix, axis=0).max() if given.get("normalize", True) else matrix)


def crossings(matrix: Array, b: int) -> Array:
    """Return Γ_i, the largest sum of Gram off-diagonals of column i over sets of rounds at least b apart; all sets are tried."""
    gram, n = matrix.T @ matrix, len(matrix)
    most = np.zeros(n)
    for taken in product((False, True), repeat=n):
        rounds = [i for i in range(n) if taken[i]]
        if all(later - earlier >= b for earlier, later in pairwise(rounds)):
            for i in rounds:
                most[i] = max(most[i], sum(gram[i, j] for j in rounds if j != i))
    return most


def enclosing(law: Law, matrix: Array, extra: Array) -> Mixture:
    """Return Σ_x w_x e^{⟨Cx, y⟩ − ½ Σ x_i² (‖c_i‖² + extra_i)} as weights of N(Cx, I)."""
    squares = (matrix**2).sum(axis=0) + extra
    exact = Mixture.of(law, matrix)
    merged = dict.fromkeys((tuple(row) for row in exact.means.tolist()), 0.0)
    for x, weight in law.items():
        mean = np.round(matrix @ np.array(x, dtype=float), 14) + 0.0
        merged[tuple(mean.tolist())] += weight * float(np.exp(0.5 * (mean @ mean - np.square(x) @ squares)))
    weights = np.array(list(merged.values()))
    moved = np.any(exact.means != 0.0, axis=1)
    return Mixture(weights, exact.means, float(exact.weights[moved].sum() - weights[moved].sum()))


@lru_cache(maxsize=16)
def _cases(document: str, folder: Path, sigma: float | None, *, zeros: bool) -> list[Case]:
    """Return the cases of a document that is given as text; they are kept, because they do not depend on direction or ε."""
    return Truth(json.loads(document), folder).cases(sigma, zeros=zeros)


def _unasked(document: dict[str, Any]) -> str:
    """Return the document without its targets, on which its matrices do not depend."""
    return json.dumps({**document, "privacy": {**document["privacy"], "epsilon": 1.0, "delta": 1e-5}})


@lru_cache(maxsize=256)
def _optimised(document: str, index: int) -> tuple[float, ...]:
    """Return the coefficients that the package finds for the matrix of a phase."""
    loaded = pyaccount.load(json.loads(document))
    coefficients = strategy(phase(loaded, index)).coefficients
    assert coefficients is not None
    return coefficients


def column(given: dict[str, Any], n: int) -> Array:
    """Return the first column of a Toeplitz matrix, of full length, from its definition."""
    kind = given["kind"]
    if kind == "toeplitz":
        return np.array(given["coefficients"], dtype=float)
    if kind == "banded-square-root":
        return np.cumprod([1.0, *((2 * j - 1) / (2 * j) for j in range(1, given["bands"]))])
    if kind == "banded-inverse":
        roots = np.cumprod([1.0, *((2 * j - 3) / (2 * j) for j in range(1, given.get("bands", 1)))])
        inverse = np.array(given.get("inverse_coefficients", roots), dtype=float)
        return np.asarray(np.linalg.inv(lower_toeplitz(inverse[:n], n))[:, 0])
    if kind == "blt":
        powers = np.power.outer(np.array(given["decays"], dtype=float), np.arange(n - 1))
        return np.concatenate([[1.0], np.array(given["scales"]) @ powers])
    raise ValueError(kind)


def beside(one: Law, other: Law) -> Law:
    """Return the law of the sum of two independent patterns."""
    found: Law = {}
    for (x, first), (y, second) in product(one.items(), other.items()):
        key = tuple(a + b for a, b in zip(x, y, strict=True))
        found[key] = found.get(key, 0.0) + first * second
    return found


def law_of(body: dict[str, Any]) -> Law:
    """Return the distribution of one record's or user's participations."""
    sampler, n, p = body["sampler"], body["training"]["iterations"], body["training"].get("sampling_probability", 0.0)
    kind, warm = sampler["kind"], sampler.get("start", "warm") == "warm"
    if kind == "poisson":
        return renewal_law(n, 1, p, warm=False)
    if kind == "b-min-sep":
        return renewal_law(n, sampler["min_separation"], p, warm=warm)
    if kind == "user-b-min-sep":
        return users_law(n, sampler["min_separation"], p, sampler["records_per_user"], warm=warm)
    if kind == "balls-in-bins":
        return bin_law(n, sampler["bins"])
    if kind == "random-allocation":
        one = allocation_law(sampler["iterations_per_allocation"], sampler["participations"])
        found: Law = {(): 1.0}
        for _ in range(n // sampler["iterations_per_allocation"]):
            found = {(*x, *y): a * b for (x, a), (y, b) in product(found.items(), one.items())}
        return found
    assert kind == "cyclic-poisson"
    return phase_law(n, sampler["partitions"], p)


def truncated_cases(body: dict[str, Any], law: Law, matrix: Array, *, zeros: bool) -> list[Case]:
    """Return P and Q for each relevant outcome of the counts of other records; with `zeros` one case, in which they contribute 0.

    A bin draws once which records are kept, for all of its rounds. So the outcome is about bins, and each column of `places` is
    the change of the sums by a record in that bin.
    """
    n, limit, others = len(matrix), body["sampler"]["truncate_to"], body["training"]["dataset_size"] - 1
    places, of_place = matrix, law
    if body["sampler"]["kind"] == "balls-in-bins":
        bins = body["sampler"]["bins"]
        places = np.stack([matrix[:, t::bins].sum(axis=1) for t in range(bins)], axis=1)
        of_place = {tuple(int(k == t) for k in range(bins)): 1.0 / bins for t in range(bins)}
    chances: dict[tuple[int, ...], float] = {}
    for r, chance in counts_law(tuple(of_place.items()), others).items():
        # Counts below the limit are equivalent, because nothing is truncated.
        key = tuple(count if count >= limit else 0 for count in r)
        chances[key] = chances.get(key, 0.0) + chance
    if not zeros:
        pairs = ((chance, pair_given(of_place, r, limit)) for r, chance in chances.items())
        return [(chance, Mixture.of(p, places), Mixture.of(q, places)) for chance, (p, q) in pairs]
    kept: Law = {}
    for r, chance in chances.items():
        shares = [limit / (count + 1) if count >= limit else 0.0 for count in r]
        for x, probability in of_place.items():
            for outcome, weight in outcomes_of(x, shares):
                key = tuple(min(one, 1) for one in outcome)
                kept[key] = kept.get(key, 0.0) + chance * probability * weight
    return [(1.0, Mixture.of(kept, places), nothing(n))]
