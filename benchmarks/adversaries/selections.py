"""The exponential mechanism, permute-and-flip and report noisy max, on utilities that a record changes.

Probabilities are integrals whose integrands are products of positive terms; those in s are polynomials, for which Gauss–Legendre
quadrature is exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from adversaries.component import Component, Setting, mechanism
from adversaries.laws import Law, finite

#: A bound on the relative error of probabilities.
ERROR = 1e-11
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
#: How many pairs of data sets are built.
_PAIRS = 9
#: How many of them have two candidates: first one whose utilities are exchanged, then ones of which one is rare.
_SMALL = 6
Select = Callable[[list[float]], list[float]]


def gumbel(utilities: list[float]) -> list[float]:
    top = max(utilities)
    weights = [math.exp(u - top) for u in utilities]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def flip(utilities: list[float]) -> list[float]:
    """Permute-and-flip: w_i ∫_0^1 Π_{j≠i} (1 − w_j s) ds, w = e^{u − max u}; the order is uniformly random."""
    top = max(utilities)
    weights = [math.exp(u - top) for u in utilities]
    s = 0.5 * (_NODES + 1.0)
    out = []
    for i, weight in enumerate(weights):
        inside = np.prod([1.0 - other * s for j, other in enumerate(weights) if j != i], axis=0)
        out.append(weight * 0.5 * float(np.sum(_WEIGHTS * inside)))
    return out


def noisy(utilities: list[float]) -> list[float]:
    """Report noisy max with Laplace noise: ∫ f(y − u_i) Π_{j≠i} F(y − u_j) dy, between utilities and beyond them."""
    m, ordered = len(utilities), sorted(set(utilities))
    low, high = ordered[0], ordered[-1]
    edges = [low]
    for one, other in itertools.pairwise(ordered):
        pieces = max(1, math.ceil((other - one) / 0.5))
        edges.extend(one + (other - one) * k / pieces for k in range(1, pieces + 1))
    out = []
    for i, own in enumerate(utilities):
        total = 0.5**m * math.exp(math.fsum(low - u for u in utilities)) / m
        for one, other in itertools.pairwise(edges):
            y = one + 0.5 * (other - one) * (_NODES + 1.0)
            value = 0.5 * np.exp(-np.abs(y - own))
            for j, u in enumerate(utilities):
                if j != i:
                    value = value * np.where(
                        y < u, 0.5 * np.exp(np.minimum(y - u, 0.0)), 1.0 - 0.5 * np.exp(-np.abs(y - u))
                    )
            total += 0.5 * (other - one) * float(np.sum(_WEIGHTS * value))
        s = 0.5 * (_NODES + 1.0)
        value = np.full_like(s, 0.5 * math.exp(own - high))
        for j, u in enumerate(utilities):
            if j != i:
                value = value * (1.0 - 0.5 * s * math.exp(u - high))
        out.append(total + 0.5 * float(np.sum(_WEIGHTS * value)))
    return out


def pairs(at: Setting, select: Select, reach: float, monotone: bool, most: int) -> list[Law]:
    """Return the laws of utilities of which each changes by at most the sensitivity, all in one direction if monotone.

    `reach` is the largest change for one record, in units of the scale.
    """
    reach, laws = at.group * reach, []
    for index in range(_PAIRS):
        size = 2 if index < _SMALL else at.rng.randint(2, most)
        spread = at.rng.choice([0.0, 1.0, 3.0, 8.0]) * at.rng.random()
        before = [at.rng.uniform(-spread, spread) for _ in range(size)]
        if index == 0:
            # Two candidates whose utilities a record exchanges.
            before = [0.5 * reach * (1.0 if monotone else 2.0), 0.0]
        elif index < _SMALL:
            # The worst losses are those of an outcome that is rare on one of the data sets.
            before = [at.rng.uniform(-1.5, 1.5) * (2.0 * reach + 3.0), 0.0]
        signs = (
            [-1.0, 1.0]
            if index < _SMALL
            else [at.rng.choice([-1.0, 1.0, at.rng.uniform(-1.0, 1.0)]) for _ in range(size)]
        )
        if monotone:
            side = at.rng.choice([-1.0, 1.0])
            changes = [side * 0.5 * reach * (1.0 + side * sign) for sign in signs]
        else:
            changes = [reach * sign for sign in signs]
        after = [u + change for u, change in zip(before, changes, strict=True)]
        laws.append(finite(select(before), select(after), ERROR * (1.0 + spread + 8.0 * reach)))
    return laws


def _described(at: Setting, kind: str, **more: str) -> tuple[Component, float, float, bool]:
    if at.rng.random() < 0.5:
        epsilon = at.rng.choice([at.number(0.05, 4.0), at.number(2.0, 8.0), 1.0])
        return Component(mechanism(kind, epsilon=epsilon, **more), ()), 1.0, 2.0 / epsilon, False
    sensitivity = at.rng.choice([1.0, at.number(0.2, 4.0)])
    scale = at.number(0.3, 8.0) * sensitivity
    monotone = not at.replaced and at.rng.random() < 0.5
    given = {"utility_sensitivity": sensitivity, "scale": scale, **({"monotone": True} if monotone else {})}
    return Component(mechanism(kind, **given, **more), ()), sensitivity, scale, monotone


def _selection(at: Setting, kind: str, select: Select, most: int, **more: str) -> Component:
    described, sensitivity, scale, monotone = _described(at, kind, **more)
    return Component(described.body, tuple(pairs(at, select, sensitivity / scale, monotone, most)))


def exponential(at: Setting) -> Component:
    return _selection(at, "exponential", gumbel, 12)


def permute_and_flip(at: Setting) -> Component:
    return _selection(at, "permute-and-flip", flip, 5)


def report_noisy_max(at: Setting) -> Component:
    noise = at.rng.choice(["gumbel", "exponential", "laplace"])
    select = {"gumbel": gumbel, "exponential": flip, "laplace": noisy}[noise]
    return _selection(at, "report-noisy-max", select, 4, noise=noise)
